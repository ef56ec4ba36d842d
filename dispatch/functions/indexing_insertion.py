"""Extracting and replacing elements by conditions: the positions of what is not zero, selection, masked assignment."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from numpy_dist import engine
from numpy_dist.backends.library import compute
from numpy_dist.dispatch.core.registry import decline, implements
from numpy_dist.dispatch.functions.placing import repeated
from numpy_dist.dispatch.patterns.arguments import as_handle, blocks, truth
from numpy_dist.dispatch.patterns.numpy_source import adopt
from numpy_dist.dispatch.patterns.select import boolean_getitem, boolean_setitem
from numpy_dist.ir.meta_arrays import as_strided
from numpy_dist.parallel import masks

adopt(__name__, np.flatnonzero)


def _truth(x: Any) -> Any:
    return truth(as_handle(x))


@implements(np.nonzero, kind="parallel")
def nonzero(a: Any) -> tuple[Any, ...]:
    if a.ndim == 0:
        np.nonzero(np.zeros((), a.dtype))  # NumPy's error
    truth = _truth(a)
    layout = engine.layout_of(truth) if engine.is_sharded(truth) else None
    if layout is None or layout.is_replicated or not masks.selects_in_order(layout, a.ndim):
        truth = np.ravel(truth)
        layout = engine.default_layout(truth.shape, split=0)
        truth = engine.aligned(truth, layout)
    (block,) = blocks((truth, layout), library=True)
    found = compute("nonzero", np.nonzero, block)
    comm = engine.runtime().comm
    result = masks.selection_layout(layout, truth.ndim, comm.allgather(len(found[0])))
    box = layout.box(comm.rank)
    assert box is not None
    indices = tuple(where + low for where, (low, _) in zip(found, box, strict=True))
    if truth.ndim != a.ndim:
        shape = tuple(a.shape)
        indices = compute("unravel", lambda flat: np.unravel_index(flat, shape), indices[0], shape=shape)
    return tuple(engine.from_local(each, result)[:] for each in indices)  # NumPy's are views of one array


@implements(np.argwhere, kind="composed")
def argwhere(a: Any) -> Any:
    if a.ndim == 0:
        return argwhere(np.atleast_1d(a))[:, :0]
    return np.transpose(np.stack(np.nonzero(a)))


@implements(np.extract, kind="composed")
def extract(condition: Any, arr: Any) -> Any:
    condition, arr = np.ravel(_truth(condition)), np.ravel(as_handle(arr))
    if condition.shape != arr.shape:
        return np.take(arr, np.nonzero(condition)[0])
    return boolean_getitem(arr, condition)


@implements(np.compress, kind="composed")
def compress(condition: Any, a: Any, axis: Any = None, out: Any = None) -> Any:
    condition, a = _truth(condition), as_handle(a)
    if condition.ndim != 1:
        raise ValueError("condition must be a 1-d array")
    if axis is None:
        a, axis = np.ravel(a), 0
    a = np.atleast_1d(a)
    axis = normalize_axis_index(axis, a.ndim)
    if out is not None or not a.size:
        return np.take(a, np.nonzero(condition)[0], axis, out)
    length, n = condition.shape[0], a.shape[axis]
    if length > n:
        beyond = condition[n:]
        if np.any(beyond):
            index = n + np.argmax(beyond)
            raise IndexError(f"index {index} is out of bounds for axis {axis} with size {n}")
        condition = condition[:n]
    before = (slice(None),) * axis
    found = boolean_getitem(a[(*before, slice(length))], (*before, condition))
    return engine.copy(found, order="C") if axis else found  # the index gives, as in NumPy, another memory order


@implements(np.place, kind="composed")
def place(arr: Any, mask: Any, vals: Any) -> None:
    if not engine.is_handle(arr):
        decline("place into an ndarray")
    if not engine.may_write(arr._array):
        raise ValueError("WRITEBACKIFCOPY base is read-only")
    mask = _truth(mask)
    if mask.size != arr.size:
        raise ValueError("place: mask and data must be the same size")
    if isinstance(vals, np.ndarray):
        vals = vals.astype(arr.dtype, casting="unsafe")
    values = vals if engine.is_handle(vals) else np.asarray(vals, arr.dtype)  # a tuple may be a record
    mask = np.reshape(mask, arr.shape)
    if values.size == 1:
        return engine.assign(arr, np.reshape(values, ()), where=mask)
    count = int(np.count_nonzero(mask))
    if values.size == 0:
        if count:
            raise ValueError("Cannot insert from an empty array!")
        return None
    return boolean_setitem(arr, mask, repeated(values, count)) if count else None


@implements(np.putmask, kind="composed")
def putmask(a: Any, /, mask: Any, values: Any) -> None:
    if not engine.is_handle(a):
        decline("putmask into an ndarray")
    if not engine.may_write(a._array):
        raise ValueError("putmask: output array is read-only")
    mask, values = _truth(mask), _safely_cast(values, a.dtype)
    if mask.size != a.size:
        raise ValueError("putmask: mask and data must be the same size")
    if not values.size or not a.size:
        return
    values = np.reshape(repeated(values, a.size), () if values.size == 1 else a.shape)
    engine.assign(a, values, where=np.reshape(mask, a.shape))


def _safely_cast(values: Any, dtype: np.dtype) -> Any:
    """What is to be stored in an array of this dtype: arrays must be safe to cast, Python's objects are converted."""
    if not (engine.is_handle(values) or isinstance(values, np.ndarray)):
        return np.asarray(values, dtype)
    if not np.can_cast(values.dtype, dtype, "safe"):
        raise TypeError(f"Cannot cast array data from {values.dtype!r} to {dtype!r} according to the rule 'safe'")
    return values


@implements(np.fill_diagonal, kind="composed")
def fill_diagonal(a: Any, val: Any, wrap: bool = False) -> None:
    if a.ndim < 2:
        raise ValueError("array must be at least 2-d")
    if not engine.is_handle(a):
        decline("fill_diagonal of an ndarray")
    if a.ndim > 2 and len(set(a.shape)) != 1:
        raise ValueError("All dimensions of input must be of equal length")
    if not engine.may_write(a._array):
        raise ValueError("underlying array is read-only")
    value = val if engine.is_handle(val) else np.asarray(val, a.dtype)
    length = min(a.shape)
    if (a.ndim == 2 and wrap and a.shape[0] > a.shape[1]) or value.ndim > 1 or value.size not in (1, length):
        columns = a.shape[1]
        step = columns + 1 if a.ndim == 2 else 1 + int(np.cumprod(a.shape[:-1]).sum())
        a.flat[: None if wrap or a.ndim > 2 else columns * columns : step] = value
    elif prod(a.shape):
        stride = sum(a.strides)
        diagonal = a._view(as_strided, (length,), (stride,))
        engine.assign(diagonal, value)
