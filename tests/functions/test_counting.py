"""Counting and searching at several numbers of ranks."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import numpy_dist
from numpy_dist import engine
from numpy_dist.comm.simulated import run_simulated
from numpy_dist.dispatch.functions import sets
from numpy_dist.dispatch.patterns import replicate
from numpy_dist.layout.layout import Copies, Cut, Layout
from numpy_dist.layout.mesh import Mesh
from numpy_dist.settings import config

RANKS = pytest.mark.parametrize("ranks", [1, 2, 3, 5])
VALUES = np.random.default_rng(0).normal(size=101)
NUMBERS = np.random.default_rng(1).integers(0, 9, 101)
WEIGHTS = np.random.default_rng(2).random(101)


def _at_ranks(ranks: int, function: Any) -> None:
    def on_rank() -> None:
        with config(MIN_SHARD_BYTES=0, FALLBACK="error"):
            engine.runtime().comm.refuse_gathers = True
            made = function()
            engine.runtime().comm.refuse_gathers = False
            for found, expected in made:
                got = found.gather() if engine.is_handle(found) else np.asarray(found)
                assert got.dtype == np.asarray(expected).dtype
                np.testing.assert_allclose(got, expected, rtol=1e-13)

    run_simulated(ranks, on_rank)


@RANKS
@pytest.mark.parametrize("bins", [5, [-1.0, 0.0, 0.5, 2.0]])
@pytest.mark.parametrize("density", [None, True])
@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_histograms(ranks, bins, density, weights):
    def check() -> list:
        x, w = numpy_dist.asarray(VALUES), None if weights is None else numpy_dist.asarray(weights)
        found = np.histogram(x, bins, density=density, weights=w)
        return list(zip(found, np.histogram(VALUES, bins, density=density, weights=weights), strict=True))

    _at_ranks(ranks, check)


@RANKS
def test_numbers_are_counted(ranks):
    def check() -> list:
        x, w = numpy_dist.asarray(NUMBERS), numpy_dist.asarray(WEIGHTS)
        return [
            (np.bincount(x), np.bincount(NUMBERS)),
            (np.bincount(x, w, 20), np.bincount(NUMBERS, WEIGHTS, 20)),
            (np.bincount(x[:0]), np.bincount(NUMBERS[:0])),
            (np.bincount(x[:1], w[:1]), np.bincount(NUMBERS[:1], WEIGHTS[:1])),
        ]

    _at_ranks(ranks, check)


@RANKS
def test_copies_are_counted_once(ranks):
    def check() -> list:
        x = engine.aligned(numpy_dist.asarray(NUMBERS), Layout((101,), Mesh((ranks, 1)), (Copies(), Cut(0, (0, 101)))))
        return [(np.bincount(x), np.bincount(NUMBERS)), (np.histogram(x, 3)[0], np.histogram(NUMBERS, 3)[0])]

    _at_ranks(ranks, check)


@RANKS
def test_an_error_that_one_rank_sees_is_raised_on_all(ranks):
    def check() -> list:
        values = NUMBERS.copy()
        values[-1] = -1
        with pytest.raises(ValueError, match="negative"):
            np.bincount(numpy_dist.asarray(values))
        with pytest.raises(ValueError, match="not finite"):
            np.histogram(numpy_dist.asarray(np.where(NUMBERS == 3, np.nan, VALUES)), 4)
        with pytest.raises(ValueError, match="same length"):
            np.bincount(numpy_dist.asarray(NUMBERS), numpy_dist.asarray(WEIGHTS[1:]))
        return []

    _at_ranks(ranks, check)


@RANKS
@pytest.mark.parametrize("side", ["left", "right"])
def test_positions_in_sorted_arrays(ranks, side):
    ordered = np.sort(np.where(NUMBERS > 4, VALUES, np.round(VALUES)))
    ordered[-3:] = np.nan

    def check() -> list:
        a, v = numpy_dist.asarray(ordered), numpy_dist.asarray(VALUES)
        grid = numpy_dist.asarray(VALUES[:100].reshape(4, 25))
        return [
            (np.searchsorted(a, v, side), np.searchsorted(ordered, VALUES, side)),
            (np.searchsorted(ordered, v, side), np.searchsorted(ordered, VALUES, side)),
            (np.searchsorted(a, grid, side), np.searchsorted(ordered, VALUES[:100].reshape(4, 25), side)),
            (np.searchsorted(a, [0.0, np.nan], side), np.searchsorted(ordered, [0.0, np.nan], side)),
            (np.searchsorted(a, 0.0, side), np.searchsorted(ordered, 0.0, side)),
            (np.digitize(v, [-1.0, 0.0, 1.0], side == "right"), np.digitize(VALUES, [-1.0, 0.0, 1.0], side == "right")),
        ]

    _at_ranks(ranks, check)


@RANKS
def test_interpolation(ranks):
    points, values = np.linspace(-2, 2, 9), np.linspace(0, 1, 9) ** 2

    def check() -> list:
        x, xp, fp = map(numpy_dist.asarray, (VALUES, points, values))
        return [
            (np.interp(x, points, values, left=-1.0), np.interp(VALUES, points, values, left=-1.0)),
            (np.interp(x, xp, fp), np.interp(VALUES, points, values)),
            (np.interp(VALUES[:3], xp, fp), np.interp(VALUES[:3], points, values)),
            (np.interp(x, points, values, period=3.0), np.interp(VALUES, points, values, period=3.0)),
        ]

    _at_ranks(ranks, check)


@RANKS
def test_complex_points_lose_their_imaginary_part_once(ranks):
    points, values = np.linspace(0, 2, 9) + 0j, np.linspace(0, 1, 9)

    def told(sought) -> list[str]:
        with warnings.catch_warnings(record=True) as log:
            warnings.simplefilter("always")
            np.interp(sought, points, values, period=3.0)
        return [str(each.message) for each in log]

    def on_each_rank() -> None:
        with config(MIN_SHARD_BYTES=0):
            for sought in (VALUES, VALUES + 0j):
                assert told(numpy_dist.asarray(sought)) == told(sought)

    run_simulated(ranks, on_each_rank)


def test_few_messages():
    def on_rank() -> None:
        x = numpy_dist.asarray(np.tile(NUMBERS, 2000))
        engine.flush()
        comm = engine.runtime().comm
        comm.counters.reset()
        np.bincount(x)
        assert comm.counters.collectives == 1
        assert comm.counters.messages <= comm.size - 1

    run_simulated(4, on_rank)


@RANKS
@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.filterwarnings("ignore:invalid value")
def test_many_values_go_where_they_belong(ranks, side, monkeypatch):
    """Above a limit, values are sent to the ranks between whose elements they lie; nobody has all of them."""
    monkeypatch.setattr(replicate, "MOST_KNOWN", 100)
    ordered = np.sort(np.round(VALUES, 1))
    ordered[-3:] = np.nan
    sought = np.concatenate([VALUES, np.round(VALUES, 1), [np.nan, np.inf, -np.inf, 9.0]]).reshape(2, -1)
    few, points = np.arange(31.0), np.sort(VALUES) * 3
    heights = np.cos(points) + 1j * points

    def check() -> list:
        a, v, p, h = map(numpy_dist.asarray, (ordered, sought, points, heights))
        edges = numpy_dist.asarray(np.repeat(1.0, 40))
        return [
            (np.searchsorted(a, v, side), np.searchsorted(ordered, sought, side)),
            (np.searchsorted(edges, v, side), np.searchsorted(np.repeat(1.0, 40), sought, side)),
            (np.searchsorted(a[:0], v, side), np.searchsorted(ordered[:0], sought, side)),
            (np.searchsorted(numpy_dist.asarray(few), v, side), np.searchsorted(few, sought, side)),
            (np.isin(v, a), np.isin(sought, ordered)),
            (np.isin(few, numpy_dist.asarray(few[2:]), invert=True), np.isin(few, few[2:], invert=True)),
            (np.interp(v, p, p * 2 - 1), np.interp(sought, points, points * 2 - 1)),
            (np.interp(v, p, h, left=1j), np.interp(sought, points, heights, left=1j)),
            (np.interp(v, p[:1], h[:1], right=7), np.interp(sought, points[:1], heights[:1], right=7)),
            (np.interp(v, p, h, period=2.5), np.interp(sought, points, heights, period=2.5)),
        ]

    _at_ranks(ranks, check)


@RANKS
@pytest.mark.parametrize("most", [100, 1 << 20])
def test_isin_by_tables_and_of_records(ranks, most, monkeypatch):
    """Above a limit, what is looked for comes part after part, or is sorted; what is found does not depend on it."""
    monkeypatch.setattr(replicate, "MOST_KNOWN", most)
    sizes: list[int] = []

    def known(x: Any, *told: Any, **choice: Any) -> np.ndarray:
        sizes.append(x.nbytes if isinstance(x, numpy_dist.DistArray) else 0)
        return replicate.known(x, *told, **choice)

    monkeypatch.setattr(sets, "known", known)
    rng = np.random.default_rng(8)
    numbers, tests = rng.integers(-50, 50, (9, 7)), rng.integers(-90, 90, 60)
    large = np.array([2**63, 2**63 + 1, 5, 2**64 - 1] * 10, np.uint64)
    records = np.rec.fromarrays([rng.integers(0, 5, 80), rng.integers(0, 3, 80)])
    wide = np.array([-(2**62), 2**62, 7] * 20)

    def check() -> list:
        x, t, r = numpy_dist.asarray(numbers), numpy_dist.asarray(tests), numpy_dist.asarray(records)
        with pytest.raises(RuntimeError, match="range of values"):
            np.isin(x, numpy_dist.asarray(np.append(wide, 2**63 - 1)), kind="table")
        with pytest.raises(ValueError, match="only supported for boolean or integer"):
            np.isin(x, t * 1.0, kind="table")
        return [
            (np.isin(x, t, kind="table"), np.isin(numbers, tests, kind="table")),
            (np.isin(x, t, invert=True, kind="table"), np.isin(numbers, tests, invert=True, kind="table")),
            (np.isin(numbers, t, kind="table"), np.isin(numbers, tests, kind="table")),
            (np.isin(x > 0, t > 0, kind="table"), np.isin(numbers > 0, tests > 0, kind="table")),
            (np.isin(numpy_dist.asarray(large), t, kind="table"), np.isin(large, tests, kind="table")),
            (np.isin(x, t[:0], kind="table"), np.isin(numbers, tests[:0], kind="table")),
            (np.isin(r[:31], r[25:]), np.isin(records[:31], records[25:])),
            (np.isin(r[:31], r[25:], invert=True), np.isin(records[:31], records[25:], invert=True)),
        ]

    _at_ranks(ranks, check)
    assert sizes and max(sizes) <= most


@pytest.mark.parametrize("ranks", [1, 3, 7])
def test_what_cannot_be_compared_is_an_error_on_every_rank(ranks):
    """Also on those without elements."""
    days = np.array(["2020-01-01", "2020-01-03"], "M8[D]")

    def on_rank() -> list[str]:
        said = []
        with config(MIN_SHARD_BYTES=0):
            x = numpy_dist.asarray(days)
            for call in (
                lambda: np.digitize(x, [0, 2, 3]),
                lambda: np.searchsorted([0, 2, 3], x),
                lambda: np.searchsorted(x, [1.5]),
            ):
                with pytest.raises(TypeError, match="not supported between") as caught:
                    call()
                said.append(str(caught.value))
        return said

    with pytest.raises(TypeError) as expected:
        np.digitize(days, [0, 2, 3])
    assert {said[0] for said in run_simulated(ranks, on_rank)} == {str(expected.value)}


def test_how_many_messages_and_bytes_go_around(monkeypatch):
    monkeypatch.setattr(replicate, "MOST_KNOWN", 100)

    def on_rank() -> None:
        ordered, sought = numpy_dist.asarray(np.arange(4e4)), numpy_dist.asarray(np.linspace(-9, 5e4, 40_000))
        engine.flush()
        comm = engine.runtime().comm
        comm.counters.reset()
        np.searchsorted(ordered, sought)
        assert comm.counters.collectives == 2
        assert comm.counters.messages <= 2 * (comm.size - 1)
        assert comm.counters.bytes < 2 * sought.nbytes / comm.size + 2000

    run_simulated(4, on_rank)


@RANKS
def test_many_more_counts_than_elements(ranks):
    few = NUMBERS * 40_000

    def check() -> list:
        x, w = numpy_dist.asarray(few), numpy_dist.asarray(WEIGHTS)
        counts = np.bincount(x)
        assert ranks == 1 or counts.local.size < counts.size
        return [(counts, np.bincount(few)), (np.bincount(x, w, 400_000), np.bincount(few, WEIGHTS, 400_000))]

    _at_ranks(ranks, check)


@pytest.mark.parametrize("ranks", [2, 3])
def test_what_cannot_be_compared_is_an_error_on_ranks_without_elements_too(ranks):
    def work():
        with numpy_dist.config(MIN_SHARD_BYTES=0):
            times = numpy_dist.asarray(np.arange(1).astype("m8[ms]"), split=0)
            with pytest.raises(TypeError, match="not supported between"):
                np.searchsorted(times, 3.0)
            assert np.searchsorted(times[:0], 3.0) == 0 and np.searchsorted(times, np.zeros(0)).shape == (0,)

    run_simulated(ranks, work)
