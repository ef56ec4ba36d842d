"""Structural operations: the only functions that see meta arrays. They make views and read no element.

The pages of a meta array are without access (`meta_arrays`), so nothing that reads an element, or may hand the array to
code that reads one, can be given it. Here is the complete list of what may: NumPy's functions that make views of every
array, and those written below where NumPy's own would not do: they return a scalar for arrays without axes, copy where
no view exists, call classes of the user's (``view(Subclass)`` calls ``__array_finalize__``), or dispatch on other
arguments.
Everything else gets a stand-in (`stand_in`), metadata, or data.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, SupportsIndex

import numpy as np

from numpy_dist.argument_types import Shape
from numpy_dist.errors import UnsupportedError
from numpy_dist.ir.array_type import ndarray
from numpy_dist.ir.meta_arrays import as_strided, is_writeable, warns_if_written

Operation = Callable[..., np.ndarray]

# NumPy's own that return a view of any array that they accept, and dispatch on their first argument only.
_NUMPYS: tuple[Operation, ...] = (
    np.ndarray.diagonal,
    np.ndarray.getfield,
    np.ndarray.squeeze,
    np.ndarray.swapaxes,
    np.ndarray.transpose,
    np.atleast_1d,
    np.atleast_2d,
    np.atleast_3d,
    np.broadcast_to,
    np.expand_dims,
    np.fliplr,
    np.flipud,
    np.lib.stride_tricks.sliding_window_view,
    np.linalg.diagonal,
    np.linalg.matrix_transpose,
    np.matrix_transpose,
    np.moveaxis,
    np.rollaxis,
    np.rot90,
)
OPERATIONS: set[Operation] = {*_NUMPYS, as_strided}


def view(array: np.ndarray, operation: Operation, *args: object, **kwargs: object) -> np.ndarray:
    """View of an array, perhaps a meta array, that a listed operation makes.

    Raises
    ------
    AssertionError
        For an operation that is not listed.
    """
    if operation not in OPERATIONS:
        raise AssertionError(f"{operation} is no structural operation: it may not see arrays without memory")
    return operation(array, *args, **kwargs)


def _structural(operation: Operation) -> Operation:
    OPERATIONS.add(operation)
    return operation


def stand_in(array: np.ndarray) -> np.ndarray:
    """Array of the same shape, dtype and writeability over one element of memory, for NumPy's errors."""
    made = np.broadcast_to(np.ones((), array.dtype), array.shape)
    made.flags.writeable = is_writeable(array) or warns_if_written(array)
    return made


def like(array: np.ndarray) -> np.ndarray:
    """New memory with the shape, dtype and memory order of an array (`numpy.empty_like`)."""
    return np.empty_like(array, order="K", subok=False)


# -- indexing --------------------------------------------------------------------------------------------------------


@_structural
def index(array: np.ndarray, key: object) -> np.ndarray:
    """Basic index: integers, slices, None and ``...``. An array also where NumPy would return one element."""
    items = key if type(key) is tuple else (key,)
    whole = True
    for item in items:
        if item is Ellipsis:
            whole = False
        elif not (item is None or type(item) is slice or _is_integer(item)):
            raise AssertionError(f"an index of {type(item)} makes no view")
    return array[(*items, ...) if whole else items]


def _is_integer(item: object) -> bool:
    return isinstance(item, int | np.integer) and not isinstance(item, bool)


@_structural
def fields(array: np.ndarray, names: str | list[str]) -> np.ndarray:
    """View of a field, or of several, of a structured array."""
    if not (isinstance(names, str) or all(isinstance(name, str) for name in names)):
        raise AssertionError(f"{names} are no names of fields")
    return array[names]


@_structural
def part(array: np.ndarray, start: Sequence[int], skip: int, dtype: np.dtype) -> np.ndarray:
    """View of one element, as one axis for each of the array's, or of some bytes of it with a dtype of their own.

    Parameters
    ----------
    start : sequence of int
        Index of the element.
    skip : int
        Bytes between its beginning and the view's.
    """
    first = index(array, tuple(slice(i, i + 1) for i in start))
    if not skip and dtype == array.dtype:
        return first
    one = as_strided(first, (1,), (array.itemsize,)).view(np.uint8)[skip : skip + 1]
    return as_strided(one, (dtype.itemsize,), (1,)).view(dtype)


@_structural
def alike(array: np.ndarray, sample: np.ndarray, found: np.ndarray, count: int) -> np.ndarray:
    """View of an array as `found` is one of `sample`, which is like the array but for `count` leading axes of extent 1.

    What a function makes of elements, each by itself, is learnt in this way without showing it the array.
    """
    skip = found.__array_interface__["data"][0] - sample.__array_interface__["data"][0]
    shape = (*array.shape[:count], *found.shape[count:])
    strides = (*array.strides[:count], *found.strides[count:])
    first = part(array, (0,) * array.ndim, skip, found.dtype)
    return as_strided(first, shape, strides, writeable=found.flags.writeable and is_writeable(array))


# -- shapes ----------------------------------------------------------------------------------------------------------


@_structural
def reshape(array: np.ndarray, shape: Shape, order: Any = "C") -> np.ndarray:
    """View in another shape.

    Raises
    ------
    ValueError
        NumPy's own, also where the elements would have to be copied.
    """
    return array.reshape(shape, order=order, copy=False)


@_structural
def flip(array: np.ndarray, axis: int | tuple[int, ...] | None = None) -> np.ndarray:
    """`numpy.flip`, which returns a scalar for arrays without axes."""
    if array.ndim:
        return np.flip(array, axis)
    np.flip(stand_in(array), axis)  # NumPy's error, for any axis
    return array[...]


@_structural
def itself(array: np.ndarray) -> np.ndarray:
    """Another array object for the same elements, whose metadata may be changed."""
    return array[...]


def broadcast_arrays(arrays: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
    """`numpy.broadcast_arrays` of exact ndarrays: where all have one shape they are returned themselves."""
    assert all(type(array) is np.ndarray for array in arrays)
    return np.broadcast_arrays(*arrays)


def split(
    array: np.ndarray, function: Callable[..., list[np.ndarray]], sections: Any, *axis: SupportsIndex
) -> list[np.ndarray]:
    """Views that `numpy.split` and its like make. (They dispatch on the positions, too.)"""
    if function not in (np.split, np.array_split, np.hsplit, np.vsplit, np.dsplit):
        raise AssertionError(f"{function} splits no arrays")
    if type(sections) not in (int, list, tuple, np.ndarray) and hasattr(sections, "__len__"):
        sections = list(sections)
    return function(array, sections, *axis)


@_structural
def einsum(array: np.ndarray, subscripts: str) -> np.ndarray:
    """`numpy.einsum` of subscripts that permute axes and take diagonals.

    Raises
    ------
    ValueError
        NumPy's own, for subscripts that do not fit the array.
    """
    subscripts = "".join(subscripts)  # what derives from `str` may dispatch
    if np.einsum(subscripts, stand_in(array)).flags.owndata:
        raise AssertionError(f"einsum with {subscripts!r} makes no view of an array of shape {array.shape}")
    return np.einsum(subscripts, array) if array.ndim else array[...]


# -- attributes ------------------------------------------------------------------------------------------------------

_VIEWS = ("T", "mT", "imag", "real")
_CHANGES = ("dtype", "shape", "strides", "_set_dtype", "_set_shape")


@_structural
def attribute(array: np.ndarray, name: str) -> np.ndarray:
    """View that an attribute is; ``imag`` for complex numbers only, since others have none."""
    if name not in _VIEWS:
        raise AssertionError(f"{name} is no view")
    return getattr(array, name)


@_structural
def view_as(array: np.ndarray, *args: object, **kwargs: object) -> np.ndarray:
    """``ndarray.view``, with another dtype if one is given.

    Raises
    ------
    UnsupportedError
        For another class of arrays, whose ``__array_finalize__`` would be given this one.
    """
    return array.view(*map(_same_class, args), **{name: _same_class(kind) for name, kind in kwargs.items()})


def _same_class(kind: object) -> object:
    if kind is ndarray:
        return np.ndarray
    if isinstance(kind, type) and issubclass(kind, np.ndarray) and kind is not np.ndarray:
        raise UnsupportedError("a distributed array has no view as another array class; use x.gather() or x.local")
    return kind


@_structural
def changed(array: np.ndarray, name: str, value: object) -> np.ndarray:
    """Another array object for the same data, of which an attribute is set, with NumPy's errors and warnings."""
    if name not in _CHANGES:
        raise AssertionError(f"{name} cannot be set")
    if name in ("shape", "_set_shape"):
        value = _shape_without_copy(array, value)
    made = array[...]
    if name.startswith("_set"):
        getattr(made, name)(value)
    else:
        setattr(made, name, value)
    return made


def _shape_without_copy(array: np.ndarray, shape: Any) -> object:
    """A shape in which the elements need not move. NumPy complains of others, but only after it has copied them all."""
    try:
        shape = operator.index(shape) if hasattr(shape, "__index__") else tuple(map(operator.index, shape))
    except TypeError:
        np.ones(1).shape = shape  # NumPy's complaint
    try:
        array.reshape(shape, copy=False)
    except ValueError as error:
        if "copy" in str(error):
            np.ones((2, 2)).T.shape = 4  # NumPy's complaint
    return shape


# -- questions -------------------------------------------------------------------------------------------------------


def shares_memory(a: np.ndarray, b: np.ndarray, max_work: Any, exactly: bool) -> bool:
    """Whether two meta arrays of one storage have elements (or, not `exactly`, bounds) in common."""
    assert type(a) is type(b) is np.ndarray
    return (np.shares_memory if exactly else np.may_share_memory)(a, b, max_work=max_work)
