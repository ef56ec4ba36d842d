"""Sorting, searching and counting: positions of extremes, selection by a condition."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from numpy_dist import engine
from numpy_dist.dispatch.core.registry import decline, implements
from numpy_dist.dispatch.patterns.arguments import NoValue, as_handle, blocks, everywhere, metadata
from numpy_dist.ir.ops import SELECT
from numpy_dist.layout.layout import Layout
from numpy_dist.parallel.arg_reductions import arg_reduce_all, arg_reduce_axis


@implements(np.argmax, kind="parallel")
def argmax(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = NoValue) -> Any:
    return _arg_reduce(np.argmax, a, axis, out, keepdims is not NoValue and keepdims)


@implements(np.argmin, kind="parallel")
def argmin(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = NoValue) -> Any:
    return _arg_reduce(np.argmin, a, axis, out, keepdims is not NoValue and keepdims)


def _arg_reduce(choose: Any, a: Any, axis: Any, out: Any, keepdims: bool) -> Any:
    a = as_handle(a)
    if a.dtype.hasobject:
        decline("arrays of Python objects")
    shape = _result_shape(choose, a, axis, keepdims, out)
    if axis is None or a.ndim < 2:
        a, layout = _with_layout(a)
        (block,) = blocks((a, layout))
        found: Any = np.intp(arg_reduce_all(choose, block, layout, engine.runtime().comm))
    else:
        found = _along_axis(choose, a, normalize_axis_index(axis, a.ndim))
    if out is not None:
        if engine.is_handle(out):
            engine.assign(out, found if np.ndim(found) == 0 else np.reshape(found, shape))
        else:
            whole: Any = everywhere(found, choose, "its output is an ndarray, which every rank holds whole")
            out[...] = np.reshape(whole, shape)
        return out
    if engine.is_handle(found):
        return np.reshape(found, shape) if keepdims else found
    return as_handle(np.full(shape, found)) if shape else found


def _result_shape(choose: Any, a: Any, axis: Any, keepdims: bool, out: Any) -> tuple[int, ...]:
    """Shape of the result; NumPy's errors for empty sequences, bad axes and an `out` that does not fit."""
    empty = 0 in a.shape
    # One element stands for any number of them.
    stand_in = np.zeros(a.shape if empty else (1,) * a.ndim, a.dtype)
    small = choose(stand_in, axis=axis, keepdims=True)
    if axis is None:
        shape = (1,) * a.ndim if keepdims else ()
    else:
        axis = normalize_axis_index(axis, max(a.ndim, 1))
        shape = tuple(n for i, n in enumerate(a.shape) if i != axis or keepdims)
        if keepdims:
            shape = tuple(m if i == axis else n for i, (n, m) in enumerate(zip(a.shape, small.shape, strict=True)))
    if out is not None:
        if not np.can_cast(out.dtype, np.intp, "safe"):
            raise TypeError(
                f"Cannot cast array data from {out.dtype!r} to {np.dtype(np.intp)!r} according to the rule 'safe'"
            )
        if tuple(out.shape) != shape:
            raise ValueError(f"output array does not match result of np.{choose.__name__}.")
    return shape


def _with_layout(a: Any) -> tuple[Any, Layout]:
    """The array with an exact layout: its own, else the default one."""
    layout = engine.layout_of(a)
    if layout is None or not engine.is_sharded(a):
        layout = engine.runtime().default_layout(tuple(a.shape))
        a = engine.aligned(a, layout)
    return a, layout


def _along_axis(choose: Any, a: Any, axis: int) -> Any:
    a, layout = _with_layout(a)
    result = layout.drop_axes([axis])
    if layout.cut_of(axis) is not None and engine.default_shard(result.nelements * np.dtype(np.intp).itemsize):
        result = engine.default_layout(result.shape)  # else every rank would hold all of a large result
    (block,) = blocks((a, layout))
    return engine.from_local(arg_reduce_axis(choose, block, layout, axis, result, engine.runtime().comm), result)


@implements(np.where, kind="native", varies=("x", "y"))  # None is an object like others to NumPy's
def where(condition: Any, x: Any = NoValue, y: Any = NoValue, /) -> Any:
    if x is NoValue and y is NoValue:
        return np.nonzero(as_handle(condition))
    if x is NoValue or y is NoValue:
        raise ValueError("either both or neither of x and y should be given")
    # Python's numbers are weak in the dtype of the result (NEP 50); a text would be taken for the name of a dtype.
    dtype = np.result_type(*(v if type(v) in _WEAK else metadata(v).dtype for v in (x, y)))
    if dtype.hasobject:
        decline("arrays of Python objects")
    condition = condition if engine.is_handle(condition) else np.asarray(condition).astype(bool)
    if dtype.kind in "iu" and (type(x) is int or type(y) is int):
        # Since 2.5 NumPy refuses integers that do not fit.
        np.where(np.empty(0, bool), *(v if type(v) is int else np.empty(0, dtype) for v in (x, y)))
    found = engine.elementwise(SELECT, [_chosen(condition), *(_chosen(v, dtype) for v in (x, y))], result_dtype=dtype)
    return found if engine.is_handle(found) else engine.wrap(np.asarray(found))  # an array also without axes


_WEAK = (int, float, complex)
_LARGEST = {char: float(np.finfo(char).max) for char in "efF"}


def _chosen(value: Any, dtype: np.dtype | None = None) -> Any:
    """An array, or a scalar that knows its dtype; Python's numbers may overflow in that of the result."""
    if type(value) in _WEAK and dtype is not None and not abs(value) <= _LARGEST.get(dtype.char, np.inf):
        return engine.narrowed(value, dtype)
    return value if engine.is_handle(value) else np.asarray(value)[()]
