"""A bounded pool of allocations: fresh pages cost more than the arithmetic on them."""

from __future__ import annotations

import sys

import numpy as np

_OVERHEAD = 256  # bytes that a block takes besides its memory, about


class Block(np.ndarray):
    """An allocation: a one-dimensional array of bytes that knows where it lies.

    Attributes
    ----------
    address : int
        Of its first byte. Slices and views of a block have none.
    """

    address: int


def make_block(nbytes: int) -> Block:
    """A new allocation, not initialised."""
    block = np.ndarray.__new__(Block, nbytes, np.uint8)
    block.address = block.ctypes.data
    return block


class Pool:
    """Free allocations by size.

    Parameters
    ----------
    limit : int
        Most bytes that are kept free; what comes back above it is dropped, oldest first.

    Attributes
    ----------
    held : int
        Bytes in use by storages; `peak` is the most there ever were.
    free : int
        Bytes kept for reuse.
    """

    def __init__(self, limit: int = 1 << 30) -> None:
        self.limit, self.held, self.peak, self.free = limit, 0, 0, 0
        self._blocks: dict[int, list[Block]] = {}

    def take(self, nbytes: int) -> Block:
        """An allocation of exactly `nbytes`, not initialised."""
        held = self.held = self.held + nbytes
        if held > self.peak:
            self.peak = held
        blocks = self._blocks.get(nbytes)
        if blocks:
            self.free -= nbytes + _OVERHEAD
            return blocks.pop()
        return make_block(nbytes)

    def give(self, block: Block) -> None:
        """Take an allocation back; it is reused only if nobody else sees it."""
        nbytes = block.size
        self.held -= nbytes
        if sys.getrefcount(block) > 3:  # ours, the caller's and the argument of getrefcount
            return
        cost = nbytes + _OVERHEAD
        while self._blocks and self.free + cost > self.limit:
            self._drop_oldest()
        if cost <= self.limit:
            self._blocks.setdefault(nbytes, []).append(block)
            self.free += cost

    def _drop_oldest(self) -> None:
        size = next(iter(self._blocks))
        blocks = self._blocks[size]
        if blocks:
            blocks.pop(0)
            self.free -= size + _OVERHEAD
        if not blocks:
            del self._blocks[size]
