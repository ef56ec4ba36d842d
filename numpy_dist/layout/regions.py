"""Box and region algebra: what part of a global index space is meant.

A box is a half-open interval for each axis, a region a ``range`` of step >= 1 for each axis. With no axes there is one
element, as in NumPy.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import gcd, prod

Box = tuple[tuple[int, int], ...]
Region = tuple[range, ...]

EMPTY_RANGE = range(0)


# -- boxes -----------------------------------------------------------------------------------------------------------


def full_box(shape: Sequence[int]) -> Box:
    """The box that covers the whole shape."""
    return tuple((0, n) for n in shape)


def box_shape(box: Box) -> tuple[int, ...]:
    """The extent of each axis."""
    return tuple(hi - lo for lo, hi in box)


def box_size(box: Box) -> int:
    """The number of elements."""
    return prod(hi - lo for lo, hi in box)


def box_empty(box: Box) -> bool:
    """Whether the box has no elements."""
    return any(hi <= lo for lo, hi in box)


def intersect_boxes(first: Box, second: Box) -> Box | None:
    """The common part of two boxes, None when there is none."""
    common = []
    for (a, b), (c, d) in zip(first, second, strict=True):
        low, high = c if a < c else a, d if d < b else b
        if high <= low:
            return None
        common.append((low, high))
    return tuple(common)


def box_contains(outer: Box, inner: Box) -> bool:
    """Whether every element of `inner` lies in `outer`."""
    if box_empty(inner):
        return True
    return all(a <= c and d <= b for (a, b), (c, d) in zip(outer, inner, strict=True))


def bounding_box(boxes: Iterable[Box]) -> Box | None:
    """The smallest box around all boxes that have elements, None when there are none."""
    result: Box | None = None
    for box in boxes:
        if box_empty(box):
            continue
        if result is None:
            result = box
        else:
            result = tuple((min(a, c), max(b, d)) for (a, b), (c, d) in zip(result, box, strict=True))
    return result


def subtract_box(box: Box, hole: Box) -> list[Box]:
    """Disjoint boxes that cover `box` without `hole`: at most two for each axis."""
    if box_empty(box):
        return []
    common = intersect_boxes(box, hole)
    if common is None:
        return [box]
    pieces: list[Box] = []
    rest = list(box)
    for axis, ((lo, hi), (inner_lo, inner_hi)) in enumerate(zip(box, common, strict=True)):
        if lo < inner_lo:
            pieces.append((*rest[:axis], (lo, inner_lo), *rest[axis + 1 :]))
        if inner_hi < hi:
            pieces.append((*rest[:axis], (inner_hi, hi), *rest[axis + 1 :]))
        rest[axis] = (inner_lo, inner_hi)
    return pieces


# -- regions ---------------------------------------------------------------------------------------------------------


def clip(r: range, lo: int, hi: int) -> range:
    """The part of an ascending range that lies in [lo, hi), with the tightest stop."""
    step = r.step
    first = r.start
    if first < lo:
        first += -((first - lo) // step) * step
    stop = r.stop if r.stop < hi else hi
    if first >= stop:
        return EMPTY_RANGE
    if step == 1:
        return range(first, stop)
    return range(first, first + (stop - 1 - first) // step * step + 1, step)


def intersect_ranges(first: range, second: range) -> range:
    """The common elements of two ascending ranges, of any steps."""
    if not first or not second:
        return EMPTY_RANGE
    common = gcd(first.step, second.step)
    gap = second.start - first.start
    if gap % common:
        return EMPTY_RANGE
    step = first.step // common * second.step
    # Solve first.start + k * first.step == second.start (mod second.step) for the smallest k >= 0.
    modulus = second.step // common
    k = gap // common * pow(first.step // common, -1, modulus) % modulus if modulus > 1 else 0
    start = first.start + k * first.step
    lo = max(first.start, second.start)
    if start < lo:
        start += -((start - lo) // step) * step
    stop = min(first[-1], second[-1]) + 1
    return clip(range(start, max(start, stop), step), lo, stop)


def region_of(box: Box) -> Region:
    """The region of all elements of a box."""
    return tuple(range(lo, hi) for lo, hi in box)


def region_size(region: Region) -> int:
    """The number of elements."""
    return prod(len(r) for r in region)


def region_empty(region: Region) -> bool:
    """Whether the region has no elements."""
    return not all(region)


def region_hull(region: Region) -> Box:
    """The smallest box around a region; each axis that is empty gives an empty interval."""
    return tuple((r[0], r[-1] + 1) if r else (r.start, r.start) for r in region)


def intersect_regions(first: Region, second: Region) -> Region:
    """The common part of two regions."""
    return tuple(intersect_ranges(a, b) for a, b in zip(first, second, strict=True))


def box_slices(box: Box, origin: Sequence[int]) -> tuple[slice, ...]:
    """The slices that select a box in an array whose element 0 has the global coordinates `origin`."""
    return tuple(slice(lo - o, hi - o) for (lo, hi), o in zip(box, origin, strict=True))
