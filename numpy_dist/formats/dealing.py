"""Who decodes what of streams: pieces of an array that can only be decoded from their beginning, as groups of rows.

Where the rows of a piece are on one rank, that decodes it. All other pieces are dealt out, those of several arrays
together, the longest first to the rank that has least to do. It follows from metadata that all ranks share.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

__all__ = ["Deal", "Rows", "DecodingStep", "RowStream", "Want", "deal"]

Rows = tuple[int, int]


class RowStream(NamedTuple):
    """How an array of one axis is stored in pieces.

    Attributes
    ----------
    edges : tuple of int
        The first row of each piece, and the number of all rows.
    rows : int
        How many are to be decoded at once.
    """

    edges: tuple[int, ...]
    rows: int

    def __repr__(self) -> str:
        return f"<{len(self.edges) - 1} pieces, {self.rows} rows of them at once>"


class Want(NamedTuple):
    """What is wanted of an array.

    Attributes
    ----------
    stream : RowStream
    itemsize : int
        Bytes of a row.
    parts : sequence of rows
        Those that each rank is to have, of the whole array; empty ones, too.
    """

    stream: RowStream
    itemsize: int
    parts: Sequence[Rows]


class DecodingStep(NamedTuple):
    """Rows of a piece that a rank decodes at once, behind those of its last step in this piece.

    Attributes
    ----------
    want, piece : int
        Their numbers.
    rows : rows
        All of which somebody wants.
    """

    want: int
    piece: int
    rows: Rows


class Deal(NamedTuple):
    """What each rank decodes.

    Attributes
    ----------
    own : list of list of step
        For each rank the steps of which it keeps everything.
    shared : list of list of step
        For each rank the others; the n-th step of all ranks is one round of messages.
    """

    own: list[list[DecodingStep]]
    shared: list[list[DecodingStep]]


def deal(wants: Sequence[Want], size: int) -> Deal:
    """Who decodes what, of `size` ranks."""
    made = Deal([[] for _ in range(size)], [[] for _ in range(size)])
    loads = [0] * size
    rest: list[tuple[int, int, int, list[int]]] = []
    for number, want in enumerate(wants):
        for piece in range(len(want.stream.edges) - 1):
            held = _held(want, piece)
            holders = [rank for rank, count in enumerate(held) if count]
            if not holders:
                continue
            cost = want.itemsize * (_span(want, piece)[1] - want.stream.edges[piece])
            if len(holders) == 1:
                loads[holders[0]] += cost
                made.own[holders[0]].extend(_steps(want, number, piece))
            else:
                rest.append((cost, number, piece, held))
    for cost, number, piece, held in sorted(rest, key=lambda item: -item[0]):  # equal ones in the order of the file
        rank = min(range(size), key=lambda rank: (loads[rank], -held[rank], rank))
        loads[rank] += cost
        made.shared[rank].extend(_steps(wants[number], number, piece))
    return made


def _held(want: Want, piece: int) -> list[int]:
    """How many rows of a piece each rank is to have."""
    start, stop = want.stream.edges[piece : piece + 2]
    return [max(0, min(hi, stop) - max(lo, start)) for lo, hi in want.parts]


def _span(want: Want, piece: int) -> Rows:
    """From the first to the last row of a piece that somebody wants."""
    start, stop = want.stream.edges[piece : piece + 2]
    wanted = [(lo, hi) for lo, hi in want.parts if max(lo, start) < min(hi, stop)]
    return max(start, min(lo for lo, _ in wanted)), min(stop, max(hi for _, hi in wanted))


def _steps(want: Want, number: int, piece: int) -> Iterator[DecodingStep]:
    first, last = _span(want, piece)
    for start in range(first, last, want.stream.rows):
        yield DecodingStep(number, piece, (start, min(start + want.stream.rows, last)))
