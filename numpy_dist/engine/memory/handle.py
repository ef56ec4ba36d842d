"""Handles: a view over a storage, or a replicated array. `DistArray` is one, registered with the engine."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np

from numpy_dist.engine.memory.storage import Storage, Token
from numpy_dist.ir import structure
from numpy_dist.ir.array_type import Distributed
from numpy_dist.ir.statements import Ref
from numpy_dist.ir.views import View, index_of, slice_of

if TYPE_CHECKING:
    from numpy.typing import DTypeLike
    from typing_extensions import TypeIs

    from numpy_dist.argument_types import Function

H = TypeVar("H", bound="Handle")


class Shut:
    """The window of arrays whose elements are not to be had here and now (see `engine.data.windows`)."""

    __slots__ = ()

    readable = writeable = False


SHUT = Shut()


class Handle(Distributed):
    """A distributed array as the engine knows it, the base of `DistArray`: its metadata, and where its data are.

    Attributes
    ----------
    _array : ndarray
        The data itself where the array is replicated; else a meta array, whose values must never be read.
    _storage : Storage or None
        None for a replicated array.
    _ref : Ref or None
        What statements that read this view refer to; made when it is first needed (`ref_of`).
    _token : Token or None
        Keeps the storage's values wanted.
    _owner : Handle
        What a view of all the data, or of a replicated array, is a view of; unset where it is none, or nobody knows.
    _window : Window
        Whether the elements of a sharded array can be read and written here and now (`engine.data.windows`).
    _real : ndarray
        These elements, while the window is readable.
    """

    __slots__ = ("__weakref__", "_array", "_owner", "_real", "_ref", "_storage", "_token", "_window")

    _array: np.ndarray
    _owner: Handle
    _ref: Ref | None
    _storage: Storage | None
    _token: Token | None
    _window: Any
    _real: np.ndarray

    if TYPE_CHECKING:  # what the registered class has

        @property
        def shape(self) -> tuple[int, ...]: ...
        @property
        def dtype(self) -> np.dtype: ...
        @property
        def ndim(self) -> int: ...
        @property
        def size(self) -> int: ...
        @property
        def nbytes(self) -> int: ...
        @property
        def strides(self) -> tuple[int, ...]: ...

        @property
        def real(self) -> Self: ...
        @property
        def imag(self) -> Self: ...

        astype: Function
        copy: Function
        gather: Function
        item: Function
        transpose: Function

        def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> np.ndarray: ...
        def __len__(self) -> int: ...
        def __getitem__(self, key: Any) -> Any: ...

    def _view(self, operation: structure.Operation, *args: object, **kwargs: object) -> Self:
        """The handle of a view that a structural operation makes (see `ir.structure`)."""
        return self._seen_as(structure.view(self._array, operation, *args, **kwargs))

    def _seen_as(self, array: np.ndarray) -> Self:
        """The handle of a view of this array, which a structural operation has made of its `_array`."""
        return view_of_replicated(self, array) if self._storage is None else self._sharded_view(array)

    def _sharded_view(self, array: np.ndarray) -> Self:
        """The handle of a view of a sharded array; `array` is a meta array."""
        if not array.itemsize:  # a field without a byte: there is nothing to share
            return view_of_replicated(self, np.zeros(array.shape, [("it", array.dtype)])["it"])
        made = object.__new__(type(self))
        made._array = array
        storage: Any = self._storage
        made._storage, made._ref = storage, None
        made._token, made._window = storage.token, SHUT
        if storage.owner is None:
            storage.owner = weakref.ref(self)
        owner = getattr(self, "_owner", None)
        if owner is not None:
            made._owner = owner
        return made

    def _owned(self, view: Self) -> Self:
        """A view of this array that the user has asked for; it keeps the array."""
        is_whole = self._storage is None and self._array.base is None
        view._owner = self if is_whole else getattr(self, "_owner", self)
        return view


if TYPE_CHECKING:

    class ShardedHandle(Handle):
        """A handle of a sharded array, as type checkers see what `is_sharded` says yes to: it has a storage."""

        _storage: Storage
        _token: Token


_handle_class: type[Handle] = Handle
_new = object.__new__


def register_handle_class(cls: type[Handle]) -> None:
    """Make `cls` what the engine returns."""
    global _handle_class
    _handle_class = cls


def sharded(storage: Storage, array: np.ndarray) -> Handle:
    """A handle of a view (`array` is a meta array) over a storage."""
    made = object.__new__(_handle_class)
    made._array = array
    made._storage = storage
    made._ref = None
    made._token = storage.token
    made._window = SHUT
    return made


def as_made(view: H) -> H:
    """The view of new memory that the user gets as the array itself: it has no base, whatever its axes are."""
    if view._storage is not None:
        view._storage.made_as, view._storage.owner = view._array, None
        if hasattr(view, "_owner"):
            del view._owner
    return view


def ref_of(handle: Handle) -> Ref:
    """The ref of a sharded handle's view."""
    found = handle._ref
    if found is None:
        found = handle._ref = Ref(handle._storage, handle._array)
    return found


def selected(handle: Handle, key: Any, as_handle: bool = False) -> Any:
    """What a basic index selects of a sharded array, if a table can tell; None for other indices.

    Not for handles whose meta array is their own: its flags may be others.

    Returns
    -------
    Ref, Handle or None
        A handle if `as_handle`.
    """
    storage: Any = handle._storage
    ref: Any = handle._ref
    if ref is None:
        ref = ref_of(handle)
    layout = storage.layout
    view: View = ref._view if ref._layout is layout else ref.view
    if view.array is not handle._array:
        return None
    shape = view.shape
    kind = type(key)
    if kind is slice and shape:
        index: Any = key.indices(shape[0])
    elif kind is tuple and len(key) == 2 and type(key[0]) is slice and type(key[1]) is slice and len(shape) > 1:
        index = key[0].indices(shape[0]), key[1].indices(shape[1])
    else:
        index = index_of(key, shape)
        if index is None:
            return None
    try:
        part: Any = view.parts[index]
    except KeyError:
        part = slice_of(view, key, index)
        if part is None:
            return None
    array = part.array
    found: Ref = _new(Ref)  # as Ref(storage, array, part) does, in a third of the time
    found.storage, found.array = storage, array
    found._view, found._layout = part, layout
    if not as_handle:
        return found
    if storage.owner is None:
        storage.owner = weakref.ref(handle)
    made: Handle = _new(_handle_class)
    made._array, made._storage = array, storage
    made._ref, made._token = found, handle._token
    made._window = SHUT
    return handle._owned(made) if part is view else made


def replicated(array: np.ndarray) -> Any:
    """A handle of data that are the same on every rank."""
    made = object.__new__(_handle_class)
    made._array = array
    made._storage = None
    made._ref = None
    made._token = None
    return made


def view_of_replicated(x: H, array: np.ndarray) -> H:
    """The handle of a view of a replicated array."""
    return x._owned(replicated(array))


def plain(x: object) -> Any:
    """The data of a replicated handle as an ndarray; what is no handle as it is.

    Raises
    ------
    AssertionError
        For a sharded array, whose data are in no one place.
    """
    if not isinstance(x, Handle):
        return x
    if x._storage is not None:
        shape, dtype = x._array.shape, x._array.dtype
        raise AssertionError(f"a sharded array of shape {shape}, {dtype}, was taken for a replicated one")
    return x._array


def metadata(x: object) -> Any:
    """The ndarray that has the shape, dtype, strides and flags of a handle, and nothing else: perhaps a meta array.

    What is no handle as it is.
    """
    return x._array if isinstance(x, Handle) else x


def is_handle(x: object) -> TypeIs[Handle]:
    """Whether `x` is an array of ours."""
    return isinstance(x, Handle)


def is_sharded(x: object) -> TypeIs[ShardedHandle]:
    """Whether `x` is an array of ours that is cut into shards (its `_array` is a meta array)."""
    return isinstance(x, Handle) and x._storage is not None
