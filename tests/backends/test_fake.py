"""The fake device: hidden host accesses raise, missing fences are seen, and programs are right without either."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import numpy_dist
from numpy_dist import engine
from numpy_dist.backends.base import make_backend
from numpy_dist.backends.fake.arrays import FakeArray, FakeStream
from numpy_dist.backends.fake.memory import UNSYNCHRONISED, FakeMemory
from numpy_dist.settings import config
from numpy_dist.spmd_testing import run_simulated


def device_array(values: np.ndarray) -> FakeArray:
    memory = FakeMemory(FakeStream())
    array = memory.empty(values.shape, values.dtype)
    memory.upload(array, values)
    return array


def on_device(ranks: int, function: Callable[..., Any], *args: Any) -> list[Any]:
    with config(BACKEND="fake", MIN_SHARD_BYTES=0, FALLBACK="error"):
        return run_simulated(ranks, function, *args)


@pytest.mark.parametrize(
    "access",
    [
        np.asarray,
        np.array,
        memoryview,
        list,
        lambda x: np.ones(3) + x,
        lambda x: x + np.ones(3),
        lambda x: np.copyto(np.ones(3), x),
        lambda x: np.ones(3).__setitem__(..., x),
        lambda x: x.__setitem__(..., np.ones(3)),
        lambda x: np.add(1, x, out=np.ones(3)),
        lambda x: np.add(np.ones(3), 1, out=x),
        lambda x: np.concatenate([np.ones(3), x]),
    ],
)
def test_values_are_not_to_be_had_unasked(access):
    with pytest.raises(TypeError):
        access(device_array(np.arange(3.0)))


def test_values_are_to_be_had_on_request():
    x = device_array(np.arange(6.0))
    x[::2] = x[1::2]
    assert x.get().tolist() == [1, 1, 3, 3, 5, 5]
    assert float(x[2]) == 3 and int(x[2]) == 3 and bool(x[2])
    assert (np.sqrt(x) * 2).get().tolist() == (np.sqrt([1, 1, 3, 3, 5, 5]) * 2).tolist()
    assert np.sort(x[::-1]).get().tolist() == [1, 1, 3, 3, 5, 5]


def test_what_is_asked_for_waits_for_a_fence():
    memory = FakeMemory(FakeStream())
    values = np.arange(4.0)
    x, y = memory.empty((4,), values.dtype), memory.empty((2,), values.dtype)
    memory.upload(x, values)
    values[:] = -1
    memory.copy(y, x[1:3])
    (message,) = memory.pack([[y, x[:1]]], values.dtype)
    assert len(memory.stream) == 3 and set(message.tolist()) == {UNSYNCHRONISED}
    memory.fence()
    assert len(memory.stream) == 0 and message.view(float).tolist() == [1, 2, 0]


def test_what_fails_is_told_by_the_fence_and_not_done_again():
    stream, done = FakeStream(), []
    stream.put(lambda: 1 / 0)
    stream.put(done.append, 1)
    with pytest.raises(ZeroDivisionError):
        stream.fence()
    assert done == []
    stream.fence()
    assert done == [1]


def smoothed(grid: Any, steps: int) -> Any:
    for _ in range(steps):
        grid[1:-1, 1:-1] = 0.25 * (grid[:-2, 1:-1] + grid[2:, 1:-1] + grid[1:-1, :-2] + grid[1:-1, 2:])
    return grid


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 7])
def test_a_stencil_is_bitwise_numpys(ranks):
    grid = np.random.default_rng(1).random((23, 17))

    def on_rank() -> np.ndarray:
        return smoothed(numpy_dist.asarray(grid), 9).gather()

    for found in on_device(ranks, on_rank):
        assert np.array_equal(found, smoothed(grid.copy(), 9))


@pytest.mark.parametrize("ranks", [2, 4])
def test_only_halos_leave_the_device(ranks):
    def on_rank() -> tuple[int, int, int]:
        grid = numpy_dist.asarray(np.ones((64, 1000)), split=0)
        smoothed(grid, 3)
        engine.flush()
        runtime: Any = engine.runtime()
        memory = runtime.backend.memory
        before = memory.downloaded, memory.uploaded, runtime.counters.halos
        smoothed(grid, 10)
        engine.flush()
        return memory.downloaded - before[0], memory.uploaded - before[1], runtime.counters.halos - before[2]

    for rank, (down, up, halos) in enumerate(on_device(ranks, on_rank)):
        rows = 1 if rank in (0, ranks - 1) else 2
        assert halos == 10
        assert 0 < down <= halos * rows * 8000 and 0 < up <= halos * rows * 8000


@pytest.mark.parametrize("new", [False, True])
def test_a_block_of_the_device_is_copied_unless_nobody_else_has_it(new):
    def on_rank() -> list[float]:
        runtime: Any = engine.runtime()
        block = runtime.backend.memory.empty((6,), np.dtype(float))
        block[...] = 0.0
        block = block + 1.0  # the library's own memory, none of the pool
        options = {"new": True} if new else {}
        handle = engine.from_local(block, engine.default_layout((6,)), **options)
        block[...] = 2.0
        return engine.gather(handle).tolist()

    assert on_device(1, on_rank) == [[2.0 if new else 1.0] * 6]


def test_a_fence_that_is_missing_is_seen(monkeypatch):
    """The proof that this file can fail: without the engine's fence, other bytes travel."""
    grid = np.random.default_rng(1).random((23, 17))

    def on_rank() -> bool:
        x = numpy_dist.asarray(grid, split=0)
        found = smoothed(x, 4)
        engine.flush()
        monkeypatch.setattr(FakeMemory, "fence", lambda self: None)
        found = smoothed(x, 4)
        engine.flush()
        monkeypatch.undo()
        return np.array_equal(found.gather(), smoothed(grid.copy(), 8))

    assert on_device(2, on_rank) == [False, False]


@pytest.mark.parametrize("ranks", [1, 3])
def test_all_kinds_of_work(ranks):
    rng = np.random.default_rng(3)
    values, other = rng.standard_normal((31, 12)), rng.standard_normal((12, 9))

    def work(np_array: Callable[[np.ndarray], Any]) -> list[Any]:
        x, y = np_array(values), np_array(other)
        return [
            np.where(x > 0, np.sin(x), x**2),
            x.sum(axis=0),
            x.max(),
            np.sort(x, axis=0),
            np.sort(x.ravel()),
            np.argsort(x, axis=0),
            x @ y,
            x[::-2, 3:].T.copy(),
            np.cumsum(x, axis=0),
            x[x > 0.5],
            np.median(x),
            np.concatenate([x, x[:3]]),
            np.nonzero(x > 1)[0],
        ]

    def on_rank() -> list[Any]:
        return [r.gather() if isinstance(r, numpy_dist.DistArray) else r for r in work(numpy_dist.asarray)]

    with config(FALLBACK="silent"):
        wanted = work(np.array)
    for found in on_device(ranks, on_rank):
        for a, b in zip(found, wanted, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-13)


@pytest.mark.parametrize("ranks", [1, 2])
def test_events_are_reported_after_a_fence(ranks):
    def on_rank() -> list[str]:
        x = numpy_dist.asarray(np.array([1.0, 0.0, -1.0, 4.0]))
        with warnings.catch_warnings(record=True) as caught, engine.lazily_recorded():
            warnings.simplefilter("always")
            y = 1 / x
            z = np.sqrt(x)
            y.gather(), z.gather()
        return sorted(str(w.message) for w in caught)

    wanted = ["divide by zero encountered in divide", "invalid value encountered in sqrt"]
    assert on_device(ranks, on_rank) == [wanted] * ranks


@pytest.mark.parametrize("ranks", [1, 2])
def test_errors_of_values_come_before_the_call_returns(ranks):
    def on_rank() -> str:
        x = numpy_dist.asarray(np.arange(1, 9))
        with pytest.raises(ValueError, match="negative integer powers") as raised:
            x ** numpy_dist.asarray(np.array([1, 1, 1, 1, 1, 1, 1, -1]))
        return str(raised.value)

    assert len(set(on_device(ranks, on_rank))) == 1


def test_the_users_shard_is_an_array_of_the_device():
    def on_rank() -> tuple[bool, list[float]]:
        x = numpy_dist.asarray(np.arange(8.0))
        block = x.local
        block *= 2
        return isinstance(block, FakeArray), (x + 1).gather().tolist()

    assert on_device(2, on_rank) == [(True, [1.0, 3.0, 5.0, 7.0, 9.0, 11.0, 13.0, 15.0])] * 2


@pytest.mark.parametrize("ranks", [1, 3])
def test_arrays_of_the_device_come_in_without_the_host(ranks):
    values = np.arange(60.0).reshape(20, 3)

    def on_rank() -> tuple[bool, bool, int]:
        runtime: Any = engine.runtime()
        memory = runtime.backend.memory
        given = memory.empty(values.shape, values.dtype)
        memory.upload(given, values)
        before = memory.downloaded + memory.uploaded
        x = numpy_dist.asarray(given)
        given[...] = 0
        moved = memory.downloaded + memory.uploaded - before
        narrow = numpy_dist.asarray(x.local, dtype=np.float32) if runtime.size == 1 else x.astype(np.float32)
        return np.array_equal(x.gather(), values), np.array_equal(narrow.gather(), values.astype("f4")), moved

    assert on_device(ranks, on_rank) == [(True, True, 0)] * ranks


def test_random_numbers_are_those_of_the_host():
    def on_rank() -> np.ndarray:
        return numpy_dist.random.default_rng(7).normal(size=(50, 3)).gather()

    for found in on_device(3, on_rank):
        assert np.array_equal(found, np.random.default_rng(7).normal(size=(50, 3)))


def test_memory_that_is_not_to_be_had_leaves_arrays_usable(monkeypatch):
    def on_rank() -> tuple[str, bool]:
        x = numpy_dist.asarray(np.arange(1000.0))
        engine.flush()
        with monkeypatch.context() as patched:

            def refuse(self: FakeMemory, nbytes: int) -> Any:
                raise MemoryError(f"no {nbytes} bytes")

            patched.setattr(FakeMemory, "allocate", refuse)
            with pytest.raises(MemoryError) as raised:
                y = x + 1
                engine.flush()
        del y
        return " ".join(raised.value.__notes__), x.sum() == 499500

    told, usable = on_device(1, on_rank)[0]
    assert usable and "8000 bytes" in told and "shape (1000,)" in told


def test_the_backend_has_a_name():
    assert make_backend("fake").tier({}).startswith("fake")
