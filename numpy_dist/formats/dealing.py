"""Who decodes what of streams: pieces of an array that can only be decoded from their beginning, as groups of rows.

Where the rows of a piece are on one rank, that decodes it. All other pieces are dealt out, those of several arrays
together, the longest first to the rank that has least to do. It follows from metadata that all ranks share.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from heapq import heapify, heappop, heappush
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
    rest: list[tuple[int, int, int, _Held]] = []
    for number, want in enumerate(wants):
        for piece, held in sorted(_held(want).items()):
            cost = want.itemsize * (held.span[1] - want.stream.edges[piece])
            if len(held.counts) == 1:
                (holder,) = held.counts
                loads[holder] += cost
                made.own[holder].extend(_steps(want, number, piece, held.span))
            else:
                rest.append((cost, number, piece, held))
    idle = [(load, rank) for rank, load in enumerate(loads)]  # and ranks with loads that they have no longer
    heapify(idle)
    for cost, number, piece, held in sorted(rest, key=lambda item: -item[0]):  # equal ones in the order of the file
        while idle[0][0] != loads[idle[0][1]]:
            heappop(idle)
        least, rank = idle[0]
        # Of ranks that have as little to do, the one that is to have most of the piece.
        ready = [(-count, other) for other, count in held.counts.items() if loads[other] == least]
        rank = min(ready)[1] if ready else rank
        loads[rank] += cost
        heappush(idle, (loads[rank], rank))
        made.shared[rank].extend(_steps(wants[number], number, piece, held.span))
    return made


class _Held(NamedTuple):
    """What of a piece is wanted: how many rows by the ranks that are to have some, and from the first to the last."""

    counts: dict[int, int]
    span: Rows


def _held(want: Want) -> dict[int, _Held]:
    """Of the pieces of which somebody wants rows, who does."""
    edges, found = want.stream.edges, dict[int, _Held]()
    for rank, (lo, hi) in enumerate(want.parts):
        piece = bisect_right(edges, lo) - 1
        while lo < hi and piece < len(edges) - 1:
            start, stop = max(lo, edges[piece]), min(hi, edges[piece + 1])
            if start < stop:
                held = found.get(piece, _Held({}, (start, stop)))
                held.counts[rank] = stop - start
                found[piece] = _Held(held.counts, (min(held.span[0], start), max(held.span[1], stop)))
            if edges[piece + 1] >= hi:
                break
            piece += 1
    return found


def _steps(want: Want, number: int, piece: int, span: Rows) -> Iterator[DecodingStep]:
    for start in range(span[0], span[1], want.stream.rows):
        yield DecodingStep(number, piece, (start, min(start + want.stream.rows, span[1])))
