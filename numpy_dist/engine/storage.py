"""Storages: what a rank holds of one global array, and the phantoms that stand for the array itself."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from numpy_dist.engine.pool import Pool
from numpy_dist.layout.layout import Layout
from numpy_dist.layout.regions import Box

_ANCHOR = np.zeros(4096, np.uint8)
_ANCHOR_ADDRESS: int = _ANCHOR.__array_interface__["data"][0]
_DATA_FIELD = object.__basicsize__  # `data` is the first field of PyArrayObject after the object head (NumPy's public C API)
_address_at = ctypes.c_ssize_t.from_address


def _field_is_where_we_think() -> bool:
    probe = _ANCHOR[16:]
    return _address_at(id(probe) + _DATA_FIELD).value == probe.__array_interface__["data"][0]


if _field_is_where_we_think():

    def offset_of(phantom: np.ndarray) -> int:
        """Byte offset of a phantom in its storage's virtual array."""
        return _address_at(id(phantom) + _DATA_FIELD).value - _ANCHOR_ADDRESS
else:  # another object layout (free-threaded or debug builds): the slow, documented way

    def offset_of(phantom: np.ndarray) -> int:
        """Byte offset of a phantom in its storage's virtual array."""
        return phantom.__array_interface__["data"][0] - _ANCHOR_ADDRESS


def restride(array: np.ndarray, shape: Sequence[int], strides: Sequence[int], writeable: bool = True) -> np.ndarray:
    """`as_strided` for phantoms (never read)."""
    return np.lib.stride_tricks.as_strided(array, shape, strides, writeable=writeable)


def c_strides(shape: Sequence[int], itemsize: int) -> tuple[int, ...]:
    """Strides in bytes of a C-ordered array."""
    strides, step = [], itemsize
    for n in reversed(shape):
        strides.append(step)
        step *= max(n, 1)
    return tuple(reversed(strides))


_PHANTOMS: dict[tuple, np.ndarray] = {}


def phantom(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """The phantom of a whole C-ordered array; shared, since phantoms are metadata only."""
    key = (shape, dtype, dtype.metadata and id(dtype))
    found = _PHANTOMS.get(key)
    if found is None:
        if len(_PHANTOMS) > 1024:
            _PHANTOMS.clear()
        base = np.ndarray((), dtype, buffer=_ANCHOR.data) if dtype.itemsize <= _ANCHOR.size else np.zeros((), dtype)
        found = _PHANTOMS[key] = restride(base, shape, c_strides(shape, dtype.itemsize))
    return found


class Token:
    """Held by handles only: its reference count tells whether anybody can still ask for the storage."""

    __slots__ = ()


class Storage:
    """A global array's data on this rank.

    Attributes
    ----------
    shape, dtype, layout
        Of the global array, the same on every rank.
    memory : ndarray of uint8 or None
        The rank's allocation; None until a statement has stored something here (or on ranks that hold nothing).
    low : tuple of int
        Global index of the allocation's first element: the owned box's start less the margin.
    extent : tuple of int
        The allocation's shape, margins included.
    fresh : list
        Ghost regions of all ranks that were exchanged since the last write.
    last_write : int
        Serial of the last recorded statement that writes here; -1 if none.
    pinned : bool
        Memory was handed out: it may neither move nor be swapped.
    spare : tuple or None
        A second allocation for versions, and the region of the last versioned write.
    """

    __slots__ = (
        "__weakref__", "dtype", "extent", "fresh", "last_write", "layout", "low", "memory", "pinned", "pool", "shape", "spare", "token",
    )

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype, layout: Layout, pool: Pool) -> None:
        self.shape, self.dtype, self.layout, self.pool = shape, dtype, layout, pool
        self.memory: np.ndarray | None = None
        self.low: tuple[int, ...] = ()
        self.extent: tuple[int, ...] = ()
        self.fresh: list[Any] = []
        self.last_write = -1
        self.pinned = False
        self.spare: tuple[np.ndarray, Any] | None = None
        self.token = Token()

    def phantom(self) -> np.ndarray:
        """The phantom of the whole array."""
        return phantom(self.shape, self.dtype)

    @property
    def alive(self) -> bool:
        """Whether a handle refers to it."""
        return sys.getrefcount(self.token) > 2

    @property
    def nbytes(self) -> int:
        """Bytes of the global array."""
        return self.layout.nelements * self.dtype.itemsize

    def allocate(self, box: Box, margin: Sequence[tuple[int, int]] | None = None) -> None:
        """Make the local allocation for an owned `box` and margins (the memory is not initialised)."""
        if margin is None:
            self.low = tuple(lo for lo, _ in box)
            self.extent = tuple(hi - lo for lo, hi in box)
        else:
            self.low = tuple(lo - below for (lo, _), (below, _) in zip(box, margin, strict=True))
            self.extent = tuple(hi - lo + below + above for (lo, hi), (below, above) in zip(box, margin, strict=True))
        self.memory = self.pool.take(_volume(self.extent) * self.dtype.itemsize)

    def array(self) -> np.ndarray:
        """The whole local allocation, margins included."""
        return np.ndarray(self.extent, self.dtype, buffer=self.memory)

    def part(self, region: Sequence[range] | Box) -> np.ndarray:
        """A part of the allocation given in global coordinates (a box, or a region of ranges)."""
        slices = []
        for r, low in zip(region, self.low, strict=True):
            start, stop, step = (r.start, r.stop, r.step) if isinstance(r, range) else (r[0], r[1], 1)
            slices.append(slice(start - low, max(stop, start) - low, step))
        return self.array()[(*slices, ...)]

    def release(self) -> None:
        """Give the memory back to the pool, unless somebody else still sees it."""
        memory, spare = self.memory, self.spare[0] if self.spare is not None else None
        self.memory = self.spare = None
        if memory is not None:
            self.pool.give(memory)
        if spare is not None:
            self.pool.give(spare)

    def __del__(self) -> None:
        if self.memory is not None or self.spare is not None:
            self.release()


def _volume(extent: Sequence[int]) -> int:
    count = 1
    for n in extent:
        count *= n
    return count
