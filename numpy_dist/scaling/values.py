"""Values that a program asks for: noted in a small run that computes them, and given again where nothing is computed.

Both are done by the memory of a rank, which is asked to `download` what goes to Python.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from numpy_dist.backends.memory import Block, HostMemory, make_zero_block, zero_pages
from numpy_dist.frames import UserLine
from numpy_dist.scaling.expected import ExpectedValues

Values = Mapping[UserLine, Sequence[object]]
"""By line, what a program has got there, in order."""

MOST_COPIED = 1 << 24
"""Bytes up to which copies are made though nothing is computed; larger ones would take the pages of a whole share."""
MOST_ASSUMED = 10_000
"""Values that a line gets though nobody has computed them: a loop that they steer may never end."""


def unreal_bytes(nbytes: int) -> np.ndarray:
    """So many zeros, on pages that are not there before somebody writes to them."""
    return np.frombuffer(zero_pages(nbytes), np.uint8)


def is_spread(array: np.ndarray) -> bool:
    """Whether an array lies, with what is between its elements, on more pages than copies may take."""
    span = sum((n - 1) * abs(stride) for n, stride in zip(array.shape, array.strides, strict=True))
    return array.size > 0 and span + array.itemsize > MOST_COPIED


class EndlessLoop(RuntimeError):
    """A line has asked for so many values that nobody has computed that its loop may never end."""


class NotingMemory(HostMemory):
    """The host's memory, in which the values are noted that go to Python as scalars.

    Parameters
    ----------
    here : callable
        The user's line, or None where the engine itself asks.
    """

    def __init__(self, here: Callable[[], UserLine | None]) -> None:
        self.values: dict[UserLine, list[object]] = {}
        self._here = here

    def download(self, source: np.ndarray) -> np.ndarray:
        """As in `Memory`."""
        if source.size == 1 and (line := self._here()) is not None:
            self.values.setdefault(line, []).append(source.reshape(())[()])
        return source


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
    values : Values
        What is given to the program at each line, in order; then what is in memory.
    nbytes : int
        How much memory the rank is told that there is.
    expected : ExpectedValues
        What has come while a function looks at elements.

    Attributes
    ----------
    assumed, taken : Counter
        By line, how many values were given that nobody has computed, and how many were taken from `values`.
    """

    def __init__(
        self, here: Callable[[], UserLine | None], values: Values, nbytes: int, expected: ExpectedValues
    ) -> None:
        self.room = lambda: RoomOfRank(nbytes, nbytes)
        self.assumed: Counter[UserLine] = Counter()
        self.taken: Counter[UserLine] = Counter()
        self._values = {line: deque(found) for line, found in values.items()}
        self._here = here
        self._expected = expected

    def allocate(self, nbytes: int) -> Block:
        """As in `Memory`; zeros."""
        return make_zero_block(nbytes)

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
        """As in `Memory`; a scalar that goes to Python is the next one of its line.

        Raises
        ------
        EndlessLoop
        """
        if source.size != 1 or (line := self._here()) is None:
            return source
        waiting = self._values.get(line)
        if not waiting:
            if self.assumed[line] >= MOST_ASSUMED:
                raise EndlessLoop(
                    f"{line}: {MOST_ASSUMED:,} values that nobody has computed went to Python here, and the loop may "
                    "never end with them. Give the script fewer steps, or the plan other values: --value X, or "
                    "--values 'ARGUMENTS OF A SMALL RUN'"
                )
            self.assumed[line] += 1
            return source
        self.taken[line] += 1
        return np.full(source.shape, waiting.popleft(), source.dtype)
