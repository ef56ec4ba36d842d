"""The local planner: what one rank does for a group, as a function of views, layouts, and the states of storages."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, NamedTuple

from numpy_dist.backends.base import Temp
from numpy_dist.engine.memory.storage import geometry
from numpy_dist.engine.planning.actions import (
    ASIDE,
    FETCHED,
    MEMORY,
    OLD,
    Action,
    Allocate,
    Body,
    CopyBack,
    Donate,
    DropSpare,
    Fetch,
    Fold,
    Launch,
    NewVersion,
    Operand,
    Outdate,
    Plan,
    RefreshHalo,
    Release,
    Wait,
    Widen,
)
from numpy_dist.engine.planning.combination import combination
from numpy_dist.engine.planning.donation import donations
from numpy_dist.engine.planning.fuse import disjoint
from numpy_dist.engine.planning.group import Group
from numpy_dist.engine.planning.states import NO_SPARE, States
from numpy_dist.engine.planning.transfers import covers, wider_margin
from numpy_dist.ir.statements import Elementwise, Reduction, Ref, Statement
from numpy_dist.layout.frames import Origin, framed
from numpy_dist.layout.regions import Box, Region, box_size, intersect_boxes, subtract_box

if TYPE_CHECKING:
    import numpy as np

    from numpy_dist.engine.memory.storage import Storage
    from numpy_dist.ir.views import View
    from numpy_dist.layout.views import ViewMap

# How a storage is written: through to its memory, to a new version of it, or aside, to an array that is copied back.
_WAYS = ("through", "version", "aside")


class _Writes(NamedTuple):
    """How a loop writes storages.

    Attributes
    ----------
    ways : dict of int to str
        By slot, one of the above.
    versions : list of NewVersion
    dropped : list of DropSpare
        Spare allocations that the writes leave behind.
    updates : list of int
        Slots as in `Plan`.
    """

    ways: dict[int, str]
    versions: list[NewVersion]
    dropped: list[DropSpare]
    updates: list[int]


def cell_key(slot: int, ref: Ref, origin: Origin) -> tuple:
    """What identifies the cells of a ref within a group: the same for views that have the same at each index."""
    vmap = _map_from(ref, origin)
    return slot, ref.view.dtype, vmap.offset, vmap.steps, vmap.groups


def _map_from(ref: Ref, origin: Origin) -> ViewMap:
    """The affine map of a view from the loop's indices, where its statement has this origin."""
    return framed(ref.vmap, origin) if origin else ref.vmap


def plan_group(group: Group, statements: Sequence[Statement], slots: dict[int, int], states: States) -> Plan:
    """What a rank does for a group while its storages lie in these states. A pure function.

    Parameters
    ----------
    group : Group
    statements : sequence of Statement
        An example of the group's. Of their storages only what all ranks share is looked at: layout, dtype, shape.
    slots : dict of int to int
        By the ids of storages.
    states : States
        By slot, as they are before the group.
    """
    return _LocalPlanner(group, statements, slots, states).plan()


class _LocalPlanner:
    """Plans what a rank does for a group (see `plan_group`)."""

    def __init__(self, group: Group, statements: Sequence[Statement], slots: dict[int, int], states: States) -> None:
        self.group, self.statements, self.slots, self.rank = group, statements, slots, group.rank
        self.states = States(states)
        self.origins: Sequence[Origin] = group.origins
        self.actions: list[Action] = []
        self.fetched: dict[tuple, Region] = {}  # by the key (slot, view, origin) of what was fetched
        self.allocates: list[Allocate] = []
        self.geometry: dict[int, tuple] = {}  # slot -> low and extent
        self.taken: dict[int, int] = {}  # slot -> slot of the result that takes its memory over
        self.temps: dict[tuple, Temp] = {}  # by the view that a contracted result has
        self.written: set[tuple] = set()  # views that are stored
        self.stored_temporaries = 0

    def plan(self) -> Plan:
        """The plan."""
        group = self.group
        self._bring()
        travels = bool(group.fetches) or any(isinstance(a, RefreshHalo) and a.messages for a in self.actions)
        bodies: list[Body] = []
        reads = [self._reads(numbers) for _, numbers in group.cells]  # of each cell
        writes = _Writes({}, [], [], [])
        launches: list[Action] = [Wait()] if travels else []
        if group.box is not None:
            donated = self._donations()
            writes = self._writes(reads)
            for (box, numbers), its in zip(group.cells, reads, strict=True):
                bodies.append(_CellPlanner(self, writes.ways, numbers).plan(box, its))
            self.actions += [*self.allocates, *writes.versions, *donated, *writes.dropped]
            launches = self._launches(bodies, travels)
        self._results()
        self.actions += launches
        self.actions.append(Outdate(tuple(group.written)))
        for number, slot in zip(group.reductions, group.results, strict=True):
            self.actions.append(combination(self.statements[number], number, slot, self.rank))  # type: ignore[arg-type]
        self.actions.append(Release(group.released))
        return Plan(
            tuple(self.actions),
            tuple(bodies),
            tuple(writes.updates),
            len({slot for its in reads for slot, *_ in its}),
            len(self.written),
            len(self.temps),
            self.stored_temporaries,
        )

    # -- what is brought ------------------------------------------------------------------------------------------

    def _do(self, action: Action) -> None:
        self.actions.append(action)
        self.states.apply(action)

    def _bring(self) -> None:
        """Ask for everything that has to be brought; what is sent has memory."""
        storages = {self.slots[id(ref.storage)]: ref.storage for s in self.statements for ref in s.reads()}
        for fetch in self.group.fetches:
            self._send_from(fetch, storages)
            self._do(fetch)
            if fetch.region is not None:
                self.fetched[fetch.key] = fetch.region
        for halo, hulls in self.group.halos:
            slot, state = halo.slot, self.states[halo.slot]
            own = storages[slot].layout.box(self.rank)
            if own is not None and hulls:
                margin = wider_margin(own, hulls, state.low, state.extent, state.allocated)
                if margin is not None:
                    self._do((Widen if state.allocated else Allocate)(slot, own, margin))
            if any(covers(had, halo.wanted) for had in state.fresh):
                self._do(halo._replace(messages=None))
            else:
                self._send_from(halo, storages)
                self._do(halo)

    def _send_from(self, transfer: Fetch | RefreshHalo, storages: dict[int, Storage]) -> None:
        messages = transfer.messages
        if not self.states[transfer.slot].allocated and messages is not None and (messages.sends or messages.local):
            box = storages[transfer.slot].layout.box(self.rank)
            assert box is not None  # it has what it sends
            self._do(Allocate(transfer.slot, box))

    # -- what is run ----------------------------------------------------------------------------------------------

    def _launches(self, bodies: list[Body], travels: bool) -> list[Action]:
        """The loop: bodies in their cells, and of these what lies in the interior while messages travel."""
        early: list[tuple[int, Box]] = []
        late: list[tuple[int, Box]] = []
        interior = self.group.interior
        for number, body in enumerate(bodies):
            inner = None if interior is None else intersect_boxes(body.box, interior)
            if inner is None:
                late.append((number, body.box))
            else:
                early.append((number, inner))
                late += [(number, box) for box in subtract_box(body.box, inner)]
        found: list[Action] = [Launch(tuple(early))] if early else []
        found += [Wait()] if travels else []
        found += [Launch(tuple(late))] if late else []
        if len(early) + len(late) > 1 and self.group.reductions:
            found.append(Fold())
        copied = sorted({body.operands[target].which for body in bodies for target, _ in body.copies})
        return [*found, CopyBack(tuple(copied))] if copied else found

    def _results(self) -> None:
        """Memory for results of reductions."""
        for number, slot in zip(self.group.reductions, self.group.results, strict=True):
            box = self.statements[number].outputs[0].storage.layout.box(self.rank)
            if box is not None:
                self.actions.append(Allocate(slot, box))

    def key(self, ref: Ref, origin: Origin) -> tuple:
        """See `cell_key`."""
        return cell_key(self.slots[id(ref.storage)], ref, origin)

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

    def _donations(self) -> list[Donate]:
        """Let results take the memory of operands over that nobody needs any more."""
        keys = [
            {id(ref): self.key(ref, origin) for ref in statement.refs()}
            for statement, origin in zip(self.statements, self.origins, strict=True)
        ]
        stored = {slot for slot in self.group.slots if not self.is_contracted(slot)}
        found = donations(self.statements, keys, self.slots, self.group.ending, stored, self.rank, self.states)
        for slot, donor in found.items():
            state = self.states[donor]
            self.taken[donor] = slot
            self.geometry[slot] = state.low, state.extent
        return [Donate(slot, donor) for slot, donor in sorted(found.items())]

    def is_contracted(self, slot: int) -> bool:
        """Whether a result that the group makes is never stored."""
        return not self.states[slot].wanted and slot not in self.group.kept

    def _writes(self, reads: Sequence[dict[tuple, tuple[Ref, Origin]]]) -> _Writes:
        """How the storages are written that the loop does not only read, given what each cell reads."""
        views: dict[int, set[View]] = {}  # of each storage, that are written
        ways: dict[int, str] = {}
        for statement, origin in zip(self.statements, self.origins, strict=True):
            for out in () if isinstance(statement, Reduction) else statement.outputs:
                key = self.key(out, origin)
                slot = key[0]
                if out.view not in views.setdefault(slot, set()):
                    views[slot].add(out.view)
                    ways[slot] = max(ways.get(slot, "through"), self._way(statement, out, key, reads), key=_WAYS.index)
        found = _Writes(ways, [], [], [])
        for slot, written in views.items():
            state = self.states[slot]
            region = next(iter(written)) if len(written) == 1 else None
            swaps = region is not None and state.spare is region
            if ways[slot] == "version":
                found.versions.append(NewVersion(slot, region, not swaps))
                continue
            if state.allocated and any(slot == key[0] for its in reads for key in its):
                found.updates.append(slot)
            if state.spare is not NO_SPARE and not swaps:
                found.dropped.append(DropSpare(slot))
        return found

    def _way(self, statement: Statement, out: Ref, key: tuple, reads: Sequence[dict[tuple, tuple[Ref, Origin]]]) -> str:
        """How a statement may write a view, whose cells have this key."""
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
        state = self.states[key[0]]
        if not state.allocated:  # nothing was ever stored there, and what is read is undefined
            return "through"
        box = statement.space.box(self.rank)
        written = 0 if box is None else out.array.itemsize * box_size(box)
        held = storage.dtype.itemsize * prod(state.extent)
        return "aside" if 2 * written < held or storage.pinned else "version"

    def stored(self, over: int, slot: int, ref: Ref, origin: Origin) -> Operand:
        """An operand in a storage's memory, which is allocated if there is none."""
        storage = ref.storage
        if slot not in self.geometry:
            state = self.states[slot]
            if state.allocated:
                self.geometry[slot] = state.low, state.extent
            else:
                box = storage.layout.box(self.rank)
                self.allocates.append(Allocate(slot, box))
                self.geometry[slot] = geometry(box)
        low, extent = self.geometry[slot]
        slot = self.taken.get(slot, slot)
        vmap = _map_from(ref, origin)
        return Operand(over, slot, storage.dtype.itemsize, low, extent, None, vmap, ref.array.dtype)

    def temporary(self, key: tuple, dtype: np.dtype) -> Temp:
        """The temporary of a contracted result."""
        found = self.temps.get(key)
        if found is None:
            found = self.temps[key] = Temp(len(self.temps), dtype)
        return found

    def note_written(self, key: tuple, is_temporary: bool) -> None:
        """Count what is stored, once for all cells."""
        if key not in self.written:
            self.written.add(key)
            self.stored_temporaries += is_temporary


class _CellPlanner:
    """Plans the loop in one cell."""

    def __init__(self, planner: _LocalPlanner, ways: dict[int, str], numbers: Sequence[int]) -> None:
        self.planner, self.ways, self.numbers = planner, ways, numbers
        self.operands: list[Operand] = []
        self.filled: list[tuple[int, int]] = []
        self.copies: list[tuple[int, int]] = []
        self.present: dict[tuple, int | Temp] = {}  # by key: the operand's number or temporary with its present value
        self.stored: set[tuple] = set()  # keys that the loop has an array for

    def plan(self, box: Box, reads: dict[tuple, tuple[Ref, Origin]]) -> Body:
        """The body."""
        planner, key = self.planner, self.planner.key
        for name, (ref, origin) in reads.items():
            self.present[name] = self._source(name, ref, origin)
        steps: list[tuple] = []
        for number in self.numbers:
            statement, origin = planner.statements[number], planner.origins[number]
            where = None if statement.where is None else self.present[key(statement.where, origin)]
            inputs = tuple(self.present[key(x, origin)] if type(x) is Ref else None for x in statement.inputs)
            outputs: tuple = ()
            if isinstance(statement, Elementwise):
                pairs = zip(statement.outputs, statement.creates, strict=True)
                outputs = tuple(self._target(statement, out, origin, new) for out, new in pairs)
            steps.append((inputs, outputs, where))
        operands, filled, copies = tuple(self.operands), tuple(self.filled), tuple(self.copies)
        return Body(box, tuple(self.numbers), operands, tuple(steps), filled, copies)

    def _operand(self, operand: Operand) -> int:
        self.operands.append(operand)
        return len(self.operands) - 1

    def _source(self, key: tuple, ref: Ref, origin: Origin) -> int:
        slot = key[0]
        name = slot, ref.view, origin
        region = self.planner.fetched.get(name)
        if region is None:
            over = OLD if self.ways.get(slot) == "version" else MEMORY
            return self._operand(self.planner.stored(over, slot, ref, origin))
        low, steps = tuple(r.start for r in region), tuple(r.step for r in region)
        extent = tuple(map(len, region))
        itemsize, vmap = ref.storage.dtype.itemsize, _map_from(ref, origin)
        return self._operand(Operand(FETCHED, name, itemsize, low, extent, steps, vmap, ref.array.dtype))

    def _target(self, statement: Elementwise, out: Ref, origin: Origin, creates: bool) -> int | Temp:
        """Where a statement writes: a temporary, or an array over the storage's memory."""
        planner = self.planner
        key = planner.key(out, origin)
        if key in self.stored:
            return self.present[key]
        self.stored.add(key)
        slot = key[0]
        if creates and planner.is_contracted(slot):
            temp = self.present[key] = planner.temporary(key, out.array.dtype)
            return temp
        state = planner.states[slot]
        planner.note_written(key, creates and not (state.wanted or state.reserved))
        operand = planner.stored(MEMORY, slot, out, origin)
        way = self.ways[slot]
        number = self._operand(operand)
        if way == "aside":
            target, number = number, self._operand(operand._replace(over=ASIDE))
            if statement.where is not None:
                self.filled.append((number, target))
            self.copies.append((target, number))
        elif way == "version" and statement.where is not None:
            self.filled.append((number, self._operand(operand._replace(over=OLD))))
        self.present[key] = number
        return number
