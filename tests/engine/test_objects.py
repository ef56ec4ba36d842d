"""References to Python objects never lie in the plain memory of shards."""

from __future__ import annotations

import numpy as np
import pytest

import numpy_dist.distarray
from numpy_dist import engine
from numpy_dist.engine.ingest import make_storage
from numpy_dist.layout.layout import Copies, Layout
from numpy_dist.layout.mesh import Mesh
from numpy_dist.settings import config

pytestmark = pytest.mark.spmd(ranks=(1, 2, 3))

VALUES = np.arange(1.0, 31.0).reshape(6, 5)

REDUCTIONS = {
    "sum": lambda x: np.sum(x, axis=0, dtype=object),
    "method": lambda x: x.sum(axis=1, dtype=object),
    "reduce": lambda x: np.add.reduce(x, dtype=object),
    "whole": lambda x: np.multiply.reduce(x, axis=None, dtype=object),
    "maximum": lambda x: np.maximum.reduce(x, axis=1, keepdims=True, dtype=object),
    "masked": lambda x: np.sum(x, axis=0, dtype=object, where=VALUES > 3, initial=0),
    "mean": lambda x: np.mean(x, axis=0, dtype=object),
    "var": lambda x: np.var(x, axis=0, dtype=object),
    "product": lambda x: np.prod(x, axis=(0, 1), dtype="O"),
}


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_to_objects(name):
    expected = REDUCTIONS[name](VALUES)
    with config(FALLBACK="silent"):
        found = REDUCTIONS[name](numpy_dist.asarray(VALUES))
    if isinstance(expected, np.ndarray):
        assert found.dtype == object and not engine.is_sharded(found)
        assert found.shape == expected.shape and np.array_equal(found.gather(), expected)
    else:
        assert type(found) is type(expected) and found == expected


def test_reductions_into_objects():
    expected, into = np.full(5, None), np.full(5, None)
    np.add.reduce(VALUES, out=expected)
    with config(FALLBACK="silent"):
        np.add.reduce(numpy_dist.asarray(VALUES), out=into)
    assert np.array_equal(into, expected)


@pytest.mark.parametrize("dtype", [object, np.dtypes.StringDType(), [("a", "f8"), ("b", "O")]], ids=str)
def test_no_storage_of_objects(dtype):
    size = engine.runtime().size
    with pytest.raises(TypeError, match="cannot be sharded"):
        make_storage((3,), np.dtype(dtype), Layout((3,), Mesh((size,)), (Copies(),)))
