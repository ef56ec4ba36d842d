"""Indexing-like operations: elements by positions, by conditions or by choices, diagonals and windows."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from numpy_dist import engine
from numpy_dist.argument_types import Axes
from numpy_dist.dispatch.core.registry import implements
from numpy_dist.dispatch.patterns import thread_take
from numpy_dist.dispatch.patterns.arguments import as_handle, astype, truth_of
from numpy_dist.dispatch.patterns.axis_local import whole_along
from numpy_dist.dispatch.patterns.blocks import blocks
from numpy_dist.dispatch.patterns.index_arrays import Picked, check_bounds
from numpy_dist.dispatch.patterns.numpy_source import adopt, numpy_source
from numpy_dist.dispatch.patterns.select import boolean_getitem
from numpy_dist.dispatch.patterns.take import as_indices, fetch, within
from numpy_dist.ir.rules import broadcast_shapes

if TYPE_CHECKING:
    from numpy import _ModeKind
    from numpy.typing import ArrayLike

    from numpy_dist.distarray import DistArray

adopt(__name__, np.select)

_numpys_take_along_axis = numpy_source(np.take_along_axis)


@implements(np.take, kind="parallel", alone=True, instead=thread_take.take)
def take(
    a: object,
    indices: Any,
    axis: int | None = None,
    out: DistArray | np.ndarray | None = None,
    mode: _ModeKind = "raise",
) -> object:
    """Collective: positions are sent to the owners of the elements, who send these back."""
    a = as_handle(a)
    indices = as_indices(indices)
    few = np.zeros(tuple(min(n, 1) for n in a.shape), a.dtype)
    np.take(few, np.zeros(0, indices.dtype if indices.size else np.intp), axis, mode=mode)  # NumPy's own errors
    if axis is None:
        a, axis = np.ravel(a), 0
    a = np.atleast_1d(a)
    axis = normalize_axis_index(axis, a.ndim)
    n = a.shape[axis]
    shape = (*a.shape[:axis], *indices.shape, *a.shape[axis + 1 :])
    if out is not None:
        _check_output(out, shape, a.dtype)
    if 0 in a.shape[:axis]:  # NumPy looks at no index
        return engine.empty(shape, a.dtype) if out is None else out
    if n == 0 and 0 not in shape:
        raise IndexError("cannot do a non-empty take from an empty axes.")
    indices = within(astype(indices, np.intp), n, mode)
    found = fetch(Picked(a, (slice(None),) * axis + (indices,), "take"))
    if out is not None:
        engine.assign(out, found)
        return out
    if not found.ndim:
        return engine.item(found)
    return engine.copy(found, order="C") if axis and indices.ndim else found  # an index has another memory order


def _check_output(out: DistArray | np.ndarray, shape: tuple[int, ...], dtype: np.dtype) -> None:
    """NumPy's errors for an output that does not fit."""
    if tuple(out.shape) != shape:
        raise ValueError("output array does not match result of ndarray.take")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", np.exceptions.ComplexWarning)  # given with the assignment
        # Before 2.5 it converts the output first, and the result back; since then it warns of other kinds.
        np.take(np.zeros(1, dtype), [0], out=np.zeros(1, out.dtype))


@implements(np.choose, kind="composed")
def choose(a: ArrayLike, choices: Any, out: DistArray | np.ndarray | None = None, mode: _ModeKind = "raise") -> object:
    """Collective: whether an index is out of range is asked of all ranks."""
    a = a if engine.is_handle(a) else np.asarray(a)
    few: object
    if (engine.is_handle(choices) or isinstance(choices, np.ndarray)) and choices.ndim:  # in its byte order
        given = [choices[number, ...] for number in range(len(choices))]
        few = np.zeros((len(choices), *(1,) * (choices.ndim - 1)), choices.dtype)
    else:
        given = [x if engine.is_handle(x) or isinstance(x, int | float | complex) else np.asarray(x) for x in choices]
        few = [np.zeros((1,) * x.ndim, x.dtype) if hasattr(x, "dtype") else x for x in given]
    dtype = np.choose(np.zeros((1,) * a.ndim, a.dtype), few, mode=mode).dtype  # or NumPy's own errors
    try:
        shape = broadcast_shapes(a.shape, *(np.shape(x) for x in given))
    except ValueError:
        engine.numpy_error(np.choose, (a, [np.zeros(np.shape(x)) for x in given]), {})
    if out is not None and tuple(out.shape) != shape:
        raise TypeError("choose: invalid shape for output array.")
    index = within(astype(as_handle(a), np.intp), len(given), mode)
    if np.any((index < 0) | (index >= len(given))):
        raise ValueError("invalid entry in choice array")
    made = engine.empty(shape, dtype, layout=engine.default_layout(shape))
    for number, choice in enumerate(given):
        value = choice if hasattr(choice, "dtype") else np.asarray(choice).astype(dtype, casting="unsafe")
        engine.assign(made, value, where=np.equal(index, number))
    if out is not None:
        engine.assign(out, made, named="output array")
        return out
    return made if shape else engine.item(made)


@implements(np.compress, kind="composed", alone=True)
def compress(condition: Any, a: Any, axis: int | None = None, out: Any = None) -> object:
    condition, a = truth_of(condition), as_handle(a)
    if condition.ndim != 1:
        raise ValueError("condition must be a 1-d array")
    if axis is None:
        a, axis = np.ravel(a), 0
    a = np.atleast_1d(a)
    axis = normalize_axis_index(axis, a.ndim)
    if out is not None or not a.size:
        return np.take(a, np.nonzero(condition)[0], axis, out)
    length, n = condition.shape[0], a.shape[axis]
    if length > n:
        beyond = condition[n:]
        if np.any(beyond):
            index = n + np.argmax(beyond)
            raise IndexError(f"index {index} is out of bounds for axis {axis} with size {n}")
        condition = condition[:n]
    before = (slice(None),) * axis
    found = boolean_getitem(a[(*before, slice(length))], (*before, condition))
    return engine.copy(found, order="C") if axis else found  # the index gives, as in NumPy, another memory order


@implements(np.diagonal, kind="structural")
def diagonal(a: DistArray, offset: int = 0, axis1: int = 0, axis2: int = 1) -> DistArray:
    return a._view(np.ndarray.diagonal, offset, axis1, axis2)


@implements(np.lib.stride_tricks.sliding_window_view, kind="structural")
def sliding_window_view(
    x: DistArray,
    window_shape: SupportsIndex | Sequence[SupportsIndex],
    axis: Axes = None,
    *,
    subok: bool = False,
    writeable: bool = False,
) -> DistArray:
    return x._view(np.lib.stride_tricks.sliding_window_view, window_shape, axis, writeable=writeable)


@implements(np.take_along_axis, kind="composed", varies=("axis",))
def take_along_axis(arr: Any, indices: Any, axis: int | None = -1) -> object:
    """Collective: whether an index is out of bounds is asked of all ranks.

    Where the other axes correspond, both arrays are brought to shards with whole rows along the axis.
    """
    if arr is None or indices is None:  # which are no arrays to NumPy's code
        return _numpys_take_along_axis(arr, indices, axis)
    arr, indices = as_handle(arr), as_handle(indices)
    if axis is None and indices.ndim == 1:
        arr, axis = np.ravel(arr), 0
    if axis is None or arr.ndim != indices.ndim or indices.dtype.kind not in "iu" or arr.ndim < 2:
        return _numpys_take_along_axis(arr, indices, axis)
    axis = normalize_axis_index(axis, arr.ndim)
    others = [n for a, n in enumerate(arr.shape) if a != axis]
    if others != [n for a, n in enumerate(indices.shape) if a != axis] or max(others) < engine.runtime().size:
        return _numpys_take_along_axis(arr, indices, axis)
    check_bounds(indices, arr.shape[axis], axis, tuple(indices.shape))
    arr, layout = whole_along(arr, axis)
    wanted = layout.with_shape(indices.shape)
    values, chosen = blocks((arr, layout), (engine.aligned(indices, wanted), wanted))
    with engine.Scratch() as scratch:
        made = chosen
        if layout.box(engine.runtime().rank) is not None:
            made = thread_take.take_along_axis(values, chosen, axis, scratch.empty(chosen.shape, values.dtype))
        return engine.from_local(made.astype(arr.dtype, copy=False), wanted)
