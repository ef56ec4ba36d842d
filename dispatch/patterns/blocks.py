"""The blocks pattern: what each rank does with its own box of some arrays.

Needs: one layout for all operands (others are redistributed). A rank computes on its boxes. Nothing else is
communicated. The result has the operands' layout, unless the function says otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from numpy_dist import engine
from numpy_dist.dispatch.patterns.threads import in_parts
from numpy_dist.layout.layout import Cut, Layout
from numpy_dist.layout.regions import box_empty, box_shape

if TYPE_CHECKING:
    from numpy_dist.dispatch.patterns.structural import H


def placed(x: object, layout: Layout) -> engine.Handle:
    """`x` as an array of ours with this layout; of an ndarray each rank copies its part."""
    if engine.is_handle(x):
        return engine.aligned(x, layout)
    return engine.from_global(np.asarray(x), layout, compared=True)


def blocks(*arrays: tuple[engine.Handle, Layout], library: bool = False) -> list[np.ndarray]:
    """This rank's boxes of arrays that have these layouts, for reading at once (executes what they need).

    On the host, or, for a `library` (`backends.library.compute`), on the device where they lie.
    """
    engine.force(*(x for x, _ in arrays))  # all, before the memory of any is looked at
    rank, found = engine.runtime().rank, []
    for x, layout in arrays:
        box = layout.box(rank)
        empty = box is None or box_empty(box)
        shape: tuple[int, ...] = (0,) if box is None else box_shape(box)
        device = engine.device(x.dtype) if library else None
        if empty:
            found.append(np.empty(shape, x.dtype) if device is None else device.empty(shape, x.dtype))
        else:
            found.append(engine.shard_for_library(x) if library else engine.shard(x))
    return found


def exact_layout(x: engine.Handle | np.ndarray) -> Layout:
    """The layout in which each rank has a box of an array: its own, or the default one (also where all have it)."""
    found = engine.layout_of(x) if engine.is_sharded(x) else None
    return engine.default_layout(tuple(x.shape)) if found is None else found


def map_elements(function: Callable[[np.ndarray], object], x: object) -> object:
    """A function of elements that does not warn, on each rank's own and all its threads.

    It gives a scalar for an array without axes, as NumPy's.
    """
    if not engine.is_sharded(x):
        return engine.wrap(function(engine.plain(x)))
    layout = exact_layout(x)
    (block,) = blocks((engine.aligned(x, layout), layout))
    with engine.Scratch() as scratch:
        made = engine.from_local(in_parts(function, block, empty=scratch.empty), layout)
    return made if made.ndim else made[()]


def cuts_rows(layout: Layout | None) -> bool:
    """Whether the ranks have, in their order, ascending rows of an array."""
    if layout is None or layout.mesh.ndim != 1:
        return False
    what = layout.dims[0]
    return isinstance(what, Cut) and what.axis == 0 and not what.descends


def row_layout(x: Any) -> Layout:
    """The layout in which the ranks have, in their order, ascending rows: the array's own, or the default one."""
    layout = engine.layout_of(x) if engine.is_sharded(x) else None
    return layout if layout is not None and cuts_rows(layout) else engine.default_layout(tuple(x.shape), split=0)


def row_bounds(layout: Layout) -> list[tuple[int, int]]:
    """Which rows of an array that is cut between rows each rank has: the first one, and the one behind the last."""
    boxes = [layout.box(rank) for rank in range(engine.runtime().size)]
    return [(0, 0) if box is None else box[0] for box in boxes]


def in_boxes(x: H) -> tuple[H, Layout]:
    """The array with its `exact_layout`, redistributed only if it has another one."""
    layout = engine.layout_of(x) if engine.is_sharded(x) else None
    if layout is None:
        layout = engine.default_layout(tuple(x.shape))
        x = engine.aligned(x, layout)
    return x, layout
