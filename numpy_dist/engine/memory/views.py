"""Views on this rank: where a box of a view lies in a local allocation."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from numpy_dist.backends.memory import HOST, Memory
from numpy_dist.ir.meta_arrays import c_strides
from numpy_dist.layout.regions import Box
from numpy_dist.layout.views import ViewMap

if TYPE_CHECKING:
    from numpy_dist.backends.memory import Array


class AllocationView(NamedTuple):
    """An array over an allocation, without the allocation.

    Attributes
    ----------
    shape, dtype
    offset : int
        Bytes from the allocation's start to the first element.
    strides : tuple of int
    """

    shape: tuple[int, ...]
    dtype: np.dtype
    offset: int
    strides: tuple[int, ...]

    def over(self, block: Array, memory: Memory = HOST) -> Array:
        """The array over a block of this memory."""
        if 0 in self.shape:
            return memory.empty(self.shape, self.dtype)
        if block.size == 0:  # NumPy checks strides against a buffer's size only where it has one
            raise IndexError(f"a rank that holds nothing was asked for an array of shape {self.shape}")
        return memory.array(block, self.shape, self.dtype, self.offset, self.strides)


def allocation_view(
    itemsize: int,
    low: tuple[int, ...],
    extent: tuple[int, ...],
    steps: tuple[int, ...] | None,
    vmap: ViewMap,
    box: Box,
    dtype: np.dtype,
) -> AllocationView:
    """A box of a view, as an array over an allocation of its storage. A pure function.

    Parameters
    ----------
    itemsize : int
        The storage's.
    low, extent : tuple of int
        Global index of the allocation's first element, and the shape of what it holds.
    steps : tuple of int or None
        Distance of neighbouring elements of the allocation in global indices (1 unless it was fetched with steps).
    """
    unit = (*c_strides(extent, itemsize), 1)
    shape = tuple(hi - lo for lo, hi in box)
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
    return AllocationView(shape, dtype, offset, tuple(strides))
