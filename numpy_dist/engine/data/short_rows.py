"""Many short rows of elements that are at hand: a kernel does them at once, where NumPy begins a loop for each."""

from __future__ import annotations

import numpy as np

from numpy_dist.backends.summation import ROWS
from numpy_dist.engine.runtime import runtime

_LONG = 33
"""Elements of rows that no kernel is for."""
_FEW = 512
"""Elements of two arrays that are NumPy's in any case."""


def computed(ufunc: np.ufunc, a: np.ndarray, b: np.ndarray) -> np.ndarray | None:
    """``ufunc(a, b)`` of many short rows; None where NumPy has to do it, and to tell of floating-point events."""
    extents, others = a.shape, b.shape
    if a.size + b.size < _FEW or not extents or not others or extents[-1] >= _LONG or others[-1] >= _LONG:
        return None
    short_rows = getattr(runtime().backend, "short_rows", None)
    return None if short_rows is None else short_rows.computed(ufunc, a, b)


def sums(rows: np.ndarray) -> np.ndarray | None:
    """Sums of floats along axis 1 of three, as the summation tree has them; None as for `computed`."""
    if rows.shape[2] >= _LONG:
        return None
    short_rows = getattr(runtime().backend, "short_rows", None)
    return None if short_rows is None else short_rows.sums(rows, ROWS)
