"""Arrays whose rows along one axis are whole on a rank, for what NumPy computes row by row."""

from __future__ import annotations

from typing import Any

import numpy as np

from numpy_dist import engine
from numpy_dist.layout.layout import Layout


def whole_along(x: Any, axis: int) -> tuple[Any, Layout]:
    """The array, redistributed (recorded) if it is cut along this axis, and its layout.

    It is then cut along its longest other axis. An array of one axis would come to every rank: callers go from rank to
    rank with it (`parallel.sequential_pipeline`), or divide it in another way.
    """
    layout = engine.layout_of(x) if engine.is_sharded(x) else None
    if layout is None or layout.cut_of(axis) is not None:
        layout = whole_layout(tuple(x.shape), axis)
    return engine.aligned(x, layout), layout


def whole_layout(shape: tuple[int, ...], axis: int) -> Layout:
    """A layout that does not cut this axis."""
    others = [a for a in range(len(shape)) if a != axis]
    if not others:
        return engine.runtime().replicated_layout(shape)
    return engine.default_layout(shape, split=max(others, key=lambda a: shape[a]))


def placed(x: Any, layout: Layout) -> Any:
    """`x` as an array of ours with this layout; of an ndarray each rank copies its part."""
    return engine.aligned(x, layout) if engine.is_handle(x) else engine.from_global(np.asarray(x), layout)
