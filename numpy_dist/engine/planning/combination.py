"""Which ranks exchange what of a reduction's partial results: functions of metadata."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from numpy_dist.engine.planning.actions import Combine
from numpy_dist.ir.statements import Reduction
from numpy_dist.layout.layout import Layout
from numpy_dist.layout.regions import Box, box_empty, intersect_boxes

if TYPE_CHECKING:
    from numpy_dist.layout.layout import BoxList


def combination(statement: Reduction, number: int, slot: int, rank: int) -> Combine:
    """How the partial results of a statement come together, as one rank does it."""
    storage = statement.outputs[0].storage
    layout = storage.layout
    size = layout.mesh.size
    boxes = partial_boxes(statement.space, statement.axes, statement.keepdims, size, storage.axes)
    if size > 1 and layout.is_replicated:
        return Combine(number, slot, statement.dtype, boxes, True, (), ())
    sends, receives = [], []
    for other in range(size):
        out = _meet(boxes[rank], layout.box(other))
        if out is not None and other != rank:
            sends.append((other, out))
        back = _meet(boxes[other], layout.box(rank))
        if back is not None:
            receives.append((other, back))
    return Combine(number, slot, statement.dtype, boxes, False, tuple(sends), tuple(receives))


@lru_cache(maxsize=512)
def partial_boxes(
    space: Layout | BoxList, axes: tuple[int, ...], keepdims: bool, size: int, order: tuple[int, ...] | None
) -> tuple[Box | None, ...]:
    """For each rank the part of the result's storage to which it contributes, None where it contributes nothing."""
    boxes: list[Box | None] = []
    for rank in range(size):
        box = space.box(rank)
        if box is None or box_empty(box) or (isinstance(space, Layout) and not space.primary(rank)):
            boxes.append(None)
        else:
            part = [(0, 1) if axis in axes else side for axis, side in enumerate(box) if keepdims or axis not in axes]
            boxes.append(tuple(part if order is None else (part[a] for a in order)))
    return tuple(boxes)


def _meet(a: Box | None, b: Box | None) -> Box | None:
    """What two boxes share; None if that is nothing."""
    return None if a is None or b is None else intersect_boxes(a, b)
