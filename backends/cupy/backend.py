"""The CuPy backend: loops run as generated CUDA kernels, or on the host where there is none."""

from __future__ import annotations

from typing import TYPE_CHECKING

import cupy

from numpy_dist.backends.base import Loop
from numpy_dist.backends.cuda.by_host import interpret
from numpy_dist.backends.cuda.runner import DeviceRepeat, run
from numpy_dist.backends.cupy.launcher import KernelLauncher
from numpy_dist.backends.cupy.links import CupyLinks
from numpy_dist.backends.cupy.memory import CupyMemory
from numpy_dist.backends.device_transports import agree
from numpy_dist.backends.graph import UnfitScalar, Unsupported
from numpy_dist.backends.transport import Attempt, Transport
from numpy_dist.settings import config

if TYPE_CHECKING:
    from numpy_dist.backends.transport import Communicator


class CupyBackend:
    """Executes loops on the current device.

    Attributes
    ----------
    counts : dict
        Loops by what ran them: "cuda", "host"; and why the latter did.
    """

    name = "cupy"

    def __init__(self) -> None:
        self._launch = KernelLauncher()
        self.memory = CupyMemory(self._launch)
        self.counts = {"cuda": 0, "host": 0}
        self.reasons: dict[str, int] = {}

    def run(self, loop: Loop) -> DeviceRepeat | None:
        """Start a loop (see `backends.base.Loop`); one that has a kernel needs no planning when it comes again."""
        if loop.alike:
            loop.memo["reason"] = "ranks without a device have copies of what it computes"
        reason = loop.memo.get("reason")
        if reason is None:
            try:
                repeated = run(loop, self.memory, cupy.ndarray, self._launch)
                self.counts["cuda"] += 1
                return repeated
            except UnfitScalar as why:
                reason = str(why)  # for the time being
            except Unsupported as why:
                reason = loop.memo["reason"] = str(why)
        self.counts["host"] += 1
        self.reasons[reason] = self.reasons.get(reason, 0) + 1
        interpret(loop, self.memory, cupy.ndarray)
        return None

    def fence(self) -> None:
        """Wait until everything that was started has finished."""
        self.memory.fence()

    def transport(self, comm: Communicator, attempt: Attempt) -> Transport:
        """As in `backends.base.Backend`."""
        return agree(config.TRANSPORT, CupyLinks(self.memory), comm, attempt)

    def tier(self, memo: dict[str, object]) -> str:
        """As in `backends.base.Backend`."""
        return f"host: {memo['reason']}" if "reason" in memo else "cuda"


def make(ranks_here: int, rank_here: int = 0) -> CupyBackend:
    """A new backend, on the device of a local rank.

    Raises
    ------
    ValueError
        Without a device.
    """
    if not _has_device():
        raise ValueError("BACKEND='cupy': CuPy finds no CUDA device here")
    cupy.cuda.Device(device_of(rank_here, cupy.cuda.runtime.getDeviceCount())).use()
    return CupyBackend()


def _has_device() -> bool:
    """Whether CuPy finds a device; without a driver that it can use, CuPy 13 raises when it is asked."""
    try:
        return bool(cupy.is_available())
    except cupy.cuda.runtime.CUDARuntimeError:
        return False


def device_of(rank_here: int, devices: int) -> int:
    """The device of a rank of this machine: one each, and dealt out in turn where there are more ranks."""
    return rank_here % devices
