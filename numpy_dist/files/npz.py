"""The arrays in an ``.npz`` file, whose members are ``.npy`` files.

Members that are not compressed lie in the archive as they are, so parts of them are read as of any file; then their
checksum is compared. Of compressed ones, what comes before a part is decompressed and not kept.
"""

from __future__ import annotations

import functools
import io
import operator
import os
import zipfile
from typing import IO, TYPE_CHECKING

import numpy as np

from numpy_dist.comm.portable import agree
from numpy_dist.files.checksums import PartialCrc32
from numpy_dist.files.npy import ArrayInFile, array_of_open_npy
from numpy_dist.files.pieces import bytes_of, read_all
from numpy_dist.files.reading import Reader
from numpy_dist.layout.regions import Box

if TYPE_CHECKING:
    from numpy_dist.comm.base import Communicator

__all__ = ["member_reader"]

_LOCAL_HEADER = 30  # bytes before the name of a member
_PIECE = 1 << 22  # bytes whose checksum is taken at once


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
    first = info.header_offset + _LOCAL_HEADER + name_and_more
    start = first + found.offset
    there = min((size - start) // found.dtype.itemsize, found.there)
    return _StoredMember(path, info, first, found._replace(offset=start, there=there))


class _StoredMember(Reader):
    """A reader of a member that is not compressed: all ranks together compare the checksum that the archive has of it.

    Parameters
    ----------
    path : str
    info : ZipInfo
    first : int
        Where the member begins in the archive.
    array : ArrayInFile
    """

    def __init__(self, path: str, info: zipfile.ZipInfo, first: int, array: ArrayInFile) -> None:
        super().__init__(path, array)
        self._name, self._info, self._first = path, info, first

    def finish(self, comm: Communicator) -> None:
        """As `Reader.finish`; raise on every rank if the bytes of the member are not those that were written.

        Each rank looks at an equal share of them, which all have read just now: they are in the page cache.
        """
        super().finish(comm)
        failure: Exception | None = None
        share = 0
        try:
            share = self._share(comm.rank, comm.size)
        except Exception as error:
            failure = error
        agree(failure, comm)
        shares = comm.allgather(share) if comm.size > 1 else [share]
        if functools.reduce(operator.xor, shares) != self._info.CRC:
            problem = zipfile.BadZipFile(f"Bad CRC-32 for file {self._info.filename!r}")  # as NumPy says it
            problem.add_note(f"{self._name} is damaged")
            raise problem

    def _share(self, rank: int, size: int) -> int:
        """What a rank's share of the bytes contributes to the checksum."""
        nbytes = self._info.file_size
        place, stop = nbytes * rank // size, nbytes * (rank + 1) // size
        partial, piece = PartialCrc32(nbytes), memoryview(bytearray(min(_PIECE, stop - place)))
        with open(self._name, "rb", buffering=0) as file:
            while place < stop:
                into = piece[: stop - place]
                if read_all(file.fileno(), into, self._first + place) < len(into):
                    raise ValueError(f"{self._name} has become shorter while it was read")
                partial.add(place, into)
                place += len(into)
        return partial.value


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
