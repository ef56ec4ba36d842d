"""The memory of the fake device (see `backends.memory.Memory`)."""

from __future__ import annotations

import math
import mmap
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from numpy_dist.backends.fake.arrays import FakeArray, FakeBlock, FakeStream, Mark, hidden
from numpy_dist.backends.fake.library import FakeLibrary
from numpy_dist.backends.library import Library
from numpy_dist.backends.memory import HOST, Strides

if TYPE_CHECKING:
    from numpy_dist.backends.memory import Room

UNSYNCHRONISED = 0xA5  # what a message holds as long as nobody has waited for it


class FakeMemory:
    """Blocks of the fake device; messages go by way of the host.

    Attributes
    ----------
    uploaded, downloaded : int
        Bytes that went there and back, messages included.
    packings : int
        Kernels that packed or unpacked messages within the device.
    """

    on_host = False
    late_events = True
    room: Callable[[], Room] | None = None

    def __init__(self, stream: FakeStream) -> None:
        self.stream = stream
        self.library: Library | None = FakeLibrary(self)
        self.uploaded = self.downloaded = self.packings = 0
        self._files: list[int] = []

    def __del__(self) -> None:
        for number in self._files:
            os.close(number)

    def allocate(self, nbytes: int) -> FakeBlock:
        """As in `Memory`."""
        return FakeBlock(nbytes, self.stream)

    def array(
        self, block: FakeArray, shape: Sequence[int], dtype: np.dtype, offset: int = 0, strides: Strides = None
    ) -> FakeArray:
        """As in `Memory`."""
        return FakeArray(np.ndarray(shape, dtype, hidden(block), offset, strides), self.stream, block)

    def empty(self, shape: Sequence[int], dtype: np.dtype) -> FakeArray:
        """As in `Memory`."""
        return self.array(self.allocate(math.prod(shape) * dtype.itemsize), shape, dtype)

    def taken_over(self, array: FakeArray) -> FakeBlock | None:
        """As in `Memory`."""
        values = hidden(array)
        if type(array) is not FakeArray or array.base is not None or not values.flags.c_contiguous or not values.size:
            return None
        return FakeBlock(values.nbytes, self.stream, values)

    def holds(self, x: object) -> bool:
        """As in `Memory`."""
        return isinstance(x, FakeArray)

    def address(self, array: FakeArray) -> int:
        """As in `Memory`."""
        return hidden(array).ctypes.data

    def is_aligned(self, array: FakeArray) -> bool:
        """As in `Memory`."""
        return hidden(array).flags.aligned

    def copy(self, target: FakeArray, source: FakeArray) -> None:
        """As in `Memory`."""
        self.stream.put(HOST.copy, self._own(target), self._own(source))

    def upload(self, target: FakeArray, source: np.ndarray) -> None:
        """As in `Memory`."""
        self.uploaded += source.nbytes
        self.stream.put(HOST.upload, self._own(target), np.array(source, order="K"))

    def download(self, source: FakeArray | np.ndarray) -> np.ndarray:
        """As in `Memory`."""
        if isinstance(source, np.ndarray):
            return source
        self.downloaded += source.nbytes
        return source.get()

    def pack(self, messages: Sequence[Sequence[FakeArray]], dtype: np.dtype) -> list[np.ndarray]:
        """As in `Memory`."""
        packed = []
        for parts in messages:
            message = np.full(sum(part.nbytes for part in parts), UNSYNCHRONISED, np.uint8)
            self.downloaded += message.nbytes
            self.stream.put(_pack, message, list(map(self._own, parts)))
            packed.append(message)
        return packed

    def message(self, nbytes: int) -> np.ndarray:
        """As in `Memory`."""
        return np.empty(nbytes, np.uint8)

    def unpack(self, messages: Sequence[np.ndarray], parts: Sequence[Sequence[FakeArray]], dtype: np.dtype) -> None:
        """As in `Memory`."""
        for message, targets in zip(messages, parts, strict=True):
            self.uploaded += message.nbytes
            self.stream.put(_unpack, message, list(map(self._own, targets)))

    # -- what transports between devices ask for (`backends.device_transports.DeviceMemory`) ---------------------------

    def gather(self, buffer: FakeArray, parts: Sequence[FakeArray]) -> None:
        """As in `DeviceMemory`."""
        self.packings += 1
        self.stream.put(_pack, self._own(buffer), list(map(self._own, parts)))

    def scatter(self, buffer: FakeArray, parts: Sequence[FakeArray]) -> None:
        """As in `DeviceMemory`."""
        self.packings += 1
        self.stream.put(_unpack, self._own(buffer), list(map(self._own, parts)))

    def for_mpi(self, buffer: FakeArray) -> np.ndarray:
        """What an MPI sees that takes such memory: what is there at that moment."""
        return self._own(buffer)

    def after(self, mark: Mark) -> None:
        """As in `DeviceMemory`."""
        self.stream.after(mark)

    def share(self, nbytes: int) -> tuple[FakeArray, bytes]:
        """As in `DeviceMemory`: memory without a name, which other processes find among the files of this one."""
        number = os.memfd_create("numpy_dist")
        os.truncate(number, nbytes)
        self._files.append(number)
        return self._mapped(number, nbytes), f"{os.getpid()}:{number}".encode()

    def open(self, handle: bytes, nbytes: int) -> FakeArray:
        """As in `DeviceMemory`."""
        process, number = handle.rstrip(b"\0").decode().split(":")
        with open(f"/proc/{process}/fd/{number}", "r+b") as file:
            return self._mapped(file.fileno(), nbytes)

    def _mapped(self, number: int, nbytes: int) -> FakeArray:
        return FakeArray(np.frombuffer(mmap.mmap(number, nbytes), np.uint8), self.stream)

    def fence(self) -> None:
        """As in `Memory`."""
        self.stream.fence()

    @staticmethod
    def _own(x: object) -> np.ndarray:
        if not isinstance(x, FakeArray):
            raise TypeError(f"{type(x).__name__} is no array of the fake device")
        return hidden(x)


def _pack(buffer: np.ndarray, parts: Sequence[np.ndarray]) -> None:
    start = 0
    for part in parts:
        buffer[start : start + part.nbytes].view(part.dtype).reshape(part.shape)[...] = part
        start += part.nbytes


def _unpack(buffer: np.ndarray, parts: Sequence[np.ndarray]) -> None:
    start = 0
    for part in parts:
        part[...] = buffer[start : start + part.nbytes].view(part.dtype).reshape(part.shape)
        start += part.nbytes
