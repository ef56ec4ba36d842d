"""From phantoms to plans: the affine map, the layout and the iteration space of a view over a storage."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from numpy_dist.engine.storage import Storage, c_strides, offset_of
from numpy_dist.layout.layout import Layout
from numpy_dist.layout.regions import Box
from numpy_dist.layout.views import ViewMap, decode, iteration_layout, owned_boxes, view_layout


def vmap_of(storage: Storage, array: np.ndarray) -> ViewMap | None:
    """The affine map of a view, or None for a reshape that merges a cut axis into the one before it."""
    return decode(
        storage.shape, storage.dtype.itemsize, storage.layout.cut_axes, offset_of(array), array.shape, array.strides,
        array.itemsize,
    )


def key_of(storage: Storage, array: np.ndarray) -> tuple:
    """What identifies a view: two refs with equal keys see the same elements in the same order."""
    return id(storage), offset_of(array), array.shape, array.strides, array.itemsize


def read_layout(storage: Storage, array: np.ndarray) -> Layout | None:
    """How work that reads this view is best divided: the owners of its elements, or nearly so; None if they are no boxes."""
    if array is storage.phantom():
        return storage.layout
    return _layout(storage.layout, storage.dtype.itemsize, offset_of(array), array.shape, array.strides, array.itemsize, False)


def write_space(storage: Storage, array: np.ndarray) -> Any:
    """The exact owners of a view's elements: a Layout, a BoxList, or None where they are no boxes."""
    if array is storage.phantom():
        return storage.layout
    return _layout(storage.layout, storage.dtype.itemsize, offset_of(array), array.shape, array.strides, array.itemsize, True)


@lru_cache(maxsize=4096)
def _layout(
    layout: Layout, itemsize: int, offset: int, shape: tuple, strides: tuple, view_itemsize: int, exact: bool
) -> Any:
    vmap = decode(layout.shape, itemsize, layout.cut_axes, offset, shape, strides, view_itemsize)
    if vmap is None:
        return None
    found = view_layout(layout, vmap)
    if found is not None:
        return found
    if not exact:
        return iteration_layout(layout, vmap)
    return None if layout.has_copies else owned_boxes(layout, vmap)


def layout_of(storage: Storage, array: np.ndarray) -> Layout | None:
    """The layout of a view, where it has an exact one."""
    space = write_space(storage, array)
    return space if isinstance(space, Layout) else None


def local_view(
    memory: np.ndarray, itemsize: int, low: tuple[int, ...], extent: tuple[int, ...], steps: tuple[int, ...] | None, vmap: ViewMap,
    box: Box, dtype: np.dtype,
) -> np.ndarray:
    """A box of a view as an ndarray over local memory.

    Parameters
    ----------
    memory : ndarray of uint8
    itemsize : int
        The storage's.
    low, extent : tuple of int
        Global index of the first element in `memory`, and the shape of what it holds.
    steps : tuple of int or None
        Distance of neighbouring elements of `memory` in global indices (1 unless it was fetched with steps).
    """
    unit = (*c_strides(extent, itemsize), 1)
    shape = [hi - lo for lo, hi in box]
    strides = [0] * len(shape)
    offset = 0
    for axis, group in enumerate(vmap.groups):
        last = group[-1]
        stride = unit[last]
        step = 1 if steps is None or last >= len(steps) else steps[last]
        first = vmap.offset[axis]
        for v, row in enumerate(vmap.steps):
            if row[axis]:
                first += box[v][0] * row[axis]
                strides[v] += row[axis] // step * stride
        origin = low[group[0]] if group[0] < len(low) else 0
        for member in group[1:]:
            origin *= vmap.storage_shape[member]
        offset += (first - origin) // step * stride
    if any(n == 0 for n in shape):
        return np.empty(shape, dtype)
    return np.ndarray(shape, dtype, buffer=memory, offset=offset, strides=strides)
