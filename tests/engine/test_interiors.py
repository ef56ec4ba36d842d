"""What needs no halos is computed while they travel, also in loops of cells and with reductions, and as one launch."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import numpy_dist
from numpy_dist import engine
from numpy_dist.comm.simulated import run_simulated
from numpy_dist.engine.executing import prepared
from numpy_dist.engine.executing.horizontal_fusion import FusedParts
from numpy_dist.engine.planning import group
from numpy_dist.engine.planning.actions import Wait
from numpy_dist.engine.scheduling import schedule
from numpy_dist.settings import config

from .test_random_programs import check
from .tiers import compare_tiers, run_tier

RANKS = pytest.mark.parametrize("ranks", [1, 2, 3, 4])


@pytest.fixture(autouse=True)
def _small_interiors(monkeypatch):
    """Interiors of any size; no plans of other tests."""
    monkeypatch.setattr(group, "SMALLEST_INTERIOR", 1)
    schedule.SCHEDULES.clear()
    yield
    schedule.SCHEDULES.clear()


def _reduced(p: Any) -> tuple:
    inner = p[1:-1, 1:-1] * 2 - p[:-2, 1:-1] - p[2:, 2:]
    return np.sum(inner), np.max(inner, axis=0), np.sum(inner * inner, axis=1, keepdims=True), np.min(inner), inner


def _in_cells(p: Any) -> tuple:
    q = 4 * p
    q[1:] -= p[:-1]
    q[:-1] -= p[1:]
    q[:, 2:] -= p[:, :-2]
    return (q,)


def _reduced_in_cells(p: Any) -> tuple:
    (q,) = _in_cells(p)
    return np.sum(p * q), np.sum(q, axis=0), np.max(q, axis=1), np.any(q > 90, axis=0), q


def _backwards(p: Any) -> tuple:
    q = p.copy()
    q[2:] = p[:-2] + p[::-1][2:]
    return np.sum(q[::-1]), q


def _in_place(p: Any) -> tuple:
    p[1:-1] = p[:-2] + p[2:]
    p[:, 1:] += p[:, :-1] * 3
    total = np.sum(p)
    p[3:] -= p[:-3]
    return total, p


PROGRAMS = (_reduced, _in_cells, _reduced_in_cells, _backwards, _in_place)


def _gathered(x: Any) -> np.ndarray:
    return x.gather() if engine.is_handle(x) else np.asarray(x)


@pytest.mark.slow
@RANKS
@pytest.mark.parametrize("split", [0, 1])
@pytest.mark.parametrize("program", PROGRAMS)
def test_integers_are_numpys(ranks, split, program):
    grid = np.random.default_rng(2).integers(-99, 99, (13, 12))
    expected = program(grid.copy())

    def work():
        with config(MIN_SHARD_BYTES=0):
            return [_gathered(x) for x in program(numpy_dist.asarray(grid, split=split))]

    for results in run_simulated(ranks, work):
        for got, want in zip(results, expected, strict=True):
            np.testing.assert_array_equal(got, want, strict=True)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ranks", "program"), [(1, _reduced_in_cells), (3, _reduced_in_cells), (2, _reduced), (2, _in_place)]
)
def test_both_tiers_have_the_same_bits(ranks, program, kernel_cache):
    grid = np.random.default_rng(3).random((61, 43))

    def work():
        with config(MIN_SHARD_BYTES=0):
            p = numpy_dist.asarray(grid)
            return [_gathered(x) for _ in range(3) for x in program(p * 1.5)]

    compiled, _ = compare_tiers(ranks, kernel_cache, work)
    assert all(outcome.counts["numba"] > 0 for outcome in compiled)


@pytest.mark.parametrize("seed", range(12))
def test_random_programs(seed):
    check(seed + 4000, seed % 4 + 1)


@pytest.mark.parametrize("program", [_reduced, _in_cells, _reduced_in_cells])
def test_the_interior_is_computed_before_halos_are_waited_for(program, monkeypatch):
    done: list[tuple[int, str]] = []
    wait, run = prepared.PERFORM[Wait], FusedParts.run

    def noting_waits(work: Any, action: Any) -> None:
        done.append((work.runtime.rank, "wait"))
        wait(work, action)

    def noting_runs(self: Any, work: Any) -> Any:
        done.extend((work.runtime.rank, "part") for _ in self.parts)
        return run(self, work)

    monkeypatch.setitem(prepared.PERFORM, Wait, noting_waits)
    monkeypatch.setattr(FusedParts, "run", noting_runs)
    grid = np.random.default_rng(2).random((24, 12))

    def work():
        with config(MIN_SHARD_BYTES=0):
            for x in program(numpy_dist.asarray(grid, split=0)):
                _gathered(x)

    run_simulated(3, work)
    for rank in range(3):
        of_rank = [what for who, what in done if who == rank]
        groups = [what for what, _ in itertools.groupby(of_rank)]
        assert groups[:3] == ["part", "wait", "part"], (rank, of_rank)


@pytest.mark.slow
def test_cells_are_one_launch(kernel_cache):
    launches: list[Any] = []
    counts: list[int] = []

    def work():
        with config(MIN_SHARD_BYTES=0):
            pool = engine.runtime().backend.pool
            run = pool.run

            def counting(*arguments: Any) -> Any:
                launches.append(arguments)
                return run(*arguments)

            pool.run = counting
            p = numpy_dist.asarray(np.random.default_rng(2).random((300, 310)))
            for _ in range(4):
                results = [_gathered(x) for x in _reduced_in_cells(p)]
                counts.append(len(launches))
                launches.clear()
            return results

    run_tier(1, "first", kernel_cache, work)
    assert counts == [9, 4, 4, 4]  # six cells, the first time one by one, and three reductions of what they made


def test_events_of_cells_are_told_with_their_statements(kernel_cache):
    values = np.full((40, 30), 1e308)
    values[0, 0] = 0.0

    def work():
        with config(MIN_SHARD_BYTES=0):
            for _ in range(3):
                p = numpy_dist.asarray(values)
                q = 1.0 * p
                q[1:] *= 10.0
                q[:, 1:] -= p[:, :-1]
                total = np.sum(q)
            return q.gather(), float(total)

    with np.errstate(all="warn"):
        compiled, plain = compare_tiers(1, kernel_cache, work)
    assert compiled[0].said == plain.said
    assert {"overflow encountered in multiply"} <= {text for text, _, _ in plain.said}


def test_scalars_that_do_not_fit(kernel_cache):
    """The second value has no float32: what it is compared with in the interpreter decides."""
    grid = np.random.default_rng(2).random((20, 30)).astype(np.float32)

    def work():
        results = []
        with config(MIN_SHARD_BYTES=0), np.errstate(all="ignore"):
            for scalar in (2.0, 3.0, 1e300, 4.0):
                q = np.float32(1) * numpy_dist.asarray(grid)
                q[1:] *= scalar
                q[:, 1:] += scalar
                results += [q.gather(), float(np.sum(q))]
        return results

    compare_tiers(1, kernel_cache, work)
