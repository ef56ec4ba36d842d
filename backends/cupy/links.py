"""The ways between devices, by CuPy: what `backends.device_transports` builds on."""

from __future__ import annotations

import importlib
import os
import warnings
from collections.abc import Sequence
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING, Any

import cupy

from numpy_dist.backends.cupy.memory import CupyMemory
from numpy_dist.backends.transport import Facts

if TYPE_CHECKING:
    from numpy_dist.backends.transport import Communicator

OLDEST_NCCL = 20700  # the first with messages between two ranks


class CupyLinks:
    """The ways from the current device to others.

    Parameters
    ----------
    memory : CupyMemory
    """

    def __init__(self, memory: CupyMemory) -> None:
        self.memory = memory

    def facts(self, comm: Communicator) -> Facts:
        """As in `Links`. Threads of one process can not open each other's memory, and need not: they have it."""
        own = cupy.cuda.Device().id
        processes = comm.name == "mpi"
        return Facts(
            host=_host(),
            device=device_name(own),
            reaches=reached_from(own) if processes else frozenset(),
            mpi=comm.takes_device_memory,
            nccl=nccl_version() if processes else 0,
        )

    def side(self) -> CupySide:
        """As in `Links`."""
        return CupySide()

    def connect(self, comm: Communicator, side: CupySide) -> None:
        """As in `Links`."""
        nccl = _nccl()
        identity = comm.bcast(nccl.get_unique_id() if comm.rank == 0 else None)
        side.nccl = nccl.NcclCommunicator(comm.size, identity, comm.rank)


class CupySide:
    """A stream beside the current one; it does not wait for the default stream unasked.

    Attributes
    ----------
    nccl : NcclCommunicator or None
        Once it is connected.
    """

    def __init__(self) -> None:
        self._stream = cupy.cuda.Stream(non_blocking=True)
        self.nccl: Any = None

    def follow(self) -> None:
        """As in `Side`."""
        event = cupy.cuda.Event(disable_timing=True)
        event.record(cupy.cuda.get_current_stream())
        self._stream.wait_event(event)

    def copy(self, target: cupy.ndarray, source: cupy.ndarray) -> None:
        """As in `Side`."""
        runtime = cupy.cuda.runtime
        runtime.memcpyAsync(target.data.ptr, source.data.ptr, target.size, runtime.memcpyDefault, self._stream.ptr)

    def exchange(
        self, sends: Sequence[tuple[int, cupy.ndarray]], receives: Sequence[tuple[int, cupy.ndarray]]
    ) -> None:
        """As in `Side`: all messages as one group, so that none waits for another one's turn."""
        nccl = _nccl()
        kind, stream = nccl.NCCL_UINT8, self._stream.ptr
        nccl.groupStart()
        try:
            for rank, buffer in sends:
                self.nccl.send(buffer.data.ptr, buffer.size, kind, rank, stream)
            for rank, buffer in receives:
                self.nccl.recv(buffer.data.ptr, buffer.size, kind, rank, stream)
        finally:
            nccl.groupEnd()

    def mark(self) -> cupy.cuda.Event:
        """As in `Side`."""
        event = cupy.cuda.Event(disable_timing=True)
        event.record(self._stream)
        return event

    def fence(self) -> None:
        """As in `Side`."""
        self._stream.synchronize()


@cache
def _nccl() -> ModuleType:
    """CuPy's module. Without NCCL there is nothing in it, and CuPy warns; here that is no fault."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return importlib.import_module("cupy.cuda.nccl")


def _host() -> str:
    """A name of this machine: containers on it may have others, but it has been started once."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            return file.read().strip()
    except OSError:
        return os.uname().nodename


@cache
def device_name(number: int) -> str:
    """A name of a device that is the same in all processes of the machine."""
    properties = cupy.cuda.runtime.getDeviceProperties(number)
    identity = properties.get("uuid", b"")  # not in every version; tells parts of one card (MIG) apart
    return f"{cupy.cuda.runtime.deviceGetPCIBusId(number)} {bytes(identity).hex()}".strip()


def reached_from(own: int) -> frozenset[str]:
    """The devices whose memory this one can reach, by name; only those that this process sees."""
    runtime = cupy.cuda.runtime
    count = runtime.getDeviceCount()
    near = [number for number in range(count) if number == own or runtime.deviceCanAccessPeer(own, number)]
    return frozenset(map(device_name, near))


def nccl_version() -> int:
    """Of NCCL; 0 where CuPy has none, or one that is too old."""
    nccl = _nccl()
    if not nccl.available:
        return 0
    version = int(nccl.get_version())
    return version if version >= OLDEST_NCCL else 0


def seen_from_here() -> list[Facts]:
    """What ranks would say of themselves: one for each device that this process sees, or two that share the only one.

    For `numpy-dist info`, which is no MPI job. Whether MPI takes the memory of devices is known in a job only.
    """
    numbers = list(range(cupy.cuda.runtime.getDeviceCount()))
    host, version = _host(), nccl_version()
    return [Facts(host, device_name(k), reached_from(k), False, version) for k in (numbers * 2)[: max(2, len(numbers))]]
