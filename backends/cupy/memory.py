"""The memory of a CUDA device (see `backends.memory.Memory`).

Blocks come from CuPy's pool, so its limits hold. Everything happens on CuPy's current stream, in order; what the user
does to `x.local` happens there, too. Messages of the host are staged in page-locked memory.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import cupy
import numpy as np

from numpy_dist.backends import geometry
from numpy_dist.backends.cuda.packing import move
from numpy_dist.backends.cupy.launcher import KernelLauncher
from numpy_dist.backends.cupy.library import CupyLibrary
from numpy_dist.backends.library import Library
from numpy_dist.backends.memory import HOST, Strides

if TYPE_CHECKING:
    from numpy_dist.backends.memory import Array

MOST_IN_FLIGHT = 64  # buffers of the host that wait for a fence


class DeviceMemoryInfo(NamedTuple):
    """Bytes of the device in all, and those that can still be had."""

    total: int
    available: int


class DeviceArray(cupy.ndarray):
    """An array over a block, which it keeps from being used again; so do its views, whose `base` it is."""

    block: cupy.ndarray | None = None


class DeviceAllocation(cupy.ndarray):
    """An allocation: a one-dimensional array of bytes with an address."""

    address: int = 0


class CupyMemory:
    """The memory of the current device."""

    on_host = False
    late_events = False

    def __init__(self, launch: KernelLauncher) -> None:
        self._launch = launch
        self.library: Library | None = CupyLibrary(launch)
        self._in_flight: list[tuple[Array, ...]] = []

    def room(self) -> DeviceMemoryInfo:
        """What there is on the device; what CuPy's pool keeps free can be had, too."""
        free, total = cupy.cuda.runtime.memGetInfo()
        return DeviceMemoryInfo(total, free + cupy.get_default_memory_pool().free_bytes())

    def allocate(self, nbytes: int) -> DeviceAllocation:
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
        return self._block(nbytes, pointer)

    def array(
        self, block: cupy.ndarray, shape: Sequence[int], dtype: np.dtype, offset: int = 0, strides: Strides = None
    ) -> DeviceArray:
        """As in `Memory`."""
        made = DeviceArray(tuple(shape), dtype, block.data + offset, strides)
        made.block = block
        return made

    def empty(self, shape: Sequence[int], dtype: np.dtype) -> cupy.ndarray:
        """As in `Memory`. CuPy itself makes arrays of numbers only."""
        return cupy.ndarray(tuple(shape), dtype, cupy.cuda.alloc(math.prod(shape) * dtype.itemsize))

    def taken_over(self, array: cupy.ndarray) -> DeviceAllocation | None:
        """As in `Memory`."""
        owner = array if array.base is None else array.base
        whole = type(array) is type(owner) is cupy.ndarray and array.flags.c_contiguous
        whole = whole and array.data.ptr == owner.data.ptr and array.nbytes == owner.nbytes  # some are seen reshaped
        return self._block(array.nbytes, array.data) if whole and array.size else None

    @staticmethod
    def _block(nbytes: int, pointer: cupy.cuda.MemoryPointer) -> DeviceAllocation:
        block = DeviceAllocation((nbytes,), np.uint8, pointer)
        block.address = pointer.ptr
        return block

    def holds(self, x: object) -> bool:
        """As in `Memory`."""
        return isinstance(x, cupy.ndarray)

    def address(self, array: cupy.ndarray) -> int:
        """As in `Memory`."""
        return array.data.ptr

    def is_aligned(self, array: cupy.ndarray) -> bool:
        """As in `Memory`."""
        return geometry.is_aligned(self.address(array), array)

    def copy(self, target: cupy.ndarray, source: cupy.ndarray) -> None:
        """As in `Memory`. CuPy's own copies know aligned numbers only; others are moved as bytes."""
        if self._is_cupys(target) and self._is_cupys(source):
            target[...] = source
        elif target.dtype == source.dtype:
            self.scatter(self._packed([source]), [target])
        else:
            converted = self.empty(target.shape, target.dtype)
            converted[...] = self._dense(source)
            self.scatter(self._packed([converted]), [target])

    def upload(self, target: cupy.ndarray, source: np.ndarray) -> None:
        """As in `Memory`."""
        staged = self._pinned(target.size * target.itemsize).view(target.dtype).reshape(target.shape)
        HOST.upload(staged, source)
        self._send(target, staged)

    def download(self, source: Array) -> np.ndarray:
        """As in `Memory`."""
        if isinstance(source, np.ndarray):
            return source
        if source.flags.c_contiguous or self._is_cupys(source):
            return source.get()
        return self._packed([source]).get().view(source.dtype).reshape(source.shape)

    def pack(self, messages: Sequence[Sequence[cupy.ndarray]], dtype: np.dtype) -> list[np.ndarray]:
        """As in `Memory`: all by one kernel within the device, and by one copy to the host."""
        packed = self._packed([part for parts in messages for part in parts])
        staged = self._pinned(packed.size)
        packed.get(out=staged, blocking=False)
        self._keep(staged, packed)
        return _cut(staged, [sum(part.size for part in parts) * dtype.itemsize for parts in messages])

    def message(self, nbytes: int) -> np.ndarray:
        """As in `Memory`."""
        return self._pinned(nbytes)

    def unpack(self, messages: Sequence[np.ndarray], parts: Sequence[Sequence[cupy.ndarray]], dtype: np.dtype) -> None:
        """As in `Memory`: by a copy for each message to the device, and one kernel within it."""
        sizes = [message.size for message in messages]
        packed = self.allocate(sum(sizes))
        for message, place in zip(messages, _cut(packed, sizes), strict=True):
            self._send(place, message)
        self.scatter(packed, [part for targets in parts for part in targets])

    # -- what transports between devices ask for (`backends.device_transports.DeviceMemory`) --------------------------

    def gather(self, buffer: cupy.ndarray, parts: Sequence[cupy.ndarray]) -> None:
        """As in `DeviceMemory`."""
        move(self.address(buffer), [(self.address(part), part) for part in parts], True, self._launch)

    def scatter(self, buffer: cupy.ndarray, parts: Sequence[cupy.ndarray]) -> None:
        """As in `DeviceMemory`."""
        move(self.address(buffer), [(self.address(part), part) for part in parts], False, self._launch)

    def for_mpi(self, buffer: cupy.ndarray) -> cupy.ndarray:
        """As in `DeviceMemory`: mpi4py finds the memory by the array's ``__cuda_array_interface__``."""
        return buffer

    def after(self, mark: cupy.cuda.Event) -> None:
        """As in `DeviceMemory`."""
        cupy.cuda.get_current_stream().wait_event(mark)

    def share(self, nbytes: int) -> tuple[cupy.ndarray, bytes]:
        """As in `DeviceMemory`. A handle names a whole allocation, so this one is not of the pool."""
        address = cupy.cuda.runtime.malloc(nbytes)
        return self._foreign(address, nbytes), cupy.cuda.runtime.ipcGetMemHandle(address)

    def open(self, handle: bytes, nbytes: int) -> cupy.ndarray:
        """As in `DeviceMemory`."""
        return self._foreign(cupy.cuda.runtime.ipcOpenMemHandle(handle), nbytes)

    @staticmethod
    def _foreign(address: int, nbytes: int) -> cupy.ndarray:
        """Bytes that are no memory of CuPy's; they stay until the process ends, as others may have them open."""
        memory = cupy.cuda.UnownedMemory(address, nbytes, None, cupy.cuda.Device().id)
        return cupy.ndarray((nbytes,), np.uint8, cupy.cuda.MemoryPointer(memory, 0))

    def _packed(self, parts: Sequence[cupy.ndarray]) -> DeviceAllocation:
        """The elements of some arrays, one array after the other, as bytes."""
        packed = self.allocate(sum(part.size * part.itemsize for part in parts))
        self.gather(packed, parts)
        return packed

    def fence(self) -> None:
        """As in `Memory`."""
        cupy.cuda.get_current_stream().synchronize()
        self._in_flight.clear()

    def _send(self, target: cupy.ndarray, staged: np.ndarray) -> None:
        """Copy from page-locked memory, which is kept until a fence."""
        direct = target.flags.c_contiguous
        values = target if direct else self.empty(target.shape, target.dtype)
        values.set(staged, stream=cupy.cuda.get_current_stream())
        if not direct:
            self.copy(target, values)
        self._keep(staged, values)

    def _keep(self, *buffers: Array) -> None:
        self._in_flight.append(buffers)
        if len(self._in_flight) > MOST_IN_FLIGHT:
            self.fence()

    def _is_cupys(self, array: cupy.ndarray) -> bool:
        """Whether CuPy's kernels can read and write an array."""
        return _is_number(array.dtype) and self.is_aligned(array)

    def _dense(self, array: cupy.ndarray) -> cupy.ndarray:
        """An array of numbers as CuPy's kernels can read it: itself, or a copy."""
        if self.is_aligned(array):
            return array
        made = self.empty(array.shape, array.dtype)
        self.gather(made, [array])
        return made

    @staticmethod
    def _pinned(nbytes: int) -> np.ndarray:
        return np.frombuffer(cupy.cuda.alloc_pinned_memory(max(nbytes, 1)), np.uint8, nbytes)


def _is_number(dtype: np.dtype) -> bool:
    """Whether CuPy has kernels for it."""
    return dtype.kind in "?biufc" and dtype.char not in "gG" and dtype.isnative


def _cut(buffer: Array, sizes: Sequence[int]) -> list[Array]:
    pieces, start = [], 0
    for size in sizes:
        pieces.append(buffer[start : start + size])
        start += size
    return pieces
