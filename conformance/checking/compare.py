"""Comparison of two results: containers, types, dtypes, shapes, flags, values."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from numpy_dist.conformance.adapter import current
from numpy_dist.conformance.case import Tolerance


def leaves(result: object) -> Iterator[Any]:
    """What nested tuples, lists and dicts hold."""
    if isinstance(result, tuple | list):
        for item in result:
            yield from leaves(item)
    elif isinstance(result, dict):
        yield from leaves(list(result.values()))
    else:
        yield result


def gathered(result: object) -> Any:
    """The same containers with ndarrays in place of distributed arrays (collective)."""
    if isinstance(result, tuple) and hasattr(result, "_fields"):
        return type(result)(*(gathered(item) for item in result))
    if isinstance(result, tuple | list):
        return type(result)(gathered(item) for item in result)
    if isinstance(result, dict):
        return {name: gathered(item) for name, item in result.items()}
    return Collected(result, current().gather(result)) if current().is_array(result) else result


class Collected:
    """A distributed array and its values, which have the strides of a copy."""

    def __init__(self, array: Any, values: np.ndarray) -> None:
        self.array, self.values = array, values


def differences(
    ours: object,
    theirs: object,
    tolerance: Tolerance | None,
    values: bool = True,
    name: str = "result",
    arguments: Sequence[np.ndarray] = (),
    order: bool = True,
) -> Iterator[str]:
    """What is not as NumPy has it; `ours` went through `gathered`, `arguments` are NumPy's.

    Memory order is compared if `order` says so.
    """
    if isinstance(theirs, tuple | list):
        if type(ours) is not type(theirs) or len(ours) != len(theirs):
            yield f"{name} is {_told(ours)} instead of {_told(theirs)}"
            return
        for number, (mine, other) in enumerate(zip(ours, theirs, strict=True)):
            yield from differences(mine, other, tolerance, values, f"{name}[{number}]", arguments, order)
    elif isinstance(theirs, dict):
        if type(ours) is not dict or list(ours) != list(theirs):
            yield f"{name} is {_told(ours)} instead of {_told(theirs)}"
            return
        for key in theirs:
            yield from differences(ours[key], theirs[key], tolerance, values, f"{name}[{key!r}]", arguments, order)
    elif isinstance(theirs, np.ndarray):
        if isinstance(ours, Collected):
            # A part of a larger new array, which NumPy returns here and there, is a dense array of ours.
            known = theirs.flags.forc or any(np.may_share_memory(theirs, x) for x in arguments)
            yield from _array_differences(ours, theirs, tolerance, values, name, order and known)
        elif isinstance(ours, np.ndarray):
            yield from value_differences(ours, theirs, tolerance, name)
        else:
            yield f"{name} is {_told(ours)} instead of an array {_told(theirs)}"
    elif type(ours) is not type(theirs) and not _same_scalars(ours, theirs):
        yield f"{name} is {_told(ours)} instead of {_told(theirs)}"
    elif isinstance(theirs, np.generic) or tolerance is not None and isinstance(theirs, float | complex):
        yield from value_differences(np.asarray(ours), np.asarray(theirs), tolerance, name)
    elif not _same_objects(ours, theirs):
        yield f"{name} is {ours!r} instead of {theirs!r}"


def _same_objects(ours: object, theirs: object) -> bool:
    """Whether Python's objects are equal: NaN as NaN, zeros with their signs."""
    if isinstance(theirs, float | complex):
        return type(ours) is type(theirs) and bool(_equal(np.asarray(ours), np.asarray(theirs), None))
    return bool(ours == theirs or ours != ours and theirs != theirs)


def _same_scalars(ours: object, theirs: object) -> bool:
    """Whether both are NumPy scalars of equal dtypes: C's names for one size of integer are equal."""
    return isinstance(ours, np.generic) and isinstance(theirs, np.generic) and ours.dtype == theirs.dtype


def _flags(array: Any) -> dict[str, bool]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # NumPy warns who looks at flags of `broadcast_arrays`
        flags = array.flags
        return {flag: flags[flag] for flag in ("C_CONTIGUOUS", "F_CONTIGUOUS", "WRITEABLE")}


def _told(value: object) -> str:
    if isinstance(value, Collected):
        return f"a distributed array {_told(value.values)}"
    if isinstance(value, np.ndarray):
        return f"of shape {value.shape} and dtype {value.dtype}"
    return f"{type(value).__name__} {value!r:.200}"


def _array_differences(
    ours: Collected, theirs: np.ndarray, tolerance: Tolerance | None, values: bool, name: str, order: bool
) -> Iterator[str]:
    array = ours.array
    if array.shape != theirs.shape:
        yield f"{name} has shape {array.shape} instead of {theirs.shape}"
        return
    if array.dtype != theirs.dtype:
        yield f"{name} has dtype {array.dtype} instead of {theirs.dtype}"
        return
    mine = _flags(array) if hasattr(array, "flags") else {}  # arrays of other libraries may have none
    others = _flags(theirs) if mine else {}
    for flag, other in others.items():
        if mine[flag] != other and (order or flag == "WRITEABLE"):
            yield f"flag {flag} of {name} is {mine[flag]} instead of {other}"
    if values:
        yield from value_differences(ours.values, theirs, tolerance, name)


def value_differences(ours: np.ndarray, theirs: np.ndarray, tolerance: Tolerance | None, name: str) -> Iterator[str]:
    if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
        yield f"{name} is {_told(ours)} instead of {_told(theirs)}"
        return
    wrong = ~_equal(ours, theirs, tolerance)
    if wrong.any():
        where = tuple(int(i[0]) for i in np.nonzero(np.atleast_1d(wrong)))
        mine, other = np.atleast_1d(ours)[where], np.atleast_1d(theirs)[where]
        yield f"{int(wrong.sum())} of {wrong.size} values of {name} differ; at {where}: {mine!r} instead of {other!r}"


def _largest(array: np.ndarray) -> np.floating:
    """The largest finite absolute value, at least the least normal one."""
    return np.abs(array[np.isfinite(array)]).max(initial=np.finfo(array.dtype).tiny)


def _equal(
    ours: np.ndarray, theirs: np.ndarray, tolerance: Tolerance | None, scale: np.floating | None = None
) -> np.ndarray:
    """Where two arrays are equal: NaN as NaN, or within the tolerance; zeros with their signs, also then.

    With a `scale`, that of both parts of complex numbers, a zero in one part is a rounding error of the other.
    """
    kind = theirs.dtype.kind
    if kind == "c":
        # One part may be rounding errors of the other.
        scale = max(_largest(theirs.real), _largest(theirs.imag)) if tolerance is not None else None
        return _equal(ours.real, theirs.real, tolerance, scale) & _equal(ours.imag, theirs.imag, tolerance, scale)
    if kind in "mM":
        return ours.view("i8") == theirs.view("i8")
    if kind == "V" and theirs.dtype.names:
        found = np.ones(theirs.shape, bool)
        for field in theirs.dtype.names:
            same = _equal(ours[field], theirs[field], tolerance)
            found &= same.reshape(*found.shape, -1).all(axis=-1) if same.ndim > found.ndim else same
        return found
    with np.errstate(all="ignore"):
        if kind == "O":
            return np.asarray(np.frompyfunc(_same_objects, 2, 1)(ours, theirs), bool)
        if kind != "f":
            return np.asarray(ours == theirs, bool)
        opposite = (ours == theirs) & (np.signbit(ours) != np.signbit(theirs)) & (scale is None)
        same = (ours == theirs) & ~opposite | np.isnan(ours) & np.isnan(theirs)
        if tolerance is None:
            return np.asarray(same)
        scale = _largest(theirs) if scale is None else scale
        allowed = tolerance.ulps * tolerance.unit(theirs.dtype) * float(scale)
        wide = np.promote_types(theirs.dtype, "f8")
        return np.asarray(same | (np.abs(ours.astype(wide) - theirs.astype(wide)) <= allowed) & ~opposite)
