"""One rank: nothing is sent, and no MPI library is loaded."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from numpy_dist.comm.base import Bytes, Communicator, Message, PendingExchange

__all__ = ["SingleCommunicator"]


class SingleCommunicator(Communicator):
    """The communicator of a process that runs alone."""

    name = "single"

    def __init__(self) -> None:
        super().__init__(rank=0, size=1)

    def _allgather_fixed(self, part: bytes) -> bytes:
        return part

    def _allgather_parts(self, part: Bytes, sizes: Sequence[int]) -> Bytes:
        return part

    def _alltoall_fixed(self, parts: Bytes) -> Bytes:
        return parts

    def _sum_numbers(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        return numbers

    def _bcast_into(self, buffer: Bytes, root: int) -> None:
        return None

    def _start(self, sends: list[Message], receives: list[Message], tag: int) -> PendingExchange:
        raise AssertionError("with one rank there is nobody to send to")

    def _refuse(self) -> None:
        # A forked child of a job with one rank is another job with one rank.
        self._pid = os.getpid()

    def abort(self, code: int = 1) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)

    def fail(self, exception: BaseException) -> None:
        return None
