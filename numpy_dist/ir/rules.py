"""Shapes, dtypes and memory order of results, and what can raise, by NumPy's own rules; pure functions of metadata."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache, lru_cache
from typing import Any

import numpy as np

from numpy_dist.argument_types import Keywords
from numpy_dist.ir.meta_arrays import Unrecordable
from numpy_dist.ir.ops import COPY, Op

_MOST_AT_ONCE = 32  # axes that `numpy.broadcast_shapes` takes


@contextmanager
def only_asking() -> Iterator[None]:
    """A block that asks NumPy for the dtype of a cast, which will warn itself of imaginary parts that it discards."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", np.exceptions.ComplexWarning)
        yield


def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """`numpy.broadcast_shapes`, for as many axes as arrays may have."""
    if all(len(shape) <= _MOST_AT_ONCE for shape in shapes):
        return np.broadcast_shapes(*shapes)
    first = np.broadcast_shapes(*(shape[:-_MOST_AT_ONCE] for shape in shapes))
    return first + np.broadcast_shapes(*(shape[-_MOST_AT_ONCE:] for shape in shapes))


def loop_dtypes(
    ufunc: np.ufunc, operands: tuple[np.dtype | type | None, ...], casting: str, signature: object
) -> tuple[np.dtype, ...]:
    """Dtypes of a ufunc's loop for operands given as dtypes, Python scalar types or None (an output to be made).

    Raises
    ------
    numpy.exceptions.UFuncTypeError
        NumPy's own, where no loop fits.
    """
    return _loop_dtypes(ufunc, operands, tuple(map(dtype_char, operands)), casting, signature)


def reduction_dtype(ufunc: np.ufunc, operand: np.dtype, out: np.dtype) -> np.dtype:
    """Dtype in which a ufunc's methods reduce into an output where they are given no ``dtype``.

    Raises
    ------
    numpy.exceptions.UFuncTypeError
        NumPy's own, where no loop fits.
    Unrecordable
        Where the loop takes operands of two dtypes, so that partial results cannot be combined.
    """
    loop = ufunc.resolve_dtypes((out, operand, None), reduction=True, casting="unsafe")
    if not loop[0] == loop[1] == loop[2]:
        raise Unrecordable(f"it combines results of dtype {loop[0]} with elements of dtype {loop[1]}")
    return loop[2]


def begins_with_an_element(ufunc: np.ufunc, initial: object) -> bool:
    """Whether a reduction has no value to begin with: the ufunc has no identity, or ``initial=None`` wants none."""
    return initial is None or (initial is np._NoValue and ufunc.identity is None)


def begins_in_output(ufunc: np.ufunc, kind: np.dtype, out: np.dtype, initial: object) -> bool:
    """Whether an output of another kind than the loop's holds the first element, which may be another value there.

    A reduction that has nothing else to begin with copies it there. Rounding it is left to the end.
    """
    if not begins_with_an_element(ufunc, initial):
        return False
    return not (kind.kind == out.kind in "fc" or np.can_cast(kind, out, "equiv"))


def dtype_char(kind: object) -> str | None:
    """What tells int64 from longlong, in keys: their dtypes are equal, and yet have scalars of different types."""
    return kind.char if isinstance(kind, np.dtype) else None


@lru_cache(maxsize=4096)
def _loop_dtypes(
    ufunc: np.ufunc,
    operands: tuple[np.dtype | type | None, ...],
    chars: tuple[str | None, ...],
    casting: str,
    signature: object,
) -> tuple[np.dtype, ...]:
    options: Keywords = {} if signature is None else {"signature": signature}
    if casting == "equiv" and any(isinstance(kind, type) for kind in operands):
        _check_equivalent(ufunc, operands, options)
        casting = "same_kind"
    return ufunc.resolve_dtypes(operands, casting=casting, **options)  # type: ignore[arg-type]


def _check_equivalent(ufunc: np.ufunc, operands: tuple[np.dtype | type | None, ...], options: Keywords) -> None:
    """NumPy's error for Python's numbers under ``casting="equiv"``, for which ``resolve_dtypes`` ends the process."""
    shown = [None if k is None else k(1) if isinstance(k, type) else np.ones(1, k) for k in operands]
    inputs, outs = shown[: ufunc.nin], tuple(shown[ufunc.nin :])
    with np.errstate(all="ignore"):
        ufunc(*inputs, out=outs, casting="equiv", **options)


def scalar_kind(value: object) -> np.dtype | type:
    """What stands for a scalar in dtype resolution: Python's types are weak (NEP 50), NumPy's scalars have a dtype."""
    kind = type(value)
    if kind is int or kind is float or kind is complex:
        return kind
    if kind is bool:
        return np.dtype(bool)
    return np.asarray(value).dtype


def memory_axes(arrays: Sequence[np.ndarray], shape: tuple[int, ...]) -> tuple[int, ...] | None:
    """Axes of a result from outermost to innermost in memory (order="K"), or None for C order.

    As `iteration_axes`, but in C order where all operands are contiguous, as all are that have no elements.
    """
    ndim = len(shape)
    if all(a.ndim == ndim and a.flags.c_contiguous for a in arrays):
        return None
    return iteration_axes(arrays, shape)


def iteration_axes(arrays: Sequence[np.ndarray], shape: tuple[int, ...]) -> tuple[int, ...] | None:
    """Axes from outermost to innermost as NumPy's iterator goes over operands, or None for C order.

    This is its insertion sort (``npyiter_find_best_axis_ordering``): axes are compared by the absolute strides of all
    operands, ambiguous pairs keep C order.
    """
    ndim = len(shape)
    if ndim < 2:
        return None
    columns = [
        [0] * (ndim - a.ndim) + [0 if n == 1 else abs(s) for n, s in zip(a.shape, a.strides, strict=True)]
        for a in arrays
    ]
    inner_first = list(range(ndim - 1, -1, -1))
    for position in range(1, ndim):
        axis, target = inner_first[position], position
        for other in range(position - 1, -1, -1):
            verdict = _compare(columns, axis, inner_first[other])
            if verdict is True:
                target = other
            elif verdict is False:
                break
        if target != position:
            inner_first.insert(target, inner_first.pop(position))
    axes = tuple(reversed(inner_first))
    return None if axes == tuple(range(ndim)) else axes


def _compare(columns: list[list[int]], outer: int, inner: int) -> bool | None:
    """Whether `outer` must move inside `inner` (True), must not (False), or the strides do not say (None)."""
    swap: bool | None = None
    for strides in columns:
        if strides[outer] and strides[inner]:
            if strides[inner] <= strides[outer]:
                swap = False
            elif swap is None:
                swap = True
    return swap


def memory_order(order: Any, default: str = "K") -> str:
    """The letter that NumPy's ``order`` argument means, in any of its spellings.

    Raises
    ------
    TypeError, ValueError
        NumPy's own, where it means none.
    """
    if type(order) is str and order in "KCFA" and len(order) == 1:
        return order
    np.empty(0).copy(order)  # NumPy's error
    return default if order is None else (order.decode() if isinstance(order, bytes) else str(order)).upper()


def copy_axes(order: str | None, array: np.ndarray) -> tuple[int, ...] | None:
    """Memory axes of a copy (``PyArray_NewLikeArray``): unlike an iterator's, those that are broadcast come last."""
    order = memory_order(order)
    if order != "K" or array.ndim < 2 or array.flags.forc:
        return order_axes(order, [array], array.shape)
    axes = tuple(sorted(range(array.ndim), key=lambda axis: -abs(array.strides[axis])))
    return None if axes == tuple(range(array.ndim)) else axes


def order_axes(order: str | None, arrays: Sequence[np.ndarray], shape: tuple[int, ...]) -> tuple[int, ...] | None:
    """Memory axes of a result for NumPy's ``order`` argument."""
    order = memory_order(order)
    if order == "K":
        return memory_axes(arrays, shape)
    if order == "F" or (order == "A" and all(a.flags.fnc for a in arrays)):
        return tuple(reversed(range(len(shape)))) if len(shape) > 1 else None
    return None


def can_raise(op: Op, kinds: tuple, dtypes: tuple[np.dtype, ...]) -> bool:
    """Whether values can raise: integers to negative powers, texts repeated or not found, times, and some casts.

    Text may be no number, or too short for a date; what raw memory and records hold goes by way of Python's objects.
    Times may be too large for their sum, or for another unit, which NumPy says since 2.5.
    `kinds` are dtypes (or Python's types) of the inputs, `dtypes` those of the outputs.
    """
    if times_overflow() and (units := {np.datetime_data(x) for x in (*kinds, *dtypes) if _is_time(x)}):
        if len(units) > 1 or op.name in ("add", "subtract", "multiply"):
            return True
    if op is COPY:
        source, target = getattr(kinds[0], "kind", ""), dtypes[0].kind
        if "V" in (source, target):
            return kinds[0] != dtypes[0]
        return (source in ("S", "U") and target != source) or (source == "M" and target in "SU")
    if op.name == "power":
        return dtypes[0].kind == "i"
    return op.name in ("index", "rindex") or (op.name == "multiply" and dtypes[0].kind in "SU")


@cache
def times_overflow() -> bool:
    """Whether this NumPy raises an error where a time is too large."""
    most = np.array(np.iinfo(np.int64).max, "m8[s]")
    try:
        np.add(most, most)
    except OverflowError:
        return True
    return False


def _is_time(kind: object) -> bool:
    return isinstance(kind, np.dtype) and kind.kind in "mM"
