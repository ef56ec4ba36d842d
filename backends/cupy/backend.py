"""The CuPy backend: loops run as generated CUDA kernels, or on the host where there is none."""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from numpy_dist.backends.base import Loop
from numpy_dist.backends.cuda.by_host import interpret
from numpy_dist.backends.cuda.lowering import NotGenerated
from numpy_dist.backends.cuda.runner import run
from numpy_dist.backends.cuda.source import OPTIONS, THREADS, Kernel
from numpy_dist.backends.cupy.memory import CupyMemory
from numpy_dist.settings import config


class CupyBackend:
    """Executes loops on the current device.

    Attributes
    ----------
    counts : dict
        Loops by what ran them: "cuda", "host"; and why the latter did.
    """

    name = "cupy"

    def __init__(self) -> None:
        self.memory = CupyMemory()
        self.counts = {"cuda": 0, "host": 0}
        self.reasons: dict[str, int] = {}
        self._functions: dict[str, Any] = {}

    def run(self, loop: Loop) -> None:
        """Start a loop (see `backends.base.Loop`)."""
        reason = loop.memo.get("reason")
        if reason is None:
            try:
                run(loop, self.memory, cupy.ndarray, self._launch)
                self.counts["cuda"] += 1
                return
            except NotGenerated as why:
                reason = loop.memo["reason"] = str(why)
        self.counts["host"] += 1
        self.reasons[reason] = self.reasons.get(reason, 0) + 1
        interpret(loop, self.memory, cupy.ndarray)

    def fence(self) -> None:
        """Wait until everything that was started has finished."""
        self.memory.fence()

    def tier(self, memo: dict[str, Any]) -> str:
        """As in `backends.base.Backend`."""
        return f"host: {memo['reason']}" if "reason" in memo else "cuda"

    def _launch(self, kernel: Kernel, words: np.ndarray, grid: tuple[int, int]) -> None:
        function = self._functions.get(kernel.name)
        if function is None:
            module = cupy.RawModule(code=kernel.text, options=OPTIONS)  # CuPy keeps compiled ones on disk
            function = self._functions[kernel.name] = module.get_function(kernel.name)
        block = words.view(np.dtype([("w", np.int64, len(words))]))  # one argument, passed by value
        function(grid, (THREADS,), (block,))


def make(ranks_here: int, rank_here: int = 0) -> CupyBackend:
    """A new backend, on the device of a local rank.

    Raises
    ------
    ValueError
        Without a device, or for a transport that this version does not have.
    """
    if config.TRANSPORT not in ("auto", "host"):
        raise ValueError(f"TRANSPORT={config.TRANSPORT!r}: this version of numpy_dist has the transport host")
    if not cupy.is_available():
        raise ValueError("BACKEND='cupy': CuPy finds no CUDA device here")
    cupy.cuda.Device(device_of(rank_here, cupy.cuda.runtime.getDeviceCount())).use()
    return CupyBackend()


def device_of(rank_here: int, devices: int) -> int:
    """The device of a rank of this machine: one each, and dealt out in turn where there are more ranks."""
    return rank_here % devices
