"""Memory that algorithms borrow from the pool."""

from __future__ import annotations

import weakref

import numpy as np
import pytest

from numpy_dist import engine
from numpy_dist.engine.memory.pool import Block
from numpy_dist.spmd_testing import run_simulated


def test_results_are_taken_over_and_the_rest_goes_back():
    def on_rank() -> None:
        rt = engine.runtime()
        layout = engine.default_layout((1000 * rt.size,), split=0)
        before = rt.pool.held
        with engine.Scratch() as scratch:
            for other in (scratch.empty(7), scratch.empty((0, 3), np.int8)):
                assert other.dtype in (float, np.int8)
            del other
            part = scratch.empty(1000, np.int64)
            part[...] = np.arange(1000) + 1000 * rt.rank
            address = part.ctypes.data
            words = part.view(np.uint64)  # the same memory, all of it
            x = engine.from_local(words, layout)
            assert engine.local(x).ctypes.data == address
            copied = engine.from_local(part[:], layout)  # its memory belongs to x now
            assert engine.local(copied).ctypes.data != address
        del part, words
        assert rt.pool.held == before + 16000
        np.testing.assert_array_equal(engine.gather(x), np.arange(1000 * rt.size))
        del x, copied
        assert rt.pool.held == before
        assert rt.pool.free >= 16000 + 56

    for ranks in (1, 3):
        run_simulated(ranks, on_rank)


def test_only_whole_contiguous_memory_is_taken_over():
    def on_rank() -> None:
        layout = engine.default_layout((4, 6), split=0)
        with engine.Scratch() as scratch:
            for part in (scratch.empty((6, 4)).T, scratch.empty((5, 6))[:4]):
                part[...] = 3
                x = engine.from_local(part, layout)
                assert not np.shares_memory(engine.local(x), part)
        np.testing.assert_array_equal(engine.gather(x), np.full((4, 6), 3.0))

    run_simulated(1, on_rank)


def test_memory_comes_back_after_an_error():
    def on_rank() -> None:
        pool = engine.runtime().pool
        before = pool.held
        try:
            with engine.Scratch() as scratch:
                base = scratch.empty(5).base
                assert isinstance(base, Block)
                raise KeyError
        except KeyError:
            assert pool.held == before
        assert base.scratch is None

    run_simulated(1, on_rank)


def test_what_numpy_has_made_is_taken_over_and_goes_back_to_it():
    def on_rank() -> None:
        rt = engine.runtime()
        layout = engine.default_layout((1000 * rt.size,), split=0)
        held, free = rt.pool.held, rt.pool.free
        made = np.arange(1000) + 1000 * rt.rank
        address, gone = made.ctypes.data, weakref.ref(made)
        with engine.Scratch() as scratch:
            x = engine.from_local(scratch.given(made), layout)
            other = scratch.given(np.ones(50))
            assert rt.pool.held == held + 8400
        del made, other
        assert rt.pool.held == held + 8000
        assert engine.local(x).ctypes.data == address
        part = engine.local(x)[10:].reshape(-1, 1)
        x += 1
        np.testing.assert_array_equal(engine.gather(x), np.arange(1000 * rt.size) + 1)
        del x
        engine.flush()
        assert gone() is not None and part[0, 0] == 1000 * rt.rank + 11  # whoever sees the memory keeps it
        del part
        assert gone() is None
        assert (rt.pool.held, rt.pool.free) == (held, free)

    for ranks in (1, 3):
        run_simulated(ranks, on_rank)


@pytest.mark.parametrize(
    "array",
    [
        np.zeros((5, 6))[:4],
        np.zeros((6, 4)).T,
        np.zeros((0, 3)),
        np.broadcast_to(3.0, (4, 6)),
        np.array([None, 1]),
        np.frombuffer(bytearray(48)),
        np.zeros(3).view(np.recarray),
    ],
    ids=["part", "transposed", "empty", "read-only", "objects", "of others", "subclass"],
)
def test_arrays_without_plain_memory_of_their_own_stay_as_they_are(array):
    with engine.Scratch() as scratch:
        assert scratch.given(array) is array
