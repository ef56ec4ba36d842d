"""Sorting, and what sorted arrays give at once."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from numpy_dist import engine
from numpy_dist.dispatch.core.registry import decline, implements
from numpy_dist.dispatch.functions.common import NoValue, as_handle, blocks
from numpy_dist.dispatch.functions.numpy_source import numpy_source
from numpy_dist.ir.rules import memory_axes
from numpy_dist.layout.layout import Cut, Layout
from numpy_dist.parallel import sample_sort

for _function in (np.msort,) if hasattr(np, "msort") else ():
    implements(_function, kind="composed")(numpy_source(_function))


@implements(np.sort, kind="parallel", varies=("descending",))
def sort(
    a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None, descending: Any = NoValue
) -> Any:
    """Collective where the axis is cut: a redistribution, or the exchange of a sample sort for a single axis."""
    a, axis, kind = _arguments(np.sort, a, axis, kind, order, stable, descending)
    if a.ndim == 1:
        layout = _ascending(a)
        (block,) = blocks((engine.aligned(a, layout), layout))
        comm = engine.runtime().comm
        with engine.Scratch() as scratch:
            part, counts = sample_sort.sort(block, kind, comm, scratch.empty)
            return engine.from_local(part, _cut_at(counts, layout))
    memory = memory_axes([a._array], tuple(a.shape))
    if memory is None:
        return along(lambda block: np.sort(block, axis, kind), a, axis, keepdims=True)
    axis = memory.index(axis)  # the result has, as in NumPy, the operand's memory order
    found = along(lambda block: np.sort(block, axis, kind), a.transpose(memory), axis, keepdims=True)
    return found.transpose(np.argsort(memory).tolist())


@implements(np.argsort, kind="parallel", varies=("descending",))
def argsort(
    a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None, descending: Any = NoValue
) -> Any:
    """As `sort`. Always stable along a single axis."""
    a, axis, kind = _arguments(np.argsort, a, axis, kind, order, stable, descending)
    if a.ndim == 1:
        return _positions(a)
    return along(lambda block: np.argsort(block, axis, kind), a, axis, keepdims=True)


def _positions(a: Any) -> Any:
    """The positions that the elements of a one-dimensional array had, in their order."""
    layout = _ascending(a)
    (block,) = blocks((engine.aligned(a, layout), layout))
    comm = engine.runtime().comm
    box = layout.box(comm.rank)
    assert box is not None
    with engine.Scratch() as scratch:
        positions, counts = sample_sort.positions_in_order(block, box[0][0], comm, scratch.empty)
        return engine.from_local(positions, _cut_at(counts, layout))


def ordered(a: Any) -> tuple[Any, Any]:
    """The elements of a one-dimensional array in order and the positions that they had, stable (collective)."""
    layout = _ascending(a)
    (block,) = blocks((engine.aligned(a, layout), layout))
    comm = engine.runtime().comm
    box = layout.box(comm.rank)
    assert box is not None
    values, positions, counts = sample_sort.argsort(block, box[0][0], comm)
    result = _cut_at(counts, layout)
    return engine.from_local(values, result), engine.from_local(positions, result)


def _arguments(
    function: Any, a: Any, axis: Any, kind: Any, order: Any, stable: Any, descending: Any
) -> tuple[Any, int, Any]:
    """The array, the axis and the kind; NumPy's errors for what does not fit."""
    if descending is not NoValue and descending:  # since NumPy 2.5
        decline("sorting in descending order")
    a = as_handle(a)
    options = {} if stable is None else {"stable": stable}
    few = np.zeros(tuple(min(n, 1) for n in a.shape), a.dtype)
    function(few, axis, kind, order, **options)
    if order is not None or not engine.shardable(a.dtype) or a.dtype.kind == "V":
        decline(f"sorting of dtype {a.dtype}")
    if axis is None:
        a, axis = np.ravel(a), 0
    return a, normalize_axis_index(axis, a.ndim), "stable" if stable else kind


def _ascending(a: Any) -> Layout:
    """The layout of a one-dimensional array whose ranks hold ascending parts: its own, or the default one."""
    found = engine.layout_of(a) if engine.is_sharded(a) else None
    if found is not None and found.mesh.ndim == 1 and isinstance(found.dims[0], Cut) and not found.dims[0].descends:
        return found
    return engine.default_layout(tuple(a.shape), split=0)


def _cut_at(counts: list[int], layout: Layout) -> Layout:
    return Layout((sum(counts),), layout.mesh, (Cut(0, tuple(accumulate(counts, initial=0))),))


def along(function: Any, a: Any, axis: int, keepdims: bool = False, front: int = 0) -> Any:
    """A function of whole rows along an axis, which is made whole on each rank first (a redistribution if it is cut).

    Parameters
    ----------
    function : callable
        Of this rank's block. It leaves the other axes as they are, and either keeps `axis` (`keepdims`, with any
        extent), or drops it; and it may put `front` new axes before all others.
    """
    layout = engine.layout_of(a) if engine.is_sharded(a) else None
    if layout is None or layout.cut_of(axis) is not None:
        others = [other for other in range(a.ndim) if other != axis]
        layout = engine.default_layout(tuple(a.shape), split=max(others, key=lambda other: a.shape[other]))
    (block,) = blocks((engine.aligned(a, layout), layout))
    shape = tuple(n if other == axis else min(n, 1) for other, n in enumerate(a.shape))
    few = function(np.zeros(shape, a.dtype))  # what becomes of shape and dtype
    made = (
        function(block)
        if block.size
        else np.empty(_shape_like(block.shape, few.shape, axis, keepdims, front), few.dtype)
    )
    rest = layout if keepdims else layout.drop_axes([axis])
    if keepdims and few.shape[front + axis] != a.shape[axis]:
        rest = rest.with_shape([few.shape[front + axis] if i == axis else n for i, n in enumerate(rest.shape)])
    if front:
        rest = rest.insert_axes(range(front), few.shape[:front])
    return engine.from_local(made, rest)


def _shape_like(block: tuple[int, ...], few: tuple[int, ...], axis: int, keepdims: bool, front: int) -> tuple[int, ...]:
    """The shape of what a function makes of a block without elements."""
    rest = [few[front + axis] if i == axis else n for i, n in enumerate(block) if keepdims or i != axis]
    return (*few[:front], *rest)
