"""Memory of a rank that computes nothing: pages that are not there, and values that stand for computed ones."""

from __future__ import annotations

import contextlib
import math
import mmap
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from numpy_dist.backends.memory import Block, HostMemory, make_zero_block, zero_pages
from numpy_dist.frames import UserLine
from numpy_dist.scaling.doors import PlanDoors
from numpy_dist.scaling.expected import ExpectedValues

MOST_COPIED = 1 << 24
"""Bytes up to which copies are made though nothing is computed; larger ones would take the pages of a whole share."""


def unreal_bytes(nbytes: int) -> np.ndarray:
    """So many zeros, on pages that are not there before somebody writes to them."""
    return np.frombuffer(_in_large_pages(zero_pages(nbytes)), np.uint8)


def _in_large_pages(buffer: object) -> Any:
    """A buffer of zeros that is read fast, where the system can: all of it is the same two megabytes."""
    if isinstance(buffer, mmap.mmap) and hasattr(mmap, "MADV_HUGEPAGE"):
        with contextlib.suppress(OSError):  # of systems without such pages
            buffer.madvise(mmap.MADV_HUGEPAGE)
    return buffer


def is_spread(array: np.ndarray) -> bool:
    """Whether an array lies, with what is between its elements, on more pages than copies may take."""
    span = sum((n - 1) * abs(stride) for n, stride in zip(array.shape, array.strides, strict=True))
    return array.size > 0 and span + array.itemsize > MOST_COPIED


class RoomOfRank(NamedTuple):
    """Bytes of a rank's memory in all, and those that can still be had."""

    total: int
    available: int


class UnrealMemory(HostMemory):
    """Memory whose pages are not there before somebody writes to them, and in which little is ever written.

    Parameters
    ----------
    here : callable
        The user's line, or None where the engine itself asks.
    doors : PlanDoors
        Know what a line will get.
    nbytes : int
        How much memory the rank is told that there is.
    expected : ExpectedValues
        What has come while a function looks at elements.

    Attributes
    ----------
    asked : Counter
        By line, how many numbers were asked for.
    """

    def __init__(
        self, here: Callable[[], UserLine | None], doors: PlanDoors, nbytes: int, expected: ExpectedValues
    ) -> None:
        self.room = lambda: RoomOfRank(nbytes, nbytes)
        self.asked: Counter[UserLine] = Counter()
        self._here, self._doors = here, doors
        self._expected = expected

    def allocate(self, nbytes: int) -> Block:
        """As in `Memory`; zeros."""
        block = make_zero_block(nbytes)
        _in_large_pages(block.base)
        return block

    def empty(self, shape: Sequence[int], dtype: np.dtype) -> np.ndarray:
        """As in `Memory`; zeros."""
        return unreal_bytes(math.prod(shape) * dtype.itemsize).view(dtype).reshape(shape)

    def message(self, nbytes: int) -> np.ndarray:
        """As in `Memory`; zeros."""
        return unreal_bytes(nbytes)

    def copy(self, target: np.ndarray, source: np.ndarray) -> None:
        """As in `Memory`, for what is small."""
        if not is_spread(target) and not is_spread(source):
            super().copy(target, source)

    def pack(self, messages: Sequence[Sequence[np.ndarray]], dtype: np.dtype) -> list[np.ndarray]:
        """As in `Memory`; large messages are zeros."""
        made = []
        for parts in messages:
            unread = any(map(is_spread, parts))
            made += [unreal_bytes(sum(part.nbytes for part in parts))] if unread else super().pack([parts], dtype)
        return made

    def unpack(self, messages: Sequence[np.ndarray], parts: Sequence[Sequence[np.ndarray]], dtype: np.dtype) -> None:
        """As in `Memory`, for what is small."""
        small = [number for number, targets in enumerate(parts) if not any(map(is_spread, targets))]
        super().unpack([messages[number] for number in small], [parts[number] for number in small], dtype)
        if self._expected.distributes and dtype.kind in "fc":
            for number in small:
                for target in parts[number]:
                    self._expected.fill(target, 0)

    def download(self, source: np.ndarray) -> np.ndarray:
        """As in `Memory`; a number on the way to Python is what will come of it there, as far as that is known."""
        if source.size != 1 or (line := self._here()) is None:
            return source
        self.asked[line] += 1
        found = self._doors.asked(line, source.dtype)
        return source if found is None else np.full(source.shape, found, source.dtype)
