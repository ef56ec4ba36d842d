"""A bounded pool of allocations: fresh pages cost more than the arithmetic on them."""

from __future__ import annotations

import sys

import numpy as np

SMALLEST_POOLED = 1 << 16


class Pool:
    """Free allocations by size.

    Parameters
    ----------
    limit : int
        Most bytes that are kept free; what comes back above it is dropped, oldest first.

    Attributes
    ----------
    held : int
        Bytes in use by storages (pooled sizes only); `peak` is the most there ever were.
    free : int
        Bytes kept for reuse.
    """

    def __init__(self, limit: int = 1 << 30) -> None:
        self.limit, self.held, self.peak, self.free = limit, 0, 0, 0
        self._blocks: dict[int, list[np.ndarray]] = {}

    def take(self, nbytes: int) -> np.ndarray:
        """An allocation of exactly `nbytes`, not initialised."""
        if nbytes < SMALLEST_POOLED:
            return np.empty(nbytes, np.uint8)
        self.held += nbytes
        self.peak = max(self.peak, self.held)
        blocks = self._blocks.get(nbytes)
        if blocks:
            self.free -= nbytes
            return blocks.pop()
        return np.empty(nbytes, np.uint8)

    def give(self, block: np.ndarray) -> None:
        """Take an allocation back; it is reused only if nobody else sees it."""
        nbytes = block.size
        if nbytes < SMALLEST_POOLED:
            return
        self.held -= nbytes
        if sys.getrefcount(block) > 3:  # ours, the caller's and the argument of getrefcount
            return
        while self._blocks and self.free + nbytes > self.limit:
            self._drop_oldest()
        if nbytes <= self.limit:
            self._blocks.setdefault(nbytes, []).append(block)
            self.free += nbytes

    def _drop_oldest(self) -> None:
        size = next(iter(self._blocks))
        blocks = self._blocks[size]
        if blocks:
            blocks.pop(0)
            self.free -= size
        if not blocks:
            del self._blocks[size]
