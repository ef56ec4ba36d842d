"""Rows of decimal numbers, read from text by a kernel (`compiled.decimal_text`), as soon as it is there."""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

from numpy_dist.backends.compiled.threads import KERNEL

WORTH = 1 << 22  # bytes of text for which the kernel is asked for
SOURCE = """from numpy_dist.backends.compiled.decimal_text import read_rows


def kernel(block, first, last):
    return read_rows(block, first, last)
"""
_LEAST_POWER, _MOST_POWER, _EXACT = -342, 308, 22  # as in `decimal_text`, which only the process that compiles imports
_BITS = 128


@functools.cache
def _tables() -> np.ndarray:
    """The doubles 10**0 to 10**22, and two words of each power of five, of which the first bit is 1.

    Rounded down; those of negative powers, which are no integers, up.
    """
    words = [int(np.float64(10.0**power).view(np.uint64)) for power in range(_EXACT + 1)]
    for power in range(_LEAST_POWER, _MOST_POWER + 1):
        five = 5 ** abs(power)
        if power >= 0:
            value = five << _BITS >> five.bit_length()
        else:
            bits = (five - 1).bit_length()
            value = (1 << bits + _BITS - 1) // five + 1
        words += divmod(value, 1 << 64)
    return np.array(words, np.uint64)


class KernelTextReader:
    """Reads numbers by a kernel (see `backends.base.TextReader`).

    Parameters
    ----------
    address : callable
        ``address(text, asked)`` returns a kernel's address or None, and has it compiled if that is `asked` for.
    """

    def __init__(self, address: Callable[[str, bool], int | None]) -> None:
        self._address = address

    def rows(self, text: bytes, delimiter: str | None) -> np.ndarray | None:
        """As in `backends.base.TextReader`."""
        address = self._address(SOURCE, len(text) >= WORTH)
        columns = _columns(text, delimiter)
        if address is None or not columns:
            return None
        lines = text.count(b"\n") + (not text.endswith(b"\n"))
        made = np.empty((lines, columns))
        addresses = [x.ctypes.data for x in (np.frombuffer(text, np.uint8), made, _tables())]
        words = np.array([*addresses, ord(delimiter or "\0"), columns, lines, 0], np.int64)
        if KERNEL(address)(words.ctypes.data, 0, len(text)):
            return None
        return made[: int(words[-1])]


def _columns(text: bytes, delimiter: str | None) -> int:
    """How many numbers the first line has that is not empty."""
    start = 0
    while start < len(text) and text[start] in b"\r\n":
        start += 1
    end = text.find(b"\n", start)
    line = text[start : len(text) if end < 0 else end]
    return len(line.split(None if delimiter is None else delimiter.encode()))
