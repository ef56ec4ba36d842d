"""What every communicator does, and the few operations that a backend supplies.

Pickling, the sizes of messages, chunks of very large ones, self-messages and counting are written here once. A backend
supplies a few operations on bytes: an allgather of equal slots, an allgather of unequal parts, equal parts from each
to each (all-to-all), sums of integers, a broadcast into a buffer, and the start of point-to-point messages.
"""

from __future__ import annotations

import os
import pickle
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, pairwise
from struct import Struct
from typing import Any, NoReturn, TypeVar

import numpy as np
from numpy.typing import NDArray

from numpy_dist.comm import devices
from numpy_dist.comm.divergence.checks import Checks
from numpy_dist.comm.supervision.signals import AgreedSignals

__all__ = ["PROGRAM_TAG", "Communicator", "Message", "PendingExchange", "TrafficCounters", "dealt_out"]

T = TypeVar("T")

Bytes = NDArray[np.uint8]
Message = tuple[int, Bytes, int]
"""To or from which rank, the memory, and the mark of what it is."""

# Every rank contributes one slot of this size to the first round of a collective on objects; what does not fit follows
# in a second round, for which all ranks then know all sizes. Scalars and small metadata need one round only.
SLOT_BYTES = 256
_LENGTH_BYTES = _MARK_BYTES = 8  # one number each, little-endian
_LENGTH_BITS = 48  # above them the number of a signal
_INLINE_BYTES = SLOT_BYTES - _LENGTH_BYTES - _MARK_BYTES
# Array data that travels inside the slot, so that the dtype and shape beside it still fit.
INLINE_DATA_BYTES = 128

_EMPTY: Bytes = np.empty(0, np.uint8)


@lru_cache
def _slots(count: int) -> Struct:
    """The form of slots: of each the length of its payload, the mark, and what fits of the payload."""
    return Struct("<" + f"Qq{_INLINE_BYTES}s" * count)


@dataclass
class TrafficCounters:
    """What one rank has communicated.

    Attributes
    ----------
    messages : int
        Point-to-point messages that were sent to other ranks (chunks of one large message count once).
    bytes : int
        Bytes of array data and pickles that this rank sent, once each, whatever the number of receivers.
    collectives : int
        Collective operations that this rank took part in.
    """

    messages: int = 0
    bytes: int = 0
    collectives: int = 0

    def reset(self) -> None:
        """Set all counts to 0."""
        self.messages = self.bytes = self.collectives = 0


class PendingExchange(ABC):
    """An exchange that was started; its buffers belong to the communicator until `wait` returns."""

    @abstractmethod
    def wait(self) -> None:
        """Return when all messages of this exchange have been delivered; further calls return at once."""

    @abstractmethod
    def done(self) -> bool:
        """Whether `wait` would return at once; also drives the messages on, so call it between pieces of work.

        Raises `numpy_dist.errors.RankError`, if it is called again and again, for a rank that has ended.
        """


class _Nothing(PendingExchange):
    def wait(self) -> None:
        return None

    def done(self) -> bool:
        return True


class Communicator(ABC):
    """The ranks of one job.

    All methods but exchanges, transfers, `abort` and `fail` are collective: every rank calls the same ones in the same
    order. A rank that waits for one that has ended gets `numpy_dist.errors.RankError`, which names it.

    Attributes
    ----------
    rank, size : int
        This rank and the number of ranks.
    name : str
        "single", "mpi" or "simulated".
    node_size : int
        How many of the ranks run on this machine.
    node_rank : int
        The number of this rank among those.
    nodes : tuple of int
        The number of the machine of each rank, in the order of their first ranks; empty where there is one.
    native : object
        The mpi4py communicator, for the user's own messages; None where there is none.
    counters : TrafficCounters
        What this rank has communicated.
    refuse_gathers : bool
        Tests set it; the engine then raises `CommunicationRefused` where it would gather a whole array.
    checks : Checks or None
        What it knows of whether the ranks do the same; None for a single rank.
    signals : AgreedSignals
        Those that came while ranks wait for each other.
    devices : sequence of int
        For each rank how many CUDA devices it could use by CuPy.
    delivers : bool
        Whether messages hold what others have sent; else zeros (`comm.counting`).
    unwritten : callable or None
        Is told how many bytes would be written to files, which stay as they are, where a program is only planned; None
        where files are written.
    takes_device_memory : bool
        Whether messages may lie in the memory of CUDA devices.
    max_message : int
        Bytes in one message of the transport; larger ones travel in chunks (MPI counts may be 32-bit).
    observer : Recorder or None
        What is told of collectives and messages while there is a profile (`profiling.recorder`).
    """

    name: str
    node_size: int = 1
    node_rank: int = 0
    nodes: tuple[int, ...] = ()
    native: Any = None
    refuse_gathers: bool = False
    delivers: bool = True
    unwritten: Callable[[int], object] | None = None
    takes_device_memory: bool = False
    observer: Any = None
    _devices: Sequence[int] = ()
    max_message: int = 1 << 30

    def __init__(self, rank: int, size: int) -> None:
        self.rank = rank
        self.size = size
        self.counters = TrafficCounters()
        self.checks: Checks | None = Checks(self) if size > 1 else None
        self.signals = AgreedSignals()
        self._pid = os.getpid()  # 0: of no process any more, see `_refuse`

    @property
    def devices(self) -> Sequence[int]:
        """As above; not collective."""
        return self._devices or [devices.usable()] * self.size

    def __repr__(self) -> str:
        return f"<{self.name} communicator: rank {self.rank} of {self.size}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a communicator cannot be pickled: it belongs to one process")

    # -- what a backend supplies -------------------------------------------------------------------------------------

    @abstractmethod
    def _allgather_fixed(self, part: bytes) -> bytes | bytearray:
        """The parts of all ranks, of equal size, one after the other."""

    @abstractmethod
    def _allgather_parts(self, part: Bytes, sizes: Sequence[int]) -> Bytes:
        """The parts of all ranks, of the given sizes, one after the other; not more than `max_message` in all."""

    @abstractmethod
    def _alltoall_fixed(self, parts: Bytes) -> Bytes:
        """Of equal parts, one for each rank, those that all ranks have for this one, in rank order."""

    @abstractmethod
    def _sum_numbers(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """The sums of the ranks' numbers, on every rank."""

    @abstractmethod
    def _bcast_into(self, buffer: Bytes, root: int) -> None:
        """Fill `buffer` on all ranks with that of `root`; not more than `max_message`."""

    @abstractmethod
    def _start(self, sends: list[Message], receives: list[Message], tag: int) -> PendingExchange:
        """Start messages to and from other ranks; those of one pair of ranks and tag match in order.

        Of those with the tag `PROGRAM_TAG` the marks of both sides must be the same: a backend never delivers others,
        and says so on every rank that waits.
        """

    @abstractmethod
    def abort(self, code: int = 1) -> None:
        """End the job at once, on all ranks, with this exit code; does not return."""

    @abstractmethod
    def fail(self, exception: BaseException) -> None:
        """Tell the other ranks that this one ends with `exception`; not collective, returns at once."""

    # -- collectives on small objects --------------------------------------------------------------------------------

    def allgather(self, obj: object) -> list[Any]:
        """Return the objects of all ranks, in rank order, on every rank (pickled, also this rank's own)."""
        self._begin_collective("allgather")
        return self._ended([pickle.loads(payload) for payload in self._allgather_payloads(_dumps(obj))])

    def bcast(self, obj: object = None, root: int = 0) -> Any:
        """Return `root`'s object on every rank."""
        self._begin_collective("bcast", root)
        return self._ended(pickle.loads(self._bcast_payload(_dumps(obj) if self.rank == root else None, root)))

    def gather(self, obj: T, root: int = 0) -> list[T] | None:
        """Return the objects of all ranks, in rank order, on `root`; None on the others."""
        self._begin_collective("gather", root)
        payload = _dumps(obj)
        self.counters.bytes += len(payload)
        inline, lengths = self._allgather_slots(payload)
        # Only the root receives what did not fit into the slots.
        large = [rank for rank in range(self.size) if lengths[rank] > _INLINE_BYTES and rank != root]
        buffers = {rank: np.empty(lengths[rank], np.uint8) for rank in large} if self.rank == root else {}
        if buffers:
            self._start(*self._chunked([], [(r, b, 0) for r, b in buffers.items()]), _OBJECT_TAG).wait()
        elif self.rank in large:
            self._start(*self._chunked([(root, _as_bytes(payload), 0)], []), _OBJECT_TAG).wait()
        if self.rank != root:
            return self._ended(None)
        inline[root] = payload
        return self._ended(
            [_loads(buffers[rank]) if rank in buffers else pickle.loads(inline[rank]) for rank in range(self.size)]
        )

    def scatter(self, objects: Sequence[T] | None, root: int = 0) -> T:
        """Return ``objects[rank]`` of the sequence that `root` passes (the others pass None)."""
        self._begin_collective("scatter", root)
        if self.rank == root:
            payloads, problem = self._scatter_payloads(objects)
            plan = _dumps((problem, [len(payload) for payload in payloads]))
        else:
            payloads, plan = [], None
        # The plan goes out even if the root's argument is wrong, so that all ranks raise and none waits.
        problem, lengths = pickle.loads(self._bcast_payload(plan, root))
        if problem is not None:
            raise ValueError(problem)
        if self.rank == root:
            sends = [(rank, _as_bytes(payloads[rank]), 0) for rank in range(self.size) if rank != root]
            self.counters.bytes += sum(data.nbytes for _, data, _ in sends)
            if sends:
                self._start(*self._chunked(sends, []), _OBJECT_TAG).wait()
            return self._ended(pickle.loads(payloads[root]))
        buffer = np.empty(lengths[self.rank], np.uint8)
        self._start(*self._chunked([], [(root, buffer, 0)]), _OBJECT_TAG).wait()
        return self._ended(_loads(buffer))

    def barrier(self) -> None:
        """Return when every rank has called it."""
        self._begin_collective("barrier")
        if self.size > 1:
            self._allgather_slots(b"")
        self._ended(None)

    # -- arrays ------------------------------------------------------------------------------------------------------

    def allgather_array(self, array: np.ndarray) -> list[np.ndarray]:
        """Return the arrays of all ranks, in rank order, on every rank.

        The dtype must be the same on every rank (else every rank raises ValueError); shapes may differ and are sent
        along. The results are C-contiguous and writable, and own no memory of `array`.
        """
        self._begin_collective("allgather_array")
        array = np.asarray(array)
        if array.dtype.hasobject:
            return self._ended([pickle.loads(payload) for payload in self._allgather_payloads(_dumps(array))])
        array = np.asarray(array, order="C")
        dtype: np.dtype | str = array.dtype if array.dtype.names or array.dtype.subdtype else array.dtype.str
        data = _flat_bytes(array)
        inline = data.tobytes() if data.size <= INLINE_DATA_BYTES else None
        headers = [pickle.loads(p) for p in self._allgather_payloads(_dumps((dtype, array.shape, inline)))]
        dtypes = [np.dtype(header[0]) for header in headers]
        if any(other != dtypes[0] for other in dtypes):
            raise ValueError(f"allgather_array: the dtypes of the ranks differ: {[str(d) for d in dtypes]}")
        lengths = [0 if h[2] is not None else _nbytes(h[1], array.dtype) for h in headers]
        gathered = self._allgather_large(_EMPTY if inline is not None else data, lengths)
        results, start = [], 0
        for (_, shape, raw), length in zip(headers, lengths, strict=True):
            result = np.empty(shape, array.dtype)
            if result.nbytes:
                source = _as_bytes(raw) if raw is not None else gathered[start : start + length]
                _flat_bytes(result)[...] = source
            results.append(result)
            start += length
        return self._ended(results)

    def alltoall(self, numbers: np.ndarray) -> np.ndarray:
        """Return the numbers that all ranks have for this one, in rank order.

        A table of such numbers for all pairs of ranks, as an allgather brings it, has the square of the ranks' number.

        Parameters
        ----------
        numbers : ndarray of int64, shape (size, ...)
            What this rank has for each rank; of one shape on all of them.

        Returns
        -------
        ndarray of int64, of the same shape
        """
        self._begin_collective("alltoall")
        given = np.ascontiguousarray(numbers, np.int64)
        if len(given) != self.size:
            raise ValueError(f"alltoall: numbers for {len(given)} ranks, of {self.size}")
        if self.size == 1:
            return self._ended(given.copy())
        self.counters.bytes += given.nbytes
        self._allgather_slots(b"")
        return self._ended(self._alltoall_fixed(_flat_bytes(given)).view(np.int64).reshape(given.shape))

    def allsum(self, numbers: np.ndarray) -> np.ndarray:
        """Return the sums of the ranks' numbers, int64 and of one shape on all of them, on every rank."""
        self._begin_collective("allsum")
        given = np.ascontiguousarray(numbers, np.int64)
        if self.size == 1:
            return self._ended(given.copy())
        self.counters.bytes += given.nbytes
        self._allgather_slots(b"")
        return self._ended(self._sum_numbers(given))

    def start_exchange(
        self, sends: Sequence[tuple[int, np.ndarray]], receives: Sequence[tuple[int, np.ndarray]], tag: int = 0
    ) -> PendingExchange:
        """Start messages to other ranks and into buffers for messages from them.

        Parameters
        ----------
        sends : sequence of (destination, array)
            Contiguous arrays; not to be written to before `Pending.wait` returns.
        receives : sequence of (source, array)
            Contiguous, writable arrays of exactly the size that the source sends.
        tag : int
            0 to 32000. Messages of one pair of ranks and one tag match in the order in which they were started.

        Returns
        -------
        PendingExchange
            Call its ``wait()``. Messages to oneself are copied at once, the n-th send into the n-th receive.
        """
        if not 0 <= tag < _OBJECT_TAG:
            raise ValueError(f"tag must be from 0 to {_OBJECT_TAG - 1}, not {tag}")
        return self._start_messages([(rank, a, 0) for rank, a in sends], [(rank, a, 0) for rank, a in receives], tag)

    def start_transfer(
        self,
        sends: Sequence[tuple[int, np.ndarray]],
        receives: Sequence[tuple[int, np.ndarray]],
        sent: Sequence[int] = (),
        received: Sequence[int] = (),
    ) -> PendingExchange:
        """As `start_exchange`, for messages of what all ranks do at the same place of the program.

        Messages bear the mark of all that the ranks have done so far, so that what a rank of another program sends, at
        this place or from another one, is never taken for what was expected: an error says so.

        Parameters
        ----------
        sends, receives
            As in `start_exchange`.
        sent, received : sequence of int
            What each message is, such as a hash of the regions in it; the same on both sides.
        """
        number = 0 if self.checks is None else self.checks.number()
        out, into = (
            [(rank, a, number + m & _MOST_MARK) for (rank, a), m in zip(given, marks or [0] * len(given), strict=True)]
            for given, marks in ((sends, sent), (receives, received))
        )
        return self._start_messages(out, into, PROGRAM_TAG)

    def transfer(self, sends: Sequence[tuple[int, np.ndarray]], receives: Sequence[tuple[int, np.ndarray]]) -> None:
        """`start_transfer` and wait for it."""
        self.start_transfer(sends, receives).wait()

    def _start_messages(
        self,
        sends: Sequence[tuple[int, np.ndarray, int]],
        receives: Sequence[tuple[int, np.ndarray, int]],
        tag: int,
    ) -> PendingExchange:
        if os.getpid() != self._pid:
            self._refuse()
        out = [(self._check_rank(rank), _contiguous_bytes(a, "sent"), mark) for rank, a, mark in sends]
        into = [(self._check_rank(rank), _contiguous_bytes(a, "received into"), mark) for rank, a, mark in receives]
        for _, buffer, _ in into:
            if isinstance(buffer, np.ndarray) and not buffer.flags.writeable:
                raise ValueError("an array that is received into must be writable")
        me = self.rank
        self._copy_own([a for rank, a, _ in out if rank == me], [a for rank, a, _ in into if rank == me])
        out = [message for message in out if message[0] != me]
        into = [message for message in into if message[0] != me]
        if not out and not into:
            return _Nothing()
        self.counters.messages += len(out)
        self.counters.bytes += sum(a.nbytes for _, a, _ in out)
        pending = self._start(*self._chunked(out, into), tag)
        return pending if self.observer is None else self.observer.started(pending, out, into, tag)

    def exchange(
        self, sends: Sequence[tuple[int, np.ndarray]], receives: Sequence[tuple[int, np.ndarray]], tag: int = 0
    ) -> None:
        """`start_exchange` and wait for it."""
        self.start_exchange(sends, receives, tag).wait()

    # -- shared parts ------------------------------------------------------------------------------------------------

    def _begin_collective(self, kind: str, root: int | None = None) -> None:
        if os.getpid() != self._pid:
            self._refuse()
        details = "" if root is None else f"root {self._check_rank(root)}"
        if self.observer is not None:
            self.observer.collective_began(kind, -1 if root is None else root)
        self.counters.collectives += 1
        if self.checks is not None:
            self.checks.begin(kind, details)

    def _ended(self, result: T) -> T:
        """What a collective returns that has come to its end."""
        if self.observer is not None:
            self.observer.collective_ended()
        return result

    def _refuse(self) -> None:
        if not self._pid:
            raise RuntimeError(
                f"rank {self.rank} cannot communicate any more: the program has called MPI.Finalize(). Call it after "
                "the last use of arrays, or leave it out: MPI is finalised at the end of the program"
            )
        raise RuntimeError(
            f"process {os.getpid()} was forked from rank {self.rank} (process {self._pid}) and cannot communicate; "
            "start processes with the 'spawn' method, or hand them gathered NumPy arrays"
        )

    def _check_rank(self, rank: int) -> int:
        if not 0 <= rank < self.size:
            raise ValueError(f"there is no rank {rank}: the communicator has ranks 0 to {self.size - 1}")
        return rank

    def _scatter_payloads(self, objects: Sequence[object] | None) -> tuple[list[bytes], str | None]:
        if objects is None or len(objects) != self.size:
            given = "None" if objects is None else f"{len(objects)} objects"
            return [], f"scatter: rank {self.rank} must pass one object for each of {self.size} ranks, not {given}"
        return [_dumps(obj) for obj in objects], None

    def _copy_own(self, sends: list[Bytes], receives: list[Bytes]) -> None:
        if [a.size for a in sends] != [a.size for a in receives]:
            raise ValueError(
                f"rank {self.rank} sends itself messages of {[a.size for a in sends]} bytes "
                f"and expects {[a.size for a in receives]}"
            )
        for source, target in zip(sends, receives, strict=True):
            target[...] = source

    def _chunked(self, sends: list[Message], receives: list[Message]) -> tuple[list[Message], list[Message]]:
        """Both sides cut a message in the same way, as both know its size."""
        limit = self.max_message

        def cut(messages: list[Message]) -> list[Message]:
            if all(a.size <= limit for _, a, _ in messages):
                return messages
            return [(rank, a[k : k + limit], m) for rank, a, m in messages for k in range(0, max(a.size, 1), limit)]

        return cut(sends), cut(receives)

    def _bcast_slot(self, slot: bytes, root: int) -> bytes | bytearray:
        """The slots of all ranks, for a broadcast; only that of `root` bears a payload."""
        return self._allgather_fixed(slot)

    def _allgather_slots(self, payload: bytes, root: int | None = None) -> tuple[list[bytes], Sequence[int]]:
        """What the ranks' slots hold (nothing useful if it did not fit), and the lengths of all payloads.

        Every collective begins with this, of whatever kind, so that marks are compared before anything else is sent,
        and each rank tells of a signal that it has met.
        """
        checks = self.checks
        with self.signals as signals:
            size = len(payload) | signals.number() << _LENGTH_BITS
            mark = checks.mark() if checks is not None else 0
            slot = _slots(1).pack(size, mark, payload[:_INLINE_BYTES])
            table = self._allgather_fixed(slot) if root is None else self._bcast_slot(slot, root)
            found = _slots(self.size).unpack(table)
            if checks is not None and found[1::3].count(mark) != self.size:
                checks.differ()
            lengths: Sequence[int] = found[::3]
            if max(lengths) >> _LENGTH_BITS:
                signals.tell([length >> _LENGTH_BITS for length in lengths])
                lengths = [length & (1 << _LENGTH_BITS) - 1 for length in lengths]
        return [held[:n] for held, n in zip(found[2::3], lengths, strict=True)], lengths

    def _allgather_payloads(self, payload: bytes) -> Sequence[bytes]:
        self.counters.bytes += len(payload)
        if self.size == 1:
            return [payload]
        inline, lengths = self._allgather_slots(payload)
        if max(lengths) <= _INLINE_BYTES:
            return inline
        gathered = self._allgather_large(_as_bytes(payload), lengths, count=False)
        starts = np.cumsum([0, *lengths])
        return [gathered[a:b].tobytes() for a, b in zip(starts[:-1], starts[1:], strict=True)]

    def _allgather_large(self, part: Bytes, sizes: Sequence[int], count: bool = True) -> Bytes:
        """An allgather of parts of any size; `count` their bytes."""
        if count:
            self.counters.bytes += part.size
        if not any(sizes):
            return _EMPTY
        if self.size == 1:
            return part
        if sum(sizes) <= self.max_message:
            return self._allgather_parts(part, sizes)
        # Rounds in which each rank contributes an equal share of what one operation may carry.
        share = max(self.max_message // self.size, 1)
        result = np.empty(sum(sizes), np.uint8)
        starts = list(accumulate(sizes[:-1], initial=0))
        for done in range(0, max(sizes), share):
            now = [min(max(n - done, 0), share) for n in sizes]
            gathered, position = self._allgather_parts(part[done : done + share], now), 0
            for start, n in zip(starts, now, strict=True):
                result[start + done : start + done + n] = gathered[position : position + n]
                position += n
        return result

    def _bcast_payload(self, payload: bytes | None, root: int) -> bytes:
        """The payload of `root`; all ranks tell where they are first, so that none goes on with another's."""
        if self.size == 1 and payload is not None:
            return payload
        self.counters.bytes += len(payload or b"")
        inline, lengths = self._allgather_slots(payload or b"", root)
        length = lengths[root]
        if length <= _INLINE_BYTES:
            return inline[root]
        buffer = np.empty(length, np.uint8)
        if payload is not None:
            buffer[...] = _as_bytes(payload)
        for start in range(0, length, self.max_message):
            self._bcast_into(buffer[start : start + self.max_message], root)
        return buffer.tobytes()


# Tags above the users': objects of gather and scatter that did not fit into a slot, and messages with marks.
_OBJECT_TAG = 32001
PROGRAM_TAG = 32002
_MOST_MARK = (1 << 64) - 1


def dealt_out(nodes: Sequence[int]) -> bool:
    """Whether ranks were dealt out to nodes one by one: neighbours, by their numbers, are not on one node."""
    return any(before > after for before, after in pairwise(nodes))


def _dumps(obj: object) -> bytes:
    return pickle.dumps(obj, protocol=5)


def _loads(buffer: Bytes) -> Any:
    return pickle.loads(buffer.data)


def _as_bytes(data: bytes) -> Bytes:
    return np.frombuffer(data, np.uint8)


def _nbytes(shape: tuple[int, ...], dtype: np.dtype) -> int:
    count = dtype.itemsize
    for n in shape:
        count *= n
    return count


def _flat_bytes(array: np.ndarray) -> Bytes:
    """A C-contiguous array's memory (`view` does not accept 0-d arrays or items of no bytes)."""
    return array.reshape(-1).view(np.uint8) if array.nbytes else _EMPTY


def _contiguous_bytes(array: np.ndarray, use: str) -> Bytes:
    if not isinstance(array, np.ndarray):  # bytes in the memory of a device, from a transport that knows MPI takes them
        return array
    flags = array.flags
    if not (flags.c_contiguous or flags.f_contiguous) or array.dtype.hasobject:
        raise ValueError(
            f"an array that is {use} must be contiguous and hold no Python objects: "
            f"shape {array.shape}, strides {array.strides}, dtype {array.dtype}"
        )
    return _flat_bytes(array if flags.c_contiguous else array.T)
