"""Marks: short hashes of values, the same on every rank and in every process, by which ranks compare what they do."""

from __future__ import annotations

import hashlib

MARK_BYTES = 8


def mark_of(*values: object) -> bytes:
    """The mark of values whose `repr` says all of them: numbers, texts, dtypes, ranges, layouts, tuples of these."""
    return hashlib.blake2b(repr(values).encode(), digest_size=MARK_BYTES).digest()

