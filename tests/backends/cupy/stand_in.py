"""A module in the place of CuPy, for machines without a device: the names that the backend uses, on the fake device.

It defers like a stream, frees in order, and starts kernels that a C++ compiler of the host has built. What it can not
show is whether CuPy itself behaves like that: `test_names` looks whether the names exist, and tests marked `gpu` run.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np

from numpy_dist.backends.fake.arrays import FakeArray, FakeBlock, Stream, hidden

STREAM = Stream()


class Pointer:
    """As `cupy.cuda.MemoryPointer`."""

    def __init__(self, block: FakeBlock, offset: int = 0) -> None:
        self.block, self.offset = block, offset

    @property
    def ptr(self) -> int:
        return self.block.address + self.offset

    def __add__(self, offset: int) -> Pointer:
        return Pointer(self.block, self.offset + offset)


class Flags:
    def __init__(self, array: np.ndarray) -> None:
        self.c_contiguous = array.flags.c_contiguous


class ndarray(FakeArray):
    """As `cupy.ndarray`."""

    def __init__(self, shape: Any, dtype: Any = float, memptr: Any = None, strides: Any = None, **made: Any) -> None:
        if made:
            super().__init__(made["values"], STREAM, made["base"])
            self._pointer = made["pointer"]
            return
        kind = np.dtype(dtype)
        if memptr is None:
            memptr = alloc(int(np.prod(shape, dtype=np.int64)) * kind.itemsize)
        values = np.ndarray(shape, kind, hidden(memptr.block), memptr.offset, strides)
        super().__init__(values, STREAM)
        self._pointer = memptr

    @property
    def data(self) -> Pointer:
        block = self._pointer.block
        return Pointer(block, self._hidden.ctypes.data - block.address)

    @property
    def flags(self) -> Flags:
        return Flags(self._hidden)

    def _view(self, values: np.ndarray) -> ndarray:
        if values.size and not np.may_share_memory(values, self._hidden):
            raise ValueError("a copy")
        base = self if self.base is None else self.base
        return ndarray(None, values=values, base=base, pointer=self._pointer)

    def get(self, stream: Any = None, order: str = "C", out: Any = None, blocking: bool = True) -> Any:
        if out is None:
            STREAM.fence()
            return self._hidden.copy()
        assert out.dtype == self.dtype and out.shape == self.shape and self._hidden.flags.c_contiguous
        STREAM.put(np.copyto, out, self._hidden)
        return out

    def set(self, values: np.ndarray, stream: Any = None) -> None:
        assert values.dtype == self.dtype and values.shape == self.shape and values.flags.c_contiguous
        assert self._hidden.flags.c_contiguous
        STREAM.put(np.copyto, self._hidden, values)


class LIMIT:
    """Of the pool."""

    bytes = 1 << 40


def alloc(nbytes: int) -> Pointer:
    if nbytes > LIMIT.bytes:
        raise MemoryError(f"Out of memory allocating {nbytes:,} bytes")
    return Pointer(FakeBlock(nbytes, STREAM))


class Pool:
    def total_bytes(self) -> int:
        return 4096

    used_bytes = free_bytes = total_bytes

    def get_limit(self) -> int:
        return LIMIT.bytes


class Device:
    used: list[int] = []

    def __init__(self, number: int = 0) -> None:
        self.number = number

    def use(self) -> None:
        Device.used.append(self.number)

    def __str__(self) -> str:
        return f"<CUDA Device {self.number}>"


class CurrentStream:
    def synchronize(self) -> None:
        STREAM.fence()


def make(launch: Any) -> ModuleType:
    """The module; ``launch(name, words, grid)`` starts kernels."""

    class RawModule:
        def __init__(self, code: str, options: tuple[str, ...]) -> None:
            assert "-fmad=false" in options and "ND_KERNEL" in code

        def get_function(self, name: str) -> Any:
            def start(grid: Any, block: Any, arguments: Any) -> None:
                (packed,) = arguments
                assert block == (256,) and packed.shape == (1,) and packed.dtype.names == ("w",)
                STREAM.put(launch, name, packed["w"][0].copy(), grid)

            return start

    module: Any = ModuleType("cupy")
    module.ndarray, module.RawModule = ndarray, RawModule
    module.empty = lambda shape, dtype: ndarray(shape, dtype)
    module.is_available = lambda: True
    module.get_default_memory_pool = Pool
    module.cuda = ModuleType("cupy.cuda")
    module.cuda.alloc, module.cuda.Device = alloc, Device
    module.cuda.get_current_stream = CurrentStream
    module.cuda.alloc_pinned_memory = lambda nbytes: np.full(nbytes, 0xA5, np.uint8)
    module.cuda.runtime = ModuleType("cupy.cuda.runtime")
    module.cuda.runtime.memGetInfo = lambda: (1 << 20, 1 << 30)
    module.cuda.runtime.getDeviceCount = lambda: 2
    return module
