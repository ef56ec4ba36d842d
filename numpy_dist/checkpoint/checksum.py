"""Checksums of the pieces of a checkpoint, at the speed of memory: a checkpoint must not cost the program a core.

The bytes are little-endian words of 64 bits, in rows of 4,096. The sums of all rows and of all columns, modulo 2**64,
and what is left of the bytes, go into one CRC-32. A word that has changed changes the sums of its row and its column;
rows that are exchanged, old ones among new ones, and pages of zeros change sums of rows. NumPy adds at the speed at
which memory is read, where zlib's CRC-32 of all bytes makes about one gigabyte a second.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable

import numpy as np

__all__ = ["CHECKSUMS", "Sums", "sums_crc32"]

_WORD = np.dtype("<u8")
_COLUMNS = 4096
_ROWS = 16  # at once: 512 KiB, which stay in a core's cache between the two sums; of fewer, calls are what takes time


class Sums:
    """The checksum of bytes that are still being written, from their beginning on.

    Parameters
    ----------
    data : memoryview
        Of all bytes.
    """

    def __init__(self, data: memoryview) -> None:
        size = len(data) // (_COLUMNS * _WORD.itemsize)
        self._words = np.frombuffer(data, _WORD, size * _COLUMNS).reshape(size, _COLUMNS)
        self._columns, self._rows = np.zeros(_COLUMNS, _WORD), np.empty(size, _WORD)
        self._left, self._done = data[self._words.nbytes :], 0

    def add(self, nbytes: int) -> None:
        """Add the rows that have come to their end, now that so many bytes are there, counted from the beginning."""
        first, self._done = self._done, nbytes // (_COLUMNS * _WORD.itemsize)
        for start in range(first, self._done, _ROWS):
            stop = min(start + _ROWS, self._done)
            some = self._words[start:stop]
            self._columns += np.add.reduce(some, axis=0)
            np.add.reduce(some, axis=1, out=self._rows[start:stop])

    @property
    def value(self) -> int:
        """The checksum, when all bytes are there and added."""
        return zlib.crc32(self._left, zlib.crc32(self._rows, zlib.crc32(self._columns)))  # type: ignore[arg-type]


def sums_crc32(data: memoryview) -> int:
    """The checksum of bytes."""
    sums = Sums(data)
    sums.add(len(data))
    return sums.value


CHECKSUMS: dict[str, Callable[[memoryview], int]] = {"crc32": zlib.crc32, "sums": sums_crc32}
"""By the names that manifests give them; ``crc32`` is that of the first version of the format."""
