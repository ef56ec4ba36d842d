"""Medians, percentiles and quantiles; partitions."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
from numpy.lib import _function_base_impl
from numpy.lib.array_utils import normalize_axis_index

from numpy_dist import engine
from numpy_dist.dispatch.core.registry import decline, implements
from numpy_dist.dispatch.functions.common import NoValue, as_handle, blocks
from numpy_dist.dispatch.functions.ordering import along
from numpy_dist.parallel.selection import select

_numpy: Any = _function_base_impl  # its formulas are those of the installed version
_WEAK = "weak_q" in inspect.signature(_numpy._quantile).parameters


@implements(np.median, kind="parallel")
def median(a: Any, axis: Any = None, out: Any = None, overwrite_input: Any = False, keepdims: Any = False) -> Any:
    """Collective: a few allgathers, or a redistribution where the axis is cut."""
    a, axis = _arguments(a, axis, out)
    if axis is not None:
        return along(lambda block: np.median(block, axis, keepdims=bool(keepdims)), a, axis, bool(keepdims))
    if not a.size:
        decline("the median of nothing")
    places = [(a.size - 1) // 2, a.size // 2]
    low, high, last = _at(a, [*places, a.size - 1])
    middle = np.array([low] if places[0] == places[1] else [low, high])
    result = last if _is_nan(last) else np.mean(middle)
    return engine.wrap(np.full((1,) * a.ndim, result)) if keepdims else result


@implements(np.quantile, kind="parallel", varies=("interpolation",))
def quantile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: Any = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: Any = False,
    *,
    weights: Any = None,
    interpolation: Any = None,
) -> Any:
    """As `median`."""
    return _quantiles(np.quantile, a, q, 1, axis, out, method, keepdims, weights, interpolation)


@implements(np.percentile, kind="parallel", varies=("interpolation",))
def percentile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: Any = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: Any = False,
    *,
    weights: Any = None,
    interpolation: Any = None,
) -> Any:
    """As `median`."""
    return _quantiles(np.percentile, a, q, 100, axis, out, method, keepdims, weights, interpolation)


def _quantiles(
    function: Any,
    a: Any,
    q: Any,
    whole: int,
    axis: Any,
    out: Any,
    method: str,
    keepdims: Any,
    weights: Any,
    interpolation: Any,
) -> Any:
    if weights is not None or interpolation is not None or engine.is_handle(q):
        decline("quantiles with weights, an interpolation or sharded probabilities")
    function(np.zeros(1, as_handle(a).dtype), q, method=method)  # NumPy's errors
    a, axis = _arguments(a, axis, out)
    keepdims = keepdims is not NoValue and bool(keepdims)
    if axis is not None:
        front = np.ndim(q)
        return along(lambda block: function(block, q, axis, method=method, keepdims=keepdims), a, axis, keepdims, front)
    if not a.size:
        decline("quantiles of nothing")
    weak = _WEAK and type(q) in (int, float)
    q = np.true_divide(q, whole) if whole != 1 else np.asanyarray(q)
    result = _interpolated(a, np.asanyarray(q), method, weak)
    if keepdims:
        result = np.reshape(result, np.shape(result) + (1,) * a.ndim)
    return engine.wrap(result) if np.ndim(result) else result


def _interpolated(a: Any, q: np.ndarray, method: str, weak: bool) -> Any:
    """What NumPy's `_quantile` makes of a one-dimensional array, from the few elements that it looks at."""
    formulas, count = _numpy._QuantileMethods[method], a.size
    virtual = np.asanyarray(formulas["get_virtual_index"](count, q))
    integral = np.issubdtype(virtual.dtype, np.integer)
    if formulas["fix_gamma"] is None or (method == "linear" and integral):
        before = after = virtual.astype(np.intp)
    else:
        before, after = _numpy._get_indexes(np.empty(0, a.dtype), virtual, count)
    wanted = np.unique(np.concatenate([before.ravel() % count, after.ravel() % count, [count - 1]]))
    values = _at(a, wanted.tolist())

    def taken(places: np.ndarray) -> Any:
        return values[np.searchsorted(wanted, places % count)]

    if _is_nan(values[-1]):
        return np.full(virtual.shape, values[-1])[()]
    if formulas["fix_gamma"] is None or (method == "linear" and integral):
        return taken(before)
    gamma = _numpy._get_gamma(virtual, before, formulas)
    return _numpy._lerp(taken(before), taken(after), float(gamma) if weak else gamma)


@implements(np.partition, kind="composed")
def partition(a: Any, kth: Any, axis: Any = -1, kind: str = "introselect", order: Any = None) -> Any:
    """A sorted array is one that is partitioned, at any place."""
    _check_places(np.partition, a, kth, axis, kind, order)
    return np.sort(a, axis=axis)


@implements(np.argpartition, kind="composed")
def argpartition(a: Any, kth: Any, axis: Any = -1, kind: str = "introselect", order: Any = None) -> Any:
    _check_places(np.argpartition, a, kth, axis, kind, order)
    return np.argsort(a, axis=axis)


def _check_places(function: Any, a: Any, kth: Any, axis: Any, kind: str, order: Any) -> None:
    """NumPy's errors, which depend on the shape and the places."""
    if order is not None or engine.is_handle(kth):
        decline("partitions by fields, or at sharded places")
    if axis is None:
        shape: tuple[int, ...] = (a.size,)
    else:
        normalize_axis_index(axis, a.ndim)
        shape = tuple(n if i == axis % a.ndim else min(n, 1) for i, n in enumerate(a.shape))
    places = np.asarray(kth)
    function(np.zeros((1,) * len(shape), a.dtype), np.zeros(places.shape, places.dtype), axis or 0, kind)
    length = shape[0 if axis is None else axis]
    for place in places.ravel():
        if not -length <= place < length:
            raise ValueError(f"kth(={place + length if place < 0 else place}) out of bounds ({length})")


def _arguments(a: Any, axis: Any, out: Any) -> tuple[Any, Any]:
    """The array and its axis; None for all of them."""
    a = as_handle(a)
    if out is not None or a.dtype.kind not in "biufmM":
        decline(f"order statistics into an output, or of dtype {a.dtype}")
    if isinstance(axis, tuple | list):
        axes = {normalize_axis_index(one, a.ndim) for one in axis}
        if len(axes) != len(axis):
            raise ValueError("repeated axis")
        if len(axes) not in (1, a.ndim):
            decline("order statistics along several axes")
        axis = axes.pop() if len(axes) == 1 else None
    if axis is not None:
        axis = normalize_axis_index(axis, a.ndim)
    return a, None if a.ndim == 1 else axis


def _at(a: Any, places: list[int]) -> np.ndarray:
    """Elements by their places in the order of all (collective)."""
    if not engine.is_sharded(a):
        return np.sort(a._array, axis=None)[places]
    layout = engine.layout_of(a) or engine.default_layout(tuple(a.shape))
    (block,) = blocks((engine.aligned(a, layout), layout))
    own = block.reshape(-1) if layout.primary(engine.runtime().rank) else block.reshape(-1)[:0]
    return select(own, places, engine.runtime().comm)


def _is_nan(value: Any) -> bool:
    return value.dtype.kind in "fmM" and bool(np.isnan(value))
