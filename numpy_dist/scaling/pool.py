"""A pool that computes nothing with its memory, and knows which lines hold it at the peak."""

from __future__ import annotations

import sys
import weakref
from types import FrameType

import numpy as np

from numpy_dist.backends.memory import Block
from numpy_dist.engine.data.scratch import Scratch
from numpy_dist.engine.memory.pool import Pool
from numpy_dist.engine.memory.storage import Storage
from numpy_dist.frames import UserLine
from numpy_dist.scaling.counted import HeldArray, merged
from numpy_dist.scaling.observer import PlanObserver
from numpy_dist.scaling.values import UnrealMemory

_Label = tuple[UserLine, str]


class AttributedPool(Pool):
    """Allocations of an unreal memory; nothing is reused.

    Parameters
    ----------
    memory : UnrealMemory
    observer : PlanObserver
        Knows what is being executed.
    """

    def __init__(self, memory: UnrealMemory, observer: PlanObserver) -> None:
        super().__init__(limit=0, memory=memory)
        self._observer = observer
        self._labels: dict[int, tuple[int, _Label]] = {}  # by address
        self._lines: weakref.WeakKeyDictionary[Storage, UserLine] = weakref.WeakKeyDictionary()
        self._at_peak: list[tuple[int, _Label]] = []
        self._rises = False  # what is held is the most there ever was, and not yet noted

    def take(self, nbytes: int, announces: bool = True) -> Block:
        """As in `Pool`."""
        block = self.memory.allocate(nbytes)
        self._labels[block.address] = nbytes, self._label(sys._getframe(1))
        self.count(nbytes)
        return block

    def count(self, nbytes: int) -> None:
        """As in `Pool`."""
        self._rises = self._rises or self.held + nbytes > self.peak
        super().count(nbytes)
        array = sys._getframe(1).f_locals.get("self")
        if isinstance(array, Storage):  # which takes over what an algorithm has made
            self.relabel(array.memory, array, self._observer.here())

    def give(self, block: Block) -> None:
        """As in `Pool`."""
        self._note_peak()
        self.held -= block.size
        self._labels.pop(block.address, None)

    def relabel(self, block: Block, storage: Storage, line: UserLine) -> None:
        """Take note that an array has got the memory of another one."""
        if block is not None and (found := self._labels.get(block.address)) is not None:
            self._labels[block.address] = found[0], (line, described(storage))
            self._lines[storage] = line

    @property
    def held_at_peak(self) -> list[HeldArray]:
        """What was held when it was the most, the largest first."""
        self._note_peak()
        text = self._observer.text
        return merged(HeldArray(line, text(line), what, nbytes) for nbytes, (line, what) in self._at_peak if nbytes)

    def _note_peak(self) -> None:
        if self._rises and self.held == self.peak:
            self._at_peak = list(self._labels.values())
        self._rises = False

    def _label(self, frame: FrameType) -> _Label:
        """For which array the caller takes memory, and the line that has made it."""
        observer, asks = self._observer, frame.f_locals
        array = asks.get("storage", asks.get("self"))  # of functions of the engine, of which these are methods
        if isinstance(array, Storage):
            what = described(array)
        elif isinstance(array, Scratch):
            kind, shape = np.dtype(asks.get("dtype", float)), asks.get("shape", ())
            what = f"scratch {kind} {shape} on this rank"
        else:
            what = "scratch memory"
        if not isinstance(array, Storage):
            return observer.here(), what
        line = observer.writing_line(array) or self._lines.get(array) or observer.here()
        self._lines[array] = line
        return line, what


def described(storage: Storage) -> str:
    """An array's dtype and shape, as the user knows its axes."""
    shape = storage.shape
    if storage.axes is not None:
        shape = tuple(n for _, n in sorted(zip(storage.axes, shape, strict=True)))
    return f"{storage.dtype} {shape}"
