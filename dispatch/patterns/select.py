"""The select pattern: elements under a boolean mask (`x[mask]`, `x[mask] = v`).

Needs: array and mask in one layout, in which the ranks' selections follow one another (else both are cut along the
first axis). A rank selects from its block. One allgather of how many each has. The result is cut where these counts
meet; what is assigned to the mask's elements one by one is brought to that layout first.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from numpy_dist import engine
from numpy_dist.backends.library import compute
from numpy_dist.dispatch.core import registry
from numpy_dist.dispatch.core.registry import decline
from numpy_dist.dispatch.patterns.arguments import as_handle, decline_unshardable, moveaxis
from numpy_dist.dispatch.patterns.blocks import blocks, placed
from numpy_dist.dispatch.patterns.index_arrays import along_memory
from numpy_dist.ir import structure
from numpy_dist.layout.layout import Layout
from numpy_dist.layout.regions import box_shape
from numpy_dist.parallel import masks


class _Selection:
    """An index with one boolean mask, taken apart.

    Attributes
    ----------
    view : handle
        The indexed array after the basic indices beside the mask, the masked axes first.
    mask : handle or ndarray of bool
    depth : int
        How many axes the mask has.
    before : int
        At which axis of the result the selected elements are.
    alone : bool
        Whether the mask is the whole index and covers all axes (NumPy then treats assignment as a special case).
    """

    __slots__ = ("alone", "before", "depth", "mask", "view")

    def __init__(self, x: engine.Handle, key: object) -> None:
        decline_unshardable(x)
        items = list(key) if isinstance(key, tuple) else [key]
        place, self.mask = _find_mask(items)
        self.depth = self.mask.ndim
        for other, item in enumerate(items):
            if other != place and isinstance(item, np.ndarray):  # an integer
                items[other] = operator.index(item)
        basic = items[:place] + [slice(None)] * self.depth + items[place + 1 :]
        consumed = sum(item is not None and item is not Ellipsis for item in basic)
        if consumed > x.ndim:
            _index_error(x, items, place, self.mask)
        before_axes = 0
        self.before = 0
        for item in items[:place]:
            width = x.ndim - consumed if item is Ellipsis else 1
            self.before += width
            before_axes += 0 if item is None else width
        if tuple(self.mask.shape) != tuple(x.shape[before_axes : before_axes + self.depth]):
            _index_error(x, items, place, self.mask)
            decline("a mask of no elements over axes of other extents")
        self.alone = len(items) == 1 and self.depth == x.ndim
        if self.depth == 0:
            # One truth value takes all or nothing: a mask over a new axis of one element.
            x = x._view(np.expand_dims, before_axes)
            self.mask, self.depth = np.reshape(self.mask, 1), 1
            basic.insert(place, slice(None))
        index = (*basic, ...) if Ellipsis not in basic else tuple(basic)
        view = x._view(structure.index, index)
        masked = range(self.before, self.before + self.depth)
        self.view = view._view(np.moveaxis, tuple(masked), tuple(range(self.depth)))

    @property
    def rest(self) -> tuple[int, ...]:
        """Extents of the axes that are not masked."""
        return tuple(self.view.shape[self.depth :])

    def result_shape(self, count: int) -> tuple[int, ...]:
        """Shape of ``x[key]``."""
        return (*self.rest[: self.before], count, *self.rest[self.before :])


def _find_mask(items: Sequence[object]) -> tuple[int, Any]:
    """Position and value of the one mask among basic indices."""
    place, mask = -1, None
    for position, item in enumerate(items):
        if item is None or item is Ellipsis or isinstance(item, slice):
            continue
        if isinstance(item, list | bool | np.bool_):
            item = np.asarray(item)
        if isinstance(item, np.ndarray | engine.Handle) and getattr(item, "dtype", None) == np.bool_:
            if mask is not None:
                decline("an index with two masks")
            place, mask = position, item
            continue
        if engine.is_handle(item) or not _is_integer(item):
            decline("an index that is neither a mask over neighbouring axes nor basic")
        if mask is None or any(other is None or isinstance(other, slice) for other in items[:place]):
            decline("an integer index beside a mask that is not over the leading axes")
    if mask is None:
        decline("an index without a mask")
    return place, mask


def _is_integer(item: Any) -> bool:
    try:
        operator.index(item)
    except TypeError:
        return False
    return True


def _index_error(x: engine.Handle, items: Sequence[Any], place: int, mask: engine.Handle | np.ndarray) -> None:
    """NumPy's own complaint about a mask that does not fit."""
    items = [*items[:place], np.zeros(mask.shape, bool), *items[place + 1 :]]
    np.broadcast_to(np.zeros((), x.dtype), x.shape)[tuple(items)]


def _in_order(view: Any, mask: Any, depth: int) -> tuple[Any, engine.Handle, Layout]:
    """View and mask, as they are or cut along the first axis so that selections follow one another, and the layout."""
    layout = engine.layout_of(view) if engine.is_sharded(view) else None
    if layout is None or layout.is_replicated or not masks.selects_in_order(layout, depth):
        rest = tuple(view.shape[depth:])
        if depth > 1:
            view = np.reshape(view, (-1, *rest) if 0 not in rest else (int(np.prod(mask.shape)), *rest))
            mask, depth = np.reshape(mask, -1), 1
        layout = engine.runtime().default_layout(tuple(view.shape), split=0)
        view = engine.aligned(view, layout)
    return view, placed(mask, masks.mask_layout(layout, depth)), layout


@registry.internal("boolean_getitem")
def boolean_getitem(x: Any, key: object) -> Any:
    """``x[key]`` for a key with one boolean mask; a copy, cut where the ranks' selections meet (collective)."""
    mask = key[0] if type(key) is tuple and len(key) == 1 else key
    if engine.is_handle(mask) and mask.dtype == np.bool_ and (found := engine.masked(x, mask)) is not None:
        return found
    selection = _Selection(x, key)
    if not engine.is_sharded(x) and not engine.is_sharded(selection.mask):
        chosen = engine.wrap(engine.plain(selection.view)[engine.plain(selection.mask)])
    else:
        view, back = along_memory(selection.view, selection.depth)  # which NumPy's result follows
        view, mask, layout = _in_order(view, selection.mask, selection.depth)
        block, chosen = blocks((view, layout), (mask, masks.mask_layout(layout, mask.ndim)), library=True)
        block, result = masks.select(block, chosen, layout, engine.runtime().comm)
        with engine.Scratch() as scratch:
            chosen = engine.from_local(scratch.given(block), result, new=True)
        chosen = chosen if back is None else chosen.transpose([0, *(1 + axis for axis in back)])
    before = selection.before
    return chosen._view(np.moveaxis, 0, before) if before else chosen


@registry.internal("boolean_setitem")
def boolean_setitem(x: engine.Handle, key: object, value: Any) -> None:
    """``x[key] = value`` for a key with one boolean mask.

    Scalars, and values that are the same for all that the mask selects, are assigned without communication. One value
    for each selected element is brought to the rank that stores it (collective).
    """
    selection = _Selection(x, key)
    where = np.reshape(selection.mask, tuple(selection.mask.shape) + (1,) * len(selection.rest))
    if not engine.is_handle(value) and not isinstance(value, np.generic | int | float | complex):
        value = np.asarray(value)
    is_array = engine.is_handle(value) or isinstance(value, np.ndarray)
    told_of = is_array and (
        engine.is_real_part(value.dtype, x.dtype) or not np.can_cast(value.dtype, x.dtype, "unsafe")
    )
    if np.ndim(value) == 0:
        if not (told_of and _selects_nothing(selection)):
            engine.assign(selection.view, value, where=where)
        return
    if selection.alone and value.ndim > 1:
        raise TypeError(
            "NumPy boolean array indexing assignment requires a 0 or 1-dimensional input, "
            f"input has {value.ndim} dimensions"
        )
    lifted = _lifted(selection, value)
    if lifted is None or not _broadcasts(lifted.shape[1:], selection.rest):
        _assignment_error(selection, x.dtype, value)
    if lifted.shape[0] != 1:
        lifted = _brought(selection, x.dtype, value, lifted)
    else:
        lifted = np.reshape(lifted, (1,) * selection.depth + tuple(lifted.shape[1:]))
    if not (told_of and _selects_nothing(selection)):
        engine.assign(selection.view, lifted, where=where)


def _selects_nothing(selection: _Selection) -> bool:
    """Whether NumPy would find nothing to assign, and not warn or complain of a cast (collective)."""
    return selection.alone and not np.any(selection.mask)


def _lifted(selection: _Selection, value: Any) -> Any:
    """Values with an axis for each of the result's, that of the selected elements first; None if they have too many."""
    ndim, shape = len(selection.rest) + 1, tuple(value.shape)
    surplus = max(len(shape) - ndim, 0)
    if any(n != 1 for n in shape[:surplus]):
        return None
    full = np.reshape(value, (1,) * (ndim - len(shape)) + shape[surplus:])
    return moveaxis(full, selection.before, 0)


def _broadcasts(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
    return all(n in (1, m) for n, m in zip(shape, target, strict=True))


def _brought(
    selection: _Selection, dtype: np.dtype, value: engine.Handle | np.ndarray, lifted: engine.Handle | np.ndarray
) -> object:
    """One value for each selected element, brought to its rank and place: an array like the view (collective)."""
    view, mask, layout = _in_order(selection.view, selection.mask, selection.depth)
    (chosen,) = blocks((mask, masks.mask_layout(layout, mask.ndim)), library=True)
    counts = engine.runtime().comm.allgather(compute("count", lambda mask: int(np.count_nonzero(mask)), chosen))
    wanted = masks.selection_layout(layout, mask.ndim, counts)
    if lifted.shape[0] != wanted.shape[0]:
        _assignment_error(selection, dtype, value)
    aligned = engine.aligned(np.broadcast_to(as_handle(lifted), wanted.shape), wanted)
    (values,) = blocks((aligned, wanted), library=True)
    box = layout.box(engine.runtime().rank)
    block = masks.spread(values, chosen, () if box is None else box_shape(box))
    return np.reshape(engine.from_local(block, layout), selection.view.shape)


def _assignment_error(selection: _Selection, dtype: np.dtype, value: engine.Handle | np.ndarray) -> None:
    """NumPy's own complaint about values that do not fit what the mask selects (collective: it tells the count)."""
    count = int(np.count_nonzero(selection.mask))
    shape = selection.result_shape(count)
    if selection.alone:
        np.zeros(count, dtype)[np.ones(count, bool)] = np.zeros(value.shape, value.dtype)
    raise ValueError(
        f"shape mismatch: value array of shape {_shown(value.shape)} could not be broadcast to indexing result of "
        f"shape {_shown(shape)}"
    )


def _shown(shape: tuple[int, ...]) -> str:
    """A shape as NumPy writes it in this message."""
    return str(tuple(shape)).replace(" ", "")
