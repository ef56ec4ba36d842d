"""Rows of a page: a rank each; where there are many, neighbours together, and single ranks that stand out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from numpy_dist.profiling.analysis import (
    COMPUTING,
    KINDS,
    WAITING,
    Profiled,
    own_pieces,
    ranks_text,
    waiting_matrix,
)

MOST_ROWS = 16  # more can be looked at no more
_BINS = 400  # of a row of several ranks


class RankGroup(NamedTuple):
    """Ranks that are shown as one row.

    Attributes
    ----------
    name : str
        As in a sentence: "rank 3", "ranks 8 to 11".
    label : str
        Short: "3", "8–11".
    ranks : sequence of int
    """

    name: str
    label: str
    ranks: Sequence[int]

    @property
    def is_single(self) -> bool:
        """Whether it is one rank."""
        return len(self.ranks) == 1


def _group(ranks: Sequence[int]) -> RankGroup:
    label = f"{ranks[0]}" if len(ranks) == 1 else f"{ranks[0]}–{ranks[-1]}"
    return RankGroup(ranks_text(ranks), label, ranks)


def neighbours(size: int) -> list[RankGroup]:
    """All ranks in order: one each, or in at most `MOST_ROWS` groups of the same size (the last may be smaller)."""
    each = -(-size // MOST_ROWS)
    return [_group(range(first, min(first + each, size))) for first in range(0, size, each)]


def rows_of(found: Profiled) -> list[RankGroup]:
    """The rows of ranks whose logs are there; groups of several come after the ranks that stand out."""
    here = {log.rank for log in found.logs}
    groups = [[rank for rank in group.ranks if rank in here] for group in neighbours(found.size)]
    rows = [_group(ranks) for ranks in groups if ranks]
    if found.size <= MOST_ROWS:
        return rows
    first = [_group([rank]) for rank in standing_out(found)]
    return [*first, *(row for row in rows if row not in first)]


def standing_out(found: Profiled) -> list[int]:
    """Ranks worth a look, in order: that did not come to the end, compute most or least, wait, or are waited for."""
    shares = found.shares
    awaited: defaultdict[int, int] = defaultdict(int)
    for (_, late), time in waiting_matrix(found).items():
        awaited[late] += time
    cut_off = [log.rank for log in found.logs if log.end is None]
    if len(cut_off) == len(found.logs):  # the whole job was ended, and all logs within a moment
        cut_off = []
    chosen = {
        *cut_off[:4],
        max(shares, key=lambda rank: shares[rank][COMPUTING]),
        min(shares, key=lambda rank: shares[rank][COMPUTING]),
        max(shares, key=lambda rank: shares[rank][WAITING]),
    }
    if awaited:
        chosen.add(max(sorted(awaited), key=lambda rank: awaited[rank]))
    return sorted(chosen & shares.keys())


def drawn_together(found: Profiled, ranks: Sequence[int]) -> list[tuple[int, int, int, str]]:
    """What several ranks did: begin, end, the number of the kind that took most of the time, and all kinds in words.

    Stretches in which most of the time no array program ran have none.
    """
    width = max(1, -(-found.length // _BINS))
    times: list[defaultdict[str, int]] = [defaultdict(int) for _ in range(-(-found.length // width))]
    for rank in ranks:
        spans = found.spans[rank]
        for begin, end, number in own_pieces(spans):
            kind = spans[number].kind
            for place in range(begin // width, min(-(-end // width), len(times))):
                times[place][kind] += min(end, (place + 1) * width) - max(begin, place * width)
    drawn = []
    for place, its in enumerate(times):
        whole = len(ranks) * (min((place + 1) * width, found.length) - place * width)
        rest = whole - sum(its.values())
        kind = max(its, key=lambda kind: its[kind], default="")
        if kind and its[kind] >= rest:
            parts = sorted([*its.items(), ("outside", rest)], key=lambda item: -item[1])
            words = ", ".join(f"{100 * time / whole:.0f} % {name}" for name, time in parts if 100 * time >= whole)
            drawn.append((place * width, min((place + 1) * width, found.length), KINDS.index(kind), words))
    return drawn
