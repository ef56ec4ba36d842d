"""CuPy's functions as the library of a device (see `backends.library`)."""

from __future__ import annotations

from contextlib import AbstractContextManager

import cupy
import cupyx

from numpy_dist.backends.library import ModuleLibrary, register


class CupyLibrary(ModuleLibrary):
    """What CuPy computes on its arrays, on its current stream."""

    def __init__(self) -> None:
        super().__init__(cupy, _raising)
        register(cupy.ndarray, lambda x: self)


def _raising() -> AbstractContextManager:
    """CuPy looks whether a decomposition has succeeded, and waits for that, only if it is asked to."""
    return cupyx.errstate(linalg="raise")
