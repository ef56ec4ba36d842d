"""Input of distributed arrays from files: each rank reads its part, straight into its memory, after all have looked.

What ranks see of a file may differ from machine to machine: it may be gone on one, or shorter. So they tell each other
before they read, and whether they could read.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np

from numpy_dist.comm.portable import agree, first_error, portable_error
from numpy_dist.files.pieces import read_box
from numpy_dist.layout.regions import Box

if TYPE_CHECKING:
    from numpy_dist.comm.base import Communicator

__all__ = ["ArrayInFile", "Path", "Reader", "agreed", "array_of_bytes", "array_of_npy"]

Path = str | os.PathLike[str]
Found = TypeVar("Found")


class ArrayInFile(NamedTuple):
    """Where the elements of an array lie in a file.

    Attributes
    ----------
    shape : tuple of int
    dtype : dtype
    fortran : bool
        Whether they are in Fortran order.
    offset : int
        Bytes before the first.
    there : int
        How many elements the file has, which may be too few.
    """

    shape: tuple[int, ...]
    dtype: np.dtype
    fortran: bool
    offset: int
    there: int

    def __str__(self) -> str:
        return f"an array of shape {self.shape}, {self.dtype}, and {self.there} elements"

    @property
    def order(self) -> tuple[int, ...]:
        """The shape of which the elements are in C order."""
        return self.shape[::-1] if self.fortran else self.shape


def array_of_npy(path: Path) -> ArrayInFile | None:
    """What the header of an ``.npy`` file says; None for other files, and those of Python objects.

    Raises
    ------
    OSError, ValueError
        As `numpy.load`.
    """
    with open(path, "rb") as file:
        if file.read(6) != b"\x93NUMPY":
            return None
        file.seek(0)
        version = np.lib.format.read_magic(file)
        if version not in ((1, 0), (2, 0)):
            return None
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, fortran, dtype = read(file)
        if dtype.hasobject or not dtype.itemsize:
            return None
        offset = file.tell()
        return ArrayInFile(shape, dtype, fortran, offset, (os.fstat(file.fileno()).st_size - offset) // dtype.itemsize)


def array_of_bytes(path: Path, dtype: np.dtype, count: int, offset: int) -> ArrayInFile:
    """The array that `numpy.fromfile` makes of a file without a header; `count` is -1 for all there is."""
    there = max(os.stat(path).st_size - offset, 0) // dtype.itemsize
    return ArrayInFile((there if count < 0 else min(count, there),), dtype, False, offset, there)


def agreed(comm: Communicator, path: Path, look: Callable[[], Found]) -> Found:
    """What all ranks find where they look into a file (collective, one allgather).

    Raises
    ------
    ValueError
        On every rank, if they find different things, saying which.
    Exception
        On every rank, what the first that cannot look has met.
    """
    found, failure = None, None
    try:
        found = look()
    except Exception as error:
        failure = error
    if comm.size == 1:
        if failure is not None:
            raise failure
        return found  # type: ignore[return-value]
    told = comm.allgather((portable_error(failure), found))
    first = first_error((problem for problem, _ in told), comm.rank, failure)
    if first is not None:
        rank, problem = first
        if any(other is None for other, _ in told):
            problem.add_note(f"rank {rank} has met this; other ranks have not, and may see another file of this name")
        raise problem
    for rank, (_, other) in enumerate(told):
        if other != told[0][1]:
            raise ValueError(
                f"{os.fspath(path)} is not the same for all ranks: rank 0 sees {told[0][1]}, rank {rank} {other}"
            )
    return found  # type: ignore[return-value]


class Reader:
    """What reads the parts of an array in a file.

    Parameters
    ----------
    path : str or path-like
    array : ArrayInFile

    Raises
    ------
    ValueError
        If the file has too few elements, as `numpy.load` says it.
    """

    def __init__(self, path: Path, array: ArrayInFile) -> None:
        self._path, self._stored = path, array
        self._failure: Exception | None = None
        if array.there < prod(array.shape):
            raise _too_short(path, array)

    def fill(self, box: Box, block: np.ndarray) -> None:
        """Read a box of the elements, of the shape in which they are in C order; errors are told by `finish`."""
        try:
            descriptor = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                if hasattr(os, "posix_fadvise"):
                    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_SEQUENTIAL)
                read_box(descriptor, self._stored.offset, self._stored.order, box, block)
            finally:
                os.close(descriptor)
        except EOFError:
            self._failure = _too_short(self._path, self._stored)
        except OSError as error:
            self._failure = error if error.errno is None else type(error)(error.errno, error.strerror, self._path)

    def finish(self, comm: Communicator) -> None:
        """Raise on every rank what one of them has met as it read (collective)."""
        if self._failure is not None and comm.size > 1:
            self._failure.add_note(f"rank {comm.rank} has met this")
        agree(self._failure, comm)


def _too_short(path: Path, array: ArrayInFile) -> ValueError:
    wanted, there = prod(array.shape), max(array.there, 0)
    if there >= wanted:
        return ValueError(f"{os.fspath(path)} has become shorter while it was read")
    return ValueError(
        f"Failed to read all data for array. Expected {array.shape} = {wanted} elements, could only read {there} "
        f"elements. (file seems not fully written?): {os.fspath(path)}"
    )
