"""Memory for algorithms that run at once: their results, and what they need meanwhile, lie in the rank's pool."""

from __future__ import annotations

from math import prod
from types import TracebackType
from typing import TYPE_CHECKING

import numpy as np

from numpy_dist.backends.base import Mover
from numpy_dist.backends.memory import Array, Block, block_of
from numpy_dist.engine.runtime import runtime

if TYPE_CHECKING:
    from numpy.typing import DTypeLike


class Scratch:
    """Arrays of the pool's memory, which all go back to it at the end of a ``with`` block; of the host's on a device.

    Those of which `from_local` makes a distributed array within the block are taken over by it, and not copied.

    Parameters
    ----------
    announces : bool
        Whether other ranks are told of memory that is not to be had; if not, the caller does without.
    """

    def __init__(self, announces: bool = True) -> None:
        self._announces = announces
        self._blocks: dict[int, Block] = {}
        self._pool = runtime().pool

    def empty(self, shape: int | tuple[int, ...], dtype: DTypeLike = float) -> np.ndarray:
        """A new array, not initialised, as `numpy.empty` makes it."""
        shape, kind = (shape,) if isinstance(shape, int) else tuple(shape), np.dtype(dtype)
        if not self._pool.memory.on_host:
            return np.empty(shape, kind)
        block = self._pool.take(prod(shape) * kind.itemsize, self._announces)
        self._blocks[id(block)] = block
        block.scratch = self
        return np.ndarray(shape, kind, buffer=block)

    def given(self, array: Array) -> Array:
        """An array that NumPy has just made, and that nobody else sees, as one of this scratch; others as they are."""
        block = block_of(array) if type(array) is np.ndarray and self._pool.memory.on_host else None
        if block is None:
            return array
        self._pool.count(block.size)
        self._blocks[id(block)] = block
        block.scratch = self
        return np.ndarray(array.shape, array.dtype, buffer=block)

    @property
    def mover(self) -> Mover | None:
        """What moves elements to several places faster than NumPy, if the backend has it."""
        return getattr(runtime().backend, "mover", None)

    def release(self, block: Block) -> None:
        """Leave a block to somebody else, who counts it as in use."""
        block.scratch = None
        self._pool.held -= self._blocks.pop(id(block)).size

    def __enter__(self) -> Scratch:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        while self._blocks:
            _, block = self._blocks.popitem()
            block.scratch = None
            self._pool.give(block)


def pool_block(array: np.ndarray) -> Block | None:
    """The allocation that an array takes the whole of, in C order, if it is one of a `Scratch` that is not yet over."""
    base: object = array.base
    while base is not None and not isinstance(base, Block):
        base = getattr(base, "base", None)
    if base is None or base.scratch is None or not array.flags.c_contiguous:
        return None
    return base if array.nbytes == base.size else None
