"""The scan pattern: running sums, products and any other operation, along an axis or through all elements.

Needs: any layout where the operation is associative; else whole rows along the axis, or, where these are fewer than the
ranks, parts in the order of the ranks. A rank accumulates its part; what comes before it is told (one allgather), or
handed on from rank to rank. The result lies as the operand does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple
from numpy.typing import DTypeLike

from numpy_dist import engine
from numpy_dist.comm.portable import agree
from numpy_dist.dispatch.core.registry import decline
from numpy_dist.dispatch.patterns.arguments import astype
from numpy_dist.dispatch.patterns.axis_local import whole_along
from numpy_dist.dispatch.patterns.blocks import blocks, in_boxes
from numpy_dist.dispatch.patterns.reduce import can_raise
from numpy_dist.dispatch.patterns.replicate import everywhere
from numpy_dist.engine import events_reported
from numpy_dist.ir.rules import memory_axes, only_asking, reduction_dtype
from numpy_dist.parallel import scans, sequential_pipeline

if TYPE_CHECKING:
    from numpy_dist.layout.layout import Layout


def scan(ufunc: np.ufunc, a: Any, axis: Any, dtype: DTypeLike | None, out: Any) -> object:
    """`ufunc.accumulate` (executes what it needs; collective along a cut axis)."""
    kind = _result_dtype(ufunc, a, axis, dtype, out)
    if not engine.shardable(a.dtype) or not engine.shardable(kind):
        decline(f"arrays of dtype {a.dtype} are not distributed")
    if kind.kind in "mM":  # no `dtype` tells NumPy units of time: the operand's are the result's
        a = astype(a, kind, copy=False)
    associative = engine.reducible(ufunc, kind)
    (axis,) = range(a.ndim) if axis is None else normalize_axis_tuple(axis, a.ndim)
    order = memory_axes([a._array], tuple(a.shape))
    if order is None:
        found = _scan_shards(ufunc, a, axis, kind, associative)
    else:  # the result has, as in NumPy, the operand's memory order
        found = _scan_shards(ufunc, a.transpose(order), order.index(axis), kind, associative)
        found = found.transpose(np.argsort(order).tolist())
    if out is None:
        return found
    if engine.is_handle(out):
        engine.assign(out, found, named="output array")
    else:
        out[...] = everywhere(found, ufunc.accumulate, "its output is an ndarray, which every rank holds whole")
    return out


def _scan_shards(ufunc: np.ufunc, a: engine.Handle, axis: int, kind: np.dtype, associative: bool) -> engine.Handle:
    a, layout = in_boxes(a)
    if not associative:
        return _in_order(ufunc, a, layout, axis, kind)
    (block,) = blocks((a, layout), library=True)
    with engine.Scratch() as scratch:
        with events_reported("accumulate"):
            comm = engine.runtime().comm
            made = scans.accumulate(ufunc, block, layout, axis, kind, comm, scratch.empty)
        return engine.from_local(made, layout, new=True)


def _in_order(ufunc: np.ufunc, a: engine.Handle, layout: Layout, axis: int, kind: np.dtype) -> engine.Handle:
    """Operations that are not associative: whole rows, or, where there are fewer than ranks, from rank to rank."""
    comm, cut = engine.runtime().comm, layout.cut_of(axis)
    if cut is not None and a.ndim > 1 and a.size // max(a.shape[axis], 1) >= comm.size:
        a, layout = whole_along(a, axis)
        cut = None
    if cut is not None:
        layout = engine.default_layout(tuple(a.shape), split=axis)
        a, cut = engine.aligned(a, layout), layout.cut_of(axis)
    # NumPy's scalar and vector loops may round differently: contiguous memory whatever the layout.
    block = np.ascontiguousarray(blocks((a, layout))[0])
    error: Exception | None = None
    with events_reported("accumulate"):
        if cut is not None:
            made, error = sequential_pipeline.accumulate(ufunc, block, axis, cut.points, kind, comm)
        else:
            made = np.empty(block.shape, kind)
            try:
                made = ufunc.accumulate(block, axis, None if kind.kind in "mM" else kind) if block.size else made
            except Exception as raised:
                error = raised
    if comm.size == 1 or can_raise(ufunc, kind):
        agree(error, comm)
    elif error is not None:
        raise error
    return engine.from_local(made, layout)


def _result_dtype(
    ufunc: np.ufunc,
    a: engine.Handle | np.ndarray,
    axis: SupportsIndex,
    dtype: DTypeLike | None,
    out: engine.Handle | np.ndarray | None,
) -> np.dtype:
    """The dtype in which NumPy accumulates; its errors for operations, axes and outputs that do not fit."""
    if a.ndim == 0 or out is not None and tuple(out.shape) != tuple(a.shape):
        # Few elements stand for many, with the same lengths equal: what is wrong is wrong with them, too.
        arrays = [x for x in (a, out) if x is not None]
        longer = sorted({n for x in arrays for n in x.shape if n > 1})
        few = [np.zeros([n if n < 2 else 2 + longer.index(n) for n in x.shape], x.dtype) for x in arrays]
        try:
            ufunc.accumulate(few[0], axis, dtype, *few[1:])
        except ValueError:  # which names shapes
            engine.numpy_error(ufunc.accumulate, (a, axis, dtype, out))
        decline("an output of another shape")
    one = np.ones((1,) * a.ndim, a.dtype)
    if out is not None:
        with only_asking():
            ufunc.accumulate(one, axis, dtype, np.zeros(one.shape, out.dtype))
        if dtype is None:
            return reduction_dtype(ufunc, a.dtype, out.dtype)
    return ufunc.accumulate(one, axis, dtype).dtype
