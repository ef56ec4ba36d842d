"""Texts whose lines are divided among the ranks: which bytes are whose, and a file object of them."""

from __future__ import annotations

import codecs
import io
import locale
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from numpy_dist.files.npy import Path
from numpy_dist.parallel.threads import watched

__all__ = ["can_be_divided", "line_pieces", "line_ranges", "lines_as_file"]

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
            line = file.readline()
            if not line:
                break
            if b"\r" in line.removesuffix(b"\n").removesuffix(b"\r"):
                return None
        first = file.tell()
        edges = [first]
        for part in range(1, parts):
            edges.append(_line_start(file, max(edges[-1], first + (size - first) * part // parts), first, size))
    return list(zip(edges, [*edges[1:], size], strict=True))


def line_pieces(path: Path, span: tuple[int, int], nbytes: int) -> list[tuple[int, int]]:
    """The ranges of bytes, of whole lines and about so many of them each, into which a range of a text is divided.

    Raises
    ------
    OSError
    """
    first, stop = span
    edges = [first]
    with open(path, "rb") as file:
        while edges[-1] + nbytes < stop:
            edges.append(_line_start(file, edges[-1] + nbytes, first, stop))
    return list(zip(edges, [*edges[1:], stop], strict=True))


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


@contextmanager
def lines_as_file(path: Path, span: tuple[int, int]) -> Iterator[str]:
    """The name of a file that has a range of the bytes of another one, to be read once, from its beginning.

    `numpy.loadtxt` reads files by name much quicker than file objects. It is a pipe, which a thread fills.

    Raises
    ------
    OSError
        At the end of the context, if not all of the range could be read, or has been.
    """
    receiving, sending = os.pipe()
    (place, stop), failures = span, []

    def fill() -> None:
        nonlocal place
        try:
            with open(sending, "wb", buffering=0) as pipe, open(path, "rb", buffering=0) as file:
                while place < stop and (data := os.pread(file.fileno(), min(stop - place, _LOOK), place)):
                    place += pipe.write(data)
        except OSError as error:
            failures.append(error)

    thread = threading.Thread(target=watched("text", "reading of a text", fill), name="numpy_dist text")
    thread.start()
    try:
        yield f"/dev/fd/{receiving}"
    finally:
        os.close(receiving)
        thread.join()
    if failures:
        raise failures[0]
    if place < stop:
        raise OSError(f"{os.fspath(path)} has become shorter while it was read")
