"""Indexing of arrays at hand: elements and parts that are read, and written."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from numpy_dist.dispatch.core import policy
from numpy_dist.distarray.array import DistArray
from numpy_dist.distarray.at_hand.array import NUMBERS, AtHand, method_at_hand, view_at_hand
from numpy_dist.distarray.at_hand.elements import Given, NotAtHand, brought, elements, new_memory, real_of
from numpy_dist.distarray.exchanges import exchanged
from numpy_dist.distarray.indexing import BASIC, apart
from numpy_dist.distarray.operators import REALS
from numpy_dist.engine.data import walks, windows
from numpy_dist.engine.data.windows import FREE, KINDS, hand_over, near
from numpy_dist.engine.memory.handle import Handle
from numpy_dist.settings import config

_are_basic = BASIC.issuperset
_DOUBLE = np.dtype(float)
_INTEGER_TYPES = frozenset({int, np.int64, np.int32, np.intp})
_are_integers = _INTEGER_TYPES.issuperset
_ndarray = np.ndarray

_INDICES = frozenset("?bBhHiIlLqQ")
_INTEGERS = _INDICES - {"?"}


@method_at_hand
def __getitem__(self: AtHand, key: Any) -> Any:
    window = self._window
    if not window.readable:
        return DistArray.__getitem__(hand_over(self), key)
    if type(key) is tuple:
        if len(key) == 2:
            i, j = key
            basic = (type(i) is int or type(i) in BASIC) and (type(j) is int or type(j) in BASIC)
        else:
            basic = _are_basic(map(type, key))
    else:
        basic = type(key) in BASIC
    if basic:
        real = self._real
        part = real[key]
        if type(part) is not _ndarray:
            if windows.eager:
                windows.asked_for(real.nbytes)
            return part
        if window is FREE:
            window = windows.family(self)
            if window is None:
                return DistArray.__getitem__(hand_over(self), key)
        if part.nbytes == real.nbytes:
            return view_at_hand(self, part, window)
        made = AtHand()
        made._real, made._window = part, window
        return made
    found = selected(self, key)
    return DistArray.__getitem__(hand_over(self), key) if found is None else found


@method_at_hand
def __setitem__(self: AtHand, key: object, value: object) -> None:
    if type(key) is int and isinstance(value, DistArray) and "shuffle" in (frame := sys._getframe(1)).f_code.co_names:
        value = exchanged(self, key, value, frame)
    if not assign(self, key, value):
        DistArray.__setitem__(hand_over(self), key, value)


@method_at_hand
def fill(self: AtHand, value: object) -> None:
    """Set every element to a scalar."""
    if type(value) not in NUMBERS or not assign(self, Ellipsis, value):
        DistArray.fill(hand_over(self), value)


def key_of(key: object, dtypes: frozenset[str] = _INDICES) -> Any:
    """An index with ndarrays in place of arrays at hand; None where one is not, or it is no index of arrays."""
    items = key if type(key) is tuple else (key,)
    given: Given = []
    try:
        found = tuple([real_of(item, given) for item in items])
    except NotAtHand:
        return None
    if any(array.dtype.char not in dtypes for _, array in given):
        return None
    return found if type(key) is tuple else found[0]


def selected(x: Handle, key: object) -> object:
    """``x[key]`` for masks and arrays of integers; None where they are not at hand."""
    real, kind = x._real, type(key)
    if real.dtype.char not in KINDS:
        return None
    index = key._real if kind is AtHand and key._window.readable else key  # type: ignore[attr-defined]
    if type(index) is _ndarray and index.ndim and index.nbytes < windows.limit and index.dtype.char in _INDICES:
        part = real[index]
    else:
        found = key_of(key)
        if found is None:
            return None
        part = real[found]
        if type(part) is not _ndarray:
            return part
        if part.base is real or (part.base is not None and part.base is real.base):
            return None  # an index that selects a view after all
    if windows.eager:
        windows.asked_for(real.nbytes)
    if part.nbytes >= windows.limit:
        return None
    return near(part) if part.base is None else new_memory(part)


def assign(x: Handle, key: Any, value: Any) -> bool:
    """``x[key] = value`` of an array that is seen through a window; False if nothing was done: the engine has to."""
    window, given = x._window, type(value)
    if given is DistArray and window.walk is not None:
        value = brought(value, given, window)
        given = type(value)
    if not (window.writeable or (window.readable and windows.may_be_written(window))):
        return False
    real, kind = x._real, type(key)
    is_number = given in NUMBERS
    if is_number:
        if not (real.dtype is _DOUBLE and given in REALS) and not converts(given, real.dtype.char):
            return False
        if kind is tuple:
            is_element = len(key) == real.ndim and _are_integers(map(type, key))
        else:
            is_element = kind in _INTEGER_TYPES and real.ndim == 1
        if is_element:
            real[key] = value
            return True
    if kind is tuple:
        basic = (len(key) == 2 and type(key[0]) in BASIC and type(key[1]) in BASIC) or _are_basic(map(type, key))
    else:
        basic = kind in BASIC
    if not basic:  # a mask over a large array is left to the engine, which may fuse it
        key = key_of(key, _INDICES if type(x) is AtHand else _INTEGERS)
        if key is None or real.dtype.char not in KINDS:
            return False
    overlaps = False
    if not is_number:
        if given is AtHand and value._window.readable:
            overlaps = value._window is window
            value = value._real
        else:
            overlaps, value = True, elements(value, given)
        if value is None or (value.dtype is not real.dtype and not casts(value.dtype, real.dtype)):
            return False
    if basic:
        part = real[key]
        if type(part) is _ndarray:
            if part.nbytes >= windows.usual and not windows.permits(part.nbytes):
                return False
            part[...] = apart(value, part) if overlaps else value
            return True
        if type(value) is _ndarray:
            return False
    real[key] = value
    return True


def converts(kind: type, char: str) -> bool:
    """Whether a number becomes one of a dtype without a floating-point event, and with no error but NumPy's own."""
    if char == "d" or char == "D":
        return char == "D" or kind in REALS
    return _CHARS.get(kind) == char or (kind is int and char in "bBhHiIlLqQ")


_CHARS: dict[type, str] = {kind: np.dtype(kind).char for kind in NUMBERS - {int, float, complex}}
_CASTS: dict[tuple[np.dtype, np.dtype], bool] = {}


def casts(source: np.dtype, target: np.dtype) -> bool:
    """Whether every value of a dtype is one of the other."""
    key = source, target
    found = _CASTS.get(key)
    if found is None:
        if len(_CASTS) > 256:
            _CASTS.clear()
        found = _CASTS[key] = np.can_cast(source, target)
    return found


def _announce_copy(nbytes: int) -> bool:
    """Book that a walk over an array brings it to every rank; whether the user lets that be."""
    if config.FALLBACK == "error":
        return False
    policy.replicate("DistArray.__getitem__", "a loop works on small parts of it", nbytes, chosen=True)
    return True


walks.register_policy(_announce_copy)
