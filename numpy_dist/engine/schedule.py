"""Schedules: what a pending program needs to be executed, worked out once for all programs of the same form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy_dist.engine.fuse import fuse
from numpy_dist.engine.group import GroupPlan
from numpy_dist.engine.settle import settle
from numpy_dist.engine.storage import Storage
from numpy_dist.ir.statements import Ref, Statement

_MOST = 512
_SCHEDULES: dict[Any, Schedule] = {}


class Schedule:
    """The groups of a program, in the order of their execution.

    Statements are meant by their position in the program, storages by their slot: the order of first appearance.

    Attributes
    ----------
    layouts : list of (int, Layout)
        Storages that move, and where to (see `settle`).
    groups : list of GroupPlan
    """

    def __init__(self, runtime: Any, statements: Sequence[Statement], storages: Sequence[Storage], later: set[int]):
        before = [storage.layout for storage in storages]
        if runtime.size > 1:
            settle(statements, later)
        pairs = enumerate(zip(before, storages, strict=True))
        self.layouts = [(slot, s.layout) for slot, (layout, s) in pairs if s.layout is not layout]
        slots = {id(storage): slot for slot, storage in enumerate(storages)}
        places = {id(statement): position for position, statement in enumerate(statements)}
        self.groups = [
            GroupPlan(
                group.space,
                [places[id(s)] for s in group.statements],
                group.statements,
                group.origins,
                slots,
                frozenset(slots[n] for n in group.shared) | frozenset(slots[n] for n in later if n in slots),
                runtime.rank,
            )
            for group in fuse(statements)
        ]

    def run(self, runtime: Any, statements: list[Statement], storages: list[Storage]) -> None:
        """Execute a program of this form.

        Both lists are emptied as it goes: what nobody needs any more gives its memory back at once.
        """
        for slot, layout in self.layouts:
            storages[slot].layout, storages[slot].moved = layout, True
        last = self.last_uses
        for number, group in enumerate(self.groups):
            for listing in runtime.listings:
                listing.before(runtime, group, [statements[position] for position in group.positions], storages)
            group.run(runtime, [statements[position] for position in group.positions], storages)
            for listing in runtime.listings:
                listing.after(runtime, group)
            for position in group.positions:
                statements[position] = None  # type: ignore[call-overload]
            for slot in last[number]:
                storages[slot] = None  # type: ignore[call-overload]

    @property
    def last_uses(self) -> list[list[int]]:
        """For each group the slots that no later group uses."""
        found = self.__dict__.get("_last_uses")
        if found is None:
            last = {slot: number for number, group in enumerate(self.groups) for slot in group.slots}
            found = self.__dict__["_last_uses"] = [[] for _ in self.groups]
            for slot, number in last.items():
                found[number].append(slot)
        return found


def run_program(runtime: Any, statements: list[Statement], later: set[int]) -> None:
    """Execute statements; those still pending refer to the storages whose ids are in `later`."""
    schedule, storages = find_schedule(runtime, statements, later)
    schedule.run(runtime, statements, storages)


def find_schedule(
    runtime: Any, statements: Sequence[Statement], later: set[int], keep: bool = True
) -> tuple[Schedule, list[Storage]]:
    """The schedule of a program and its storages by slot; unless `keep`, a new schedule is not kept for others."""
    key, storages = describe(statements, later)
    # The backend, too: with another one nobody may run a loop as it was run before.
    key = key and (runtime.rank, runtime.size, runtime.backend.name, *key)
    schedule = None if key is None else _SCHEDULES.get(key)
    if schedule is None:
        schedule = Schedule(runtime, statements, storages, later)
        if keep and key is not None:
            if len(_SCHEDULES) >= _MOST:
                del _SCHEDULES[next(iter(_SCHEDULES))]
            _SCHEDULES[key] = schedule
    return schedule, storages


def describe(statements: Sequence[Statement], later: set[int]) -> tuple[tuple | None, list[Storage]]:
    """The form of a program, and its storages by slot; no form where a statement has none."""
    slots: dict[int, int] = {}
    storages: list[Storage] = []
    parts: list[Any] = []
    add, slot_of = parts.append, slots.get
    errstate: Any = None
    for statement in statements:
        add(statement.form)
        if statement.errstate is not errstate:
            errstate = statement.errstate
            add(errstate.watched)
        refs = [x for x in statement.inputs if type(x) is Ref]
        if statement.where is not None:
            refs.append(statement.where)
        refs += statement.outputs
        for ref in refs:
            storage = ref.storage
            slot = slot_of(id(storage))
            if slot is None:
                slot = slots[id(storage)] = len(storages)
                storages.append(storage)
            add(slot)
    for storage in storages:
        number = storage.movable + 2 * storage.pinned + 4 * (storage.memory is None) + 8 * (id(storage) in later)
        parts.append((number, storage.layout) if storage.moved else number)
    return (None if None in parts else tuple(parts)), storages
