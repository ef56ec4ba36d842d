"""What stands for the ways between fake devices: an MPI that takes their memory, memory that is shared, and NCCL.

All of them are as careless as the real ones: MPI reads and writes at once whatever is there, shared memory is seen by
others before it was written, and NCCL works on a stream of its own.
"""

from __future__ import annotations

import os
from collections import defaultdict, deque
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from numpy_dist.backends.fake.arrays import FakeArray, FakeStream, Mark, hidden
from numpy_dist.backends.fake.memory import FakeMemory
from numpy_dist.backends.transport import Facts
from numpy_dist.settings import config

if TYPE_CHECKING:
    from numpy_dist.backends.transport import Communicator

PRETENDED: dict[int, Facts] = {}
"""What ranks say of themselves, for tests; others have host memory, and what the setting TRANSPORT asks for."""


class FakeLinks:
    """The ways from one device to others.

    Parameters
    ----------
    memory : FakeMemory
    """

    def __init__(self, memory: FakeMemory) -> None:
        self.memory = memory

    def facts(self, comm: Communicator) -> Facts:
        """As in `Links`."""
        host, device, wanted = os.uname().nodename, f"fake {comm.rank}", config.TRANSPORT
        every = frozenset(f"fake {rank}" for rank in range(comm.size))
        nccl = 1 if wanted == "nccl" and comm.name == "simulated" else 0
        own = Facts(host, device, every if wanted == "ipc" else frozenset((device,)), wanted == "mpi-gpu", nccl)
        return PRETENDED.get(comm.rank, own)

    def side(self) -> FakeSide:
        """As in `Links`."""
        return FakeSide(self.memory)

    def connect(self, comm: Communicator, side: FakeSide) -> None:
        """As in `Links`: ranks are threads of a process, which find each other by an address."""
        comm.barrier()
        name = comm.bcast(f"{os.getpid()} {id(side)}")
        side.net = _NETS.setdefault(name, _Net())
        side.rank = comm.rank
        side.net.sides[comm.rank] = side
        comm.barrier()
        _NETS.pop(name, None)


class _Net:
    """The ranks that NCCL connects, and what is on its way, by sender and receiver."""

    def __init__(self) -> None:
        self.sides: dict[int, FakeSide] = {}
        self.mail: dict[tuple[int, int], deque[np.ndarray]] = defaultdict(deque)


_NETS: dict[str, _Net] = {}


class FakeSide:
    """A second stream of a fake device, and a third one for what is sent: that never waits for what others send.

    Attributes
    ----------
    net, rank
        Once it is connected.
    """

    def __init__(self, memory: FakeMemory) -> None:
        self._memory, self._stream, self._sent = memory, FakeStream(), FakeStream()
        self.net: _Net | None = None
        self.rank = 0

    def follow(self) -> None:
        """As in `Side`."""
        mark = self._memory.stream.mark()
        self._sent.after(mark)
        self._stream.after(mark)

    def copy(self, target: FakeArray, source: FakeArray) -> None:
        """As in `Side`."""
        self._stream.put(np.copyto, hidden(target), hidden(source))

    def mark(self) -> Mark:
        """As in `Side`."""
        self._stream.after(self._sent.mark())
        return self._stream.mark()

    def fence(self) -> None:
        """As in `Side`."""
        self._stream.fence()

    def exchange(self, sends: Sequence[tuple[int, FakeArray]], receives: Sequence[tuple[int, FakeArray]]) -> None:
        """As in `Side`."""
        self._sent.put(self._send, [(rank, hidden(buffer)) for rank, buffer in sends])
        self._stream.put(self._receive, [(rank, hidden(buffer)) for rank, buffer in receives])

    def _send(self, out: list[tuple[int, np.ndarray]]) -> None:
        assert self.net is not None
        for rank, buffer in out:
            self.net.mail[self.rank, rank].append(buffer.copy())

    def _receive(self, into: list[tuple[int, np.ndarray]]) -> None:
        assert self.net is not None
        for rank, buffer in into:
            mail = self.net.mail[rank, self.rank]
            while not mail:
                self.net.sides[rank]._sent.step()
            message = mail.popleft()
            assert message.size == buffer.size, "NCCL: the ranks do not agree on the size of a message"
            buffer[...] = message
