"""Mathematical functions over axes: sums, products and extremes, their running versions, and differences."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, SupportsIndex, cast

import numpy as np
from numpy.typing import DTypeLike

from numpy_dist.argument_types import Axes, Axis
from numpy_dist.dispatch.core.registry import implements
from numpy_dist.dispatch.patterns.arguments import NoValue, as_handle, type_of
from numpy_dist.dispatch.patterns.numpy_source import adopt, numpy_source, warn
from numpy_dist.dispatch.patterns.products import product
from numpy_dist.dispatch.patterns.reduce import reduce
from numpy_dist.dispatch.patterns.scan import scan

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from numpy_dist.distarray import DistArray

adopt(
    __name__,
    np.cumulative_prod,
    np.cumulative_sum,
    np.diff,
    np.gradient,
    np.nancumprod,
    np.nancumsum,
    np.nanprod,
    np.nansum,
    np.trapezoid,
)


@implements(np.sum, kind="native")
def sum(
    a: object,
    axis: Axes = None,
    dtype: DTypeLike | None = None,
    out: object = None,
    keepdims: object = NoValue,
    initial: object = NoValue,
    where: object = NoValue,
) -> object:
    return reduce(np.add, a, axis, dtype, out, keepdims, initial, where)


@implements(np.prod, kind="native")
def prod(
    a: object,
    axis: Axes = None,
    dtype: DTypeLike | None = None,
    out: object = None,
    keepdims: object = NoValue,
    initial: object = NoValue,
    where: object = NoValue,
) -> object:
    keepdims, where = keepdims is not NoValue and keepdims, where is NoValue or where
    return product(as_handle(a), axis, dtype, out, keepdims, initial, where)


@implements(np.max, np.amax, kind="native")
def max(
    a: object,
    axis: Axes = None,
    out: object = None,
    keepdims: object = NoValue,
    initial: object = NoValue,
    where: object = NoValue,
) -> object:
    return reduce(np.maximum, a, axis, None, out, keepdims, initial, where)


@implements(np.min, np.amin, kind="native")
def min(
    a: object,
    axis: Axes = None,
    out: object = None,
    keepdims: object = NoValue,
    initial: object = NoValue,
    where: object = NoValue,
) -> object:
    return reduce(np.minimum, a, axis, None, out, keepdims, initial, where)


@implements(np.cumsum, kind="parallel")
def cumsum(a: object, axis: Axis = None, dtype: DTypeLike | None = None, out: object = None) -> object:
    return _flat_or_along(np.add, a, axis, dtype, out)


@implements(np.cumprod, kind="parallel")
def cumprod(a: object, axis: Axis = None, dtype: DTypeLike | None = None, out: object = None) -> object:
    return _flat_or_along(np.multiply, a, axis, dtype, out)


def _flat_or_along(ufunc: np.ufunc, a: object, axis: Axis, dtype: DTypeLike | None, out: object) -> object:
    a, dtype = as_handle(a), type_of(dtype)
    if isinstance(axis, tuple):  # which `accumulate` takes, of one axis
        operator.index(cast(SupportsIndex, axis))
    if axis is None or a.ndim == 0:  # unlike `accumulate`, NumPy's functions take a 0-d array for one of one axis
        return scan(ufunc, np.ravel(a), 0 if axis is None else axis, dtype, out)
    return scan(ufunc, a, axis, dtype, out)


_cross = numpy_source(np.cross)


@implements(np.cross, kind="composed")
def cross(
    a: ArrayLike, b: ArrayLike, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None
) -> object:
    a, b = as_handle(a), as_handle(b)
    if a.ndim == b.ndim == 1 and all(k in (-1, 0, None) for k in (axisa, axisb, axis)):
        # As a row: NumPy's source asks for 0-d arrays in a way (`out=...`) that those who override it are not told.
        return _cross(a[None], b[None])[0, ...]
    return _cross(a, b, axisa, axisb, axisc, axis)


@implements(np.ediff1d, kind="composed")
def ediff1d(ary: object, to_end: object = None, to_begin: object = None) -> object:
    ary = np.ravel(as_handle(ary))
    pieces = []
    for name, ends in (("to_begin", to_begin), ("to_end", to_end)):
        if ends is None:
            continue
        ends = np.ravel(as_handle(ends))
        if not np.can_cast(ends.dtype, ary.dtype, casting="same_kind"):
            raise TypeError(f"dtype of `{name}` must be compatible with input `ary` under the `same_kind` rule.")
        pieces.append((name, ends))
    if not pieces:
        return np.subtract(ary[1:], ary[:-1])
    inner = np.subtract(ary[1:], ary[:-1], np.empty_like(ary[1:]))  # as NumPy, whose output has this dtype
    parts = [e for n, e in pieces if n == "to_begin"] + [inner] + [e for n, e in pieces if n == "to_end"]
    return np.concatenate(parts, dtype=ary.dtype)


@implements(np.nanmin, kind="composed")
def nanmin(
    a: object,
    axis: Axes = None,
    out: object = None,
    keepdims: object = NoValue,
    initial: object = NoValue,
    where: object = NoValue,
) -> object:
    return _warned(reduce(np.fmin, a, axis, None, out, keepdims, initial, where))


@implements(np.nanmax, kind="composed")
def nanmax(
    a: object,
    axis: Axes = None,
    out: object = None,
    keepdims: object = NoValue,
    initial: object = NoValue,
    where: object = NoValue,
) -> object:
    return _warned(reduce(np.fmax, a, axis, None, out, keepdims, initial, where))


def _warned(result: DistArray | np.ndarray | np.generic) -> object:
    """NumPy's warning, if a NaN is left (collective: it needs the values)."""
    if result.dtype.kind in "fcmM" and np.any(np.isnan(result)):
        warn("All-NaN slice encountered", RuntimeWarning)
    return result
