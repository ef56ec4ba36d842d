"""Frames: an iteration space as a box of a larger one, so that statements on parts of an array can share its loop."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise, product
from math import prod
from typing import NamedTuple

from numpy_dist.layout.layout import Layout
from numpy_dist.layout.regions import Box, box_contains
from numpy_dist.layout.views import ViewMap

Origin = tuple[int, ...]
"""Where index 0 of a statement lies in the frame; ``()`` where the statement's space is the frame."""

Cell = tuple[Box, tuple[int, ...]]
"""A box of the frame, and the numbers of the statements that have a part in it."""


class Frame(NamedTuple):
    """A larger iteration space, and where another one lies in it."""

    space: Layout
    origin: Origin


def frame_of(layout: Layout, vmap: ViewMap) -> Frame | None:
    """The frame of work on a view that is a box of its storage, cell by cell; None for other views.

    Nor for boxes of extent 1 along a longer axis: there a map does not say which way it would go on.

    Parameters
    ----------
    layout : Layout
        The storage's.
    vmap : ViewMap
    """
    if vmap.merged or len(vmap.shape) != len(layout.shape) or 0 in vmap.shape:
        return None
    if vmap.offset[-1] or vmap.element_bytes != vmap.storage_shape[-1]:
        return None
    for axis, (row, n, extent) in enumerate(zip(vmap.steps, vmap.shape, layout.shape, strict=True)):
        if n == 1 < extent or any(step != (n > 1 and other == axis) for other, step in enumerate(row)):
            return None
    return Frame(layout, vmap.offset[:-1])


@lru_cache(maxsize=4096)
def framed(vmap: ViewMap, origin: Origin) -> ViewMap:
    """The map from the frame's indices, for a view that is read or written at an origin. Its shape stays the view's."""
    if not any(origin):
        return vmap
    moved = tuple(
        start - sum(o * row[axis] for o, row in zip(origin, vmap.steps, strict=True))
        for axis, start in enumerate(vmap.offset)
    )
    rest = vmap.steps, vmap.groups, vmap.storage_shape, vmap.element_bytes
    return ViewMap(vmap.shape, vmap.axes_shape, moved, *rest)


def shifted(box: Box, origin: Origin) -> Box:
    """A box of a statement's space in the frame."""
    return tuple((lo + o, hi + o) for (lo, hi), o in zip(box, origin, strict=True)) if origin else box


def count_cells(boxes: Sequence[Box]) -> int:
    """How many cells `cells` makes at most of boxes."""
    return prod(len({side for box in boxes for side in box[axis]}) - 1 for axis in range(len(boxes[0])))


def cells(box: Box, boxes: Sequence[Box | None]) -> list[Cell]:
    """Divide a box into cells in which each of several boxes is either all or nothing.

    Parameters
    ----------
    box : Box
        Contains the others.
    boxes : sequence of (Box or None)
        None for one without elements.

    Returns
    -------
    list of Cell
        In C order: cells that any box covers, and the numbers of these boxes. The cells are those of a grid.
    """
    cuts = []
    for axis, (low, high) in enumerate(box):
        sides = {low, high} | {side for other in boxes if other is not None for side in other[axis]}
        cuts.append(list(pairwise(sorted(side for side in sides if low <= side <= high))))
    found = []
    for cell in product(*cuts):
        inside = tuple(n for n, other in enumerate(boxes) if other is not None and box_contains(other, cell))
        if inside:
            found.append((cell, inside))
    return found
