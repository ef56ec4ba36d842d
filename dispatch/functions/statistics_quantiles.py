"""Statistics by order: medians, percentiles and quantiles, with and without NaN.

What NumPy's own Python code does with arguments (probabilities, weights, several axes, `out`, `keepdims`) is done by
that code; what is done here is the work on one axis, or on all elements.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from numpy_dist import engine
from numpy_dist.argument_types import Axes, Axis, Function
from numpy_dist.dispatch.core import fallback
from numpy_dist.dispatch.core.registry import decline, implements
from numpy_dist.dispatch.functions.statistics_quantile_formulas import MIXES_WEIGHTS, Median, Quantiles, Statistic
from numpy_dist.dispatch.patterns.arguments import NoValue, as_handle, moveaxis
from numpy_dist.dispatch.patterns.axis_local import along, long_rows
from numpy_dist.dispatch.patterns.numpy_source import numpy_source
from numpy_dist.dispatch.patterns.replicate import known
from numpy_dist.dispatch.patterns.threads import FEW, over_ranges
from numpy_dist.ir import structure
from numpy_dist.ir.rules import memory_axes

if TYPE_CHECKING:
    from numpy._globals import _NoValueType
    from numpy.typing import ArrayLike

    from numpy_dist.distarray import DistArray


@implements(np.median, kind="parallel")
def median(
    a: object, axis: Axes = None, out: object = None, overwrite_input: object = False, keepdims: object = False
) -> object:
    """Collective: a few allgathers, or a redistribution where the axis is cut.

    An input that may be overwritten is partitioned, as NumPy does it.
    """
    a = _checked(np.median, a, axis=axis, keepdims=keepdims)
    return _given(_numpys_median(a, axis, out, overwrite_input, keepdims), out)


@implements(np.nanmedian, kind="parallel")
def nanmedian(
    a: object,
    axis: Axes = None,
    out: Any = None,
    overwrite_input: object = False,
    keepdims: bool | _NoValueType = NoValue,
) -> object:
    """As `median`."""
    a = _checked(np.nanmedian, a, axis=axis, keepdims=keepdims)
    if not a.size:
        return np.nanmean(a, axis, out=out, keepdims=keepdims)
    return _given(_ureduce(a, func=_nanmedian, keepdims=keepdims, axis=axis, out=out, overwrite_input=False), out)


def _median(
    a: DistArray, axis: int | None = None, out: DistArray | np.ndarray | None = None, overwrite_input: object = False
) -> object:
    if not a.size:
        return _of_nothing(np.median, a, axis, out)
    if overwrite_input and a.ndim:
        count = a.size if axis is None else a.shape[axis]
        parted = np.ravel(a) if axis is None else a
        parted.partition(sorted({(count - 1) // 2, count // 2, count - 1}), axis=-1 if axis is None else axis)
    return _over(Median(nan=False), a, axis, out)


def _nanmedian(
    a: DistArray, axis: int | None = None, out: DistArray | np.ndarray | None = None, overwrite_input: object = False
) -> object:
    return _over(Median(nan=True), a, axis, out)


@implements(np.quantile, kind="parallel", varies=("interpolation",))
def quantile(
    a: object,
    q: ArrayLike,
    axis: Axes = None,
    out: object = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: object = False,
    *,
    weights: object = None,
    interpolation: object = None,
) -> object:
    """As `median`; with weights, a sort where there is a single axis."""
    return _quantiles(np.quantile, False, a, q, axis, out, method, keepdims, weights, interpolation)


@implements(np.percentile, kind="parallel", varies=("interpolation",))
def percentile(
    a: object,
    q: ArrayLike,
    axis: Axes = None,
    out: object = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: object = False,
    *,
    weights: object = None,
    interpolation: object = None,
) -> object:
    """As `quantile`."""
    return _quantiles(np.percentile, False, a, q, axis, out, method, keepdims, weights, interpolation)


@implements(np.nanquantile, kind="parallel", varies=("interpolation",))
def nanquantile(
    a: object,
    q: ArrayLike,
    axis: Axes = None,
    out: object = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: object = NoValue,
    *,
    weights: object = None,
    interpolation: object = None,
) -> object:
    """As `quantile`."""
    return _quantiles(np.quantile, True, a, q, axis, out, method, keepdims, weights, interpolation)


@implements(np.nanpercentile, kind="parallel", varies=("interpolation",))
def nanpercentile(
    a: object,
    q: ArrayLike,
    axis: Axes = None,
    out: object = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: object = NoValue,
    *,
    weights: object = None,
    interpolation: object = None,
) -> object:
    """As `quantile`."""
    return _quantiles(np.percentile, True, a, q, axis, out, method, keepdims, weights, interpolation)


def _quantiles(
    function: Function,
    nan: bool,
    a: object,
    q: ArrayLike,
    axis: Any,
    out: object,
    method: str,
    keepdims: object,
    weights: object,
    interpolation: object,
) -> object:
    if interpolation is not None:
        decline("quantiles with an interpolation, which is their method by now")
    if MIXES_WEIGHTS and weights is not None and np.size(axis) > 1:
        decline("weights along several axes, which this NumPy mixes up")
    q = known(q, function, "probabilities") if engine.is_handle(q) else q
    if not isinstance(weights, np.ndarray | engine.Handle | None):
        weights = np.asanyarray(weights)
    if weights is not None and weights.dtype.hasobject:
        decline("weights that are Python objects")
    some: np.ndarray | float = np.full(np.shape(q), 0.5) if np.ndim(q) else 0.5
    a = _checked(np.nanquantile if nan else np.quantile, a, some, axis, method=method, keepdims=keepdims)
    return _given(_NUMPYS[function, nan](a, q, axis, out, False, method, keepdims, weights=weights), out)


def _unchecked(nan: bool) -> Function:
    """NumPy's function of this name, for arrays of ours: what is done after the arguments have been looked at."""

    def unchecked(
        a: DistArray,
        q: np.ndarray,
        axis: Axes = None,
        out: Any = None,
        overwrite_input: bool = False,
        method: str = "linear",
        keepdims: bool | _NoValueType = False,
        weights: DistArray | np.ndarray | None = None,
        weak_q: bool = False,
    ) -> object:
        if nan and not a.size:
            return np.nanmean(a, axis, out=out, keepdims=keepdims)
        options = {"q": q, "weights": weights, "method": method, "weak_q": weak_q, "nan": nan}
        return _ureduce(a, func=_of_axis, keepdims=keepdims, axis=axis, out=out, **options)

    return unchecked


_numpys_median = numpy_source(np.median, _median=_median)
_ureduce: Function = _numpys_median.__globals__["_ureduce"]
_NUMPYS: dict[tuple[Function, bool], Function] = {
    (function, nan): numpy_source(function, _quantile_unchecked=_unchecked(nan))
    for function in (np.quantile, np.percentile)
    for nan in (False, True)
}


def _of_axis(
    a: DistArray,
    q: np.ndarray,
    weights: DistArray | np.ndarray | None,
    method: str,
    weak_q: bool,
    nan: bool,
    axis: int | None = None,
    out: DistArray | np.ndarray | None = None,
) -> object:
    """Quantiles along one axis, or (None) of all elements."""
    if not a.size:
        beside = {} if weights is None else {"weights": np.ones(a.shape)}
        return _of_nothing(np.quantile, a, axis, out, float(q) if weak_q else q, method=method, **beside)
    if weights is None:
        return _over(Quantiles(q, method, weak_q, nan), a, axis, out)
    if weights.shape == a.shape:
        return _over(Quantiles(q, method, weak_q, nan, weighted=True), a, axis, out, (as_handle(weights),))
    line = known(weights, np.quantile, "weights")  # those of one row, which are those of all
    return _over(Quantiles(q, method, weak_q, nan, weighted=True, line=line), a, axis, out)


def _over(
    statistic: Statistic,
    a: DistArray,
    axis: Axis,
    out: DistArray | np.ndarray | None,
    beside: tuple[DistArray, ...] = (),
) -> object:
    """A statistic along one axis of an array of ours, or (None) of all its elements (collective)."""
    alone = axis is None or a.ndim == 1
    axis = 0 if axis is None else range(a.ndim)[axis]
    others = () if alone else tuple(n for other, n in enumerate(a.shape) if other != axis)
    if out is not None:
        statistic.check(out, (*statistic.lead, *others), a, axis)
    dtype = out.dtype if out is not None and statistic.computes_in_output else None
    if alone:
        result = statistic.of_all(a, *beside, dtype=dtype)
    elif long_rows(a, axis):
        result = _row_by_row(lambda *row: statistic.of_all(*row, dtype=dtype), a, axis, beside, others)
    else:
        front = len(statistic.lead)
        result = along(
            lambda *parts: _of_rows(statistic, parts, axis, dtype),
            a,
            axis,
            front=front,
            beside=beside,
            agreed=True,
            library=True,
        )
        order = None if out is not None else _memory_order(statistic, (a, *beside), axis)
        if order is not None:
            inverse = np.argsort(order).tolist()
            result = engine.copy(result.transpose(order), order="C").transpose(inverse)
    if out is None:
        return result
    engine.assign(out, result, named="output array")
    return out


def _of_rows(statistic: Statistic, parts: tuple[np.ndarray, ...], axis: int, dtype: np.dtype | None) -> np.ndarray:
    """A statistic of this rank's rows; where it tells nothing of single ones, of parts of them on all threads."""
    cut = max((other for other in range(parts[0].ndim) if other != axis), key=lambda other: parts[0].shape[other])
    if statistic.nan or not all(isinstance(part, np.ndarray) for part in parts):
        return statistic.of_rows(*parts, axis=axis, dtype=dtype)

    def of_some(low: int, high: int) -> np.ndarray:
        some = (slice(None),) * cut + (slice(low, high),)
        return np.asarray(statistic.of_rows(*(part[some] for part in parts), axis=axis, dtype=dtype))

    rows = parts[0].shape[cut]
    found = over_ranges(of_some, rows, max(FEW * rows // max(parts[0].size, 1), 1))
    return found[0] if len(found) == 1 else np.concatenate(found, len(statistic.lead) + cut - (cut > axis))


def _memory_order(statistic: Statistic, arrays: tuple[DistArray, ...], axis: int) -> tuple[int, ...] | None:
    """The axes of NumPy's result from outermost to innermost in memory, None if that is C order.

    NumPy tells, from few rows that lie in memory as those of the arrays do. (Its medians without NaN go another way
    from 600 elements on.)
    """
    few = []
    for x in arrays:
        shape = tuple(min(n, 600) if other == axis else min(n, 2) for other, n in enumerate(x.shape))
        order = memory_axes([x._array], tuple(x.shape)) or range(x.ndim)
        own = [shape[i] if x.strides[i] else min(1, shape[i]) for i in order]  # the others are repeated
        line = np.ones(own, x.dtype if x.dtype.kind not in "mM" else "f8")
        few.append(np.broadcast_to(line.transpose(np.argsort(order).tolist()), shape))
    with np.errstate(all="ignore"):
        made = statistic.of_rows(*few, axis=axis)
    return memory_axes([made], made.shape)


def _row_by_row(
    of_all: Callable[..., np.ndarray | np.generic],
    a: DistArray,
    axis: int,
    beside: tuple[DistArray, ...],
    others: tuple[int, ...],
) -> np.ndarray:
    found = []
    for index in np.ndindex(*others):
        key = (*index[:axis], slice(None), *index[axis:])
        found.append(of_all(*(x._view(structure.index, key) for x in (a, *beside))))
    lead = np.ndim(found[0])
    made = np.reshape(np.array(found), (*others, *np.shape(found[0])))
    return moveaxis(made, range(len(others), len(others) + lead), range(lead))


def _of_nothing(
    function: Function, a: DistArray, axis: int | None, out: object, *q: object, **options: object
) -> object:
    """What NumPy makes of an array without elements, and its warnings."""
    found = fallback.plain(function, (np.zeros(a.shape, a.dtype), *q), {"axis": axis, **options})
    if out is None:
        return found
    engine.assign(out, found, named="output array")
    return out


def _checked(function: Function, a: object, *arguments: object, **options: object) -> DistArray:
    """The array as a handle; NumPy's error for strings, which a single one has, too."""
    a = as_handle(a)
    if a.dtype.kind in "SU":
        function(np.zeros(tuple(min(n, 1) for n in a.shape), a.dtype), *arguments, **options)
    if a.dtype.kind not in "biufcmM":
        decline(f"order statistics of dtype {a.dtype}")
    return a


def _given(result: object, out: object) -> object:
    """The result as the user gets it: the output, or an array that owns its memory."""
    if isinstance(result, np.ndarray) and result is not out:
        return engine.wrap(result if result.base is None else result.copy("K"))
    return result
