"""Walks over arrays of several ranks: small work on a copy of the whole, which every rank has while it lasts.

A program that works on one row or element after the other says the same on every rank. Recorded, each step costs what a
message does, and more. Where it goes on, every rank hence gets a copy of the whole array, on which all of them do the
same work at once (see `windows`), each for itself and without a message. Values that others have made, and that it is
to write, come to all of them. Each rank has its own part of the array as
before, into which it writes back what the walk has changed before anybody else looks there: a copy in its own memory.

Whether an array is walked over follows from the program alone, on every rank: a `Walk` belongs to the storage.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from operator import index
from typing import TYPE_CHECKING, Any

import numpy as np

from numpy_dist.comm.divergence.checks import UNLIKE
from numpy_dist.engine.data.gather import assemble
from numpy_dist.engine.data.ingest import cut_out
from numpy_dist.engine.memory.budget import budget
from numpy_dist.engine.memory.handle import metadata
from numpy_dist.engine.runtime import Runtime

if TYPE_CHECKING:
    from numpy_dist.engine.memory.handle import ShardedHandle
    from numpy_dist.engine.memory.storage import Storage

FEWEST = 16  # steps before a copy is made of the smallest arrays
BYTES_A_STEP = 1 << 18  # what is sent in the time of a step that is not at hand
MOST_BYTES = 1 << 28  # of an array that is copied
MOST_STEPS = 1 << 16
WRITTEN_BACK = 8  # times sooner than sent is a copy written back

_are_integers = frozenset({int}).issuperset

_may_copy: Callable[[int], bool] = bool


def register_policy(may_copy: Callable[[int], bool]) -> None:
    """Set what tells the user that so many bytes come to every rank, and says whether they may."""
    global _may_copy
    _may_copy = may_copy


class Walk:
    """What a program that walks over a storage has done, and the copy that it works on.

    Attributes
    ----------
    steps : int
        Small parts that were looked at since there was a copy last.
    needed : int
        How many there must be before there is one again.
    spent : int
        What keeping the copy has cost, in steps: values that were brought for it, and writing it back.
    copy : ndarray or None
        All elements, in C order: the storage's values, and what the walk has made of them.
    version : tuple
        The storage's, of which this is the copy.
    changed : bool
        Whether the copy has values that the storage has not.
    """

    __slots__ = ("_journal", "_rank", "changed", "copy", "needed", "spent", "steps", "version")

    def __init__(self, runtime: Runtime, needed: int) -> None:
        self._rank = runtime.rank
        self._journal = None if runtime.comm.checks is None else runtime.comm.checks.journal
        self.steps, self.needed, self.spent = 0, needed, 0
        self.copy: np.ndarray | None = None
        self.version = (0, 0)
        self.changed = False

    @property
    def is_worth_it(self) -> bool:
        """Whether the copy has not yet cost more than the steps that were taken on it would have cost without."""
        return self.spent < self.needed + self.steps

    def looked(self, key: object) -> None:
        """Note which part is looked at: other ones on other ranks are found where the ranks meet."""
        self.steps += 1
        if self._journal is not None:
            items = key if type(key) is tuple else (key,)
            if -1 in items or not _are_integers(map(type, items)):
                items = tuple([item.indices(_END) if type(item) is slice else _number(item) for item in items])
            self._journal.note_value(hash(items))  # of integers: alike in all processes

    def write_back(self, storage: Storage) -> None:
        """Let the storage have the values of the copy, which is not written from now on until a window is asked for."""
        window = None if storage.window is None else storage.window()
        if window is not None:
            window.writeable = False
        if not self.changed:
            return
        assert self.copy is not None
        box = storage.layout.box(self._rank)
        if box is not None:
            storage.part(box)[...] = cut_out(self.copy, box)
        if self._journal is not None:
            self._journal.note_value(checksum(self.copy))
        self.changed = False
        self.spent += self.needed // WRITTEN_BACK

    def written(self, storage: Storage, nbytes: int) -> None:
        """Statements are about to write so many bytes of the storage: a sweep is no walk, and ends one."""
        if self.copy is not None:
            self.end(storage)
        elif 4 * nbytes >= storage.nbytes:
            self.steps = 0

    def end(self, storage: Storage) -> None:
        """Have no copy any more, since others write the storage; one that was hardly used comes later the next time."""
        if self.copy is None:
            return
        self.write_back(storage)
        if storage.window is not None and (window := storage.window()) is not None:
            window.shut()
        if self.steps < self.needed or not self.is_worth_it:
            self.needed = min(2 * self.needed, MOST_STEPS)
        self.copy, self.steps, self.spent = None, 0, 0


_BLOCK = 255, 1021  # both odd: words that are all others by the same make other sums, and row by row they shift


def checksum(array: np.ndarray) -> int:
    """A checksum of all elements of an array in C order, at the speed of memory.

    Of each block of words of 64 bits its columns are added up; of the sums, and what is left over, it is the CRC.
    Another value anywhere makes another checksum. Values that change places within a column do not.
    """
    flat = array.reshape(-1).view(np.uint8)
    count = flat.nbytes // (8 * _BLOCK[0] * _BLOCK[1])
    blocks = flat[: count * 8 * _BLOCK[0] * _BLOCK[1]].view(np.uint64).reshape(count, *_BLOCK)
    sums = blocks.sum(axis=1, dtype=np.uint64)
    return zlib.crc32(flat[blocks.nbytes :], zlib.crc32(sums))  # type: ignore[arg-type]


_NONE, _ELLIPSIS, _LAST = -1 << 60, 1 << 60, 1 << 59
_END = 1 << 29  # in the place of ends that slices do not name: no array that is copied is as long


def _number(item: Any) -> int:
    """An item of a basic index as an integer, of which the hash is the same in all processes."""
    if type(item) is int and item != -1:
        return item
    if item is None or item is Ellipsis:
        return _NONE if item is None else _ELLIPSIS
    number = index(item)
    return _LAST if number == -1 else number  # Python's hash of -1 is that of -2


def known_copy(storage: Storage) -> np.ndarray | None:
    """The copy on which the walk over a storage works, if there is one of its present values."""
    walk: Walk | None = storage.walk
    return walk.copy if walk is not None and walk.version == storage.version else None


def has_walked(rt: Runtime, storage: Storage) -> bool:
    """Count one step; whether there were so many that a copy is to be made."""
    walk = _walk_over(rt, storage)
    if walk.copy is not None:
        return False
    walk.steps += 1
    return walk.steps + 1 >= walk.needed and _is_copied(rt, storage)


def _walk_over(rt: Runtime, storage: Storage) -> Walk:
    if storage.walk is None:
        storage.walk = Walk(rt, max(FEWEST, storage.nbytes // BYTES_A_STEP))
        rt.program.watches = True  # it tells of statements that write the storage
    return storage.walk  # type: ignore[return-value]


def copy_of(rt: Runtime, storage: Storage) -> np.ndarray | None:
    """As `known_copy`, made anew after some steps. Collective then, and to be called by all ranks alike."""
    walk = _walk_over(rt, storage)
    if walk.copy is not None:
        if walk.version == storage.version:
            return walk.copy
        walk.end(storage)
    walk.steps += 1
    if walk.steps < walk.needed:
        return None
    if not _is_copied(rt, storage) or 4 * storage.nbytes > budget(rt) or not _may_copy(storage.nbytes):
        walk.steps = 0  # to be asked again, but not at each step
        return None
    with rt.comm.signals:  # booked as replicated, by the policy
        rt.program.force(storage)
        rt.pool.relieve(storage.nbytes)
        copy = np.ascontiguousarray(assemble(rt, storage, storage.meta_array(), range(rt.size)))
        rt.events.tell()
    if storage.memory is None:
        box = storage.layout.box(rt.rank)
        if box is not None:
            storage.allocate(box)
            storage.part(box)[...] = cut_out(copy, box)
    walk.copy, walk.version, walk.steps, walk.changed = copy, storage.version, 0, False
    return copy


def brought(rt: Runtime, walk: Walk, x: ShardedHandle) -> np.ndarray:
    """The elements of a small array that a walk is to write to its copy. Collective: executes what makes them."""
    walk.spent += 1
    with rt.comm.signals:
        rt.program.force(x._storage)
        found = assemble(rt, x._storage, metadata(x), range(rt.size))
        rt.events.tell()
    assert found is not None
    return found


def _is_copied(rt: Runtime, storage: Storage) -> bool:
    """Whether such an array is copied at all: not if its memory was handed out, nor if each rank has its own values."""
    if storage.pinned or storage.layout.has_copies or rt.comm in UNLIKE:
        return False
    if rt.comm.name == "simulated" or rt.comm.refuse_gathers:  # settings of threads differ
        return False
    return storage.nbytes <= MOST_BYTES
