"""CUDA devices as ranks see them, without loading CuPy: how many there are, and whether MPI takes their memory."""

from __future__ import annotations

import ctypes
import importlib.util
import os
from functools import lru_cache

__all__ = ["go_into_messages", "usable"]

_DRIVER_FILES = ("/dev/nvidiactl", "/dev/dxg")  # the second one is that of Windows' Linux


@lru_cache(maxsize=1)
def usable() -> int:
    """The devices that this process sees; 0 without CuPy, and where the driver has none to give."""
    if not any(map(os.path.exists, _DRIVER_FILES)) or importlib.util.find_spec("cupy") is None:
        return 0
    return _driver_count()


def _driver_count() -> int:
    """What the driver tells; 0 where it cannot be loaded or does not start."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return 0
    count = ctypes.c_int()
    if driver.cuInit(0) != 0 or driver.cuDeviceGetCount(ctypes.byref(count)) != 0:
        return 0
    return count.value


def go_into_messages(library: str) -> bool:
    """Whether MPI, which has started, takes messages in the memory of devices.

    MPICH and Open MPI tell by a function of their own; a library without it does not take them.

    Parameters
    ----------
    library : str
        A file that was loaded and needs the MPI library.
    """
    tells = getattr(ctypes.CDLL(library), "MPIX_Query_cuda_support", None)
    return tells is not None and tells() == 1
