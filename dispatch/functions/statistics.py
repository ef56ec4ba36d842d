"""Statistics of sums: averages and variances, as NumPy's own ``_methods.py`` computes them, and correlation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike

from numpy_dist import engine
from numpy_dist.argument_types import Axes
from numpy_dist.dispatch.core.registry import implements
from numpy_dist.dispatch.core.signatures import NUMPY_VERSION
from numpy_dist.dispatch.patterns.arguments import NoValue, as_handle, astype
from numpy_dist.dispatch.patterns.convolution import checked_sequences, sliding_sums
from numpy_dist.dispatch.patterns.numpy_source import adopt, numpy_source, warn
from numpy_dist.dispatch.patterns.reduce import reduce

if TYPE_CHECKING:
    from numpy_dist.distarray import DistArray

adopt(__name__, np.nanmean, np.nanvar, np.nanstd)


EMPTY = "Mean of empty slice" if NUMPY_VERSION >= (2, 4) else "Mean of empty slice."


def _count(a: DistArray, axis: Any, keepdims: object, where: object) -> Any:
    """How many elements each result is made of (``_count_reduce_items``)."""
    if where is True:
        axes = range(a.ndim) if axis is None else np.lib.array_utils.normalize_axis_tuple(axis, a.ndim)
        count = 1
        for each in axes:
            count *= a.shape[each]
        return np.intp(count)
    chosen = as_handle(where)._view(np.broadcast_to, a.shape)
    return engine.reduction(np.add, chosen, axis, np.intp, None, keepdims=keepdims)


def _divide(total: Any, count: Any) -> Any:
    """``total / count`` in the dtype of `total`, in place if it is an array."""
    if isinstance(total, np.generic):
        return total.dtype.type(total / count)
    return np.true_divide(total, count, out=total, casting="unsafe")


def _default_dtype(dtype: DTypeLike | None, given: np.dtype) -> DTypeLike | None:
    """Integers and bools are averaged in double precision."""
    return np.dtype("f8") if dtype is None and given.kind in "iub" else dtype


@implements(np.mean, kind="composed")
def mean(
    a: object,
    axis: Axes = None,
    dtype: DTypeLike | None = None,
    out: object = None,
    keepdims: object = NoValue,
    *,
    where: object = NoValue,
) -> object:
    a, keepdims, where = as_handle(a), keepdims is not NoValue and keepdims, True if where is NoValue else where
    count = _count(a, axis, keepdims, where)
    if count == 0 if where is True else np.any(count == 0):
        warn(EMPTY, RuntimeWarning)
    half = dtype is None and a.dtype == np.float16
    dtype = np.dtype("f4") if half else _default_dtype(dtype, a.dtype)
    total = engine.reduction(np.add, a, axis, dtype, out, keepdims=keepdims, where=where)
    if half and isinstance(total, np.generic):
        return a.dtype.type(total / count)
    result = _divide(total, count)
    return astype(result, a.dtype) if half and out is None else result


def _ddof(ddof: object, correction: object) -> object:
    if correction is NoValue:
        return ddof
    if ddof != 0:
        raise ValueError("ddof and correction can't be provided simultaneously.")
    return correction


def _squared_magnitude(deviation: DistArray, given: np.dtype) -> DistArray | np.ndarray:
    if given.kind in "fiu":
        return np.square(deviation)
    if deviation.dtype.kind == "c":
        real, imag = np.real(deviation), np.imag(deviation)
        return np.add(np.square(real), np.square(imag))
    if given.kind == "m":
        np.var(np.ones(1, given))  # spans of time have no squares: NumPy's error, in the words of its version
    return np.real(np.multiply(deviation, np.conjugate(deviation)))


def _variance(
    a: object,
    axis: Axes,
    dtype: DTypeLike | None,
    out: object,
    ddof: object,
    keepdims: object,
    where: object,
    average: object,
) -> Any:
    a, keepdims, where = as_handle(a), keepdims is not NoValue and keepdims, True if where is NoValue else where
    count = _count(a, axis, keepdims, where)
    if ddof >= count if where is True else np.any(ddof >= count):
        warn("Degrees of freedom <= 0 for slice", RuntimeWarning)
    dtype = _default_dtype(dtype, a.dtype)
    if average is NoValue:
        total = engine.reduction(np.add, a, axis, dtype, None, keepdims=True, where=where)
        divisor = count if np.ndim(count) == 0 else np.reshape(count, total.shape)
        average = _divide(total, divisor)
    # Neither the deviations nor their squares have a name here: nobody holds them, so they need not be stored.
    total = engine.reduction(
        np.add,
        _squared_magnitude(as_handle(engine.elementwise(np.subtract, (a, average))), a.dtype),
        axis,
        dtype,
        out,
        keepdims=keepdims,
        where=where,
    )
    return _divide(total, np.maximum(count - ddof, 0))


@implements(np.var, kind="composed")
def var(
    a: object,
    axis: Axes = None,
    dtype: DTypeLike | None = None,
    out: object = None,
    ddof: object = 0,
    keepdims: object = NoValue,
    *,
    where: object = NoValue,
    mean: object = NoValue,
    correction: object = NoValue,
) -> object:
    return _variance(a, axis, dtype, out, _ddof(ddof, correction), keepdims, where, mean)


@implements(np.std, kind="composed")
def std(
    a: object,
    axis: Axes = None,
    dtype: DTypeLike | None = None,
    out: object = None,
    ddof: object = 0,
    keepdims: object = NoValue,
    *,
    where: object = NoValue,
    mean: object = NoValue,
    correction: object = NoValue,
) -> object:
    variance = _variance(a, axis, dtype, out, _ddof(ddof, correction), keepdims, where, mean)
    if isinstance(variance, np.generic):
        return variance.dtype.type(np.sqrt(variance))
    return np.sqrt(variance, out=variance)


adopt(__name__, np.corrcoef)

_average, _cov = numpy_source(np.average), numpy_source(np.cov)


@implements(np.average, kind="composed")
def average(
    a: object, axis: Axes = None, weights: object = None, returned: object = False, *, keepdims: object = NoValue
) -> object:
    found = _average(a, axis, weights, returned, keepdims=keepdims)
    if not returned:
        return found
    return found[0], engine.wrap(found[1])  # the count of elements is no array of ours yet


@implements(np.cov, kind="composed")
def cov(
    m: object,
    y: object = None,
    rowvar: object = True,
    bias: object = False,
    ddof: object = None,
    fweights: object = None,
    aweights: object = None,
    *,
    dtype: DTypeLike | None = None,
) -> object:
    # One is multiplied by the other in place.
    fweights, aweights = (None if x is None else as_handle(x) for x in (fweights, aweights))
    found = _cov(m, y, rowvar, bias, ddof, fweights, aweights, dtype=dtype)
    return as_handle(found) if isinstance(found, np.ndarray) else found  # of no variables


@implements(np.correlate, kind="parallel")
def correlate(a: Any, v: Any, mode: object = "valid") -> DistArray:
    """Collective, as `convolve`."""
    a, v = checked_sequences(np.correlate, a, v, mode)
    v = np.conjugate(v) if v.dtype.kind == "c" else v
    # NumPy slides the shorter one along the longer one, too, and turns the result round if that is the first.
    if a.size >= v.size:
        return sliding_sums(a, v[::-1], np.correlate, mode)
    return sliding_sums(v, a[::-1], np.correlate, mode)[::-1].copy()


@implements(np.ptp, kind="composed")
def ptp(a: object, axis: Axes = None, out: Any = None, keepdims: object = NoValue) -> object:
    largest = reduce(np.maximum, a, axis, None, out, keepdims, NoValue, NoValue)
    smallest = reduce(np.minimum, a, axis, None, None, keepdims, NoValue, NoValue)
    return np.subtract(largest, smallest, out)
