"""Medians and quantiles at several numbers of ranks: NumPy's bits, by all of its methods."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.lib import _function_base_impl

import numpy_dist
from numpy_dist import engine
from numpy_dist.comm.simulated import run_simulated
from numpy_dist.parallel import selection
from numpy_dist.settings import config

RANKS = pytest.mark.parametrize("ranks", [1, 2, 3, 5])
METHODS = sorted(_function_base_impl._QuantileMethods)


@pytest.fixture(autouse=True)
def small_steps(monkeypatch):
    """What is gathered at last is so small that shards of some hundred elements are searched."""
    monkeypatch.setattr(selection, "FEW", 20)
    monkeypatch.setattr(selection, "SAMPLES", 8)
    monkeypatch.setattr(selection, "LEAST", 2)


def _same(found: Any, expected: Any) -> None:
    got = found.gather() if engine.is_handle(found) else found
    assert type(got) is type(expected)
    assert np.asarray(got).dtype == np.asarray(expected).dtype
    np.testing.assert_array_equal(got, expected, strict=True)


def _at_ranks(ranks: int, function: Any) -> None:
    def on_rank() -> None:
        with config(MIN_SHARD_BYTES=0, FALLBACK="error"):
            function()

    run_simulated(ranks, on_rank)


def _arrays(n: int) -> list[np.ndarray]:
    rng = np.random.default_rng(n)
    return [
        rng.normal(size=n),
        rng.integers(0, 9, n),
        np.zeros(n),
        rng.random(n).astype("f4"),
        np.exp(20 * rng.random(n)),
        np.arange(n) % 7 * 1.0,  # in step with a regular sample
    ]


@RANKS
@pytest.mark.parametrize("n", [1, 2, 7, 100, 1001])
def test_of_all_elements(ranks, n):
    def check() -> None:
        for values in _arrays(n):
            x = numpy_dist.asarray(values)
            _same(np.median(x), np.median(values))
            _same(np.median(x > 3), np.median(values > 3))
            for method in METHODS:
                _same(np.quantile(x, 0.3, method=method), np.quantile(values, 0.3, method=method))
                tails = [0, 25, 99.5, 100]
                _same(np.percentile(x, tails, method=method), np.percentile(values, tails, method=method))

    _at_ranks(ranks, check)


@RANKS
def test_not_a_number(ranks):
    values = np.random.default_rng(3).normal(size=101)
    values[50] = np.nan

    def check() -> None:
        x = numpy_dist.asarray(values)
        _same(np.median(x), np.median(values))
        _same(np.quantile(x, [0.1, 0.2]), np.quantile(values, [0.1, 0.2]))

    _at_ranks(ranks, check)


@RANKS
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axis", [0, 1, None, -1, (0, 1), (1,)])
def test_along_axes(ranks, axis, keepdims):
    values = np.random.default_rng(4).normal(size=(6, 5))

    def check() -> None:
        for split in (0, 1):
            x = numpy_dist.asarray(values, split=split)
            options = {"axis": axis, "keepdims": keepdims}
            _same(np.median(x, **options), np.median(values, **options))
            _same(np.percentile(x, [3, 50], **options), np.percentile(values, [3, 50], **options))
            _same(np.quantile(x, 0.3, **options), np.quantile(values, 0.3, **options))

    _at_ranks(ranks, check)


@RANKS
def test_partitions(ranks):
    values = np.random.default_rng(5).permutation(60).reshape(6, 10)

    def check() -> None:
        x = numpy_dist.asarray(values)
        _same(np.partition(x, 4)[:, 4], np.sort(values)[:, 4])
        _same(np.argpartition(x, 4)[:, 4], np.argsort(values)[:, 4])
        with pytest.raises(ValueError, match="out of bounds"):
            np.partition(x, 10)

    _at_ranks(ranks, check)


def test_a_view_that_is_cut_along_two_axes():
    values = np.random.default_rng(6).random((12, 12))

    def check() -> None:
        x = engine.aligned(numpy_dist.asarray(values), engine.default_layout((12, 12)))
        _same(np.median(np.diagonal(x)), np.median(np.diagonal(values)))

    _at_ranks(4, check)


def test_little_is_sent():
    def on_rank() -> None:
        x = numpy_dist.asarray(np.random.default_rng(8).random(200_000))
        engine.flush()
        comm = engine.runtime().comm
        comm.counters.reset()
        np.median(x)
        assert comm.counters.bytes < x.nbytes / 50

    run_simulated(4, on_rank)


@RANKS
def test_many_places_at_once(ranks, monkeypatch):
    """More of them than elements are compared with at a time; and no more rounds than for one."""
    values = np.random.default_rng(4).normal(size=3000)
    values[::7] = 0.25
    places = [*range(0, 3000, 31), 2999]

    def check() -> None:
        x = numpy_dist.asarray(values)
        comm = engine.runtime().comm
        before = comm.counters.collectives
        one = selection.select(engine.local(x), [1500], comm)
        single = comm.counters.collectives - before
        found = selection.select(engine.local(x), places, comm)
        np.testing.assert_array_equal(found, np.sort(values)[places])
        assert one == np.sort(values)[1500]
        assert comm.counters.collectives - before - single <= 4 * single

    _at_ranks(ranks, check)
