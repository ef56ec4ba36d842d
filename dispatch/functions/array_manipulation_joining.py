"""Array manipulation routines that join.

The result is allocated and each array is assigned to its part, which moves only what has to move.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index
from numpy.typing import DTypeLike

from numpy_dist import engine
from numpy_dist.dispatch.core.registry import implements
from numpy_dist.dispatch.patterns.numpy_source import adopt
from numpy_dist.engine import events_reported
from numpy_dist.ir.rules import only_asking
from numpy_dist.layout.layout import Copies, Layout, Pinned

if TYPE_CHECKING:
    from numpy import _CastingKind
    from numpy.typing import ArrayLike

    from numpy_dist.distarray.array import DistArray

_WEAK = frozenset({int, float, complex})

adopt(__name__, np.stack, np.vstack, np.hstack, np.dstack, np.column_stack, np.block)


@implements(np.concatenate, kind="composed")
def concatenate(
    arrays: Iterable[DistArray | ArrayLike],
    /,
    axis: int | None = 0,
    out: Any = None,
    *,
    dtype: DTypeLike | None = None,
    casting: _CastingKind = "same_kind",
) -> object:
    flat = axis is None
    if flat and out is None and dtype is None:
        arrays = _with_weak_numbers(list(arrays), casting)
    parts = [x if engine.is_handle(x) else np.asanyarray(x) for x in arrays]
    if axis is None:
        parts, axis = [np.ravel(x) for x in parts], 0
    ndim = parts[0].ndim if parts else 0
    shapes = [tuple(x.shape) for x in parts]
    fits = ndim > 0 and {len(s) for s in shapes} == {ndim} and -ndim <= axis < ndim
    if not fits or (out is not None and dtype is not None):
        engine.numpy_error(np.concatenate, (parts,), {"axis": axis, "out": out, "dtype": dtype, "casting": casting})
    axis = normalize_axis_index(axis, ndim)
    if any(s[:axis] + s[axis + 1 :] != shapes[0][:axis] + shapes[0][axis + 1 :] for s in shapes):
        engine.numpy_error(np.concatenate, (parts,), {"axis": axis, "out": out, "dtype": dtype, "casting": casting})
    shape = (*shapes[0][:axis], sum(s[axis] for s in shapes), *shapes[0][axis + 1 :])
    if out is None:
        target = _allocate(parts, shapes, shape, axis, _joined_dtype(parts, dtype, casting))
    elif tuple(out.shape) != shape:
        raise ValueError(f"Output array is the wrong {'size' if flat else 'shape'}")
    else:
        target = out
    start = 0
    for part, part_shape in zip(parts, shapes, strict=True):
        here = (slice(None),) * axis + (slice(start, start + part_shape[axis]),)
        np.copyto(target[here], part, casting=casting)
        start += part_shape[axis]
    return target


def _with_weak_numbers(arrays: list[Any], casting: _CastingKind) -> list[Any]:
    """The arrays, with Python's numbers among them cast, as NumPy does it, to the dtype of the others."""
    if not any(type(x) in _WEAK for x in arrays) or all(type(x) in _WEAK for x in arrays):
        return arrays
    arrays = [x if engine.is_handle(x) or type(x) in _WEAK else np.asanyarray(x) for x in arrays]
    standing = [x if type(x) in _WEAK else np.empty(0, x.dtype) for x in arrays]
    with only_asking(), np.errstate(all="ignore"):
        kind = np.concatenate(standing, axis=None, casting=casting).dtype
    if kind.kind not in "biufc":  # beside texts they are not weak
        return arrays
    with events_reported("cast"):
        return [
            np.concatenate((np.empty(0, kind), x), axis=None, casting=casting) if type(x) in _WEAK else x
            for x in arrays
        ]


def _joined_dtype(
    parts: Sequence[engine.Handle | np.ndarray], dtype: DTypeLike | None, casting: _CastingKind
) -> np.dtype:
    """NumPy's dtype of the result, and its complaint about a cast that `casting` forbids."""
    standing = [np.empty((0,), x.dtype) for x in parts]
    with only_asking():
        return np.concatenate(standing, dtype=dtype, casting=casting).dtype


def _allocate(
    parts: Sequence[Any], shapes: Sequence[tuple[int, ...]], shape: tuple[int, ...], axis: int, dtype: np.dtype
) -> DistArray:
    """An empty result: like the largest sharded part where the joined axis is whole there, else cut as usual."""
    layout: Layout | None = None
    sharded = [(x, s) for x, s in zip(parts, shapes, strict=True) if engine.is_sharded(x)]
    if sharded:
        largest, _ = max(sharded, key=lambda entry: int(np.prod(entry[1])))
        layout = engine.layout_of(largest)
    if layout is None or layout.cut_of(axis) is not None or any(isinstance(d, Copies | Pinned) for d in layout.dims):
        layout = engine.runtime().default_layout(shape)
    else:
        layout = layout.with_shape(shape)
    order = joined_order([x._array if engine.is_handle(x) else x for x in parts])
    if order == list(range(len(shape))):
        return engine.empty(shape, dtype, layout=layout)
    inverse = sorted(range(len(order)), key=order.__getitem__)
    made = engine.empty([shape[a] for a in order], dtype, layout=layout.transpose(tuple(order)))
    return engine.as_made(made._view(np.ndarray.transpose, inverse))


def joined_order(arrays: Sequence[np.ndarray]) -> list[int]:
    """Axes of joined arrays from outermost to innermost in memory, as `numpy.concatenate` has them.

    Axes are inserted one after the other among those before them, outside of the next one that all arrays have inside;
    arrays in which one of two axes has a single element say nothing about these two. (NumPy's iterator, and with it
    `ir.rules.memory_axes`, begins with the last axis: where arrays disagree the orders can differ.)
    """
    order: list[int] = []
    for axis in range(arrays[0].ndim):
        place = len(order)
        for position in range(len(order) - 1, -1, -1):
            verdicts = _outside(arrays, axis, order[position])
            if verdicts and not all(verdicts):
                break
            if verdicts:
                place = position
        order.insert(place, axis)
    return order


def _outside(arrays: Sequence[np.ndarray], axis: int, other: int) -> list[bool]:
    """For each array that can tell, whether `axis` lies outside of `other` in its memory."""
    return [abs(x.strides[axis]) > abs(x.strides[other]) for x in arrays if x.shape[axis] != 1 and x.shape[other] != 1]
