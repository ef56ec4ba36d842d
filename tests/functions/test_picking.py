"""Indexing by arrays of integers at several numbers of ranks."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import numpy_dist
from numpy_dist import engine
from numpy_dist.comm.simulated import run_simulated
from numpy_dist.settings import config

RANKS = pytest.mark.parametrize("ranks", [1, 2, 3, 5])
VALUES = np.random.default_rng(0).normal(size=(7, 5, 4))
ROWS, PAIR, COLUMNS = np.array([3, -1, 0, 3]), np.array([[1], [2]]), np.array([0, 1, 2, 3])
S = np.s_
KEYS = [
    S[ROWS],
    S[:, ROWS],
    S[..., COLUMNS],
    S[ROWS, COLUMNS],
    S[PAIR, COLUMNS],
    S[ROWS, :, COLUMNS],
    S[:, COLUMNS, COLUMNS],
    S[1, :, COLUMNS],
    S[ROWS, 1:3],
    S[::-1, COLUMNS],
    S[None, ROWS],
    S[ROWS, None, COLUMNS],
    S[:, PAIR, None, COLUMNS],
    S[[0, 2]],
    S[np.array([], int)],
    S[ROWS, 2, 1],
    S[2, ROWS],
    S[np.zeros((2, 0), int), 1],
]


def _same(found: Any, expected: Any) -> None:
    got = found.gather() if engine.is_handle(found) else found
    np.testing.assert_array_equal(got, expected)
    assert got.dtype == expected.dtype and got.shape == expected.shape


def _ours(key: Any) -> Any:
    """The same index with arrays of ours."""
    if isinstance(key, tuple):
        return tuple(map(_ours, key))
    return numpy_dist.asarray(key) if isinstance(key, np.ndarray) and key.ndim else key


def _at_ranks(ranks: int, function: Any) -> None:
    def on_rank() -> None:
        with config(MIN_SHARD_BYTES=0, FALLBACK="error"):
            function()

    run_simulated(ranks, on_rank)


@RANKS
def test_getting(ranks):
    def check() -> None:
        for split in (0, 2):
            x = numpy_dist.asarray(VALUES, split=split)
            for key in KEYS:
                _same(x[key], VALUES[key])
                _same(x[_ours(key)], VALUES[key])

    _at_ranks(ranks, check)


@pytest.mark.slow
@RANKS
def test_setting(ranks):
    rng = np.random.default_rng(1)
    writes = [(key, 1.5) for key in KEYS] + [(key, rng.random(VALUES[key].shape)) for key in KEYS]
    writes += [
        (S[:, COLUMNS], rng.random((1, 4, 4))),
        (S[..., COLUMNS], rng.random(4)),
        (S[[1, 1, 1]], rng.random((3, 5, 4))),
    ]

    def check() -> None:
        for key, value in writes:
            expected, x = VALUES.copy(), numpy_dist.asarray(VALUES)
            expected[key] = value
            x[key] = value
            _same(x, expected)
            x = numpy_dist.asarray(VALUES, split=1)
            x[_ours(key)] = numpy_dist.asarray(value) if np.ndim(value) else value
            _same(x, expected)
            expected[key] += 1
            x[key] += 1
            _same(x, expected)

    _at_ranks(ranks, check)


@RANKS
@pytest.mark.parametrize("axis", [None, 0, 1, -1])
def test_take(ranks, axis):
    def check() -> None:
        x = numpy_dist.asarray(VALUES)
        for indices in ([0, 2, 3], np.array([[1, 0], [3, 3]]), 2):
            _same(np.take(x, indices, axis=axis), np.take(VALUES, indices, axis=axis))
        for mode in ("wrap", "clip"):
            _same(np.take(x, [9, -8], axis=axis, mode=mode), np.take(VALUES, [9, -8], axis=axis, mode=mode))

    _at_ranks(ranks, check)


@RANKS
def test_errors_are_raised_on_all_ranks(ranks):
    far = np.arange(40)
    far[33] = 99

    def check() -> None:
        x, long = numpy_dist.asarray(VALUES), numpy_dist.asarray(np.arange(40.0))
        for array, key, message in [
            (x, S[[0, 7]], "index 7 is out of bounds for axis 0 with size 7"),
            (x, S[:, [0, -6]], "index -6 is out of bounds for axis 1 with size 5"),
            (x, S[1, [], [0, 1, 2]], re.escape("shapes (0,) (3,) ")),
            (long, S[numpy_dist.asarray(far)], "index 99 is out of bounds for axis 0 with size 40"),
        ]:
            with pytest.raises(IndexError, match=message):
                array[key]
            with pytest.raises(IndexError, match=message):
                array[key] = 0
        with pytest.raises(ValueError, match="shape mismatch"):
            x[[0, 1]] = np.zeros(3)
        _same(x, VALUES)

    _at_ranks(ranks, check)


def _first_bad(call: Any, x: Any, index: Any) -> str:
    with pytest.raises(IndexError) as caught:
        call(x, index)
    return str(caught.value)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["i8", "i4", "u1", ">i8"])
@pytest.mark.parametrize("ranks", [1, 3])
def test_of_several_indices_out_of_bounds_the_one_that_numpy_meets_first_is_named(ranks, dtype):
    bad = np.arange(12).reshape(3, 4) * 9 + 1  # the first one is inside
    views = [
        lambda i: i,
        lambda i: i.T,
        lambda i: i[::-1],
        lambda i: i[:, ::-2].T,
        lambda i: i[1, ::-1],
        lambda i: i[::-1, 0],
        lambda i: i[:2, :2].T,
    ]
    calls = [
        lambda x, i: x[i],
        lambda x, i: x[:, i],
        lambda x, i: x[1, i],
        lambda x, i: x[:, 0][i],
        lambda x, i: x[i, i],
        lambda x, i: x.take(i, 0),
        lambda x, i: x[:, 0].take(i),
        lambda x, i: x.__setitem__(i, 0),
        lambda x, i: x.__setitem__((0, i), 0),
    ]

    def check() -> None:
        x, values = numpy_dist.asarray(VALUES), bad.astype(dtype)
        index = numpy_dist.asarray(values, split=1)
        for view in views:
            for call in calls:
                named = _first_bad(call, VALUES, view(values))
                assert _first_bad(call, x, view(index)) == named
                assert _first_bad(call, x, view(values)) == named

    _at_ranks(ranks, check)


def test_rows_that_are_wanted_often_travel_once():
    def on_rank() -> None:
        x = numpy_dist.asarray(np.arange(40_000.0))
        often = numpy_dist.asarray(np.random.default_rng(2).integers(0, 40_000, 400_000))
        engine.flush()
        comm = engine.runtime().comm
        comm.counters.reset()
        found = x[often]
        engine.flush()
        assert comm.counters.messages <= 2 * (comm.size - 1) + 4
        assert comm.counters.bytes < 3 * x.nbytes
        _same(found, often.gather().astype(float))

    run_simulated(3, on_rank)


@pytest.mark.parametrize("ranks", [1, 2, 3, 5])
def test_assignments_between_recorded_statements(ranks):
    """What was recorded before sees the old values, what comes later the new ones, those of other ranks too."""
    rng = np.random.default_rng(12)
    values, places, new = rng.random(60), rng.integers(-60, 60, 45), rng.random(45)

    places[:2] = 0, 59

    def program(x: Any, i: Any, y: Any) -> list[Any]:
        made = []
        for step in range(4):
            kept = x * 2
            float((kept + 1)[step])  # so `kept` is a value on the way, which nobody has asked for
            if step == 1:
                x[i] = y
            before = x[1:] + x[:-1]
            x[i] = y + 1 if step == 2 else y
            made += [before, kept, x[1:] + x[:-1]]
            x[1:-1] = x[2:] * x[:-2]  # makes a new version of the memory, and keeps the old one
            x[i[::2]] = x[:23]
            x[::2][i % 30] = x[:45]  # into a view, from the array itself
        return [*made, x]

    def check() -> None:
        expected = program(values.copy(), places, new)
        found = program(*map(numpy_dist.asarray, (values, places, new)))
        for got, want in zip(found, expected, strict=True):
            _same(got, want)

    _at_ranks(ranks, check)


def test_memory_of_an_assignment():
    """Values go straight to where they belong: no rank holds more than what is sent and received besides."""

    def on_rank() -> None:
        x = engine.from_global(np.zeros(40_000))
        i = engine.from_global(np.arange(40_000)[::-1].copy())
        engine.flush()
        pool = engine.runtime().pool
        pool.peak = held = pool.held
        x[i] = x
        assert pool.peak - held <= 2 * 10_000 * (8 + 4)
        held = pool.peak = pool.held
        y = x[i]
        assert pool.peak - held <= 10_000 * (8 + 4 * 8)
        assert engine.is_sharded(y)

    with config(MIN_SHARD_BYTES=0):
        run_simulated(4, on_rank)


@pytest.mark.parametrize("ranks", [1, 3])
def test_results_lie_in_memory_as_numpys(ranks):
    cube = np.arange(120.0).reshape(6, 5, 4)
    index = np.array([[1, 0, 3], [2, 2, 1]])
    fortran, turned = np.asfortranarray(index), (np.arange(24).reshape(2, 3, 4) % 4).transpose(2, 0, 1)
    some, plane = [True, False, True, True, False, False], np.arange(30).reshape(6, 5) % 3 == 0
    keys = [
        index,
        fortran,
        turned,
        index[::-1, ::-1],
        (fortran, fortran),
        (index, fortran),
        (0, fortran),
        (S[:], fortran),
    ]
    keys += [
        (fortran, S[:], fortran),
        (fortran[:1], fortran),
        (fortran,) * 3,
        (turned,) * 3,
        (..., [0, 1]),
        (fortran, S[:1]),
    ]
    keys += [some, plane, (some, S[:], S[::-1]), (S[1:], [True, False, True, False, True]), (S[:2], [1, 1], S[::-1])]

    def check() -> None:
        for values, x in [
            (cube, numpy_dist.asarray(cube)),
            (cube.T, numpy_dist.asarray(cube).T),
            (cube.transpose(1, 2, 0)[::-1], numpy_dist.asarray(cube, split=1).transpose(1, 2, 0)[::-1]),
        ]:
            for key in keys:
                if key is plane and values.shape[:2] != plane.shape:
                    continue
                try:
                    expected = values[key]
                except IndexError:
                    continue
                found = x[key]
                np.testing.assert_array_equal(found.gather(), expected)
                steps = [
                    (m, s) for n, m, s in zip(expected.shape, found.strides, expected.strides, strict=True) if n > 1
                ]
                assert all(ours == numpys for ours, numpys in steps)

    _at_ranks(ranks, check)


def test_indices_of_more_elements_than_there_can_be():
    rows = np.ix_(*(np.zeros(7132, int),) * 5)
    for values in (np.ones((3,) * 5), numpy_dist.asarray(np.ones((3,) * 5))):
        with pytest.raises(ValueError, match="^iterator is too large$"):
            values[rows]
        with pytest.raises(ValueError, match="^iterator is too large$"):
            values[rows] = 0
