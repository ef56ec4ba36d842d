"""Reductions along axes of elements that are at hand, by NumPy itself, with the bits of the engine."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from numpy_dist.backends.interpreter import TILE_ELEMENTS
from numpy_dist.backends.summation import CHUNK, ROWS, Trailing, fold_chunks, tree_of
from numpy_dist.engine.data import short_rows, watch
from numpy_dist.ir.rules import memory_axes

EXACT = frozenset(
    (np.maximum, np.minimum, np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.logical_and, np.logical_or, np.add)
)
"""Operations whose results depend on the order of elements for floats only."""
_INTS = frozenset([int])


class _Extents(NamedTuple):
    """A reduction of contiguous elements.

    Attributes
    ----------
    outer, length, inner : int
        Elements along the axes before the reduced ones, along these, and behind them.
    shape : tuple of int
        Of the results.
    """

    outer: int
    length: int
    inner: int
    shape: tuple[int, ...]


@lru_cache(maxsize=1024)
def _fold_of(
    shape: tuple[int, ...], strides: tuple[int, ...], axis: int | tuple | None, keepdims: bool
) -> _Extents | None:
    """How elements with these strides are reduced along axes; None where the engine has no tree, or another order."""
    ndim = len(shape)
    try:
        axes = range(ndim) if axis is None else np.lib.array_utils.normalize_axis_tuple(axis, ndim)
    except (ValueError, TypeError):
        return None  # NumPy's error
    steps = [abs(s) for n, s in zip(shape, strides, strict=True) if n != 1]
    if 0 in shape or 0 in steps or steps != sorted(steps, reverse=True):
        return None
    probe = np.lib.stride_tricks.as_strided(np.zeros(1), shape, strides)
    tree = tree_of(shape, axes)
    if tree is None or memory_axes([probe], shape) is not None:
        return None
    kept = tuple(1 if a in axes else n for a, n in enumerate(shape) if keepdims or a not in axes)
    if isinstance(tree, Trailing):
        return _Extents(tree.results, tree.length, 1, kept)
    return _Extents(tree.outer, tree.length, tree.inner, kept)


def folded_along(
    ufunc: np.ufunc, elements: np.ndarray, axis: Any, keepdims: bool = False
) -> np.ndarray | np.generic | None:
    """``ufunc.reduce`` as the summation tree has it (`backends.summation`); None where the engine has to do it.

    Parameters
    ----------
    ufunc : numpy.ufunc
        One of `EXACT`.
    elements : ndarray
    axis : int, tuple of int or None
    keepdims : bool

    Returns
    -------
    ndarray or scalar
    """
    kind = type(axis)
    if kind is not int and axis is not None and (kind is not tuple or not _INTS.issuperset(map(type, axis))):
        return None
    fold = _fold_of(elements.shape, elements.strides, axis, keepdims)
    if fold is None:
        return None
    outer, length, inner, shape = fold
    floating = elements.dtype.kind in "fc"
    rows = elements.reshape((outer, length) if inner == 1 else (outer, length, inner))
    if not rows.flags.c_contiguous:
        rows = rows.copy()
    by_kernel = short_rows.sums(rows) if floating and ufunc is np.add and inner > 1 else None
    if by_kernel is not None:
        made = by_kernel
    elif floating and (ufunc is np.add or ufunc is np.maximum or ufunc is np.minimum):
        made = watch.applied(_in_tree, "reduce", (ufunc, rows))
    else:
        made = ufunc.reduce(rows, 1)
    if floating and ufunc is not np.add and elements.size > TILE_ELEMENTS and _has_zeros(made):
        return None  # of zeros of both signs, NumPy takes one or the other, depending on how many it looks at
    return made.reshape(shape) if shape else made.reshape(())[()]


def _in_tree(ufunc: np.ufunc, rows: np.ndarray) -> np.ndarray:
    """The results of the tree; rows have one or two axes, of which the second is reduced."""
    step = CHUNK if rows.ndim == 2 else ROWS
    length = rows.shape[1]
    if length <= step:
        made = ufunc.reduce(rows, 1)
        return made if rows.ndim == 2 else _one_nan(ufunc, made)
    whole = length // step
    parts = ufunc.reduce(rows[:, : whole * step].reshape(len(rows), whole, step, *rows.shape[2:]), 2)
    if whole * step < length:
        parts = np.concatenate((parts, ufunc.reduce(rows[:, whole * step :], 1)[:, None]), 1)
    return fold_chunks(ufunc.reduce, parts if rows.ndim == 2 else _one_nan(ufunc, parts))


def _has_zeros(made: np.ndarray) -> bool:
    return not (made.real.all() and made.imag.all()) if made.dtype.kind == "c" else not made.all()


def _one_nan(ufunc: np.ufunc, parts: np.ndarray) -> np.ndarray:
    """As `summation.one_nan`."""
    if ufunc is np.add and parts.dtype.kind == "f":
        unlike = parts != parts
        if 1 in unlike.tobytes():  # a fifth of the time of `any`, for few parts
            parts[unlike] = np.nan
    return parts


def mean_of(sums: Any, count: int) -> np.ndarray | np.generic:
    """The means of elements by their sums, divided as NumPy's own ``_methods.py`` does.

    Parameters
    ----------
    sums : ndarray or scalar
        Of floats; an array is overwritten.
    count : int
        Of all elements that were added.
    """
    if type(sums) is not np.ndarray:
        return type(sums)(sums / (np.intp(count) if type(sums) is np.complex64 else count))  # in double precision
    each = np.intp(count // sums.size)
    return watch.watched(np.true_divide, "divide", sums, each, out=sums, casting="unsafe")
