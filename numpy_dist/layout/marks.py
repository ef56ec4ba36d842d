"""Marks: short hashes of values, the same on every rank and in every process, by which ranks compare what they do."""

from __future__ import annotations

import hashlib

_MARK_BYTES = 8
MARK_BITS = (1 << 8 * _MARK_BYTES) - 1


def mark_of(*values: object) -> int:
    """The mark of values whose `repr` says all of them: numbers, texts, dtypes, ranges, layouts, tuples of these."""
    return int.from_bytes(hashlib.blake2b(repr(values).encode(), digest_size=_MARK_BYTES).digest(), "little")


class RunningMark:
    """A mark of a sequence of marks and other integers, however it was cut into the pieces that were added.

    Attributes
    ----------
    number : int
        The mark so far, which may be negative.
    """

    __slots__ = ("number",)

    def __init__(self) -> None:
        self.number = 0

    def add(self, pieces: list[int]) -> None:
        """Take these numbers, other than -1 (of which Python's hash is that of -2); they are removed from the list."""
        number = self.number
        for piece in pieces:
            number = hash((number, piece))  # of integers: alike in all processes
        self.number = number
        pieces.clear()

