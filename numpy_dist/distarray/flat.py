"""`x.flat`: the elements of an array in C order."""

from __future__ import annotations

from collections.abc import Iterator
from types import EllipsisType
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from numpy_dist import engine
from numpy_dist.argument_types import Function, Keywords
from numpy_dist.distarray.operators import REALS
from numpy_dist.engine.data import windows
from numpy_dist.ir import structure


def _count(key: object) -> int:
    """How many elements an array of integers or of truth values picks (collective for a distributed mask)."""
    key = key if engine.is_handle(key) else np.asarray(key)
    return int(np.count_nonzero(key)) if key.dtype.kind == "b" else key.size


def _repeated(values: Any, count: int) -> Any:
    """One value, or so many: the given ones again and again, as often as they fit, as flatiter does."""
    return values if values.size in (1, count) else np.resize(values, count)


def _position(number: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The indices of an element by its number in C order."""
    found = []
    for length in shape[:0:-1]:
        number, index = divmod(number, length)
        found.append(index)
    return (number, *found[::-1]) if shape else ()


_END = object()


def _comparison(function: Function) -> Function:
    def compare(self: FlatIterator, other: object) -> object:
        return function(self._flattened(), other)

    return compare


def _copied(value: Any) -> Any:
    """An argument in which iterators are copies of the elements, as functions of NumPy make them."""
    if isinstance(value, FlatIterator):
        return value.copy()
    if isinstance(value, dict):
        return {name: _copied(item) for name, item in value.items()}
    return type(value)(map(_copied, value)) if type(value) in (tuple, list) else value


class FlatIterator:
    """What `numpy.flatiter` is for ndarrays: an iterator over the elements that can be indexed and assigned to.

    Parameters
    ----------
    x : DistArray
    """

    def __init__(self, x: object) -> None:
        self._base = x
        self._index = 0
        self._values: Iterator[object] | None = None

    @property
    def base(self) -> Any:
        """The array."""
        return self._base

    @property
    def index(self) -> int:
        """Position of the next element."""
        return self._index

    def _flattened(self) -> Any:
        return self.base.reshape(-1)

    def _rewind(self) -> None:
        """Begin again, as NumPy's iterators do once their elements are asked for, or set, by other means."""
        self._index, self._values = 0, None

    @property
    def coords(self) -> tuple[int, ...]:
        """Indices of the next element."""
        if self.index >= self.base.size:
            return (self.base.shape[0], *(0 for _ in self.base.shape[1:])) if self.base.ndim else ()
        return tuple(int(i) for i in np.unravel_index(self.index, self.base.shape))

    def copy(self) -> Any:
        """One-dimensional copy of the array."""
        return self.base.flatten()

    def __array_function__(self, function: Function, types: object, args: tuple, kwargs: Keywords) -> object:
        return function(*_copied(args), **_copied(kwargs))

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: object, **kwargs: Any) -> object:
        if any(isinstance(x, FlatIterator) for x in kwargs.get("out", ())):
            raise TypeError("return arrays must be of ArrayType")
        return getattr(ufunc, method)(*_copied(inputs), **_copied(kwargs))

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(self.copy(), dtype=dtype)

    def __len__(self) -> int:
        return self.base.size

    def __iter__(self) -> FlatIterator:
        return self

    def __next__(self) -> Any:
        if self.index >= self.base.size:
            raise StopIteration
        found = next(self._values, _END) if self._values is not None else _END
        if found is _END:  # of a line
            self._values = iter(self._line())
            found = next(self._values)
        self._index += 1
        return found

    def _line(self) -> engine.Handle:
        """A view of the next elements, as many as possible: of all, or of those along the last axis."""
        if self.base.ndim == 0 or self.base.flags.c_contiguous:
            return self._flattened()[self.index :]
        *line, start = self.coords
        return self.base._view(structure.index, (*line, slice(start, None)))

    def _index_of(self, key: Any, writes: bool = False) -> object:
        """An index as the flattened array takes it, after NumPy's errors and warnings for what is none."""
        if type(key) in (int, slice, EllipsisType) or engine.is_handle(key):
            return key
        if isinstance(key, np.ndarray | list) and np.asarray(key).dtype.kind in "iu":
            return key
        self._stand_in().flat[key]
        if writes and isinstance(key, tuple) and key in ((), (Ellipsis,)):  # before 2.4 NumPy ends the process
            raise IndexError("Assigning to a flat iterator with a 0-D index is not supported")
        if isinstance(key, tuple):
            return self._index_of(key[0], writes) if key else Ellipsis
        if isinstance(key, bool):
            return 0 if key else slice(0)
        found = np.asarray(key)
        return found if found.dtype.kind == "b" else found.astype(np.intp) if found.ndim else int(found)

    def _refuse(self, key: Any, writes: bool = False) -> None:
        """NumPy's error for an index that is out of bounds, which for writing has other words in some versions."""
        if engine.is_handle(key):
            return
        if writes:
            self._stand_in().flat[key] = False
        else:
            self._stand_in().flat[key]

    def _stand_in(self) -> np.ndarray:
        """As many elements in one byte of memory, for NumPy's errors."""
        return np.ndarray((self.base.size,), bool, bytearray(1), strides=(0,))

    def __getitem__(self, key: object) -> Any:
        if type(key) is int and (seen := windows.seen(self._base)) is not None:
            self._index, self._values = 0, None
            windows.asked_for(seen.nbytes)
            return seen.flat[key]
        if not isinstance(key, bool | np.bool_):
            self._rewind()
        try:
            found = self._flattened()[self._index_of(key)]
        except IndexError:
            self._refuse(key)
            raise
        return found.copy() if engine.is_handle(found) else found

    def __setitem__(self, key: object, value: object) -> None:
        base = self.base
        if type(key) is int and type(value) in REALS and (seen := windows.seen(base)) is not None:
            size = seen.size
            if seen.dtype.char == "d" and -size <= key < size:
                self._index, self._values = 0, None
                base[_position(key % size, seen.shape)] = value
                return
        if not engine.may_write(base._array):
            raise ValueError("underlying array is read-only")
        if not isinstance(key, bool | np.bool_):
            self._rewind()
        key, flattened = self._index_of(key, writes=True), self._flattened()
        is_view = flattened._storage is base._storage and base._array.flags.c_contiguous
        target = flattened if is_view else flattened.copy()
        if type(key) is int:
            if not -base.size <= key < base.size:
                self._refuse(key, writes=True)
            few = np.ones([min(n, 2) for n in value.shape], value.dtype) if engine.is_handle(value) else value
            # NumPy's errors for what is not one element, and for casts that may not happen; assigning warns of them.
            if isinstance(few, np.ndarray | np.generic) and engine.is_real_part(few.dtype, base.dtype):
                few = few.real
            state: Keywords = {name: act if act == "raise" else "ignore" for name, act in np.geterr().items()}
            with np.errstate(**state):
                np.zeros(1, base.dtype).flat[0] = few
        else:
            if isinstance(value, np.ndarray | np.generic | engine.Handle):
                value = engine.without_imaginary_part(value, base.dtype)
            value = np.reshape(value if engine.is_handle(value) else np.asarray(value, base.dtype), -1)
            if not value.size:
                return
        try:
            if isinstance(key, slice | EllipsisType):
                whole = target[key]
                whole[...] = _repeated(value, whole.size)
            else:
                target[key] = value if type(key) is int else _repeated(value, _count(key))
        except IndexError:
            self._refuse(key, writes=True)
            raise
        if not is_view:
            base[...] = target.reshape(base.shape)

    def __delitem__(self, key: object) -> None:
        raise TypeError("Cannot delete iterator elements")

    __eq__ = _comparison(np.equal)  # type: ignore[assignment]
    __ne__ = _comparison(np.not_equal)  # type: ignore[assignment]
    __lt__ = _comparison(np.less)
    __le__ = _comparison(np.less_equal)
    __gt__ = _comparison(np.greater)
    __ge__ = _comparison(np.greater_equal)
    __hash__ = None  # type: ignore[assignment]
