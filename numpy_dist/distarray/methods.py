"""The methods of DistArray: a table from ndarray's methods to NumPy's functions, views, and a few that are neither."""

from __future__ import annotations

import contextlib
import functools
import operator
import os
import pickle
from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any, Literal, Self, SupportsIndex, overload

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from numpy_dist import engine
from numpy_dist.argument_types import Axes, Axis, Function, Keywords, SomeAxes
from numpy_dist.comm.portable import on_root
from numpy_dist.dispatch.core import fallback, protocol
from numpy_dist.distarray.operators import numpy_stand_in, wrap, wrap_of
from numpy_dist.engine.data import windows
from numpy_dist.engine.data.watch import watched
from numpy_dist.engine.memory.handle import SHUT
from numpy_dist.files.replacement import replacing
from numpy_dist.files.writing import write_array, write_pieces
from numpy_dist.ir import structure
from numpy_dist.ir.meta_arrays import is_writeable
from numpy_dist.ir.rules import memory_order, only_asking

if TYPE_CHECKING:
    from numpy import _CastingKind

    Out = engine.Handle | np.ndarray | None  # what a result is written into
    Fields = str | Sequence[str] | None  # by which records are ordered

_NOTHING = contextlib.nullcontext()
_TEXT_PIECE = 1 << 21  # bytes of the elements of which a rank makes text at once


def call(function: Function, x: engine.Handle, args: tuple, kwargs: Keywords) -> Any:
    """Run the registry's record of a NumPy function with `x` as its first argument."""
    if windows.eager and (made := windows.routed(function, (x, *args), kwargs)) is not None:
        return made
    return protocol.array_function(type(x), function, (type(x),), (x, *args), kwargs)


def has_handles(args: tuple | list) -> bool:
    """Whether arrays of ours are among some arguments, or in lists of arguments."""
    return any(isinstance(a, engine.Handle) or (isinstance(a, (list, tuple)) and has_handles(a)) for a in args)


def _method(name: str, function: Function) -> Function:
    """A method that is a NumPy function with the array as first argument."""
    eager = getattr(np.ndarray, name)

    @functools.wraps(eager, assigned=("__name__", "__doc__"), updated=())
    def method(self: engine.Handle, *args: object, **kwargs: object) -> object:
        if (
            self._storage is None
            and "out" not in kwargs
            and not (args and has_handles(args))
            and not (kwargs and has_handles(list(kwargs.values())))
        ):
            result = eager(self._array, *args, **kwargs)
            if any(result is a for a in args):
                return result  # a positional `out`
            return wrap_of(self, result)
        return call(function, self, args, kwargs)

    return method


def _spread_method(name: str, function: Function) -> Function:
    """`std` or `var`, which as methods lack a keyword that the functions have."""
    inner = _method(name, function)

    @functools.wraps(inner)
    def method(self: engine.Handle, *args: object, **kwargs: object) -> object:
        if "correction" in kwargs:
            getattr(np.empty(1), name)(**kwargs)  # NumPy's error
        return inner(self, *args, **kwargs)

    return method


def _view_method(name: str) -> Function:
    """A method that returns a view for every array, or the array itself: NumPy applies it to the metadata."""
    view = getattr(np.ndarray, name)

    @functools.wraps(view, assigned=("__name__", "__doc__"), updated=())
    def method(self: engine.Handle, *args: object, **kwargs: object) -> object:
        found = structure.view(self._array, view, *args, **kwargs)
        return self if found is self._array else self._seen_as(found)

    return method


def _in_place_method(name: str, function: Function, place: int) -> Callable[..., None]:
    """A method that overwrites the array with what a NumPy function makes of it; `place` is that of the axis."""
    eager = getattr(np.ndarray, name)

    @functools.wraps(eager, assigned=("__name__", "__doc__"), updated=())
    def method(self: engine.Handle, *args: Any, **kwargs: Any) -> None:
        if not engine.may_write(self._array):
            eager(numpy_stand_in(self), *args, **kwargs)  # NumPy's error
        if self._storage is not None:
            try:
                operator.index(args[place] if len(args) > place else kwargs.get("axis", -1))
            except TypeError:  # the function also takes None
                eager(np.empty((1,) * self._array.ndim, self._array.dtype), *args, **kwargs)  # NumPy's error
                raise
            engine.assign(self, call(function, self, args, kwargs))
            return
        changed = self._array.copy()
        eager(changed, *args, **kwargs)
        engine.assign(self, changed)

    return method


class Methods(engine.Handle):
    """The public methods of ndarray."""

    __slots__ = ()

    gather: Function
    base: Any

    if TYPE_CHECKING:  # how the methods of the table are seen by type checkers and editors

        @overload
        def all(self, axis: SomeAxes, out: Out = None, keepdims: bool = False, *, where: ArrayLike = True) -> Self: ...

        @overload
        def all(
            self, axis: Axes = None, out: Out = None, *, keepdims: Literal[True], where: ArrayLike = True
        ) -> Self: ...

        @overload
        def all(
            self, axis: Axes = None, out: Out = None, keepdims: bool = False, *, where: ArrayLike = True
        ) -> Any: ...

        def all(self, *args: object, **kwargs: object) -> object:
            """Whether all elements are true, along axes (as `numpy.all`)."""
            ...

        @overload
        def any(self, axis: SomeAxes, out: Out = None, keepdims: bool = False, *, where: ArrayLike = True) -> Self: ...

        @overload
        def any(
            self, axis: Axes = None, out: Out = None, *, keepdims: Literal[True], where: ArrayLike = True
        ) -> Self: ...

        @overload
        def any(
            self, axis: Axes = None, out: Out = None, keepdims: bool = False, *, where: ArrayLike = True
        ) -> Any: ...

        def any(self, *args: object, **kwargs: object) -> object:
            """Whether any element is true, along axes (as `numpy.any`)."""
            ...

        @overload
        def argmax(self, axis: SupportsIndex, out: Out = None, *, keepdims: bool = False) -> Self: ...

        @overload
        def argmax(self, axis: Axis = None, out: Out = None, *, keepdims: Literal[True]) -> Self: ...

        @overload
        def argmax(self, axis: Axis = None, out: Out = None, *, keepdims: bool = False) -> Any: ...

        def argmax(self, *args: object, **kwargs: object) -> object:
            """Positions of the largest elements (as `numpy.argmax`)."""
            ...

        @overload
        def argmin(self, axis: SupportsIndex, out: Out = None, *, keepdims: bool = False) -> Self: ...

        @overload
        def argmin(self, axis: Axis = None, out: Out = None, *, keepdims: Literal[True]) -> Self: ...

        @overload
        def argmin(self, axis: Axis = None, out: Out = None, *, keepdims: bool = False) -> Any: ...

        def argmin(self, *args: object, **kwargs: object) -> object:
            """Positions of the smallest elements (as `numpy.argmin`)."""
            ...

        def argpartition(
            self, kth: ArrayLike, axis: Axis = -1, kind: str = "introselect", order: Fields = None
        ) -> Self:
            """Positions that would partition the array (as `numpy.argpartition`)."""
            ...

        def argsort(
            self, axis: Axis = -1, kind: str | None = None, order: Fields = None, *, stable: bool | None = None
        ) -> Self:
            """Positions that would sort the array (as `numpy.argsort`)."""
            ...

        def cumprod(self, axis: Axis = None, dtype: DTypeLike | None = None, out: Out = None) -> Self:
            """Running products (as `numpy.cumprod`)."""
            ...

        def cumsum(self, axis: Axis = None, dtype: DTypeLike | None = None, out: Out = None) -> Self:
            """Running sums (as `numpy.cumsum`)."""
            ...

        def dot(self, b: ArrayLike, out: Out = None) -> Any:
            """Product with another array (as `numpy.dot`)."""
            ...

        @overload
        def max(
            self,
            axis: SomeAxes,
            out: Out = None,
            keepdims: bool = ...,
            initial: ArrayLike = ...,
            where: ArrayLike = ...,
        ) -> Self: ...

        @overload
        def max(
            self,
            axis: Axes = None,
            out: Out = None,
            *,
            keepdims: Literal[True],
            initial: ArrayLike = ...,
            where: ArrayLike = ...,
        ) -> Self: ...

        @overload
        def max(
            self,
            axis: Axes = None,
            out: Out = None,
            keepdims: bool = ...,
            initial: ArrayLike = ...,
            where: ArrayLike = ...,
        ) -> Any: ...

        def max(self, *args: object, **kwargs: object) -> object:
            """Largest element, along axes (as `numpy.max`)."""
            ...

        @overload
        def mean(
            self,
            axis: SomeAxes,
            dtype: DTypeLike | None = None,
            out: Out = None,
            keepdims: bool = ...,
            *,
            where: ArrayLike = ...,
        ) -> Self: ...

        @overload
        def mean(
            self,
            axis: Axes = None,
            dtype: DTypeLike | None = None,
            out: Out = None,
            *,
            keepdims: Literal[True],
            where: ArrayLike = ...,
        ) -> Self: ...

        @overload
        def mean(
            self,
            axis: Axes = None,
            dtype: DTypeLike | None = None,
            out: Out = None,
            keepdims: bool = ...,
            *,
            where: ArrayLike = ...,
        ) -> Any: ...

        def mean(self, *args: object, **kwargs: object) -> object:
            """Mean, along axes (as `numpy.mean`)."""
            ...

        @overload
        def min(
            self,
            axis: SomeAxes,
            out: Out = None,
            keepdims: bool = ...,
            initial: ArrayLike = ...,
            where: ArrayLike = ...,
        ) -> Self: ...

        @overload
        def min(
            self,
            axis: Axes = None,
            out: Out = None,
            *,
            keepdims: Literal[True],
            initial: ArrayLike = ...,
            where: ArrayLike = ...,
        ) -> Self: ...

        @overload
        def min(
            self,
            axis: Axes = None,
            out: Out = None,
            keepdims: bool = ...,
            initial: ArrayLike = ...,
            where: ArrayLike = ...,
        ) -> Any: ...

        def min(self, *args: object, **kwargs: object) -> object:
            """Smallest element, along axes (as `numpy.min`)."""
            ...

        def nonzero(self) -> tuple[Self, ...]:
            """Positions of the elements that are not zero, by axis (as `numpy.nonzero`)."""
            ...

        @overload
        def prod(
            self,
            axis: SomeAxes,
            dtype: DTypeLike | None = None,
            out: Out = None,
            keepdims: bool = ...,
            initial: ArrayLike = ...,
            where: ArrayLike = ...,
        ) -> Self: ...

        @overload
        def prod(
            self,
            axis: Axes = None,
            dtype: DTypeLike | None = None,
            out: Out = None,
            *,
            keepdims: Literal[True],
            initial: ArrayLike = ...,
            where: ArrayLike = ...,
        ) -> Self: ...

        @overload
        def prod(
            self,
            axis: Axes = None,
            dtype: DTypeLike | None = None,
            out: Out = None,
            keepdims: bool = ...,
            initial: ArrayLike = ...,
            where: ArrayLike = ...,
        ) -> Any: ...

        def prod(self, *args: object, **kwargs: object) -> object:
            """Product of the elements, along axes (as `numpy.prod`)."""
            ...

        def ravel(self, order: Literal["K", "A", "C", "F"] | None = "C") -> Self:
            """The array with one axis: a view where NumPy returns one (as `numpy.ravel`)."""
            ...

        def repeat(self, repeats: ArrayLike, axis: Axis = None) -> Self:
            """Each element several times (as `numpy.repeat`)."""
            ...

        def round(self, decimals: SupportsIndex = 0, out: Out = None) -> Self:
            """Rounded elements (as `numpy.round`)."""
            ...

        def searchsorted(
            self, v: ArrayLike, side: Literal["left", "right"] = "left", sorter: ArrayLike | None = None
        ) -> Any:
            """Where values belong in the sorted array (as `numpy.searchsorted`)."""
            ...

        @overload
        def std(
            self,
            axis: SomeAxes,
            dtype: DTypeLike | None = None,
            out: Out = None,
            ddof: float = 0,
            keepdims: bool = ...,
            *,
            where: ArrayLike = ...,
            mean: ArrayLike = ...,
        ) -> Self: ...

        @overload
        def std(
            self,
            axis: Axes = None,
            dtype: DTypeLike | None = None,
            out: Out = None,
            ddof: float = 0,
            *,
            keepdims: Literal[True],
            where: ArrayLike = ...,
            mean: ArrayLike = ...,
        ) -> Self: ...

        @overload
        def std(
            self,
            axis: Axes = None,
            dtype: DTypeLike | None = None,
            out: Out = None,
            ddof: float = 0,
            keepdims: bool = ...,
            *,
            where: ArrayLike = ...,
            mean: ArrayLike = ...,
        ) -> Any: ...

        def std(self, *args: object, **kwargs: object) -> object:
            """Standard deviation, along axes (as `numpy.std`)."""
            ...

        @overload
        def sum(
            self,
            axis: SomeAxes,
            dtype: DTypeLike | None = None,
            out: Out = None,
            keepdims: bool = ...,
            initial: ArrayLike = ...,
            where: ArrayLike = ...,
        ) -> Self: ...

        @overload
        def sum(
            self,
            axis: Axes = None,
            dtype: DTypeLike | None = None,
            out: Out = None,
            *,
            keepdims: Literal[True],
            initial: ArrayLike = ...,
            where: ArrayLike = ...,
        ) -> Self: ...

        @overload
        def sum(
            self,
            axis: Axes = None,
            dtype: DTypeLike | None = None,
            out: Out = None,
            keepdims: bool = ...,
            initial: ArrayLike = ...,
            where: ArrayLike = ...,
        ) -> Any: ...

        def sum(self, *args: object, **kwargs: object) -> object:
            """Sum of the elements, along axes (as `numpy.sum`)."""
            ...

        def take(
            self,
            indices: ArrayLike,
            axis: Axis = None,
            out: Out = None,
            mode: Literal["raise", "wrap", "clip"] = "raise",
        ) -> Any:
            """Elements at positions along an axis (as `numpy.take`)."""
            ...

        def trace(
            self,
            offset: SupportsIndex = 0,
            axis1: SupportsIndex = 0,
            axis2: SupportsIndex = 1,
            dtype: DTypeLike | None = None,
            out: Out = None,
        ) -> Any:
            """Sum along diagonals (as `numpy.trace`)."""
            ...

        @overload
        def var(
            self,
            axis: SomeAxes,
            dtype: DTypeLike | None = None,
            out: Out = None,
            ddof: float = 0,
            keepdims: bool = ...,
            *,
            where: ArrayLike = ...,
            mean: ArrayLike = ...,
        ) -> Self: ...

        @overload
        def var(
            self,
            axis: Axes = None,
            dtype: DTypeLike | None = None,
            out: Out = None,
            ddof: float = 0,
            *,
            keepdims: Literal[True],
            where: ArrayLike = ...,
            mean: ArrayLike = ...,
        ) -> Self: ...

        @overload
        def var(
            self,
            axis: Axes = None,
            dtype: DTypeLike | None = None,
            out: Out = None,
            ddof: float = 0,
            keepdims: bool = ...,
            *,
            where: ArrayLike = ...,
            mean: ArrayLike = ...,
        ) -> Any: ...

        def var(self, *args: object, **kwargs: object) -> object:
            """Variance, along axes (as `numpy.var`)."""
            ...

        def diagonal(self, offset: SupportsIndex = 0, axis1: SupportsIndex = 0, axis2: SupportsIndex = 1) -> Self:
            """View of diagonals (as `numpy.diagonal`)."""
            ...

        def getfield(self, dtype: DTypeLike | None, offset: SupportsIndex = 0) -> Self:
            """View of a field given by dtype and offset."""
            ...

        def squeeze(self, axis: Axes = None) -> Self:
            """View without axes of length one (as `numpy.squeeze`)."""
            ...

        def transpose(self, *axes: Axes) -> Self:
            """View with the axes in another order (as `numpy.transpose`)."""
            ...

        def partition(
            self, kth: ArrayLike, axis: SupportsIndex = -1, kind: str = "introselect", order: Fields = None
        ) -> None:
            """Partition in place (as ndarray.partition)."""
            ...

        def sort(
            self, axis: SupportsIndex = -1, kind: str | None = None, order: Fields = None, *, stable: bool | None = None
        ) -> None:
            """Sort in place (as ndarray.sort)."""
            ...

    else:
        all = _method("all", np.all)
        any = _method("any", np.any)
        argmax = _method("argmax", np.argmax)
        argmin = _method("argmin", np.argmin)
        argpartition = _method("argpartition", np.argpartition)
        argsort = _method("argsort", np.argsort)
        cumprod = _method("cumprod", np.cumprod)
        cumsum = _method("cumsum", np.cumsum)
        dot = _method("dot", np.dot)
        max = _method("max", np.max)
        mean = _method("mean", np.mean)
        min = _method("min", np.min)
        nonzero = _method("nonzero", np.nonzero)
        prod = _method("prod", np.prod)
        ravel = _method("ravel", np.ravel)
        repeat = _method("repeat", np.repeat)
        round = _method("round", np.round)
        searchsorted = _method("searchsorted", np.searchsorted)
        std = _spread_method("std", np.std)
        sum = _method("sum", np.sum)
        take = _method("take", np.take)
        trace = _method("trace", np.trace)
        var = _spread_method("var", np.var)

        diagonal = _view_method("diagonal")
        getfield = _view_method("getfield")
        squeeze = _view_method("squeeze")
        transpose = _view_method("transpose")

        partition = _in_place_method("partition", np.partition, 1)
        sort = _in_place_method("sort", np.sort, 0)

    def astype(
        self,
        dtype: DTypeLike | None,
        order: Any = "K",
        casting: _CastingKind = "unsafe",
        subok: bool = True,
        copy: bool = True,
    ) -> Self:
        """Copy of the array, cast to a dtype (``copy=False``: the array itself where nothing is to be done)."""
        if self._storage is None:
            result = self._array.astype(dtype, order=order, casting=casting, copy=copy)
            return self if result is self._array else wrap(type(self), result)
        with only_asking() if self._array.dtype.kind == "c" else _NOTHING:
            try:
                target = np.zeros(0, self._array.dtype).astype(dtype, casting=casting).dtype
            except TypeError:
                if not self._array.ndim:
                    np.zeros((), self._array.dtype).astype(dtype, casting=casting)  # the error names a scalar
                raise
        if target.kind == "M" and self._array.dtype.kind in "SUT" and np.datetime_data(target)[0] == "generic":
            options = {"order": order, "casting": casting, "copy": copy}
            return fallback.call(np.ndarray.astype, (self, dtype), options, "the unit of dates depends on all texts")
        flags = self._array.flags
        order = memory_order(order)
        in_order = order == "K" or (flags.forc if order == "A" else flags[f"{order}_CONTIGUOUS"])  # type: ignore[index]
        if not copy and in_order and target == self._array.dtype:
            return self
        return engine.copy(self, dtype=target, order=order)

    def swapaxes(self, axis1: int, axis2: int) -> Self:
        """View with two axes interchanged (as `numpy.swapaxes`)."""
        return self._owned(self._view(np.ndarray.swapaxes, axis1, axis2))

    def byteswap(self, inplace: bool = False) -> Self:
        """Swap the bytes of the elements (as ndarray.byteswap)."""
        swapped = self.view(self._array.dtype.newbyteorder()).astype(self._array.dtype)
        if not inplace:
            return swapped
        if not self._array.flags.writeable:
            numpy_stand_in(self).byteswap(inplace=True)  # NumPy's error
        engine.assign(self, swapped)
        return self

    def choose(self, *choices: object, out: object = None, mode: object = "raise") -> Any:
        """Elements of the arrays that this array's numbers choose; several arguments are the arrays, as of ndarray."""
        return call(np.choose, self, (choices[0] if len(choices) == 1 else choices,), {"out": out, "mode": mode})

    def clip(self, min: object = None, max: object = None, out: object = None, **kwargs: object) -> Self:
        """Limit the values to an interval (as `numpy.clip`)."""
        return call(np.clip, self, (min, max), {"out": out, **kwargs})

    def compress(self, condition: object, axis: Axis = None, out: object = None) -> Any:
        """Selected slices along an axis (as `numpy.compress`)."""
        cls = type(self)
        return protocol.array_function(cls, np.compress, (cls,), (condition, self), {"axis": axis, "out": out})

    def conj(self, *args: object, **kwargs: object) -> Self:
        """Complex conjugate; real arrays are returned as they are."""
        kind = self._array.dtype.kind
        if kind not in "biufcO":
            np.zeros(0, self._array.dtype).conj()  # NumPy's error
        if not args and not kwargs and kind not in "cO":
            return self
        return np.conjugate(self, *args, **kwargs)  # type: ignore[call-overload]

    conjugate = conj

    def copy(self, order: Any = "C") -> Self:
        """Copy of the array."""
        if self._storage is None:
            return wrap(type(self), self._array.copy(order))
        return engine.copy(self, order=memory_order(order, "C"))

    def fill(self, value: object) -> None:
        """Set every element to a scalar."""
        one = np.empty(1, self._array.dtype)
        if one.dtype.kind == "O":
            engine.plain(self).fill(value)  # objects are never sharded
            return
        if isinstance(value, engine.Handle):
            if value._array.ndim:
                one.fill(numpy_stand_in(value))  # NumPy's error
        else:
            if isinstance(value, np.ndarray | np.generic):
                value = engine.without_imaginary_part(value, one.dtype)
            watched(one.fill, "cast", value)  # NumPy's own conversion and errors
            value = one[0]
        engine.assign(self, value)

    def flatten(self, order: Literal["K", "A", "C", "F"] | None = "C") -> Self:
        """One-dimensional copy."""
        if self._storage is None:
            return wrap(type(self), self._array.flatten(order))
        flat = call(np.ravel, self, (), {"order": order})
        return engine.copy(flat) if flat._storage is self._storage else flat

    def item(self, *args: Any) -> Any:
        """An element as a Python scalar (collective where the array is sharded)."""
        if self._storage is None:
            return engine.agreed(self._array.item(*args))
        if windows.limit and (self._window.readable or windows.can_open(self)):
            return self._real.item(*args)
        numpy_stand_in(self).item(*args)  # NumPy's own errors
        given = args[0] if len(args) == 1 and isinstance(args[0], tuple) else args
        if len(given) == 1:  # in the flattened array
            index: tuple = np.unravel_index(operator.index(given[0]) % self._array.size, self._array.shape)
        else:
            index = given or (0,) * self._array.ndim
        key: tuple = (*(int(i) for i in index), ...)
        return engine.item(self._view(structure.index, key)).item()

    def put(self, indices: object, values: object, mode: object = "raise") -> None:
        """Set elements by flat index (as `numpy.put`)."""
        call(np.put, self, (indices, values), {"mode": mode})

    def reshape(self, *shape: Any, order: str | None = "C", copy: object = None) -> Self:
        """The array in another shape: a view where NumPy returns one (as `numpy.reshape`)."""
        options = {"order": order} if copy is None else {"order": order, "copy": copy}
        if self._storage is None:
            return wrap_of(self, self._array.reshape(*shape, **options))
        if not shape:
            numpy_stand_in(self).reshape(*shape)  # NumPy's error
        return call(np.reshape, self, (shape[0] if len(shape) == 1 else shape,), options)

    def resize(self, *new_shape: Any, **options: bool) -> None:
        """Change shape and size in place; new elements are zero. Views of the array keep the old data."""
        np.empty(0, "V0").resize(*new_shape, **options)  # NumPy's errors; it takes no memory
        shape: Any = new_shape[0] if len(new_shape) == 1 else new_shape
        if shape is None or not new_shape:
            return
        shape = (operator.index(shape),) if np.ndim(shape) == 0 else tuple(map(operator.index, shape))
        if not self._array.flags.forc:
            raise ValueError("resize only works on single-segment arrays")
        if prod(shape) == self._array.size and self._array.flags.c_contiguous:
            self._become(self.reshape(shape)._array)  # the memory stays, as in NumPy
            return
        if self.base is not None:
            raise ValueError("cannot resize this array: it does not own its data")
        resized = engine.full(shape, np.zeros((), self._array.dtype)[()], self._array.dtype)
        common = min(self._array.size, resized._array.size)
        target, source = resized.reshape(-1), self.reshape(-1)
        engine.assign(target[:common], source[:common])
        self._array, self._storage, self._ref, self._token = resized._array, resized._storage, None, resized._token
        self._window = SHUT

    def setfield(self, val: object, dtype: DTypeLike | None, offset: int = 0) -> None:
        """Write a value into a field given by dtype and offset."""
        engine.assign(self.getfield(dtype, offset), np.asarray(val, dtype) if not has_handles((val,)) else val)

    def setflags(self, write: bool | None = None, align: bool | None = None, uic: bool | None = None) -> None:
        """Set the array flags (as ndarray.setflags)."""
        self._set_flags(lambda array: array.setflags(write=write, align=align, uic=uic))

    def to_device(self, device: str, /, *, stream: object = None) -> Self:
        """The array itself: ``"cpu"`` is the only device, as in NumPy."""
        np.empty(0).to_device(device, stream=stream)  # type: ignore[arg-type]
        return self

    def view(self, *args: object, **kwargs: object) -> Self:
        """View of the same data, with another dtype if one is given.

        As `type`, ``numpy.ndarray`` is taken for this class; other classes of arrays are refused.
        """
        return self._owned(self._view(structure.view_as, *args, **kwargs))

    # ---- methods that need the values in one place

    def tolist(self) -> Any:
        """The values as nested lists of Python scalars (gathers)."""
        return self.gather().tolist()

    def tobytes(self, order: str | None = "C") -> bytes:
        """The values as bytes (gathers)."""
        return self.gather().tobytes(order)

    def dumps(self) -> bytes:
        """Pickle of the values as a string (gathers)."""
        return pickle.dumps(self, protocol=2)

    def dump(self, file: Any) -> None:
        """Pickle of the values, written to a file by rank 0 (gathers)."""
        pickled = pickle.dumps(self, protocol=2)
        named = not hasattr(file, "write")
        self._write_once(file if named else None, lambda _, opened: (opened if named else file).write(pickled))

    def tofile(self, fid: Any, /, sep: str = "", format: str = "%s") -> None:
        """The values, written to a file (as ndarray.tofile).

        By each rank its part, or some of the pieces of a text, where the file is given by name, and is then complete or
        as it was before; to an open file, by rank 0, which gets them piece by piece.
        """
        named = isinstance(fid, str | bytes | os.PathLike)
        if named and not sep and engine.shardable(self._array.dtype):
            write_array(fid, b"", self)
            return

        def text_of(number: int, piece: np.ndarray) -> bytes:
            import tempfile

            with tempfile.TemporaryFile() as file:  # NumPy makes text for files of the system only
                piece.tofile(file, sep, format)
                file.seek(0)
                return (sep.encode() if number else b"") + file.read()

        def write(read: engine.Read) -> None:
            for key in engine.parts_in_order(self._array.shape, self._array.itemsize):
                read(0, key).tofile(fid, sep, format)

        if self._storage is None or (sep and not named):
            self._write_once(fid if named else None, lambda a, file: a.tofile(file or fid, sep, format))
        elif named:
            keys = list(engine.parts_in_order(self._array.shape, self._array.itemsize, limit=_TEXT_PIECE))
            write_pieces(fid, self, keys, text_of)
        else:
            engine.stream([self], write)

    def _write_once(self, path: Any, write: Callable[[np.ndarray, Any], None]) -> None:
        """Let rank 0 write the gathered values; an error there is raised on every rank.

        Parameters
        ----------
        path : str, bytes, path-like or None
            Of the file that is to be written.
        write : callable
            ``write(values, file)``, where `file` is the new contents of `path`, if it was given.
        """
        comm, array = engine.runtime().comm, self.gather(root=0)

        def work() -> None:
            with contextlib.nullcontext() if path is None else replacing(path, unwritten=comm.unwritten) as file:
                write(array, file)

        on_root(work, comm)

    def _set_flags(self, change: Callable[[np.ndarray], None]) -> None:
        """Change the flags of this array, not those of others that see the data.

        As in NumPy a view becomes writeable only where its base is.
        """
        if self._storage is None:
            change(self._array)
            return
        array, base = structure.view(self._array, structure.itself), self.base
        if base is not None and not is_writeable(base._array):
            change(np.frombuffer(b" ", np.uint8))  # NumPy's error, should the array become writeable
        change(array)
        if base is None:
            self._storage.made_as = array  # the base of views, should this handle be gone
        self._become(array)

    def _become(self, array: np.ndarray) -> None:
        """See the same data through another ndarray (or meta array)."""
        self._array, self._ref, self._window = array, None, SHUT
