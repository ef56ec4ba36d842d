"""Loops over elements: right, fetched in blocks, and told once what they cost."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import numpy_dist as nd
from numpy_dist import engine
from numpy_dist.errors import ElementLoopWarning
from numpy_dist.settings import config
from numpy_dist.spmd_testing import run_simulated

RANKS = pytest.mark.parametrize("ranks", [1, 2, 3])


def _messages() -> int:
    comm = engine.runtime().comm
    return comm.counters.messages + comm.counters.collectives


def _run(ranks: int, function) -> None:
    def on_rank() -> None:
        with config(MIN_SHARD_BYTES=0), warnings.catch_warnings():
            warnings.simplefilter("ignore", ElementLoopWarning)
            function()

    run_simulated(ranks, on_rank)


@pytest.mark.slow
@RANKS
def test_elements_are_fetched_in_blocks(ranks):
    def check() -> None:
        values = np.random.default_rng(0).random(20_000)
        for shape in ((20_000,), (200, 100), (4, 5, 1000)):
            a = values.reshape(shape)
            x = nd.asarray(a)
            for view, plain in ((x, a), (x[::-1], a[::-1]), (x[::3], a[::3])):
                engine.flush()
                before = _messages()
                indices = list(np.ndindex(plain.shape))[:3000]
                assert all(view[i] == plain[i] and type(view[i]) is np.float64 for i in indices)
                assert _messages() - before < 400

    _run(ranks, check)


def test_blocks_are_not_fetched_for_elements_that_lie_far_apart():
    def check() -> None:
        a = np.arange(60_000.0).reshape(20, 3000)
        x = nd.asarray(a)
        engine.flush()
        before = engine.runtime().comm.counters.bytes
        assert [x[i, 5] for i in range(20)] == a[:, 5].tolist()
        assert engine.runtime().comm.counters.bytes - before < 20 * 1000

    _run(3, check)


@RANKS
def test_writes_between_reads_are_seen(ranks):
    def check() -> None:
        a = np.arange(100.0)
        x, y = nd.asarray(a), nd.asarray(np.zeros(100))
        for i in range(99):
            y[i] = x[i] * 2  # of another array
            a[i + 1] += a[i]
            x[i + 1] += x[i]  # of the same one
            if i == 50:
                a[::2] = -1
                x[::2] = -1
        assert (x.gather() == a).all()
        part = x[10:20]
        assert [part[i] for i in range(10)] == a[10:20].tolist()
        np.add.at(x, [3, 3], 1)
        for i, v in enumerate(part):
            part[[i + 1 if i < 9 else 0]] = v  # by positions
            a[11 + i if i < 9 else 10] = v
        assert (x.gather()[10:20] == a[10:20]).all()
        for i in range(9):
            part[[i + 1]] = part[i] + 1
            a[11 + i] = a[10 + i] + 1
        assert (x.gather()[10:20] == a[10:20]).all()
        x.sort()
        assert [x[i] for i in range(9)] == np.sort(a + 2 * (np.arange(100) == 3)).tolist()[:9]

    _run(ranks, check)


@RANKS
def test_parts_of_elements_are_read(ranks):
    def check() -> None:
        numbers = np.arange(40.0) + 1j * np.arange(40.0)[::-1]
        pairs = np.zeros(40, [("first", "i4"), ("second", "f4")])
        pairs["first"], pairs["second"] = np.arange(40), np.arange(40) / 8
        for values, names in ((numbers, ("real", "imag")), (pairs, ("first", "second"))):
            x = nd.asarray(values)
            for name in names:
                ours, theirs = (getattr(a, name) if values is numbers else a[name] for a in (x, values))
                assert [ours[i] for i in range(40)] == theirs.tolist()
            assert [x[i] for i in range(40)] == list(values)

    _run(ranks, check)


@RANKS
def test_writes_through_local_memory_are_seen(ranks):
    def check() -> None:
        x = nd.asarray(np.zeros(50))
        assert sum(x[i] for i in range(50)) == 0
        x.local[...] = 1
        assert sum(x[i] for i in range(50)) == 50

    _run(ranks, check)


def test_a_long_loop_is_told_once():
    def loop() -> list:
        with config(MIN_SHARD_BYTES=0), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            x = nd.asarray(np.arange(3000.0))
            total = 0.0
            for _ in range(2):
                for i in range(3000):
                    total += x[i]
                x[0] = 0
            assert total == 2 * 2999 * 1500
            first = [w for w in caught if w.category is ElementLoopWarning]
            assert len(first) == 1 and first[0].filename == __file__
            for v in x:
                total += v
            for i in range(900):
                total += x[i]
            assert len([w for w in caught if w.category is ElementLoopWarning]) == 2
            with config(FALLBACK="silent"):
                total += sum(x)
            assert len([w for w in caught if w.category is ElementLoopWarning]) == 2
        return []

    # Warnings are recorded for the whole process, so on one simulated rank at a time.
    run_simulated(1, loop)
