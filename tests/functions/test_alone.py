"""What one process leaves to NumPy, on the memory of the array itself: indices that are arrays, and functions."""

from __future__ import annotations

import tracemalloc
import warnings
from typing import Any

import numpy as np
import pytest

import numpy_dist
from numpy_dist import config, engine

N = 300  # squared, more than MIN_SHARD_BYTES
NUMBERS = np.random.default_rng(0).random((N, N))
ROWS = np.random.default_rng(1).integers(-N, N, (3, 4))
KEYS = {
    "rows": (ROWS[0],),
    "columns": (slice(None), ROWS),
    "elements": (ROWS, ROWS),
    "blocks": (ROWS, slice(1, 5)),
    "from the end": (slice(None, None, -1), ROWS),
    "last axis": (Ellipsis, ROWS[0]),
    "apart": (ROWS[0], None, ROWS[0]),
    "beside an integer": (ROWS[0], 0),
    "Fortran order": (ROWS.T, ROWS.T),
    "beside a mask": (ROWS[0, :1], NUMBERS[0] > 0.5),
}


def both() -> tuple[np.ndarray, Any]:
    """The same numbers as an ndarray, and distributed."""
    return NUMBERS.copy(), numpy_dist.asarray(NUMBERS.copy())


@pytest.fixture(params=["default", 0], autouse=True)
def least_bytes(request: pytest.FixtureRequest) -> Any:
    """With the usual ``MIN_SHARD_BYTES``, and with every array sharded."""
    with config(**({} if request.param == "default" else {"MIN_SHARD_BYTES": 0})):
        yield


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS)
def test_what_is_picked_lies_in_memory_as_numpys(key: Any) -> None:
    values, x = both()
    expected, found = values[key], x[key]
    assert np.array_equal(found, expected)
    assert found.strides == expected.strides
    assert found.flags.owndata == expected.flags.owndata and (found.base is None) == (expected.base is None)
    found[...] = 0
    assert np.array_equal(x, values)


@pytest.mark.parametrize("axis", [None, 0, 1])
@pytest.mark.parametrize("mode", ["raise", "wrap", "clip"])
def test_take(axis: int | None, mode: Any) -> None:
    values, x = both()
    expected, found = np.take(values, ROWS, axis, mode=mode), np.take(x, ROWS, axis, mode=mode)
    assert np.array_equal(found, expected) and found.strides == expected.strides


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS)
def test_assignment_leaves_what_is_pending_and_is_seen_through_views(key: Any) -> None:
    values, x = both()
    later, rows = x + 1, x[:4]
    expected_rows = values[:4]
    x[key] = 7
    values[key] = 7
    assert np.array_equal(rows, expected_rows)
    assert np.array_equal(later, NUMBERS + 1)
    assert np.array_equal(x, values)


def test_values_from_the_array_itself() -> None:
    values, x = both()
    values[ROWS] = values[::-1][:12].reshape(3, 4, N)
    x[ROWS] = x[::-1][:12].reshape(3, 4, N)
    assert np.array_equal(x, values)


def test_indices_and_values_that_are_pending() -> None:
    values, x = both()
    for a in (values, x):
        where = (a[0] * N).astype(int) % N
        a[where] += a[1] * 2
        np.add.at(a, where, 0.5)
        np.add.at(a, (where, where), a[2] + 1)
        np.maximum.at(a, (slice(None), where), 0.75)
        np.put(a, where, a[3] * 3)
        np.place(a, a > 0.5, a[4] - 1)
    assert np.array_equal(x, values)


@pytest.mark.parametrize(
    "call",
    [
        lambda a, bad: a[bad],
        lambda a, bad: a.__setitem__(bad, 1),
        lambda a, bad: np.take(a, bad, 0),
        lambda a, bad: np.put(a, bad, [1, 2]),
        lambda a, bad: np.add.at(a, bad, 1),
        lambda a, bad: a.__setitem__([0, 1], np.ones((3, 2))),
        lambda a, bad: np.add.at(a, [0, 1], np.ones((3, 2))),
    ],
)
@pytest.mark.parametrize("bad", [[0, N * N], [1, -N * N - 1]])
def test_errors(call: Any, bad: list[int]) -> None:
    values, x = both()
    with pytest.raises((IndexError, ValueError)) as expected:
        call(values, bad)
    with pytest.raises(expected.type) as found:
        call(x, bad)
    assert str(found.value) == str(expected.value)
    assert np.array_equal(x, values)  # what NumPy had written


@pytest.mark.parametrize("state", ["warn", "ignore", "raise"])
def test_events_of_casts(state: Any) -> None:
    told = []
    for values in (np.zeros(N * N, int), numpy_dist.zeros(N * N, int)):
        with np.errstate(all=state), warnings.catch_warnings(record=True) as log:
            warnings.simplefilter("always")
            try:
                values[ROWS] = np.full(ROWS.shape, np.nan)
            except FloatingPointError as error:
                told.append(str(error))
        told.append([(str(item.message), item.filename) for item in log])
        with np.errstate(invalid="ignore"):
            assert state == "raise" or (values[ROWS] == np.array(np.nan).astype(int)).all()
    assert told[: len(told) // 2] == told[len(told) // 2 :]


@pytest.mark.host_memory  # elsewhere it is the engine that computes
@pytest.mark.parametrize(
    "call",
    [
        lambda a: np.repeat(a, 2, 1),
        lambda a: np.repeat(a, np.arange(N) % 3, 0),
        lambda a: np.compress(a[0] > 0.5, a, 1),
        lambda a: np.partition(a, 3, 0),
        lambda a: np.argpartition(a.T, [2, 7]),
        lambda a: np.unique(a[:2], return_index=True, axis=1),
        lambda a: np.nanargmin(a, 0),
        lambda a: np.lexsort((a[0], a[1] > 0.5)),
        lambda a: np.packbits(a > 0.5, axis=0),
        lambda a: np.searchsorted(np.sort(a[0]), a[1, :7], "right"),
        lambda a: np.add.reduceat(a, [0, 7, 3], 1),
        lambda a: np.hypot.reduce(a, 0, out=a[5]),
        lambda a: np.fmod.reduce(a, 1, keepdims=True, initial=1),
        lambda a: np.hypot.reduce(a, 1, where=a > 0.25, initial=2.0),
        lambda a: np.prod(a + 0.5, axis=0),
        lambda a: np.prod(a + 0.5, axis=1, where=a > 0.25, keepdims=True),
    ],
)
def test_functions_that_numpy_computes_itself(call: Any) -> None:
    values, x = both()
    expected, found = call(values), call(x)
    for one, other in zip(*((r if isinstance(r, tuple) else (r,)) for r in (found, expected)), strict=True):
        assert type(one) is type(other) or (isinstance(one, numpy_dist.DistArray) and one.strides == other.strides)
        assert np.array_equal(one, other)
    assert np.array_equal(x, values)


def test_unique_elements_are_in_order_whether_asked_or_not() -> None:
    x = numpy_dist.asarray(np.arange(N * N)[::-1] % 1000)
    assert np.array_equal(np.unique_values(x), np.arange(1000))


@pytest.mark.parametrize("ufunc", [np.power, np.arctan2, np.hypot])
def test_reductions_that_numpys_loops_for_some_processors_do_wrongly(ufunc: np.ufunc) -> None:
    factors = np.linspace(0.3, 3, 40)
    expected = factors[0]
    for factor in factors[1:]:
        expected = ufunc(expected, factor)
    x = numpy_dist.asarray(np.broadcast_to(factors, (1000, 40)))
    assert np.allclose(ufunc.reduce(x, axis=1), expected)
    assert np.allclose(ufunc.reduceat(x, [0], axis=1)[:, 0], expected)
    assert np.allclose(ufunc.reduceat(x[0], [0], out=numpy_dist.zeros(1)), expected)


@pytest.mark.parametrize("function", [np.matmul, lambda a, b: np.fft.fft(b, axis=0)], ids=["product", "transform"])
def test_results_take_memory_that_was_in_use_before(function: Any) -> None:
    with config(MIN_SHARD_BYTES=0):
        a, b = (numpy_dist.asarray(np.random.default_rng(0).random((1500, 1500))) for _ in range(2))
        function(a, b)
        engine.flush()
        tracemalloc.start()
        try:
            made = function(a, b)
            engine.flush()
            _, most = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert most < made.nbytes / 2


@pytest.mark.host_memory
@pytest.mark.parametrize(
    "function",
    [
        lambda x: np.partition(x, 9, axis=0),
        lambda x: np.partition(x.T, 9),
        lambda x: np.compress(np.ones(len(x), bool), x, axis=0),
        lambda x: np.nonzero(x.ravel())[0],
        lambda x: x[x[:, 0] >= 0],
        lambda x: np.outer(*(numpy_dist.ones(n) for n in x.shape)),
    ],
    ids=["partition", "transposed", "compress", "nonzero", "mask", "of small arrays"],
)
def test_results_of_numpys_are_not_copied(function: Any) -> None:
    x = numpy_dist.asarray(np.random.default_rng(0).random((1500, 1500)))
    function(x[:20])
    engine.flush()
    engine.runtime().pool.clear()
    tracemalloc.start()
    try:
        made = function(x)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert made.size == x.size
    assert most < 1.3 * made.nbytes
