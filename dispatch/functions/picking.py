"""Indexing by arrays of integers: `x[i]`, `x[i] = v`, `take`."""

from __future__ import annotations

from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from numpy_dist import engine
from numpy_dist.dispatch.core import registry
from numpy_dist.dispatch.core.registry import decline, implements
from numpy_dist.dispatch.functions.common import as_handle, blocks
from numpy_dist.layout.layout import Cut, Layout
from numpy_dist.parallel import picking


class _Picked:
    """An index with arrays of integers, taken apart.

    Attributes
    ----------
    view : handle
        The indexed array after the slices, its indexed axes first.
    shape : tuple of int
        That of `view` with its indexed axes merged into one.
    positions : ndarray or handle of intp
        Along this one: as many as are picked, as the index arrays broadcast.
    place : int
        At which axis of the result the axes of `positions` are.
    """

    def __init__(self, x: Any, key: tuple) -> None:
        items = _expanded(key, x.ndim)
        basic: list[Any] = []
        indexed: list[tuple[int, Any]] = []  # axis of the view, index
        steps: list[int] = []  # at which items
        axis = 0
        for step, item in enumerate(items):
            if item is None or isinstance(item, slice):
                basic.append(item)
            else:
                basic.append(slice(None))
                indexed.append((axis, item))
                steps.append(step)
            axis += 1
        view: Any = x._view(lambda array: array[(*basic, ...)])
        axes = [axis for axis, _ in indexed]
        together = all(q - p == 1 for p, q in pairwise(steps))
        self.place = axes[0] if together else 0
        extents = [view.shape[axis] for axis in axes]
        self.view: Any = view._view(lambda array: np.moveaxis(array, axes, range(len(axes))))
        self.positions = _combined([index for _, index in indexed], extents, axes_of(items, steps))
        self.shape = (prod(extents), *self.view.shape[len(axes) :])

    def in_place(self, result: Any) -> Any:
        """The result with its axes where NumPy has them."""
        count, place = self.positions.ndim, self.place
        if not place or not count:
            return result
        return result._view(lambda array: np.moveaxis(array, range(count), range(place, place + count)))


def axes_of(items: list[Any], steps: list[int]) -> list[int]:
    """The axes of the array that the items at these steps index."""
    return [sum(item is not None for item in items[:step]) for step in steps]


def _expanded(items: tuple, ndim: int) -> list[Any]:
    """The items of an index with slices in place of `...`; arrays of booleans are not for us."""
    consumed = sum(item is not None and item is not Ellipsis for item in items)
    found: list[Any] = []
    for item in items if Ellipsis in [i if i is Ellipsis else None for i in items] else (*items, Ellipsis):
        if item is Ellipsis:
            found += [slice(None)] * (ndim - consumed)
        elif item is None or isinstance(item, slice):
            found.append(item)
        else:
            index = item if engine.is_handle(item) else np.asarray(item)
            if index.dtype.kind not in "iu":
                decline("an index that mixes integers and booleans")
            found.append(index)
    return found


def _combined(indices: list[Any], extents: list[int], axes: list[int]) -> Any:
    """One position for each element of the broadcast index arrays (collective where any is sharded)."""
    shapes = [tuple(index.shape) for index in indices]
    try:
        shape = np.broadcast_shapes(*shapes)
    except ValueError:
        listed = " ".join(str(each).replace(" ", "") for each in shapes)
        raise IndexError(
            f"shape mismatch: indexing arrays could not be broadcast together with shapes {listed} "
        ) from None
    found: Any = None
    for index, n, axis in zip(indices, extents, axes, strict=True):
        _check_bounds(index, n, axis, shape)
        index = np.astype(index, np.intp)
        index = np.where(index < 0, index + n, index) if engine.is_handle(index) else index % max(n, 1)
        found = index if found is None else found * n + index
    return np.broadcast_to(found, shape)


def _check_bounds(index: Any, n: int, axis: int, shape: tuple[int, ...]) -> None:
    """NumPy's error for the first index that is out of bounds."""
    if 0 in shape:
        return
    outside = (index < -n) | (index >= n)
    if np.any(outside):
        first = int(np.ravel(index)[int(np.argmax(outside))])
        raise IndexError(f"index {first} is out of bounds for axis {axis} with size {n}")


def _rows(view: Any) -> tuple[Any, Layout, tuple[int, ...]]:
    """The view, cut along its first axis only, in ascending order; its layout, and where it is cut."""
    found = engine.layout_of(view) if engine.is_sharded(view) else None
    if found is None or found.mesh.ndim != 1 or not _cuts_rows(found):
        found = engine.default_layout(tuple(view.shape), split=0)
    cut = found.cut_of(0)
    assert cut is not None
    return engine.aligned(view, found), found, cut.points


def _cuts_rows(layout: Layout) -> bool:
    what = layout.dims[0]
    return isinstance(what, Cut) and what.axis == 0 and not what.descends


def _own_positions(positions: Any) -> tuple[np.ndarray, Layout]:
    """This rank's part of the positions, flat, and how they are divided."""
    flat = np.reshape(positions, -1)
    layout = engine.default_layout((flat.size,), split=0)
    if not engine.is_handle(flat):
        box = layout.box(engine.runtime().rank)
        return flat[slice(*box[0])] if box else flat[:0], layout
    return blocks((engine.aligned(flat, layout), layout))[0], layout


@registry.internal("integer_getitem")
def integer_getitem(x: Any, items: tuple) -> Any:
    """``x[items]`` for an index with arrays of integers (collective)."""
    picked = _Picked(x, items)
    wanted, order = _own_positions(picked.positions)
    rest = tuple(picked.shape[1:])
    if engine.is_sharded(picked.view):
        view, layout, points = _rows(np.reshape(picked.view, picked.shape))
        (block,) = blocks((view, layout))
        found = picking.pick(block.reshape(-1, *rest) if block.size else np.empty((0, *rest), x.dtype), points, wanted,
                             engine.runtime().comm)  # fmt: skip
    else:
        found = picked.view._array.reshape(picked.shape)[wanted]
    result = engine.from_local(found, order.insert_axes(range(1, 1 + len(rest)), rest))
    return picked.in_place(np.reshape(result, (*picked.positions.shape, *rest)))


@registry.internal("integer_setitem")
def integer_setitem(x: Any, items: tuple, value: Any) -> None:
    """``x[items] = value`` for an index with arrays of integers (collective); of duplicates the last one stays."""
    if not engine.is_sharded(x):
        decline("an assignment to an array that every rank has")
    picked = _Picked(x, items)
    rest = tuple(picked.shape[1:])
    count, place = picked.positions.ndim, picked.place
    lead = tuple(picked.positions.shape)
    shape = (*rest[:place], *lead, *rest[place:])
    value = value if engine.is_handle(value) else np.asanyarray(value)
    surplus = value.ndim - len(shape)
    if surplus > 0 and all(n == 1 for n in value.shape[:surplus]):
        value = np.reshape(value, value.shape[surplus:])
    if surplus > len(shape) or not _fits(tuple(value.shape), shape):
        shown = [str(tuple(s)).replace(" ", "") for s in (value.shape, shape)]
        raise ValueError(f"shape mismatch: value array of shape {shown[0]} could not be broadcast to indexing result "
                         f"of shape {shown[1]}")  # fmt: skip
    value = np.moveaxis(np.broadcast_to(value, shape), range(place, place + count), range(count)) if count else value
    flat = np.reshape(np.broadcast_to(value, (*lead, *rest)), (-1, *rest))
    wanted, order = _own_positions(picked.positions)
    by_rows = order.insert_axes(range(1, 1 + len(rest)), rest)
    if engine.is_handle(flat):
        (values,) = blocks((engine.aligned(flat, by_rows), by_rows))
    else:
        box = order.box(engine.runtime().rank)
        values = flat[slice(*box[0])] if box else flat[:0]
    layout = engine.default_layout(picked.shape, split=0)
    own, cut = layout.box(engine.runtime().rank), layout.cut_of(0)
    assert own is not None and cut is not None
    rows = np.empty([hi - lo for lo, hi in own], x.dtype)
    values = values.astype(x.dtype, casting="unsafe")
    new, chosen = picking.put(rows, cut.points, wanted, values, engine.runtime().comm)
    where = engine.from_local(chosen, layout.drop_axes(range(1, 1 + len(rest))))
    lead = tuple(picked.view.shape[: picked.view.ndim - len(rest)])
    engine.assign(
        picked.view,
        np.reshape(engine.from_local(new, layout), picked.view.shape),
        where=np.reshape(where, (*lead, *(1,) * len(rest))),
    )


def _fits(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
    return len(shape) <= len(target) and all(
        n in (1, m) for n, m in zip(reversed(shape), reversed(target), strict=False)
    )


@implements(np.take, kind="parallel")
def take(a: Any, indices: Any, axis: Any = None, out: Any = None, mode: Any = "raise") -> Any:
    """Collective: positions are sent to the owners of the elements, who send these back."""
    if out is not None:
        decline("take with `out`")
    a = as_handle(a)
    few = np.zeros(tuple(min(n, 1) for n in a.shape), a.dtype)
    np.take(
        few, np.zeros(0, indices.dtype if engine.is_handle(indices) else np.asarray(indices).dtype), axis, mode=mode
    )
    indices = indices if engine.is_handle(indices) else np.asarray(indices)
    if axis is None:
        a, axis = np.ravel(a), 0
    axis = normalize_axis_index(axis, a.ndim)
    n = a.shape[axis]
    if n == 0 and indices.size:
        raise IndexError("cannot do a non-empty take from an empty axes.")
    if mode == "wrap":
        indices = indices % n
    elif mode == "clip":
        indices = np.clip(indices, 0, n - 1)
    found = integer_getitem(a, (slice(None),) * axis + (indices,))
    if not found.ndim:
        return engine.item(found)
    return engine.copy(found, order="C") if axis and indices.ndim else found  # an index has another memory order
