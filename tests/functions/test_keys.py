"""Sorting by several keys, by fields, along long rows, in place and in descending order."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import numpy_dist
from numpy_dist import engine
from numpy_dist.comm.simulated import run_simulated
from numpy_dist.dispatch.patterns import axis_local
from numpy_dist.settings import config

from .harness import check

RNG = np.random.default_rng(12)
WAYS = ("default", "first", "last", "irregular", "descending", "flipped", "strided", "transposed", "pinned")
LINES = ("default", "irregular", "descending", "flipped", "strided")
NAN = np.where(RNG.random(31) < 0.4, np.nan, RNG.integers(0, 3, 31))


def test_several_keys():
    small, words = RNG.integers(0, 3, 31).astype("i1"), RNG.integers(0, 12, 31).astype("U2")
    check(lambda *keys: np.lexsort(keys), small, NAN, words, ways=LINES)
    dates = RNG.integers(0, 3, 31).astype("M8[D]")
    dates[::5] = "NaT"
    check(lambda *keys: np.lexsort(keys), dates, small > 1, NAN + 1j * NAN[::-1], ways=LINES)
    check(lambda *keys: np.lexsort(keys), small, ways=LINES)
    check(lambda *keys: np.lexsort(keys), small[:0], NAN[:0], ways=("default",))
    check(lambda x: np.lexsort((x, words)), small, ways=LINES)


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_keys_along_axes(axis):
    one, two = RNG.integers(0, 2, (3, 4, 5)), RNG.random((3, 4, 5))
    check(lambda *keys: np.lexsort(keys, axis=axis), two, one, ways=WAYS, ranks=(1, 3, 5))
    check(lambda keys: np.lexsort(keys, axis=min(axis, 1)), one, ways=WAYS, ranks=(1, 3))


def test_keys_that_do_not_fit():
    one = np.arange(6.0)
    check(lambda *keys: np.lexsort(keys), one, one[:5], ways=("default",))
    check(lambda *keys: np.lexsort(keys), one, one.reshape(2, 3), ways=("default",))
    check(lambda *keys: np.lexsort(keys, axis=2), one.reshape(2, 3), one.reshape(3, 2), ways=("default",))
    check(lambda *keys: np.lexsort(keys, axis=1), one, one, ways=("default",))


def _records():
    inner = [("x", "u1"), ("y", "M8[s]")]
    made = np.zeros(29, [("a", "i4"), ("b", "f4"), ("c", "U2"), ("d", "i2", (2,)), ("e", inner)])
    made["a"], made["b"] = RNG.integers(0, 3, 29), RNG.integers(0, 2, 29)
    made["c"], made["d"][:, 1] = RNG.integers(0, 30, 29).astype("U2"), RNG.integers(0, 3, 29)
    made["e"]["x"] = RNG.integers(0, 3, 29)
    return made


@pytest.mark.slow
@pytest.mark.parametrize("order", [None, "b", "e", ["c", "a"], ("d",)])
def test_fields(order):
    check(lambda x: np.sort(x, order=order), _records(), ways=LINES)
    check(lambda x: np.argsort(x, order=order, kind="stable"), _records(), ways=LINES)
    check(lambda x: np.sort(x.reshape(29, 1), 0, order=order), _records(), ways=LINES, ranks=(3,))
    check(lambda x: np.partition(x, 4, order=order)[4], np.unique(_records()), ways=LINES, ranks=(3,))


def test_fields_in_place_and_errors():
    def in_place(x):
        assert x.sort(order="b") is None
        return x.argsort(order=["c", "b"], kind="stable")

    check(in_place, _records(), ways=LINES)
    check(lambda x: np.sort(x, order="z"), _records(), ways=("default",))
    check(lambda x: np.sort(x, order="b"), np.arange(5), ways=("default",))
    check(lambda x: np.sort(x, kind="stable"), np.frombuffer(RNG.bytes(60), "V3"), ways=LINES)


def test_in_place():
    values = RNG.permutation(24).reshape(6, 4)

    def sort(x):
        x[1:].sort(axis=0)
        x[0, ::-1].sort()

    def partition(x):
        x.partition(2, axis=1)
        x[:] = np.sort(x[:, :2])[:, [0, 1, 0, 1]]

    check(sort, values, ways=WAYS)
    check(partition, values, ways=WAYS)
    check(lambda x: (x.argsort(0), x.argpartition(0, 0)[0]), values, ways=WAYS)


@pytest.mark.parametrize("dtype", ["?", "b", "u2", "i8", "e", "g", "F"])
def test_complex_of_any_dtype(dtype):
    check(np.sort_complex, RNG.integers(0, 9, (5, 4)).astype(dtype), ways=WAYS, ranks=(1, 3))


def test_long_rows_are_divided(monkeypatch):
    monkeypatch.setattr(axis_local, "LONG_ROW", 0)
    values = RNG.integers(0, 9, (2, 1, 40)) * 1.0
    ways = ("default", "last", "descending", "transposed")
    for axis in (2, -1):
        check(lambda x, axis=axis: np.sort(x, axis), values, ways=ways)
        check(lambda x, axis=axis: np.argsort(x, axis, kind="stable"), values, ways=ways)
    check(lambda x: np.argsort(x, 0, kind="stable"), values[:, 0].T.copy(), ways=ways)
    check(lambda *keys: np.lexsort(keys), values, values % 3, ways=ways)


def test_long_rows_take_their_share_of_memory():
    def on_rank() -> None:
        with config(MIN_SHARD_BYTES=0, FALLBACK="error"):
            x = numpy_dist.asarray(np.random.default_rng(2).random((2, 200_000)), split=1)
            for found in (np.sort(x), np.argsort(x)):
                engine.flush()
                size = engine.runtime().size
                assert found.local.nbytes <= 1.3 * x.nbytes / size

    run_simulated(4, on_rank)


def test_axes_that_are_whole_need_no_messages():
    def on_rank() -> None:
        with config(MIN_SHARD_BYTES=0, FALLBACK="error"):
            x = numpy_dist.asarray(np.random.default_rng(2).random((50, 40)), split=0)
            engine.flush()
            comm = engine.runtime().comm
            comm.counters.reset()
            np.sort(x, axis=1), np.argsort(x, axis=1), np.lexsort((x, x), axis=1), np.partition(x, 3, axis=1)
            assert comm.counters.messages == comm.counters.collectives == 0

    run_simulated(4, on_rank)


def test_a_function_of_rows_is_called_once(monkeypatch):
    calls = []
    sort = np.sort

    def counted(x, *args, **kwargs):
        calls.append(np.size(x))
        return sort(x, *args, **kwargs)

    def on_rank() -> None:
        with config(MIN_SHARD_BYTES=0, FALLBACK="error"):
            x = numpy_dist.asarray(np.random.default_rng(2).random((50, 40)), split=0)
            axis_local.along(lambda block: counted(block, 1), x, 1, keepdims=True)

    run_simulated(2, on_rank)
    assert calls == [1000, 1000]


@pytest.mark.skipif("descending" not in inspect.signature(np.sort).parameters, reason="since NumPy 2.5")
def test_descending_order():
    dates = RNG.integers(0, 5, 31).astype("M8[s]")
    dates[::4] = "NaT"
    for values in (NAN, RNG.integers(0, 5, 31), dates, RNG.integers(0, 9, 31).astype("U2"), NAN > 1, NAN[:0]):
        check(lambda x: np.sort(x, descending=True), values, ways=LINES)
        check(lambda x: np.argsort(x, descending=True, stable=True), values, ways=LINES)
    check(lambda x: np.sort(x, axis=0, descending=True), NAN[:30].reshape(5, 6), ways=WAYS)
