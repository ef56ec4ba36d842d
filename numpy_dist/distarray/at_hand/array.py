"""The class of arrays at hand: a `DistArray` whose elements are an ndarray that is seen through a window.

Here are its metadata, its views and copies, and its conversions to Python's numbers and to ndarrays. Its other methods
are given to it by the modules of their topics (`method_at_hand`), which know what is at hand of their operands.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np
from numpy.typing import DTypeLike

from numpy_dist.argument_types import Function
from numpy_dist.dispatch.core import fallback
from numpy_dist.distarray.array import AS_STRIDED, MOST_FLAT, DistArray
from numpy_dist.distarray.flat import FlatIterator
from numpy_dist.distarray.interface import refuse_as_labels
from numpy_dist.distarray.operators import REALS
from numpy_dist.engine.data import windows
from numpy_dist.engine.data.windows import FREE, KINDS, hand_over, near
from numpy_dist.engine.memory.handle import Handle
from numpy_dist.ir import structure
from numpy_dist.ir.meta_arrays import is_writeable

F = TypeVar("F", bound=Function)

NUMBERS = REALS | {complex, np.complex128, np.complex64}
"""Types of numbers that are operands of arrays at hand."""
_slot = vars(Handle)


def _handed_over(name: str) -> property:
    """An attribute that only arrays of the engine's have."""
    slot = _slot[name]

    def get(self: AtHand) -> object:
        return slot.__get__(hand_over(self))

    def put(self: AtHand, value: object) -> None:
        slot.__set__(hand_over(self), value)

    return property(get, put)


def _metadata(name: str) -> property:
    general: property = getattr(DistArray, name)

    def put(self: AtHand, value: object) -> None:
        setattr(hand_over(self), name, value)

    return property(operator.attrgetter(f"_real.{name}"), put, doc=general.__doc__)


def _scalar(name: str, convert: Function) -> Callable[[AtHand], Any]:
    general = getattr(DistArray, name)

    def method(self: AtHand) -> object:
        if self._window.readable and not self._real.ndim:
            return convert(self._real)
        return general(hand_over(self))

    method.__name__ = method.__qualname__ = name
    return method


class AtHand(DistArray):
    """A `DistArray` that is small, and whose elements this process has (see `distarray.at_hand`)."""

    __slots__ = ()

    if not TYPE_CHECKING:
        __init__ = object.__init__  # in less time than by `object.__new__`: that of the base is for users
    __hash__ = None  # type: ignore[assignment]
    __bool__ = _scalar("__bool__", bool)
    __int__ = _scalar("__int__", int)
    __float__ = _scalar("__float__", float)
    __complex__ = _scalar("__complex__", complex)
    __index__ = _scalar("__index__", operator.index)

    def __len__(self) -> int:
        return len(self._real)

    def __contains__(self, value: object) -> bool:
        if type(value) in NUMBERS and self._window.readable and windows.permits(self._real.nbytes):
            return value in self._real
        return DistArray.__contains__(hand_over(self), value)

    def __iter__(self) -> Iterator[Any]:
        if not self._real.ndim:
            return iter(np.empty(()))  # NumPy's error
        return (self[i] for i in range(len(self._real)))

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> np.ndarray:
        if sys._getframe(1).f_code is AS_STRIDED:
            return np.lib.stride_tricks.as_strided(hand_over(self))
        if self._real.dtype.kind == "b":
            refuse_as_labels()
        if copy is False or not self._window.readable:
            return DistArray.__array__(hand_over(self), dtype, copy)
        fallback.announce_gather(self)
        windows.asked_for(self._real.nbytes)
        array = self._real.copy("K")
        return array if dtype is None else array.astype(dtype, copy=False)

    @property
    def flat(self) -> Any:
        """Iterator over the elements in C order, which can be indexed and assigned to."""
        if self._real.ndim > MOST_FLAT:
            return DistArray.flat.__get__(hand_over(self))  # type: ignore[attr-defined]
        return FlatIterator(self)

    @flat.setter
    def flat(self, value: object) -> None:
        self.flat[:] = value

    def item(self, *args: Any) -> Any:
        """An element as a Python scalar."""
        if not self._window.readable:
            return DistArray.item(hand_over(self), *args)
        if windows.eager:
            windows.asked_for(self._real.nbytes)
        return self._real.item(*args)

    def _view(self, operation: structure.Operation, *args: object, **kwargs: object) -> Any:
        """The handle of a view that a structural operation makes (see `ir.structure`)."""
        window, real = self._window, self._real
        if window.readable and real.dtype.kind != "c":  # parts of those have a way of their own
            found = structure.view(real, operation, *args, **kwargs)
            if found.size and is_writeable(found) and found.dtype.char in KINDS:
                if window is FREE:
                    window = windows.family(self)  # type: ignore[assignment]
                if window is not None:
                    return view_at_hand(self, found, window)
        return DistArray._view(hand_over(self), operation, *args, **kwargs)

    @property
    def T(self) -> DistArray:
        """View with the axes in reverse order."""
        window = self._window
        if window is FREE:
            window = windows.family(self)
        if window is None or not window.readable:
            return DistArray.T.__get__(hand_over(self))  # type: ignore[attr-defined]
        return view_at_hand(self, self._real.T, window)

    def conj(self, *args: object, **kwargs: object) -> Self:
        """Complex conjugate; real arrays are returned as they are."""
        if not args and not kwargs and self._real.dtype.kind in "iufc":
            return np.conjugate(self) if self._real.dtype.kind == "c" else self  # type: ignore[return-value]
        return DistArray.conj(hand_over(self), *args, **kwargs)

    conjugate = conj

    def copy(self, order: object = "C") -> Self:
        """Copy of the array."""
        if self._window.readable and order in ("C", "F", "A", "K") and windows.permits(self._real.nbytes):
            return near(self._real.copy(order))
        return DistArray.copy(hand_over(self), order)


AtHand.__name__ = AtHand.__qualname__ = DistArray.__name__
AtHand.__module__ = DistArray.__module__
for _name in ("_array", "_owner", "_ref", "_storage", "_token"):
    setattr(AtHand, _name, _handed_over(_name))
for _name in ("shape", "dtype", "strides", "ndim", "size", "itemsize", "nbytes"):
    setattr(AtHand, _name, _metadata(_name))


def method_at_hand(function: F) -> F:
    """Let arrays at hand have a method, under the function's name."""
    setattr(AtHand, function.__name__, function)
    return function


def view_at_hand(x: AtHand, part: np.ndarray, window: windows.Window) -> AtHand:
    """The array at hand of a view of another one."""
    made = AtHand()
    made._real, made._window = part, window
    whole = window.whole
    if whole is not None:
        if part.nbytes == whole.nbytes:
            _keep_owner(made, window.first())  # type: ignore[misc]
    elif part.nbytes == x._real.nbytes:
        _keep_owner(made, _owner_of(x))
    return made


def _owner_of(x: object) -> object:
    """What a view of all of an array is a view of."""
    try:
        return _slot["_owner"].__get__(x)
    except AttributeError:
        return x


_keep_owner = _slot["_owner"].__set__
