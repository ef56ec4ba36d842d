"""Bit-wise operations that are no ufuncs: bits packed into bytes, and back, of lines or of a sequence that is cut."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from numpy_dist import engine
from numpy_dist.dispatch.core.registry import implements
from numpy_dist.dispatch.patterns.arguments import as_handle
from numpy_dist.dispatch.patterns.blocks import blocks
from numpy_dist.dispatch.patterns.stacks import along_axis
from numpy_dist.layout.layout import Cut, Layout

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from numpy_dist.distarray import DistArray


@implements(np.packbits, kind="axis-local", alone=True)
def packbits(a: ArrayLike, /, axis: int | None = None, bitorder: Literal["big", "little"] = "big") -> DistArray:
    """Collective: lines along a cut axis are brought to one rank each."""
    a = as_handle(a)
    np.packbits(np.zeros((0,) * a.ndim, a.dtype), axis, bitorder)  # NumPy's errors
    if axis is not None and a.ndim > 1:
        return _lines(lambda lines: np.packbits(lines, -1, bitorder), a, axis)
    a = np.ravel(a)
    whole = _bytes((a.size + 7) // 8)
    cut = whole.dims[0]
    assert isinstance(cut, Cut)
    layout = Layout((a.size,), whole.mesh, (Cut(0, tuple(min(8 * point, a.size) for point in cut.points)),))
    (block,) = blocks((engine.aligned(a, layout), layout))
    return engine.from_local(np.packbits(block, bitorder=bitorder), whole)


@implements(np.unpackbits, kind="axis-local", alone=True)
def unpackbits(
    a: ArrayLike, /, axis: int | None = None, count: int | None = None, bitorder: Literal["big", "little"] = "big"
) -> object:
    """Collective, as `packbits`."""
    a = as_handle(a)
    np.unpackbits(np.zeros((0,) * a.ndim, a.dtype), axis, None, bitorder)  # NumPy's errors
    if axis is not None and a.ndim > 1:
        return _lines(lambda lines: np.unpackbits(lines, -1, count, bitorder), a, axis)
    a = np.ravel(a)
    if count is not None and count < -8 * a.size:
        np.unpackbits(np.zeros(0, np.uint8), count=-1)  # NumPy's error
    layout = _bytes(a.size)
    cut = layout.dims[0]
    assert isinstance(cut, Cut)
    (block,) = blocks((engine.aligned(a, layout), layout))
    bits = Layout((8 * a.size,), layout.mesh, (Cut(0, tuple(8 * point for point in cut.points)),))
    made = engine.from_local(np.unpackbits(block, bitorder=bitorder), bits)
    if count is None:
        return made
    if count <= made.size:
        return made[:count].copy()
    return np.concatenate([made, np.zeros(count - made.size, np.uint8)])


def _lines(function: Callable[[np.ndarray], np.ndarray], a: DistArray, axis: int) -> DistArray:
    """NumPy's result has C order, or that of a whole array in Fortran's."""
    order = "K" if a._array.flags.fnc else "C"
    return along_axis(function, a, normalize_axis_index(axis, a.ndim), name="packbits", order=order)


def _bytes(count: int) -> Layout:
    return engine.default_layout((count,), split=0)
