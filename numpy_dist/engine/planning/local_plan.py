"""The loop of one group on this rank: what it needs memory for, and the boxes in which it runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numpy_dist.engine.memory.storage import Storage
from numpy_dist.engine.planning.horizontal_fusion import Folds, FusedParts, Results
from numpy_dist.engine.planning.part import Body, Part, Present
from numpy_dist.ir.statements import Statement
from numpy_dist.layout.regions import Box, intersect_boxes, subtract_box


class LocalPlan:
    """How a group's loop runs on this rank while its storages' allocations have the same geometry.

    Attributes
    ----------
    bodies : list of Body
        One for each cell of the iteration space; one in all where every statement runs in all of it.
    allocates, versions, dropped
        Slots that need an allocation, a new version, or no spare one any more; with the box, or the region written.
    takes : list of (int, int)
        Slots that get the memory of another slot, which is not needed any more.
    updates : list of int
        Slots that are written where their values lie, and also read: a loop that was left half-way cannot be run again.
    reads, writes, contracted, stored_temporaries : int
        What is added to the counters.
    parts : list of Part
        The loop in all its boxes: first those that run while messages travel.
    """

    def __init__(self) -> None:
        self.bodies: list[Body] = []
        self.allocates: list[tuple[int, Any]] = []
        self.versions: list[tuple[int, Any]] = []
        self.dropped: list[int] = []
        self.takes: list[tuple[int, int]] = []
        self.updates: list[int] = []
        self.reads = self.writes = self.contracted = self.stored_temporaries = 0
        self.parts: list[Part] = []
        self._early = self._late = FusedParts([])
        self._folds: Folds | None = None

    @property
    def overwrites(self) -> bool:
        """Whether the loop overwrites what it reads."""
        return bool(self.takes or self.updates)

    def divide(self, interior: Box | None, statements: Sequence[Statement]) -> None:
        """Let each cell's body run in a part of its own, or in several: of these, that in the interior runs first.

        Parameters
        ----------
        interior : Box or None
            What can be computed while messages travel.
        statements : sequence of Statement
            An example of the loop's.
        """
        early, late = [], []
        for body in self.bodies:
            inner = None if interior is None else intersect_boxes(body.box, interior)
            if inner is None:
                late.append(Part(body, body.box))
            else:
                early.append(Part(body, inner))
                late += [Part(body, box) for box in subtract_box(body.box, inner)]
        self.parts = early + late
        self._early, self._late = FusedParts(early), FusedParts(late)
        if len(self.parts) > 1:
            self._folds = Folds([part.box for part in self.parts], statements)
            memos = [part.memo for part in self.parts]
            for memo in memos:
                memo["siblings"] = memos

    def prepare(self, runtime: Any, storages: list[Storage], number: int) -> None:
        """Count the loop, and have memory for all that it writes; `number` is that of its group.

        What may fail for want of memory comes first.
        """
        execution = runtime.execution
        execution.plans[number] = self
        execution.number = number
        counters = runtime.counters
        counters.loops += 1
        counters.reads += self.reads
        counters.writes += self.writes
        counters.contracted += self.contracted
        counters.stored_temporaries += self.stored_temporaries
        for slot, box in self.allocates:
            storages[slot].allocate(box)
        for slot, region in self.versions:
            execution.versions.append((number, storages[slot], storages[slot].memory))
            new_version(runtime, storages[slot], region)
        for slot, donor in self.takes:
            storages[slot].take_over(storages[donor])
        for slot in self.dropped:
            storages[slot].drop_spare()

    def compute(self, present: Present, waits: list[Callable[[], None]]) -> Sequence[np.ndarray]:
        """Run the loop, which was prepared; returns the partial results of the group's reductions.

        Parameters
        ----------
        waits : list of callable
            They wait for what was asked for; the interior, if there is one, is computed first.
        """
        later: list[tuple[np.ndarray, np.ndarray]] = []
        if len(self.parts) == 1:
            for wait in waits:
                wait()
            partials = self.parts[0].run(present, later)
        else:
            early = self._early.run(present, later)
            for wait in waits:
                wait()
            late = self._late.run(present, later)
            partials = [] if self._folds is None else self._folds.fold(_joined(early, late), present)
        for target, source in later:
            present.runtime.backend.memory.copy(target, source)
        return partials


def _joined(first: Results, second: Results) -> Results:
    """The results of parts that ran first and of the others, of which there may be none."""
    if not first or not second:
        return first or second
    return [[*a, *b] for a, b in zip(first, second, strict=True)]


def new_version(runtime: Any, storage: Storage, region: Any) -> None:
    """Swap in another allocation; cells outside the write are carried over, unless the spare has them."""
    old, spare = storage.memory, storage.spare
    runtime.counters.versions += 1
    if spare is not None and region is not None and spare[1] is region:
        storage.memory, storage.spare = spare[0], (old, region)
        return
    runtime.counters.carried += 1
    new = storage.pool.take(old.size)
    storage.pool.memory.copy(new, old)
    storage.memory, storage.spare = new, (old, region)
    if spare is not None:
        discarded = spare[0]
        del spare
        storage.pool.give(discarded)
