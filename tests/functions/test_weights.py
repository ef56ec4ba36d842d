"""Functions on arrays whose cuts follow weights: values are those of even cuts, bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import numpy_dist as nd
from numpy_dist import engine
from numpy_dist.errors import RankError
from numpy_dist.spmd_testing import run_simulated

RNG = np.random.default_rng(3)
MATRIX, KEYS = RNG.standard_normal((23, 6)), RNG.integers(0, 9, 41)


def smoothed(x: Any) -> Any:
    x = x.copy()
    for _ in range(3):
        x[1:-1] = 0.25 * (x[2:] + x[:-2]) + 0.5 * x[1:-1]
    return x


# Of each, the same bits are promised at every layout.
CALLS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "elementwise": lambda m, x, k: m.sin(x) * 2 + x,
    "halo": lambda m, x, k: smoothed(x),
    "columns": lambda m, x, k: x[:, 1:] - x[:, :-1],
    "row maximum": lambda m, x, k: x.max(axis=0),
    "whole sum": lambda m, x, k: k.sum(),
    "cumsum": lambda m, x, k: m.cumsum(k),
    "sort": lambda m, x, k: m.sort(k),
    "argsort": lambda m, x, k: m.argsort(k, kind="stable"),
    "unique": lambda m, x, k: m.unique(k),
    "bincount": lambda m, x, k: m.bincount(k),
    "median": lambda m, x, k: m.median(x, axis=0),
    "mask": lambda m, x, k: k[k > 4],
    "nonzero": lambda m, x, k: m.nonzero(k % 3)[0],
    "take": lambda m, x, k: x[m.sort(k) % 23],
    "reversed": lambda m, x, k: x[::-2],
    "roll": lambda m, x, k: m.roll(x, 5, axis=0),
    "concatenate": lambda m, x, k: m.concatenate([x[20:], x[:9]]),
    "transpose": lambda m, x, k: x.T + 1,
    "product": lambda m, x, k: k[:, None] @ k[None, :],
    "made": lambda m, x, k: m.arange(17) + m.linspace(0, 1, 17),
    "random": lambda m, x, k: m.random.default_rng(5).random((13, 4)),
}


def computed() -> dict[str, np.ndarray]:
    """What each call gives, gathered."""
    x, keys = nd.asarray(MATRIX), nd.asarray(KEYS)
    found = {name: call(nd, x, keys) for name, call in CALLS.items()}
    return {name: np.asarray(value.gather() if isinstance(value, nd.DistArray) else value)
            for name, value in found.items()}  # fmt: skip


@pytest.mark.parametrize("size", [2, 3])
def test_functions_with_uneven_cuts(size: int) -> None:
    """Also with a rank that has next to nothing."""

    def run(weights: tuple[float, ...]) -> None:
        with nd.config(MIN_SHARD_BYTES=0, AT_ONCE=0, FALLBACK="error"):
            with nd.config(WEIGHTS=()):
                even = computed()
            with nd.config(WEIGHTS=weights):
                cut = nd.zeros((80, 2)).layout
                assert cut is not None and cut.dims[0].points != (0, *even_points(80)), cut
                uneven = computed()
        for name, call in CALLS.items():
            np.testing.assert_array_equal(uneven[name], even[name], err_msg=f"{name} with weights {weights}")
            np.testing.assert_allclose(
                uneven[name], np.asarray(call(np, MATRIX, KEYS)), rtol=1e-12, atol=1e-12, err_msg=name
            )
            assert uneven[name].dtype == even[name].dtype

    def even_points(n: int) -> tuple[int, ...]:
        return tuple(n * rank // size for rank in range(1, size + 1))

    for weights in ((2.0, 1.0, 1.0)[:size], (1.0, 3.0, 2.0)[:size], (1.0, 1.0, 50.0)[-size:]):
        run_simulated(size, lambda weights=weights: run(weights))


@settings(max_examples=6, deadline=None)
@given(
    st.lists(st.sampled_from([0.1, 1.0, 2.0, 7.0]), min_size=2, max_size=3),
    st.tuples(st.integers(1, 12), st.integers(1, 12)),
    st.data(),
)
def test_rebalanced_arrays_have_the_same_values(weights: list[float], shape: tuple[int, int], data: st.DataObject):
    again = data.draw(st.permutations(weights))
    plain = np.arange(np.prod(shape), dtype=float).reshape(shape)

    def run() -> None:
        with nd.config(MIN_SHARD_BYTES=0, AT_ONCE=0):
            x = nd.asarray(plain)
            for part, expected in ((x, plain), (x.T, plain.T), (x[::-1, ::2], plain[::-1, ::2])):
                moved = nd.rebalance(nd.rebalance(part, weights), again)
                assert moved.layout is not None
                np.testing.assert_array_equal(moved.gather(), expected)
                np.testing.assert_array_equal((moved + part).gather(), expected + expected)

    run_simulated(len(weights), run)


def test_rebalance_cuts_by_weights_and_evenly() -> None:
    def run() -> None:
        with nd.config(MIN_SHARD_BYTES=0, AT_ONCE=0):
            x = nd.zeros((60, 3), split=0)
            by_weights = nd.rebalance(x, (4, 1, 1)).layout
            assert by_weights.dims[0].points == (0, 40, 50, 60)
            assert nd.rebalance(x, "1 1 4").layout.dims[0].points == (0, 10, 20, 60)
            with nd.config(WEIGHTS="2,1,1"):
                assert nd.rebalance(x).layout.dims[0].points == (0, 30, 45, 60)
            assert nd.rebalance(nd.rebalance(x, (4, 1, 1))).layout == x.layout
            assert nd.rebalance(nd.rebalance(x, (4, 1, 1)), (1, 1, 1)).layout == x.layout
            assert x.layout.dims[0].points == (0, 20, 40, 60)

    run_simulated(3, run)


def test_mistakes_are_told() -> None:
    def run() -> None:
        with nd.config(MIN_SHARD_BYTES=0, AT_ONCE=0):
            x = nd.zeros(12)
            with pytest.raises(ValueError, match="3 weights for 2 ranks"):
                nd.rebalance(x, (1, 1, 1))
            with pytest.raises(ValueError, match="positive number for each rank"):
                nd.rebalance(x, (1, 0))
            with pytest.raises(TypeError, match="takes a DistArray, not ndarray"):
                nd.rebalance(np.zeros(3))
            with nd.config(WEIGHTS=(1, 2, 3)), pytest.raises(ValueError, match="3 weights for 2 ranks"):
                nd.zeros(13)

    run_simulated(2, run)


def test_ranks_with_other_weights_are_told() -> None:
    def run() -> None:
        with nd.config(MIN_SHARD_BYTES=0, AT_ONCE=0, WEIGHTS=(1, 2 + engine.runtime().rank)):
            nd.zeros(100).gather()

    with pytest.raises(Exception, match="setting WEIGHTS: rank 0: .*; rank 1: ") as raised:
        run_simulated(2, run)
    assert not isinstance(raised.value, RankError)


def test_a_rank_that_cannot_measure_fails_on_all() -> None:
    def run() -> None:
        rt = engine.runtime()
        if rt.rank == 1:
            rt.backend.threads = 0  # of no rank
        with nd.config(MIN_SHARD_BYTES=0, WEIGHTS="measured"), pytest.raises(ZeroDivisionError):
            nd.zeros(100)

    run_simulated(2, run)
