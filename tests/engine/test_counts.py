"""Nothing is lazy in name only: loops, reads, writes and stored temporaries are counted."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import numpy_dist
from numpy_dist import engine

pytestmark = pytest.mark.spmd


@pytest.fixture
def counters():
    engine.flush()
    engine.counters().reset()
    return engine.counters()


def _grid(n: int = 40) -> np.ndarray:
    return np.random.default_rng(3).random((n, n))


def _stencil(grid: Any) -> None:
    center = grid[1:-1, 1:-1]
    average = center + grid[:-2, 1:-1] + grid[2:, 1:-1] + grid[1:-1, :-2] + grid[1:-1, 2:]
    center[:] = 0.2 * average


def test_the_stencil_is_one_loop_one_read_and_one_write(counters):
    values = _grid()
    x = numpy_dist.asarray(values, split=0)
    engine.flush()
    counters.reset()
    comm = engine.runtime().comm
    comm.counters.reset()
    steps = 7
    for _ in range(steps):
        _stencil(x)
        _stencil(values)
    engine.flush()
    assert (counters.loops, counters.reads, counters.writes) == (steps, steps, steps)
    assert counters.stored_temporaries == 0
    assert counters.fetches == counters.gathers == 0
    neighbours = (engine.runtime().rank > 0) + (engine.runtime().rank < engine.runtime().size - 1)
    assert comm.counters.messages == steps * neighbours
    assert np.array_equal(x.gather(), values)


def test_temporaries_that_nobody_holds_are_not_stored(counters):
    x = numpy_dist.asarray(_grid())
    y = np.sqrt(np.abs(np.sin(x) * 2 + np.cos(x))) - 1
    engine.flush()
    assert counters.loops == 1
    assert counters.reads == 1
    assert counters.writes == 1
    assert counters.contracted == 6
    assert y.shape == x.shape


def test_what_is_held_is_stored(counters):
    x = numpy_dist.asarray(_grid())
    doubled = x * 2
    y = doubled + 1
    engine.flush()
    assert (counters.loops, counters.writes, counters.contracted) == (1, 2, 0)
    assert np.array_equal(doubled.gather() + 1, y.gather())


def test_element_wise_work_fuses_into_a_reduction(counters):
    x = numpy_dist.asarray(_grid())
    total = np.add.reduce(np.square(x - 0.5), axis=0)
    engine.flush()
    assert counters.loops == 1
    np.testing.assert_allclose(total.gather(), np.square(_grid() - 0.5).sum(axis=0))


def test_disjoint_cells_need_no_version(counters):
    x = numpy_dist.asarray(_grid())
    x[:1] = x[1:2]
    x[:, 1::2] += x[:, ::2]
    x[:-1:3, :4] = x[2::3, :4]
    engine.flush()
    assert counters.versions == 0
    expected = _grid()
    expected[:1] = expected[1:2]
    expected[:, 1::2] += expected[:, ::2]
    expected[:-1:3, :4] = expected[2::3, :4]
    assert np.array_equal(x.gather(), expected)


def test_cells_that_are_not_covered_are_carried_over_once(counters):
    values = _grid()
    x = numpy_dist.asarray(values)
    for _ in range(5):
        _stencil(x)
    engine.flush()
    assert (counters.versions, counters.carried) == (5, 1)


def test_fresh_halos_are_not_exchanged_again(counters):
    x = numpy_dist.asarray(_grid(), split=0)
    first = x[1:] - x[:-1]
    engine.flush()
    halos = counters.halos
    second = x[1:] * x[:-1]
    engine.flush()
    assert counters.halos == halos <= 1
    del first, second


def _random_chain(rng: random.Random, x: Any, y: Any) -> tuple[Any, int, int]:
    """Random element-wise statements on two arrays; returns what is held, how many inputs and how many statements."""
    values, used, statements = [x, y], set(), 0
    for _ in range(rng.randint(3, 30)):
        ufunc = rng.choice([np.add, np.subtract, np.multiply, np.maximum])
        a, b = rng.randrange(len(values)), rng.randrange(len(values))
        used |= {a, b} & {0, 1}
        values.append(ufunc(values[a], values[b]))
        statements += 1
    keep = rng.sample(range(2, len(values)), rng.randint(1, 3))
    return {i: values[i] for i in keep}, len(used), statements


@pytest.mark.parametrize("seed", range(25))
def test_random_programs_take_one_pass(counters, seed):
    """One iteration space: the bound is one loop, one read of each input, one write of each held result."""
    rng = random.Random(seed)
    start = [_grid(), _grid() + 1]
    x, y = map(numpy_dist.asarray, start)
    held, inputs, statements = _random_chain(rng, x, y)
    engine.flush()
    assert counters.statements == statements
    assert counters.loops == 1
    assert counters.reads == inputs
    assert counters.writes == len(held)
    assert counters.contracted == statements - len(held)
    expected, *_ = _random_chain(random.Random(seed), *start)
    for number, value in held.items():
        assert np.array_equal(value.gather(), expected[number])


def test_the_program_is_bounded(counters):
    x = numpy_dist.asarray(np.zeros(100))
    for _ in range(3000):
        x += 1
    assert counters.statements == 3000
    assert counters.loops >= 3000 // 256
    assert len(engine.runtime().program._pending) < 256
    assert np.array_equal(x.gather(), np.full(100, 3000.0))


def test_steps_take_no_more_memory():
    x = numpy_dist.asarray(np.random.default_rng(0).random((200, 100)), split=0)
    pool = engine.runtime().pool
    for _ in range(300):
        _stencil(x)
    engine.flush()
    held = pool.held
    peak = pool.peak
    for _ in range(300):
        _stencil(x)
    engine.flush()
    assert pool.held == held
    assert pool.peak == peak


def test_results_are_computed_where_they_are_used(counters):
    """The layout of `north` is one row off that of `center`: still one loop, and the grid is all that is exchanged."""
    values = _grid()
    x = numpy_dist.asarray(values, split=0)
    engine.flush()
    counters.reset()
    for grid in (x, values):
        for _ in range(4):
            center = grid[1:-1, 1:-1]
            flow = grid[:-2, 1:-1] + grid[2:, 1:-1] - 2 * center
            center[:] = center + 0.25 * flow
    engine.flush()
    assert (counters.loops, counters.reads, counters.stored_temporaries) == (4, 4, 0)
    assert counters.halos <= 4
    assert np.array_equal(x.gather(), values)
    assert np.array_equal(flow, values[:-2, 1:-1] * 0 + flow)


def test_a_layout_that_was_asked_for_stays():
    x = numpy_dist.asarray(_grid(), split=0)
    flow = x[:-2, 1:-1] + x[2:, 1:-1]
    layout = flow.layout
    x[1:-1, 1:-1] = flow
    engine.flush()
    assert flow.layout == layout
