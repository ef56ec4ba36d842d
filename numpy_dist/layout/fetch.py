"""The fetch planner: who sends which elements of a storage to whom.

Every rank knows what every rank wants, so each works out its own part of the exchange, and both sides of a message
agree on the regions in it and on their order, without a handshake.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from numpy_dist.layout.layout import Layout
from numpy_dist.layout.regions import Region, clip


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


def plan_fetch(layout: Layout, wanted: Sequence[tuple[Region, ...]], rank: int) -> FetchPlan:
    """Plan the messages of one rank so that every rank gets what it wants.

    Parameters
    ----------
    layout : Layout
        Who holds what.
    wanted : sequence of tuple of Region
        For each rank of the communicator the disjoint regions that it wants, an empty tuple for nothing.
    rank : int
        Whose part is planned.
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
    return FetchPlan(_plan_sends(layout, wanted, rank), receives, tuple(local))


def _plan_sends(
    layout: Layout, wanted: Sequence[tuple[Region, ...]], rank: int
) -> tuple[tuple[int, tuple[Region, ...]], ...]:
    box = layout.box(rank)
    if box is None or any(lo >= hi for lo, hi in box):
        return ()
    cuts = [(axis, *box[axis]) for axis in layout.cut_axes]
    copied = layout.has_copies
    sends = []
    for other, regions in enumerate(wanted):
        if other == rank or not regions or (copied and not layout.holds_for(rank, other)):
            continue
        parts = [part for region in regions if (part := _held(region, cuts)) is not None]
        if parts:
            sends.append((other, tuple(parts)))
    return tuple(sends)


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
