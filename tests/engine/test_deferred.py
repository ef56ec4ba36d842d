"""What a forced reduction reads need not be stored, and is there when it is wanted all the same."""

from __future__ import annotations

import gc
import warnings
from typing import Any

import numpy as np
import pytest

import numpy_dist
from numpy_dist import engine
from numpy_dist.comm.simulated import run_simulated
from numpy_dist.settings import config

RANKS = pytest.mark.parametrize("ranks", [1, 2, 3])


def _on_ranks(ranks: int, function: Any) -> list:
    with config(MIN_SHARD_BYTES=0):
        return run_simulated(ranks, function)


def _arrays() -> tuple[Any, Any]:
    values = np.arange(60.0).reshape(10, 6)
    return numpy_dist.asarray(values), numpy_dist.asarray(values[::-1] + 0.5)


@RANKS
def test_what_is_on_the_stack_is_not_stored(ranks: int) -> None:
    def on_rank() -> None:
        x, y = _arrays()
        counters = engine.runtime().counters
        engine.flush()
        counters.reset()
        total = ((x - y) ** 2).sum()
        assert (counters.loops, counters.writes, counters.contracted) == (1, 0, 2)
        assert float(total) == float(((x.gather() - y.gather()) ** 2).sum())
        engine.flush()
        assert counters.loops == 1

    _on_ranks(ranks, on_rank)


@RANKS
def test_what_is_kept_is_computed_when_it_is_wanted(ranks: int) -> None:
    def on_rank() -> None:
        x, y = _arrays()
        a, b = x.gather(), y.gather()
        difference = x - y
        square = difference * difference
        del difference
        assert float(square.sum()) == ((a - b) ** 2).sum()
        x[:] = 0  # what was read must be read before this
        y += 1
        assert np.array_equal(square.gather(), (a - b) ** 2)
        assert np.array_equal(x.gather(), np.zeros_like(a)) and np.array_equal(y.gather(), b + 1)

    _on_ranks(ranks, on_rank)


@pytest.mark.slow
@RANKS
def test_a_pending_statement_wants_it_when_no_handle_does(ranks: int) -> None:
    def on_rank() -> None:
        x, y = _arrays()
        square = x * y
        total = square.sum()
        more = square[1:] + 1
        del square
        gc.collect()
        assert np.array_equal(more.gather(), (x.gather() * y.gather())[1:] + 1) and total > 0

    _on_ranks(ranks, on_rank)


@RANKS
def test_a_view_of_it_is_written(ranks: int) -> None:
    def on_rank() -> None:
        x, y = _arrays()
        expected = x.gather() + y.gather()
        made = x + y
        part = made[2:5]
        assert float(made.max()) == expected.max()
        del made
        part *= 2
        assert np.array_equal(part.gather(), 2 * expected[2:5])

    _on_ranks(ranks, on_rank)


@RANKS
def test_memory_of_what_it_reads_is_not_donated(ranks: int) -> None:
    def on_rank() -> None:
        x, y = _arrays()
        more = x + 1
        expected = more.gather() - y.gather()
        difference = more - y
        twice = more * 2
        del more
        assert float(difference.sum()) == expected.sum()
        assert np.array_equal(difference.gather(), expected)
        assert np.array_equal(twice.gather(), 2 * (x.gather() + 1))

    _on_ranks(ranks, on_rank)


@RANKS
def test_what_it_reads_is_let_go_before_an_array_comes_in(ranks: int) -> None:
    def on_rank() -> None:
        x, y = _arrays()
        pool, kept = engine.runtime().pool, y + 1
        more, expected = x + 1, (x.gather() + 1) * y.gather()
        engine.flush()
        before = pool.held
        assert float((more * y).sum()) == expected.sum()
        product = more * kept
        wanted = float(product.sum())
        part = more._storage.memory.size
        del more
        assert pool.held == before  # the product may still be wanted
        new = numpy_dist.asarray(x.gather())
        assert pool.held == before + new._storage.memory.size  # so it may now
        assert float(product.gather().sum()) == wanted
        square = kept * kept
        assert float(square.sum()) > 0
        del product, square
        before = pool.held
        del kept
        assert pool.held == before
        other = numpy_dist.asarray(y.gather())
        assert pool.held == before + other._storage.memory.size - part

    _on_ranks(ranks, on_rank)


@RANKS
def test_a_call_site_learns(ranks: int) -> None:
    """Where the result was wanted once it is stored at once: no loop is run twice."""

    def on_rank() -> list[int]:
        x, y = _arrays()
        counters, loops = engine.runtime().counters, []
        for _ in range(4):
            counters.reset()
            kept = x * y
            kept.sum()
            y = kept * 0.5
            y.sum()
            loops.append(counters.loops)
        return loops

    for loops in _on_ranks(ranks, on_rank):
        assert loops[0] > loops[-1] == 2


def test_an_event_is_told_once() -> None:
    def on_rank() -> int:
        x, _ = _arrays()
        with warnings.catch_warnings(record=True) as told, engine.lazily_recorded():
            warnings.simplefilter("always")
            quotient = x / x
            quotient.sum()
            quotient.gather()
        return len([w for w in told if "divide" in str(w.message)])

    assert _on_ranks(1, on_rank) == [1]


@RANKS
def test_shifted_operands_are_not_deferred(ranks: int) -> None:
    """Others would have to send them once more."""

    def on_rank() -> None:
        x, _ = _arrays()
        values = x.gather()
        made = x[1:] - x[:-1]
        assert float(made.sum()) == (values[1:] - values[:-1]).sum()
        assert np.array_equal(made.gather(), values[1:] - values[:-1])

    _on_ranks(ranks, on_rank)


@RANKS
def test_memory_that_was_handed_out_is_read_before(ranks: int) -> None:
    def on_rank() -> None:
        x, _ = _arrays()
        values = x.gather()
        twice = x * 2
        assert float(twice.sum()) == (2 * values).sum()
        x.local[...] = 0
        assert np.array_equal(twice.gather(), 2 * values)

    _on_ranks(ranks, on_rank)


@pytest.mark.parametrize("ranks", [2, 3])
def test_ranks_that_hold_different_things_send_alike(ranks: int) -> None:
    """What is deferred depends on the rank; layouts, groups and messages do not."""

    def on_rank() -> list:
        x, y = _arrays()
        a, b = x.gather(), y.gather()
        held, runtime = [], engine.runtime()
        for step in range(6):
            new = 0.25 * (x[:-2] + x[2:]) + y[1:-1]
            change = new - x[1:-1]
            total = float((change * change).sum())
            if runtime.rank == step % runtime.size:
                held.append(change)  # on one rank only
            x[1:-1] = new
            old = a[1:-1].copy()
            a[1:-1] = 0.25 * (a[:-2] + a[2:]) + b[1:-1]
            assert np.isclose(total, ((a[1:-1] - old) ** 2).sum())
        del new, change
        assert np.allclose(x.gather(), a)
        counters = runtime.comm.counters
        return [str(x.layout), runtime.counters.halos, runtime.counters.fetches, counters.collectives]

    found = _on_ranks(ranks, on_rank)
    assert all(what == found[0] for what in found)
