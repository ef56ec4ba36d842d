"""The operators of DistArray: sharded operands go straight to the engine, small replicated ones straight to NumPy."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from numpy_dist import engine
from numpy_dist.argument_types import Function, Keywords
from numpy_dist.dispatch.core import fallback, protocol, registry
from numpy_dist.engine.data import short_rows, watch, windows
from numpy_dist.ir.ops import STRIDE_SENSITIVE, UFUNC_OPS, Op, op_of
from numpy_dist.ir.rules import broadcast_shapes

if TYPE_CHECKING:
    from datetime import date, timedelta

    from numpy.typing import ArrayLike

    from numpy_dist.dispatch.core.keys import Key

    Operand = ArrayLike | date | timedelta

Operator = Callable[[engine.Handle, object], Any]
"""A method of two operands."""

# Operands of these exact types are handed to NumPy's own operator when the array is replicated.
PLAIN = frozenset(
    {int, float, complex, bool, np.ndarray, np.float64, np.float32, np.int64, np.int32, np.bool_, np.complex128}
)
REALS = frozenset({int, float, bool, np.float64, np.float32, np.int64, np.int32, np.bool_})
"""Types of numbers that become doubles without an event."""
_PYTHONS = frozenset({int, float, complex})
_SINGLE = 2.0**128 - 2.0**103  # and more is no finite number of single precision
_EVENTFUL = frozenset(
    (np.true_divide, np.floor_divide, np.remainder, np.fmod, np.divmod, np.power, np.float_power, np.reciprocal)
    + (np.sqrt, np.log, np.log2, np.log10, np.log1p, np.exp, np.exp2, np.expm1, np.cosh, np.sinh)
    + (np.arcsin, np.arccos, np.arccosh, np.arctanh, np.tan)
)
"""Ufuncs that meet floating-point events often enough to be watched, where the array is replicated and small."""
_new = object.__new__
_ndarray = np.ndarray
_DOUBLE = np.dtype(float)
_ARRAYS = (engine.Handle, np.ndarray)
_elementwise = engine.elementwise
_replay = engine.replay
_target_of = engine.target_of
_known_op = UFUNC_OPS.get
_rules = registry.TABLE
_ABSENT = object()
_FOREIGN = object()


def wrap(cls: type[engine.Handle], result: object) -> Any:
    """NumPy's result on replicated operands as ours: arrays become `cls`, tuples are wrapped item by item."""
    if type(result) is _ndarray:
        made: engine.Handle = _new(cls)
        made._array = result
        made._storage = None
        return made
    if type(result) is tuple:
        return tuple(wrap(cls, item) for item in result)
    return engine.agreed(result) if isinstance(result, np.generic) else result


def wrap_of(x: engine.Handle, result: object) -> Any:
    """NumPy's result on one replicated array, which may be a view of it."""
    if type(result) is _ndarray and result.base is not None:
        return engine.view_of_replicated(x, result)
    return wrap(type(x), result)


def numpy_stand_in(x: engine.Handle) -> np.ndarray:
    """An ndarray with the shape and dtype of `x` and one element's memory, on which NumPy raises its own errors."""
    return np.broadcast_to(np.zeros((), x.dtype), x.shape)


def _operand(other: object) -> Any:
    """What an operator of ndarray makes of the other operand: a value for the engine, NotImplemented (the other type
    decides), or `_FOREIGN` (NumPy's protocols decide)."""
    kind = type(other)
    if kind in PLAIN or isinstance(other, (engine.Handle, np.generic)):
        return other
    if isinstance(other, np.ndarray):
        return other.view(np.ndarray) if isinstance(other, np.memmap) else NotImplemented
    if kind is list or kind is tuple:
        return np.asarray(other)
    override = getattr(kind, "__array_ufunc__", _ABSENT)
    if override is _ABSENT:
        return NotImplemented if getattr(kind, "__array_priority__", 0.0) > 0 else np.asarray(other)
    return NotImplemented if override is None else _FOREIGN


def _operand_in_place(other: Any) -> Any:
    """What an in-place operator of ndarray makes of the other operand, as `_operand`.

    Only types without ``__array_ufunc__`` decide for themselves. Of an array of a derived class that leaves it as it
    is, the elements count, since the result is of the class of the output.
    """
    value = _operand(other)
    if value is NotImplemented:
        override = getattr(type(other), "__array_ufunc__", _ABSENT)
        if override is np.ndarray.__array_ufunc__:
            return other.view(np.ndarray)
        return NotImplemented if override is _ABSENT else _FOREIGN
    return value


def _is_unshardable(value: object) -> bool:
    """Whether an operand is an array that the engine cannot hold, as one of objects: its ufuncs gather the others."""
    return isinstance(value, _ARRAYS) and not engine.shardable(value.dtype)


def _apply(ufunc: np.ufunc, left: object, right: object, other: object) -> object:
    """`ufunc(left, right)` where at least one operand is ours and `other` is the one that may be anything."""
    value = _operand(other)
    if value is NotImplemented:
        return NotImplemented
    if value is _FOREIGN or _is_unshardable(value):
        return ufunc(left, right)
    if other is right:
        return _elementwise(ufunc, (left, value))
    return _elementwise(ufunc, (value, right))


def _told(operation: Function, ufunc: np.ufunc, in_place: bool = False) -> Function:
    """NumPy's operator; where it often meets events, they are told at the user's line."""
    if ufunc not in _EVENTFUL:
        return operation
    name = functools.partial(event_name, ufunc, in_place=in_place)

    def told(left: np.ndarray, right: np.ndarray | int) -> object:
        return watch.applied(operation, name, (left, right))

    return told


def event_name(ufunc: np.ufunc, left: object, right: object, in_place: bool = False) -> str:
    """The name of what NumPy's operator computes, or of the cast of a number that single precision cannot hold."""
    name = call_name(ufunc, left, right)
    if name == "power" and type(left) is _ndarray:
        name = (fast_power(left, right, in_place) or ufunc).__name__
    return name


def call_name(ufunc: np.ufunc, left: Any, right: Any) -> str:
    """The name of a ufunc, or of the cast of a number that single precision cannot hold."""
    for array, number in ((left, right), (right, left)):
        if type(number) in _PYTHONS and array.dtype.char in "fF" and _is_beyond_single(number):
            return "cast"
    return ufunc.__name__


def _is_beyond_single(number: complex) -> bool:
    """Whether a part of a number is finite, and infinite in single precision."""
    return any(part - part == 0 and abs(part) >= _SINGLE for part in (number.real, number.imag))


def _binary(operation: Function, ufunc: np.ufunc) -> Operator:
    op, operation = op_of(ufunc), _told(operation, ufunc)

    def forward(self: engine.Handle, other: Any) -> object:
        if self._storage is not None:
            made = _replay(op, (self, other))
            return _apply(ufunc, self, other, other) if made is None else made
        cls = type(self)
        kind = type(other)
        if kind is cls:
            if other._storage is not None:
                return _apply(ufunc, self, other, self)
            other = other._array
        elif kind not in PLAIN:
            return _apply(ufunc, self, other, other)
        result = operation(self._array, other)
        if type(result) is _ndarray:
            made = _new(cls)
            made._array = result
            made._storage = None
            return made
        return wrap(cls, result)

    return forward


def _reflected(operation: Function, ufunc: np.ufunc) -> Operator:
    op, operation = op_of(ufunc), _told(operation, ufunc)

    def reflected(self: engine.Handle, other: object) -> object:
        if self._storage is not None:
            made = _replay(op, (other, self))
            if made is not None:
                return made
        elif type(other) in PLAIN:
            result, cls = operation(other, self._array), type(self)
            if type(result) is not _ndarray:
                return wrap(cls, result)
            made = _new(cls)
            made._array = result
            made._storage = None
            return made
        return _apply(ufunc, other, self, other)

    return reflected


def _in_place(operation: Function, ufunc: np.ufunc) -> Operator:
    op, plain, operation = op_of(ufunc), operation, _told(operation, ufunc, in_place=True)
    takes_any = ufunc.__name__ not in STRIDE_SENSITIVE  # strides

    def in_place(self: engine.Handle, other: Any) -> object:
        if self._storage is not None:
            if windows.eager and windows.computed_eagerly(ufunc, (self, other), self) is not None:
                return self
            target = _target_of(self)
            if target is not None and _replay(op, (self, other), target) is not None:
                return self
        kind = type(other)
        if kind is type(self):
            if self._storage is None and other._storage is None:
                operation(self._array, other._array)
            elif _is_unshardable(self) or _is_unshardable(other):
                return ufunc(self, other, out=(self,))
            else:
                _elementwise(op, (self, other), (self,))
            return self
        if kind in PLAIN and self._storage is None:
            operation(self._array, other)
            return self
        if kind is windows.class_at_hand and takes_any and self._storage is None and other._window.readable:
            mine, theirs = self._array, other._real
            if mine.dtype is _DOUBLE is theirs.dtype:
                watch.applied(plain, ufunc.__name__, (mine, theirs))
                return self
        if kind is windows.class_at_hand and windows.computed(ufunc, (self, other), {"out": (self,)}) is not None:
            return self
        value = _operand_in_place(other)
        if value is NotImplemented:
            return NotImplemented
        # Such as None, which nothing but objects can take in.
        single = type(value) is _ndarray and value.ndim == 0 and value.dtype.kind == "O"
        if value is _FOREIGN or _is_unshardable(self) or (_is_unshardable(value) and not single):
            return ufunc(self, other, out=(self,))
        _elementwise(op, (self, value), (self,))
        return self

    return in_place


def _arithmetic(name: str, ufunc: np.ufunc) -> tuple[Callable, Callable, Callable]:
    operation = getattr(operator, name)
    in_place = getattr(operator, f"i{name.rstrip('_')}")
    return _binary(operation, ufunc), _reflected(operation, ufunc), _in_place(in_place, ufunc)


def _unary(operation: Function, ufunc: np.ufunc) -> Callable[[engine.Handle], object]:
    op = op_of(ufunc)

    def unary(self: engine.Handle) -> object:
        if self._storage is None:
            return wrap(type(self), operation(self._array))
        made = _replay(op, (self,))
        return _elementwise(op, (self,)) if made is None else made

    return unary


def _equality(operation: Function, ufunc: np.ufunc) -> Operator:
    """`==` and `!=`, which never fail for want of a loop: things that cannot be compared are unequal."""
    compare = _binary(operation, ufunc)

    def equality(self: Any, other: object) -> object:
        if self._storage is None and type(other) is not type(self):
            value = _operand(other)
            if value is not NotImplemented and value is not _FOREIGN and not engine.is_sharded(value):
                return wrap(type(self), operation(self._array, value))
        if self.dtype.kind == "V" or getattr(getattr(other, "dtype", None), "kind", None) == "V":
            return _records(operation, self, other)
        if other is None:
            return _all_alike(self, operation is operator.ne, self.shape)
        try:
            return compare(self, other)
        except TypeError:
            # NumPy's operator on one element of each tells whether these types can be compared at all.
            value = _operand(other)
            operation(_stand_in(self), _stand_in(value))
            try:
                shape = broadcast_shapes(self.shape, np.shape(value))
            except ValueError:
                engine.numpy_error(operation, (self, value))
            return _all_alike(self, operation is operator.ne, shape)

    return equality


def _records(operation: Function, x: engine.Handle, other: object) -> object:
    """`==` and `!=` of structured arrays: of each field, as NumPy has it."""
    value = _operand(other)
    if value is NotImplemented or value is _FOREIGN:
        return NotImplemented
    operation(_stand_in(x), _stand_in(value))  # NumPy's error where the fields are not the same
    if not x.dtype.names or not value.dtype.names:
        return fallback.call(operation, (x, other), {}, "void elements without fields are compared byte by byte")
    together, over = (np.logical_and, np.all) if operation is operator.eq else (np.logical_or, np.any)
    found = None
    for name in x.dtype.names:
        made = operation(x[name], value[name])
        inner = x.dtype[name].shape
        if inner:
            made = over(made, axis=tuple(range(-len(inner), 0)))
        found = made if found is None else together(found, made)
    return found


def _all_alike(x: engine.Handle, value: bool, shape: tuple[int, ...]) -> object:
    """What a comparison gives that is decided without looking at elements."""
    if not shape:
        return np.bool_(value)
    return np.full_like(x, value, dtype=bool, shape=None if shape == x.shape else shape)


def _stand_in(value: engine.Handle | np.generic) -> object:
    is_array = engine.is_handle(value) or isinstance(value, np.ndarray)
    return np.zeros((1,) * value.ndim, value.dtype) if is_array else value


# Before NumPy 2.3 or so, `**` treated more exponents in a way of its own, and more kinds of scalars.
_OLD_POWERS = (np.ones(1, np.float32) ** np.float64(2)).dtype == np.float32


def fast_power(array: np.ndarray, exponent: object, in_place: bool = False) -> np.ufunc | None:
    """The ufunc that NumPy's `**` takes instead of `power`, if any (``fast_scalar_power`` in NumPy's number.c)."""
    kind = array.dtype.kind
    if kind == "O":
        return None
    if _OLD_POWERS:
        return _fast_power_of_old(kind, exponent, in_place)
    if type(exponent) is int:
        if exponent == 2:
            return np.square
        if exponent == -1:
            return np.reciprocal if kind in "fc" else None
    elif type(exponent) is float and exponent == 0.5:
        return np.sqrt if kind in "fc" else None
    return None


def _fast_power_of_old(kind: str, exponent: Any, in_place: bool) -> np.ufunc | None:
    if engine.is_sharded(exponent) or np.ndim(exponent):
        return None
    if not isinstance(exponent, int | float | np.integer | np.floating):
        if getattr(getattr(exponent, "dtype", None), "kind", "") not in tuple("iuf"):
            return None
    value = float(exponent)
    if kind in "fc":
        ones_like = np._core.umath._ones_like  # type: ignore[attr-defined]
        return {1.0: np.positive, -1.0: np.reciprocal, 0.0: ones_like, 0.5: np.sqrt, 2.0: np.square}.get(value)
    widens = kind in "iu" and not isinstance(exponent, int | np.integer) and not in_place
    return np.square if value == 2.0 and not widens else None


class Operators(engine.Handle):
    """Arithmetic, comparison and bit operators as ndarray has them."""

    __slots__ = ()

    if TYPE_CHECKING:  # how the operators below are seen by type checkers

        def __add__(self, other: Operand) -> Self: ...
        def __radd__(self, other: Operand) -> Self: ...
        def __iadd__(self, other: Operand) -> Self: ...
        def __sub__(self, other: Operand) -> Self: ...
        def __rsub__(self, other: Operand) -> Self: ...
        def __isub__(self, other: Operand) -> Self: ...
        def __mul__(self, other: Operand) -> Self: ...
        def __rmul__(self, other: Operand) -> Self: ...
        def __imul__(self, other: Operand) -> Self: ...
        def __truediv__(self, other: Operand) -> Self: ...
        def __rtruediv__(self, other: Operand) -> Self: ...
        def __itruediv__(self, other: Operand) -> Self: ...
        def __floordiv__(self, other: Operand) -> Self: ...
        def __rfloordiv__(self, other: Operand) -> Self: ...
        def __ifloordiv__(self, other: Operand) -> Self: ...
        def __mod__(self, other: Operand) -> Self: ...
        def __rmod__(self, other: Operand) -> Self: ...
        def __imod__(self, other: Operand) -> Self: ...
        def __and__(self, other: Operand) -> Self: ...
        def __rand__(self, other: Operand) -> Self: ...
        def __iand__(self, other: Operand) -> Self: ...
        def __or__(self, other: Operand) -> Self: ...
        def __ror__(self, other: Operand) -> Self: ...
        def __ior__(self, other: Operand) -> Self: ...
        def __xor__(self, other: Operand) -> Self: ...
        def __rxor__(self, other: Operand) -> Self: ...
        def __ixor__(self, other: Operand) -> Self: ...
        def __lshift__(self, other: Operand) -> Self: ...
        def __rlshift__(self, other: Operand) -> Self: ...
        def __ilshift__(self, other: Operand) -> Self: ...
        def __rshift__(self, other: Operand) -> Self: ...
        def __rrshift__(self, other: Operand) -> Self: ...
        def __irshift__(self, other: Operand) -> Self: ...
        def __divmod__(self, other: Operand) -> tuple[Self, Self]: ...
        def __rdivmod__(self, other: Operand) -> tuple[Self, Self]: ...
        def __lt__(self, other: Operand) -> Self: ...
        def __le__(self, other: Operand) -> Self: ...
        def __gt__(self, other: Operand) -> Self: ...
        def __ge__(self, other: Operand) -> Self: ...
        def __eq__(self, other: object) -> Self: ...  # type: ignore[override]
        def __ne__(self, other: object) -> Self: ...  # type: ignore[override]

        __hash__ = None  # type: ignore[assignment]

        def __neg__(self) -> Self: ...
        def __pos__(self) -> Self: ...
        def __abs__(self) -> Self: ...
        def __invert__(self) -> Self: ...
        def __rpow__(self, other: Operand) -> Self: ...
    else:
        __add__, __radd__, __iadd__ = _arithmetic("add", np.add)
        __sub__, __rsub__, __isub__ = _arithmetic("sub", np.subtract)
        __mul__, __rmul__, __imul__ = _arithmetic("mul", np.multiply)
        __truediv__, __rtruediv__, __itruediv__ = _arithmetic("truediv", np.true_divide)
        __floordiv__, __rfloordiv__, __ifloordiv__ = _arithmetic("floordiv", np.floor_divide)
        __mod__, __rmod__, __imod__ = _arithmetic("mod", np.remainder)
        __and__, __rand__, __iand__ = _arithmetic("and_", np.bitwise_and)
        __or__, __ror__, __ior__ = _arithmetic("or_", np.bitwise_or)
        __xor__, __rxor__, __ixor__ = _arithmetic("xor", np.bitwise_xor)
        __lshift__, __rlshift__, __ilshift__ = _arithmetic("lshift", np.left_shift)
        __rshift__, __rrshift__, __irshift__ = _arithmetic("rshift", np.right_shift)
        __divmod__ = _binary(divmod, np.divmod)
        __rdivmod__ = _reflected(divmod, np.divmod)
        __lt__ = _binary(operator.lt, np.less)
        __le__ = _binary(operator.le, np.less_equal)
        __gt__ = _binary(operator.gt, np.greater)
        __ge__ = _binary(operator.ge, np.greater_equal)
        __eq__ = _equality(operator.eq, np.equal)
        __ne__ = _equality(operator.ne, np.not_equal)
        __hash__ = None
        __neg__ = _unary(operator.neg, np.negative)
        __pos__ = _unary(operator.pos, np.positive)
        __abs__ = _unary(operator.abs, np.absolute)
        __invert__ = _unary(operator.invert, np.invert)
        __rpow__ = _reflected(operator.pow, np.power)

    _power = staticmethod(_binary(operator.pow, np.power))
    _power_in_place = staticmethod(_in_place(operator.ipow, np.power))

    def __pow__(self, other: Operand, modulo: object = None) -> Self:
        if modulo is not None:
            return NotImplemented
        if self._storage is not None:
            ufunc = fast_power(self._array, other)
            if ufunc is not None:
                return _elementwise(ufunc, (self,))
        return self._power(self, other)

    def __ipow__(self, other: Operand) -> Self:  # type: ignore[misc]
        ufunc = fast_power(self._array, other, True) if self._storage is not None else None
        if ufunc is None:
            return self._power_in_place(self, other)
        _elementwise(ufunc, (self,), out=(self,))
        return self

    def __matmul__(self, other: Operand) -> Self:
        if self._storage is None and type(other) is type(self) and other._storage is None:
            return wrap(type(self), operator.matmul(self._array, other._array))
        return self._matmul(other, self, other)

    def __rmatmul__(self, other: Operand) -> Self:
        return self._matmul(other, other, self)

    def __imatmul__(self, other: Operand) -> Self:
        value = _operand_in_place(other)
        if value is NotImplemented:
            return NotImplemented
        if value is _FOREIGN:
            mine: tuple[int, ...] = (-2, -1)[-self._array.ndim :]
            product: Function = np.matmul  # whose annotations do not know axes of vectors
            return product(self, other, out=(self,), axes=[mine, (-2, -1), mine])
        other = value
        if self._storage is None and not engine.is_sharded(value):
            array = self._array
            array @= engine.plain(value)
            return self
        made: Any = self @ other if np.ndim(value) > 1 else None
        fits = np.shape(made) == self._array.shape and self._array.ndim  # the product is not repeated, as values are
        if not fits or not np.can_cast(made.dtype, self._array.dtype, "same_kind"):
            engine.numpy_error(operator.imatmul, (self, value))
        engine.assign(self, made, casting="same_kind")
        return self

    def _matmul(self, other: object, left: Any, right: Any) -> Any:
        value = _operand(other)
        if value is NotImplemented:
            return NotImplemented
        if value is _FOREIGN:
            return np.matmul(left, right)
        operands = (left, value) if other is right else (value, right)
        if self._storage is None and not engine.is_sharded(value):
            return wrap(type(self), operator.matmul(*map(engine.plain, operands)))
        if windows.limit and (made := windows.multiplied(*operands)) is not None:
            return made
        return protocol.array_ufunc(self, np.matmul, "__call__", operands, {})

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: object, **kwargs: object) -> Any:
        if method == "__call__":
            if self._storage is not None:
                op = _known_op(ufunc)
                # A ufunc that was recorded before, and for which nobody has rules.
                if op is not None and ufunc not in _rules and registry.loaded:
                    made = _replay_into(op, inputs, kwargs) if kwargs else _replay(op, inputs)
                    if made is not None:
                        return made
            elif not kwargs and ufunc not in _rules:
                made = _call_replicated(type(self), ufunc, inputs)
                if made is not NotImplemented:
                    return made
        return protocol.array_ufunc(self, ufunc, method, inputs, kwargs)


def _replay_into(op: Op, inputs: tuple, kwargs: Keywords) -> object:
    """A call with one output and nothing else that was recorded before; None for other calls."""
    if len(kwargs) > 1 or len(kwargs.get("out", ())) != 1:
        return None
    out = kwargs["out"][0]
    if windows.eager and op.ufunc is not None and engine.is_handle(out):
        if windows.computed_eagerly(op.ufunc, inputs, out) is not None:
            return out
    target = _target_of(out) if engine.is_sharded(out) else None
    return None if target is None or _replay(op, inputs, target, None, 3) is None else out


def _call_replicated(cls: type[engine.Handle], ufunc: np.ufunc, inputs: tuple) -> object:
    """NumPy's own ufunc where no operand is sharded and none is of a foreign type; NotImplemented for other calls."""
    if len(inputs) == 1:
        (only,) = inputs  # whoever calls the protocol by hand may pass any
        if type(only) is not cls or only._storage is not None:
            return NotImplemented
        array = only._array
        result = watch.watched(ufunc, ufunc.__name__, array) if ufunc in _EVENTFUL else ufunc(array)
    elif len(inputs) == 2:
        left, right = inputs
        if type(left) is cls and left._storage is None:
            left = left._array
        if type(right) is cls and right._storage is None:
            right = right._array
        if type(left) not in PLAIN or type(right) not in PLAIN:
            return NotImplemented
        if ufunc in _EVENTFUL:
            result = watch.watched(ufunc, functools.partial(call_name, ufunc), left, right)
        else:
            by_rows = type(left) is _ndarray is type(right) and left.ndim > 1 < right.ndim
            result = short_rows.computed(ufunc, left, right) if by_rows else None
            if result is None:
                result = ufunc(left, right)
    else:
        return NotImplemented
    return wrap(cls, result)


# -- operators of ufuncs that somebody else has overridden -----------------------------------------------------------

OPERATORS: dict[np.ufunc, tuple[str, ...]] = {
    np.add: ("__add__", "__radd__", "__iadd__"),
    np.subtract: ("__sub__", "__rsub__", "__isub__"),
    np.multiply: ("__mul__", "__rmul__", "__imul__"),
    np.true_divide: ("__truediv__", "__rtruediv__", "__itruediv__"),
    np.floor_divide: ("__floordiv__", "__rfloordiv__", "__ifloordiv__"),
    np.remainder: ("__mod__", "__rmod__", "__imod__"),
    np.power: ("__pow__", "__rpow__", "__ipow__"),
    np.divmod: ("__divmod__", "__rdivmod__"),
    np.bitwise_and: ("__and__", "__rand__", "__iand__"),
    np.bitwise_or: ("__or__", "__ror__", "__ior__"),
    np.bitwise_xor: ("__xor__", "__rxor__", "__ixor__"),
    np.left_shift: ("__lshift__", "__rlshift__", "__ilshift__"),
    np.right_shift: ("__rshift__", "__rrshift__", "__irshift__"),
    np.less: ("__lt__",),
    np.less_equal: ("__le__",),
    np.greater: ("__gt__",),
    np.greater_equal: ("__ge__",),
    np.equal: ("__eq__",),
    np.not_equal: ("__ne__",),
    np.negative: ("__neg__",),
    np.positive: ("__pos__",),
    np.absolute: ("__abs__",),
    np.invert: ("__invert__",),
}
_FAST = {name: vars(Operators)[name] for names in OPERATORS.values() for name in names}


def _through_dispatch(ufunc: np.ufunc, place: int) -> Function:
    """An operator that calls the ufunc, as those of ndarray do: forward (place 0), reflected (1) or in place (2)."""
    if ufunc.nin == 1:
        return lambda self: ufunc(self)

    def binary(self: object, other: object) -> object:
        value = _operand_in_place(other) if place == 2 else _operand(other)
        if value is NotImplemented:
            return NotImplemented
        value = other if value is _FOREIGN else value
        if place == 2:
            return ufunc(self, value, out=(self,))
        return ufunc(value, self) if place == 1 else ufunc(self, value)

    return binary


def _route(key: Key) -> None:
    """Let operators be as fast as they are, or dispatch where somebody else has rules for their ufunc."""
    names = OPERATORS.get(key, ()) if isinstance(key, np.ufunc) else ()
    record = _rules.get(key) if names else None
    outside = record is not None and not record.rules[0].house
    for place, name in enumerate(names):
        setattr(Operators, name, _through_dispatch(key, place) if outside else _FAST[name])


registry.CHANGED.append(_route)
