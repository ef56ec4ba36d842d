"""Views on this rank: a box of a view as an ndarray over local memory."""

from __future__ import annotations

import numpy as np

from numpy_dist.ir.phantoms import c_strides
from numpy_dist.layout.regions import Box
from numpy_dist.layout.views import ViewMap


def local_view(
    memory: np.ndarray,
    itemsize: int,
    low: tuple[int, ...],
    extent: tuple[int, ...],
    steps: tuple[int, ...] | None,
    vmap: ViewMap,
    box: Box,
    dtype: np.dtype,
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
    if memory.size == 0:  # NumPy checks strides against a buffer's size only where it has one
        raise IndexError(f"a rank that holds nothing was asked for {box} of an array of shape {vmap.storage_shape}")
    return np.ndarray(shape, dtype, buffer=memory, offset=offset, strides=strides)
