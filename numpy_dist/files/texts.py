"""Texts whose lines are divided among the ranks: which bytes are whose, and a file object of them."""

from __future__ import annotations

import codecs
import io
import locale
import os
from collections.abc import Iterator
from contextlib import contextmanager

from numpy_dist.files.npy import Path

__all__ = ["can_be_divided", "line_ranges", "opened_lines"]

# Encodings in which the byte of a line feed is nothing but a line feed.
_PLAIN = frozenset({"ascii", "utf-8", "iso8859-1", "iso8859-15", "cp1252"})
_COMPRESSED = (".gz", ".bz2", ".xz", ".lzma")
_LOOK = 1 << 16  # bytes that are looked at for the end of a line at once


def can_be_divided(path: Path, encoding: str | None) -> bool:
    """Whether a text is its parts, one behind the other, and has lines that are found by their bytes.

    It is not compressed, and its encoding is a plain one.
    """
    if os.fspath(path).endswith(_COMPRESSED):
        return False
    try:
        return codecs.lookup(encoding or locale.getpreferredencoding(False)).name in _PLAIN
    except LookupError:
        return False


def line_ranges(path: Path, skipped: int, parts: int) -> list[tuple[int, int]] | None:
    """The ranges of bytes, of whole lines and much the same length, into which a text is divided.

    Parameters
    ----------
    path : str or path-like
    skipped : int
        Lines at the beginning that belong to nobody.
    parts : int

    Returns
    -------
    list of (int, int) or None
        None if skipped lines end otherwise than by a line feed.

    Raises
    ------
    OSError
    """
    with open(path, "rb") as file:
        size = file.seek(0, io.SEEK_END)
        file.seek(0)
        for _ in range(skipped):
            if b"\r" in file.readline().removesuffix(b"\n").removesuffix(b"\r"):
                return None
        first = file.tell()
        edges = [first]
        for part in range(1, parts):
            edges.append(_line_start(file, max(edges[-1], first + (size - first) * part // parts), first, size))
    return list(zip(edges, [*edges[1:], size], strict=True))


def _line_start(file: io.BufferedReader, place: int, first: int, size: int) -> int:
    """Where the first line begins that does so at a place or behind it."""
    if place == first:
        return place
    file.seek(place - 1)
    while piece := file.read(_LOOK):
        found = piece.find(b"\n")
        if found >= 0:
            return file.tell() - len(piece) + found + 1
    return size


class _Range(io.RawIOBase):
    """Some of the bytes of a file."""

    def __init__(self, path: Path, start: int, stop: int) -> None:
        self._file = open(path, "rb", buffering=0)
        self._file.seek(start)
        self._left = stop - start

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        count = self._file.readinto(memoryview(buffer)[: self._left]) if self._left else 0
        self._left -= count or 0
        return count or 0

    def close(self) -> None:
        self._file.close()
        super().close()


@contextmanager
def opened_lines(path: Path, span: tuple[int, int], encoding: str | None) -> Iterator[io.TextIOWrapper]:
    """The lines of a text that lie in a range of bytes, as a file object."""
    with io.TextIOWrapper(io.BufferedReader(_Range(path, *span), 1 << 20), encoding) as file:
        yield file
