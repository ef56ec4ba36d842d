"""A module in the place of CuPy, for machines without a device: the names that the backend uses, on the fake device.

It defers like a stream, frees in order, and starts kernels that a C++ compiler of the host has built. What it can not
show is whether CuPy itself behaves like that: `test_names` looks whether the names exist, and tests marked `gpu` run.
"""

from __future__ import annotations

import ctypes
from types import ModuleType
from typing import Any

import numpy as np

from numpy_dist.backends.fake.arrays import FakeArray, FakeBlock, FakeStream, Mark
from numpy_dist.backends.fake.library import module as fake_functions

STREAM = FakeStream()


class Pointer:
    """As `cupy.cuda.MemoryPointer`."""

    def __init__(self, block: Any, offset: int = 0) -> None:
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
            if kind.kind not in "?biufc":
                raise ValueError(f"Unsupported dtype {kind}")  # of CuPy 14; over memory that is there it may be any
            memptr = alloc(int(np.prod(shape, dtype=np.int64)) * kind.itemsize)
        values = np.ndarray(shape, kind, memptr.block._hidden, memptr.offset, strides)
        super().__init__(values, STREAM)
        self._pointer = memptr

    @property
    def data(self) -> Pointer:
        block = self._pointer.block
        return Pointer(block, self._hidden.ctypes.data - block.address)

    @property
    def flags(self) -> Flags:
        return Flags(self._hidden)

    def __setitem__(self, key: Any, value: Any) -> None:
        for x in (self, value):
            assert getattr(x, "dtype", self.dtype).kind in "biufc", f"CuPy has no kernels that copy {self.dtype}"
            assert not isinstance(x, ndarray) or x._hidden.flags.aligned, "misaligned address"
        super().__setitem__(key, value)

    def _view(self, values: np.ndarray) -> ndarray:
        if values.size and not np.may_share_memory(values, self._hidden):
            raise ValueError("a copy")
        base = self if self.base is None else self.base
        return ndarray(None, values=values, base=base, pointer=self._pointer)

    def _wrapped(self, result: Any) -> Any:
        if isinstance(result, tuple):
            return tuple(map(self._wrapped, result))
        values = np.asarray(result)
        made = ndarray(values.shape, values.dtype)
        made._hidden[...] = values
        return made

    def get(self, stream: Any = None, order: str = "C", out: Any = None, blocking: bool = True) -> Any:
        if out is None:
            plain = self.dtype.kind in "biufc" and self._hidden.flags.aligned
            assert plain or self._hidden.flags.c_contiguous
            STREAM.fence()
            return self._hidden.copy()
        assert out.dtype == self.dtype and out.shape == self.shape and self._hidden.flags.c_contiguous
        STREAM.put(np.copyto, out, self._hidden)
        return out

    def set(self, values: np.ndarray, stream: Any = None) -> None:
        assert values.dtype == self.dtype and values.shape == self.shape and values.flags.c_contiguous
        assert self._hidden.flags.c_contiguous
        STREAM.put(np.copyto, self._hidden, values)


class Place:
    """Where the library's functions make arrays."""

    def empty(self, shape: Any, dtype: Any) -> ndarray:
        return ndarray(shape, dtype)

    def upload(self, target: ndarray, values: np.ndarray) -> None:
        STREAM.put(np.copyto, target._hidden, values.copy())


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
    compute_capability = "90"

    def __init__(self, number: int | None = None) -> None:
        self.id = number if number is not None else (self.used or [0])[-1]

    def use(self) -> None:
        Device.used.append(self.id)

    def __str__(self) -> str:
        return f"<CUDA Device {self.id}>"


class CurrentStream:
    """As `cupy.cuda.Stream.null`."""

    ptr = 0
    own = STREAM

    def synchronize(self) -> None:
        self.own.fence()

    def wait_event(self, event: Event) -> None:
        assert event.mark is not None, "an event that was not recorded"
        self.own.after(event.mark)


class OtherStream(CurrentStream):
    """As `cupy.cuda.Stream`; ``runtime`` knows it by its address."""

    known: dict[int, OtherStream] = {}

    def __init__(self, non_blocking: bool = False) -> None:
        assert non_blocking
        self.own, self.ptr = FakeStream(), len(self.known) + 1
        self.known[self.ptr] = self


class Event:
    def __init__(self, disable_timing: bool = False) -> None:
        assert disable_timing
        self.mark: Mark | None = None

    def record(self, stream: CurrentStream) -> None:
        self.mark = stream.own.mark()


class Shared:
    """What `cudaMalloc` returns, and what other processes open: memory by its address."""

    blocks: dict[int, np.ndarray] = {}

    def __init__(self, ptr: int, size: int, owner: Any, device_id: int) -> None:
        self.address = ptr
        self._hidden = self.blocks[ptr]
        assert self._hidden.size == size


def malloc(nbytes: int) -> int:
    block = np.empty(nbytes, np.uint8)
    Shared.blocks[block.ctypes.data] = block
    return block.ctypes.data


def memcpy_async(target: int, source: int, nbytes: int, kind: int, stream: int) -> None:
    OtherStream.known[stream].own.put(ctypes.memmove, target, source, nbytes)


class Nccl:
    """As `cupy.cuda.nccl`; messages are copied when both sides have asked for them."""

    NCCL_UINT8, available = 1, True
    open_groups = 0
    mail: dict[tuple[int, int], list[tuple[int, int, FakeStream]]] = {}

    def __init__(self, ndev: int, identity: Any, rank: int) -> None:
        assert identity == b"identity"
        self.rank = rank

    @staticmethod
    def get_version() -> int:
        return 22703

    @staticmethod
    def get_unique_id() -> bytes:
        return b"identity"

    @classmethod
    def groupStart(cls) -> None:
        cls.open_groups += 1

    @classmethod
    def groupEnd(cls) -> None:
        cls.open_groups -= 1

    def send(self, address: int, count: int, kind: int, peer: int, stream: int) -> None:
        assert self.open_groups == 1 and kind == 1
        OtherStream.known[stream].own.put(lambda: self.box(self.rank, peer).append(ctypes.string_at(address, count)))
        self.senders[self.rank] = OtherStream.known[stream].own

    def recv(self, address: int, count: int, kind: int, peer: int, stream: int) -> None:
        assert self.open_groups == 1 and kind == 1

        def take() -> None:
            box = self.box(peer, self.rank)
            while not box:
                self.senders[peer].step()
            message = box.pop(0)
            assert len(message) == count
            ctypes.memmove(address, message, count)

        OtherStream.known[stream].own.put(take)

    senders: dict[int, FakeStream] = {}

    def box(self, sender: int, receiver: int) -> list[Any]:
        return self.mail.setdefault((sender, receiver), [])


Nccl.NcclCommunicator = Nccl  # type: ignore[attr-defined]


def make(launch: Any) -> ModuleType:
    """The module; ``launch(source, name, words, grid)`` starts kernels."""

    def compile_using_nvrtc(source: str, options: tuple[str, ...], arch: None, filename: str) -> tuple[bytes, None]:
        assert "-fmad=false" in options and "ND_KERNEL" in source
        return source.encode(), None

    class Module:
        def load(self, code: bytes) -> None:
            self.code = code.decode()

        def get_function(self, name: str) -> Any:
            def start(grid: Any, block: Any, arguments: Any) -> None:
                (packed,) = arguments
                assert block == (256, 1, 1) and packed.shape == (1,) and packed.dtype.names == ("w",)
                STREAM.put(launch, self.code, name, packed["w"][0].copy(), grid[:2])

            return start

    module: Any = ModuleType("cupy")
    functions = fake_functions(Place())
    for name, function in vars(functions).items():
        setattr(module, name, function)
    module.cupyx = ModuleType("cupyx")
    module.cupyx.errstate = lambda linalg: functions.raising()
    module.ndarray, module.__version__ = ndarray, "0"
    module.empty = lambda shape, dtype: ndarray(shape, dtype)
    module.is_available = lambda: True
    module.get_default_memory_pool = Pool
    module.cuda = ModuleType("cupy.cuda")
    module.cuda.alloc, module.cuda.Device, module.cuda.Module = alloc, Device, Module
    module.cuda.compiler = ModuleType("cupy.cuda.compiler")
    module.cuda.compiler.compile_using_nvrtc = compile_using_nvrtc
    module.cuda.get_current_stream = CurrentStream
    module.cuda.alloc_pinned_memory = lambda nbytes: np.full(nbytes, 0xA5, np.uint8)
    module.cuda.runtime = ModuleType("cupy.cuda.runtime")
    module.cuda.runtime.CUDARuntimeError = RuntimeError
    module.cuda.runtime.memGetInfo = lambda: (1 << 20, 1 << 30)
    module.cuda.runtime.getDeviceCount = lambda: 2
    module.cuda.Stream, module.cuda.Event, module.cuda.nccl = OtherStream, Event, Nccl
    module.cuda.UnownedMemory, module.cuda.MemoryPointer = Shared, Pointer
    module.cuda.runtime.malloc, module.cuda.runtime.memcpyAsync = malloc, memcpy_async
    module.cuda.runtime.memcpyDefault = 4
    module.cuda.runtime.ipcGetMemHandle = lambda address: address.to_bytes(64, "little")
    module.cuda.runtime.ipcOpenMemHandle = lambda handle: int.from_bytes(handle, "little")
    module.cuda.runtime.getDeviceProperties = lambda number: {"name": b"stand-in"}
    module.cuda.runtime.deviceGetPCIBusId = lambda number: f"0000:0{number}:00.0"
    module.cuda.runtime.deviceCanAccessPeer = lambda one, other: 1
    return module
