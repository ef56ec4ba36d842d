"""Sequential reductions of one rank by NumPy (for operations whose order matters), where its vector loops are right.

NumPy's loops for AVX-512 read several inputs before they write the first output, also where each output is the next
input: ``np.power.reduce`` and ``np.arctan2.reduce`` of three or more elements are then wrong (NumPy 2.4). Its
``accumulate`` goes element by element, and is right.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

_SUSPECTS = ("arctan2", "power")


@lru_cache(maxsize=64)
def is_sound(ufunc: np.ufunc, kind: np.dtype) -> bool:
    """Whether NumPy reduces by this operation in its own order, on this processor."""
    if ufunc.__name__ not in _SUSPECTS or kind.kind != "f":
        return True
    values = np.linspace(0.3, 3, 40).astype(kind)
    one_by_one = values[0]
    for value in values[1:]:
        one_by_one = ufunc(one_by_one, value)
    return bool(np.isclose(ufunc.reduce(values), one_by_one, rtol=1e-2, atol=0))


def is_numpys(ufunc: np.ufunc, kind: np.dtype) -> bool:
    """Whether NumPy's own reduction is wanted; `reduce` rounds products of half precision in another way."""
    return is_sound(ufunc, kind) and not (ufunc is np.multiply and kind == np.float16)


def reduce(
    ufunc: np.ufunc, rows: np.ndarray, kind: np.dtype, where: np.ndarray | bool = True, **options: Any
) -> np.ndarray:
    """``ufunc.reduce`` over the last axis, in order; `kind` is the dtype of the loop and of the result.

    Products of half precision are rounded after each factor.
    """
    if is_numpys(ufunc, kind) or not rows.shape[-1]:
        found = ufunc.reduce(rows, axis=-1, where=where, **options)
        return np.asarray(found).astype(kind, copy=False)
    if rows.ndim == 1 and where is True and options.get("initial", np._NoValue) is np._NoValue:
        return ufunc.accumulate(rows, dtype=kind)[-1:].reshape(())
    chosen = np.broadcast_to(where, rows.shape)
    if options.get("initial", np._NoValue) in (np._NoValue, None):
        # The mask may leave out the first factor, too (products alone take one without `initial`).
        made, first = np.where(chosen[..., 0], rows[..., 0].astype(kind), kind.type(1)), 1
    else:
        made, first = np.full(rows.shape[:-1], options["initial"], kind), 0
    for place in range(first, rows.shape[-1]):
        ufunc(made, rows[..., place].astype(kind), out=made, where=chosen[..., place])
    return made


def reduceat(ufunc: np.ufunc, rows: np.ndarray, indices: np.ndarray, kind: np.dtype) -> np.ndarray:
    """``ufunc.reduceat`` along the last axis, in order; `kind` is the dtype of the loop and of the result."""
    if is_sound(ufunc, kind):
        return ufunc.reduceat(rows, indices, rows.ndim - 1, None if kind.kind in "mM" else kind)
    stops = np.append(indices[1:], rows.shape[-1])
    parts = [rows[..., a : max(b, a + 1)] for a, b in zip(indices.tolist(), stops.tolist(), strict=True)]
    made = np.empty((*rows.shape[:-1], len(indices)), kind)
    for place, part in enumerate(parts):
        made[..., place] = reduce(ufunc, part, kind)
    return made
