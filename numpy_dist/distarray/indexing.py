"""Indexing of DistArray: basic indices make views, arrays of indices and masks go to the registry."""

from __future__ import annotations

import operator
import sys
from collections.abc import Iterator
from contextlib import suppress
from math import prod
from types import EllipsisType, NoneType
from typing import Any, Self, SupportsIndex, overload

import numpy as np

from numpy_dist import engine
from numpy_dist.dispatch.core import fallback, policy, registry
from numpy_dist.dispatch.core.noting import Noted
from numpy_dist.distarray.exchanges import exchanged
from numpy_dist.distarray.operators import PLAIN, REALS, numpy_stand_in, wrap, wrap_of
from numpy_dist.engine.data import watch, windows
from numpy_dist.ir import structure

BASIC = frozenset({int, slice, NoneType, EllipsisType, np.int64, np.int32, np.intp})
"""Types of the items of basic indices."""
_are_basic = BASIC.issuperset
_are_integers = frozenset({int}).issuperset
_are_bounds = frozenset({int, NoneType}).issuperset
_LISTED = 64  # items of a list that is looked at for what it selects
_ndarray = np.ndarray
_DOUBLE = np.dtype(float)
_new = object.__new__
_BLOCK_BYTES = 1 << 16
_LOOP = 1000  # elements read one by one, after which a loop is told what it costs
# Saves look-ups for each index.
_selected, _assign_part = engine.selected, engine.assign_part
_agreed, _is_sharded, _plain = engine.agreed, engine.is_sharded, engine.plain
_WHY_GATHERED = "integer-array indexing is not distributed"


def is_basic(key: Any) -> bool:
    """Whether an index consists of integers, slices, None and ``...``."""
    kind = type(key)
    return kind in BASIC or (kind is tuple and _are_basic(map(type, key)))


def apart(value: np.ndarray, target: np.ndarray) -> np.ndarray:
    """What is assigned, copied where NumPy would write what it has yet to read: of other strides in the same memory."""
    if value.ndim == 1 == target.ndim and value.base is target.base is not None and value.strides != target.strides:
        return value.copy()
    return value


def _beside(value: np.ndarray, target: np.ndarray) -> np.ndarray:
    """What is assigned by a mask, copied if it may lie in the same memory: NumPy overwrites what it has yet to read."""
    return value.copy() if np.may_share_memory(value, target) else value


def _is_array(item: object) -> bool:
    return engine.is_handle(item) or isinstance(item, np.ndarray)


def _opens(x: engine.Handle, key: object) -> bool:
    """Whether the window of an array is opened for a basic index: of an element, which all ranks read, or of a part."""
    items = key if type(key) is tuple else (key,)
    read = len(items) == x._array.ndim and all(isinstance(item, int | np.integer) for item in items)
    return windows.can_open(x, used=read)


def _picks_few(key: object, shape: tuple[int, ...], itemsize: int) -> bool:
    """Whether an index has arrays or lists of integers, and selects few bytes of an array of this shape."""
    items = key if type(key) is tuple else (key,)
    if len(items) > len(shape):
        return False
    shapes: set[tuple[int, ...]] = set()  # of arrays of positions
    count = prod(shape[len(items) :])
    for item, length in zip(items, shape, strict=False):
        kind = type(item)
        if kind is slice:
            if not _are_bounds({type(item.start), type(item.stop), type(item.step)}) or item.step == 0:
                return False
            count *= len(range(*item.indices(length)))
        elif kind is list and item and len(item) <= _LISTED and _are_integers(map(type, item)):
            shapes.add((len(item),))
        elif _is_array(item) and item.dtype.kind in "iu":
            shapes.add(item.shape)
        elif kind not in BASIC or item is None or item is Ellipsis:
            return False
    return bool(shapes) and count * prod(map(prod, shapes)) * itemsize < windows.limit


def _picked(x: engine.Handle, key: object) -> object:
    """What such an index selects of a sharded array that is seen through its window; None elsewhere."""
    if type(key) is windows.class_at_hand and x._window.readable and x._real.ndim == 1:  # one value for each position
        return None if key._real.dtype.kind == "b" else windows.picked(x, key)
    if not windows.limit or not _picks_few(key, x._array.shape, x._array.itemsize):
        return None
    if not (x._window.readable or windows.can_open(x)):
        return None
    return windows.picked(x, key)


def _can_be_seen(x: engine.Handle, key: object) -> bool:
    """Whether what an index selects is looked at through the array's window, which is opened now."""
    if not windows.limit or not (is_basic(key) or _picks_few(key, x._array.shape, x._array.itemsize)):
        return False
    return windows.can_open(x)


def _is_mask(item: engine.Handle | np.ndarray) -> bool:
    return _is_array(item) and item.dtype.kind == "b"


def _normal(item: Any) -> object:
    """One item of an index: lists become arrays and whatever counts as an integer becomes one."""
    kind = type(item)
    if kind in BASIC:
        return item
    if isinstance(item, slice):
        return item
    if isinstance(item, (bool, np.bool_)):
        return np.asarray(item)
    if isinstance(item, (engine.Handle, np.ndarray)):
        return item
    if isinstance(item, (list, tuple)):
        array = np.asarray(item)
        return array.astype(np.intp) if array.size == 0 and array.dtype.kind == "f" else array
    if hasattr(kind, "__index__"):
        return operator.index(item)
    return np.asarray(item)


def _plain_index(kind: type, key: Any) -> Any:
    """An index by integers and masks that every rank has, as ndarrays; None for other indices.

    Parameters
    ----------
    kind : type
        The class of the array that is indexed.
    """
    given = type(key)
    if given is tuple:
        items = [item if type(item) in BASIC else _plain_index(kind, item) for item in key]
        return None if any(x is None and item is not None for x, item in zip(items, key, strict=True)) else tuple(items)
    if given is kind:
        key = None if _is_sharded(key) else _plain(key)
    elif given is not _ndarray:
        key = windows.elements_at_hand(key)
    return key if key is not None and key.dtype.kind in "biu" else None


def _fields(key: object) -> bool:
    return isinstance(key, str) or (isinstance(key, list) and bool(key) and all(isinstance(k, str) for k in key))


def _check_masks(shape: tuple[int, ...], items: tuple) -> None:
    """NumPy's error for masks that do not fit a shape, wherever no integers are looked up as well."""
    few = tuple(np.zeros(np.shape(item), bool) if _is_mask(item) else item for item in items)
    if all(_is_mask(item) or isinstance(item, slice | None) or item is Ellipsis for item in items):
        np.broadcast_to(np.zeros(()), shape)[few]


def _has_mask(items: tuple) -> bool:
    return any(type(item) not in BASIC and _is_mask(item) for item in items)


def _integers(items: tuple) -> tuple | None:
    """An index in which only 0-d integer arrays are not basic, with integers in their place; None for other indices."""
    if not all(type(item) in BASIC or (item.ndim == 0 and item.dtype.kind in "iu") for item in items):
        return None
    return tuple(item if type(item) in BASIC else operator.index(item) for item in items)


def _rules(what: str, items: tuple) -> tuple[str, ...]:
    """The implementations to be asked for an index with arrays: a single mask has a cheaper one of its own."""
    return (f"boolean_{what}", f"integer_{what}") if _has_mask(items) else (f"integer_{what}",)


def _has_ellipsis(key: object) -> bool:
    return any(item is Ellipsis for item in (key if type(key) is tuple else (key,)))


def _detached(record: np.void) -> np.void:
    """A record of a sharded array, which NumPy would return as a view: one that cannot be written to."""
    kept = np.array(record)
    kept.flags.writeable = False
    return kept[()]  # type: ignore[return-value]


def _converted(key: object, value: object, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """What is no array as one that can be assigned, or NumPy's error: it depends on what `key` selects.

    One element takes a sequence as such, be it as an object, a record or an error; an array takes its elements.
    """
    is_letters = dtype.char == "c" and isinstance(value, str | bytes)  # a sequence of characters, for this dtype
    if not shape or (isinstance(value, np.generic) and not is_letters):
        cell = np.empty(1, dtype)
        cell[(0, ...) if _has_ellipsis(key) else 0] = value
        return cell.reshape(())
    made = np.asarray(value, dtype)
    if made.ndim > len(shape):
        np.empty((1,) * len(shape), dtype)[...] = value  # NumPy's error for lists that are nested more deeply
    return made


def _as_element(value: Any, dtype: np.dtype) -> object:
    """An array that is assigned to an element: NumPy's error if it has axes; a derived one is asked for a number."""
    if value.ndim:
        np.empty(1, dtype)[0] = numpy_stand_in(value)  # or a warning, before 2.4
    elif isinstance(value, np.ndarray) and type(value) is not np.ndarray:
        return watch.watched(_converted, "cast", 0, value, (), dtype)
    return value


def _assign_begun(target: engine.Handle, value: object) -> None:
    """Assign those elements of a sequence that NumPy has assigned when one of them raises."""
    shown = [np.full(target.shape, fill, target.dtype) for fill in (0, 1)] if target.dtype.kind in "biufc" else []
    for stand in shown:
        with suppress(OverflowError, TypeError, ValueError):
            stand[...] = value
    if shown and (shown[0] == shown[1]).any():
        engine.assign(target, shown[0], shown[0] == shown[1])


def _is_converted(value: object, dtype: np.dtype) -> bool:
    """Whether NumPy makes elements of a value by ``int``, ``float`` or ``str``, which may raise, instead of casting."""
    if isinstance(value, np.generic):
        return value.dtype.kind not in "cV" and dtype.kind in "iSU"
    return not _is_array(value)


def _set_items(array: np.ndarray, key: Any, value: object) -> np.ndarray:
    """A copy of an array with some items set: `setitem` for integer arrays, as a function of gathered arrays."""
    changed = array.copy()
    changed[key] = value
    return changed


class Indexing(engine.Handle):
    """`x[...]`, `x[...] = ...`, iteration and `in`."""

    __slots__ = ()

    @overload
    def __getitem__(
        self, key: engine.Handle | np.ndarray | slice | EllipsisType | list[object] | str | None
    ) -> Self: ...
    @overload
    def __getitem__(self, key: SupportsIndex | tuple[SupportsIndex, ...]) -> Any: ...
    @overload
    def __getitem__(self, key: tuple[object, ...]) -> Self: ...
    def __getitem__(self, key: Any) -> Any:
        made: Any
        if self._storage is None:
            kind = type(key)
            if kind in BASIC or (kind is tuple and _are_basic(map(type, key))):
                part = self._array[key]
                if type(part) is not _ndarray:
                    return _agreed(part) if isinstance(part, np.generic) else wrap_of(self, part)
                made = _new(type(self))
                made._array, made._storage = part, None
                made._owner = self if self._array.base is None else getattr(self, "_owner", self)
                return made
            return self._part(key)
        window = self._window
        if not window.readable:
            made = _selected(self, key, True)
            if made is not None and made._array.nbytes >= windows.limit:
                return made
            return self._sharded_part(key, made)
        if type(key) is tuple:
            if len(key) == 2:
                i, j = key
                basic = (type(i) is int or type(i) in BASIC) and (type(j) is int or type(j) in BASIC)
            else:
                basic = _are_basic(map(type, key))
        else:
            basic = type(key) in BASIC
        if not basic:
            made = _picked(self, key)
            return self._sharded_part(key, _selected(self, key, True)) if made is None else made
        part = self._real[key]
        if window.walk is not None:
            window.walk.looked(key)
        if type(part) is not _ndarray:
            if windows.eager:
                windows.asked_for(self._real.nbytes)
            return part
        nbytes = part.nbytes
        if nbytes < windows.limit and (nbytes < window.least or nbytes != self._real.nbytes):
            near = windows.class_at_hand()
            near._real, near._window = part, window
            return near
        return self._sharded_part(key, _selected(self, key, True))

    def _sharded_part(self, key: Any, made: Any) -> Any:
        """`x[key]` of a sharded array that is not seen through its window, or not for this index.

        `made` is what a table has for the index (`handle.selected`), or None.
        """
        if made is not None:
            if made._array.nbytes < windows.limit and windows.can_open(self, used=False):
                return self[key] if made._array.nbytes != self._array.nbytes else made
            return made
        basic = is_basic(key)
        if windows.limit and not self._window.readable and basic and _opens(self, key):
            return self[key]
        if not self._window.readable and (made := _picked(self, key)) is not None:
            return made
        if basic:
            return self._owned(self._view(structure.index, key)) if type(key) is slice else self._basic_view(key)
        return self._part(key)

    def _part(self, key: object) -> Any:
        """`x[key]` for fields, arrays of indices, and what counts as integers."""
        if self._storage is None and (index := _plain_index(type(self), key)) is not None:
            return wrap(type(self), self._array[index])
        if _fields(key):
            return self._view(structure.fields, key)
        items = tuple(_normal(item) for item in (key if isinstance(key, tuple) else (key,)))
        self._check_index(items, key)
        if self._storage is None and not any(engine.is_sharded(item) for item in items):
            return wrap(type(self), self._array[tuple(map(engine.plain, items))])
        if _are_basic(map(type, items)):  # what was given counts as integers, and is no array
            return self._basic_view(items)
        return self._sharded_items(items)

    def __setitem__(self, key: Any, value: object) -> None:
        if type(value) in REALS:  # most often to an element
            if type(key) is tuple:
                axes = 2 if len(key) == 2 and type(key[0]) is int is type(key[1]) else 0
            else:
                axes = 1 if type(key) is int else 0
            if axes:
                if self._storage is None:
                    self._array[key] = value
                    return
                if self._window.writeable:
                    real = self._real
                    if real.dtype is _DOUBLE and real.ndim == axes:  # which takes any of these as it is
                        real[key] = value
                        return
        elif type(key) is int and isinstance(value, (engine.Handle, np.void)):
            if "shuffle" in (frame := sys._getframe(1)).f_code.co_names:
                value = exchanged(self, key, value, frame)
        try:
            if self._storage is not None:
                if self._window.readable and windows.assign(self, key, value):
                    return
                ref = _selected(self, key)
                if ref is not None:
                    if ref.array.nbytes < windows.limit and windows.can_open(self) and windows.assign(self, key, value):
                        return
                    if _assign_part(ref, value):
                        return
                elif _can_be_seen(self, key) and windows.assign(self, key, value):
                    return
            kind = type(key)
            basic = kind in BASIC or (kind is tuple and _are_basic(map(type, key)))
            if not (self._storage is None and self._set_replicated(key, value, basic)):
                self._set(key, value, basic)
        except (IndexError, OverflowError, TypeError, ValueError):
            if not engine.may_write(self._array):  # which NumPy says before it looks at the index
                raise ValueError("assignment destination is read-only") from None
            raise

    def _set_replicated(self, key: Any, value: Any, basic: bool) -> bool:
        """Assign to a part of a replicated array what is no sharded array; whether that was done."""
        array, kind = self._array, type(value)
        if not basic and (key := _plain_index(type(self), key)) is None:
            return False
        if kind in PLAIN:
            array[key] = value if basic or kind is not _ndarray else _beside(value, array)
            return True
        if kind is type(self) and value._storage is None:
            value = value._array
        else:
            seen = windows.elements_at_hand(value)
            if seen is not None and seen.dtype is array.dtype:
                array[key] = seen if basic else _beside(seen, array)
                return True
            if _is_sharded(value):
                return False
            value = _plain(value)
        if type(value) is _ndarray:
            if not basic:
                value = _beside(value, array)
            elif value.ndim == 1 and value.base is (array if array.base is None else array.base):
                part = array[key]
                if type(part) is _ndarray:
                    part[...] = apart(value, part)
                    return True
        array[key] = value
        return True

    def _set(self, key: Any, value: object, basic: bool) -> None:
        if basic:
            target = self._writable_view(key)
        elif _fields(key):
            target = self[key]
        else:
            items = tuple(_normal(item) for item in (key if isinstance(key, tuple) else (key,)))
            self._check_index(items, key)
            if not all(type(item) in BASIC or isinstance(item, slice) for item in items):
                self._set_advanced(items, value)
                return
            target = self._writable_view(items)
        if target._storage is None and not engine.is_sharded(value):
            self._array[key] = engine.plain(value)
            return
        dtype = target._array.dtype
        if _is_converted(value, dtype):
            try:
                value = watch.watched(_converted, "cast", key, value, target._array.shape, dtype)
            except (OverflowError, TypeError, ValueError):
                if isinstance(value, list | tuple):
                    _assign_begun(target, value)
                raise
        elif not target._array.ndim and not _has_ellipsis(key):
            value = _as_element(value, dtype)
        engine.assign(target, value)

    def _writable_view(self, key: object) -> Self:
        """What a basic index selects, as an array also where it is one element."""
        if self._storage is None:
            return wrap_of(self, structure.index(self._array, key))
        return self._owned(self._view(structure.index, key))

    def _check_index(self, items: tuple, key: object) -> None:
        """NumPy's error for items that are no indices: floats, strings, objects."""
        if any(_is_array(item) and item.dtype.kind not in "iub" for item in items):
            given = key if isinstance(key, tuple) else (key,)
            plain = tuple(numpy_stand_in(item) if isinstance(item, engine.Handle) else item for item in given)
            numpy_stand_in(self)[plain if isinstance(key, tuple) else plain[0]]

    def _basic_view(self, key: object) -> object:
        """A sharded array under a basic index: a view, or a scalar where every axis is indexed by an integer."""
        made = self._writable_view(key)
        # NumPy reads an element where the index has no `...`; meta arrays must not be read.
        if made._array.ndim or (Ellipsis in key if type(key) is tuple else key is Ellipsis):
            return made
        value, reads = engine.element(made)
        if reads == _LOOP:
            policy.warn_of_loop(reads)
        return value if type(value) is not np.void else _detached(value)

    def _sharded_items(self, items: tuple) -> object:
        """Advanced indexing where the array or an index is sharded."""
        reason = _WHY_GATHERED
        basic = _integers(items)
        if basic is not None:
            # 0-d integer arrays count as integers, but what NumPy returns is a copy.
            result = self._basic_view(basic)
            return engine.copy(result) if isinstance(result, engine.Handle) else result
        for name in _rules("getitem", items):
            try:
                with Noted((self, items), {}):
                    return registry.internal_function(name)(self, items)
            except (registry.Declined, engine.Unrecordable) as declined:
                reason = declined.reason
        return fallback.call(operator.getitem, (self, items), {}, reason)

    def _set_advanced(self, items: tuple, value: Any) -> None:
        if not engine.may_write(self._array):
            raise ValueError("assignment destination is read-only")
        if self._storage is None and not any(engine.is_sharded(item) for item in (*items, value)):
            engine.assign(self, _set_items(self._array, tuple(map(engine.plain, items)), engine.plain(value)))
            return
        reason = _WHY_GATHERED
        basic = _integers(items)
        if basic is not None:
            self[basic] = value
            return
        if _has_mask(items) and _is_converted(value, self._array.dtype):
            try:
                value = watch.watched(np.asarray, "cast", value, self._array.dtype)
            except (OverflowError, TypeError, ValueError):
                _check_masks(tuple(self._array.shape), items)  # whose errors come first
                raise
        elif _is_array(value) and not engine.shardable(value.dtype):  # which all ranks have
            value = engine.plain(value).astype(self._array.dtype)
        for name in _rules("setitem", items):
            try:
                with Noted((self, items, value), {}, (self,)):
                    registry.internal_function(name)(self, items, value)
                return
            except (registry.Declined, engine.Unrecordable) as declined:
                reason = declined.reason
        engine.assign(self, fallback.call(_set_items, (self, items, value), {}, reason))

    def __delitem__(self, key: object) -> None:
        raise ValueError("cannot delete array elements")

    def __len__(self) -> int:
        return len(self._array)

    def __iter__(self) -> Iterator[Any]:
        if self._array.ndim == 0:
            return iter(np.empty(()))  # NumPy's error
        if self._storage is not None and self._array.ndim == 1:
            return self._scalars()
        return (self[i] for i in range(len(self._array)))

    def _scalars(self) -> Iterator[object]:
        """The elements of a sharded 1-D array, fetched in blocks: anew if the array was written since."""
        values: Any
        storage: Any = self._storage
        length = self._array.shape[0]
        block = max(1, _BLOCK_BYTES // max(1, self._array.itemsize))
        start, values, written = 0, [], None
        for i in range(length):
            if i == _LOOP:
                policy.warn_of_loop(i)
            if i - start >= len(values) or storage.version != written:
                start, stop = i, min(i + block, length)
                values = engine.gather(self._block(start, stop))
                values.flags.writeable = False  # for records, see `_detached`
                written = windows.version_kept(storage)
            yield values[i - start]

    def _block(self, start: int, stop: int) -> Self:
        return self._view(structure.index, slice(start, stop))

    def __contains__(self, value: object) -> bool:
        if self._storage is None and not isinstance(value, engine.Handle):
            return value in self._array
        return bool(np.any(self == value))
