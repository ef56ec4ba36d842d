"""Transports: which one is chosen, and on the fake device that each brings what it should and waits where it must."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import numpy_dist
from numpy_dist import engine
from numpy_dist.backends import device_transports
from numpy_dist.backends.device_transports import BySharedMemory, _Segment
from numpy_dist.backends.fake import links
from numpy_dist.backends.fake.arrays import FakeStream
from numpy_dist.backends.fake.links import FakeSide
from numpy_dist.backends.fake.memory import FakeMemory
from numpy_dist.backends.transport import Facts, choose
from numpy_dist.settings import config
from numpy_dist.spmd_testing import run_simulated

NAMES = ["host", "mpi-gpu", "nccl", "ipc"]
TWO = frozenset(("0", "1"))
BARE = Facts("a", "0", frozenset("0"))
FULL = [Facts("a", "0", TWO, True, 22703), Facts("a", "1", TWO, True, 22703)]


def without(**changes: Any) -> list[Facts]:
    return [facts._replace(**changes) for facts in FULL]


# -- the choice -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ranks", "name"),
    [
        (FULL, "mpi-gpu"),
        ([FULL[0], FULL[1]._replace(mpi=False)], "nccl"),
        (without(mpi=False, nccl=0), "ipc"),
        (without(mpi=False, device="0"), "ipc"),
        ([FULL[0]._replace(mpi=False), FULL[1]._replace(nccl=23000)], "ipc"),
        ([f._replace(mpi=False, host=h) for f, h in zip(FULL, "ab", strict=True)], "nccl"),
        ([f._replace(mpi=False, nccl=0, host=h) for f, h in zip(FULL, "ab", strict=True)], "host"),
        ([BARE, BARE._replace(device="1")], "host"),
    ],
)
def test_auto_takes_the_first_that_all_ranks_have(ranks, name):
    choice = choose("auto", ranks)
    assert choice.name == name
    for earlier in ("mpi-gpu", "nccl", "ipc") if name == "host" else ():
        assert f"{earlier}: " in choice.reason


@pytest.mark.parametrize(
    ("wanted", "ranks", "why"),
    [
        ("mpi-gpu", [FULL[0], FULL[1]._replace(mpi=False)], "MPI library of rank 1"),
        ("nccl", without(nccl=0), "rank 0 has no NCCL"),
        ("nccl", without(device="0"), "ranks 0 and 1 share a device"),
        ("nccl", [FULL[0], FULL[1]._replace(nccl=1)], r"different versions of NCCL: \[1, 22703\]"),
        ("ipc", [FULL[0], FULL[1]._replace(host="b")], "several machines"),
        ("ipc", [FULL[0], FULL[1]._replace(reaches=frozenset("1"))], "rank 1 can not open"),
    ],
)
def test_what_is_asked_for_and_not_there_is_an_error(wanted, ranks, why):
    with pytest.raises(ValueError, match=why):
        choose(wanted, ranks)


def test_what_is_there_is_taken_when_asked_for():
    assert [choose(name, FULL).name for name in NAMES] == NAMES


# -- programs ---------------------------------------------------------------------------------------------------------


def on_device(ranks: int, transport: str, function: Callable[..., Any], *args: Any) -> list[Any]:
    with config(BACKEND="fake", MIN_SHARD_BYTES=0, FALLBACK="error", TRANSPORT=transport):
        return run_simulated(ranks, function, *args)


def smoothed(grid: Any, steps: int) -> Any:
    for _ in range(steps):
        grid[1:-1, 1:-1] = 0.25 * (grid[:-2, 1:-1] + grid[2:, 1:-1] + grid[1:-1, :-2] + grid[1:-1, 2:])
    return grid


def work(array: Callable[[np.ndarray], Any]) -> list[Any]:
    rng = np.random.default_rng(1)
    grid, values = array(rng.random((23, 17))), array(rng.random((12, 40)))
    flags, waves = array(rng.random((31, 3)) < 0.5), array((rng.random(50) + 1j * rng.random(50)).astype("c8"))
    records = array(np.array([(k, k / 3, b"xyz") for k in range(41)], [("a", "i1"), ("b", "f8"), ("c", "S3")]))
    results = [smoothed(grid, 7), values[:, ::-3].T.copy(), flags[1:] ^ flags[:-1], waves[::-1] - waves]
    both = smoothed(values, 2), values[5:, 30:] + values[:7, :10]  # several messages in flight
    return [*results, *both, np.concatenate([waves, waves[3:9]]), np.sort(values, axis=0), records[::-2]]


@pytest.mark.parametrize("transport", NAMES)
@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 7])
def test_programs_are_numpys(ranks, transport):
    def on_rank() -> tuple[str, list[Any]]:
        found = [r.gather() for r in work(numpy_dist.asarray)]
        return engine.runtime().transport.name, found

    for name, found in on_device(ranks, transport, on_rank):
        assert name == ("host" if ranks == 1 else transport)
        for got, wanted in zip(found, work(np.array), strict=True):
            assert got.dtype == wanted.dtype and np.array_equal(got, wanted)


@pytest.mark.parametrize("transport", ["mpi-gpu", "nccl", "ipc"])
def test_messages_stay_on_the_device_and_are_packed_by_one_kernel(transport):
    def on_rank() -> list[int]:
        grid = numpy_dist.asarray(np.ones((64, 100)), split=0)
        smoothed(grid, 3)
        engine.flush()
        runtime: Any = engine.runtime()
        memory = runtime.backend.memory
        before = memory.downloaded, memory.uploaded, memory.packings, runtime.counters.halos
        smoothed(grid, 5)
        engine.flush()
        after = memory.downloaded, memory.uploaded, memory.packings, runtime.counters.halos
        return [b - a for a, b in zip(before, after, strict=True)]

    assert on_device(3, transport, on_rank) == [[0, 0, 10, 5]] * 3


# -- waiting ----------------------------------------------------------------------------------------------------------


def nothing(self: Any, *arguments: Any) -> None:
    return None


@pytest.mark.parametrize(
    ("transport", "where", "name"),
    [
        ("mpi-gpu", FakeMemory, "fence"),
        ("nccl", FakeSide, "follow"),
        ("nccl", FakeMemory, "after"),
        ("ipc", FakeMemory, "fence"),
        ("ipc", FakeSide, "fence"),
    ],
)
def test_what_does_not_wait_is_seen(transport, where, name, monkeypatch):
    """The proof that these tests can fail: without a wait, other bytes arrive."""
    grid = np.random.default_rng(1).random((23, 17))

    def on_rank() -> bool:
        x = numpy_dist.asarray(grid, split=0)
        smoothed(x, 4)
        engine.flush()
        engine.runtime().comm.barrier()
        monkeypatch.setattr(where, name, nothing)
        smoothed(x, 4)
        engine.flush()
        engine.runtime().comm.barrier()
        monkeypatch.undo()
        return np.array_equal(x.gather(), smoothed(grid.copy(), 8))

    assert False in on_device(2, transport, on_rank)


@pytest.fixture
def exchanged() -> Callable[[str], list[bool]]:
    """Rank 0 sends to rank 1, which receives where something that was asked for earlier has still to read."""

    def on_rank() -> bool:
        runtime: Any = engine.runtime()
        memory, transport = runtime.backend.memory, runtime.transport
        size, right = 1000, True
        memory.stream.reuses = True
        for step in range(4):
            kept, x = memory.empty((size,), np.dtype("u1")), memory.empty((size,), np.dtype("u1"))
            memory.upload(x, np.full(size, step, "u1"))
            memory.upload(early := memory.allocate(size), np.full(size, 100 + step, "u1"))
            memory.copy(kept, early)
            del early  # its memory is used again
            sends, receives = [(1, [x])], [(0, size, lambda x=x: [x])]
            finish = (
                transport.start(sends, [], x.dtype) if runtime.rank == 0 else transport.start([], receives, x.dtype)
            )
            if runtime.rank == 1:
                memory.upload(x, np.full(size, 77, "u1"))
            finish()
            right &= set(memory.download(x).tolist()) == {step} and set(memory.download(kept).tolist()) == {100 + step}
        return right

    return lambda transport: on_device(2, transport, on_rank)


@pytest.mark.parametrize("transport", NAMES)
def test_memory_is_received_into_when_nobody_needs_it(transport, exchanged):
    assert exchanged(transport) == [True, True]


@pytest.mark.parametrize(
    ("transport", "where", "name"),
    [("mpi-gpu", FakeMemory, "fence"), ("nccl", FakeSide, "follow"), ("ipc", FakeSide, "follow")],
)
def test_memory_that_is_received_into_too_early_is_seen(transport, where, name, exchanged, monkeypatch):
    monkeypatch.setattr(where, name, nothing)
    assert exchanged(transport) != [True, True]


def in_flight() -> Iterator[int]:
    """Many messages from rank 0 are started before any is received."""
    runtime: Any = engine.runtime()
    memory, transport = runtime.backend.memory, runtime.transport
    size, count = 5000, 9
    arrays = [memory.empty((size,), np.dtype("i4")) for _ in range(count)]
    finishes = []
    for k, x in enumerate(arrays):
        memory.upload(x, np.full(size, k if runtime.rank == 0 else -1, "i4"))
        messages = ([(1, [x])], []) if runtime.rank == 0 else ([], [(0, 4 * size, lambda x=x: [x])])
        finishes.append(transport.start(*messages, x.dtype))
    for finish in finishes:
        finish()
    yield from (int(k) for x in arrays for k in set(memory.download(x).tolist()))


@pytest.mark.parametrize("transport", NAMES)
def test_many_messages_in_flight(transport, monkeypatch):
    monkeypatch.setattr(device_transports, "SEGMENT", 50_000)  # room for two of them
    assert on_device(2, transport, lambda: list(in_flight())) == [list(range(9))] * 2


def test_a_place_that_is_used_too_early_is_seen(monkeypatch):
    """The same, if places in shared memory were used again before the receiver has told that it has read."""
    monkeypatch.setattr(_Segment, "take", lambda self, nbytes: 0)
    assert on_device(2, "ipc", lambda: list(in_flight()))[1] != list(range(9))


def test_places_are_used_again():
    def on_rank() -> tuple[int, int]:
        grid = numpy_dist.asarray(np.ones((64, 1000)), split=0)
        smoothed(grid, 60)
        engine.flush()
        transport: Any = engine.runtime().transport
        return len(transport._segments), len(transport._waiting)

    for segments, waiting in on_device(3, "ipc", on_rank):
        assert segments == 1 and waiting <= 4


def test_places_of_a_segment():
    segment = _Segment(FakeMemory(FakeStream()), 0, 1000)
    assert [segment.take(n) for n in (300, 300, 300)] == [0, 512, None]
    segment.give(0)
    assert [segment.take(n) for n in (100, 400, 200)] == [0, None, 256]


# -- agreement --------------------------------------------------------------------------------------------------------


def test_all_ranks_take_the_same_and_say_why(monkeypatch):
    full = {rank: Facts("a", f"fake {rank}", frozenset(f"fake {r}" for r in range(3)), True) for rank in range(3)}
    monkeypatch.setattr(links, "PRETENDED", {**full, 2: full[2]._replace(mpi=False)})

    def on_rank() -> tuple[str, str]:
        transport = engine.runtime().transport
        return transport.name, transport.reason

    assert (
        on_device(3, "auto", on_rank) == [("ipc", device_transports.choose("auto", full_without_mpi(full)).reason)] * 3
    )

    def refused() -> str:
        with pytest.raises(ValueError, match="MPI library of rank 2") as raised:
            smoothed(numpy_dist.asarray(np.ones((9, 9))), 1).gather()
        return str(raised.value)

    assert len(set(on_device(3, "mpi-gpu", refused))) == 1


def full_without_mpi(full: dict[int, Facts]) -> list[Facts]:
    return [facts._replace(mpi=False) for facts in full.values()]


@pytest.mark.parametrize("wanted", ["auto", "ipc"])
def test_what_can_not_be_set_up_on_one_rank_is_taken_by_none(wanted, monkeypatch):
    every = frozenset(f"fake {r}" for r in range(3))
    monkeypatch.setattr(links, "PRETENDED", {rank: Facts("a", f"fake {rank}", every) for rank in range(3)})
    original = BySharedMemory._open

    def refuse(self: Any, rank: int, note: Any) -> Any:
        if self._comm.rank == 1:
            raise OSError("no access")
        return original(self, rank, note)

    monkeypatch.setattr(BySharedMemory, "_open", refuse)

    def on_rank() -> str:
        try:
            transport = engine.runtime().transport
        except ValueError as error:
            return str(error)
        return f"{transport.name}: {transport.reason}"

    (told,) = set(on_device(3, wanted, on_rank))
    assert "it could not be set up on rank 1: OSError: no access" in told
    assert told.startswith("host: " if wanted == "auto" else "TRANSPORT='ipc': ")
