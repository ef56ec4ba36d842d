"""Pieces of files: the bytes of a box of an array, in a file that has its elements in C order."""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from math import prod
from typing import Any

import numpy as np

from numpy_dist.engine import parts_in_order, progressed
from numpy_dist.files import nowhere
from numpy_dist.layout.regions import Box
from numpy_dist.layout.runs import run_length, runs

__all__ = ["bytes_of", "in_long_runs", "parts_of", "read_all", "read_box", "write_all", "write_box", "write_piece"]

_LONG = 1 << 15  # bytes of a run that is worth a call of the system
_FEW = 1 << 10  # runs of which each may have a call of its own, however short they are
_CHUNK = 1 << 24  # bytes that are read at once
_BEGIN = 2  # SYNC_FILE_RANGE_WRITE


def bytes_of(block: np.ndarray) -> memoryview:
    """The bytes of a C-contiguous array, without a copy."""
    return block.reshape(-1).view(np.uint8).data if block.nbytes else memoryview(b"")


def in_long_runs(boxes: Iterable[Box | None], shape: Sequence[int], itemsize: int) -> bool:
    """Whether boxes of an array are few runs of bytes each, or long ones."""
    for box in boxes:
        size = 0 if box is None else prod(hi - lo for lo, hi in box)
        if box is not None and size:
            length = run_length(shape, box)
            if length * itemsize < _LONG and size // length > _FEW:
                return False
    return True


def write_all(descriptor: int, data: bytes | memoryview, place: int) -> None:
    """Write bytes at a place of a file, all of them or with an error."""
    view = memoryview(data)
    if nowhere.count(descriptor, len(view)):
        return
    while view:
        written = os.pwrite(descriptor, view, place)
        if not written:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        view, place = view[written:], place + written


def write_piece(descriptor: int, data: bytes | memoryview, place: int) -> None:
    """Write some megabytes at a place of a file, as `write_all`, and let the system begin to put them on the disk."""
    write_all(descriptor, data, place)
    _begin_write_back(descriptor, place, len(data))


def _begin_write_back(descriptor: int, place: int, nbytes: int) -> None:
    """Let the system begin to put a range of a file on the disk, where it can be told to.

    Without this nothing goes to the disk before the end, when `fsync` finds all of it to be done; the disk's time is
    then added to that of the copies into the page cache. It is a hint: what goes wrong is what `fsync` will report.
    """
    begin = _sync_file_range()
    if begin is not None:
        begin(descriptor, place, nbytes, _BEGIN)


@cache
def _sync_file_range() -> Any:
    """The call of Linux's C library; None elsewhere."""
    found = getattr(ctypes.CDLL(None), "sync_file_range", None)
    if found is not None:
        found.argtypes = [ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint]
    return found


def read_all(descriptor: int, into: memoryview, place: int) -> int:
    """Read bytes at a place of a file; their number, which is less than was asked for only at its end."""
    done = 0
    while done < len(into):
        count = os.preadv(descriptor, [into[done:]], place + done)
        if not count:
            break
        done += count
    return done


def write_box(
    descriptor: int,
    offset: int,
    shape: Sequence[int],
    box: Box,
    block: np.ndarray,
    seen: Callable[[Box, memoryview], object] = lambda part, data: None,
    write: Callable[[int, memoryview, int], object] = write_all,
) -> None:
    """Write the elements of a box at their places of a file.

    Parameters
    ----------
    descriptor : int
    offset : int
        Bytes before the first element of the array.
    shape : sequence of int
        Of the array.
    box : box
    block : ndarray
        The elements of the box, with any strides.
    seen : callable, optional
        Gets each part that is written, as a box, with its bytes in C order.
    write : callable, optional
        Writes a run: ``write(descriptor, data, place)``.
    """
    for part, key in parts_of(box, block):
        data, done = bytes_of(np.ascontiguousarray(block[key])), 0
        seen(part, data)
        progressed(len(data))
        count = run_length(shape, part) * block.itemsize
        places = [offset + first * block.itemsize for first in runs(shape, part)]
        for place in places:
            write(descriptor, data[done : done + count], place)
            done += count
        if count >= _LONG:  # pages of short runs have more to come, of other ranks
            _begin_write_back(descriptor, places[0], places[-1] + count - places[0])


def read_box(descriptor: int, offset: int, shape: Sequence[int], box: Box, block: np.ndarray) -> None:
    """Read the elements of a box from their places in a file.

    Parameters
    ----------
    descriptor, offset, shape, box
        As for `write_box`.
    block : ndarray
        C-contiguous, of the shape of the box.

    Raises
    ------
    EOFError
        If the file ends before the last of them.
    """
    if not block.size:
        return
    if not in_long_runs([box], shape, block.itemsize):
        _read_rows(descriptor, offset, shape, box, block)
        return
    count = run_length(shape, box) * block.itemsize
    whole, done = bytes_of(block), 0
    for first in runs(shape, box):
        for start in range(0, count, _CHUNK):
            ahead = min(start + 2 * _CHUNK, count) - (start + _CHUNK)
            if ahead > 0 and hasattr(os, "posix_fadvise"):  # the disk has work while this piece is copied
                place = offset + first * block.itemsize + start + _CHUNK
                os.posix_fadvise(descriptor, place, ahead, os.POSIX_FADV_WILLNEED)
            into = whole[done + start : done + min(start + _CHUNK, count)]
            if read_all(descriptor, into, offset + first * block.itemsize + start) < len(into):
                raise EOFError
            progressed(len(into))
        done += count


def _read_rows(descriptor: int, offset: int, shape: Sequence[int], box: Box, block: np.ndarray) -> None:
    """Read the elements of a box of short runs, with all that lies between them, some megabytes at a time."""
    (lo, hi), inner = box[0], prod(shape[1:]) * block.itemsize
    if inner > _CHUNK:
        for i in range(lo, hi):
            _read_rows(descriptor, offset + i * inner, shape[1:], box[1:], block[i - lo])
        return
    step = min(_CHUNK // inner, hi - lo)
    rows = np.empty((step, *shape[1:]), block.dtype)
    within = tuple(slice(start, stop) for start, stop in box[1:])
    for start in range(lo, hi, step):
        found = rows[: min(step, hi - start)]
        if read_all(descriptor, bytes_of(found), offset + start * inner) < found.nbytes:
            raise EOFError
        progressed(block[start - lo : start - lo + len(found)].nbytes)
        block[start - lo : start - lo + len(found)] = found[(slice(None), *within)]


def parts_of(box: Box, block: np.ndarray) -> Iterator[tuple[Box, tuple]]:
    """Boxes of some megabytes that follow one another in a box, and their indices in its block."""
    if not block.size:
        return
    for key in parts_in_order(block.shape, block.itemsize):
        part = list(box)
        for axis, item in enumerate(key):
            lo, hi = box[axis]
            part[axis] = (
                (lo + item, lo + item + 1) if isinstance(item, int) else (lo + item.start, min(lo + item.stop, hi))
            )
        yield tuple(part), (*key, ...)
