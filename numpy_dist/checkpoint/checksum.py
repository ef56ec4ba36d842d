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

__all__ = ["CHECKSUMS", "sums_crc32"]

_WORD = np.dtype("<u8")
_COLUMNS = 4096
_ROWS = 16  # at once: 512 KiB, which stay in a core's cache between the two sums; of fewer, calls are what takes time


def sums_crc32(data: memoryview) -> int:
    """The checksum of bytes."""
    size = len(data) // (_COLUMNS * _WORD.itemsize)
    words = np.frombuffer(data, _WORD, size * _COLUMNS).reshape(size, _COLUMNS)
    columns, rows = np.zeros(_COLUMNS, _WORD), np.empty(size, _WORD)
    for first in range(0, size, _ROWS):
        some = words[first : first + _ROWS]
        columns += np.add.reduce(some, axis=0)
        np.add.reduce(some, axis=1, out=rows[first : first + _ROWS])
    return zlib.crc32(data[words.nbytes :], zlib.crc32(rows, zlib.crc32(columns)))  # type: ignore[arg-type]


CHECKSUMS: dict[str, Callable[[memoryview], int]] = {"crc32": zlib.crc32, "sums": sums_crc32}
"""By the names that manifests give them; ``crc32`` is that of the first version of the format."""
