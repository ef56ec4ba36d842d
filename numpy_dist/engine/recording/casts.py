"""Casts of operands: Python's numbers to the dtypes of a loop, complex numbers to real ones, as NumPy has them.

NumPy warns, or raises, as it casts. Here this is done when the call is recorded, at the user's line, and on every rank.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from numpy_dist.argument_types import Keywords
from numpy_dist.engine.data.watch import watched
from numpy_dist.engine.events.floating import event
from numpy_dist.engine.events.sites import user_site
from numpy_dist.engine.memory.handle import Handle, metadata
from numpy_dist.engine.recording.numpy_errors import numpy_error
from numpy_dist.engine.runtime import runtime
from numpy_dist.frames import stack_level
from numpy_dist.ir import structure
from numpy_dist.ir.ops import Op

Kinds = tuple[np.dtype | type, ...]
"""Of operands: dtypes, and types of Python's numbers."""

Bounds = tuple[tuple[int, Any, Any], ...]
"""Python's numbers among operands that may not fit: the position of each, and the limits between which it does."""

_COMPARISONS = frozenset((np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal))
_TRUTH = np.dtype(bool)
_WEAK = frozenset((int, float, complex))
_DOUBLES = frozenset("dDG")  # dtypes that take Python's integers as its floats
_MOST_DOUBLE = float(np.finfo(float).max)

# -- complex numbers ---------------------------------------------------------------------------------------------------


def is_real_part(source: np.dtype | None, target: np.dtype) -> bool:
    """Whether a cast discards the imaginary part."""
    return source is not None and source.kind == "c" and target.kind in "iuf"


def warn_of_real_part() -> None:
    """NumPy's warning of such a cast, at the user's line.

    It is given when the cast is recorded. Programs cast real parts, so that nothing warns, or raises, as they run.
    """
    text = "Casting complex values to real discards the imaginary part"
    warnings.warn(text, np.exceptions.ComplexWarning, stacklevel=stack_level())


def without_imaginary_part(x: Any, kind: np.dtype) -> object:
    """What is to become this dtype: its real part, with NumPy's warning, where nothing else is left of it."""
    array = x._array if isinstance(x, Handle) else x
    if not isinstance(array, np.ndarray | np.generic) or not is_real_part(array.dtype, kind):
        return x
    warn_of_real_part()
    return x._view(structure.attribute, "real") if isinstance(x, Handle) else x.real


# -- Python's numbers --------------------------------------------------------------------------------------------------


def bounds_of(op: Op, operands: Sequence[object], loop: tuple[np.dtype, ...]) -> Bounds:
    """For each Python number among the operands that its dtype may not hold: its position, and that dtype's limits."""
    if op.ufunc is None:
        return ()
    found: list[tuple[int, float, float]] = []
    for position, x in enumerate(operands):
        if type(x) not in _WEAK:
            continue
        kind = loop[position]
        if kind.kind in "mM":
            if type(x) is int:
                found.append((position, -(1 << 63), (1 << 63) - 1))
        elif kind.kind in "iu":
            if type(x) is int and not (op.ufunc in _COMPARISONS and _has_integers(operands)):
                info = np.iinfo(kind)
                found.append((position, int(info.min), int(info.max)))
        elif kind.char in "efF":
            most = float(np.finfo(kind).max)
            found.append((position, -most, most))
        elif type(x) is int and (kind.char in _DOUBLES or kind.char == "g"):
            found.append((position, -_MOST_DOUBLE, _MOST_DOUBLE))
    return tuple(found)


def _has_integers(operands: Sequence[object]) -> bool:
    """Whether one of the operands has integers, which NumPy compares with any of Python's; not so truth values."""
    return any(getattr(metadata(x), "dtype", _TRUTH).kind in "iu" for x in operands)


def within(bounds: Bounds, operands: Sequence[object]) -> bool:
    """Whether Python's numbers fit into the loop; not for sure where this is False: infinity fits."""
    for position, low, high in bounds:
        x = operands[position]
        if type(x) is complex:
            x = max(abs(x.real), abs(x.imag))
        if not low <= x <= high:
            return False
    return True


def fitted(op: Op, operands: list, kinds: Kinds, loop: tuple[np.dtype, ...], bounds: Bounds, options: Keywords) -> list:
    """The operands, with infinity for Python's numbers that are too large for floats, of which NumPy warns at once.

    Raises
    ------
    OverflowError
        NumPy's own, for an integer that its dtype does not hold.
    FloatingPointError
        If the error state says so.
    """
    operands = list(operands)
    for bound in bounds:
        if within((bound,), operands):
            continue
        position = bound[0]
        kind = loop[position]
        if kind.kind in "iumM":
            given = zip(operands, kinds, strict=True)
            numpy_error(op.ufunc, [x if isinstance(x, int) else np.ones((), k) for x, k in given], options)  # type: ignore[arg-type]
        if kind.char in _DOUBLES:
            float(operands[position])  # raises NumPy's error, here on every rank
            continue
        if kind.char == "g":
            np.empty(1, kind)[0] = operands[position]  # the same for one with too many digits
            continue
        operands[position] = narrowed(operands[position], kind).item()
    return operands


def narrowed(value: complex, kind: np.dtype) -> Any:
    """One of Python's numbers as a floating-point number of this dtype; that it overflows is told at the user's line.

    Raises
    ------
    FloatingPointError
        If the error state says so.
    """
    wide = np.asarray(value, np.result_type(kind, float))
    with np.errstate(all="ignore"):
        found = wide.astype(kind)[()]
    if np.isinf(found) and not np.isinf(wide):
        events = runtime().events
        met = event(0, "overflow", "cast", events.error_state(), user_site(1))
        events.report(() if met is None else (met,))
    return found


def of_kind(x: object, kind: np.dtype) -> object:
    """A Python number of another kind than its loop's as a NumPy scalar of that, cast as an array of one number is."""
    if type(x) is complex and kind.kind in "iuf":
        warn_of_real_part()
        x = x.real
    return watched(np.float64(x).astype, "cast", kind) if type(x) is float and kind.kind in "iu" else x


def check_numbers(operands: Sequence[object], loop: tuple[np.dtype, ...]) -> None:
    """NumPy's error for Python's numbers that a loop of another kind, asked for by name, cannot take."""
    for x, kind in zip(operands, loop, strict=False):
        if (type(x) is complex and kind.kind in "iuf") or (type(x) is float and kind.kind in "iu"):
            np.empty(1, kind)[0] = x
