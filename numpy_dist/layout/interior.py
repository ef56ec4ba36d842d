"""The interior of a loop: what a rank can compute while the halos of others are on their way. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence

from numpy_dist.layout.regions import Box
from numpy_dist.layout.views import ViewMap, storage_region


def interior_box(box: Box, reads: Sequence[tuple[Box, ViewMap]]) -> Box | None:
    """The part of an iteration space whose reads stay within what the rank owns.

    Parameters
    ----------
    box : Box
        The rank's part of the space.
    reads : sequence of (Box, ViewMap)
        For each view that is read: the rank's own box of its storage, and the view.

    Returns
    -------
    Box or None
        None where there is none, or where it is no box that can be told by shifting sides.
    """
    sides = [list(side) for side in box]
    for own, vmap in reads:
        if vmap.merged:
            return None
        for axis, ((lo, hi), r) in enumerate(zip(own, storage_region(vmap, box), strict=True)):
            below, above = lo - r[0], r[-1] + 1 - hi
            if below <= 0 and above <= 0:
                continue
            walking = [v for v, row in enumerate(vmap.steps) if row[axis]]
            if len(walking) != 1:
                return None
            (v,) = walking
            step = vmap.steps[v][axis]
            first, last = (below, above) if step > 0 else (above, below)
            sides[v][0] = max(sides[v][0], box[v][0] + -(-max(0, first) // abs(step)))
            sides[v][1] = min(sides[v][1], box[v][1] - -(-max(0, last) // abs(step)))
    if any(lo >= hi for lo, hi in sides):
        return None
    found = tuple((lo, hi) for lo, hi in sides)
    inside = all(
        lo <= r[0] and r[-1] < hi
        for own, vmap in reads
        for (lo, hi), r in zip(own, storage_region(vmap, found), strict=True)
    )
    return found if inside else None


def narrowed(box: Box, own: Box, inner: Box) -> Box | None:
    """The part of a box in which a statement, which runs in `own`, stays within `inner`; None if there is none."""
    sides = [
        (max(lo, inner_lo) if inner_lo > own_lo else lo, min(hi, inner_hi) if inner_hi < own_hi else hi)
        for (lo, hi), (own_lo, own_hi), (inner_lo, inner_hi) in zip(box, own, inner, strict=True)
    ]
    return tuple(sides) if all(lo < hi for lo, hi in sides) else None
