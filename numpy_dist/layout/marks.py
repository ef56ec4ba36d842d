"""Marks: short hashes of values, the same on every rank and in every process, by which ranks compare what they do."""

from __future__ import annotations

import hashlib

_MARK_BYTES = 8


def mark_of(*values: object) -> int:
    """The mark of values whose `repr` says all of them: numbers, texts, dtypes, ranges, layouts, tuples of these."""
    return int.from_bytes(hashlib.blake2b(repr(values).encode(), digest_size=_MARK_BYTES).digest(), "little")


def running_mark(number: int, pieces: list[int]) -> int:
    """The mark of a sequence, which goes on from the mark of its beginning by these numbers, and which may be negative.

    It is the same however the sequence was cut into pieces. They are removed from the list; none is -1, of which
    Python's hash is that of -2.
    """
    for piece in pieces:
        number = hash((number, piece))  # of integers: alike in all processes
    pieces.clear()
    return number
