"""Schedules: what a pending program needs to be executed, worked out once for all programs of the same form."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from numpy_dist.engine.executing.chain import Chain
from numpy_dist.engine.executing.prepared import PreparedPlans, execute
from numpy_dist.engine.memory.storage import Storage
from numpy_dist.engine.planning.fuse import FusedStatements, fuse
from numpy_dist.engine.planning.group import Group
from numpy_dist.engine.planning.layout_propagation import propagate_layouts
from numpy_dist.engine.planning.links import chains_of, link_of
from numpy_dist.engine.scheduling.deferred import deferrable
from numpy_dist.ir.statements import Elementwise, Reduction, Ref, Statement
from numpy_dist.layout.layout import Layout
from numpy_dist.layout.marks import mark_of

if TYPE_CHECKING:
    from numpy_dist.engine.executing.executing_rank import ExecutingRank

_MOST, _MOST_STATEMENTS = 512, 8192  # of all that are kept: the plan of one takes some kilobytes


def is_of_values(error: BaseException) -> bool:
    """Whether NumPy raises such an error for values: text that is no number, integers to negative powers."""
    return isinstance(error, ValueError | ArithmeticError) or type(error) is RuntimeError  # ours are subclasses


class GroupObserver(Protocol):
    """What is told of every group that is executed, one after the other: then no chains are formed."""

    def before(self, plans: PreparedPlans, statements: list[Statement], storages: list[Storage]) -> None:
        """Take note of a group that is going to be executed."""

    def after(self, plans: PreparedPlans) -> None:
        """Take note of how it was executed."""


class Schedule:
    """The groups of a program, in the order of their execution.

    Statements are meant by their position in the program, storages by their slot: the order of first appearance.

    Attributes
    ----------
    statements : int
        How many there are.
    layouts : list of (int, Layout)
        Storages that move, and where to (see `propagate_layouts`).
    groups : list of Group
    plans : list of PreparedPlans
        What each of them does, as storages lie.
    chains : dict of int to Chain
        Groups that may run together, by the number of the first one.
    pattern : int
        A mark of which storages are the same; 0 before somebody has asked (`pattern_of`).
    """

    pattern = 0

    def __init__(
        self,
        runtime: ExecutingRank,
        statements: Sequence[Statement],
        storages: Sequence[Storage],
        later: Container[int],
    ) -> None:
        self.statements = len(statements)
        self.layouts = _propagated(runtime, statements, storages, later)
        slots = {id(storage): slot for slot, storage in enumerate(storages)}
        used_later = frozenset(slot for number, slot in slots.items() if number in later)
        fused = fuse(statements)
        self.groups = _groups(fused, statements, slots, used_later, runtime.rank)
        self.plans = [PreparedPlans(group) for group in self.groups]
        self.chains = _chains(self.plans, fused, slots)
        self._made: list[int] = []  # slots whose liveness decides what need not be stored for a reduction
        self._deferrable: dict[tuple[bool, ...], list[int]] = {}
        if isinstance(statements[-1], Reduction):
            makers = [s for s in statements if isinstance(s, Elementwise) and all(s.creates)]
            self._made = sorted({slots[id(out.storage)] for s in makers for out in s.outputs})

    def run(
        self,
        runtime: ExecutingRank,
        statements: list[Statement],
        storages: list[Storage],
        observers: Sequence[GroupObserver] = (),
    ) -> None:
        """Execute a program of this form, whose execution is the runtime's.

        What is in both lists becomes None as it goes: what nobody needs any more gives its memory back at once.
        """
        execution = runtime.execution
        assert execution is not None
        for slot, layout in self.layouts:
            storages[slot].layout, storages[slot].moved = layout, True
        number = 0
        while number < len(self.groups):
            chain = None if observers else self.chains.get(number)
            if chain is None:
                plans = self.plans[number]
                own = [statements[position] for position in plans.group.positions]
                for observer in observers:
                    observer.before(plans, own, storages)
                execute(plans, runtime, own, storages)
                own.clear()
                for observer in observers:
                    observer.after(plans)
                end = number + 1
            else:
                positions = [plans.group.positions for plans in chain.plans]
                chain.run(runtime, [[statements[p] for p in its] for its in positions], storages)
                end = number + len(chain.plans)
            execution.finish(end)
            while number < end:
                self._drop(number, statements, storages)
                number += 1
            execution.pause()

    def pattern_of(self, description: Description) -> int:
        """A mark of which storages are the same in a program of this form."""
        if not self.pattern:
            self.pattern = mark_of([part for part in description.parts if type(part) is int])
        return self.pattern

    def deferrable(self, statements: Sequence[Statement], storages: Sequence[Storage]) -> list[Statement]:
        """What need not be stored, though it may be alive (see `deferred.deferrable`)."""
        if not self._made:
            return []
        alive = tuple([storages[slot].alive for slot in self._made])
        found = self._deferrable.get(alive)
        if found is None:
            found = self._deferrable[alive] = deferrable(statements)
        return [statements[position] for position in found]

    def _drop(self, number: int, statements: list[Statement], storages: list[Storage]) -> None:
        """Have done with a group: nobody needs its statements any more, and what it was the last to use."""
        nothing: Any = None
        group = self.groups[number]
        for position in group.positions:
            statements[position] = nothing
        for slot in group.released:
            storages[slot] = nothing


def _propagated(
    runtime: ExecutingRank, statements: Sequence[Statement], storages: Sequence[Storage], later: Container[int]
) -> list[tuple[int, Layout]]:
    """The slots of storages to which layouts have propagated, and these layouts."""
    before = [storage.layout for storage in storages]
    if runtime.size > 1:
        propagate_layouts(statements, later)
    pairs = enumerate(zip(before, storages, strict=True))
    return [(slot, storage.layout) for slot, (layout, storage) in pairs if storage.layout is not layout]


def _groups(
    fused: Sequence[FusedStatements],
    statements: Sequence[Statement],
    slots: dict[int, int],
    used_later: frozenset[int],
    rank: int,
) -> list[Group]:
    """The groups of a program, each with the slots that it is the last to use."""
    positions = {id(statement): position for position, statement in enumerate(statements)}
    groups = []
    for number, its in enumerate(fused):
        kept = used_later.union(slots[storage] for storage in its.shared)
        groups.append(Group(number, its, [positions[id(s)] for s in its.statements], slots, kept, rank))
    last = {slot: group.number for group in groups for slot in group.slots}
    for group in groups:
        group.end([slot for slot in group.slots if last[slot] == group.number], used_later)
    return groups


def _chains(
    plans: Sequence[PreparedPlans], fused: Sequence[FusedStatements], slots: dict[int, int]
) -> dict[int, Chain]:
    """Groups that may run together, by the number of the first one."""
    if len(plans) == 1:
        return {}
    pairs = zip(plans, fused, strict=True)
    chains = {}
    for chain in chains_of([link_of(each.group, its.statements, slots) for each, its in pairs]):
        first, *others = together = plans[chain.first : chain.end]
        chains[first.group.number] = Chain(together, chain.aligned)
        for each in others:
            each.group.follows = True
    return chains


class Description:
    """What of some statements schedules depend on, save for the present state of their storages.

    Attributes
    ----------
    parts : list
        Forms of the statements and slots of their storages, in order.
    slots : dict
        By the ids of the storages.
    storages : list of Storage
        By slot.
    """

    def __init__(self, statements: Sequence[Statement]) -> None:
        slots: dict[int, int] = {}
        storages: list[Storage] = []
        parts: list[object] = []
        add, slot_of = parts.append, slots.get
        errstate: Any = None
        for statement in statements:
            add(statement.form)
            if statement.errstate is not errstate:
                errstate = statement.errstate
                add(errstate.watched)
            where = statement.where
            inputs = statement.inputs if where is None else (*statement.inputs, where)
            for x in (*inputs, *statement.outputs):
                if type(x) is Ref:
                    storage = x.storage
                    number = id(storage)
                    slot = slot_of(number)
                    if slot is None:
                        slot = slots[number] = len(storages)
                        storages.append(storage)
                    add(slot)
        self.parts, self.slots, self.storages = parts, slots, storages

    def key(self, later: Container[int]) -> tuple:
        """What identifies the schedule.

        Parameters
        ----------
        later
            Ids of the storages that statements still pending refer to.
        """
        key = self.parts.copy()
        for storage in self.storages:
            number = storage.movable + 2 * storage.pinned + 4 * (storage.memory is None) + 8 * (id(storage) in later)
            key.append((number, storage.layout) if storage.moved else number)
        return tuple(key)


class Schedules:
    """A bounded table of schedules by their keys; the oldest ones are forgotten first."""

    def __init__(self, most: int, most_statements: int) -> None:
        self._most, self._most_statements = most, most_statements
        self._kept: dict[tuple, Schedule] = {}
        self.get = self._kept.get
        self.statements = 0  # of all of them

    def keep(self, key: tuple, schedule: Schedule) -> None:
        """Keep a schedule whose key is not there."""
        self.statements += schedule.statements
        while self._kept and (self.statements > self._most_statements or len(self._kept) >= self._most):
            self._drop(next(iter(self._kept)))
        self._kept[key] = schedule

    def forget(self, schedule: Schedule) -> None:
        """Keep a schedule no longer."""
        for key in [key for key, kept in list(self._kept.items()) if kept is schedule]:
            self._drop(key)

    def clear(self) -> None:
        """Forget all."""
        self._kept.clear()
        self.statements = 0

    def __iter__(self) -> Iterator[Schedule]:
        return iter(list(self._kept.values()))

    def _drop(self, key: tuple) -> None:
        dropped = self._kept.pop(key, None)  # another thread may have been here
        if dropped is not None:
            self.statements -= dropped.statements


SCHEDULES = Schedules(_MOST, _MOST_STATEMENTS)


def find_schedule(
    runtime: ExecutingRank,
    statements: Sequence[Statement],
    description: Description,
    later: Container[int],
    keep: bool = True,
) -> Schedule:
    """The schedule of a program; unless `keep`, a new one is not kept for others."""
    # The backend, too: with another one, or on another device, nobody may run a loop as it was run before.
    backend = runtime.backend
    key = (runtime.rank, runtime.size, backend.name, backend.memory, *description.key(later))
    schedule = SCHEDULES.get(key)
    if schedule is None:
        schedule = Schedule(runtime, statements, description.storages, later)
        if keep:
            SCHEDULES.keep(key, schedule)
    return schedule
