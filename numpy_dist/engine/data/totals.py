"""Totals at once: arrays of one process that are reduced to a scalar by NumPy itself, with the bits of the engine.

A launch costs some 60 microseconds. Where nothing is pending that writes an array, NumPy is through with a megabyte in
less time, and with truth values as soon as one of them decides.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from numpy_dist.argument_types import Axes
from numpy_dist.backends.summation import CHUNK
from numpy_dist.engine.data import watch, windows
from numpy_dist.engine.data.folds import EXACT, folded_along
from numpy_dist.engine.data.windows import KINDS
from numpy_dist.engine.memory.handle import Handle, metadata
from numpy_dist.engine.runtime import Runtime
from numpy_dist.ir.meta_arrays import offset_of

MOST = 1 << 20
"""Bytes up to which NumPy reduces on one thread what the engine would on several."""
MOST_COUNTED = 16 * MOST
"""The same for counts of truth values, for which NumPy has a loop of its own."""
PROBE = 1 << 16
"""Elements of a large array that are asked first whether one of them decides."""

_AXES = (int, tuple)

TRUTHS = frozenset((np.logical_and, np.logical_or))
"""Operations whose results are truth values, whatever their elements are."""


def total(rt: Runtime, ufunc: np.ufunc, x: Handle, axis: Axes, dtype: DTypeLike | None) -> np.generic | None:
    """``ufunc.reduce(x, axis, dtype)`` of a sharded array over all axes, as a scalar; None where the engine does it.

    Parameters
    ----------
    rt : Runtime
    ufunc : numpy.ufunc
    x : handle
    axis, dtype
        As they were given, or None.
    """
    array = metadata(x)
    if axis is not None and not (array.ndim == 1 and type(axis) in _AXES and axis in (0, -1, (0,))):
        return None
    truths = ufunc in TRUTHS
    counted = ufunc is np.add and array.dtype.char == "?"
    large = array.nbytes > (MOST_COUNTED if counted else MOST)
    if not windows.limit or (large and not truths) or array.dtype.char not in KINDS or ufunc not in EXACT:
        return None
    in_order = array.flags.c_contiguous or (array.ndim == 1 and array.strides[0] > 0)
    if not array.size or not in_order or (truths and dtype is not None and dtype is not bool):
        return None
    elements = elements_of(rt, x)
    if elements is None:
        return None
    if counted:
        return _count(elements, dtype)
    if large:
        found = ufunc.reduce(elements[:PROBE])
        return found if bool(found) is (ufunc is np.logical_or) else None
    return folded(ufunc, elements, dtype)


def elements_of(rt: Runtime, x: Any) -> np.ndarray | None:
    """The elements of a view for reading at once, in C order; None while they are not what they will be.

    The view is contiguous, or has one axis.
    """
    storage = x._storage
    memory = storage.memory
    if (
        rt.size > 1
        or memory is None
        or storage.lost
        or storage.deferred
        or not rt.program.is_settled(storage)
        or storage.extent != storage.shape
        or not windows.has_ndarrays(rt)
    ):
        return None
    array = metadata(x)
    if not array.size:
        return np.empty(0, array.dtype)  # which may begin beyond the memory
    return np.ndarray((array.size,), array.dtype, memory, offset_of(array), array.strides if array.ndim == 1 else None)


def _count(elements: np.ndarray, dtype: DTypeLike | None) -> Any:
    """The sum of truth values."""
    kind = np.dtype(np.intp if dtype is None else dtype)
    if kind.char not in "bBhHiIlLqQ":
        return None
    return np.asarray(np.count_nonzero(elements)).astype(kind)[()]


def reduced(ufunc: np.ufunc, elements: np.ndarray, axis: Axes, keepdims: bool) -> np.ndarray | np.generic | None:
    """Elements reduced to a scalar or along axes as the summation tree has it; None where the engine has to do it."""
    if not keepdims and axis is None and elements.ndim > 1 and elements.flags.c_contiguous:
        elements = elements.reshape(-1)
    if elements.ndim == 1 and not keepdims and (axis is None or (type(axis) is int and axis in (0, -1))):
        return folded(ufunc, elements) if elements.strides[0] > 0 else None
    return folded_along(ufunc, elements, axis, keepdims)


def folded(ufunc: np.ufunc, elements: np.ndarray, dtype: DTypeLike | None = None) -> np.generic | None:
    """A vector reduced to a scalar as the summation tree has it; None where the engine's bits may be others.

    Parameters
    ----------
    ufunc : numpy.ufunc
        One of sums, extremes, truth values and bits.
    elements : ndarray
        With ascending addresses.
    dtype
        As for ``reduce``.
    """
    floating = elements.dtype.char in "fdFD"
    if dtype is not None and ufunc not in TRUTHS:
        kind = np.dtype(dtype)
        if kind != elements.dtype and (floating or kind.char not in "bBhHiIlLqQ"):
            return None
        options = {} if floating else {"dtype": kind}
    else:
        options = {}
    # One event is told once, whichever of the chunks have met it.
    fold = _fold_chunks if ufunc is np.add and floating and len(elements) > CHUNK else ufunc.reduce
    made = watch.watched(fold, "reduce", elements, **options) if options else watch.applied(fold, "reduce", (elements,))
    ordered = floating and ufunc is not np.add and ufunc not in TRUTHS
    if ordered and not (made.real and (made.imag or made.dtype.kind == "f")):
        return None  # of zeros of both signs, NumPy takes one or the other, depending on where they lie
    return made


def _fold_chunks(elements: np.ndarray) -> np.generic:
    whole = len(elements) - len(elements) % CHUNK
    parts = np.add.reduce(elements[:whole].reshape(-1, CHUNK), axis=1)
    if whole < len(elements):
        parts = np.append(parts, np.add.reduce(elements[whole:]))
    return np.add.reduce(parts)
