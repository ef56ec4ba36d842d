"""Planning of a group's loop on this rank: a function of views, geometry and liveness, not of values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy_dist.backends.base import Temp
from numpy_dist.engine.fuse import disjoint
from numpy_dist.engine.local_plan import AFTER, ASIDE, BEFORE, FETCHED, Fetched, LocalPlan, Operand
from numpy_dist.engine.storage import Storage
from numpy_dist.ir.statements import Elementwise, Reduction, Ref, Statement
from numpy_dist.layout.regions import Box, box_size

# How a storage is written: through to its memory, to a new version of it, or by way of another array.
_HOW = ("through", "version", "aside")


class LocalPlanner:
    """Plans a group's loop for an example of its statements and storages.

    Parameters
    ----------
    box : Box
        This rank's part of the iteration space.
    slots : sequence of int
        The group's storages.
    kept : frozenset of int
        Slots that must be stored, since others read or write them.
    rank : int
    statements, storages
        The example.
    fetched : dict
        By the key (slot, view) of what was fetched.
    """

    def __init__(
        self,
        box: Box,
        slots: Sequence[int],
        kept: frozenset[int],
        rank: int,
        statements: Sequence[Statement],
        storages: Sequence[Storage],
        fetched: dict[tuple, Fetched],
    ) -> None:
        self.made, self.box, self.kept, self.rank = LocalPlan(), box, kept, rank
        self.statements, self.storages, self.fetched = statements, storages, fetched
        self.slots = {id(storages[slot]): slot for slot in slots}
        self.present: dict[tuple, Any] = {}  # by view: the operand's number or temporary with its present value
        self.reads: dict[tuple, Ref] = {}
        self.stored: set[tuple] = set()  # views that the loop has an array for
        self.geometry: dict[int, tuple] = {}  # slot -> low and extent
        self.temps = 0

    def key(self, ref: Ref) -> tuple:
        """What identifies the elements of a ref within the group."""
        return self.slots[id(ref.storage)], ref.view

    def plan(self) -> LocalPlan:
        """The plan; `LocalPlan.divide` is left to the caller."""
        made = self.made
        written: set[tuple] = set()
        for statement in self.statements:
            for ref in statement.reads():
                key = self.key(ref)
                if key not in written and key not in self.reads:
                    self.reads[key] = ref
                    self.present[key] = self._source(key, ref)
            if not isinstance(statement, Reduction):
                written.update(self.key(out) for out in statement.outputs)
        made.counts["reads"] = len({slot for slot, _ in self.reads})
        versions = self._versions()
        for statement in self.statements:
            where = None if statement.where is None else self.present[self.key(statement.where)]
            inputs = tuple(self.present[self.key(x)] if type(x) is Ref else None for x in statement.inputs)
            outputs: tuple = ()
            if isinstance(statement, Elementwise):
                pairs = zip(statement.outputs, statement.creates, strict=True)
                outputs = tuple(self._target(statement, out, new, versions) for out, new in pairs)
            made.steps.append((inputs, outputs, where))
        return made

    def _operand(self, operand: Operand) -> int:
        self.made.operands.append(operand)
        return len(self.made.operands) - 1

    def _source(self, key: tuple, ref: Ref) -> int:
        found = self.fetched.get(key)
        if found is None:
            return self._operand(self._stored(BEFORE, key[0], ref))
        low, steps = tuple(r.start for r in found.region), tuple(r.step for r in found.region)
        itemsize, extent = ref.storage.dtype.itemsize, found.array.shape
        return self._operand(Operand(FETCHED, key, itemsize, low, extent, steps, ref.vmap, ref.array.dtype))

    def _stored(self, over: int, slot: int, ref: Ref) -> Operand:
        storage = ref.storage
        if slot not in self.geometry:
            if storage.memory is None:
                box = storage.layout.box(self.rank)
                self.made.allocates.append((slot, box))
                self.geometry[slot] = tuple(lo for lo, _ in box), tuple(hi - lo for lo, hi in box)
            else:
                self.geometry[slot] = storage.low, storage.extent
        low, extent = self.geometry[slot]
        return Operand(over, slot, storage.dtype.itemsize, low, extent, None, ref.vmap, ref.array.dtype)

    # -- what is written --------------------------------------------------------------------------------------------

    def _versions(self) -> dict[int, str]:
        """For each written storage how it is written."""
        verdict: dict[int, str] = {}
        targets: dict[int, dict[Any, Ref]] = {}
        for statement in self.statements:
            for out in () if isinstance(statement, Reduction) else statement.outputs:
                slot, view = key = self.key(out)
                if view not in targets.setdefault(slot, {}):
                    targets[slot][view] = out
                    verdict[slot] = max(verdict.get(slot, "through"), self._verdict(out, key), key=_HOW.index)
        for slot, views in targets.items():
            storage = self.storages[slot]
            region = next(iter(views)) if len(views) == 1 else None
            if verdict[slot] == "version":
                self.made.versions.append((slot, region))
            elif storage.spare is not None and (region is None or storage.spare[1] is not region):
                self.made.dropped.append(slot)
        return verdict

    def _verdict(self, out: Ref, key: tuple) -> str:
        storage = out.storage
        conflict = any(
            ref.storage is storage and other != key and other not in self.fetched and not disjoint(ref, out)
            for other, ref in self.reads.items()
        )
        if not conflict:
            return "through"
        if storage.memory is None:  # nothing was ever stored there, and what is read is undefined
            return "through"
        written = out.array.itemsize * box_size(self.box)
        return "aside" if 2 * written < storage.memory.size or storage.pinned else "version"

    def _target(self, statement: Elementwise, out: Ref, creates: bool, versions: dict[int, str]) -> Any:
        """Where a statement writes: a temporary, or an array over the storage's memory."""
        key, storage, counts = self.key(out), out.storage, self.made.counts
        if key in self.stored:
            return self.present[key]
        self.stored.add(key)
        slot = key[0]
        if creates and not storage.wanted and slot not in self.kept:
            counts["contracted"] += 1
            temp = self.present[key] = Temp(self.temps, out.array.dtype)
            self.temps += 1
            return temp
        counts["writes"] += 1
        if creates and not storage.alive:
            counts["stored_temporaries"] += 1
        operand = self._stored(AFTER, slot, out)
        how = versions[slot]
        number = self._operand(operand)
        if how == "aside":
            target, number = number, self._operand(operand._replace(over=ASIDE))
            if statement.where is not None:
                self.made.filled.append((number, target))
            self.made.copies.append((target, number))
        elif how == "version" and statement.where is not None:
            self.made.filled.append((number, self._operand(operand._replace(over=BEFORE))))
        self.present[key] = number
        return number
