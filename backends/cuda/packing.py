"""Packing and unpacking by one kernel: the elements of many strided arrays, one array after the other, in a buffer.

The kernel moves units of 1, 2, 4, 8 or 16 bytes: the largest in which all extents, strides and addresses are measured.
Arrays are described in the argument block, which has room for some; more arrays take more kernels.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from numpy_dist.backends.cuda.header import HEADER
from numpy_dist.backends.cuda.source import MOST_WORDS, THREADS, DeviceKernel
from numpy_dist.backends.geometry import merged

if TYPE_CHECKING:
    from numpy_dist.backends.memory import Array

_MOST_BLOCKS = 4096
_HEAD = 5  # words before the table: the buffer, units in all, arrays, axes, whether it packs


class ByteView(NamedTuple):
    """An array as bytes: its address, and extents and strides of its axes, the innermost last."""

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def size(self) -> int:
        return prod(self.shape)


# Each array has `axes + 1` pairs of words: (first unit in the buffer, address), and then extents and strides.
_BODY = """
  const nd_i8 buffer = a.w[0], units = a.w[1], arrays = a.w[2], axes = a.w[3], packs = a.w[4];
  const nd_i8 entry = 2 * (axes + 1);
  ND_BEGIN
  for (nd_i8 u = nd_block_x * 256 + nd_thread; u < units; u += nd_grid_x * 256) {
    nd_i8 low = 0, high = arrays;  // the last array that begins at or before this unit
    while (high - low > 1) {
      const nd_i8 middle = (low + high) / 2;
      if (a.w[5 + middle * entry] <= u) low = middle; else high = middle;
    }
    const nd_i8* t = a.w + 5 + low * entry;
    nd_i8 rest = u - t[0], place = t[1];
    for (nd_i8 axis = axes; axis > 0; --axis) {
      const nd_i8 n = t[2 * axis];
      place += rest % n * t[2 * axis + 1];
      rest /= n;
    }
    const nd_i8 packed = buffer + u * (nd_i8)sizeof(nd_unit);
    if (packs) nd_store<nd_unit>(packed, nd_load<nd_unit>(place));
    else nd_store<nd_unit>(place, nd_load<nd_unit>(packed));
  }
  ND_END
"""
_UNITS = {1: "nd_u1", 2: "nd_u2", 4: "nd_u4", 8: "nd_u8", 16: "nd_c16"}


@lru_cache(maxsize=8)
def kernel(unit: int) -> DeviceKernel:
    """The kernel for units of so many bytes."""
    body = _BODY.replace("nd_unit", _UNITS[unit])
    name = "nd_pack_" + hashlib.sha256((HEADER + body).encode()).hexdigest()[:20]
    struct = f"struct {name}_args {{ nd_i8 w[{MOST_WORDS}]; }};"
    text = f"{HEADER}\n{struct}\nND_KERNEL {name}(const {name}_args a) {{{body}}}\n"
    return DeviceKernel(text, name, {}, MOST_WORDS)


def launches(
    buffer: int, arrays: Sequence[tuple[int, Array]], packs: bool
) -> Iterator[tuple[DeviceKernel, np.ndarray, tuple[int, int]]]:
    """The kernels, argument blocks and grids that move arrays into a buffer, or out of it.

    Parameters
    ----------
    buffer : int
        Its address.
    arrays : sequence of (int, array)
        Arrays with ``shape``, ``strides`` and ``dtype``, and their addresses; empty ones are left out.
    packs : bool
        Into the buffer, or out of it.
    """
    parts = [_bytes_of(address, array) for address, array in arrays]
    parts = [part for part in parts if part.size]
    if not parts:
        return
    unit = _unit(buffer, parts)
    parts = [_in_units(part, unit) for part in parts]
    axes = max(len(part.shape) for part in parts)
    room = (MOST_WORDS - _HEAD) // (2 * (axes + 1))
    for first in range(0, len(parts), room):
        chosen = parts[first : first + room]
        words = np.zeros(MOST_WORDS, np.int64)
        units = 0
        for k, part in enumerate(chosen):
            entry = words[_HEAD + k * 2 * (axes + 1) :]
            entry[0], entry[1] = units, part.address
            lead = axes - len(part.shape)
            entry[2 : 2 * (axes + 1) : 2] = (1,) * lead + part.shape
            entry[3 : 2 * (axes + 1) : 2] = (0,) * lead + part.strides
            units += part.size
        words[:_HEAD] = buffer, units, len(chosen), axes, packs
        yield kernel(unit), words, (min(-(-units // THREADS), _MOST_BLOCKS), 1)
        buffer += units * unit


def _bytes_of(address: int, array: Array) -> ByteView:
    """An array with its items as an axis of bytes, and axes merged where they can be."""
    itemsize = array.dtype.itemsize
    shape, strides = (*array.shape, itemsize), (*array.strides, 1)
    space = merged(shape, [strides])
    return ByteView(address, tuple(space.shape), tuple(space.strides[0]))


def _unit(buffer: int, parts: Sequence[ByteView]) -> int:
    """The most bytes, up to 16, in which everything is a multiple."""
    every = buffer | 16
    for part in parts:
        every |= part.address | (part.shape[-1] if part.strides[-1] == 1 else 1)
        for stride in part.strides[:-1]:
            every |= abs(stride)
    return every & -every


def _in_units(part: ByteView, unit: int) -> ByteView:
    if unit == 1:
        return part
    shape, strides = (*part.shape[:-1], part.shape[-1] // unit), (*part.strides[:-1], unit)
    if shape[-1] == 1 and len(shape) > 1:
        shape, strides = shape[:-1], strides[:-1]
    return ByteView(part.address, shape, strides)


def move(
    buffer: int,
    arrays: Sequence[tuple[int, Array]],
    packs: bool,
    launch: Callable[[DeviceKernel, np.ndarray, tuple[int, int]], None],
) -> None:
    """As `launches`, started."""
    for prepared in launches(buffer, arrays, packs):
        launch(*prepared)
