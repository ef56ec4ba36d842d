"""Arrays at hand: small arrays of one process, on which NumPy works at once.

An array at hand is a `DistArray` in another state. Its elements are an ndarray that is seen through a window
(`engine.data.windows`); operators, indexing and the like are NumPy's own on it, and make arrays at hand. For everything
else, and where the window is shut, it is *handed over*: it becomes a view over a storage like all others, of the class
`DistArray`, whose attributes are asked for by whoever knows nothing of arrays at hand.
"""

from __future__ import annotations

import functools
import operator
import sys
from collections.abc import Callable, Iterable, Iterator
from math import prod
from types import EllipsisType
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from numpy_dist.argument_types import Function, Keywords
from numpy_dist.dispatch.core import fallback, outcome, policy, registry
from numpy_dist.distarray import operators
from numpy_dist.distarray.array import AS_STRIDED, MOST_FLAT, DistArray
from numpy_dist.distarray.exchanges import exchanged
from numpy_dist.distarray.flat import FlatIterator
from numpy_dist.distarray.indexing import BASIC, apart
from numpy_dist.distarray.interface import refuse_as_labels
from numpy_dist.distarray.operators import REALS, call_name, event_name
from numpy_dist.engine.data import walks, watch, windows
from numpy_dist.engine.data.watch import capsule as _capsule
from numpy_dist.engine.data.windows import FREE, KINDS, hand_over, near
from numpy_dist.engine.events import floating
from numpy_dist.engine.memory.handle import Handle, replicated
from numpy_dist.ir import structure
from numpy_dist.ir.meta_arrays import address_of, is_writeable
from numpy_dist.ir.ops import COMPLEX_EXACT, STRIDE_SENSITIVE
from numpy_dist.settings import config

if TYPE_CHECKING:
    from numpy_dist.dispatch.core.keys import Key
    from numpy_dist.distarray.methods import Out

_are_basic = BASIC.issuperset
_DOUBLE = np.dtype(float)
_INTEGER_TYPES = frozenset({int, np.int64, np.int32, np.intp})
_are_integers = _INTEGER_TYPES.issuperset
_ndarray = np.ndarray
NUMBERS = REALS | {complex, np.complex128, np.complex64}
_rules = registry.TABLE
_slot = vars(Handle)
_RUNNING: dict[tuple[np.ufunc, str], Function] = {
    (np.add, "accumulate"): np.cumsum,
    (np.multiply, "accumulate"): np.cumprod,
    (np.multiply, "reduce"): np.prod,
}
"""Methods of ufuncs that are functions, for vectors."""
_REDUCING = frozenset({"axis", "dtype", "keepdims"})
ROUTES: dict[Key, Function] = {}
"""How a function is computed at once, while nobody else has rules for it: ``route(args, kwargs)`` gives None where the
engine has to."""
WRITERS: dict[Key, Callable[[tuple, Keywords], bool]] = {}
"""How a function writes to an array at once, in the same way; False where the engine has to."""
METHODS: dict[str, Callable[[np.ufunc, tuple, Keywords], object]] = {}
"""How methods of ufuncs are computed at once, in the same way; `DONE` of those that write and return None."""
DONE = object()
COMPOSED: set[Function] = set()
"""Functions that are made of others, each of which may be at once."""


def _none(args: tuple, kwargs: Keywords) -> None:
    """Nothing is at hand where somebody else has rules for a function."""


def routed(function: Function, args: tuple, kwargs: Keywords) -> object:
    """A function whose arguments come near, where the program is eager; None where the engine has to do it."""
    route = ROUTES.get(function)
    if route is None or not all(map(windows.come_near, args)):
        return None
    return route(args, kwargs)


def _handed_over(name: str) -> property:
    """An attribute that only arrays of the engine's have."""
    slot = _slot[name]

    def get(self: AtHand) -> object:
        return slot.__get__(hand_over(self))

    def put(self: AtHand, value: object) -> None:
        slot.__set__(hand_over(self), value)

    return property(get, put)


def elements(x: Any, kind: type) -> Any:
    """The elements of an operand as an ndarray; None where they are not at hand, or NumPy's work is not the engine's.

    Parameters
    ----------
    x
        The operand.
    kind : type
        Its type.
    """
    if kind is AtHand:
        return x._real if x._window.readable else None
    if kind is DistArray:
        if x._storage is None:
            found = x._array
        elif x._window.readable or (x._array.nbytes < windows.limit and windows.open_window(x) is not None):
            found = x._real
        else:
            return None
    elif kind is _ndarray:
        found = x
    else:
        return None
    return found if found.dtype.char in KINDS else None


def _is_small(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether what two arrays are broadcast to is small; errors of shapes are NumPy's to tell."""
    if a.shape == b.shape:
        nbytes = a.nbytes
    else:
        try:
            nbytes = np.broadcast(a, b).size * max(a.itemsize, b.itemsize)
        except ValueError:
            return True
    return nbytes < windows.usual or windows.permits(nbytes)


def writeable(x: object) -> Any:
    """The elements of an output as an ndarray that NumPy may write now; None where that is the engine's."""
    kind = type(x)
    if kind is AtHand:
        window = x._window  # type: ignore[attr-defined]
        if window.readable and (window.writeable or windows.may_be_written(window)):
            return x._real  # type: ignore[attr-defined]
    elif kind is DistArray and x._storage is None and x._array.flags.writeable:  # type: ignore[attr-defined]
        return x._array  # type: ignore[attr-defined]
    return None


def _ascending(array: object) -> Any:
    """Elements for operations whose bits depend on strides: a copy where some are negative."""
    return array.copy("K") if type(array) is _ndarray and min(array.strides, default=0) < 0 else array


def _ascending_complex(array: object) -> Any:
    """Elements for operations whose bits depend on strides where they are complex."""
    return _ascending(array) if type(array) is _ndarray and array.dtype.kind == "c" else array


def _aligned(array: object) -> object:
    """Elements of which NumPy's ``negative`` does not take strided ones for contiguous ones."""
    return array.copy("K") if type(array) is _ndarray and not array.flags.c_contiguous else array


def _prepared_for(ufunc: np.ufunc) -> Function | None:
    """What is made of elements before NumPy's ufunc has the engine's bits; None where that is nothing."""
    name = ufunc.__name__
    if name in STRIDE_SENSITIVE:
        return _ascending
    if name in COMPLEX_EXACT:
        return _aligned if ufunc is np.negative else None
    return _ascending_complex if "F->" in "".join(ufunc.types) else None


_PLAIN = frozenset((np.add, np.subtract, np.multiply, np.true_divide))
"""Ufuncs that NumPy's operators call as they are, which takes longer than to call them."""


def _left_to_engine(name: str) -> Function:
    """The method of the array that was handed over."""
    return getattr(DistArray, name)


def _binary(
    name: str, operation: Function, ufunc: np.ufunc, reflected: bool = False
) -> Callable[[AtHand, object], object]:
    prepared = _prepared_for(ufunc)
    always = ufunc.__name__ in STRIDE_SENSITIVE
    if ufunc in _PLAIN:
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
            if theirs is None or not (mine.ndim == 1 == theirs.ndim or _is_small(mine, theirs)):
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
    prepared = _prepared_for(ufunc)
    always = ufunc.__name__ in STRIDE_SENSITIVE

    def method(self: AtHand, other: Any) -> object:
        window = self._window
        mine, kind = self._real, type(other)
        if kind is AtHand and other._window.readable:
            theirs = other._real
        else:
            theirs = other if kind in NUMBERS else elements(other, kind)
        if theirs is None or not (window.writeable or (window.readable and windows.may_be_written(window))):
            return _left_to_engine(name)(hand_over(self), other)
        if prepared is not None and (always or mine.dtype is not _DOUBLE):
            if _depends_on_target(always, mine):
                return _left_to_engine(name)(hand_over(self), other)
            if type(theirs) is _ndarray:
                theirs = _beside(prepared(theirs), mine)
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
    told, prepared = ufunc.__name__, _prepared_for(ufunc)

    def method(self: AtHand) -> object:
        if not self._window.readable:
            return _left_to_engine(name)(hand_over(self))
        mine = self._real
        result = watch.applied(operation, told, (mine if prepared is None else prepared(mine),))
        return near(result) if type(result) is _ndarray else result

    method.__name__ = method.__qualname__ = name
    return method


def _metadata(name: str) -> property:
    general: property = getattr(DistArray, name)

    def put(self: AtHand, value: object) -> None:
        setattr(hand_over(self), name, value)

    return property(operator.attrgetter(f"_real.{name}"), put, doc=general.__doc__)


def _part(name: str) -> property:
    """The real or the imaginary part; the real part of what is real is the array itself."""
    general: property = getattr(DistArray, name)

    def get(self: AtHand) -> object:
        if self._real.dtype.kind != "c" and self._window.readable:
            return self if name == "real" else zeros_of(self._real)
        made = _part_of(self, name)
        return general.__get__(hand_over(self)) if made is None else made

    def put(self: AtHand, value: object) -> None:
        part = _part_of(self, name)
        if part is None or not assign(part, Ellipsis, value):
            general.__set__(hand_over(self), value)

    return property(get, put, doc=general.__doc__)


def _scalar(name: str, convert: Function) -> Callable[[AtHand], Any]:
    def method(self: AtHand) -> object:
        if self._window.readable and not self._real.ndim:
            return convert(self._real)
        return _left_to_engine(name)(hand_over(self))

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

    def __array_function__(self, func: Function, types: Iterable[type], args: tuple, kwargs: Keywords) -> object:
        route = ROUTES.get(func)
        if route is None and not registry.loaded:
            registry.load()
            route = ROUTES.get(func)
        if route is not None:
            made = route(args, kwargs)
            if made is not None:
                return made
        elif func in WRITERS and WRITERS[func](args, kwargs):
            return None
        if func in COMPOSED and "out" not in kwargs:
            return DistArray.__array_function__(self, func, types, args, kwargs)
        return DistArray.__array_function__(hand_over(self), func, types, args, kwargs)

    def __matmul__(self, other: Any) -> Any:
        made = _product("matmul", self, other)
        return DistArray.__matmul__(hand_over(self), other) if made is None else made

    def __rmatmul__(self, other: Any) -> Any:
        made = _product("matmul", other, self)
        return DistArray.__rmatmul__(hand_over(self), other) if made is None else made

    def dot(self, b: ArrayLike, out: Out = None) -> Any:
        """Product with another array (as `numpy.dot`)."""
        made = _product("dot", self, b) if out is None and is_ours(np.dot) else None
        return DistArray.dot(hand_over(self), b, out) if made is None else made

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: object, **kwargs: object) -> Any:
        if not registry.loaded:
            registry.load()  # lest the array be handed over, for good, where the first function is looked for
        if type(inputs[0]) in NUMBERS and not kwargs and method == "__call__":
            operator_of = _REFLECTED.get(ufunc)  # NumPy's scalars do not ask the array's operators
            if operator_of is not None:
                return operator_of(self, inputs[0])
        if method == "__call__" and ufunc not in _rules:
            made = _computed(ufunc, inputs, kwargs)
            if made is not None:
                return made
        running = _RUNNING.get((ufunc, method))
        if running is not None and not kwargs and len(inputs) == 1 and type(inputs[0]) is AtHand:
            if inputs[0]._real.ndim == 1 and (made := ROUTES.get(running, _none)(inputs, kwargs)) is not None:
                return made
        if method == "reduce" and len(inputs) == 1 and type(inputs[0]) is AtHand and not kwargs.keys() - _REDUCING:
            return DistArray.__array_ufunc__(self, ufunc, method, *inputs, **kwargs)  # which asks `engine.reduction`
        if method == "__call__" and ufunc in PRODUCTS and is_ours(ufunc):
            made = PRODUCTS[ufunc](inputs, kwargs)
            if made is not None:
                return made
        elif method in METHODS and is_method_ours(ufunc, method):
            made = METHODS[method](ufunc, inputs, kwargs)
            if made is not None:
                return None if made is DONE else made
        return DistArray.__array_ufunc__(hand_over(self), ufunc, method, *inputs, **kwargs)

    def __getitem__(self, key: Any) -> Any:
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
        found = _selected(self, key)
        return DistArray.__getitem__(hand_over(self), key) if found is None else found

    def __setitem__(self, key: object, value: object) -> None:
        if (
            type(key) is int
            and isinstance(value, DistArray)
            and "shuffle" in (frame := sys._getframe(1)).f_code.co_names
        ):
            value = exchanged(self, key, value, frame)
        if not assign(self, key, value):
            DistArray.__setitem__(hand_over(self), key, value)

    def put(self, indices: object, values: object, mode: object = "raise") -> None:
        """Set elements by flat index (as `numpy.put`)."""
        if np.put not in WRITERS or not WRITERS[np.put]((self, indices, values), {"mode": mode}):
            DistArray.put(hand_over(self), indices, values, mode)

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

    def fill(self, value: object) -> None:
        """Set every element to a scalar."""
        if type(value) not in NUMBERS or not assign(self, Ellipsis, value):
            DistArray.fill(hand_over(self), value)

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


def view_at_hand(x: AtHand, part: np.ndarray, window: windows.Window) -> AtHand:
    """The array at hand of a view of another one."""
    made = AtHand()
    made._real, made._window = part, window
    whole = window.whole
    if whole is not None:
        if part.nbytes == whole.nbytes:
            _keep_owner(made, window.first())
    elif part.nbytes == x._real.nbytes:
        _keep_owner(made, _owner_of(x))
    return made


def zeros_of(real: np.ndarray) -> Any:
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


def _owner_of(x: object) -> object:
    """What a view of all of an array is a view of."""
    try:
        return _slot["_owner"].__get__(x)
    except AttributeError:
        return x


_keep_owner = _slot["_owner"].__set__


PASSED = frozenset(
    {
        *NUMBERS,
        type(None),
        type(np._NoValue),
        str,
        slice,
        type,
        bytes,
        EllipsisType,
        np.dtype,
        *map(type, map(np.dtype, KINDS)),
    }
)
"""Types of arguments, besides arrays, that functions get as they are."""


class NotAtHand(Exception):
    """An argument that is not at hand: the engine's."""


def real_of(x: Any, given: list[tuple[DistArray | np.ndarray, np.ndarray]]) -> Any:
    """An argument with ndarrays in place of arrays, which are listed in `given`; raises `NotAtHand` for others."""
    kind = type(x)
    if kind in PASSED:
        return x
    if kind is AtHand or kind is DistArray or kind is _ndarray:
        found = elements(x, kind)
        if found is None or found.nbytes >= windows.limit:
            raise NotAtHand
        given.append((x, found))
        return found
    if kind is list or kind is tuple:
        return kind([real_of(item, given) for item in x])
    raise NotAtHand


def new_memory(made: np.ndarray) -> AtHand | None:
    """The array at hand of a new ndarray, which NumPy may have made as a view of all of another new one."""
    base = made.base
    if base is None:
        return near(made)
    if type(base) is not _ndarray or base.base is not None or base.nbytes != made.nbytes:
        return None
    whole = near(base)
    window = windows.family(whole)
    return None if window is None else view_at_hand(whole, made, window)


_INDICES = frozenset("?bBhHiIlLqQ")
_INTEGERS = _INDICES - {"?"}


def key_of(key: object, dtypes: frozenset[str] = _INDICES) -> Any:
    """An index with ndarrays in place of arrays at hand; None where one is not, or it is no index of arrays."""
    items = key if type(key) is tuple else (key,)
    given: list[tuple[DistArray | np.ndarray, np.ndarray]] = []
    try:
        found = tuple([real_of(item, given) for item in items])
    except NotAtHand:
        return None
    if any(array.dtype.char not in dtypes for _, array in given):
        return None
    return found if type(key) is tuple else found[0]


def _selected(x: Handle, key: object) -> object:
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
    window = x._window
    if not (window.writeable or (window.readable and windows.may_be_written(window))):
        return False
    real, kind, given = x._real, type(key), type(value)
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


# -- products --------------------------------------------------------------------------------------------------------

_ONE, _NONE = (1,), (0,)  # the shape of one element, and strides that lead nowhere
_DOT_TELLS = not np.__version__.startswith("2.1.")  # of floating-point events


def is_ours(function: Function) -> bool:
    """Whether a function is computed by a rule of the house."""
    if not registry.loaded:
        registry.load()
    record = _rules.get(function)
    return record is not None and record.rules[0].house


def is_method_ours(ufunc: np.ufunc, method: str) -> bool:
    """Whether nobody else has rules for a method of a ufunc."""
    return all(
        record is None or record.rules[0].house for record in map(_rules.get, ((ufunc, method), (np.ufunc, method)))
    )


def product(args: tuple, kwargs: Keywords, name: str = "dot") -> object:
    """`numpy.dot` or `numpy.matmul` of arrays at hand; None for others."""
    if len(args) != 2:
        return None
    if not kwargs:
        return _product(name, args[0], args[1])
    if kwargs.keys() != {"out"}:
        return None
    if kwargs["out"] is None:
        return _product(name, *args)
    out: Any = kwargs["out"][0] if type(kwargs["out"]) is tuple else kwargs["out"]
    target, a, b = writeable(out), *(elements(x, type(x)) for x in args)
    if target is None or a is None or b is None or not (a.ndim and b.ndim) or a.dtype is not target.dtype:
        return None
    if not target.ndim or target.shape != a.shape[:-1] + b.shape[1:]:
        return None
    if name == "dot" and not target.flags.c_contiguous:
        return None
    made = _product(name, *args)
    if type(made) is not AtHand:
        return None
    target[...] = made._real
    return out


def _named(name: str) -> Function:
    """`numpy.matmul`, whose errors are those of another function."""

    def product(a: np.ndarray, b: np.ndarray) -> object:
        try:
            return np.matmul(a, b)
        except FloatingPointError as error:
            raise FloatingPointError(str(error).replace("matmul", name)) from None

    return product


_NAMED: dict[str, Function] = {"matmul": np.matmul, **{name: _named(name) for name in ("dot", "matvec", "vecdot")}}


def _are_stacks(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether a product is of as many matrices as there are on the left, each of which lies in one piece."""
    inner = b.shape[-2] if b.ndim > 1 else -1
    stacked = b.ndim == 2 or (b.ndim == a.ndim and a.shape[:-2] == b.shape[:-2])
    in_pieces = all(x.strides[-2:] == (x.shape[-1] * x.itemsize, x.itemsize) for x in (a, b))
    return stacked and a.shape[-1] == inner and in_pieces


def _vector_product(name: str, a: np.ndarray, b: np.ndarray) -> object:
    """The product of two vectors of 2 elements and more: the method has the bits of `matmul`, in half of its time."""
    state = _capsule()
    known = watch.latest
    if known[0] is not state:
        known = watch.look(state)
    if not known[3] and name != "dot":
        return watch.applied(_NAMED[name], name, (a, b))
    try:
        made = known[2](_ndarray.dot, a, b)
    except BaseException as error:
        if not watch.is_busy(error) and type(error) is not FloatingPointError:
            raise
        return watch.applied(_NAMED[name], name, (a, b))  # whose error says this name
    if watch.met:
        watch.tell(name)
    return made


def _product(name: str, left: object, right: object) -> object:
    """``left @ right`` for vectors and matrices at hand, as the engine computes it; None for others."""
    if type(left) is AtHand is type(right) and left._window.readable and right._window.readable:
        a, b = left._real, right._real
        if a.ndim == 1 == b.ndim and len(a) == len(b) > 1 and a.dtype is b.dtype:
            if a.strides[0] > 0 < b.strides[0] and _DOT_TELLS:
                return _vector_product(name, a, b)
    else:
        a, b = elements(left, type(left)), elements(right, type(right))
    if a is None or b is None or a.dtype is not b.dtype or not (a.ndim and b.ndim):
        return None
    if name == "dot" and a.shape == b.shape == _ONE and a.dtype.char in "fd" and _DOT_TELLS:
        return watch.applied(_ndarray.dot, name, (a, b))  # no zero is added to the product of two numbers
    if a.ndim > 2 or b.ndim > 2:
        if name != "matmul" or not _are_stacks(a, b):
            return None
        shape = a.shape[:-1] + b.shape[-1:]
    elif a.shape[-1] != b.shape[0] or (name == "dot" and (not _DOT_TELLS or a.size == b.size == 1)):
        return None
    else:
        shape = a.shape[:-1] + b.shape[1:]
    if prod(shape) * a.itemsize >= windows.limit:
        return None
    made = watch.applied(_NAMED[name], name, (a, b))
    return near(made) if type(made) is _ndarray else made


def vector_product(function: Function, args: tuple, kwargs: Keywords) -> object:
    """`numpy.inner`, `vdot` and `vecdot` of two vectors at hand, as the engine computes them; None for others."""
    if kwargs or len(args) != 2:
        return None
    a, b = (elements(x, type(x)) for x in args)
    if a is None or b is None or a.dtype is not b.dtype or not a.ndim == b.ndim == 1:
        return None
    if a.shape != b.shape or not a.size:
        return None
    if function is np.inner:
        return _product("dot", *args)
    if a.dtype.kind == "c":
        a = np.conjugate(a)
    if function is np.vdot:
        with np.errstate(all="ignore"):  # as NumPy, which does not look at what it meets
            return np.matmul(np.ascontiguousarray(a), np.ascontiguousarray(b))
    return watch.applied(_NAMED["vecdot"], "vecdot", (a, b))


def matrix_product(args: tuple, kwargs: Keywords) -> object:
    """`numpy.matvec` of a matrix and a vector; None for others."""
    if kwargs or len(args) != 2:
        return None
    a, b = (elements(x, type(x)) for x in args)
    return _product("matvec", *args) if a is not None and b is not None and a.ndim == 2 and b.ndim == 1 else None


PRODUCTS: dict[np.ufunc, Function] = {
    np.matmul: functools.partial(product, name="matmul"),
    np.vecdot: functools.partial(vector_product, np.vecdot),
}
"""How ufuncs of vectors and matrices are computed at once."""
if hasattr(np, "matvec"):  # since NumPy 2.2
    PRODUCTS[np.matvec] = matrix_product

# -- ufuncs ----------------------------------------------------------------------------------------------------------


def _depends_on_target(always: bool, target: np.ndarray) -> bool:
    """Whether bits depend on the strides of what is written to, where they do so `always` and where it is complex."""
    if always and _ascending(target) is not target:
        return True
    return target.dtype.kind == "c" and not target.flags.c_contiguous


def _beside(x: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Complex operands where NumPy takes no other way because what is written to lies among them."""
    if x.dtype.kind == "c" and x is not target and np.may_share_memory(x, target):
        return x.copy("K")
    return x


class _UfuncCall(NamedTuple):
    """How a ufunc is called.

    Attributes
    ----------
    name : str
        In NumPy's messages.
    name_of : callable
        The name by the operands, of which one is a number.
    prepared : callable or None
        What is made of elements before.
    """

    name: str
    name_of: Callable[..., str]
    prepared: Function | None


def _call_of(ufunc: np.ufunc) -> _UfuncCall:
    return _UfuncCall(ufunc.__name__, functools.partial(call_name, ufunc), _prepared_for(ufunc))


_CALLS = {
    ufunc: _call_of(ufunc)
    for ufunc in vars(np).values()
    if isinstance(ufunc, np.ufunc) and ufunc.signature is None and ufunc.nin <= 2
}


def _computed(ufunc: np.ufunc, inputs: tuple, kwargs: Keywords) -> object:
    """A call of a ufunc without options but `out`, on elements that are at hand; None if they are not."""
    call = _CALLS.get(ufunc)
    if call is None:
        return None
    name, name_of, prepared = call
    out: Any = None
    if kwargs:
        if "out" not in kwargs:
            return _of_dtype(ufunc, inputs, kwargs)
        out = _target(call, kwargs)
        if out is None:
            return None
        if kwargs.get("where", True) is not True:
            mask = _mask(kwargs["where"])
            if mask is None:
                return None
            kwargs = {**kwargs, "where": mask}
    values = []
    for x in inputs:
        kind = type(x)
        if kind is AtHand and x._window.readable:
            x = x._real
        elif kind not in NUMBERS:
            x = elements(x, kind)
            if x is None:
                return None
        values.append(x if prepared is None else prepared(x))
    told: str | Callable[..., str] = name
    if windows.eager and not windows.permits(max((x.nbytes for x in values if type(x) is _ndarray), default=0), name):
        return None
    if len(values) == 2:
        a, b = values
        if type(a) is not type(b):
            told = name_of
        elif type(a) is _ndarray and not (a.ndim == b.ndim == 1 or _is_small(a, b)):
            return None
    if out is None:
        made = watch.applied(ufunc, told, tuple(values))
        if type(made) is tuple:
            return tuple(map(near, made)) if type(made[0]) is _ndarray else made
        return near(made) if type(made) is _ndarray else made
    _write_to(ufunc, call, values, {**kwargs, "out": out})
    return kwargs["out"][0]


def _write_to(ufunc: np.ufunc, call: _UfuncCall, values: list[Any], kwargs: Keywords) -> None:
    """Let a ufunc write to ``kwargs["out"]``."""
    out = kwargs["out"]
    if call.prepared is not None:
        values = [_beside(x, out) if type(x) is _ndarray else x for x in values]
    alike = len(values) < 2 or type(values[0]) is type(values[1])
    told = call.name if alike else call.name_of(*values)
    if len(kwargs) == 1 and ufunc is not np.maximum and ufunc is not np.minimum:  # which want it by its name
        watch.applied(ufunc, told, (*values, out))
    else:
        watch.watched(ufunc, told, *values, **kwargs)


def _mask(where: object) -> np.ndarray | None:
    """A mask of elements that are at hand; None for others."""
    mask = elements(where, type(where))
    return None if mask is None or mask.dtype.char != "?" or mask.nbytes >= windows.limit else mask


def _of_dtype(ufunc: np.ufunc, inputs: tuple, kwargs: Keywords) -> object:
    """A ufunc of real numbers in a dtype that is asked for; None for others, and where bits depend on strides.

    NumPy tells whether the cast or the operation has met an event; as a part of another function it is the engine's.
    """
    if kwargs.keys() - _CONVERTING or ufunc.__name__ in STRIDE_SENSITIVE or ufunc.nout > 1:
        return None
    if floating.name_told("") != "":
        return None
    values = [x if type(x) in REALS else elements(x, type(x)) for x in inputs]
    arrays = [x for x in values if type(x) is _ndarray]
    if any(x is None for x in values) or any(x.dtype.kind == "c" or x.nbytes >= windows.limit for x in arrays):
        return None
    wanted = kwargs.get("dtype")
    if isinstance(wanted, type) and wanted in REALS:
        wanted = np.dtype(wanted)
    if not isinstance(wanted, np.dtype) or wanted.kind == "c" or wanted.char not in KINDS:
        return None
    if not _is_small(arrays[0], arrays[-1]):
        return None
    with outcome.Retold():
        made = ufunc(*values, **kwargs)
    return near(made) if type(made) is _ndarray else made


_CONVERTING = frozenset({"dtype", "casting"})


def _target(call: _UfuncCall, kwargs: Keywords) -> np.ndarray | None:
    """The elements that a call of a ufunc writes to; None where the engine has to."""
    if "out" not in kwargs or kwargs.keys() - _OUT or kwargs.get("casting", "unsafe") not in _CASTINGS:
        return None
    if len(kwargs["out"]) > 1:
        return None
    target = writeable(kwargs["out"][0])
    if target is None or target.dtype.char not in _WRITTEN or target.nbytes >= windows.limit:
        return None
    if call.prepared is not None and _depends_on_target(call.name in STRIDE_SENSITIVE, target):
        return None
    if kwargs.get("where", True) is not True and target.dtype.kind == "c":
        return None
    return target


_WRITTEN = frozenset("bBhHiIlLqQfdFD")
_OUT = frozenset({"out", "casting", "where"})
_CASTINGS = frozenset({"unsafe", "same_kind"})


# -- operators -------------------------------------------------------------------------------------------------------

_NAMES: dict[np.ufunc, tuple[str, ...]] = {**operators.OPERATORS, np.matmul: ("__matmul__", "__rmatmul__")}
_FAST: dict[str, Function] = {}
_FAST_REFLECTED: dict[Key, Callable[[AtHand, object], object]] = {}
_REFLECTED: dict[Key, Callable[[AtHand, object], object]] = {}
"""Those of ufuncs for which nobody else has rules."""


def _define() -> None:
    for name in ("_array", "_owner", "_ref", "_storage", "_token"):
        setattr(AtHand, name, _handed_over(name))
    for name in ("shape", "dtype", "strides", "ndim", "size", "itemsize", "nbytes"):
        setattr(AtHand, name, _metadata(name))
    for name in ("real", "imag"):
        setattr(AtHand, name, _part(name))
    for ufunc, names in operators.OPERATORS.items():
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
    _REFLECTED.update(_FAST_REFLECTED)
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
        _REFLECTED.pop(key, None)
    elif key in _FAST_REFLECTED:
        _REFLECTED[key] = _FAST_REFLECTED[key]
    for name in names:
        setattr(AtHand, name, _to_engine(name) if outside else _FAST[name])


def _to_engine(name: str) -> Function:
    return lambda self, *args: _left_to_engine(name)(hand_over(self), *args)


registry.CHANGED.append(_route)


def _announce_copy(nbytes: int) -> bool:
    """Book that a walk over an array brings it to every rank; whether the user lets that be."""
    if config.FALLBACK == "error":
        return False
    policy.replicate("DistArray.__getitem__", "a loop works on small parts of it", nbytes, chosen=True)
    return True


walks.register_policy(_announce_copy)
windows.register_at_hand(AtHand, assign, _selected, _computed, routed)
