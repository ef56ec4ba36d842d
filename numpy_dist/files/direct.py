"""Direct output: from memory to the disk, past the page cache, for whoever writes while the program computes.

A write into the page cache is a copy, into pages that the system must find and clear first: processor time that is
taken from the program. The disk fetches whole pages by itself where they lie at the same remainder of a page in memory
and in the file (``O_DIRECT``). File systems without that, and what is no whole page, are written in the ordinary way.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable

import numpy as np

from numpy_dist.files.pieces import write_all

__all__ = ["memory_for", "open_direct", "write_direct"]

_PAGE = 4096  # of memory, and the largest block of usual disks
_DIRECT = getattr(os, "O_DIRECT", 0)


def memory_for(place: int, nbytes: int, make: Callable[[int], np.ndarray]) -> np.ndarray:
    """Memory for bytes that are to be written at a place of a file, with the place's remainder of a page.

    Parameters
    ----------
    place, nbytes : int
    make : callable
        ``make(n)``: a one-dimensional array of so many bytes.
    """
    whole = make(nbytes + _PAGE)
    start = (place - whole.ctypes.data) % _PAGE
    return whole[start : start + nbytes]


def open_direct(path: str | os.PathLike[str]) -> int:
    """A descriptor for direct output to a file that exists; -1 where its file system has none."""
    if not _DIRECT:
        return -1
    try:
        return os.open(path, os.O_WRONLY | _DIRECT | os.O_CLOEXEC)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        return -1


def write_direct(direct: int, descriptor: int, data: memoryview, place: int) -> None:
    """Write bytes at a place of a file, all of them or with an error; whole pages past the page cache, if they can.

    Parameters
    ----------
    direct : int
        Of `open_direct`.
    descriptor : int
        An ordinary one of the same file.
    data : memoryview
    place : int
    """
    start = -place % _PAGE
    stop = start + (len(data) - start) // _PAGE * _PAGE
    if direct < 0 or stop <= start or (np.frombuffer(data, np.uint8).ctypes.data - place) % _PAGE:
        write_all(descriptor, data, place)
        return
    try:
        written = os.pwrite(direct, data[start:stop], place + start)
    except OSError as error:
        if error.errno != errno.EINVAL:  # larger blocks than ours
            raise
        written = 0
    write_all(descriptor, data[:start], place)
    write_all(descriptor, data[start + written :], place + start + written)
