"""Transports: how the shards' messages travel, and which one all ranks take.

A transport packs the parts of a message, sends them, and unpacks what has come. `ByHost` is the one that always works:
messages lie in the host's memory. Devices may have others (`backends.device_transports`); `choose` says which is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

import numpy as np

from numpy_dist.backends.memory import Array, Memory

Sends = Sequence[tuple[int, Sequence[Array]]]
# From whom, how many bytes, and what gives the arrays into which they are unpacked; it is called when they have come.
Receives = Sequence[tuple[int, int, Callable[[], Sequence[Array]]]]
# Of each message that is sent, and of each that is received, a number that is the same on both sides.
Marks = tuple[Sequence[int], Sequence[int]]
UNMARKED: Marks = ((), ())
# Calls a function that takes memory, again if there was too little at first (`engine.memory.pool.Pool.attempt`).
Attempt = Callable[..., Any]

ORDER = ("mpi-gpu", "nccl", "ipc", "host")

T = TypeVar("T")

if TYPE_CHECKING:

    class Pending(Protocol):
        """Messages that were started (see `comm.base.PendingExchange`)."""

        def wait(self) -> None:
            """Return when all of them have been delivered."""

        def done(self) -> bool:
            """Whether `wait` would return at once."""

    class Communicator(Protocol):
        """What transports ask of the ranks (see `comm.base.Communicator`)."""

        rank: int
        size: int

        @property
        def name(self) -> str:
            """ "single", "mpi" or "simulated"."""

        @property
        def takes_device_memory(self) -> bool:
            """Whether messages may lie in the memory of devices."""

        def allgather(self, obj: T) -> list[T]:
            """The objects of all ranks; collective."""

        def bcast(self, obj: T) -> T:
            """The object of rank 0; collective."""

        def barrier(self) -> None:
            """Return when every rank has called it."""

        def start_exchange(
            self, sends: Sequence[tuple[int, Array]], receives: Sequence[tuple[int, Array]], tag: int = 0
        ) -> Pending:
            """Start messages to other ranks, and from them into buffers."""

        def start_transfer(
            self,
            sends: Sequence[tuple[int, Array]],
            receives: Sequence[tuple[int, Array]],
            sent: Sequence[int] = (),
            received: Sequence[int] = (),
        ) -> Pending:
            """As `start_exchange`, for messages of what all ranks do at the same place of the program."""


class Transport(Protocol):
    """Brings parts of arrays to other ranks.

    Attributes
    ----------
    name : str
        As in the setting TRANSPORT.
    reason : str
        Why it was chosen, for people.
    """

    name: str
    reason: str

    def start(self, sends: Sends, receives: Receives, dtype: np.dtype, marks: Marks = UNMARKED) -> Callable[[], None]:
        """Begin to send and to receive; returns what waits and unpacks.

        Called by all ranks alike, also by those that neither send nor receive; what it returns is called in the same
        order on all of them. `marks` tell what the messages are: those of other marks are not taken for them.
        """


class ByHost:
    """Messages in the host's memory: what a host has, or what a device's memory stages there."""

    name = "host"

    def __init__(
        self, memory: Memory, comm: Communicator, attempt: Attempt, reason: str = "arrays lie on the host"
    ) -> None:
        self._memory, self._comm, self._attempt, self.reason = memory, comm, attempt, reason

    def start(self, sends: Sends, receives: Receives, dtype: np.dtype, marks: Marks = UNMARKED) -> Callable[[], None]:
        """As in `Transport`."""
        memory, attempt = self._memory, self._attempt
        out = attempt(memory.pack, [parts for _, parts in sends], dtype) if sends else []
        into = [attempt(memory.message, nbytes) for _, nbytes, _ in receives]
        if sends:
            memory.fence()
        pending = None
        if sends or receives:
            pending = self._comm.start_transfer(
                [(rank, message) for (rank, _), message in zip(sends, out, strict=True)],
                [(rank, message) for (rank, _, _), message in zip(receives, into, strict=True)],
                *marks,
            )

        def finish() -> None:
            if pending is not None:
                pending.wait()
            if receives:
                memory.unpack(into, [targets() for _, _, targets in receives], dtype)

        return finish


# -- which one --------------------------------------------------------------------------------------------------------


class Facts(NamedTuple):
    """What one rank says of itself.

    Attributes
    ----------
    host : str
        The machine.
    device : str
        Its device, by a name that no other one on the machine has.
    reaches : frozenset of str
        Devices of the machine whose memory it can open when other processes share it (CUDA IPC), its own included.
    mpi : bool
        Whether its MPI takes messages in the memory of devices.
    nccl : int
        The version of its NCCL; 0 where there is none.
    """

    host: str
    device: str
    reaches: frozenset[str] = frozenset()
    mpi: bool = False
    nccl: int = 0


class Choice(NamedTuple):
    """A transport, and why it was chosen."""

    name: str
    reason: str


def choose(wanted: str, ranks: Sequence[Facts], failed: Collection[tuple[str, str]] = ()) -> Choice:
    """The transport of a job; a pure function of what all ranks know, so they choose alike.

    Parameters
    ----------
    wanted : str
        The setting TRANSPORT.
    ranks : sequence of Facts
        What each rank says of itself.
    failed : collection of (str, str)
        Transports that could not be set up, and why.

    Raises
    ------
    ValueError
        If another one than ``"auto"`` is wanted, and these ranks do not have it.
    """
    refusals = dict(failed)
    for name in ORDER:
        if (why := _refusal(name, ranks)) is not None:
            refusals.setdefault(name, why)
    if wanted != "auto":
        if wanted in refusals:
            raise ValueError(f"TRANSPORT={wanted!r}: {refusals[wanted]}")
        return Choice(wanted, "the setting TRANSPORT")
    for name in ORDER[:-1]:
        if name not in refusals:
            return Choice(name, _MERITS[name])
    return Choice("host", "; ".join(f"{name}: {refusals[name]}" for name in ORDER[:-1]))


_MERITS = {
    "mpi-gpu": "every rank's MPI takes messages in the memory of devices",
    "nccl": "every rank has NCCL, and a device of its own",
    "ipc": "all ranks are on one machine, and each reaches the others' devices",
}


def _refusal(name: str, ranks: Sequence[Facts]) -> str | None:
    """Why these ranks do not have a transport; None if they do."""
    if name == "mpi-gpu":
        return _first(ranks, lambda f: f.mpi, "the MPI library of rank {} takes no messages in the memory of devices")
    if name == "nccl":
        return _no_nccl(ranks)
    if name == "ipc":
        if len({facts.host for facts in ranks}) > 1:
            return "the ranks are on several machines"
        devices = {facts.device for facts in ranks}
        return _first(ranks, lambda f: devices <= f.reaches, "rank {} can not open the memory of all ranks' devices")
    return None


def _no_nccl(ranks: Sequence[Facts]) -> str | None:
    missing = _first(ranks, lambda f: f.nccl > 0, "rank {} has no NCCL")
    if missing is not None:
        return missing
    if len({facts.nccl for facts in ranks}) > 1:
        return f"the ranks have different versions of NCCL: {sorted({facts.nccl for facts in ranks})}"
    seen: dict[tuple[str, str], int] = {}
    for rank, facts in enumerate(ranks):
        other = seen.setdefault((facts.host, facts.device), rank)
        if other != rank:
            return f"ranks {other} and {rank} share a device"
    return None


def _first(ranks: Sequence[Facts], holds: Callable[[Facts], bool], text: str) -> str | None:
    return next((text.format(rank) for rank, facts in enumerate(ranks) if not holds(facts)), None)
