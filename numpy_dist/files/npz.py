"""The arrays in an ``.npz`` file, whose members are ``.npy`` files.

Members that are not compressed lie in the archive as they are, so parts of them are read as of any file. Of compressed
ones, what comes before a part is decompressed and not kept.
"""

from __future__ import annotations

import io
import os
import zipfile
from typing import IO

import numpy as np

from numpy_dist.files.npy import ArrayInFile, array_of_open_npy
from numpy_dist.files.pieces import bytes_of
from numpy_dist.files.reading import Reader
from numpy_dist.layout.regions import Box

__all__ = ["member_reader"]

_LOCAL_HEADER = 30  # bytes before the name of a member


def member_reader(path: str, archive: zipfile.ZipFile, member: str) -> Reader | None:
    """What reads parts of a member of an archive; None for other files than arrays, and those of Python objects.

    Parameters
    ----------
    path : str
        Of the archive.
    archive : ZipFile
        Open for reading.
    member : str

    Raises
    ------
    KeyError, OSError, ValueError, BadZipFile
    """
    info = archive.getinfo(member)
    with archive.open(info) as file:
        found = array_of_open_npy(file, info.file_size)
    if found is None:
        return None
    if info.compress_type != zipfile.ZIP_STORED:
        return _Decompressing(path, archive, member, found)
    with open(path, "rb") as whole:
        whole.seek(info.header_offset + _LOCAL_HEADER - 4)
        name_and_more = int(np.frombuffer(whole.read(4), "<u2").sum())
        size = os.fstat(whole.fileno()).st_size
    start = info.header_offset + _LOCAL_HEADER + name_and_more + found.offset
    there = min((size - start) // found.dtype.itemsize, found.there)
    return Reader(path, found._replace(offset=start, there=there))


class _Decompressing(Reader):
    """A reader of a compressed member."""

    def __init__(self, path: str, archive: zipfile.ZipFile, member: str, array: ArrayInFile) -> None:
        super().__init__(path, array)
        self._archive, self._member = archive, member

    def read(self, box: Box, block: np.ndarray) -> None:
        if not block.size:
            return
        shape, itemsize = self.array.order, self.dtype.itemsize
        with self._archive.open(self._member) as file:
            file.seek(self.array.offset)
            if not shape:
                _fill(file, block)
                return
            (lo, hi), row = box[0], np.empty(shape[1:], self.dtype)
            file.seek(lo * row.size * itemsize, io.SEEK_CUR)
            within = tuple(slice(start, stop) for start, stop in box[1:])
            for i in range(hi - lo):
                _fill(file, row)
                block[i] = row[within]


def _fill(file: IO[bytes], into: np.ndarray) -> None:
    """The next bytes of a file, as the elements of an array."""
    view = bytes_of(into)
    while view:
        data = file.read(len(view))
        if not data:
            raise EOFError("the archive ends before the array does")
        view[: len(data)] = data
        view = view[len(data) :]
