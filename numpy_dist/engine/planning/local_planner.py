"""Planning of a group's loop on this rank: a function of views, geometry and liveness, not of values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy_dist.backends.base import Temp
from numpy_dist.engine.memory.storage import Storage
from numpy_dist.engine.planning.donation import donations
from numpy_dist.engine.planning.fuse import disjoint
from numpy_dist.engine.planning.local_plan import LocalPlan
from numpy_dist.engine.planning.part import ASIDE, FETCHED, MEMORY, OLD, Body, PartOperand
from numpy_dist.engine.planning.transfer import Fetched
from numpy_dist.ir.statements import Elementwise, Reduction, Ref, Statement
from numpy_dist.layout.frames import Cell, Origin, framed
from numpy_dist.layout.regions import box_size

# How a storage is written: through to its memory, to a new version of it, or by way of another array.
_HOW = ("through", "version", "aside")


def cell_key(slot: int, ref: Ref, origin: Origin) -> tuple:
    """What identifies the cells of a ref within a group: the same for views that have the same at each index."""
    vmap = framed(ref.vmap, origin)
    return slot, ref.view.dtype, vmap.offset, vmap.steps, vmap.groups


class LocalPlanner:
    """Plans a group's loop for an example of its statements and storages.

    Parameters
    ----------
    cells : sequence of Cell
        This rank's part of the iteration space: boxes, and the statements that run there.
    origins : sequence of Origin
        Of the statements.
    slots : sequence of int
        The group's storages.
    kept, ending : frozenset of int
        Slots that must be stored, since others read or write them; slots that nothing uses after this group.
    rank : int
    statements, storages
        The example.
    fetched : dict
        By the key (slot, view, origin) of what was fetched.
    """

    def __init__(
        self,
        cells: Sequence[Cell],
        origins: Sequence[Origin],
        slots: Sequence[int],
        kept: frozenset[int],
        ending: frozenset[int],
        rank: int,
        statements: Sequence[Statement],
        storages: Sequence[Storage],
        fetched: dict[tuple, Fetched],
    ) -> None:
        self.made, self.cells, self.origins, self.kept, self.rank = LocalPlan(), cells, origins, kept, rank
        self.ending = ending
        self.statements, self.storages, self.fetched = statements, storages, fetched
        self.slots = {id(storages[slot]): slot for slot in slots}
        self.geometry: dict[int, tuple] = {}  # slot -> low and extent
        self.taken: dict[int, int] = {}  # slot -> slot of the result that takes its memory over
        self.temps: dict[tuple, Temp] = {}  # by the view that a contracted result has
        self.written: set[tuple] = set()  # views that are stored

    def key(self, ref: Ref, origin: Origin) -> tuple:
        """See `cell_key`."""
        return cell_key(self.slots[id(ref.storage)], ref, origin)

    def plan(self) -> LocalPlan:
        """The plan; `LocalPlan.divide` is left to the caller."""
        reads = [self._reads(numbers) for _, numbers in self.cells]
        self._take_over()
        self.made.reads = len({key[0] for found in reads for key in found})
        versions = self._versions(reads)
        for (box, numbers), found in zip(self.cells, reads, strict=True):
            planned = _CellPlanner(self, versions, Body(box, numbers))
            planned.plan(found)
            self.made.bodies.append(planned.body)
        self.made.writes, self.made.contracted = len(self.written), len(self.temps)
        return self.made

    def _reads(self, numbers: Sequence[int]) -> dict[tuple, tuple[Ref, Origin]]:
        """What statements read of the values from before the loop, by key."""
        found: dict[tuple, tuple[Ref, Origin]] = {}
        written: set[tuple] = set()
        for number in numbers:
            statement, origin = self.statements[number], self.origins[number]
            for ref in statement.reads():
                key = self.key(ref, origin)
                if key not in written:
                    found.setdefault(key, (ref, origin))
            if not isinstance(statement, Reduction):
                written.update(self.key(out, origin) for out in statement.outputs)
        return found

    # -- what is written --------------------------------------------------------------------------------------------

    def _take_over(self) -> None:
        """Let results take the memory of operands over that nobody needs any more."""
        keys = [
            {id(ref): self.key(ref, origin) for ref in (*statement.reads(), *statement.outputs)}
            for statement, origin in zip(self.statements, self.origins, strict=True)
        ]
        stored = {slot for slot in self.slots.values() if not self.is_contracted(slot)}
        found = donations(self.statements, keys, self.slots, self.ending, stored, self.rank)
        self.made.takes = sorted(found.items())
        for slot, donor in found.items():
            storage = self.storages[donor]
            self.taken[donor] = slot
            self.geometry[slot] = storage.low, storage.extent

    def is_contracted(self, slot: int) -> bool:
        """Whether a result that the group makes is never stored."""
        return not self.storages[slot].wanted and slot not in self.kept

    def _versions(self, reads: Sequence[dict[tuple, tuple[Ref, Origin]]]) -> dict[int, str]:
        """For each written storage how it is written."""
        verdict: dict[int, str] = {}
        targets: dict[int, dict[Any, Ref]] = {}
        for statement, origin in zip(self.statements, self.origins, strict=True):
            for out in () if isinstance(statement, Reduction) else statement.outputs:
                key = slot, *_ = self.key(out, origin)
                if out.view not in targets.setdefault(slot, {}):
                    targets[slot][out.view] = out
                    how = self._verdict(statement, out, key, reads)
                    verdict[slot] = max(verdict.get(slot, "through"), how, key=_HOW.index)
        for slot, views in targets.items():
            storage = self.storages[slot]
            region = next(iter(views)) if len(views) == 1 else None
            if verdict[slot] == "version":
                self.made.versions.append((slot, region))
                continue
            if storage.memory is not None and any(slot == key[0] for found in reads for key in found):
                self.made.updates.append(slot)
            if storage.spare is not None and (region is None or storage.spare[1] is not region):
                self.made.dropped.append(slot)
        return verdict

    def _verdict(
        self, statement: Statement, out: Ref, key: tuple, reads: Sequence[dict[tuple, tuple[Ref, Origin]]]
    ) -> str:
        storage = out.storage
        conflict = any(
            ref.storage is storage
            and other != key
            and (other[0], ref.view, origin) not in self.fetched
            and not disjoint(ref, out)
            for found in reads
            for other, (ref, origin) in found.items()
        )
        if not conflict:
            return "through"
        if storage.memory is None:  # nothing was ever stored there, and what is read is undefined
            return "through"
        box = statement.space.box(self.rank)
        written = 0 if box is None else out.array.itemsize * box_size(box)
        return "aside" if 2 * written < storage.memory.size or storage.pinned else "version"

    def stored(self, over: int, slot: int, ref: Ref, origin: Origin) -> PartOperand:
        """An operand in a storage's memory, which is allocated if there is none."""
        storage = ref.storage
        if slot not in self.geometry:
            if storage.memory is None:
                box = storage.layout.box(self.rank)
                self.made.allocates.append((slot, box))
                self.geometry[slot] = tuple(lo for lo, _ in box), tuple(hi - lo for lo, hi in box)
            else:
                self.geometry[slot] = storage.low, storage.extent
        low, extent = self.geometry[slot]
        slot = self.taken.get(slot, slot)
        vmap = framed(ref.vmap, origin)
        return PartOperand(over, slot, storage.dtype.itemsize, low, extent, None, vmap, ref.array.dtype)

    def temporary(self, key: tuple, dtype: Any) -> Temp:
        """The temporary of a contracted result."""
        found = self.temps.get(key)
        if found is None:
            found = self.temps[key] = Temp(len(self.temps), dtype)
        return found

    def note_written(self, key: tuple, is_temporary: bool) -> None:
        """Count what is stored, once for all cells."""
        if key not in self.written:
            self.written.add(key)
            self.made.stored_temporaries += is_temporary


class _CellPlanner:
    """Plans the loop in one cell."""

    def __init__(self, group: LocalPlanner, versions: dict[int, str], body: Body) -> None:
        self.group, self.versions, self.body = group, versions, body
        self.present: dict[tuple, Any] = {}  # by key: the operand's number or temporary with its present value
        self.stored: set[tuple] = set()  # keys that the loop has an array for

    def plan(self, reads: dict[tuple, tuple[Ref, Origin]]) -> None:
        group, key = self.group, self.group.key
        for name, (ref, origin) in reads.items():
            self.present[name] = self._source(name, ref, origin)
        for number in self.body.numbers:
            statement, origin = group.statements[number], group.origins[number]
            where = None if statement.where is None else self.present[key(statement.where, origin)]
            inputs = tuple(self.present[key(x, origin)] if type(x) is Ref else None for x in statement.inputs)
            outputs: tuple = ()
            if isinstance(statement, Elementwise):
                pairs = zip(statement.outputs, statement.creates, strict=True)
                outputs = tuple(self._target(statement, out, origin, new) for out, new in pairs)
            self.body.steps.append((inputs, outputs, where))

    def _operand(self, operand: PartOperand) -> int:
        self.body.operands.append(operand)
        return len(self.body.operands) - 1

    def _source(self, key: tuple, ref: Ref, origin: Origin) -> int:
        name = key[0], ref.view, origin
        found = self.group.fetched.get(name)
        if found is None:
            over = OLD if self.versions.get(key[0]) == "version" else MEMORY
            return self._operand(self.group.stored(over, key[0], ref, origin))
        low, steps = tuple(r.start for r in found.region), tuple(r.step for r in found.region)
        itemsize, extent, vmap = ref.storage.dtype.itemsize, found.array.shape, framed(ref.vmap, origin)
        return self._operand(PartOperand(FETCHED, name, itemsize, low, extent, steps, vmap, ref.array.dtype))

    def _target(self, statement: Elementwise, out: Ref, origin: Origin, creates: bool) -> Any:
        """Where a statement writes: a temporary, or an array over the storage's memory."""
        group, storage = self.group, out.storage
        key = group.key(out, origin)
        if key in self.stored:
            return self.present[key]
        self.stored.add(key)
        slot = key[0]
        if creates and group.is_contracted(slot):
            temp = self.present[key] = group.temporary(key, out.array.dtype)
            return temp
        group.note_written(key, creates and not storage.alive)
        operand = group.stored(MEMORY, slot, out, origin)
        how = self.versions[slot]
        number = self._operand(operand)
        if how == "aside":
            target, number = number, self._operand(operand._replace(over=ASIDE))
            if statement.where is not None:
                self.body.filled.append((number, target))
            self.body.copies.append((target, number))
        elif how == "version" and statement.where is not None:
            self.body.filled.append((number, self._operand(operand._replace(over=OLD))))
        self.present[key] = number
        return number
