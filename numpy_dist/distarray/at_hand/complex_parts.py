"""Real and imaginary parts of arrays at hand."""

from __future__ import annotations

from typing import Any

import numpy as np

from numpy_dist.distarray.array import DistArray
from numpy_dist.distarray.at_hand.array import AtHand, view_at_hand
from numpy_dist.distarray.at_hand.indexing import assign
from numpy_dist.engine.data import windows
from numpy_dist.engine.data.windows import FREE, hand_over
from numpy_dist.engine.memory.handle import replicated
from numpy_dist.ir.meta_arrays import address_of


def _part(name: str) -> property:
    """The real or the imaginary part; the real part of what is real is the array itself."""
    general: property = getattr(DistArray, name)

    def get(self: AtHand) -> object:
        if self._real.dtype.kind != "c" and self._window.readable:
            return self if name == "real" else _zeros_of(self._real)
        made = _part_of(self, name)
        return general.__get__(hand_over(self)) if made is None else made

    def put(self: AtHand, value: object) -> None:
        part = _part_of(self, name)
        if part is None or not assign(part, Ellipsis, value):
            general.__set__(hand_over(self), value)

    return property(get, put, doc=general.__doc__)


def _zeros_of(real: np.ndarray) -> Any:
    """The imaginary part of real elements, which cannot be written."""
    zeros = np.zeros(real.shape, real.dtype, "F" if real.flags.fnc else "C")
    zeros.flags.writeable = False
    return replicated(zeros)


def _part_of(x: AtHand, name: str) -> AtHand | None:
    """The real or the imaginary part of complex elements; None where they are not, or the engine would copy it.

    Products of parts depend on how they lie. The engine has no map of a part of elements that go on in the next row.
    """
    real, window = x._real, x._window
    if real.dtype.kind != "c" or not window.readable:
        return None
    if window is FREE:
        window = windows.family(x)  # type: ignore[assignment]
        if window is None:
            return None
    shape = window.whole.shape if window.storage is None else window.storage.shape
    if len(shape) > 1 and real.ndim and real.size and real.shape != shape:
        row, step = shape[-1] * real.itemsize, real.strides[-1]
        begin = (address_of(real) - window.begin()) % row
        if not 0 <= begin + (real.shape[-1] - 1) * step < row and abs(step) < row:
            return None
    return view_at_hand(x, getattr(real, name), window)


for _name in ("real", "imag"):
    setattr(AtHand, _name, _part(_name))
