"""An index with arrays (advanced indexing), taken apart: positions along the indexed axes, which go to their owners."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from math import prod
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from numpy_dist import engine
from numpy_dist.backends.library import compute
from numpy_dist.dispatch.patterns.arguments import astype, decline_unshardable, metadata, moveaxis
from numpy_dist.dispatch.patterns.blocks import blocks, exact_layout, row_layout
from numpy_dist.ir import structure
from numpy_dist.ir.meta_arrays import as_strided
from numpy_dist.ir.rules import broadcast_shapes, memory_axes
from numpy_dist.layout.layout import Layout
from numpy_dist.parallel import picking

if TYPE_CHECKING:
    from numpy_dist.backends.library import Array
    from numpy_dist.dispatch.patterns.structural import H

    Item: TypeAlias = "engine.Handle | np.ndarray | slice | _Truth | None"


class Picked:
    """What an index with arrays of integers or booleans picks; making one is collective where an index is sharded.

    Parameters
    ----------
    x : handle
    key : tuple
        Slices, None, `...`, integers and arrays (handles, ndarrays or lists).
    use : str
        ``"get"``, ``"set"`` or ``"take"``: which of several indices out of bounds the error names.
    admit : callable, optional
        It gets the shape of what is picked, and `rest`, and may raise, before indices are looked at.

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

    view: Any
    shape: tuple[int, ...]
    positions: Any
    place: int
    _order: list[int] | None

    def __init__(
        self, x: Any, key: tuple, use: str, admit: Callable[[tuple[int, ...], tuple[int, ...]], object] | None = None
    ) -> None:
        decline_unshardable(x)
        items = _expanded(key, x)
        basic: list[slice | None] = []
        indexed: list[tuple[int, engine.Handle | np.ndarray]] = []  # axis of the view, index
        steps: list[int] = []  # at which items
        for axis, (step, item) in enumerate(items):
            if item is None or isinstance(item, slice):
                basic.append(item)
            else:
                basic.append(None if isinstance(item, _Truth) else slice(None))
                indexed.append((axis, item.index if isinstance(item, _Truth) else item))
                steps.append(step)
        view = x._view(structure.index, tuple(basic))
        axes = [axis for axis, _ in indexed]
        together = all(q - p <= 1 for p, q in pairwise(steps))
        self.place = axes[0] if together and axes else 0
        extents = [view.shape[axis] for axis in axes]
        self.view = view._view(np.moveaxis, axes, range(len(axes)))
        found, alone, keeps_order = [index for _, index in indexed], use, use == "get"
        if keeps_order and sum(index.ndim > 0 for index in found) == 1:
            alone = "get one" if prod(self.view.shape[len(axes) :]) == 1 else "take"
        named = _axes_of(items, axes)
        for index, n, axis in zip(found, extents, named, strict=True):
            if not index.ndim:  # NumPy looks at single integers first
                check_bounds(index, n, axis, ())
        lead, rest = _shape_together(found), tuple(self.view.shape[len(axes) :])
        if admit is not None:
            admit((*rest[: self.place], *lead, *rest[self.place :]), rest)
        self.positions = _combined(found, lead, extents, named, alone)
        self._order = self._along_memory(found) if keeps_order else None
        self.shape = (prod(extents), *self.view.shape[len(axes) :])

    def _along_memory(self, indices: Sequence[object]) -> list[int] | None:
        """Bring the axes of `positions`, or those that are not indexed, into the memory order of NumPy's result.

        That is the order of the index arrays where each picks one element, else that of the other axes. Returned is
        how the axes of a result must then be transposed.
        """
        count, first = self.positions.ndim, len(indices)
        rest = self.view.shape[first:]
        if prod(rest) == 1:
            order = memory_axes([metadata(index) for index in indices], tuple(self.positions.shape))
            if order is not None:
                self.positions = self.positions.transpose(order)
            return None if order is None else [*map(order.index, range(count)), *range(count, count + len(rest))]
        self.view, back = along_memory(self.view, first)
        return None if back is None else [*range(count), *(count + axis for axis in back)]

    @classmethod
    def flat(cls, x: engine.Handle, positions: object) -> Picked:
        """Elements of a whole array by their positions in C order, which must be within bounds."""
        made = object.__new__(cls)
        made.view, made.shape, made.positions, made.place, made._order = x, (x.size,), positions, 0, None
        return made

    @property
    def rest(self) -> tuple[int, ...]:
        """Extents of the axes that are not indexed by arrays."""
        return tuple(self.shape[1:])

    @property
    def result_shape(self) -> tuple[int, ...]:
        """The shape of what is picked."""
        return (*self.rest[: self.place], *self.positions.shape, *self.rest[self.place :])

    def in_place(self, result: Any) -> engine.Handle:
        """A result whose first axes are those of `positions`, with its axes where NumPy has them.

        It is a view where NumPy's is: where axes are moved, but not for its memory order.
        """
        count, place = self.positions.ndim, self.place
        result = engine.as_made(result if self._order is None else result.transpose(self._order))
        if not place or not count:
            return result
        return result._owned(result._view(np.moveaxis, range(count), range(place, place + count)))


def along_memory(view: H, first: int) -> tuple[H, list[int] | None]:
    """A view whose axes from `first` on are from outermost to innermost in memory, and how to transpose these back."""
    array = view._array
    rest = array.shape[first:]
    order = memory_axes([structure.view(array, as_strided, rest, array.strides[first:])], rest)
    if order is None:
        return view, None
    return view.transpose([*range(first), *(first + axis for axis in order)]), [*map(order.index, range(len(rest)))]


class _Truth:
    """A truth value among the items of an index: it picks all or nothing of a new axis of one element."""

    def __init__(self, truth: object) -> None:
        self.index = np.zeros(int(bool(truth)), np.intp)


def _expanded(items: tuple, x: engine.Handle) -> list[tuple[int, Item]]:
    """The items with slices in place of `...`, and arrays of integers in place of masks; each with its number."""
    arrays: list[Any] = [i if i is None or i is Ellipsis or isinstance(i, slice) else _as_index(i) for i in items]
    consumed = sum(_width(item) for item in arrays)
    if not any(item is Ellipsis for item in arrays):
        arrays.append(Ellipsis)
    found: list[tuple[int, Item]] = []
    axis = 0
    for number, item in enumerate(arrays):
        width = x.ndim - consumed if item is Ellipsis else _width(item)
        if item is Ellipsis:
            found += [(number, slice(None))] * width
        elif getattr(item, "dtype", None) != np.bool_:
            found.append((number, item))
        elif item.ndim == 0:
            found.append((number, _Truth(item)))
        else:
            _check_mask(item, x, axis)
            found += [(number, each) for each in np.nonzero(item)]
        axis += width
    return found


def _as_index(item: object) -> engine.Handle | np.ndarray:
    return item if engine.is_handle(item) else np.asarray(item)


def _width(item: Any) -> int:
    """How many axes of the array an item takes."""
    if item is None or item is Ellipsis:
        return 0
    return item.ndim if getattr(item, "dtype", None) == np.bool_ else 1


def _check_mask(mask: engine.Handle | np.ndarray, x: engine.Handle | np.ndarray, axis: int) -> None:
    """NumPy's error for a mask of other extents than the axes that it masks."""
    for n, m in zip(x.shape[axis:], mask.shape, strict=False):
        if n != m and m:  # NumPy does not look where the mask has nothing
            raise IndexError(
                f"boolean index did not match indexed array along axis {axis}; size of axis is {n} but size of "
                f"corresponding boolean axis is {m}"
            )
        axis += 1


def _axes_of(items: Sequence[tuple[int, object]], steps: list[int]) -> list[int]:
    """The axes of the array that the items at these places index."""
    return [sum(item is not None and not isinstance(item, _Truth) for _, item in items[:step]) for step in steps]


def _shape_together(indices: Sequence[engine.Handle | np.ndarray]) -> tuple[int, ...]:
    """The shape to which index arrays broadcast, or NumPy's error."""
    shapes = [tuple(index.shape) for index in indices]
    try:
        return broadcast_shapes(*shapes)
    except ValueError as error:
        if "too large" in str(error):  # they fit together
            raise ValueError("iterator is too large") from None
        listed = " ".join(str(each).replace(" ", "") for each in shapes if each)  # NumPy leaves integers out
        raise IndexError(
            f"shape mismatch: indexing arrays could not be broadcast together with shapes {listed} "
        ) from None


def _combined(
    indices: Sequence[engine.Handle | np.ndarray], shape: tuple[int, ...], extents: list[int], axes: list[int], use: str
) -> object:
    """One position for each element of index arrays as they broadcast to `shape` (collective where any is sharded)."""
    found: Any = np.zeros((), np.intp) if not indices else None
    for index, n, axis in zip(indices, extents, axes, strict=True):
        index = _from_zero(index, n, axis, shape, use)
        found = index if found is None else found * n + index
    return np.broadcast_to(found, shape)


def _from_zero(index: Any, n: int, axis: int, shape: tuple[int, ...], use: str) -> Any:
    """An index as positions of the axis, or NumPy's error (collective for a sharded one)."""
    if not engine.is_sharded(index) or 0 in shape:
        if index.ndim:
            check_bounds(index, n, axis, shape, use)
        index = astype(index, np.intp)
        ours = engine.is_handle(index)
        return np.where(index < 0, index + n, index) if ours else index % max(n, 1)
    layout = exact_layout(index)
    (block,) = blocks((engine.aligned(index, layout), layout), library=True)
    positions, changed = compute("from_zero", lambda block: picking.from_zero(block, n), block, n=n)
    told = engine.runtime().comm.allgather((positions is None, changed))
    if positions is None or any(outside for outside, _ in told):
        check_bounds(index, n, axis, shape, use)
    assert positions is not None
    return engine.from_local(positions, layout) if any(other for _, other in told) else index


def first_outside(index: Any, n: int) -> int | None:
    """The place, in C order, of the first index that is out of bounds (collective for a sharded one)."""
    outside = (index < -n) | (index >= n)
    return int(np.argmax(outside)) if np.any(outside) else None


def check_bounds(
    index: engine.Handle | np.ndarray, n: int, axis: int, shape: tuple[int, ...], use: str = "get"
) -> None:
    """NumPy's error for the index out of bounds that it meets first (see `Picked` for `use`)."""
    if 0 in shape:
        return
    place = first_outside(index, n)
    if place is not None:
        index = _as_numpy_goes(index, use)
        place = first_outside(index, n)
        assert place is not None
        raise IndexError(f"index {int(np.ravel(index)[place])} is out of bounds for axis {axis} with size {n}")


def _as_numpy_goes(index: engine.Handle | np.ndarray, use: str) -> engine.Handle | np.ndarray:
    """The view of an index whose C order is that in which NumPy looks at its elements.

    Where it takes rows by one index, that is C order. Where it gets elements by one, it goes along memory, but from the
    first element of each axis. Else it goes along ascending memory, but where it need not convert the index, and this
    has one axis or is contiguous.
    """
    if use == "take":
        return index
    array = metadata(index)
    order = memory_axes([array], array.shape) or tuple(range(array.ndim))
    native = array.dtype.kind == "i" and array.dtype.itemsize == np.dtype(np.intp).itemsize and array.dtype.isnative
    as_it_is = use == "get one" or (native and (array.ndim <= 1 or array.flags.forc))
    descends = [not as_it_is and array.shape[axis] > 1 and array.strides[axis] < 0 for axis in order]
    return index.transpose(order)[tuple(slice(None, None, -1 if turn else 1) for turn in descends)]


def rows(view: engine.Handle | np.ndarray, library: bool = False) -> tuple[np.ndarray | Array, Layout, tuple[int, ...]]:
    """This rank's rows of a view that is cut along its first axis only, ascending; the layout, and where it is cut.

    For a `library` where they lie, on the host or not.
    """
    layout = row_layout(view)
    cut = layout.cut_of(0)
    assert cut is not None
    (block,) = blocks((engine.aligned(view, layout), layout), library=library)
    rest = view.shape[1:]
    if library:
        return block, layout, cut.points
    return (block.reshape(-1, *rest) if block.size else np.empty((len(block), *rest), view.dtype)), layout, cut.points


def own_positions(
    positions: engine.Handle | np.ndarray, among: int = 0, library: bool = False
) -> tuple[np.ndarray | Array, Layout]:
    """This rank's part of the positions, flat, and how they are divided; for a `library` where they lie.

    They are positions `among` so many elements or rows, as plans are told, where nothing is computed.
    """
    count, runtime = int(positions.size), engine.runtime()
    layout = engine.default_layout((count,), split=0)
    if engine.is_handle(positions):
        (block,) = blocks((engine.aligned(np.reshape(positions, -1), layout), layout), library=library)
        if runtime.recorder is not None and not runtime.computes:
            block = runtime.recorder.positions(positions, block, among)
        return block, layout
    return _part_of_rows(positions, layout, positions.ndim), layout


def own_values(value: ArrayLike, picked: Picked, order: Layout, library: bool = False) -> np.ndarray | Array:
    """This rank's part of what is assigned to what is picked, one row for each of its positions.

    Parameters
    ----------
    value : handle or ndarray
        It broadcasts to `picked.result_shape`.
    order : Layout
        How the positions are divided.
    library : bool
        Whether they are wanted where they lie.
    """
    lead, rest = tuple(picked.positions.shape), picked.rest
    count, place = len(lead), picked.place
    value = np.broadcast_to(value, picked.result_shape)
    if count and place:
        value = moveaxis(value, range(place, place + count), range(count))
    if not engine.is_handle(value):
        return _part_of_rows(value, order, count)
    by_rows = order.insert_axes(range(1, 1 + len(rest)), rest)
    return blocks((engine.aligned(np.reshape(value, by_rows.shape), by_rows), by_rows), library=library)[0]


def _part_of_rows(array: np.ndarray, order: Layout, count: int) -> np.ndarray:
    """This rank's rows of an ndarray that every rank has, whose first `count` axes number the rows."""
    box = order.box(engine.runtime().rank)
    low, high = box[0] if box else (0, 0)
    if count == 1:
        return array[low:high]
    if count == 0:
        return array[None][low:high]
    return array[np.unravel_index(np.arange(low, high), array.shape[:count])]
