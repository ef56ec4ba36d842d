"""`x.flat`: the elements of an array in C order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import EllipsisType
from typing import Any

import numpy as np

from numpy_dist import engine


def _comparison(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def compare(self: Any, other: Any) -> Any:
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

    def __init__(self, x: Any) -> None:
        self._base = x
        self._index = 0
        self._values: Iterator[Any] | None = None

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

    @property
    def coords(self) -> tuple[int, ...]:
        """Indices of the next element."""
        if self.index >= self.base.size:
            return (self.base.shape[0], *(0 for _ in self.base.shape[1:])) if self.base.ndim else ()
        return tuple(int(i) for i in np.unravel_index(self.index, self.base.shape))

    def copy(self) -> Any:
        """One-dimensional copy of the array."""
        return self.base.flatten()

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return function(*_copied(args), **_copied(kwargs))

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if any(isinstance(x, FlatIterator) for x in kwargs.get("out", ())):
            raise TypeError("return arrays must be of ArrayType")
        return getattr(ufunc, method)(*_copied(inputs), **_copied(kwargs))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(self.copy(), dtype=dtype)

    def __len__(self) -> int:
        return self.base.size

    def __iter__(self) -> FlatIterator:
        return self

    def __next__(self) -> Any:
        if self.index >= self.base.size:
            raise StopIteration
        if self._values is None:
            self._values = iter(self._flattened()[self.index :])
        value = next(self._values)
        self._index += 1
        return value

    def _index_of(self, key: Any, writes: bool = False) -> Any:
        """An index as the flattened array takes it, after NumPy's errors and warnings for what is none."""
        if type(key) in (int, slice, EllipsisType) or engine.is_handle(key):
            return key
        if isinstance(key, np.ndarray | list) and np.asarray(key).dtype.kind in "iu":
            return key
        self._stand_in().flat[key]
        if writes and key in ((), (Ellipsis,)):  # before 2.4 NumPy ends the process
            raise IndexError("Assigning to a flat iterator with a 0-D index is not supported")
        if isinstance(key, tuple):
            return self._index_of(key[0], writes) if key else Ellipsis
        if isinstance(key, bool):
            return 0 if key else slice(0)
        found = np.asarray(key)
        return found if found.dtype.kind == "b" else found.astype(np.intp) if found.ndim else int(found)

    def _refuse(self, key: Any) -> None:
        """NumPy's error for an index that is out of bounds."""
        if not engine.is_handle(key):
            self._stand_in().flat[key]

    def _stand_in(self) -> np.ndarray:
        """As many elements in one byte of memory, for NumPy's errors."""
        return np.broadcast_to(np.zeros((), bool), (self.base.size,))

    def __getitem__(self, key: Any) -> Any:
        try:
            found = self._flattened()[self._index_of(key)]
        except IndexError:
            self._refuse(key)
            raise
        return found.copy() if engine.is_handle(found) else found

    def __setitem__(self, key: Any, value: Any) -> None:
        base = self.base
        if not engine.may_write(base._array):
            raise ValueError("underlying array is read-only")
        key, flattened = self._index_of(key, writes=True), self._flattened()
        is_view = flattened._storage is base._storage and base._array.flags.c_contiguous
        target = flattened if is_view else flattened.copy()
        whole = target[key] if isinstance(key, (slice, type(Ellipsis))) else None
        if whole is None:
            try:
                target[key] = value
            except IndexError:
                self._refuse(key)
                raise
        elif whole.size:
            # The values are repeated as often as they fit, as flatiter does.
            values = value if engine.is_handle(value) else np.asarray(value, base.dtype)
            flat = values.reshape(-1)
            if flat.size == 0:
                raise ValueError("Error setting single item of array.")
            whole[...] = flat if flat.size in (1, whole.size) else np.resize(flat, whole.size)
        if not is_view:
            base[...] = target.reshape(base.shape)

    def __delitem__(self, key: Any) -> None:
        raise TypeError("Cannot delete iterator elements")

    __eq__ = _comparison(np.equal)  # type: ignore[assignment]
    __ne__ = _comparison(np.not_equal)  # type: ignore[assignment]
    __lt__ = _comparison(np.less)
    __le__ = _comparison(np.less_equal)
    __gt__ = _comparison(np.greater)
    __ge__ = _comparison(np.greater_equal)
    __hash__ = None  # type: ignore[assignment]
