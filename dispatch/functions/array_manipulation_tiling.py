"""Array manipulation routines that tile and pad: new arrays that hold the elements of old ones at several places."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from numpy_dist import engine
from numpy_dist.dispatch.core.registry import decline, implements
from numpy_dist.dispatch.patterns.arguments import as_handle, astype
from numpy_dist.dispatch.patterns.numpy_source import numpy_source
from numpy_dist.dispatch.patterns.replicate import everywhere, few
from numpy_dist.ir import structure

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from numpy_dist.distarray import DistArray

MOST_AXES = 64  # of a NumPy array

_pad = numpy_source(np.pad)


@implements(np.pad, kind="composed")
def pad(array: object, pad_width: object, mode: object = "constant", **kwargs: object) -> object:
    if engine.is_handle(pad_width):
        pad_width = everywhere(pad_width, np.pad, "shapes depend on the widths")
    return _pad(as_handle(array), pad_width, mode, **kwargs)


def _repeated(spread: DistArray | np.ndarray, shape: tuple[int, ...]) -> Any:
    """A copy of a view in which elements are repeated by broadcasting, with neighbouring axes merged into `shape`."""
    # Cut along the first axis that is worth it, so that merging axes keeps the owners.
    axis = next((axis for axis, n in enumerate(spread.shape) if n > 1), 0)
    copied = engine.copy(spread, order="C", layout=engine.default_layout(spread.shape, split=axis))
    return np.reshape(copied, shape)


@implements(np.tile, kind="composed")
def tile(A: DistArray, reps: Any) -> object:
    try:
        given = tuple(reps)
    except TypeError:
        given = (reps,)
    counts = tuple(1 if n == 1 else operator.index(1 * n) for n in given)  # NumPy multiplies, also by truth values
    ndim = max(A.ndim, len(counts))
    counts = (1,) * (ndim - len(counts)) + counts
    A = A._view(structure.index, (None,) * (ndim - A.ndim))
    shape = tuple(n * count for n, count in zip(A.shape, counts, strict=True))
    if ndim == 0:
        return engine.copy(A)
    if not A.size and any(count != 1 for count in counts):
        return np.reshape(A, shape)  # a view, as NumPy's
    if ndim > MOST_AXES // 2:
        decline(f"more than {MOST_AXES // 2} axes")
    apart = A._view(structure.index, (None, slice(None)) * ndim)
    spread = tuple(part for pair in zip(counts, A.shape, strict=True) for part in pair)
    return _repeated(np.broadcast_to(apart, spread), shape)


_LARGE = 1 << 20
"""Bytes from which a result of `repeat` is a statement in one process, too: what NumPy makes would be copied."""


def _is_numpys(a: DistArray, repeats: ArrayLike, axis: int | None = None) -> bool:
    """Whether NumPy repeats elements in one process: some more often than others, or few."""
    return np.size(repeats) != 1 or not isinstance(repeats, int) or as_handle(a).nbytes * repeats < _LARGE


@implements(np.repeat, kind="composed", alone=_is_numpys)
def repeat(a: object, repeats: ArrayLike, axis: int | None = None) -> object:
    a = as_handle(a)
    if np.ndim(repeats) > 1:
        engine.numpy_error(np.repeat, (a, repeats, axis))
    if not isinstance(repeats, np.ndarray | engine.Handle):  # NumPy truncates what is no array
        repeats = np.asarray(repeats, np.intp)
    if np.size(repeats) != 1:
        return _repeated_each(a, repeats, axis)
    repeats = few(repeats)
    count = repeats.reshape(())
    if not np.can_cast(count.dtype, np.intp, "safe"):
        engine.numpy_error(np.repeat, (a, repeats, axis))
    a, axis = _as_line(a, axis)
    if a.ndim == MOST_AXES:
        return _repeated_each(a, repeats, axis)  # no room for another axis
    axis = normalize_axis_index(axis, a.ndim)
    if count < 0 and a.shape[axis]:
        engine.numpy_error(np.repeat, (a, repeats, axis))
    times = max(int(count), 0)
    shape = (*a.shape[:axis], a.shape[axis] * times, *a.shape[axis + 1 :])
    spread = (*a.shape[: axis + 1], times, *a.shape[axis + 1 :])
    return engine.as_made(_repeated(np.broadcast_to(np.expand_dims(a, axis + 1), spread), shape))


def _as_line(a: DistArray | np.ndarray, axis: int | None) -> tuple[DistArray | np.ndarray, int]:
    """An array that has axes, and that along which elements are repeated."""
    if axis is None or not a.ndim:
        return np.ravel(a), 0 if axis is None else axis
    return a, axis


def _repeated_each(a: Any, repeats: object, axis: int | None) -> object:
    """A number of repetitions for each element: which element each one of the result is (collective)."""
    counts: DistArray | np.ndarray = as_handle(repeats)
    np.repeat(np.zeros((1,) * a.ndim, a.dtype), np.zeros((1,) * counts.ndim, counts.dtype), axis)  # NumPy's own errors
    a, axis = _as_line(a, axis)
    axis = normalize_axis_index(axis, a.ndim)
    n = a.shape[axis]
    counts = np.reshape(astype(counts, np.intp), -1)
    if counts.size not in (1, n):
        raise ValueError(f"operands could not be broadcast together with shape ({n},) ({counts.size},)")
    if np.any(counts < 0):
        raise ValueError("repeats may not contain negative values.")
    ends = np.cumsum(np.broadcast_to(counts, (n,)))
    total = int(ends[-1]) if n else 0
    places = engine.from_reader(
        lambda box: np.arange(*box[0]), (total,), np.intp, engine.default_layout((total,), split=0)
    )
    return np.take(a, np.searchsorted(ends, places, "right"), axis)
