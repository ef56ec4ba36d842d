"""Elements by their positions in the memory of one rank, picked by all of its threads.

NumPy picks a piece at a time, whose result is in a cache when it is written to the pool's memory. What is not large, or
lies in another order, is left to NumPy, and what is out of bounds, too: the error is its own.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from numpy_dist import engine
from numpy_dist.dispatch.patterns.threads import over_ranges, threads_of_rank

FEW = 1 << 17
"""Elements that are not worth a thread."""
_PIECE = 1 << 16  # elements


def getitem(x: Any, items: tuple) -> Any:
    """``x[items]``."""
    if len(items) == 1:
        return _taken(x, items[0], 0, None, "raise", lambda: operator.getitem(x, items))
    ours = all(_are_positions(item) for item in items) and len(items) == x.ndim
    shape = _common_shape(items) if ours else None
    if shape is None or not _pays(prod(shape), x.dtype):
        return operator.getitem(x, items)

    def pick(low: int, high: int) -> np.ndarray:
        return x[tuple(item if item.shape[0] == 1 else item[low:high] for item in items)]

    return _filled(pick, shape, x.dtype, lambda: operator.getitem(x, items))


def _common_shape(items: tuple[np.ndarray, ...]) -> tuple[int, ...] | None:
    """The shape of indices that are broadcast; None where they cannot be, or have not as many axes."""
    extents = list(zip(*(item.shape for item in items), strict=False))
    shape = tuple(next((n for n in along if n != 1), 1) for along in extents)
    fit = all(n in (1, extent) for along, extent in zip(extents, shape, strict=True) for n in along)
    return shape if fit and all(item.ndim == len(shape) for item in items) else None


def take(a: Any, indices: Any, axis: int | None = None, out: Any = None, mode: Any = "raise") -> Any:
    """`numpy.take`."""
    return _taken(a, indices, axis, out, mode, lambda: np.take(a, indices, axis, out, mode))


def take_along_axis(values: np.ndarray, indices: np.ndarray, axis: int, made: np.ndarray) -> np.ndarray:
    """`numpy.take_along_axis` of arrays of at least two axes, which are as long but along one of them, into `made`."""
    cut = max((other for other in range(made.ndim) if other != axis), key=lambda other: made.shape[other])
    each = max(made.size // max(made.shape[cut], 1), 1)
    step = max(_PIECE // each, 1)

    def fill(first: int, last: int) -> None:
        for low in range(first, last, step):
            part = (slice(None),) * cut + (slice(low, min(low + step, last)),)
            made[part] = np.take_along_axis(values[part], indices[part], axis)

    over_ranges(fill, made.shape[cut], max(FEW // each, 1))
    return made


def _taken(a: Any, indices: Any, axis: Any, out: object, mode: Any, numpys: Callable[[], object]) -> Any:
    if out is not None or not _are_positions(indices) or not isinstance(a, np.ndarray) or not a.flags.c_contiguous:
        return numpys()
    if axis is None:
        a, axis = a.reshape(-1), 0
    if not isinstance(axis, int) or not -a.ndim <= axis < a.ndim:
        return numpys()
    axis %= a.ndim
    shape = (*a.shape[:axis], *indices.shape, *a.shape[axis + 1 :])
    if not _pays(prod(shape), a.dtype):
        return numpys()
    if axis:
        return _filled(lambda low, high: a[low:high].take(indices, axis, None, mode), shape, a.dtype, numpys)
    flat = indices.reshape(-1)
    lines = (flat.size, *a.shape[1:])
    return _filled(lambda low, high: a.take(flat[low:high], 0, None, mode), lines, a.dtype, numpys, shape)


def _are_positions(x: object) -> bool:
    return isinstance(x, np.ndarray) and x.dtype.kind in "iu" and x.ndim > 0 and x.flags.c_contiguous


def _pays(count: int, dtype: np.dtype) -> bool:
    """Whether so many elements are picked by several threads."""
    return count >= 2 * FEW and threads_of_rank() > 1 and engine.default_shard(count * dtype.itemsize)


def _filled(
    pick: Callable[[int, int], np.ndarray],
    shape: tuple[int, ...],
    dtype: np.dtype,
    numpys: Callable[[], object],
    final: tuple[int, ...] | None = None,
) -> object:
    """An array of rows of which ``pick(low, high)`` gives some, or what NumPy says of positions out of bounds."""
    each = max(prod(shape[1:]), 1)
    step = max(_PIECE // each, 1)
    if not engine.shardable(dtype):
        return numpys()
    with engine.Scratch() as scratch:
        made = scratch.empty(shape, dtype)

        def fill(first: int, last: int) -> None:
            for low in range(first, last, step):
                high = min(low + step, last)
                made[low:high] = pick(low, high)

        try:
            over_ranges(fill, shape[0], max(FEW // each, 1))
        except IndexError:
            return numpys()
        return engine.from_only_rank(made if final is None else made.reshape(final))
