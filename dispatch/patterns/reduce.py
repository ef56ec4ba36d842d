"""The reduce pattern: `ufunc.reduce` by the engine, which folds partial results, or in NumPy's order for any operation.

In order it needs whole rows along the axes where there are as many results as ranks (a redistribution); else partial
results go from rank to rank, and all ranks get the last one's. A rank reduces its rows with NumPy. The layout of the
result is that of the rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from numpy_dist import engine
from numpy_dist.argument_types import Axes, Keywords
from numpy_dist.comm.portable import agree
from numpy_dist.dispatch.core import fallback
from numpy_dist.dispatch.core.registry import decline
from numpy_dist.dispatch.patterns.arguments import NoValue, as_handle, astype, broadcasts_to, given
from numpy_dist.dispatch.patterns.axis_local import whole_along
from numpy_dist.dispatch.patterns.blocks import blocks, placed
from numpy_dist.engine import events_reported
from numpy_dist.ir.rules import begins_in_output, iteration_axes, only_asking, reduction_dtype
from numpy_dist.layout.layout import Layout
from numpy_dist.parallel import ordered
from numpy_dist.parallel.products import Factors
from numpy_dist.parallel.sequential_pipeline import carried


def in_order(
    ufunc: np.ufunc,
    array: object,
    axis: Axes,
    dtype: DTypeLike | None,
    out: object,
    keepdims: object,
    options: Keywords,
    where: Any,
) -> object:
    """`reduce` in NumPy's order, whatever the operation; `options` may have ``initial``."""
    a, out, where = as_handle(array), out[0] if isinstance(out, tuple) else out, engine.mask_of(where)
    if all(loop[0] == "O" for loop in ufunc.types):  # as `np.frompyfunc` makes them
        decline("a function of Python objects")
    kind, axes = check(ufunc, a, axis, dtype, out, keepdims, options, where)
    if not engine.shardable(a.dtype) or not engine.shardable(kind):
        decline(f"arrays of dtype {a.dtype} are not distributed")
    if kind.kind in "mM":  # no `dtype` tells NumPy units of time: the operand's are the result's
        a = astype(a, kind, copy=False)
    elif out is not None and dtype is None:
        dtype = kind
    masked = where is not True
    if ordered.is_numpys(ufunc, kind):
        chosen = options | ({"where": where} if masked else {})
        made = fallback.alone(ufunc.reduce, (a, axis, dtype, out, keepdims), chosen, () if out is None else (out,))
        if made is not fallback.SLOW:
            return made
    if out is not None:
        with engine.reported_together():
            engine.assign(out, in_order(ufunc, a, axis, dtype, None, keepdims, options, where), named="output array")
        return out
    mask = np.broadcast_to(where, a.shape) if masked else None
    order = iteration_axes([a._array] if not masked else [a._array, engine.metadata(mask)], tuple(a.shape))
    order = tuple(range(a.ndim)) if order is None else order
    kept, gone = [axis for axis in order if axis not in axes], [axis for axis in order if axis in axes]
    rows = _as_rows(a, kept, gone)
    masks = _as_rows(mask, kept, gone) if masked else None
    if ufunc is np.multiply and kind == np.float16:
        found = _halves(rows, masks, order[len(kept) :] == tuple(gone), {"dtype": dtype, **options})
    else:
        found = _reduced(ufunc, rows, masks, kind, {"dtype": dtype, **options})
    found = found.transpose(np.argsort(kept).tolist()) if len(kept) > 1 else found
    if keepdims:
        found = found._view(np.expand_dims, tuple(axes))
    if found.ndim:
        return found
    engine.runtime().events.tell()  # a number is there: so must its warnings be
    return engine.item(found)


def _as_rows(x: Any, kept: list[int], gone: list[int]) -> Any:
    """The array with the reduced axes last, merged into one."""
    x = x.transpose(kept + gone)
    if len(gone) == 1:
        return x
    return np.reshape(x, (*x.shape[: len(kept)], int(np.prod(x.shape[len(kept) :], dtype=np.intp))))


def check(
    ufunc: np.ufunc,
    a: engine.Handle | np.ndarray,
    axis: Any,
    dtype: DTypeLike | None,
    out: Any,
    keepdims: object,
    options: Keywords,
    where: ArrayLike,
) -> tuple[np.dtype, tuple[int, ...]]:
    """The dtype in which NumPy reduces, and the axes; its own errors, of few elements that stand for many."""
    few = np.ones(tuple(min(n, 1) for n in a.shape), a.dtype)
    call = {"axis": axis, "dtype": dtype, "keepdims": keepdims, **options}
    mask = {} if where is True else {"where": np.ones((1,) * np.ndim(where), bool)}
    target = {} if out is None else {"out": np.empty(tuple(min(n, 1) for n in out.shape), out.dtype)}
    try:
        with np.errstate(all="ignore"), only_asking():
            kind = ufunc.reduce(few, **call, **mask, **target).dtype
    except Exception:
        kind = None
    every = () if kind is None else range(a.ndim) if axis is None or a.ndim == 0 else axis
    axes = np.lib.array_utils.normalize_axis_tuple(every, a.ndim) if a.ndim else ()
    shape = tuple(1 if i in axes else n for i, n in enumerate(a.shape) if keepdims or i not in axes)
    fits = (out is None or tuple(out.shape) == shape) and broadcasts_to(np.shape(where), tuple(a.shape))
    if kind is None or not fits:
        where_given = {} if where is True else {"where": where}
        engine.numpy_error(ufunc.reduce, (a,), {**call, **where_given, **({} if out is None else {"out": out})})
    if out is not None:  # where `dtype` is not given, it takes part in the choice of the loop
        if dtype is None:
            kind = reduction_dtype(ufunc, a.dtype, out.dtype)
        else:
            with np.errstate(all="ignore"), only_asking():
                kind = ufunc.reduce(few, **call, **mask).dtype
        if begins_in_output(ufunc, kind, out.dtype, options.get("initial", NoValue)):
            decline("its output, of another kind, holds the first element, and others as often as NumPy writes to it")
    return kind, axes


def _reduced(ufunc: np.ufunc, rows: engine.Handle, masks: object, kind: np.dtype, options: Keywords) -> engine.Handle:
    """Reduced over the last axis, which is the only one that is."""
    last, kept = rows.ndim - 1, tuple(rows.shape[:-1])
    layout = engine.layout_of(rows) if engine.is_sharded(rows) else None
    count = int(np.prod(kept, dtype=np.intp))
    if kept and (count >= engine.runtime().size or layout is not None and layout.cut_of(last) is None):
        rows, layout = whole_along(rows, last)
        return _row_by_row(ufunc, rows, masks, layout, kind, options)
    return _rank_after_rank(ufunc, rows, masks, kind, options)


def _halves(rows: engine.Handle, masks: object, innermost: bool, options: Keywords) -> engine.Handle:
    """A product of half precision: NumPy rounds it once where it goes along memory, else after each factor."""
    if masks is not None or not innermost:
        return _reduced(np.multiply, rows, masks, np.dtype(np.float16), options)
    found = _reduced(np.multiply, rows, None, np.dtype(np.float32), {**options, "dtype": np.dtype(np.float32)})
    layout = engine.layout_of(found)
    assert layout is not None
    (block,) = blocks((found, layout))
    with events_reported("reduce"):
        made = block.astype(np.float16)
    return engine.from_local(made, layout)


def _row_by_row(
    ufunc: np.ufunc, rows: object, masks: object, layout: Layout, kind: np.dtype, options: Keywords
) -> engine.Handle:
    comm, result = engine.runtime().comm, layout.drop_axes([layout.ndim - 1])
    block, chosen = _blocks(rows, masks, layout)
    made, error = np.empty(block.shape[:-1], kind), None
    with events_reported("reduce"):
        try:
            if layout.box(comm.rank) is not None:
                made = ordered.reduce(ufunc, block, kind, chosen, **options)
        except Exception as raised:
            error = raised
    if can_raise(ufunc, kind):
        agree(error, comm)
    elif error is not None:
        raise error
    return engine.from_local(made, result)


def can_raise(ufunc: np.ufunc, kind: np.dtype) -> bool:
    """Whether an operation can refuse values: then all ranks have to be asked."""
    return (ufunc.__name__ == "power" and kind.kind in "iu") or kind.kind not in "biufcmM"


def _blocks(rows: object, masks: object, layout: Layout) -> tuple[np.ndarray, np.ndarray | bool]:
    """This rank's block of the rows, and of the masks (True where there are none)."""
    if masks is None:
        return blocks((placed(rows, layout), layout))[0], True
    block, chosen = blocks((placed(rows, layout), layout), (placed(masks, layout), layout))
    return block, chosen


def _rank_after_rank(
    ufunc: np.ufunc, rows: engine.Handle, masks: object, kind: np.dtype, options: Keywords
) -> engine.Handle:
    """Few long rows, cut across: each rank goes on with what the one before has come to."""
    comm, kept = engine.runtime().comm, tuple(rows.shape[:-1])
    layout = engine.default_layout(tuple(rows.shape), split=rows.ndim - 1)
    block, chosen = _blocks(rows, masks, layout)
    cut = layout.cut_of(rows.ndim - 1)
    assert cut is not None
    members = [r for r in range(comm.size) if cut.points[r] < cut.points[r + 1]]
    long = block.reshape(-1, block.shape[-1]) if block.size else np.empty((int(np.prod(kept)), 0), rows.dtype)
    where = np.broadcast_to(chosen, block.shape).reshape(long.shape) if masks is not None else None
    if ufunc is np.multiply and kind.char in "fdgFDG":
        work = _multiplied(long, where, kind, options, comm.rank not in members[1:])
    else:

        def work(before: np.ndarray | None) -> np.ndarray:
            made = np.empty(len(long), kind)
            for row, values in enumerate(long):
                start = options if before is None else {**options, "initial": before[row]}
                made[row] = ordered.reduce(ufunc, values, kind, True if where is None else where[row], **start)
            return made

    with events_reported("reduce"):
        if members:
            made, error = carried(work, members, np.empty(len(long), kind), comm)
        else:
            made, error = work(None), None
    agree(error, comm)
    if members:
        made = comm.bcast(made, members[-1])
    assert made is not None
    return engine.from_local(made.reshape(kept), engine.runtime().replicated_layout(kept))


def _multiplied(
    long: np.ndarray, where: np.ndarray | None, kind: np.dtype, options: Keywords, first: bool
) -> Callable[[np.ndarray | None], np.ndarray]:
    """What goes on from the products of the ranks before; until they come, all but the `first` look at the factors."""
    grouped = kind.kind == "f" or np.geterr()["under"] == "ignore"  # a component may vanish where the number does not
    chosen = long if where is None else [values[mask] for values, mask in zip(long, where, strict=True)]
    with np.errstate(all="ignore"):
        factors = [values.astype(kind, copy=False) for values in chosen]
        parts = [] if first else [Factors(values, grouped) for values in factors]
    begin = options.get("initial", NoValue)
    start = {} if begin is NoValue or begin is None else {"initial": kind.type(begin)}

    def work(before: np.ndarray | None) -> np.ndarray:
        if before is None:
            made = [np.multiply.reduce(values, **start) for values in factors]
        else:
            made = [part.times(power) for part, power in zip(parts, before, strict=True)]
        return np.array(made, kind)

    return work


def reduce(
    ufunc: np.ufunc,
    a: object,
    axis: Axes,
    dtype: DTypeLike | None,
    out: object,
    keepdims: object,
    initial: object,
    where: object,
) -> Any:
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
