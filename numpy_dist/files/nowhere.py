"""Files that nobody writes: where a program is only planned, what goes to them is counted."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from typing import IO

__all__ = ["Told", "Unwritten", "close", "count", "open_nowhere"]

Told = Callable[[int], object]
"""What is told how many bytes would be written."""

_told: dict[int, Told] = {}  # by descriptor


def open_nowhere(told: Told) -> int:
    """A descriptor of no file; to be closed by `close`."""
    descriptor = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    _told[descriptor] = told
    return descriptor


def close(descriptor: int) -> None:
    """Close a descriptor, of no file or of one."""
    _told.pop(descriptor, None)
    os.close(descriptor)


def count(descriptor: int, nbytes: int) -> bool:
    """Count what would be written through a descriptor; False where it is one of a file."""
    told = _told.get(descriptor)
    if told is None:
        return False
    told(nbytes)
    return True


class NoFile(io.RawIOBase):
    """A file object of no file, in which one can move."""

    def __init__(self, told: Told) -> None:
        self._told, self._place, self._size = told, 0, 0

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def write(self, data: object) -> int:
        nbytes = memoryview(data).nbytes  # type: ignore[arg-type]
        self._told(nbytes)
        self._place += nbytes
        self._size = max(self._size, self._place)
        return nbytes

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._place = offset + (0, self._place, self._size)[whence]
        return self._place

    def truncate(self, size: int | None = None) -> int:
        self._size = self._place if size is None else size
        return self._size


class Unwritten:
    """New contents of a file that nobody writes, in the place of a `replacement.Replacement`.

    Parameters
    ----------
    path : str, bytes or path-like
    told : callable
    named : bool
        As of a `Replacement`.
    """

    in_place = False

    def __init__(self, path: str | bytes | os.PathLike[str], told: Told, named: bool = False) -> None:
        self.path, self._told = os.fspath(path), told
        self.descriptor = open_nowhere(told)
        beside = os.path.join(os.path.dirname(os.path.realpath(os.fsdecode(self.path))), f".numpy-dist-{'0' * 16}")
        self.where = beside if named else f"/proc/{os.getpid()}/fd/{self.descriptor}"

    def reserve(self, nbytes: int) -> None:
        """As of a `Replacement`; there is room for all."""

    def open(self) -> IO[bytes]:
        """A file object, whose bytes are counted."""
        return io.BufferedWriter(NoFile(self._told))

    def commit(self) -> None:
        """As of a `Replacement`; the file is as it was."""
        self.discard()

    def discard(self) -> None:
        """As of a `Replacement`."""
        if self.descriptor >= 0:
            descriptor, self.descriptor = self.descriptor, -1
            close(descriptor)
