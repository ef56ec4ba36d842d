"""The halo planner: which ghost cells around a rank's own box the hulls of its reads touch."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from numpy_dist.layout.regions import Box, bounding_box, box_empty

Direction = tuple[int, ...]


def ghost_blocks(own: Box, hulls: Sequence[Box]) -> dict[Direction, Box]:
    """The ghost zone that the hulls touch, as disjoint blocks outside the own box.

    Parameters
    ----------
    own : Box
        What the rank owns.
    hulls : sequence of Box
        What it reads.

    Returns
    -------
    dict
        For each direction (-1, 0 or 1 for each axis) in which something is needed, the bounding box of what is needed
        there. Hulls that reach out along one axis at a time therefore have no corner blocks.
    """
    needed: dict[Direction, list[Box]] = {}
    for hull in hulls:
        if box_empty(hull):
            continue
        sides = [_sides(mine, reach) for mine, reach in zip(own, hull, strict=True)]
        for chosen in product(*sides):
            direction = tuple(side for side, _ in chosen)
            if any(direction):
                needed.setdefault(direction, []).append(tuple(interval for _, interval in chosen))
    blocks = {direction: bounding_box(boxes) for direction, boxes in sorted(needed.items())}
    return {direction: block for direction, block in blocks.items() if block is not None}


def _sides(own: tuple[int, int], reach: tuple[int, int]) -> list[tuple[int, tuple[int, int]]]:
    """Divide what is reached along one axis into the parts before, within and after the own interval."""
    (lo, hi), (first, last) = own, reach
    # An empty own interval divides at its lower end, so that its two sides still do not overlap.
    hi = max(lo, hi)
    parts = [(-1, (first, min(last, lo))), (0, (max(first, lo), min(last, hi))), (1, (max(first, hi), last))]
    return [(side, interval) for side, interval in parts if interval[0] < interval[1]]


def margins(own: Box, hulls: Sequence[Box]) -> tuple[tuple[int, int], ...]:
    """Return, for each axis, how far the hulls reach below and above the own box."""
    reach = bounding_box(hulls)
    if reach is None:
        return ((0, 0),) * len(own)
    return tuple((max(0, lo - first), max(0, last - hi)) for (lo, hi), (first, last) in zip(own, reach, strict=True))
