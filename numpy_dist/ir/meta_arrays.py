"""Meta arrays: ndarrays that stand for global arrays. They have shape, dtype, strides and flags, and no memory.

Their addresses begin where nobody may read or write, so that a program that touches the values of one stops there and
then, with the stack (``python -X faulthandler``), instead of going on with wrong values.
"""

from __future__ import annotations

import ctypes
import mmap
import sys
from collections.abc import Sequence

import numpy as np

# Address space only: no memory stands behind it. Where it is scarce (``ulimit -v``) the start of a meta array must do.
_RESERVED = (1 << 36, 1 << 20)


def _without_access() -> mmap.mmap:
    """Pages that may not be touched."""
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0)
    for size in _RESERVED[:-1]:
        try:
            return mmap.mmap(-1, size, flags, 0)
        except OSError:
            continue
    return mmap.mmap(-1, _RESERVED[-1], flags, 0)


_PAGES = _without_access()
_ANCHOR_ADDRESS: int = np.frombuffer(_PAGES, np.uint8).__array_interface__["data"][0]
# The virtual memory of all arrays: as long as any may be, which the pages are not. Through ctypes, since `mmap` gives
# out pages without access as read-only, and meta arrays are writeable.
_LONGEST = sys.maxsize // 2
_ANCHOR = np.ndarray(_LONGEST, np.uint8, (ctypes.c_char * _LONGEST).from_address(_ANCHOR_ADDRESS))  # type: ignore[arg-type]
# `data` is the first field of PyArrayObject after the object head (NumPy's public C API).
_DATA_FIELD = object.__basicsize__
_address_at = ctypes.c_ssize_t.from_address


def _field_is_where_we_think() -> bool:
    probe = _ANCHOR[16:]
    return _address_at(id(probe) + _DATA_FIELD).value == probe.__array_interface__["data"][0]


if _field_is_where_we_think():

    def address_of(array: np.ndarray) -> int:
        """Address of the first element of an array."""
        return _address_at(id(array) + _DATA_FIELD).value

    def offset_of(meta_array: np.ndarray) -> int:
        """Byte offset of a meta array in its storage's virtual array."""
        return _address_at(id(meta_array) + _DATA_FIELD).value - _ANCHOR_ADDRESS
else:  # another object layout (free-threaded or debug builds): the slow, documented way

    def address_of(array: np.ndarray) -> int:
        """Address of the first element of an array."""
        return array.__array_interface__["data"][0]

    def offset_of(meta_array: np.ndarray) -> int:
        """Byte offset of a meta array in its storage's virtual array."""
        return meta_array.__array_interface__["data"][0] - _ANCHOR_ADDRESS


def anchored() -> tuple[int, int]:
    """Address and length of the pages without access, in which meta arrays begin."""
    return _ANCHOR_ADDRESS, len(_PAGES)


def c_strides(shape: Sequence[int], itemsize: int) -> tuple[int, ...]:
    """Strides in bytes of a C-ordered array."""
    strides, step = [], itemsize
    for n in reversed(shape):
        strides.append(step)
        step *= max(n, 1)
    return tuple(reversed(strides))


_WRITEABLE, _WARNS = 0x0400, 1 << 31  # of NumPy's public C API: NPY_ARRAY_WRITEABLE, NPY_ARRAY_WARN_ON_WRITE


def is_writeable(array: np.ndarray) -> bool:
    """Whether an array may be written, and nobody is to be warned of it, as of what `broadcast_arrays` returns.

    NumPy also warns who asks such an array's ``flags.writeable``.
    """
    return array.flags.num & (_WRITEABLE | _WARNS) == _WRITEABLE


def warns_if_written(array: np.ndarray) -> bool:
    """Whether an array may be written, but its user is to be warned of it, once."""
    return bool(array.flags.num & _WARNS)


class Unrecordable(TypeError):
    """A call that the engine cannot record.

    Attributes
    ----------
    reason : str
        Why a rule that meets it leaves it to the fallback.
    """

    def __init__(self, reason: str, message: str | None = None) -> None:
        super().__init__(reason if message is None else message)
        self.reason = reason


class Unshardable(Unrecordable):
    """Values of a dtype that no storage can hold: objects, and values without a byte."""

    def __init__(self, dtype: np.dtype) -> None:
        why = "their references cannot lie in plain memory" if dtype.hasobject else "they have no place in memory"
        values = "objects" if dtype.hasobject else "values"
        super().__init__(f"arrays of dtype {dtype} are not distributed", f"{values} ({dtype}) cannot be sharded: {why}")


def placed(dtype: np.dtype, offset: int, shape: Sequence[int], strides: Sequence[int]) -> np.ndarray:
    """The meta array of a view that begins at an offset, in bytes, of a virtual array."""
    return np.ndarray(shape, dtype, _ANCHOR.data, offset, strides)


_META_ARRAYS: dict[tuple, np.ndarray] = {}


def is_shared(array: np.ndarray) -> bool:
    """Whether an array is what `meta_array` returns for its shape and dtype."""
    return _META_ARRAYS.get((array.shape, array.dtype)) is array


def as_strided(array: np.ndarray, shape: Sequence[int], strides: Sequence[int], writeable: bool = True) -> np.ndarray:
    """NumPy's, and for structured dtypes with padding, too, which NumPy takes for a field without a name."""
    if array.dtype.names is None or array.dtype.hasobject:
        return np.lib.stride_tricks.as_strided(array, shape, strides, writeable=writeable)
    bytes_of = array.view(f"V{array.dtype.itemsize}")
    return np.lib.stride_tricks.as_strided(bytes_of, shape, strides, writeable=writeable).view(array.dtype)


def meta_array(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """The meta array of a whole C-ordered array; shared, since meta arrays are metadata only."""
    key = (shape, dtype)
    found = _META_ARRAYS.get(key)
    if found is None or found.dtype is not dtype:
        if len(_META_ARRAYS) > 1024:
            _META_ARRAYS.clear()
        if dtype.hasobject or not dtype.itemsize:
            raise Unshardable(dtype)
        if max(shape, default=0) > sys.maxsize:
            np.empty(shape, dtype)  # NumPy's error
        base = np.ndarray((), dtype, buffer=_ANCHOR.data)
        strides = np.empty(shape, dtype).strides if 0 in shape else c_strides(shape, dtype.itemsize)
        found = as_strided(base, shape, strides)
        _META_ARRAYS[key] = found
    return found
