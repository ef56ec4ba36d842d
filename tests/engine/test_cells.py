"""Statements on parts of an array share the loop of the whole: its space is divided into cells."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import numpy_dist
from numpy_dist import engine
from numpy_dist.comm.simulated import run_simulated
from numpy_dist.settings import config

from .tiers import compare_tiers

RANKS = pytest.mark.parametrize("ranks", [1, 2, 3, 4])


def _minus_laplacian(p: Any) -> Any:
    out = 4.0 * p
    out[1:] -= p[:-1]
    out[:-1] -= p[1:]
    out[:, 1:] -= p[:, :-1]
    out[:, :-1] -= p[:, 1:]
    return out


def _values(*shape: int) -> np.ndarray:
    return np.random.default_rng(5).random(shape)


def _count(function: Any, *arrays: np.ndarray) -> tuple[Any, Any]:
    """What a function returns, gathered, and what the engine counts meanwhile."""
    with config(MIN_SHARD_BYTES=0):
        ours = [numpy_dist.asarray(x, split=0) for x in arrays]
        engine.flush()
        engine.counters().reset()
        made = function(*ours)
        engine.flush()
        counts = copy.copy(engine.counters())
        return tuple(x.gather() if engine.is_handle(x) else np.asarray(x) for x in made), counts


def _check(ranks: int, function: Any, *arrays: np.ndarray) -> list[Any]:
    expected = function(*(x.copy() for x in arrays))
    outcomes = run_simulated(ranks, _count, function, *arrays)
    for results, _ in outcomes:
        for got, want in zip(results, expected, strict=True):
            np.testing.assert_array_equal(got, want)
    return [counts for _, counts in outcomes]


@RANKS
def test_a_laplacian_by_slices_is_one_loop(ranks):
    for counts in _check(ranks, lambda p: (_minus_laplacian(p),), _values(12, 9)):
        assert (counts.loops, counts.reads, counts.writes) == (1, 1, 1)
        assert counts.halos == (ranks > 1)


@pytest.mark.slow
@RANKS
def test_in_a_loop_that_makes_what_it_reads(ranks):
    def steps(p):
        for _ in range(12):
            p = 0.1 * _minus_laplacian(p) + p
        return (p,)

    for counts in _check(ranks, steps, _values(12, 9)):
        assert counts.loops <= 13
        assert counts.stored_temporaries <= 12  # a step's result, which the next one reads at other offsets


@RANKS
def test_integers_are_reduced_over_all_cells(ranks):
    def sums(p):
        q = _minus_laplacian(p)
        return np.sum(q), np.sum(q, axis=0), np.max(q, axis=1), q

    def integers(p):
        q = 4 * p
        q[1:-1] -= p[:-2]
        q[:, 2:] += p[:, 1:-1]
        return np.sum(q, axis=0), np.max(q, axis=1, keepdims=True), np.sum(q), q

    grid = np.random.default_rng(2).integers(-99, 99, (11, 7))
    _check(ranks, sums, grid.astype(float).round())
    _check(ranks, integers, grid)


@RANKS
def test_what_was_there_before_is_kept_and_versions_are_made(ranks):
    def smear(p):
        p += 1
        p[1:] += p[:-1] * 2  # reads what is written, at another offset
        p[:, 1:-1] *= 3
        q = p + 0
        q[2:5, 1:] = p[1:4, :-1]
        q[q > 3] = 0
        q[1:] += 1
        return p, q

    _check(ranks, smear, _values(9, 8))


@RANKS
def test_boundaries_of_a_copy(ranks):
    def step(u):
        new = u.copy()
        new[1:-1, 1:-1] = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])
        new[0:2] = new[1:3] * 0.5
        return (new,)

    _check(ranks, step, _values(10, 6))


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [1, 3])
def test_both_tiers_have_the_same_bits(ranks, tmp_path):
    values = _values(70, 45)

    def work():
        p = numpy_dist.asarray(values, split=0)
        q = _minus_laplacian(p)
        total, rows = np.sum(p * q), np.sum(q, axis=1)
        for _ in range(3):
            q = _minus_laplacian(q + p)
        return q.gather(), float(total), rows.gather()

    compiled, _ = compare_tiers(ranks, str(tmp_path), work)
    assert all(outcome.counts["numba"] > 0 for outcome in compiled)


def test_events_are_told_with_the_statement_that_met_them(tmp_path):
    values = np.full((40, 30), 1e308)

    def work():
        q = 1.0 * numpy_dist.asarray(values, split=0)
        q[1:] *= 10.0
        q[:, 1:] += 1.0
        return q.gather()

    compiled, plain = compare_tiers(1, str(tmp_path), work)
    assert [text for text, _, _ in compiled[0].said] == ["overflow encountered in multiply"]
    assert compiled[0].said == plain.said


def test_a_few_cells_only():
    def many(p):
        q = p + 1
        for width in range(1, 9):
            q[width:] -= p[:-width]
        return (q,)

    (counts,) = _check(1, many, _values(40))
    assert counts.loops == 1  # one axis: nine cells

    def in_three_axes(p):
        q = p + 1
        for width in range(1, 5):
            q[width:, width:, width:] -= p[:-width, :-width, :-width]
        return (q,)

    (counts,) = _check(1, in_three_axes, _values(9, 9, 9))
    assert counts.loops == 2  # 27 cells at most: the first two fit in there, the others open another loop
