"""Where shards lie: what the engine asks of memory, and the memory of the host.

The engine, and everything above it, touches shards through a `Memory` only (ADR 16): on a device nothing else can.
"""

from __future__ import annotations

import mmap
import sys
from collections.abc import Callable, Sequence
from pickle import PickleBuffer
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from numpy_dist.backends.library import Library

# What holds the elements of a shard: an ndarray on the host; elsewhere an array type of the backend's, with shape,
# dtype, strides, size, basic indexing, `reshape` and `transpose`, and no way to its values but `Memory.download`.
Array = Any
Strides = tuple[int, ...] | None

_NO_RESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000 if sys.platform == "linux" else 0)
_SMALL_BLOCK = 1 << 16

if TYPE_CHECKING:

    class Room(Protocol):
        """Bytes of a memory in all, and those that can still be had."""

        @property
        def total(self) -> int:
            """In all."""

        @property
        def available(self) -> int:
            """That can still be had."""


class Block(np.ndarray):
    """An allocation: a one-dimensional array of bytes that knows where it lies.

    Attributes
    ----------
    address : int
        Of its first byte. Slices and views of a block have none.
    scratch : Scratch or None
        What has lent it to an algorithm (`engine.data.scratch`).
    is_numpys : bool
        Whether it is the memory of an array that NumPy has made. The C library keeps such memory for NumPy's next array
        when it is freed; in a pool nobody might want it again.
    """

    address: int
    scratch: Any = None
    is_numpys = False


def make_block(nbytes: int) -> Block:
    """A new allocation on the host, not initialised."""
    block = np.ndarray.__new__(Block, nbytes, np.uint8)
    block.address = block.ctypes.data
    return block


def block_of(array: np.ndarray) -> Block | None:
    """The memory of a new array of NumPy's as an allocation, which keeps the array; None where it is that of others.

    The array must not be used any more. Views of the block lead back to it, as there is no ndarray between it and the
    memory (see `make_zero_block`).
    """
    owner = array if array.base is None else array.base
    if type(owner) is not np.ndarray or not owner.flags.owndata or owner.nbytes != array.nbytes or not array.size:
        return None
    if not (array.flags.c_contiguous and owner.flags.writeable) or array.dtype.hasobject:
        return None
    # NumPy would take the array for the owner of a memoryview's bytes.
    memory: Any = PickleBuffer(array.reshape(-1).view(np.uint8))  # type: ignore[arg-type]
    block = np.ndarray.__new__(Block, array.nbytes, np.uint8, memory)
    block.address = block.ctypes.data
    block.is_numpys = True
    return block


def zero_pages(nbytes: int) -> bytearray | mmap.mmap:
    """A buffer of zeros; large ones take neither memory nor a promise of the system's before they are written to."""
    if nbytes <= _SMALL_BLOCK:
        return bytearray(nbytes)
    return mmap.mmap(-1, nbytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NO_RESERVE)


def make_zero_block(nbytes: int) -> Block:
    """An allocation of zeros, where nothing is computed.

    Its views lead back to it (`engine.data.scratch.pool_block`), as those of `make_block` do. They would not if it were
    itself a view of an ndarray: NumPy leaves it out between a view and the array that has the memory.
    """
    block = np.ndarray.__new__(Block, nbytes, np.uint8, zero_pages(nbytes))
    block.address = block.ctypes.data
    return block


class Memory(Protocol):
    """The memory of a backend.

    What is asked for happens in the order in which it was asked for, but may happen later: `fence` waits for all of it.
    `download`, and a loop's `report`, tell of values only after what came before has happened.

    Attributes
    ----------
    on_host : bool
        Whether arrays are ndarrays, and everything has happened when a call returns.
    late_events : bool
        Whether a loop's floating-point events are known after a `fence` only.
    room : callable or None
        Tells how many bytes there are in `total`, and how many are `available`; None where that is the host's memory.
    library : Library or None
        What computes on the arrays where they lie; None on the host, where NumPy does.
    """

    on_host: bool
    late_events: bool

    @property
    def library(self) -> Library | None:
        """What computes on the arrays."""

    @property
    def room(self) -> Callable[[], Room] | None:
        """What tells how much memory there is."""

    def allocate(self, nbytes: int) -> Array:
        """A block: a one-dimensional array of bytes with an `address`, not initialised.

        Raises
        ------
        MemoryError
        """

    def array(
        self, block: Array, shape: Sequence[int], dtype: np.dtype, offset: int = 0, strides: Strides = None
    ) -> Array:
        """An array over a block, which it keeps alive."""

    def empty(self, shape: Sequence[int], dtype: np.dtype) -> Array:
        """An array of its own, not initialised."""

    def taken_over(self, array: Array) -> Array | None:
        """All memory of an array that its library has made, as a block; None where it is a view, or not in C order."""

    def holds(self, x: object) -> bool:
        """Whether something is an array of a device, of this memory's kind."""

    def address(self, array: Array) -> int:
        """Of the first element."""

    def is_aligned(self, array: Array) -> bool:
        """Whether the library can work on an array as it lies: fields of packed records may lie at any address."""

    def copy(self, target: Array, source: Array) -> None:
        """``target[...] = source`` within the memory."""

    def upload(self, target: Array, source: np.ndarray) -> None:
        """``target[...] = source`` from the host; `source` may be changed as soon as this returns."""

    def download(self, source: Array) -> np.ndarray:
        """The values of an array on the host, for reading; an ndarray is returned as it is."""

    def pack(self, messages: Sequence[Sequence[Array]], dtype: np.dtype) -> list[np.ndarray]:
        """Messages for a communicator, each the elements of some arrays, one after the other; valid after `fence`."""

    def message(self, nbytes: int) -> np.ndarray:
        """A buffer in which a communicator may receive."""

    def unpack(self, messages: Sequence[np.ndarray], parts: Sequence[Sequence[Array]], dtype: np.dtype) -> None:
        """Put the elements of received messages into arrays; the messages must not be changed afterwards."""

    def fence(self) -> None:
        """Wait until everything that was asked for has happened."""


class HostMemory:
    """The memory of this process."""

    on_host = True
    late_events = False
    room: Callable[[], Room] | None = None
    library: Library | None = None

    def allocate(self, nbytes: int) -> Block:
        """As in `Memory`."""
        return make_block(nbytes)

    def array(
        self, block: np.ndarray, shape: Sequence[int], dtype: np.dtype, offset: int = 0, strides: Strides = None
    ) -> np.ndarray:
        """As in `Memory`."""
        return np.ndarray(shape, dtype, block, offset, strides)

    def empty(self, shape: Sequence[int], dtype: np.dtype) -> np.ndarray:
        """As in `Memory`."""
        return np.empty(shape, dtype)

    def taken_over(self, array: np.ndarray) -> None:
        """As in `Memory`: algorithms ask for memory of the pool (`engine.data.scratch`)."""

    def holds(self, x: object) -> bool:
        """As in `Memory`."""
        return False

    def address(self, array: np.ndarray) -> int:
        """As in `Memory`."""
        return array.ctypes.data

    def is_aligned(self, array: np.ndarray) -> bool:
        """As in `Memory`: NumPy takes any."""
        return True

    def copy(self, target: np.ndarray, source: np.ndarray) -> None:
        """As in `Memory`."""
        np.copyto(target, source, casting="unsafe")

    def upload(self, target: np.ndarray, source: np.ndarray) -> None:
        """As in `Memory`."""
        target[...] = source

    def download(self, source: np.ndarray) -> np.ndarray:
        """As in `Memory`."""
        return source

    def pack(self, messages: Sequence[Sequence[np.ndarray]], dtype: np.dtype) -> list[np.ndarray]:
        """As in `Memory`; a contiguous array is its own message."""
        return [_packed(parts, dtype) for parts in messages]

    def message(self, nbytes: int) -> np.ndarray:
        """As in `Memory`."""
        return np.empty(nbytes, np.uint8)

    def unpack(self, messages: Sequence[np.ndarray], parts: Sequence[Sequence[np.ndarray]], dtype: np.dtype) -> None:
        """As in `Memory`."""
        for message, targets in zip(messages, parts, strict=True):
            values, start = message.view(dtype), 0
            for part in targets:
                part[...] = values[start : start + part.size].reshape(part.shape)
                start += part.size

    def fence(self) -> None:
        """Everything has happened when a call returns."""


def _packed(parts: Sequence[np.ndarray], dtype: np.dtype) -> np.ndarray:
    if len(parts) == 1:
        return np.ascontiguousarray(parts[0]).reshape(-1).view(np.uint8)
    packed, start = np.empty(sum(part.size for part in parts), dtype), 0
    for part in parts:
        packed[start : start + part.size].reshape(part.shape)[...] = part
        start += part.size
    return packed.view(np.uint8)


HOST = HostMemory()
