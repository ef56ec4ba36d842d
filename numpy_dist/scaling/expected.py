"""Expected values: what stands in arrays that nobody has computed, where counts depend on the elements.

They are evenly distributed: every other element of a mask is true, numbers are as likely between any two bounds. Masks
have them from the loop on that would have computed them, numbers only while a function looks at them: as indices,
later, they could be too large for an array.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary, WeakSet

import numpy as np

from numpy_dist.engine.memory.handle import is_handle

if TYPE_CHECKING:
    from numpy_dist.engine.memory.handle import Handle
    from numpy_dist.engine.memory.storage import Storage
    from numpy_dist.frames import UserLine

MOST_EXPECTED = 1 << 27
"""Bytes of a rank's part of an array up to which it gets such values."""
DIFFERENT = 1000
"""Integers of which only the different ones matter are taken to be so many: labels, categories."""

_DIFFERENT = frozenset(
    "unique unique_values unique_counts unique_inverse unique_all union1d intersect1d setdiff1d setxor1d isin".split()
)
_LOOKING = _DIFFERENT | frozenset(
    "sort argsort sort_complex lexsort partition argpartition searchsorted digitize "
    "median percentile quantile nanmedian nanpercentile nanquantile histogram histogram2d histogramdd "
    "nonzero flatnonzero argwhere count_nonzero extract compress trim_zeros".split()
)


class ExpectedValues:
    """The values of one rank's arrays that nobody has computed.

    Parameters
    ----------
    rank : int

    Attributes
    ----------
    told : dict of (UserLine, str) to None
        At which lines counts are those of such values, and of what.
    distributes : bool
        Whether a function looks at elements at present: what comes from other ranks is then evenly distributed, too.
    """

    def __init__(self, rank: int) -> None:
        self.told: dict[tuple[UserLine, str], None] = {}
        self.distributes = False
        self._rank = rank
        self._step = 2  # of how many elements of a mask one is true
        self._part: float | None = None  # how much of a mask is true, if that is known
        self._random = np.random.default_rng(rank)
        self._uncomputed: WeakSet[Storage] = WeakSet()
        self._masks: WeakSet[Storage] = WeakSet()
        self._looked_at: WeakKeyDictionary[Storage, int] = WeakKeyDictionary()  # and how many different integers

    @contextmanager
    def selecting(self, mask: Handle, part: float, line: UserLine) -> Iterator[None]:
        """A block in which a line selects elements by a mask, of which so much is true."""
        before, self._part = self._part, part
        storage = mask._storage
        if storage is not None and storage in self._masks and storage.memory is not None:
            self._halve(storage, line)
        try:
            yield
        finally:
            self._part = before

    def uncomputed(self, storage: Storage, line: UserLine) -> None:
        """Take note that a loop, of this line, would have computed an array."""
        if storage.memory is None:
            return
        if storage.dtype.kind == "b":
            if storage not in self._masks:
                self._masks.add(storage)
                self._halve(storage, line)
            return
        self._uncomputed.add(storage)
        if storage in self._looked_at:
            self._distribute(storage)

    def has_values(self, x: Handle) -> bool:
        """Whether a distributed array has its own values: it came in, and no loop would have computed it since."""
        storage = x._storage
        return storage is not None and not (storage in self._uncomputed or storage in self._masks)

    def _halve(self, storage: Storage, line: UserLine) -> None:
        if _is_large(storage):
            self.told[line, "masks: too large here to have values: nothing is selected"] = None
            return
        block = storage.array()
        if block.size <= 1:  # a single one is a value that may go to Python
            return
        if self._part is not None:
            edges = np.floor(np.arange(block.size + 1) * self._part)
            block.reshape(-1)[:] = edges[1:] > edges[:-1]
            self.told[line, f"masks: {self._part:.3g} of the elements are taken to be true, as in the small run"] = None
            return
        block.reshape(-1)[1 :: self._step] = True
        if not self.distributes:  # else the function is told of
            self.told[line, "masks: every other element is taken to be true"] = None

    def _distribute(self, storage: Storage) -> None:
        self._uncomputed.discard(storage)
        self.fill(storage.array(), self._looked_at[storage])

    def fill(self, block: np.ndarray, different: int) -> None:
        """Put evenly distributed numbers into a block: of 0 to 1, or so many integers."""
        kind = block.dtype.kind
        if kind in "fc":
            block[...] = self._random.random(block.shape)
        elif kind in "iu":
            block[...] = self._random.integers(0, min(different, np.iinfo(block.dtype).max), block.shape)

    def positions(self, positions: Handle, block: np.ndarray, among: int, line: UserLine) -> np.ndarray:
        """What a rank has of the positions of an index among so many elements: even ones, if nobody has computed it."""
        if positions._storage not in self._uncomputed or not among or not block.size:
            return block
        if block.nbytes > MOST_EXPECTED:
            self.told[line, "index: too large here to have values: all positions are the first"] = None
            return block
        self.told[line, "index: positions are taken to be evenly distributed"] = None
        return np.random.default_rng(self._rank).integers(0, among, block.shape, block.dtype)

    @contextmanager
    def looked_at(self, name: str, arguments: Sequence[object], line: UserLine) -> Iterator[None]:
        """A block in which a function looks at the elements of its arguments, which have even ones meanwhile."""
        word = name.rpartition(".")[2]
        if self.distributes or word not in _LOOKING:
            yield
            return
        given = [x for each in arguments for x in (each if isinstance(each, list | tuple) else [each]) if is_handle(x)]
        before = self._random.bit_generator.state
        for x in given:
            if (storage := x._storage) is None or storage.dtype.kind not in "fciu":
                continue
            if storage.memory is not None and storage not in self._uncomputed:
                continue  # what came in has its values
            if _is_large(storage):
                self.told[line, f"{name}: too large here to have values: all are equal"] = None
                continue
            elements = max(1, storage.layout.nelements)
            self._looked_at[storage] = DIFFERENT if word in _DIFFERENT else elements
            if word in _DIFFERENT:  # masks tell which elements are others than those before them
                self._step = 1 if storage.dtype.kind in "fc" else max(1, elements // DIFFERENT)
            if storage.memory is not None:
                self._distribute(storage)
            self.told[line, f"{name}: values are taken to be evenly distributed"] = None
        self.distributes = bool(self._looked_at)
        del given
        try:
            yield
        finally:
            self.distributes, self._step = False, 2
            for storage in list(self._looked_at):
                if storage.memory is not None and not self._is_waiting(storage):
                    storage.array()[...] = 0
                    self._uncomputed.add(storage)
            self._looked_at.clear()
            self._random.bit_generator.state = before  # alike for alike calls

    def _is_waiting(self, storage: Storage) -> bool:
        """Whether it has no such values yet: nothing had to be computed."""
        return storage in self._uncomputed


def _is_large(storage: Storage) -> bool:
    return bool(storage.layout.nelements * storage.dtype.itemsize > MOST_EXPECTED * storage.layout.mesh.size)
