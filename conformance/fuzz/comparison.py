"""Snapshots of what a program lets one see of its values, and how two of them differ."""

from __future__ import annotations

import re
import types
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from numpy_dist.conformance.adapter import current
from numpy_dist.conformance.case import Tolerance
from numpy_dist.conformance.checking import compare

__all__ = ["ArraySnapshot", "Problem", "differences", "message", "snapshot"]


class Problem(NamedTuple):
    """A difference: its kind ("values", "dtype", "error", ...), the number of the statement, and words."""

    kind: str
    step: int
    text: str


class ArraySnapshot(NamedTuple):
    """An array at one moment; `values` are its own memory."""

    values: np.ndarray
    writeable: bool
    order: tuple[bool, bool]
    """Whether it is contiguous in C order, and in Fortran order."""


def snapshot(value: object) -> object:
    """The value with copies in place of arrays, of either side (collective)."""
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return tuple(map(snapshot, value))
    if isinstance(value, list | tuple):
        return type(value)(map(snapshot, value))
    if isinstance(value, dict):
        return {name: snapshot(item) for name, item in value.items()}
    if current().is_array(value):
        return ArraySnapshot(current().gather(value), *_flags(value))
    if isinstance(value, np.ndarray):
        return ArraySnapshot(np.array(value, subok=False), *_flags(value))
    if isinstance(value, np.void):  # NumPy's is a view of its array
        return value.copy()
    if isinstance(value, BaseException):
        return type(value).__name__, message(value)
    if isinstance(value, types.FunctionType) or type(value).__module__ not in ("builtins", "numpy"):
        return type(value).__name__.replace("DistArray", "ndarray")
    return value


def _flags(array: object) -> tuple[bool, tuple[bool, bool]]:
    flags = getattr(array, "flags", None)
    if flags is None:  # arrays of other libraries may have none
        return True, (False, False)
    return bool(flags["WRITEABLE"]), (bool(flags["C_CONTIGUOUS"]), bool(flags["F_CONTIGUOUS"]))


# What messages name differently without meaning anything else.
_ALIKE = ((r"'?numpy\.ndarray'?|'?DistArray'?", "ndarray"), (r"0x[0-9a-f]+", "0x"), (r"^index -?\d+ is", "index is"))


def message(error: BaseException) -> str:
    """The text of an error, in which either class of arrays may be named, and any index of those out of bounds.

    Shapes are in any order: Python asks an array at hand before one that is not, on whichever side they stand.
    """
    text = re.sub(r"(?<=with shapes ).*", lambda found: " ".join(sorted(found[0].split())), str(error))
    for pattern, replacement in _ALIKE:
        text = re.sub(pattern, replacement, text)
    return text


def differences(ours: Any, theirs: Any, ulps: float, name: str) -> Iterator[tuple[str, str]]:
    """Kinds and descriptions of what differs between two snapshots."""
    if isinstance(theirs, ArraySnapshot):
        yield from _array_differences(ours, theirs, ulps, name)
    elif type(ours) is not type(theirs) and not (isinstance(ours, np.generic) and isinstance(theirs, np.generic)):
        yield "type", f"{name} is {ours!r:.200} instead of {theirs!r:.200}"
    elif isinstance(theirs, list | tuple | dict):
        if len(ours) != len(theirs) or isinstance(theirs, dict) and list(ours) != list(theirs):
            yield "type", f"{name} is {ours!r:.200} instead of {theirs!r:.200}"
            return
        keys = list(theirs) if isinstance(theirs, dict) else range(len(theirs))
        for key in keys:
            yield from differences(ours[key], theirs[key], ulps, f"{name}[{key!r}]")
    elif isinstance(theirs, np.generic | float | complex):
        mine, other = (ArraySnapshot(np.asarray(x), True, (True, True)) for x in (ours, theirs))
        yield from _array_differences(mine, other, ulps, name)
    elif not (ours == theirs or ours != ours and theirs != theirs):
        yield "values", f"{name} is {ours!r:.200} instead of {theirs!r:.200}"


def _array_differences(ours: object, theirs: ArraySnapshot, ulps: float, name: str) -> Iterator[tuple[str, str]]:
    if not isinstance(ours, ArraySnapshot):
        yield "type", f"{name} is {ours!r:.200} instead of an array of {theirs.values.shape} {theirs.values.dtype}"
        return
    mine, other = ours.values, theirs.values
    if mine.shape != other.shape:
        yield "shape", f"{name} has shape {mine.shape} instead of {other.shape}"
    elif mine.dtype != other.dtype:
        yield "dtype", f"{name} has dtype {mine.dtype} instead of {other.dtype}"
    elif ours.writeable != theirs.writeable:
        yield "writeable", f"{name}.flags.writeable is {ours.writeable} instead of {theirs.writeable}"
    else:
        tolerance = Tolerance(ulps, "it may be rounded otherwise") if ulps else None
        for text in compare.value_differences(mine, other, tolerance, name):
            # Where a program was made smaller, what was exact may be rounded: that is another finding, or none.
            near = not ulps and not any(compare.value_differences(mine, other, Tolerance(4096, ""), name))
            yield "rounding" if near and (mine != other).any() else "values", text
        if ours.order != theirs.order and any(theirs.order) and current().memory_order:
            yield "order", f"{name} is contiguous (C, F): {ours.order} instead of {theirs.order}"
