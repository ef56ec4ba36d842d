"""Indices as arrays: coordinates and flat positions, triangles and diagonals, and indices along one axis."""

from __future__ import annotations

import operator
from math import prod
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from numpy_dist import engine
from numpy_dist.dispatch.core.registry import decline, implements
from numpy_dist.dispatch.functions.array_creation_ranges import numbered_lines
from numpy_dist.dispatch.functions.picking import assign, within
from numpy_dist.dispatch.functions.whole_axes import whole_along
from numpy_dist.dispatch.patterns.arguments import as_handle, blocks
from numpy_dist.dispatch.patterns.index_arrays import Picked, check_bounds
from numpy_dist.dispatch.patterns.numpy_source import numpy_source
from numpy_dist.ir.rules import broadcast_shapes, memory_order

_numpys_take_along_axis, _numpys_put_along_axis = numpy_source(np.take_along_axis), numpy_source(np.put_along_axis)


@implements(np.take_along_axis, kind="composed", varies=("axis",))
def take_along_axis(arr: Any, indices: Any, axis: Any = -1) -> Any:
    """Collective: whether an index is out of bounds is asked of all ranks.

    Where the other axes correspond, both arrays are brought to shards with whole rows along the axis.
    """
    if arr is None or indices is None:  # which are no arrays to NumPy's code
        return _numpys_take_along_axis(arr, indices, axis)
    arr, indices = as_handle(arr), as_handle(indices)
    if axis is None and indices.ndim == 1:
        arr, axis = np.ravel(arr), 0
    if axis is None or arr.ndim != indices.ndim or indices.dtype.kind not in "iu" or arr.ndim < 2:
        return _numpys_take_along_axis(arr, indices, axis)
    axis = normalize_axis_index(axis, arr.ndim)
    others = [n for a, n in enumerate(arr.shape) if a != axis]
    if others != [n for a, n in enumerate(indices.shape) if a != axis] or max(others) < engine.runtime().size:
        return _numpys_take_along_axis(arr, indices, axis)
    check_bounds(indices, arr.shape[axis], axis, tuple(indices.shape))
    arr, layout = whole_along(arr, axis)
    wanted = layout.with_shape(indices.shape)
    values, chosen = blocks((arr, layout), (engine.aligned(indices, wanted), wanted))
    made = np.take_along_axis(values, chosen, axis) if layout.box(engine.runtime().rank) is not None else chosen
    return engine.from_local(made.astype(arr.dtype, copy=False), wanted)


def _flat_is_copy() -> bool:
    """Whether NumPy cannot write through the flat view of an array that is not C-contiguous: since NumPy 2.4."""
    try:
        np.put_along_axis(np.zeros((2, 2)).T, np.zeros(1, int), 1.0, None)
    except ValueError:
        return True
    return False


_FLAT_IS_COPY = _flat_is_copy()


def _check_shape(values: tuple[int, ...], chosen: tuple[int, ...]) -> None:
    """NumPy's error where values cannot be broadcast to the elements that are chosen."""
    if len(values) > len(chosen) or any(n not in (1, m) for n, m in zip(values[::-1], chosen[::-1], strict=False)):
        np.zeros(1)[np.zeros(chosen, np.intp)] = np.broadcast_to(0.0, values)


@implements(np.put_along_axis, kind="composed", varies=("axis",))
def put_along_axis(arr: Any, indices: Any, values: Any, axis: Any) -> None:
    """Collective: values travel to the owners of the elements."""
    if not engine.is_handle(arr):
        decline("put_along_axis into an ndarray")
    if axis is None and indices.ndim == 1 and indices.dtype.kind in "iu":
        if _FLAT_IS_COPY and not arr.flags.c_contiguous:
            raise ValueError("assignment destination is read-only")
        values = as_handle(values)
        _check_shape(tuple(values.shape), tuple(indices.shape))
        check_bounds(indices, arr.size, 0, tuple(indices.shape))
        index = np.astype(as_handle(indices), np.intp)
        return assign(Picked.flat(arr, np.where(index < 0, index + arr.size, index)), values)
    if axis is not None and arr.ndim == indices.ndim and -arr.ndim <= axis < arr.ndim:
        lines = tuple(1 if k == axis % arr.ndim else n for k, n in enumerate(arr.shape))
        if all(1 in pair or pair[0] == pair[1] for pair in zip(lines, indices.shape, strict=True)):
            _check_shape(tuple(np.shape(values)), broadcast_shapes(lines, tuple(indices.shape)))
    return _numpys_put_along_axis(arr, indices, values, axis)


@implements(np.unravel_index, kind="composed")
def unravel_index(indices: Any, shape: Any, order: Any = "C") -> Any:
    """Collective: whether an index is out of bounds is asked of all ranks."""
    indices = as_handle(indices)
    np.unravel_index(np.zeros(0, indices.dtype), shape, order=order)  # NumPy's own errors
    order = memory_order(order, "C")
    extents = (operator.index(shape),) if np.ndim(shape) == 0 else tuple(map(operator.index, shape))
    size = prod(extents)
    outside = (indices < 0) | (indices >= size)
    if np.any(outside):
        first = int(np.ravel(indices)[int(np.argmax(outside))])
        raise ValueError(f"index {first} is out of bounds for array with size {size}")
    rest = engine.copy(indices, dtype=np.intp, order="C")
    found = []
    for n in extents if order == "F" else reversed(extents):
        found.append(rest % max(n, 1))
        rest = rest // max(n, 1)
    return tuple(found if order == "F" else reversed(found))


@implements(np.ravel_multi_index, kind="composed")
def ravel_multi_index(multi_index: Any, dims: Any, mode: Any = "raise", order: Any = "C") -> Any:
    """Collective: whether an index is out of bounds is asked of all ranks."""
    parts = [x if engine.is_handle(x) else np.asarray(x) for x in multi_index]
    few = tuple(np.zeros(tuple(min(n, 1) for n in x.shape), x.dtype) for x in parts)
    np.ravel_multi_index(few, dims, mode, order)  # NumPy's own errors
    order = memory_order(order, "C")
    extents = (operator.index(dims),) if np.ndim(dims) == 0 else tuple(map(operator.index, dims))
    try:
        broadcast_shapes(*(x.shape for x in parts))
    except ValueError:
        engine.numpy_error(np.ravel_multi_index, (tuple(parts), dims, mode, order))
    modes = mode if isinstance(mode, tuple) else (mode,) * len(extents)
    found: Any = np.zeros((), np.intp)
    steps = zip(parts, extents, modes, strict=True)
    for part, n, how in reversed(list(steps)) if order == "F" else steps:
        index = within(np.astype(part, np.intp), n, how)
        if np.any((index < 0) | (index >= n)):
            raise ValueError("invalid entry in coordinates array")
        found = found * n + index
    return found


@implements(np.diag_indices_from, kind="composed")
def diag_indices_from(arr: Any) -> tuple[Any, ...]:
    if not arr.ndim >= 2:
        raise ValueError("input array must be at least 2-d")
    if not all(n == arr.shape[0] for n in arr.shape):
        raise ValueError("All dimensions of input must be of equal length")
    return (_range(arr.shape[0]),) * arr.ndim


def _range(n: int) -> Any:
    return engine.from_reader(lambda box: np.arange(*box[0]), (n,), np.intp, engine.default_layout((n,)))


def _triangle(shape: tuple[int, ...], k: Any, lower: bool) -> tuple[Any, ...]:
    """The indices of a triangle of a matrix: those of a mask that each rank makes for its part."""
    if len(shape) != 2:
        raise ValueError("input array must be 2-d")
    n, m = shape
    _, columns = numbered_lines(n, m, k if lower else k - 1)
    below = _range(n)[:, None] >= columns
    return np.nonzero(below if lower else np.logical_not(below))


@implements(np.tril_indices_from, kind="composed")
def tril_indices_from(arr: Any, k: Any = 0) -> tuple[Any, ...]:
    return _triangle(tuple(arr.shape), k, True)


@implements(np.triu_indices_from, kind="composed")
def triu_indices_from(arr: Any, k: Any = 0) -> tuple[Any, ...]:
    return _triangle(tuple(arr.shape), k, False)
