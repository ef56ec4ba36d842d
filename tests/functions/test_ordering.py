"""Sorting, and sets, at several numbers of ranks."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import numpy_dist
from numpy_dist import engine
from numpy_dist.comm.simulated import run_simulated
from numpy_dist.layout.layout import Cut, Layout
from numpy_dist.layout.mesh import Mesh
from numpy_dist.parallel import division, sample_sort, selection
from numpy_dist.settings import config

RANKS = pytest.mark.parametrize("ranks", [1, 2, 3, 4, 7])
SIZES = (0, 1, 2, 7, 100, 1001)


def _arrays(n: int) -> list[np.ndarray]:
    rng = np.random.default_rng(n)
    return [
        rng.normal(size=n),
        rng.integers(0, 3, n),
        np.zeros(n),
        np.arange(n)[::-1].copy(),
        np.exp(9 * rng.random(n)),  # skewed
        np.where(rng.random(n) < 0.3, np.nan, rng.normal(size=n)),
        rng.integers(0, 9, n) + 1j * rng.integers(0, 3, n),
        rng.integers(0, 99, n).astype("U3"),
        rng.integers(0, 9, n).astype("M8[s]"),
    ]


def _same(found: Any, expected: Any) -> None:
    found, expected = (x if isinstance(x, tuple) else (x,) for x in (found, expected))
    for got, want in zip(found, expected, strict=True):
        values = got.gather() if engine.is_handle(got) else np.asarray(got)
        assert values.dtype == want.dtype and values.shape == want.shape
        np.testing.assert_array_equal(values, want)


def _at_ranks(ranks: int, function: Any) -> None:
    def on_rank() -> None:
        with config(MIN_SHARD_BYTES=0, FALLBACK="error"):
            function()

    run_simulated(ranks, on_rank)


@RANKS
@pytest.mark.parametrize("n", SIZES)
def test_a_single_axis(ranks, n):
    def check() -> None:
        for values in _arrays(n):
            x = numpy_dist.asarray(values)
            made = np.sort(x)
            _same(made, np.sort(values))
            _same(np.argsort(x, kind="stable"), np.argsort(values, kind="stable"))
            if engine.is_sharded(made):
                layout = engine.layout_of(made)
                held = max(q - p for p, q in pairwise(layout.dims[0].points))
                assert held <= 9 * n / (8 * layout.size) + 2

    _at_ranks(ranks, check)


@RANKS
@pytest.mark.parametrize("compared", [0, 8])
def test_shares_where_samples_mislead(ranks, compared, monkeypatch):
    """Exact splitters are selected, also between equal elements; splitters are compared with, or searched."""
    for name, value in {"SAMPLES": 4, "EACH": 1, "MOST_COMPARED": compared}.items():
        monkeypatch.setattr(sample_sort, name, value)
    monkeypatch.setattr(selection, "FEW", 20)
    monkeypatch.setattr(division, "ELEMENTS", 16)

    def check() -> None:
        for values in _arrays(1001):
            x = numpy_dist.asarray(values)
            made, places = np.sort(x, kind="stable"), np.argsort(x, kind="stable")
            _same(made, np.sort(values, kind="stable"))
            _same(places, np.argsort(values, kind="stable"))
            if values.dtype.kind in "biufmM":
                held = max(q - p for p, q in pairwise(engine.layout_of(made).dims[0].points))
                assert held <= 9 * 1001 / (8 * ranks) + 1

    _at_ranks(ranks, check)


@RANKS
def test_signs_of_zeros_and_bits_of_nan(ranks):
    """What compares equal, or not at all, keeps its order in a stable sort."""
    values = np.tile([0.0, -0.0, np.nan, -np.nan, 1.0], 60)
    bits = values.view(np.uint64).copy()
    bits[2::5] += np.arange(60, dtype=np.uint64)  # other payloads
    values = bits.view(np.float64)

    def check() -> None:
        x = numpy_dist.asarray(values)
        expected = np.sort(values, kind="stable").view(np.uint64)
        for options in ({"kind": "stable"}, {"stable": True}):
            np.testing.assert_array_equal(np.sort(x, **options).gather().view(np.uint64), expected)
        _same(np.argsort(x, kind="stable"), np.argsort(values, kind="stable"))

    _at_ranks(ranks, check)


@RANKS
def test_uneven_and_empty_shards(ranks):
    values = np.random.default_rng(3).integers(0, 50, 97)
    points = (0, *[90] * (ranks - 1), 97)

    def check() -> None:
        x = engine.aligned(numpy_dist.asarray(values), Layout((97,), Mesh((ranks,)), (Cut(0, points),)))
        _same(np.sort(x), np.sort(values))
        _same(np.argsort(x[::-1], stable=True), np.argsort(values[::-1], stable=True))

    _at_ranks(ranks, check)


@RANKS
@pytest.mark.parametrize("axis", [0, 1, -1, None])
def test_along_an_axis(ranks, axis):
    values = np.random.default_rng(4).normal(size=(6, 5))

    def check() -> None:
        for split in (0, 1):
            x = numpy_dist.asarray(values, split=split)
            _same(np.sort(x, axis=axis), np.sort(values, axis=axis))
            _same(np.argsort(x, axis=axis), np.argsort(values, axis=axis))

    _at_ranks(ranks, check)


@RANKS
def test_in_place(ranks):
    values = np.random.default_rng(5).normal(size=(6, 5))

    def check() -> None:
        x, row = numpy_dist.asarray(values), numpy_dist.asarray(values[0])
        x.sort(axis=0)
        row.sort()
        _same(x, np.sort(values, axis=0))
        _same(row, np.sort(values[0]))

    _at_ranks(ranks, check)


@pytest.mark.slow
@RANKS
@pytest.mark.parametrize("n", (0, 1, 2, 7, 100))
def test_different_values(ranks, n):
    def check() -> None:
        for values in _arrays(n):
            x = numpy_dist.asarray(values)
            _same(np.unique(x), np.unique(values))
            _same(np.unique(x, True, True, True), np.unique(values, True, True, True))
            _same(np.unique(x, equal_nan=False), np.unique(values, equal_nan=False))

    _at_ranks(ranks, check)


@RANKS
def test_sets(ranks):
    first = np.random.default_rng(6).integers(0, 30, 50)
    second = np.random.default_rng(7).integers(10, 50, 40)

    def check() -> None:
        x, y = numpy_dist.asarray(first), numpy_dist.asarray(second)
        for function in (np.intersect1d, np.union1d, np.setdiff1d, np.setxor1d, np.isin):
            _same(function(x, y), function(first, second))
        _same(np.isin(x, [3, 4], invert=True), np.isin(first, [3, 4], invert=True))

    _at_ranks(ranks, check)


def test_messages_between_any_two_ranks():
    def on_rank() -> None:
        x = numpy_dist.asarray(np.random.default_rng(8).random(50_000))
        engine.flush()
        comm = engine.runtime().comm
        comm.counters.reset()
        np.sort(x)
        assert comm.counters.collectives == 3  # lengths, samples and counts
        assert comm.counters.messages <= comm.size - 1
        assert comm.counters.bytes <= x.nbytes / comm.size + 8 * sample_sort.SAMPLES / comm.size + 1000

    run_simulated(4, on_rank)
