"""One rank of a job whose other ranks do not exist: it counts what it would send, and gets stand-ins for an answer."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from numpy_dist.comm.base import Bytes, Communicator, Message, PendingExchange
from numpy_dist.comm.divergence.positions import caller_line

__all__ = ["Broadcasts", "CountingCommunicator"]

Broadcasts = dict[int, list[Bytes]]
"""What the ranks that ran so far have broadcast, by rank, in order."""


_MOST_COPIED = 1 << 24  # bytes of objects, up to which each rank's is one of its own


class _Delivered(PendingExchange):
    def wait(self) -> None:
        return None

    def done(self) -> bool:
        return True


class CountingCommunicator(Communicator):
    """The communicator of a rank that runs alone as one of many.

    Every other rank is taken to contribute to a collective what this one does. Messages that it waits for hold zeros.
    Broadcasts are those of the root, which must have run before with the same `broadcasts`.

    Parameters
    ----------
    rank, size : int
    broadcasts : Broadcasts
        Shared by the ranks of one job.
    """

    name = "simulated"
    delivers = False

    def __init__(self, rank: int, size: int, broadcasts: Broadcasts) -> None:
        super().__init__(rank, size)
        self._broadcasts = broadcasts
        self._taken = dict.fromkeys(range(size), 0)
        broadcasts[rank] = []

    def allgather(self, obj: object) -> list[Any]:
        """As in `Communicator`; of large objects there is one for all ranks."""
        self._begin_collective("allgather")
        payload = pickle.dumps(obj, protocol=5)
        self.counters.bytes += len(payload)
        if self.size > 1:
            self._allgather_slots(payload)
        copies = 1 if len(payload) * self.size > _MOST_COPIED else self.size
        made = [pickle.loads(payload) for _ in range(copies)]
        return self._ended(made * (self.size // copies))

    def _allgather_fixed(self, part: bytes) -> bytes:
        return part * self.size

    def _allgather_parts(self, part: Bytes, sizes: Sequence[int]) -> Bytes:
        return np.concatenate([np.resize(part, n) for n in sizes])

    def _alltoall_fixed(self, parts: Bytes) -> Bytes:
        each = parts.size // self.size
        return np.tile(parts[self.rank * each : (self.rank + 1) * each], self.size)

    def _sum_numbers(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        return numbers * self.size

    def _bcast_into(self, buffer: Bytes, root: int) -> None:
        if root == self.rank:
            self._broadcasts[root].append(buffer.copy())
            return
        number = self._taken[root]
        sent = self._broadcasts.get(root, [])
        if number >= len(sent) or sent[number].size != buffer.size:
            raise RuntimeError(
                f"rank {self.rank} waits at {caller_line()} for a broadcast of rank {root}, which has sent none: ranks "
                "are counted one by one, rank 0 first (spmd_testing.run_simulated with BACKEND=null runs all of them)"
            )
        buffer[...] = sent[number]
        self._taken[root] = number + 1

    def _bcast_slot(self, slot: bytes, root: int) -> bytes:
        buffer = np.frombuffer(slot, np.uint8).copy()
        self._bcast_into(buffer, root)
        return buffer.tobytes() * self.size

    def _start(self, sends: list[Message], receives: list[Message], tag: int) -> PendingExchange:
        for _, buffer, _ in receives:
            buffer[...] = 0
        return _Delivered()

    def abort(self, code: int = 1) -> None:
        raise SystemExit(code)

    def fail(self, exception: BaseException) -> None:
        """Nobody is there to be told."""
