"""The memory of the fake device (see `backends.memory.Memory`)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numpy_dist.backends.fake.arrays import FakeArray, FakeBlock, Stream, hidden
from numpy_dist.backends.memory import HOST, Strides

UNSYNCHRONISED = 0xA5  # what a message holds as long as nobody has waited for it


class FakeMemory:
    """Blocks of the fake device; messages go by way of the host.

    Attributes
    ----------
    uploaded, downloaded : int
        Bytes that went there and back, messages included.
    """

    on_host = False
    late_events = True
    room: Callable[[], Any] | None = None

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.uploaded = self.downloaded = 0

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

    def holds(self, x: Any) -> bool:
        """As in `Memory`."""
        return isinstance(x, FakeArray)

    def address(self, array: FakeArray) -> int:
        """As in `Memory`."""
        return hidden(array).ctypes.data

    def copy(self, target: FakeArray, source: FakeArray) -> None:
        """As in `Memory`."""
        self.stream.put(HOST.copy, self._own(target), self._own(source))

    def upload(self, target: FakeArray, source: np.ndarray) -> None:
        """As in `Memory`."""
        self.uploaded += source.nbytes
        self.stream.put(HOST.upload, self._own(target), np.array(source, order="K"))

    def download(self, source: Any) -> np.ndarray:
        """As in `Memory`."""
        if isinstance(source, np.ndarray):
            return source
        self.downloaded += source.nbytes
        return source.get()

    def pack(self, parts: Sequence[FakeArray], dtype: np.dtype) -> np.ndarray:
        """As in `Memory`."""
        message = np.full(sum(part.nbytes for part in parts), UNSYNCHRONISED, np.uint8)
        self.downloaded += message.nbytes
        sources = list(map(self._own, parts))
        self.stream.put(lambda: HOST.copy(message, HOST.pack(sources, dtype)))
        return message

    def message(self, nbytes: int) -> np.ndarray:
        """As in `Memory`."""
        return np.empty(nbytes, np.uint8)

    def unpack(self, message: np.ndarray, parts: Sequence[FakeArray], dtype: np.dtype) -> None:
        """As in `Memory`."""
        self.uploaded += message.nbytes
        self.stream.put(HOST.unpack, message, list(map(self._own, parts)), dtype)

    def fence(self) -> None:
        """As in `Memory`."""
        self.stream.fence()

    @staticmethod
    def _own(x: Any) -> np.ndarray:
        if not isinstance(x, FakeArray):
            raise TypeError(f"{type(x).__name__} is no array of the fake device")
        return hidden(x)
