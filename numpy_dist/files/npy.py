"""Where the elements of an array lie in an ``.npy`` file, and in one without a header.

`numpy.lib.format` reads and writes the headers; the bytes behind them are the elements in C or Fortran order.
"""

from __future__ import annotations

import io
import os
from typing import IO, NamedTuple

import numpy as np

__all__ = ["ArrayInFile", "Path", "array_of_bytes", "array_of_npy", "array_of_open_npy", "header_of"]

Path = str | os.PathLike[str]


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
        return array_of_open_npy(file, os.fstat(file.fileno()).st_size)


def array_of_open_npy(file: IO[bytes], size: int) -> ArrayInFile | None:
    """As `array_of_npy`, of a file that is open, at its beginning, and has so many bytes."""
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
    return ArrayInFile(shape, dtype, fortran, offset, (size - offset) // dtype.itemsize)


def array_of_bytes(path: Path, dtype: np.dtype, count: int, offset: int) -> ArrayInFile:
    """The array that `numpy.fromfile` makes of a file without a header; `count` is -1 for all there is."""
    there = max(os.stat(path).st_size - offset, 0) // dtype.itemsize
    return ArrayInFile((there if count < 0 else min(count, there),), dtype, False, offset, there)


def header_of(shape: tuple[int, ...], dtype: np.dtype, fortran: bool) -> bytes:
    """What stands before the elements, as `numpy.lib.format.write_array` writes it.

    Raises
    ------
    ValueError
        If it needs the third version of the format: names of fields are not Latin.
    """
    buffer = io.BytesIO()
    metadata = {"shape": shape, "fortran_order": fortran, "descr": np.lib.format.dtype_to_descr(dtype)}
    try:
        np.lib.format.write_array_header_1_0(buffer, metadata)
    except ValueError:  # it is too long
        np.lib.format.write_array_header_2_0(buffer, metadata)
    return buffer.getvalue()
