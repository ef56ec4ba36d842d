"""Operators of arrays at hand: NumPy's own, at once."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from numpy_dist.argument_types import Function
from numpy_dist.dispatch.core import registry
from numpy_dist.distarray.array import DistArray
from numpy_dist.distarray.at_hand.array import NUMBERS, AtHand
from numpy_dist.distarray.at_hand.elements import brought, elements, is_small
from numpy_dist.distarray.at_hand.products import MATMUL_NAMES
from numpy_dist.distarray.at_hand.strides import beside, depends_on_target, prepared_for
from numpy_dist.distarray.operators import OPERATORS, event_name
from numpy_dist.engine.data import short_rows, watch, windows
from numpy_dist.engine.data.watch import capsule as _capsule
from numpy_dist.engine.data.windows import FREE, hand_over, near
from numpy_dist.ir.ops import STRIDE_SENSITIVE

if TYPE_CHECKING:
    from numpy_dist.dispatch.core.keys import Key

_DOUBLE = np.dtype(float)
_ndarray = np.ndarray
_rules = registry.TABLE
_PLAIN = frozenset((np.add, np.subtract, np.multiply, np.true_divide))
"""Ufuncs that NumPy's operators call as they are, which takes longer than to call them."""


def _left_to_engine(name: str) -> Function:
    """The method of the array that was handed over."""
    return getattr(DistArray, name)


def _binary(
    name: str, operation: Function, ufunc: np.ufunc, reflected: bool = False
) -> Callable[[AtHand, object], object]:
    prepared = prepared_for(ufunc)
    always = ufunc.__name__ in STRIDE_SENSITIVE
    by_rows = ufunc in _PLAIN
    if by_rows:
        operation = ufunc

    def method(self: AtHand, other: Any) -> object:
        if not self._window.readable:
            return _left_to_engine(name)(hand_over(self), other)
        mine, kind = self._real, type(other)
        theirs: Any
        if kind is not AtHand and kind in NUMBERS:
            if windows.eager and not windows.permits(mine.nbytes, name):
                return _left_to_engine(name)(hand_over(self), other)
            theirs = other
        else:
            theirs = other._real if kind is AtHand and other._window.readable else elements(other, kind)
            if theirs is None or not (mine.ndim == 1 == theirs.ndim or is_small(mine, theirs)):
                return _left_to_engine(name)(hand_over(self), other)
            if prepared is not None and (always or theirs.dtype is not _DOUBLE):
                theirs = prepared(theirs)
        if prepared is not None and (always or mine.dtype is not _DOUBLE):
            mine = prepared(mine)
        state = _capsule()
        known = watch.latest
        if known[0] is not state:
            known = watch.look(state)
        if reflected:
            mine, theirs = theirs, mine
        if by_rows and type(theirs) is type(mine) and not mine.ndim == 1 == theirs.ndim:
            found = short_rows.computed(ufunc, mine, theirs)
            if found is not None:
                return near(found)
        try:
            result = known[2](operation, mine, theirs)
        except BaseException as error:
            if not watch.is_busy(error):
                raise
            result = watch.exchanged(operation, mine, theirs)
        if watch.met:
            watch.tell(event_name(ufunc, mine, theirs))
        if type(result) is _ndarray:
            made = AtHand()
            made._real, made._window = result, FREE
            return made
        return tuple(map(near, result)) if type(result) is tuple and type(result[0]) is _ndarray else result

    method.__name__ = method.__qualname__ = name
    return method


def _power(power: Callable[[AtHand, object], object]) -> Function:
    """``**`` as `pow` calls it, which may give a third argument."""

    def method(self: AtHand, other: Any, modulo: object = None) -> object:
        return power(self, other) if modulo is None else DistArray.__pow__(hand_over(self), other, modulo)

    method.__name__ = method.__qualname__ = "__pow__"
    return method


def _in_place(name: str, operation: Function, ufunc: np.ufunc) -> Callable[[AtHand, object], object]:
    prepared = prepared_for(ufunc)
    always = ufunc.__name__ in STRIDE_SENSITIVE

    def method(self: AtHand, other: Any) -> object:
        window = self._window
        mine, kind = self._real, type(other)
        if kind is DistArray and window.walk is not None:
            other = brought(other, kind, window)
            kind = type(other)
        if kind is AtHand and other._window.readable:
            theirs = other._real
        else:
            theirs = other if kind in NUMBERS else elements(other, kind)
        if theirs is None or not (window.writeable or (window.readable and windows.may_be_written(window))):
            return _left_to_engine(name)(hand_over(self), other)
        if prepared is not None and (always or mine.dtype is not _DOUBLE):
            if depends_on_target(always, mine):
                return _left_to_engine(name)(hand_over(self), other)
            if type(theirs) is _ndarray:
                theirs = beside(prepared(theirs), mine)
        state = _capsule()
        known = watch.latest
        if known[0] is not state:
            known = watch.look(state)
        try:
            known[2](operation, mine, theirs)
        except BaseException as error:
            if not watch.is_busy(error):
                raise
            watch.exchanged(operation, mine, theirs)
        if watch.met:
            watch.tell(event_name(ufunc, mine, theirs, in_place=True))
        return self

    method.__name__ = method.__qualname__ = name
    return method


def _unary(name: str, operation: Function, ufunc: np.ufunc) -> Callable[[AtHand], object]:
    told, prepared = ufunc.__name__, prepared_for(ufunc)

    def method(self: AtHand) -> object:
        if not self._window.readable:
            return _left_to_engine(name)(hand_over(self))
        mine = self._real
        result = watch.applied(operation, told, (mine if prepared is None else prepared(mine),))
        return near(result) if type(result) is _ndarray else result

    method.__name__ = method.__qualname__ = name
    return method


_NAMES: dict[np.ufunc, tuple[str, ...]] = {**OPERATORS, np.matmul: MATMUL_NAMES}
_FAST: dict[str, Function] = {}
_FAST_REFLECTED: dict[Key, Callable[[AtHand, object], object]] = {}
REFLECTED: dict[Key, Callable[[AtHand, object], object]] = {}
"""By their ufuncs those operators that are reflected, while nobody else has rules."""


def _define() -> None:
    for ufunc, names in OPERATORS.items():
        plain = [name for name in names if not name.startswith("__i") or name == "__invert__"]
        for name in names:
            base = name.strip("_")
            if ufunc.nin == 1:
                operation: Function = getattr(operator, name) if name != "__abs__" else operator.abs
                _FAST[name] = _unary(name, operation, ufunc)
            elif name == "__pow__":
                _FAST[name] = _power(_binary(name, operator.pow, ufunc))
            elif name == names[0]:
                _FAST[name] = _binary(name, divmod if ufunc is np.divmod else getattr(operator, name), ufunc)
            elif base.startswith("r") and name in plain:
                forward = divmod if ufunc is np.divmod else getattr(operator, names[0])
                _FAST[name] = _FAST_REFLECTED[ufunc] = _binary(name, forward, ufunc, reflected=True)
            else:
                _FAST[name] = _in_place(name, getattr(operator, name), ufunc)
    REFLECTED.update(_FAST_REFLECTED)
    _FAST.update({name: vars(AtHand)[name] for name in _NAMES[np.matmul]})
    for name, made in _FAST.items():
        setattr(AtHand, name, made)


_define()


def _route(key: Key) -> None:
    """Let operators be handed over where somebody else has rules for their ufunc."""
    names = _NAMES.get(key, ()) if isinstance(key, np.ufunc) else ()
    record = _rules.get(key) if names else None
    outside = record is not None and not record.rules[0].house
    if outside:
        REFLECTED.pop(key, None)
    elif key in _FAST_REFLECTED:
        REFLECTED[key] = _FAST_REFLECTED[key]
    for name in names:
        setattr(AtHand, name, _to_engine(name) if outside else _FAST[name])


def _to_engine(name: str) -> Function:
    return lambda self, *args: _left_to_engine(name)(hand_over(self), *args)


registry.CHANGED.append(_route)
