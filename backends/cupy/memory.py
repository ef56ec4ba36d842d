"""The memory of a CUDA device (see `backends.memory.Memory`).

Blocks come from CuPy's pool, so its limits hold. Everything happens on CuPy's current stream, in order; what the user
does to `x.local` happens there, too. Messages go by way of page-locked memory of the host.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import cupy
import numpy as np

from numpy_dist.backends.memory import HOST, Strides

MOST_IN_FLIGHT = 64  # buffers of the host that wait for a fence


class Room(NamedTuple):
    """Bytes of the device in all, and those that can still be had."""

    total: int
    available: int


class Array(cupy.ndarray):
    """An array over a block, which it keeps from being used again; so do its views, whose `base` it is."""

    block: Any = None


class Block(cupy.ndarray):
    """An allocation: a one-dimensional array of bytes with an address."""

    address: int = 0


class CupyMemory:
    """The memory of the current device."""

    on_host = False
    late_events = False

    def __init__(self) -> None:
        self._in_flight: list[Any] = []

    def room(self) -> Room:
        """What there is on the device; what CuPy's pool keeps free can be had, too."""
        free, total = cupy.cuda.runtime.memGetInfo()
        return Room(total, free + cupy.get_default_memory_pool().free_bytes())

    def allocate(self, nbytes: int) -> Block:
        """As in `Memory`."""
        try:
            pointer = cupy.cuda.alloc(nbytes)
        except MemoryError as error:
            pool = cupy.get_default_memory_pool()
            error.add_note(
                f"{nbytes} bytes were wanted on {cupy.cuda.Device()}; CuPy's pool holds {pool.total_bytes()} bytes, of "
                f"which {pool.used_bytes()} are in use, with a limit of {pool.get_limit() or 'none'}"
            )
            raise
        block = Block((nbytes,), np.uint8, pointer)
        block.address = pointer.ptr
        return block

    def array(
        self, block: Any, shape: Sequence[int], dtype: np.dtype, offset: int = 0, strides: Strides = None
    ) -> Array:
        """As in `Memory`."""
        made = Array(tuple(shape), dtype, block.data + offset, strides)
        made.block = block
        return made

    def empty(self, shape: Sequence[int], dtype: np.dtype) -> Any:
        """As in `Memory`."""
        return cupy.empty(tuple(shape), dtype)

    def holds(self, x: Any) -> bool:
        """As in `Memory`."""
        return isinstance(x, cupy.ndarray)

    def address(self, array: Any) -> int:
        """As in `Memory`."""
        return array.data.ptr

    def copy(self, target: Any, source: Any) -> None:
        """As in `Memory`."""
        target[...] = source

    def upload(self, target: Any, source: np.ndarray) -> None:
        """As in `Memory`."""
        staged = self._pinned(target.size * target.itemsize).view(target.dtype).reshape(target.shape)
        HOST.upload(staged, source)
        self._send(target, staged)

    def download(self, source: Any) -> np.ndarray:
        """As in `Memory`."""
        return source if isinstance(source, np.ndarray) else source.get()

    def pack(self, parts: Sequence[Any], dtype: np.dtype) -> np.ndarray:
        """As in `Memory`: by a copy for each part within the device, and one to the host."""
        packed, start = cupy.empty(sum(part.size for part in parts), dtype), 0
        for part in parts:
            packed[start : start + part.size].reshape(part.shape)[...] = part
            start += part.size
        message = self._pinned(packed.size * packed.itemsize)
        packed.get(out=message.view(dtype), blocking=False)
        self._keep(message, packed)
        return message

    def message(self, nbytes: int) -> np.ndarray:
        """As in `Memory`."""
        return self._pinned(nbytes)

    def unpack(self, message: np.ndarray, parts: Sequence[Any], dtype: np.dtype) -> None:
        """As in `Memory`."""
        values, start = cupy.empty(message.size // dtype.itemsize, dtype), 0
        self._send(values, message.view(dtype))
        for part in parts:
            part[...] = values[start : start + part.size].reshape(part.shape)
            start += part.size

    def fence(self) -> None:
        """As in `Memory`."""
        cupy.cuda.get_current_stream().synchronize()
        self._in_flight.clear()

    def _send(self, target: Any, staged: np.ndarray) -> None:
        """Copy from page-locked memory, which is kept until a fence."""
        direct = target.flags.c_contiguous
        values = target if direct else cupy.empty(target.shape, target.dtype)
        values.set(staged, stream=cupy.cuda.get_current_stream())
        if not direct:
            target[...] = values
        self._keep(staged, values)

    def _keep(self, *buffers: Any) -> None:
        self._in_flight.append(buffers)
        if len(self._in_flight) > MOST_IN_FLIGHT:
            self.fence()

    @staticmethod
    def _pinned(nbytes: int) -> np.ndarray:
        return np.frombuffer(cupy.cuda.alloc_pinned_memory(max(nbytes, 1)), np.uint8, nbytes)
