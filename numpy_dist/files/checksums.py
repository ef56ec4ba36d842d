"""CRC-32 of bytes that several ranks have, without bringing them together.

The CRC-32 of A behind B follows from those of both: B's is multiplied by x to the power of A's length in bits, modulo
the polynomial, and added (`crc32_combine` of zlib, whose powers come of repeated squaring since version 1.2.12). Sums
may be taken in any order, so each rank adds up what its own runs contribute, and the sum over the ranks is the CRC-32
of all.
"""

from __future__ import annotations

import zlib
from functools import lru_cache

__all__ = ["PartialCrc32", "moved_crc32"]

_POLYNOMIAL = 0xEDB88320  # of ZIP files; the coefficient of x**0 is the highest bit
_ONE, _BYTE = 1 << 31, 1 << 23  # x**0 and x**8


def _product(a: int, b: int) -> int:
    """The product of two polynomials, modulo that of CRC-32."""
    product, bit = 0, _ONE
    while bit:
        if a & bit:
            product ^= b
        bit >>= 1
        b = (b >> 1) ^ (_POLYNOMIAL if b & 1 else 0)
    return product


@lru_cache(maxsize=256)
def _power(nbytes: int) -> int:
    """The polynomial x**(8 * nbytes)."""
    power, square = _ONE, _BYTE
    while nbytes:
        if nbytes & 1:
            power = _product(square, power)
        square, nbytes = _product(square, square), nbytes >> 1
    return power


def moved_crc32(crc: int, nbytes: int) -> int:
    """What bytes with this CRC-32 contribute to that of a text in which so many bytes follow them."""
    return _product(_power(nbytes), crc) if nbytes and crc else crc


class PartialCrc32:
    """What some runs of a text contribute to its CRC-32, which is the sum (exclusive or) of all contributions.

    Parameters
    ----------
    nbytes : int
        Of the whole text.
    """

    def __init__(self, nbytes: int) -> None:
        self._nbytes, self._crc, self._end = nbytes, 0, 0

    def add(self, place: int, data: bytes | memoryview) -> None:
        """Add the run of bytes at a place, which lies behind those that were added before."""
        stop = place + len(data)
        if not self._end <= place <= stop <= self._nbytes:
            raise ValueError(f"bytes {place} to {stop} do not follow {self._end}, or there are only {self._nbytes}")
        self._crc = moved_crc32(self._crc, stop - self._end) ^ zlib.crc32(data)
        self._end = stop

    @property
    def value(self) -> int:
        """The contribution of the runs that were added."""
        return moved_crc32(self._crc, self._nbytes - self._end)
