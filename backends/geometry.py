"""The iteration space of a loop as its kernel sees it: axes in memory order, merged where memory allows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from numpy_dist.backends.memory import Array

Strides = tuple[int, ...]


@dataclass(frozen=True)
class Space:
    """An iteration space and its operands' strides in it.

    Attributes
    ----------
    shape : tuple of int
        Outer axes and, last, the inner axis; at least one axis.
    strides : tuple of tuple of int
        In bytes, for each operand.
    """

    shape: tuple[int, ...]
    strides: tuple[Strides, ...]


def merged(shape: Sequence[int], strides: Sequence[Sequence[int]], wall: int = 0) -> Space:
    """Leave out axes of extent one, and make one axis of neighbours that every operand walks through in one stride.

    Axes before the axis `wall` are not merged with this one and those behind it.
    """
    kept = [axis for axis, n in enumerate(shape) if n != 1]
    if not kept:
        return Space((1,), tuple((0,) for _ in strides))
    extents = [shape[kept[0]]]
    rows = [[s[kept[0]]] for s in strides]
    for before, axis in zip(kept, kept[1:], strict=False):
        n = shape[axis]
        if not before < wall <= axis and all(row[-1] == s[axis] * n for row, s in zip(rows, strides, strict=True)):
            extents[-1] *= n
            for row, s in zip(rows, strides, strict=True):
                row[-1] = s[axis]
        else:
            extents.append(n)
            for row, s in zip(rows, strides, strict=True):
                row.append(s[axis])
    return Space(tuple(extents), tuple(map(tuple, rows)))


def is_aligned(address: int, array: Array) -> bool:
    """Whether all elements of an array, whose first one has this address, lie at multiples of its dtype's alignment."""
    bits = address
    for n, stride in zip(array.shape, array.strides, strict=True):
        if n > 1:
            bits |= stride
    return not bits & (array.dtype.alignment - 1)
