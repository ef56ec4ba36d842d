"""Methods of every ufunc: `reduce`, `accumulate`, `outer`, `at` and `reduceat`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index
from numpy.typing import DTypeLike

from numpy_dist import engine
from numpy_dist.argument_types import Axes
from numpy_dist.comm.portable import agree
from numpy_dist.dispatch.core import policy
from numpy_dist.dispatch.core.engine_support import why_not_reduced
from numpy_dist.dispatch.core.registry import decline, implements
from numpy_dist.dispatch.patterns.arguments import NoValue, as_handle, astype, broadcasts_to, moveaxis
from numpy_dist.dispatch.patterns.axis_local import whole_along
from numpy_dist.dispatch.patterns.blocks import blocks
from numpy_dist.dispatch.patterns.index_arrays import Picked, own_positions, own_values, rows
from numpy_dist.dispatch.patterns.products import product
from numpy_dist.dispatch.patterns.reduce import can_raise, in_order
from numpy_dist.dispatch.patterns.reduce import reduce as reduced_by_engine
from numpy_dist.dispatch.patterns.scan import scan
from numpy_dist.dispatch.patterns.take import write
from numpy_dist.engine import events_reported
from numpy_dist.ir import structure
from numpy_dist.ir.rules import memory_axes, only_asking, reduction_dtype
from numpy_dist.layout.layout import Layout
from numpy_dist.parallel import ordered, segments
from numpy_dist.parallel.updates import route

if TYPE_CHECKING:
    from numpy_dist.distarray import DistArray

# -- outer -----------------------------------------------------------------------------------------------------------


@implements(np.ufunc, method="outer", kind="composed")
def outer(
    ufunc: np.ufunc,
    A: object,
    B: object,
    out: object = None,
    where: object = True,
    casting: object = "same_kind",
    order: str | None = "K",
    dtype: DTypeLike | None = None,
    signature: object = None,
) -> object:
    """Broadcasting: recorded by the engine."""
    if ufunc.nin != 2 or ufunc.signature is not None:
        ufunc.outer(0, 0)  # NumPy's error
    options = {"casting": casting, "order": order, "dtype": dtype, "signature": signature}
    defaults = {"casting": "same_kind", "order": "K"}
    options = {name: value for name, value in options.items() if value != defaults.get(name)}
    if out is not None:
        options["out"] = out
    if where is not True:
        options["where"] = where
    A, B = (x if engine.is_handle(x) else np.asarray(x) for x in (A, B))
    return ufunc(np.reshape(A, (*A.shape, *(1,) * B.ndim)), B, **options)


# -- at --------------------------------------------------------------------------------------------------------------

_NOTHING = object()


@implements(np.ufunc, method="at", kind="parallel", alone=True)
def at(ufunc: np.ufunc, a: DistArray, indices: object, b: object = _NOTHING) -> None:
    """Updates travel to the owners of the elements, who make them in the order of the whole index.

    Collective: results are bitwise those of NumPy, also where an element is updated several times.
    """
    if not engine.is_handle(a):
        decline("updates of an ndarray")
    second = () if b is _NOTHING else (b if engine.is_handle(b) else np.asarray(b),)
    if not _check_update(ufunc, a, indices, second):
        return
    if not engine.shardable(a.dtype) or any(not engine.shardable(x.dtype) for x in second):
        decline("arrays of Python objects are not distributed")
    picked = Picked(a, _as_items(indices, a), "set")
    if second and not broadcasts_to(tuple(second[0].shape), picked.result_shape):
        raise ValueError("array is not broadcastable to correct shape")
    wanted, order = own_positions(picked.positions, picked.shape[0])
    values = [own_values(second[0], picked, order)] if second else []
    comm = engine.runtime().comm
    block, layout, points = rows(np.reshape(picked.view, picked.shape))
    where, values, _ = route(points, wanted, values, comm)
    where -= points[comm.rank]
    if not comm.delivers:  # positions are what nobody has sent
        where[...] = 0
    made, error = np.array(block), None
    index: Any
    indexed = _by_index(ufunc, a, indices, second)
    name = ufunc.__name__ if indexed else "at"
    cleared = not indexed and ufunc in _CLEARING and a.dtype.kind == "f"
    with np.errstate(all="ignore") if cleared else events_reported(name):
        try:
            target, index = (made, where) if indexed else (made[:, None], (where, 0))
            ufunc.at(target, index, *values)
        except Exception as raised:
            error = raised
    if can_raise(ufunc, a.dtype):
        agree(error, comm)
    elif error is not None:
        raise error
    chosen = np.zeros(len(made), bool)
    chosen[where] = True
    mask = engine.from_local(chosen, layout.drop_axes(range(1, layout.ndim)))
    write(picked, engine.from_local(made, layout), mask)


_CLEARING = (np.maximum, np.minimum, np.fmax, np.fmin)
"""Ufuncs whose usual loops for floats clear all flags of events in NumPy, also those of a cast before them."""
# Ufuncs with loops for elements by index, and the kinds of dtypes that can raise floating-point flags in them.
_INDEXED = {"add": "fc", "subtract": "fc", "multiply": "fc", "divide": "f", "floor_divide": "iuf"}
_INDEXED |= dict.fromkeys(("maximum", "minimum", "fmax", "fmin"), "f")


def _by_index(ufunc: np.ufunc, a: DistArray, indices: Any, second: tuple[engine.Handle | np.ndarray, ...]) -> bool:
    """Whether NumPy has a loop by index for an update, which goes by the ufunc's name in floating-point warnings.

    The loop for any index, which ``at`` stands for in warnings, may raise other flags.
    """
    if a.ndim != 1 or a.dtype.kind not in _INDEXED.get(ufunc.__name__, "") or second[0].dtype != a.dtype:
        return False
    item = indices[0] if isinstance(indices, tuple) and len(indices) == 1 else indices
    if item is None or item is Ellipsis or isinstance(item, slice | tuple):
        return False
    return np.ndim(item) > 0 or getattr(item, "dtype", np.dtype(type(item))).kind != "b"


def _check_update(
    ufunc: np.ufunc, a: DistArray, indices: object, second: tuple[engine.Handle | np.ndarray, ...]
) -> bool:
    """Whether anything may be updated.

    Raises
    ------
    Exception
        NumPy's own, for a ufunc that cannot be used so, dtypes without a loop, and targets that are read-only. Of one
        axis that is indexed by an array NumPy before 2.5.5 does not ask, and writes; here this is an error, too, but of
        no elements.
    """
    writes = engine.may_write(a._array)
    if not writes and ufunc.nout == 1 and ufunc.signature is None and len(second) + 1 == ufunc.nin:
        if a.ndim != 1 or not isinstance(indices, list | np.ndarray) or np.size(indices):
            raise ValueError(_said_of_read_only(np.ones((2, 2))))
        if words := _said_of_read_only(np.ones(2)):
            raise ValueError(words)
    few = np.ones(1, a.dtype)
    with np.errstate(all="ignore"):
        ufunc.at(few, np.zeros(0, np.intp), *(np.ones(0, x.dtype) for x in second))
    return writes


def _said_of_read_only(target: np.ndarray) -> str:
    """NumPy's words for an update of no elements of a target that may not be written; none where it does not ask."""
    target.flags.writeable = False
    try:
        np.negative.at(target, [])
    except ValueError as error:
        return str(error)
    return ""


def _as_items(indices: object, a: DistArray) -> tuple[object, ...]:
    """The items of an index, as `a[indices]` has them, with integers as arrays."""
    items = indices if isinstance(indices, tuple) else (indices,)
    made: list[object] = []
    for item in items:
        if item is None or item is Ellipsis or isinstance(item, slice) or engine.is_handle(item):
            made.append(item)
            continue
        array = np.asarray(item)
        made.append(array.astype(np.intp) if array.size == 0 and isinstance(item, list) else array)
    if any(getattr(item, "dtype", np.dtype(int)).kind not in "iub" for item in made):
        plain = tuple(np.zeros(x.shape, x.dtype) if engine.is_handle(x) else x for x in items)
        np.broadcast_to(np.zeros((), a.dtype), a.shape)[plain]  # NumPy's error
    return tuple(made)


# -- reduceat --------------------------------------------------------------------------------------------------------


def _is_numpys(
    ufunc: np.ufunc,
    array: object,
    indices: object,
    axis: object = 0,
    dtype: DTypeLike | None = None,
    out: tuple[object, ...] = (),
) -> bool:
    """Whether NumPy's own reduction is wanted, in each dtype that it may be in."""
    kinds = {np.dtype(dtype)} if dtype is not None else {x.dtype for x in (array, *out) if hasattr(x, "dtype")}
    return all(ordered.is_numpys(ufunc, kind) for kind in kinds)


@implements(np.ufunc, method="reduceat", kind="parallel", alone=_is_numpys)
def reduceat(
    ufunc: np.ufunc,
    array: object,
    indices: Any,
    axis: int = 0,
    dtype: DTypeLike | None = None,
    out: DistArray | np.ndarray | tuple[DistArray | np.ndarray] | None = None,
) -> object:
    """Row by row where there are as many rows as ranks, bitwise as NumPy; else segments are reduced in parts.

    Collective.
    """
    a, out = as_handle(array), out[0] if isinstance(out, tuple) else out
    indices = indices if engine.is_handle(indices) else np.asarray(indices)
    try:
        kind, number = _check_segments(ufunc, a, indices, axis, dtype, out)
    except TypeError:  # NumPy looks for a loop once it has looked at the indices
        if isinstance(axis, int) and -a.ndim <= axis < a.ndim and indices.ndim == 1 and indices.dtype.kind in "iu":
            _check_inside(ufunc, indices, a.shape[axis])
        raise
    axis = number
    if not engine.shardable(a.dtype) or not engine.shardable(kind):
        decline(f"arrays of dtype {a.dtype} are not distributed")
    if kind.kind in "mM":  # no `dtype` tells NumPy units of time: the operand's are the result's
        a = astype(a, kind, copy=False)
    _check_inside(ufunc, indices, a.shape[axis])
    indices = astype(indices, np.intp)
    kept = [other for other in range(a.ndim) if other != axis]
    view = a.transpose([*kept, axis])
    count = int(np.prod(view.shape[:-1], dtype=np.intp))
    layout = engine.layout_of(view) if engine.is_sharded(view) else None
    whole = layout is not None and layout.cut_of(view.ndim - 1) is None
    if view.ndim > 1 and (whole or count >= engine.runtime().size):
        found = _segments_of_rows(ufunc, view, indices, kind)
    else:
        found = _segments_across(ufunc, view, indices, kind)
    found = moveaxis(found, -1, axis)
    if out is None:  # the result has, as in NumPy, the memory order of an operand without steps along the axis
        line = structure.view(a._array, structure.index, (*(slice(None),) * axis, slice(0, 1)))
        steady = structure.view(line, np.broadcast_to, tuple(a.shape))
        memory = memory_axes([steady], tuple(a.shape)) or tuple(range(a.ndim))
        if (*kept, axis) != memory:
            found = engine.copy(found.transpose(memory), order="C").transpose(np.argsort(memory).tolist())
        return engine.as_made(found)
    engine.assign(out, found, named="output array")
    return out


def _check_inside(ufunc: np.ufunc, indices: DistArray | np.ndarray, n: int) -> None:
    outside = (indices < 0) | (indices >= n)
    if np.any(outside):
        first = int(indices[int(np.argmax(outside))])
        raise IndexError(f"index {first} out-of-bounds in {ufunc.__name__}.reduceat [0, {n})")


def _check_segments(
    ufunc: np.ufunc,
    a: DistArray,
    indices: DistArray | np.ndarray,
    axis: int,
    dtype: DTypeLike | None,
    out: DistArray | np.ndarray | None,
) -> tuple[np.dtype, int]:
    """The dtype in which NumPy reduces, and the axis; its own errors, of few elements that stand for many."""
    few = np.ones((1,) * a.ndim, a.dtype)
    index = np.zeros((1,) * indices.ndim, indices.dtype)
    target = () if out is None else (np.empty((1,) * a.ndim, out.dtype),)
    with np.errstate(all="ignore"), only_asking():
        kind = ufunc.reduceat(few, index, axis, dtype, *target).dtype
    number = axis[0] if isinstance(axis, tuple) else axis
    number = normalize_axis_index(number, a.ndim)
    if out is None:
        return kind, number
    shape = (*a.shape[:number], indices.size, *a.shape[number + 1 :])
    if out.ndim > a.ndim:
        decline("an output with more axes than the operand")
    if tuple(out.shape) != shape:
        engine.numpy_error(ufunc.reduceat, (a, np.zeros(indices.size, np.intp), axis, dtype, out))
    if dtype is None:
        return reduction_dtype(ufunc, a.dtype, out.dtype), number
    return ufunc.reduceat(few, index, axis, dtype).dtype, number


def _everywhere(indices: DistArray | np.ndarray) -> np.ndarray:
    """The indices on every rank."""
    if not engine.is_handle(indices):
        return indices
    if engine.is_sharded(indices):
        policy.replicate("numpy.ufunc.reduceat", "every rank needs the indices", indices.nbytes)
    layout = engine.runtime().replicated_layout(tuple(indices.shape))
    return blocks((engine.aligned(indices, layout), layout))[0]


def _segments_of_rows(ufunc: np.ufunc, view: DistArray, indices: DistArray | np.ndarray, kind: np.dtype) -> DistArray:
    """Whole rows on each rank, which NumPy reduces; every rank gets the indices."""
    comm = engine.runtime().comm
    view, layout = whole_along(view, view.ndim - 1)
    index = _everywhere(indices)
    (block,) = blocks((view, layout))
    result = layout.with_shape((*layout.shape[:-1], len(index)))
    made, error = np.empty((*block.shape[:-1], len(index)), kind), None
    with events_reported("reduceat"):
        try:
            if block.size:
                made = ordered.reduceat(ufunc, block, index, kind)
        except Exception as raised:
            error = raised
    if can_raise(ufunc, kind):
        agree(error, comm)
    elif error is not None:
        raise error
    return engine.from_local(made, result)


def _segments_across(ufunc: np.ufunc, view: DistArray, indices: DistArray | np.ndarray, kind: np.dtype) -> DistArray:
    """Few long rows, cut across; each rank tells of a part of the segments."""
    comm, kept, last = engine.runtime().comm, tuple(view.shape[:-1]), view.ndim - 1
    n, count = view.shape[-1], int(indices.size)
    layout = engine.default_layout(tuple(view.shape), split=last)
    told = engine.default_layout((count,), split=0)
    stops = np.append(indices[1:], n) if count else indices
    starts_here, stops_here = own_positions(indices)[0], own_positions(stops)[0]
    (block,) = blocks((engine.aligned(view, layout), layout))
    long = block.reshape(-1, block.shape[-1]) if block.size else np.empty((int(np.prod(kept)), 0), view.dtype)
    cut, where = layout.cut_of(last), told.cut_of(0)
    assert cut is not None and where is not None
    # Products of inexact numbers may overflow or vanish in one grouping of the factors only.
    regrouped = engine.reducible(ufunc, kind) and not (ufunc is np.multiply and kind.kind in "fc")
    # A segment that ends where it begins, or before, is one element.
    found = segments.share_out(
        starts_here, np.maximum(stops_here, starts_here + 1), where.points[comm.rank], cut.points, comm
    )
    with events_reported("reduceat"):
        made, error = segments.reduce_segments(ufunc, long, cut.points, found, where.points, kind, regrouped, comm)
    agree(error, comm)
    result: Layout = engine.default_layout((*kept, count), split=last)
    return engine.from_local(made.reshape(*kept, made.shape[-1]), result)


@implements(np.ufunc, method="reduce", kind="parallel")
def reduce(
    ufunc: np.ufunc,
    array: object,
    axis: Axes = 0,
    dtype: DTypeLike | None = None,
    out: object = None,
    keepdims: bool = False,
    initial: object = NoValue,
    where: object = True,
) -> object:
    """By the engine, if the operation is associative; else in NumPy's order, and then bitwise NumPy's.

    For the latter, rows come to one rank each (a redistribution, unless they are whole) where there are as many results
    as ranks; else partial results go from rank to rank (collective).
    """
    options = {} if initial is NoValue else {"initial": initial}
    if why_not_reduced(ufunc, array) is None:
        return engine.reduction(ufunc, array, axis, dtype, out, keepdims, where=where, **options)
    return in_order(ufunc, array, axis, dtype, out, keepdims, options, where)


@implements(np.lcm, method="reduce", kind="reduction")
def lcm_reduce(
    array: DistArray,
    axis: Axes = 0,
    dtype: DTypeLike | None = None,
    out: object = None,
    keepdims: bool = False,
    initial: object = NoValue,
    where: object = True,
) -> object:
    """One axis only, to NumPy: all ranks say so, those without elements too."""
    reason = why_not_reduced(np.lcm, array)
    if reason is not None:
        decline(reason)
    np.lcm.reduce(np.ones((1,) * array.ndim, array.dtype), axis=axis)
    return reduced_by_engine(np.lcm, array, axis, dtype, out, keepdims, initial, where)


@implements(np.ufunc, method="accumulate", kind="parallel")
def accumulate(
    ufunc: np.ufunc, array: object, axis: int = 0, dtype: DTypeLike | None = None, out: object = None
) -> object:
    return scan(ufunc, as_handle(array), axis, dtype, out[0] if isinstance(out, tuple) else out)


implements(np.multiply, method="reduce", kind="parallel", source=__name__)(product)
