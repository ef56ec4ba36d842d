"""Memory maps of files: all ranks map one file alike, or all raise what one of them has met.

NumPy's own `numpy.memmap` is a call of one rank: where a file is gone or shorter for that rank only, it fails alone, or
has another shape. Here the ranks tell each other what they see, and a file that is to be made is made once.
"""

from __future__ import annotations

import mmap
import os
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import DTypeLike

from numpy_dist import engine
from numpy_dist.comm.portable import on_root
from numpy_dist.files.npy import Path
from numpy_dist.files.reading import agreed

if TYPE_CHECKING:
    from numpy_dist.comm.base import Communicator

__all__ = ["compare_maps", "memmap"]

_MAKES = ("w+", "write")  # modes that make the file anew
Mode = Literal["readonly", "r", "copyonwrite", "c", "readwrite", "r+", "write", "w+"]


class _NumPysInstances(type):
    """The metaclass of `memmap`, of which NumPy's memory maps are instances."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, np.memmap) if cls is memmap else super().__instancecheck__(instance)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, np.memmap) if cls is memmap else super().__subclasscheck__(subclass)


class memmap(np.memmap, metaclass=_NumPysInstances):  # noqa: N801 - NumPy's name
    """A memory map of a file, as `numpy.memmap` makes it: of a file given by name, alike on all ranks (collective).

    It is NumPy's, with all of the file on each rank; `numpy_dist.asarray` of it reads each rank's part. A file that is
    made (``mode="w+"``) is made by rank 0, and mapped by all that see it.

    Parameters
    ----------
    filename : str, path-like or file object
    dtype, mode, offset, shape, order
        As for `numpy.memmap`.

    Raises
    ------
    OSError, ValueError
        On every rank, NumPy's error on the first that cannot map the file, with its number; or that the file is not the
        same for all.
    """

    def __new__(
        subtype,  # noqa: N804 - NumPy's name
        filename: Any,
        dtype: DTypeLike = np.uint8,
        mode: Mode = "r+",
        offset: int = 0,
        shape: int | tuple[int, ...] | None = None,
        order: Literal["C", "F"] = "C",
    ) -> Any:
        kind: Any = np.memmap if subtype is memmap else subtype
        comm = engine.runtime().comm

        def mapped(mode: Mode) -> object:
            return np.memmap.__new__(kind, filename, dtype, mode, offset, shape, order)

        if comm.size == 1 or not isinstance(filename, str | os.PathLike):
            return mapped(mode)
        made: Any = None

        def make() -> tuple[int, int, int]:
            nonlocal made
            made = mapped(mode)
            return _identity(filename)

        if mode in _MAKES:
            whose = on_root(make, comm)

        def look() -> str:
            nonlocal made
            if made is None:
                made = mapped("r+" if mode in _MAKES and _is(filename, whose) else mode)
                made.mode = mode  # as if it had made the file
            return f"an array of shape {made.shape}, {made.dtype}"

        agreed(comm, filename, look)
        return made


def compare_maps(comm: Communicator, given: np.memmap) -> None:
    """Make sure that all ranks have mapped the same, and that it is still there (collective, one allgather).

    Raises
    ------
    ValueError
        On every rank.
    """
    path: str | os.PathLike[str] = given.filename or "a file without a name"

    def look() -> str:
        if _is_cut_off(given):
            raise ValueError(f"{os.fspath(path)} has become shorter since it was mapped")
        return f"an array of shape {given.shape}, {given.dtype}"

    agreed(comm, path, look)


def _is_cut_off(given: np.memmap) -> bool:
    """Whether the file has become shorter than what was mapped of it: to read the rest would end the process."""
    base: object = given
    while isinstance(base, np.ndarray):
        base = base.base
    if not isinstance(base, mmap.mmap):  # a copy, in memory
        return False
    start = given.offset - given.offset % mmap.ALLOCATIONGRANULARITY
    return base.size() < start + len(base)


def _identity(path: Path) -> tuple[int, int, int]:
    """What tells whether two ranks see the same file: the numbers of file systems are each machine's own."""
    found = os.stat(path)
    return found.st_ino, found.st_size, found.st_mtime_ns


def _is(path: Path, identity: tuple[int, int, int]) -> bool:
    try:
        return _identity(path) == identity
    except OSError:
        return False
