"""Values without a place in the plain memory of shards: references to Python objects, and values without a byte."""

from __future__ import annotations

import operator

import numpy as np
import pytest

import numpy_dist.distarray
from numpy_dist import engine
from numpy_dist.engine.data.ingest import make_storage
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


OBJECTS = np.array([1, 2, None, 2.5, 3], object)
MASK, PLACES = np.array([True, False, False, True, False]), np.array([4, 0, 0])
INTO = np.array([1, 2, 3, 4, 10**50], object)


def _assigned(x, key, value):
    x[key] = value
    return x


def _copied(x, value, **options):
    np.copyto(x, value, **options)
    return x


def _put(x, places, value):
    np.put(x, places, value)
    return x


# Of functions that make arrays under test of ndarrays.
INDEXED = {
    "mask": lambda a: a(OBJECTS)[a(MASK)],
    "places": lambda a: a(OBJECTS)[a(PLACES)],
    "take": lambda a: np.take(a(OBJECTS), a(PLACES)),
    "compress": lambda a: np.compress(a(MASK), a(OBJECTS)),
    "set one": lambda a: _assigned(a(OBJECTS), a(MASK), 7),
    "set several": lambda a: _assigned(a(OBJECTS), a(MASK), a(np.array([7, 8]))),
    "set places": lambda a: _assigned(a(OBJECTS), a(PLACES), a(np.array([7, 8, 9]))),
    "put": lambda a: _put(a(OBJECTS), a(PLACES[:2]), a(np.array([7, 8]))),
    "of objects": lambda a: _assigned(a(np.zeros(5)), a(MASK), a(np.array([7, 8], object))),
    "places of objects": lambda a: _assigned(a(np.zeros(5)), a(PLACES[:2]), a(np.array([7, 8], object))),
    "all": lambda a: _assigned(a(np.zeros((5, 2))), ..., a(INTO)[:, None]),
    "copyto": lambda a: _copied(a(np.zeros(5)), a(OBJECTS), where=a(MASK), casting="unsafe"),
    "weights": lambda a: np.quantile(a(np.arange(3.0)), 0.5, weights=a(INTO[:3]), method="inverted_cdf"),
}


@pytest.mark.parametrize("name", INDEXED)
def test_objects_beside_shards(name):
    expected = INDEXED[name](np.array)
    with config(FALLBACK="silent"):
        found = INDEXED[name](numpy_dist.asarray)
    assert np.shape(found) == expected.shape
    assert (found.gather() if engine.is_handle(found) else found).tolist() == expected.tolist()


BESIDE = [
    (VALUES, np.where(VALUES < 4, VALUES, VALUES + 0.5).astype(object)),
    (np.array(["a", "bb", "c"]), np.array(["a", "z", "c"], np.dtypes.StringDType())),
]


@pytest.mark.parametrize("name", ["add", "sub", "lt", "eq", "ne", "iadd"])
@pytest.mark.parametrize("wrapped", ["both", "left", "right"])
def test_operators_of_objects_beside_shards(name, wrapped):
    def tried(left, right):
        try:
            return getattr(operator, name)(left, right)
        except TypeError as error:
            return type(error), str(error)

    for pair in BESIDE:
        for left, right in (pair, pair[::-1]):
            expected = tried(left.copy(), right.copy())
            a = left.copy() if wrapped == "right" else numpy_dist.asarray(left)
            b = right.copy() if wrapped == "left" else numpy_dist.asarray(right)
            with config(FALLBACK="silent"):
                found = tried(a, b)
            if isinstance(expected, np.ndarray):
                assert found.dtype == expected.dtype
                found = found if isinstance(found, np.ndarray) else found.gather()
                assert found.tolist() == expected.tolist()
            else:
                assert found == expected


def test_casts_of_objects_warn():
    with pytest.warns(RuntimeWarning, match="overflow encountered in cast"):
        numpy_dist.asarray(np.zeros(5, "f4"))[...] = INTO


NAMES = np.zeros(7, [("name", "S0"), ("value", "i4"), ("end", "V0")])
NAMES["value"] = range(7)
NOTHING = {
    "copy": lambda a: a(np.zeros(7, "V0")).copy(),
    "two axes": lambda a: a(np.zeros((2, 3), "V0")).T[::-1],
    "where": lambda a: np.where(a(np.ones(7, bool)), a(np.zeros(7, "V0")), a(np.zeros(7, "V0"))),
    "concatenate": lambda a: np.concatenate([a(np.zeros(7, "V0")), a(np.zeros(2, "V0"))]),
    "put": lambda a: _put(a(np.zeros(7, "V0")), a(PLACES), []),
    "record": lambda a: a(NAMES).copy(),
    "field": lambda a: a(NAMES)["name"] == b"",
    "field's end": lambda a: a(NAMES)["end"].copy(),
    "field's part": lambda a: a(NAMES)["name"][2:],
    "write": lambda a: _assigned(a(NAMES), "name", b"abc"),
    "string": lambda a: a(NAMES)["name"].astype("S3"),
}


@pytest.mark.parametrize("name", NOTHING)
def test_values_without_a_byte(name):
    expected = NOTHING[name](np.array)
    with config(FALLBACK="silent"):
        found = NOTHING[name](numpy_dist.asarray)
    assert found.shape == expected.shape and found.gather().tolist() == expected.tolist()


@pytest.mark.parametrize("dtype", [object, np.dtypes.StringDType(), [("a", "f8"), ("b", "O")], "V0"], ids=str)
def test_no_storage_of_objects(dtype):
    size = engine.runtime().size
    with pytest.raises(TypeError, match="cannot be sharded"):
        make_storage((3,), np.dtype(dtype), Layout((3,), Mesh((size,)), (Copies(),)))
