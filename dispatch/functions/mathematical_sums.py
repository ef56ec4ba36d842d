"""Sums, products, extremes and truth over axes: the reductions of one ufunc."""

from __future__ import annotations

from typing import Any

import numpy as np

from numpy_dist import engine
from numpy_dist.dispatch.core.engine_support import why_not_reduced
from numpy_dist.dispatch.core.registry import decline, implements
from numpy_dist.dispatch.functions.products import product
from numpy_dist.dispatch.patterns.arguments import NoValue, as_handle, given, truth


def reduce(ufunc: np.ufunc, a: Any, axis: Any, dtype: Any, out: Any, keepdims: Any, initial: Any, where: Any) -> Any:
    """`engine.reduction` with the defaults of NumPy's functions."""
    return engine.reduction(
        ufunc,
        as_handle(a),
        axis,
        dtype,
        out,
        keepdims=False if keepdims is NoValue else keepdims,
        where=True if where is NoValue else where,
        **given(initial=initial),
    )


@implements(np.sum, kind="native")
def sum(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = NoValue,
    initial: Any = NoValue,
    where: Any = NoValue,
) -> Any:
    return reduce(np.add, a, axis, dtype, out, keepdims, initial, where)


@implements(np.prod, kind="native")
def prod(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = NoValue,
    initial: Any = NoValue,
    where: Any = NoValue,
) -> Any:
    keepdims, where = keepdims is not NoValue and keepdims, where is NoValue or where
    return product(as_handle(a), axis, dtype, out, keepdims, initial, where)


@implements(np.max, np.amax, kind="native")
def max(
    a: Any, axis: Any = None, out: Any = None, keepdims: Any = NoValue, initial: Any = NoValue, where: Any = NoValue
) -> Any:
    return reduce(np.maximum, a, axis, None, out, keepdims, initial, where)


@implements(np.min, np.amin, kind="native")
def min(
    a: Any, axis: Any = None, out: Any = None, keepdims: Any = NoValue, initial: Any = NoValue, where: Any = NoValue
) -> Any:
    return reduce(np.minimum, a, axis, None, out, keepdims, initial, where)


@implements(np.any, kind="native")
def any(a: Any, axis: Any = None, out: Any = None, keepdims: Any = NoValue, *, where: Any = NoValue) -> Any:
    return reduce(np.logical_or, a, axis, bool, out, keepdims, NoValue, where)


@implements(np.all, kind="native")
def all(a: Any, axis: Any = None, out: Any = None, keepdims: Any = NoValue, *, where: Any = NoValue) -> Any:
    return reduce(np.logical_and, a, axis, bool, out, keepdims, NoValue, where)


# A number of Python's before NumPy 2.3, then one of NumPy's.
_Total = type(np.count_nonzero(()))


@implements(np.count_nonzero, kind="composed")
def count_nonzero(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    a = as_handle(a)
    if a.dtype.names is not None and (axis is not None or keepdims):
        np.zeros(1, a.dtype).astype(bool)  # NumPy's error: only when it counts all it takes records
    found = engine.reduction(np.add, truth(a), axis, np.intp, None, keepdims=keepdims)
    return _Total(found) if axis is None and not keepdims else found


@implements(np.ptp, kind="composed")
def ptp(a: Any, axis: Any = None, out: Any = None, keepdims: Any = NoValue) -> Any:
    largest = reduce(np.maximum, a, axis, None, out, keepdims, NoValue, NoValue)
    smallest = reduce(np.minimum, a, axis, None, None, keepdims, NoValue, NoValue)
    return np.subtract(largest, smallest, out)


@implements(np.lcm, method="reduce", kind="reduction")
def lcm_reduce(
    array: Any,
    axis: Any = 0,
    dtype: Any = None,
    out: Any = None,
    keepdims: bool = False,
    initial: Any = NoValue,
    where: Any = True,
) -> Any:
    """One axis only, to NumPy: all ranks say so, those without elements too."""
    reason = why_not_reduced(np.lcm, array)
    if reason is not None:
        decline(reason)
    np.lcm.reduce(np.ones((1,) * array.ndim, array.dtype), axis=axis)
    return reduce(np.lcm, array, axis, dtype, out, keepdims, initial, where)
