"""Transports between devices: by an MPI that takes their memory, by NCCL, and by memory that processes share (IPC).

All pack the parts of all messages by one kernel into one buffer, and unpack by one. They differ in when the host must
wait for the device:

* `ByMpi`: before messages are started. MPI knows nothing of streams: what it reads must be there, and nothing that was
  asked for earlier may still use the memory into which it receives.
* `BySharedMemory`: before others are told that a message lies ready, and before they are told that it was read.
* `ByNccl`: never. Messages travel on a stream of their own, which waits for the packing, and for which unpacking waits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from numpy_dist.backends.memory import Array, Memory
from numpy_dist.backends.transport import (
    UNMARKED,
    Attempt,
    ByHost,
    Facts,
    Marks,
    Receives,
    Sends,
    Transport,
    choose,
)

if TYPE_CHECKING:
    from numpy_dist.backends.transport import Communicator, Pending

# Tags of messages between transports, beside those of the engine's own messages (0).
READ = 31002
SEGMENT = 1 << 24  # bytes of shared memory that are made at once
_ALIGN = 256


class SideStream(Protocol):
    """A stream beside the one on which a memory works."""

    def follow(self) -> None:
        """What is asked of it from now on happens after all that was asked of the memory so far."""

    def copy(self, target: Array, source: Array) -> None:
        """Copy bytes; `source` may lie on another device."""

    def exchange(self, sends: Sequence[tuple[int, Array]], receives: Sequence[tuple[int, Array]]) -> None:
        """Send and receive bytes by NCCL."""

    def mark(self) -> object:
        """A mark behind all that was asked of it, for `DeviceMemory.after`."""

    def fence(self) -> None:
        """Wait until everything that was asked of it has happened."""


class DeviceMemory(Memory, Protocol):
    """What transports ask of a device's memory beside `Memory`."""

    def gather(self, buffer: Array, parts: Sequence[Array]) -> None:
        """Copy the elements of some arrays, one array after the other, into a buffer of bytes: one kernel."""

    def scatter(self, buffer: Array, parts: Sequence[Array]) -> None:
        """The way back."""

    def for_mpi(self, buffer: Array) -> Array:
        """What MPI is given for a buffer of bytes."""

    def after(self, mark: Any) -> None:
        """What is asked for from now on happens after what lies before a mark of a `SideStream`."""

    def share(self, nbytes: int) -> tuple[Array, bytes]:
        """Memory that other processes can open, outside of any pool, and the handle by which they do."""

    def open(self, handle: bytes, nbytes: int) -> Array:
        """The memory that another process shares."""


class Links(Protocol):
    """What a backend has for transports between its devices."""

    @property
    def memory(self) -> DeviceMemory:
        """Of the device."""

    def facts(self, comm: Communicator) -> Facts:
        """What this rank says of itself."""

    def side(self) -> SideStream:
        """A stream of its own."""

    def connect(self, comm: Communicator, side: Any) -> None:
        """Make a side ready for `Side.exchange`; collective."""


def agree(wanted: str, links: Links, comm: Communicator, attempt: Attempt) -> Transport:
    """The transport that all ranks take; collective for several ranks.

    One that can not be set up on some rank is taken by none: the next is, or all raise what one has met.

    Raises
    ------
    ValueError
        On all ranks alike, for a TRANSPORT that they do not have.
    """
    if comm.size == 1:
        return ByHost(links.memory, comm, attempt, "a single rank sends nothing")
    ranks = comm.allgather(links.facts(comm))
    failed: list[tuple[str, str]] = []
    while True:
        choice = choose(wanted, ranks, failed)
        try:
            made, problem = MAKERS[choice.name](links, comm, attempt, choice.reason), None
        except (OSError, RuntimeError, MemoryError) as error:
            problem = f"{type(error).__name__}: {error}"
        problems = comm.allgather(problem)
        rank = next((rank for rank, text in enumerate(problems) if text is not None), None)
        if rank is None:
            return made
        failed.append((choice.name, f"it could not be set up on rank {rank}: {problems[rank]}"))


class _Buffers:
    """Where the messages of one exchange lie: in one buffer all that is sent, in another all that is received."""

    def __init__(self, sends: Sends, receives: Receives, dtype: np.dtype) -> None:
        self.parts = [part for _, parts in sends for part in parts]
        counts = [sum(part.size for part in parts) * dtype.itemsize for _, parts in sends]
        self.sent = _spans(counts)
        self.received = _spans([nbytes for _, nbytes, _ in receives])

    @staticmethod
    def size(spans: Sequence[tuple[int, int]]) -> int:
        return spans[-1][1] if spans else 0


def _spans(sizes: Sequence[int]) -> list[tuple[int, int]]:
    spans, start = [], 0
    for size in sizes:
        spans.append((start, start + size))
        start += size
    return spans


def _pieces(buffer: Array, ranks: Sequence[int], spans: Sequence[tuple[int, int]]) -> list[tuple[int, Array]]:
    return [(rank, buffer[lo:hi]) for rank, (lo, hi) in zip(ranks, spans, strict=True)]


def _targets(receives: Receives) -> list[Array]:
    return [part for _, _, targets in receives for part in targets()]


class ByMpi:
    """Messages in the device's memory, by an MPI that takes them."""

    name = "mpi-gpu"

    def __init__(self, links: Links, comm: Communicator, attempt: Attempt, reason: str) -> None:
        self._memory, self._comm, self._attempt, self.reason = links.memory, comm, attempt, reason

    def start(self, sends: Sends, receives: Receives, dtype: np.dtype, marks: Marks = UNMARKED) -> Callable[[], None]:
        """As in `Transport`."""
        if not sends and not receives:
            return _nothing
        memory, buffers = self._memory, _Buffers(sends, receives, dtype)
        out = self._attempt(memory.allocate, buffers.size(buffers.sent))
        into = self._attempt(memory.allocate, buffers.size(buffers.received))
        if sends:
            memory.gather(out, buffers.parts)
        memory.fence()
        pending = self._comm.start_transfer(
            [(rank, memory.for_mpi(x)) for rank, x in _pieces(out, [rank for rank, _ in sends], buffers.sent)],
            [(rank, memory.for_mpi(x)) for rank, x in _pieces(into, [r for r, _, _ in receives], buffers.received)],
            *marks,
        )

        def finish() -> None:
            nonlocal out
            pending.wait()
            out = None
            if receives:
                memory.scatter(into, _targets(receives))

        return finish


class ByNccl:
    """Messages by NCCL, on a stream of their own.

    Ranks that exchange something also tell each other, by way of the host, that they have asked for it: a rank that has
    ended is found there, and not by a device that waits for ever.
    """

    name = "nccl"

    def __init__(self, links: Links, comm: Communicator, attempt: Attempt, reason: str) -> None:
        self._memory, self._comm, self._attempt, self.reason = links.memory, comm, attempt, reason
        self._side = links.side()
        links.connect(comm, self._side)

    def start(self, sends: Sends, receives: Receives, dtype: np.dtype, marks: Marks = UNMARKED) -> Callable[[], None]:
        """As in `Transport`."""
        if not sends and not receives:
            return _nothing
        memory, side, buffers = self._memory, self._side, _Buffers(sends, receives, dtype)
        out = self._attempt(memory.allocate, buffers.size(buffers.sent))
        into = self._attempt(memory.allocate, buffers.size(buffers.received))
        if sends:
            memory.gather(out, buffers.parts)
        side.follow()
        targets, sources = [rank for rank, _ in sends], [rank for rank, _, _ in receives]
        side.exchange(_pieces(out, targets, buffers.sent), _pieces(into, sources, buffers.received))
        mark = side.mark()
        others = sorted({*targets, *sources})
        told = self._comm.start_transfer(
            [(rank, np.zeros(1, np.uint8)) for rank in others], [(rank, np.zeros(1, np.uint8)) for rank in others]
        )

        def finish() -> None:
            nonlocal out
            told.wait()
            memory.after(mark)
            if receives:
                memory.scatter(into, _targets(receives))
            out = None  # only now: what takes its memory waits for the mark, too

        return finish


class _Segment:
    """Shared memory of this rank, from which messages get their places."""

    def __init__(self, memory: DeviceMemory, number: int, nbytes: int) -> None:
        self.number, self.nbytes = number, nbytes
        self.array, self.handle = memory.share(nbytes)
        self._taken: list[tuple[int, int]] = []

    def take(self, nbytes: int) -> int | None:
        """Where so many bytes are free; None if nowhere."""
        start = 0
        for place, (lo, hi) in enumerate(self._taken):
            if lo - start >= nbytes:
                self._taken.insert(place, (start, start + nbytes))
                return start
            start = -(-hi // _ALIGN) * _ALIGN
        if self.nbytes - start < nbytes:
            return None
        self._taken.append((start, start + nbytes))
        return start

    def give(self, start: int) -> None:
        self._taken = [span for span in self._taken if span[0] != start]


class BySharedMemory:
    """Messages in device memory that ranks of a machine open in each other (CUDA IPC).

    A rank packs into shared memory of its own, and tells the receivers where; they copy, and tell when they have.
    Places are used again when all receivers have told so; if there are too few, more memory is shared.
    """

    name = "ipc"
    _NOTE = np.dtype([("segment", np.int64), ("start", np.int64), ("nbytes", np.int64), ("handle", np.uint8, 64)])

    def __init__(self, links: Links, comm: Communicator, attempt: Attempt, reason: str) -> None:
        self._memory, self._comm, self._attempt, self.reason = links.memory, comm, attempt, reason
        self._side = links.side()
        self._opened: dict[tuple[int, int], Array] = {}
        self._waiting: list[tuple[Pending, _Segment, int]] = []  # messages that receivers may still read
        self._told: list[Pending] = []
        self._segments: list[_Segment] = []
        problem: Exception | None = None
        try:
            self._segments.append(_Segment(self._memory, 0, SEGMENT))
        except (OSError, RuntimeError, MemoryError) as error:
            problem = error
        notes = comm.allgather(None if problem is not None else self._note(self._segments[0], 0))
        if problem is not None:
            raise problem
        for rank, note in enumerate(notes):  # opening fails where it would fail later on
            if rank != comm.rank and note is not None:
                self._open(rank, note)

    def start(self, sends: Sends, receives: Receives, dtype: np.dtype, marks: Marks = UNMARKED) -> Callable[[], None]:
        """As in `Transport`."""
        self._tidy()
        if not sends and not receives:
            return _nothing
        memory, side, buffers = self._memory, self._side, _Buffers(sends, receives, dtype)
        into = self._attempt(memory.allocate, buffers.size(buffers.received))
        notes = []
        if sends:
            segment, start = self._place(buffers.size(buffers.sent))
            memory.gather(segment.array[start : start + buffers.size(buffers.sent)], buffers.parts)
            notes = [
                (rank, self._note(segment, start + lo)) for (rank, _), (lo, _) in zip(sends, buffers.sent, strict=True)
            ]
            memory.fence()
        side.follow()  # nothing that was asked for earlier may still use the memory into which it copies
        came = [(rank, np.zeros(1, self._NOTE)) for rank, _, _ in receives]
        ready = self._comm.start_transfer(notes, came, *marks)
        if sends:
            read = self._comm.start_exchange([], [(rank, np.zeros(1, np.uint8)) for rank, _ in sends], READ)
            self._waiting.append((read, segment, start))

        def finish() -> None:
            ready.wait()
            if not receives:
                return
            for (rank, note), (lo, hi) in zip(came, buffers.received, strict=True):
                first = int(note["start"][0])
                side.copy(into[lo:hi], self._open(rank, note)[first : first + hi - lo])
            side.fence()
            self._told.append(self._comm.start_exchange([(r, np.zeros(1, np.uint8)) for r, _ in came], [], READ))
            memory.scatter(into, _targets(receives))

        return finish

    def _note(self, segment: _Segment, start: int) -> np.ndarray:
        note = np.zeros(1, self._NOTE)
        note["segment"], note["start"], note["nbytes"] = segment.number, start, segment.nbytes
        note["handle"][0, : len(segment.handle)] = np.frombuffer(segment.handle, np.uint8)
        return note

    def _open(self, rank: int, note: np.ndarray) -> Array:
        key = rank, int(note["segment"][0])
        if key not in self._opened:
            self._opened[key] = self._memory.open(note["handle"][0].tobytes(), int(note["nbytes"][0]))
        return self._opened[key]

    def _place(self, nbytes: int) -> tuple[_Segment, int]:
        for segment in self._segments:
            start = segment.take(nbytes)
            if start is not None:
                return segment, start
        size = max(SEGMENT, 1 << (nbytes - 1).bit_length())
        segment = self._attempt(_Segment, self._memory, len(self._segments), size)
        self._segments.append(segment)
        start = segment.take(nbytes)
        assert start is not None
        return segment, start

    def _tidy(self) -> None:
        """Use places again that all receivers have read."""
        self._told = [pending for pending in self._told if not pending.done()]
        waiting, self._waiting = self._waiting, []
        for read, segment, start in waiting:
            if read.done():
                segment.give(start)
            else:
                self._waiting.append((read, segment, start))


def _nothing() -> None:
    return None


def _by_host(links: Links, comm: Communicator, attempt: Attempt, reason: str) -> ByHost:
    return ByHost(links.memory, comm, attempt, reason)


MAKERS: Mapping[str, Callable[[Links, Communicator, Attempt, str], Transport]] = {
    "mpi-gpu": ByMpi,
    "nccl": ByNccl,
    "ipc": BySharedMemory,
    "host": _by_host,
}
