"""The creation pattern: each rank makes its own shard of a new array.

Needs: a function of a box of the result, with NumPy's bits for any box. A rank makes the box that it holds. Nothing is
communicated. The result has the layout that the user asked for, or the default one; small arrays are whole on every
rank.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike

from numpy_dist import engine
from numpy_dist.ir.rules import copy_axes, memory_order
from numpy_dist.ir.samples import text_of
from numpy_dist.layout.layout import Layout
from numpy_dist.layout.regions import Box

if TYPE_CHECKING:
    from numpy_dist.layout.mesh import Mesh

OURS = ("split", "mesh")  # our own parameters, which NumPy does not have
PIECE = 1 << 15  # elements that are computed together
Shape = tuple[int, ...]


def elsewhere(like: object) -> bool:
    """Whether `like=` names another library's array."""
    return like is not None and not engine.is_handle(like)


def chosen_layout(shape: Shape, split: int | None, mesh: Mesh | Sequence[int] | None) -> Layout | None:
    """The layout that the user asked for, None if they did not."""
    if split is None and mesh is None:
        return None
    return engine.runtime().default_layout(shape, split=split, mesh=getattr(mesh, "shape", mesh))


def as_shape(shape: Any) -> Shape:
    """A shape as NumPy's creation functions take it."""
    try:
        found = tuple(operator.index(n) for n in shape) if np.iterable(shape) else (operator.index(shape),)
    except TypeError:
        np.empty(shape)  # NumPy's error
        raise
    if any(n < 0 for n in found):
        np.empty(found)  # NumPy's error
    return found


def is_replicated(shape: Shape, dtype: np.dtype, layout: Layout | None) -> bool:
    """Whether a new array is whole on every rank: it is small, has no axes, or holds what has no fixed width."""
    if dtype.hasobject or dtype.char == "T" or not shape:
        return True
    return layout is None and not engine.default_shard(math.prod(shape) * dtype.itemsize)


def axes_in_order(like: np.ndarray | None, order: object, ndim: int) -> tuple[int, ...] | None:
    """The axes from the outermost to the innermost in memory, None for C order.

    Parameters
    ----------
    like : ndarray or None
        The array whose order "A" and "K" keep; only its metadata are read.
    order : {"C", "F", "A", "K", None}
    """
    order = memory_order(order)
    if order == "F" and ndim > 1:
        return tuple(range(ndim))[::-1]
    return None if like is None or like.ndim != ndim else copy_axes(order, like)


def permuted(
    make: Callable[[Shape, Layout | None], engine.Handle],
    shape: Shape,
    layout: Layout | None,
    axes: Sequence[int] | None,
) -> Any:
    """An array of which `make` makes the C-ordered memory, with `axes` from the outermost to the innermost."""
    if axes is None:
        return make(shape, layout)
    inverse = tuple(axes.index(axis) for axis in range(len(axes)))
    made = make(tuple(shape[axis] for axis in axes), layout and layout.transpose(tuple(axes)))
    if made._storage is not None:
        made._storage.axes = tuple(axes)
    return made._view(np.ndarray.transpose, inverse)


def from_parts(
    part: Callable[[Box], np.ndarray],
    shape: Shape,
    dtype: DTypeLike,
    layout: Layout | None = None,
    axes: Sequence[int] | None = None,
    made_of: tuple[object, ...] = (),
) -> Any:
    """An array of which ``part(box)`` makes a box; called once on each rank, for what it holds.

    `made_of` are the numbers that it depends on, which must be the same on all ranks.
    """
    dtype = np.dtype(dtype)
    if is_replicated(shape, dtype, layout):
        whole = part(tuple((0, n) for n in shape))
        return engine.replicated(
            np.array(whole, dtype, order="K" if axes is None else "F" if axes[0] else "C", copy=None)
        )

    def make(shape: Shape, layout: Layout | None) -> engine.Handle:
        reader = part
        if axes is not None:
            inverse = [axes.index(axis) for axis in range(len(axes))]

            def reader(box: Box) -> np.ndarray:
                return part(tuple(box[i] for i in inverse)).transpose(axes)

        return engine.from_reader(reader, shape, dtype, layout, text_of(made_of).encode() if made_of else b"")

    return permuted(make, shape, layout, axes)


def from_steps(
    start: float,
    step: float,
    given: Mapping[int, float],
    count: int,
    layout: Layout | None,
    made_of: tuple[object, ...],
) -> engine.Handle:
    """A sharded array of ``index * step + start`` in double precision, but for the values that are `given` by index.

    It is computed where it lies, a piece at a time that stays in the cache; no floating-point event is reported.
    """

    def fill(box: Box, block: np.ndarray) -> None:
        ((low, high),) = box
        index = np.arange(min(PIECE, high - low)).astype(block.dtype)
        with np.errstate(all="ignore"):
            for begin in range(low, high, PIECE):
                values = block[begin - low : begin - low + PIECE]
                np.add(index[: len(values)], begin, out=values)
                values *= step
                values += start
        for place, value in given.items():
            if low <= place < high:
                block[place - low] = value

    return engine.from_filler(fill, (count,), np.float64, layout, text_of(made_of).encode())
