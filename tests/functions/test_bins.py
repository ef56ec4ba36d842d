"""Counts in equal bins are those of `numpy.histogram`, also on the edges."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from numpy_dist.parallel.bins import TILE, can_count, count, occurrences


def check(x: np.ndarray, bins: int) -> None:
    edges = np.histogram_bin_edges(x, bins)
    assert can_count(x, edges)
    np.testing.assert_array_equal(count(x, edges), np.histogram(x, bins)[0])


@given(st.integers(0, 2**32 - 1), st.integers(1, 300), st.sampled_from([1e-300, 1e-9, 1.0, 7.3, 1e150]))
@settings(max_examples=60, deadline=None)
def test_elements_on_and_beside_the_edges(seed: int, bins: int, scale: float) -> None:
    rng = np.random.default_rng(seed)
    x = (rng.random(50) - rng.random()) * scale
    edges = np.histogram_bin_edges(x, bins)
    on = np.clip(edges, x.min(), x.max())
    check(np.concatenate([x, on, np.nextafter(on, x.min()), np.nextafter(on, x.max())]), bins)


@pytest.mark.parametrize("n", [1, TILE - 1, TILE, TILE + 1, 3 * TILE + 5])
def test_tiles(n: int) -> None:
    check(np.random.default_rng(n).standard_normal(n), 50)


def test_what_it_does_not_know() -> None:
    assert not can_count(np.zeros(3, np.float32), np.linspace(0, 1, 4))
    assert not can_count(np.zeros(3), np.array([-1.5e308, 0, 1.5e308]))


@pytest.mark.parametrize("dtype", ["?", "i1", "u2", "i8", ">i4"])
@pytest.mark.parametrize("n", [0, 1, 40_000, 100_001])
def test_occurrences_are_those_of_bincount(dtype: str, n: int) -> None:
    rng = np.random.default_rng(n)
    values = (np.sort(rng.integers(0, 2 if dtype == "?" else 100 if dtype == "i1" else 5000, n))).astype(dtype)
    weights = rng.standard_normal(n).astype(np.float32)
    for heavy in (None, weights):
        found, high, negative = occurrences(values, heavy, 5000)
        expected = np.bincount(values, heavy)
        assert found is not None and not negative and high == len(found) - 1 == (len(expected) - 1 if n else -1)
        assert found.dtype == expected.dtype or not n  # NumPy counts nothing without its weights
        np.testing.assert_array_equal(found, expected)
    if n > 1 and dtype != "?":
        assert occurrences(values, None, 50) == (None, high, False)
        assert occurrences(values[::-1], None, 50) == (None, high, False)
    if n and dtype in ("i1", "i8", ">i4"):
        values[-1] = -1
        assert occurrences(values, None, 10**6)[::2] == (None, True)
        assert occurrences(values, None, 5)[::2] == (None, True)
