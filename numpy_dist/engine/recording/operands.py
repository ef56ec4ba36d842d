"""What a statement reads, and over which iteration space."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from numpy_dist.engine.data.ingest import broadcast, make_storage, operand
from numpy_dist.engine.memory.handle import Handle, plain, ref_of
from numpy_dist.engine.memory.storage import Storage
from numpy_dist.engine.runtime import Runtime
from numpy_dist.ir.ops import COPY
from numpy_dist.ir.statements import NO_OPTIONS, Elementwise, Ref
from numpy_dist.layout.layout import Layout, Pinned
from numpy_dist.settings import config

if TYPE_CHECKING:
    from numpy_dist.layout.layout import BoxList

_SCALARS = (int, float, complex, bool, np.generic)


def operand_of(x: Any) -> object:
    """An operand as a sharded handle, an ndarray of one or more dimensions, or a scalar."""
    if isinstance(x, Handle):
        if x._storage is not None:
            return x
        x = plain(x)
    elif isinstance(x, _SCALARS):
        return x
    elif not isinstance(x, np.ndarray):
        x = np.asarray(x)
    return x[()] if x.ndim == 0 else x


def choose_space(
    rt: Runtime, operands: list, outs: tuple, where: object, shape: tuple[int, ...], itemsize: int
) -> tuple[Layout, Any]:
    """The layout of results, and the iteration space: that of an output, else of the largest operand, the leftmost."""
    for o in outs:
        if o is not None:
            space = ref_of(o).view.write_space
            return (space if isinstance(space, Layout) else rt.default_layout(shape)), space
    candidates = [x for x in (*operands, where) if isinstance(x, Handle) and x._storage is not None]
    lead = max(candidates, key=lambda x: x._array.size, default=None)
    layout = None if lead is None else broadcast(ref_of(lead), shape).view.read_layout
    if layout is None or _too_few(layout, shape, itemsize):
        layout = rt.default_layout(shape)
    return layout, layout


def _too_few(layout: Layout, shape: tuple[int, ...], itemsize: int) -> bool:
    """Whether fewer than half of the ranks would hold a result that is large enough to be sharded."""
    dims = zip(layout.mesh.shape, layout.dims, strict=True)
    held = prod(1 if isinstance(dim, Pinned) else extent for extent, dim in dims)
    return 2 * held < layout.size and prod(shape) * itemsize >= max(config.MIN_SHARD_BYTES, 1)


def read_of(rt: Runtime, x: object, shape: tuple[int, ...], space: Layout | BoxList) -> Ref:
    """What a statement reads of an operand; a reshape that merges cut axes is redistributed first."""
    if not isinstance(x, Handle):
        return operand(np.asarray(x), shape, space)
    ref = ref_of(x)
    if ref.view.vmap is None:
        ref = Ref(_flattened(rt, ref.storage), ref.array)
    return broadcast(ref, shape)


def _flattened(rt: Runtime, storage: Storage) -> Storage:
    """A copy of a storage that is cut along its first axis only: each rank has a range of the flat index."""
    layout = rt.default_layout(storage.shape, split=0)
    target = make_storage(storage.shape, storage.dtype, layout)
    copy_whole(rt, target, storage)
    return target._storage


def copy_whole(rt: Runtime, target: Any, source: Storage) -> None:
    """Record a copy of a storage into another array of its shape, which is new."""
    read = Ref(source, source.meta_array())
    rt.program.append(Elementwise(COPY, (read,), (ref_of(target),), (True,), None, NO_OPTIONS, target._storage.layout))
