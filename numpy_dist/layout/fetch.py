"""The fetch planner: who sends which elements of a storage to whom.

Every rank knows what every rank wants, so each works out its own part of the exchange, and both sides of a message
agree on the regions in it and on their order, without a handshake.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise

from numpy_dist.layout.layout import Layout
from numpy_dist.layout.marks import mark_of
from numpy_dist.layout.regions import Box, Region, clip

Reach = tuple[tuple[int, int], ...]
"""For each axis how many indices below and above."""


@dataclass(frozen=True)
class FetchPlan:
    """What one rank sends, receives and copies from itself.

    Parameters
    ----------
    sends, receives : tuple of (rank, regions)
        One message for each neighbour, by ascending rank. Regions are in global coordinates of the storage; elements
        are packed region by region, each in C order.
    local : tuple of Region
        What the rank wants and holds itself.
    """

    sends: tuple[tuple[int, tuple[Region, ...]], ...]
    receives: tuple[tuple[int, tuple[Region, ...]], ...]
    local: tuple[Region, ...]

    @cached_property
    def marks(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """What is in each message that is sent, and in each that is received: numbers, the same on both sides."""
        sent, received = (
            tuple(mark_of(regions) for _, regions in messages) for messages in (self.sends, self.receives)
        )
        return sent, received


def plan_fetch(
    layout: Layout, wanted: Sequence[tuple[Region, ...]], rank: int, reach: Reach | None = None
) -> FetchPlan:
    """Plan the messages of one rank so that every rank gets what it wants.

    Parameters
    ----------
    layout : Layout
        Who holds what.
    wanted : sequence of tuple of Region
        For each rank of the communicator the disjoint regions that it wants, an empty tuple for nothing.
    rank : int
        Whose part is planned.
    reach : tuple of (int, int), optional
        A promise: whatever a rank wants lies within its own box widened by so many indices below and above along each
        axis, and ranks without elements want nothing. Then only the entries of the rank and of those near it are looked
        at, so that a halo's plan costs the same at any number of ranks; without it every entry is.
    """
    local: list[Region] = []
    incoming: dict[int, list[Region]] = {}
    for region in wanted[rank]:
        for holder, part in layout.locate(region, near=rank):
            if holder == rank:
                local.append(part)
            else:
                incoming.setdefault(holder, []).append(part)
    receives = tuple((source, tuple(incoming[source])) for source in sorted(incoming))
    return FetchPlan(_plan_sends(layout, wanted, rank, reach), receives, tuple(local))


@lru_cache(maxsize=1024)
def halo_reach(layout: Layout) -> Reach:
    """A bound for halos, without looking at any: `alignment` has none that is wider than the shard that gets it."""
    widest = [0] * len(layout.shape)
    for axis in layout.cut_axes:
        cut = layout.cut_of(axis)
        assert cut is not None
        widest[axis] = max(b - a for a, b in pairwise(cut.ascending))
    return tuple((n, n) for n in widest)


def _plan_sends(
    layout: Layout, wanted: Sequence[tuple[Region, ...]], rank: int, reach: Reach | None
) -> tuple[tuple[int, tuple[Region, ...]], ...]:
    box = layout.box(rank)
    if box is None or any(lo >= hi for lo, hi in box):
        return ()
    cuts = [(axis, *box[axis]) for axis in layout.cut_axes]
    copied = layout.has_copies
    sends = []
    others: Iterable[int] = range(len(wanted)) if reach is None else _near(layout, rank, box, reach)
    for other in others:
        regions = wanted[other]
        if other == rank or not regions or (copied and not layout.holds_for(rank, other)):
            continue
        parts = [part for region in regions if (part := _held(region, cuts)) is not None]
        if parts:
            sends.append((other, tuple(parts)))
    return tuple(sends)


def _near(layout: Layout, rank: int, box: Box, reach: Reach) -> Iterable[int]:
    """The ranks, ascending, whose boxes widened by the reach meet the box of a rank."""
    around = tuple(
        range(max(0, lo - above), min(n, hi + below))
        for (lo, hi), (below, above), n in zip(box, reach, layout.shape, strict=True)
    )
    return (other for other, _ in layout.locate(around, near=rank))


def _held(region: Region, cuts: list[tuple[int, int, int]]) -> Region | None:
    """The part of a region within the intervals of the cut axes, None when it is empty."""
    for axis, lo, hi in cuts:
        r = region[axis]
        if r.start >= hi or r.stop <= lo:
            return None
    if not all(region):
        return None
    parts = list(region)
    for axis, lo, hi in cuts:
        part = clip(region[axis], lo, hi)
        if not part:
            return None
        parts[axis] = part
    return tuple(parts)
