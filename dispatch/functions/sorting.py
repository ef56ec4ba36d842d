"""Sorting, searching and counting.

Rows along an axis are sorted and searched by NumPy, whole on each rank (`patterns.axis_local`); a single line that is
cut between the ranks by a sample sort (`patterns.sort`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from numpy_dist import engine
from numpy_dist.argument_types import Axes, Function, Keywords
from numpy_dist.backends.library import compute
from numpy_dist.dispatch.core.registry import Outlook, decline, implements
from numpy_dist.dispatch.patterns.arguments import NoValue, as_handle, astype, metadata, truth, truth_of, values_of
from numpy_dist.dispatch.patterns.axis_local import along, long_rows, row_by_row
from numpy_dist.dispatch.patterns.blocks import blocks, exact_layout, in_boxes, map_elements
from numpy_dist.dispatch.patterns.fold import folded, own_blocks
from numpy_dist.dispatch.patterns.numpy_source import adopt
from numpy_dist.dispatch.patterns.replicate import everywhere, known, most_known, outlook_of_known
from numpy_dist.dispatch.patterns.search import FEW, looked_up, routed
from numpy_dist.dispatch.patterns.select import boolean_getitem
from numpy_dist.dispatch.patterns.sort import argsort_line, lexsort_line, sort_line
from numpy_dist.dispatch.patterns.take import integer_getitem
from numpy_dist.dispatch.patterns.threads import in_parts
from numpy_dist.ir.rules import copy_axes
from numpy_dist.parallel.arg_reductions import arg_reduce_all, arg_reduce_axis

if TYPE_CHECKING:
    from numpy import _SortSide
    from numpy.typing import ArrayLike

    from numpy_dist.distarray import DistArray

adopt(__name__, np.flatnonzero)
adopt(__name__, np.nanargmin, np.nanargmax, alone=True)


@implements(np.sort, kind="parallel", varies=("descending",))
def sort(
    a: object,
    axis: int | None = -1,
    kind: object = None,
    order: object = None,
    *,
    stable: object = None,
    descending: object = NoValue,
) -> DistArray:
    """Collective where the axis is cut: a redistribution, or the exchange of a sample sort for a single axis."""
    options = _options(kind, order, stable, descending)
    a, axis = _arguments(np.sort, a, axis, options)
    if a.ndim == 1:
        with engine.activity("sorting", a.nbytes):
            return sort_line(a, options)
    memory = copy_axes("K", a._array)
    if memory is None:
        return _sorted_rows(a, axis, options)
    # The result has, as in NumPy, the operand's memory order.
    rows = _sorted_rows(a.transpose(memory), memory.index(axis), options)
    return engine.as_made(rows.transpose(np.argsort(memory).tolist()))


def _sorted_rows(a: DistArray, axis: int, options: Keywords) -> DistArray:
    if long_rows(a, axis):
        return row_by_row(lambda row: sort_line(row, options), a, axis)
    return _each_row("sort", np.sort, a, axis, options)


def _each_row(name: str, function: Function, a: DistArray, axis: int, options: Keywords) -> DistArray:
    """`numpy.sort` or `numpy.argsort` of rows, on all threads of the ranks that have them."""
    values_only = not {"descending", "order"} & options.keys()  # then all ways of sorting give the same

    def in_threads(block: np.ndarray) -> np.ndarray:
        return in_parts(lambda rows: function(rows, axis, **options), block, axis, scratch.empty)

    with engine.Scratch() as scratch:
        return along(
            lambda block: compute(name, in_threads, block, axis=axis), a, axis, keepdims=True, library=values_only
        )


@implements(np.argsort, kind="parallel", varies=("descending",))
def argsort(
    a: object,
    axis: int | None = -1,
    kind: object = None,
    order: object = None,
    *,
    stable: object = None,
    descending: object = NoValue,
) -> DistArray:
    """As `sort`. Always stable along a single axis."""
    options = _options(kind, order, stable, descending)
    a, axis = _arguments(np.argsort, a, axis, options)
    if a.ndim == 1:
        with engine.activity("sorting", a.nbytes):
            return argsort_line(a, options)
    if long_rows(a, axis):
        return row_by_row(lambda row: argsort_line(row, options), a, axis)
    return _each_row("argsort", np.argsort, a, axis, options)


def _options(kind: object, order: object, stable: object, descending: object) -> Keywords:
    """The options that were given."""
    found = {"kind": kind, "order": order, "stable": stable}
    if descending is not NoValue and descending:  # since NumPy 2.5
        found["descending"] = True
    return {name: value for name, value in found.items() if value is not None}


def _arguments(
    function: Callable[..., np.ndarray], a: Any, axis: int | None, options: Keywords
) -> tuple[DistArray, int]:
    """The array and the axis; NumPy's errors for what does not fit."""
    a = as_handle(a)
    function(np.zeros(tuple(min(n, 1) for n in a.shape), a.dtype), axis, **options)
    if not engine.shardable(a.dtype):
        decline(f"sorting of dtype {a.dtype}")
    if "descending" in options and a.dtype.kind in "cV":
        decline(f"sorting of dtype {a.dtype} in descending order")
    if axis is None or a.ndim == 0:
        a, axis = np.ravel(a), 0
    return a, normalize_axis_index(axis, a.ndim)


@implements(np.lexsort, kind="parallel", alone=True)
def lexsort(keys: DistArray | Sequence[object], axis: int = -1) -> object:
    """Collective where the axis is cut: a redistribution, or one sample sort by all keys for a single axis."""
    # An array is not iterated over: its rows are views.
    columns = [as_handle(key) for key in ([keys[row] for row in range(len(keys))] if engine.is_handle(keys) else keys)]
    if len({tuple(key.shape) for key in columns}) > 1:
        raise ValueError("all keys need to be the same shape")
    few = tuple(np.zeros(tuple(min(n, 2) for n in key.shape), key.dtype) for key in columns)
    np.lexsort(few, axis)  # NumPy's errors
    if not all(engine.shardable(key.dtype) for key in columns):
        decline("keys that are Python objects or of variable width")
    if not columns[0].ndim:
        return np.lexsort(few)
    axis = normalize_axis_index(axis, columns[0].ndim)
    if columns[0].ndim == 1:
        return lexsort_line(*columns)
    first, *beside = columns
    if long_rows(first, axis):
        return row_by_row(lexsort_line, first, axis, beside)
    return along(lambda *parts: np.lexsort(parts, axis), first, axis, keepdims=True, beside=beside)


@implements(np.sort_complex, kind="composed")
def sort_complex(a: object) -> object:
    """As `sort`."""
    found = np.sort(as_handle(a))
    return astype(found, np.sort_complex(np.zeros(0, found.dtype)).dtype, copy=False)


@implements(np.partition, kind="composed", alone=True)
def partition(
    a: DistArray,
    kth: object,
    axis: int | None = -1,
    kind: str = "introselect",
    order: str | Sequence[str] | None = None,
) -> object:
    """A sorted array is one that is partitioned, at any place."""
    _check_places(np.partition, a, kth, axis, kind, order)
    return np.sort(a, axis=axis, order=order)


@implements(np.argpartition, kind="composed", alone=True)
def argpartition(
    a: DistArray,
    kth: object,
    axis: int | None = -1,
    kind: str = "introselect",
    order: str | Sequence[str] | None = None,
) -> object:
    """As `partition`."""
    _check_places(np.argpartition, a, kth, axis, kind, order)
    return np.argsort(a, axis=axis, order=order)


def _check_places(
    function: Callable[..., np.ndarray], a: DistArray, kth: object, axis: int | None, kind: str, order: object
) -> None:
    """NumPy's errors, which depend on the shape and the places."""
    places = everywhere(kth, function, "every rank looks at the places") if engine.is_handle(kth) else np.asarray(kth)
    if axis is None or not a.ndim and function is np.argpartition:
        shape: tuple[int, ...] = (a.size,)
    else:
        normalize_axis_index(axis, a.ndim)
        shape = tuple(n if i == axis % a.ndim else min(n, 1) for i, n in enumerate(a.shape))
    few = np.zeros((1,) * len(shape), metadata(a).dtype)
    function(few, np.zeros(places.shape, places.dtype), axis or 0, kind, order)
    if not a.size:  # NumPy looks at no place
        return
    length = shape[0 if len(shape) == 1 or axis is None else axis]
    for place in places.ravel():
        if not -length <= place < length:
            raise ValueError(f"kth(={place + length if place < 0 else place}) out of bounds ({length})")


@implements(np.argmax, kind="parallel")
def argmax(
    a: object, axis: int | None = None, out: DistArray | np.ndarray | None = None, *, keepdims: object = NoValue
) -> object:
    return _arg_reduce(np.argmax, a, axis, out, keepdims is not NoValue and keepdims)


@implements(np.argmin, kind="parallel")
def argmin(
    a: object, axis: int | None = None, out: DistArray | np.ndarray | None = None, *, keepdims: object = NoValue
) -> object:
    return _arg_reduce(np.argmin, a, axis, out, keepdims is not NoValue and keepdims)


def _arg_reduce(
    choose: Function, a: object, axis: int | None, out: DistArray | np.ndarray | None, keepdims: object
) -> object:
    a = as_handle(a)
    if a.dtype.hasobject:
        decline("arrays of Python objects")
    shape = _result_shape(choose, a, axis, keepdims, out)
    if axis is None or a.ndim < 2:
        a, layout = in_boxes(a)
        (block,) = blocks((a, layout))
        found: DistArray | np.intp = np.intp(arg_reduce_all(choose, block, layout, engine.runtime().comm))
    else:
        found = _along_axis(choose, a, normalize_axis_index(axis, a.ndim))
    if out is not None:
        if engine.is_handle(out):
            engine.assign(out, found if np.ndim(found) == 0 else np.reshape(found, shape))
        else:
            whole: np.ndarray = everywhere(found, choose, "its output is an ndarray, which every rank holds whole")
            out[...] = np.reshape(whole, shape)
        return out
    if engine.is_handle(found):
        return np.reshape(found, shape) if keepdims else found
    return as_handle(np.full(shape, found)) if shape else found


def _result_shape(
    choose: Function, a: DistArray, axis: int | None, keepdims: object, out: DistArray | np.ndarray | None
) -> tuple[int, ...]:
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
        if tuple(out.shape) != shape:
            raise ValueError(f"output array does not match result of np.{choose.__name__}.")
        if not np.can_cast(out.dtype, np.intp, "safe"):
            what, wanted = "array data" if shape else "scalar", np.dtype(np.intp)
            raise TypeError(f"Cannot cast {what} from {out.dtype!r} to {wanted!r} according to the rule 'safe'")
    return shape


def _along_axis(choose: Function, a: DistArray, axis: int) -> DistArray:
    a, layout = in_boxes(a)
    result = layout.drop_axes([axis])
    if layout.cut_of(axis) is not None and engine.default_shard(result.nelements * np.dtype(np.intp).itemsize):
        result = engine.default_layout(result.shape)  # else every rank would hold all of a large result
    (block,) = blocks((a, layout))
    return engine.from_local(arg_reduce_axis(choose, block, layout, axis, result, engine.runtime().comm), result)


@implements(np.argwhere, kind="composed")
def argwhere(a: DistArray | np.ndarray) -> DistArray | np.ndarray:
    if a.ndim == 0:
        return argwhere(np.atleast_1d(a))[:, :0]
    return np.transpose(np.stack(np.nonzero(a)))


@implements(np.extract, kind="composed")
def extract(condition: object, arr: object) -> object:
    condition, arr = np.ravel(truth_of(condition)), np.ravel(as_handle(arr))
    if condition.shape != arr.shape:
        return np.take(arr, np.nonzero(condition)[0])
    return boolean_getitem(arr, condition)


def _few_values(a: object, v: ArrayLike, side: object = "left", sorter: object = None) -> bool:
    return np.size(v) < FEW


def _outlook_of_search(a: object, v: object, side: object = "left", sorter: object = None) -> Outlook:
    return outlook_of_known(v) if engine.is_sharded(a) else Outlook("parallel", "nothing is communicated")


@implements(np.searchsorted, kind="parallel", outlook=_outlook_of_search, alone=_few_values)
def searchsorted(a: object, v: object, side: _SortSide = "left", sorter: object = None) -> object:
    """Collective where `a` is sharded: positions in all shards are added up; many values are sent where they belong."""
    if sorter is not None:
        a = _by_sorter(as_handle(a), as_handle(sorter), side)
    if not engine.is_sharded(a):
        held, v = values_of(a), as_handle(v)
        _raise_alike(held, v, side)
        return map_elements(lambda block: np.searchsorted(held, block, side), v)
    v = values_of(v) if not engine.is_sharded(v) else v
    _raise_alike(a, v, side)
    if engine.is_sharded(v) and v.nbytes > most_known():
        kind = np.result_type(a.dtype, v.dtype)  # what NumPy compares in
        points = astype(a, kind, copy=False)
        sought = astype(v, kind, copy=False)
        return routed(points, sought, side, lambda q, held, low: low + looked_up(held, q, side), np.intp)
    layout = exact_layout(a)
    (held, _), owner = own_blocks(layout, a, None)
    values = known(v, np.searchsorted, "values to be found", chosen=True)
    found = folded(looked_up(held, np.atleast_1d(values), side), layout, owner)
    return found if v.ndim else found[0]


def _raise_alike(a: engine.Handle | np.ndarray, v: engine.Handle | np.ndarray, side: _SortSide) -> None:
    """NumPy's errors, on all ranks alike: one without elements would meet none where they cannot be compared."""
    np.searchsorted(np.zeros((min(1, a.size),) * a.ndim, a.dtype), np.zeros(min(1, v.size), v.dtype), side)


def _by_sorter(a: DistArray, sorter: DistArray, side: _SortSide) -> DistArray:
    """The array in the order that a sorter gives (collective); NumPy's errors."""
    few = [np.zeros(tuple(min(n, 1) for n in x.shape), x.dtype) for x in (a, sorter)]
    np.searchsorted(few[0], np.zeros(0, a.dtype), side, few[1])
    if sorter.shape != a.shape:
        raise ValueError("sorter.size must equal a.size")
    if np.any((sorter < 0) | (sorter >= a.size)):  # NumPy finds those only that it meets
        raise ValueError("Sorter index out of range.")
    return integer_getitem(a, (sorter,))


# A number of Python's before NumPy 2.3, then one of NumPy's.
_Total = type(np.count_nonzero(()))


@implements(np.count_nonzero, kind="composed")
def count_nonzero(a: DistArray, axis: Axes = None, *, keepdims: bool = False) -> object:
    a = as_handle(a)
    if a.dtype.names is not None and (axis is not None or keepdims):
        np.zeros(1, a.dtype).astype(bool)  # NumPy's error: only when it counts all it takes records
    found = engine.reduction(np.add, truth(a), axis, np.intp, None, keepdims=keepdims)
    return _Total(found) if axis is None and not keepdims else found
