"""Evenly spaced values between arrays: computed on shards, never from gathered ends."""

from __future__ import annotations

import warnings
from contextlib import nullcontext

import numpy as np
import pytest

import numpy_dist as nd
from numpy_dist import engine
from numpy_dist.settings import config
from numpy_dist.spmd_testing import run_simulated

from .harness import check

ENDS = np.array([1.0, -2.5, 8.0, 0.25, 3.0])


@pytest.mark.slow
@pytest.mark.parametrize(
    "function",
    [
        lambda x: np.linspace(x, 2 * x, 4),
        lambda x: np.linspace(1, x, 4, endpoint=False, dtype=int),
        lambda x: np.linspace(x.astype("f4"), 2.5, 4, retstep=True, axis=1),
        lambda x: np.linspace(x, x, 3),
        lambda x: np.linspace(x, 7, 1),
        lambda x: np.linspace(x, 7, -1),
        lambda x: np.logspace(x, 2, 3),
        lambda x: np.logspace(1, 2, 3, base=np.abs(x), axis=-1),
        lambda x: np.geomspace(x, 9 * x, 5),
        lambda x: np.geomspace(x - 1, 9.0, 5),
    ],
)
def test_between_arrays(function):
    check(function, ENDS)


def test_the_layout_that_was_asked_for():
    def program():
        with config(MIN_SHARD_BYTES=0):
            x = engine.from_global(ENDS)
            for made in (
                nd.linspace(x, 2 * x, 6, split=0),
                nd.logspace(x, 2, 6, split=0),
                nd.geomspace(x, 9 * x, 6, split=0),
            ):
                assert made.layout == engine.default_layout((6, 5), split=0)

    run_simulated(3, program)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("copy", [False, True])
def test_grids_come_in_the_container_that_numpy_gives(sparse: bool, copy: bool) -> None:
    x = np.arange(3.0)
    with config(MIN_SHARD_BYTES=0):
        found = np.meshgrid(nd.asarray(x), nd.asarray(x), sparse=sparse, copy=copy)
    assert type(found) is type(np.meshgrid(x, x, sparse=sparse, copy=copy))


@pytest.mark.parametrize("ends", [(0.0, np.inf), (-np.inf, np.inf), (np.nan, 1.0), (-1.7e308, 1.7e308), (0.0, 1e300)])
@pytest.mark.parametrize("options", [{}, {"endpoint": False}, {"dtype": "i1"}, {"dtype": "f4", "retstep": True}])
@pytest.mark.parametrize("size", [1, 3])
def test_events_between_numbers_are_told_once(size: int, options: dict, ends: tuple[float, float]) -> None:
    with warnings.catch_warnings(record=True) as expected:
        warnings.simplefilter("always")
        np.linspace(*ends, 70_001, **options)

    def program() -> None:
        with config(MIN_SHARD_BYTES=0):
            if size == 1:
                with warnings.catch_warnings(record=True) as told:
                    warnings.simplefilter("always")
                    nd.linspace(*ends, 70_001, **options)
                assert [str(x.message) for x in told] == [str(x.message) for x in expected]
            with np.errstate(all="raise"), pytest.raises(FloatingPointError) if expected else nullcontext():
                nd.linspace(*ends, 70_001, **options)  # on every rank, or on none

    run_simulated(size, program)
