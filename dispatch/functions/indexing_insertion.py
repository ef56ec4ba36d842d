"""Insertion of data into arrays, by positions or by conditions."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from numpy_dist import engine
from numpy_dist.dispatch.core.registry import decline, implements
from numpy_dist.dispatch.patterns.arguments import as_handle, astype, decline_unshardable, truth_of
from numpy_dist.dispatch.patterns.index_arrays import Picked, check_bounds, first_outside
from numpy_dist.dispatch.patterns.numpy_source import numpy_source
from numpy_dist.dispatch.patterns.select import boolean_setitem
from numpy_dist.dispatch.patterns.take import as_indices, assign, repeated, scatter, within
from numpy_dist.ir.meta_arrays import as_strided
from numpy_dist.ir.rules import broadcast_shapes

if TYPE_CHECKING:
    from numpy import _ModeKind

    from numpy_dist.distarray import DistArray

_numpys_put_along_axis = numpy_source(np.put_along_axis)


def _has_several(arr: object, mask: object, vals: Any) -> bool:
    """Whether values are dealt out one after the other; a single one is assigned in a fused loop."""
    return np.size(vals) > 1


@implements(np.place, kind="composed", alone=_has_several)
def place(arr: DistArray, mask: object, vals: object) -> None:
    if not engine.is_handle(arr):
        decline("place into an ndarray")
    if not engine.may_write(arr._array):
        raise ValueError("WRITEBACKIFCOPY base is read-only")
    mask = truth_of(mask)
    if mask.size != arr.size:
        raise ValueError("place: mask and data must be the same size")
    values, mask = _safely_cast(vals, arr.dtype), np.reshape(mask, arr.shape)
    if values.size == 1:
        return engine.assign(arr, np.reshape(values, ()), where=mask)
    count = int(np.count_nonzero(mask))
    if values.size == 0:
        if count:
            raise ValueError("Cannot insert from an empty array!")
        return None
    return boolean_setitem(arr, mask, repeated(values, count)) if count else None


@implements(np.putmask, kind="composed")
def putmask(a: DistArray, /, mask: object, values: object) -> None:
    if not engine.is_handle(a):
        decline("putmask into an ndarray")
    if not engine.may_write(a._array):
        raise ValueError("putmask: output array is read-only")
    mask = truth_of(mask)
    if mask.size != a.size:
        raise ValueError("putmask: mask and data must be the same size")
    values = _safely_cast(values, a.dtype)
    if not values.size or not a.size:
        return
    values = np.reshape(repeated(values, a.size), () if values.size == 1 else a.shape)
    engine.assign(a, values, where=np.reshape(mask, a.shape))


def _safely_cast(values: object, dtype: np.dtype) -> engine.Handle | np.ndarray:
    """What is to be stored in an array of this dtype: arrays must be safe to cast, Python's objects are converted."""
    if not (engine.is_handle(values) or isinstance(values, np.ndarray)):
        return _converted(values, dtype)
    if not np.can_cast(values.dtype, dtype, "safe"):
        what = "array data" if values.ndim else "scalar"
        raise TypeError(f"Cannot cast {what} from {values.dtype!r} to {dtype!r} according to the rule 'safe'")
    return values


def _converted(values: object, dtype: np.dtype) -> engine.Handle | np.ndarray:
    """What is to be stored in an array of this dtype: no handle is as an ndarray (a tuple may be a record)."""
    if isinstance(values, np.ndarray | np.generic | engine.Handle):
        values = engine.without_imaginary_part(values, dtype)
    if engine.is_handle(values) and engine.shardable(values.dtype):
        return values
    with engine.events_reported("cast", alike=True):
        return np.asarray(engine.plain(values), dtype)


@implements(np.fill_diagonal, kind="composed")
def fill_diagonal(a: DistArray, val: object, wrap: bool = False) -> None:
    if a.ndim < 2:
        raise ValueError("array must be at least 2-d")
    if not engine.is_handle(a):
        decline("fill_diagonal of an ndarray")
    if a.ndim > 2 and len(set(a.shape)) != 1:
        raise ValueError("All dimensions of input must be of equal length")
    if not engine.may_write(a._array):
        raise ValueError("underlying array is read-only")
    value = _converted(val, a.dtype)
    length = min(a.shape)
    if (a.ndim == 2 and wrap and a.shape[0] > a.shape[1]) or value.ndim > 1 or value.size not in (1, length):
        columns = a.shape[1]
        step = columns + 1 if a.ndim == 2 else 1 + int(np.cumprod(a.shape[:-1]).sum())
        a.flat[: None if wrap or a.ndim > 2 else columns * columns : step] = value
    elif prod(a.shape):
        stride = sum(a.strides)
        diagonal = a._view(as_strided, (length,), (stride,))
        diagonal[...] = value


@implements(np.put, kind="parallel", alone=True)
def put(a: DistArray, ind: Any, v: object, mode: _ModeKind = "raise") -> None:
    """Collective: values travel to the owners of the elements; the last one for an element stays."""
    if not engine.is_handle(a):
        decline("put into an ndarray")
    decline_unshardable(a)
    ind = as_indices(ind)
    if not engine.may_write(a._array):
        raise ValueError("put: output array is read-only")
    one = np.zeros(1, a.dtype)
    np.put(one, np.zeros(0, ind.dtype if ind.size else np.intp), one, mode)  # NumPy's own errors
    n, count = a.size, int(ind.size)
    if count and not n:
        raise IndexError("cannot replace elements of an empty array")
    values = _converted(v, a.dtype)
    if not count or not values.size:
        return
    ind = np.reshape(astype(ind, np.intp), -1)
    ind, beyond = within(ind, n, mode), None
    place = first_outside(ind, n)
    if place is not None:  # NumPy writes what comes before it, but where it works on a copy
        beyond = IndexError(f"index {int(ind[place])} is out of bounds for axis 0 with size {n}")
        count = place if a._array.flags.c_contiguous else 0
        ind = ind[:count]
    if count:
        scatter(Picked.flat(a, np.where(ind < 0, ind + n, ind)), repeated(values, count))
    if beyond is not None:
        raise beyond


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
def put_along_axis(arr: DistArray, indices: DistArray | np.ndarray, values: Any, axis: int | None) -> None:
    """Collective: values travel to the owners of the elements."""
    if not engine.is_handle(arr):
        decline("put_along_axis into an ndarray")
    if axis is None and indices.ndim == 1 and indices.dtype.kind in "iu":
        if _FLAT_IS_COPY and not arr.flags.c_contiguous:
            raise ValueError("assignment destination is read-only")
        values = as_handle(values)
        _check_shape(tuple(values.shape), tuple(indices.shape))
        values = engine.without_imaginary_part(values, arr.dtype)
        check_bounds(indices, arr.size, 0, tuple(indices.shape))
        index = astype(as_handle(indices), np.intp)
        return assign(Picked.flat(arr, np.where(index < 0, index + arr.size, index)), values)
    if axis is not None and arr.ndim == indices.ndim and -arr.ndim <= axis < arr.ndim:
        lines = tuple(1 if k == axis % arr.ndim else n for k, n in enumerate(arr.shape))
        if all(1 in pair or pair[0] == pair[1] for pair in zip(lines, indices.shape, strict=True)):
            _check_shape(tuple(np.shape(values)), broadcast_shapes(lines, tuple(indices.shape)))
    return _numpys_put_along_axis(arr, indices, values, axis)
