"""CuPy's functions as the library of a device (see `backends.library`)."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any

import cupy
import cupyx

from numpy_dist.backends.cuda import random
from numpy_dist.backends.cupy.launcher import KernelLauncher
from numpy_dist.backends.library import ModuleLibrary, register


class CupyLibrary(ModuleLibrary):
    """What CuPy computes on its arrays, on its current stream."""

    def __init__(self, launch: KernelLauncher) -> None:
        super().__init__(cupy, _raising)
        self._launch = launch
        register(cupy.ndarray, lambda x: self)

    def uniform(self, x: cupy.ndarray, state: Mapping[str, Any], low: float, span: float) -> bool:
        """As in `Library`, by a kernel of our own: CuPy's generators are others than NumPy's."""
        if not random.knows(state["bit_generator"]):
            return False
        if x.size:
            random.uniform(x.data.ptr, x.size, state, low, span, self._launch)
        return True


def _raising() -> AbstractContextManager:
    """CuPy looks whether a decomposition has succeeded, and waits for that, only if it is asked to."""
    return cupyx.errstate(linalg="raise")
