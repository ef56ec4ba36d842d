"""Results that lie where an operand lay that nobody needs any more."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import numpy_dist
from numpy_dist import engine
from numpy_dist.comm.simulated import run_simulated
from numpy_dist.engine.memory.storage import Storage
from numpy_dist.layout.layout import Cut, Layout
from numpy_dist.layout.mesh import Mesh
from numpy_dist.settings import config

from .tiers import compare_tiers


def _taken(function: Any, *values: np.ndarray, ranks: int = 1) -> list[int]:
    """How often memory was taken over on each rank; results must be NumPy's."""
    expected = function(*(v.copy() for v in values))
    original = Storage.take_over
    counts: dict[int, int] = {}  # by rank, while it counts

    def counted(self: Storage, other: Storage) -> None:
        rank = engine.runtime().rank
        if rank in counts:
            counts[rank] += 1
        original(self, other)

    def on_rank() -> tuple[int, list[np.ndarray]]:
        with config(MIN_SHARD_BYTES=0):
            rank = engine.runtime().rank
            ours = [numpy_dist.asarray(v, split=0) for v in values]
            engine.flush()
            counts[rank] = 0
            made = function(*ours)
            del ours
            engine.flush()
            return counts.pop(rank), [x.gather() if engine.is_handle(x) else np.asarray(x) for x in made]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Storage, "take_over", counted)  # ranks may run by turns, so one patch for all
        outcomes = run_simulated(ranks, on_rank)
    for _, results in outcomes:
        for got, want in zip(results, expected, strict=True):
            np.testing.assert_array_equal(got, want)
    return [count for count, _ in outcomes]


GRID = np.random.default_rng(1).integers(-9, 9, (12, 7)).astype(float)


def _made(x: Any) -> Any:
    """A stored array that only the caller holds."""
    made = x + 1
    engine.flush()
    return made


def test_a_result_takes_over_what_is_dropped():
    def function(x):
        p = _made(x)
        p = 3 * p + x
        return (p,)

    assert _taken(function, GRID) == [1]


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_on_each_rank(ranks):
    def function(x):
        p = _made(x)
        p = 3 * p + x
        engine.flush()
        p = p * p
        return (p,)

    assert _taken(function, GRID, ranks=ranks) == [2] * ranks


@pytest.mark.parametrize(
    "function",
    [
        lambda x: (lambda p: (p, 3 * p))(_made(x)),  # still held
        lambda x: (_made(x)[::-1] * 2,),  # other cells
        lambda x: (_made(x) > 2,),  # another dtype
        lambda x: (lambda p: (p[1:] - p[:-1],))(_made(x)),  # at two offsets
        lambda x: (lambda p: (p[1:] * 2, p[1:] + 1))(_made(x)),  # a part of it
    ],
    ids=["held", "reversed", "bool", "offsets", "part"],
)
def test_not_if(function):
    assert _taken(function, GRID) == [0]


def test_what_is_read_again_later_on():
    def function(x):
        p = _made(x)
        a = p * 2
        b = p + a
        c = p - b  # the last one that reads p may lie there
        return a, b, c

    assert _taken(function, GRID) == [1]


def test_reading_after_the_result_is_made():
    def function(x):
        p = _made(x)
        a = p * 2
        total = np.sum(p * a)
        del p
        return a, total

    (count,) = _taken(function, GRID)
    assert count == 0  # the sum reads p when a is made


def test_not_while_its_halo_travels():
    """With its margin, the part of `p` on rank 2 has just the form of the result."""
    values = np.arange(12.0).reshape(3, 4)

    def on_rank() -> np.ndarray:
        with config(MIN_SHARD_BYTES=0):
            quarters = Layout((3, 4), Mesh((2, 2)), (Cut(0, (0, 2, 3)), Cut(1, (0, 2, 4))))
            rows = Layout((3, 4), Mesh((4,)), (Cut(0, (0, 1, 2, 3, 3)),))
            p = engine.aligned(numpy_dist.asarray(values), quarters)
            engine.flush()
            p = engine.aligned(p, rows)
            engine.flush()
            return p.gather()

    for result in run_simulated(4, on_rank):
        np.testing.assert_array_equal(result, values)


@pytest.mark.host_memory
def test_what_was_handed_out_is_copied():
    def function(x):
        p = _made(x)
        seen = p.local if engine.is_handle(p) else p
        p = p * 2
        return p, seen.copy() if isinstance(seen, np.ndarray) else seen

    _taken(function, GRID)


def test_a_deferred_result_finds_its_operands():
    def function(x):
        p = _made(x)
        squares = (p - x) ** 2
        total = float(squares.sum())
        del p
        y = x * total
        return squares, y

    _taken(function, GRID)


def test_a_loop_needs_no_more_memory_than_its_arrays():
    with config(MIN_SHARD_BYTES=0):
        x = numpy_dist.asarray(np.ones((64, 64)))
        p = x * 1
        engine.flush()
        pool = engine.runtime().pool
        held = pool.peak = pool.held
        for _ in range(20):
            p = 0.5 * p + x
            engine.flush()
        assert pool.held == held
        assert pool.peak <= held + p.nbytes


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [1, 2])
def test_both_tiers_have_the_same_bits(ranks, tmp_path):
    values = np.random.default_rng(3).random((80, 50))

    def work():
        x = numpy_dist.asarray(values, split=0)
        r, p = x - 0.5, x + 0.0
        for _ in range(4):
            engine.flush()
            p = np.sqrt(np.abs(r + 0.25 * p))
            r = np.where(p > 0.3, r * p, r - p)
        return p.gather(), r.gather()

    compare_tiers(ranks, str(tmp_path), work)


def test_events_are_met_in_place(tmp_path):
    def work():
        x = numpy_dist.asarray(np.linspace(0, 4e307, 3000))
        p = x * 1
        engine.flush()
        p = p * 9.0
        engine.flush()
        return p.gather()

    compiled, plain = compare_tiers(1, str(tmp_path), work)
    assert [text for text, _, _ in compiled[0].said] == ["overflow encountered in multiply"]
    assert compiled[0].said == plain.said
