"""Forecasts: what a group will do on this rank, read off its plan: messages, bytes, and what that adds to counters."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np

from numpy_dist.comm.base import INLINE_DATA_BYTES
from numpy_dist.engine.executing.combine import SMALL
from numpy_dist.engine.executing.prepared import PreparedPlans
from numpy_dist.engine.explaining.outlines import Outline
from numpy_dist.engine.planning.actions import Combine, Fetch, Plan, RefreshHalo, counts
from numpy_dist.engine.planning.group import Group
from numpy_dist.engine.planning.local_planner import cell_key, plan_group
from numpy_dist.engine.planning.states import States
from numpy_dist.engine.scheduling.counters import EngineCounters
from numpy_dist.ir.meta_arrays import meta_array
from numpy_dist.ir.statements import Reduction, Ref, Statement
from numpy_dist.layout.regions import Box, Region, bounding_box, box_size, region_hull, region_size
from numpy_dist.layout.views import storage_region

if TYPE_CHECKING:
    from numpy_dist.engine.runtime import Runtime
    from numpy_dist.layout.layout import BoxList, Layout

COUNTS = (*(f.name for f in fields(EngineCounters)), "messages", "bytes", "collectives")
"""What is counted: see `engine.counters.EngineCounters`, and for the last three `comm.base.TrafficCounters`."""

Messages = list[tuple[int, int]]
"""Ranks and bytes."""


@dataclass
class Forecast:
    """What a group will do on this rank.

    Attributes
    ----------
    rank : int
    plan : Plan
    facts : tuple
        Under which the group keeps what it executes (`Group.facts`).
    counts : dict
        What it adds to `COUNTS`.
    reads, writes : dict
        Bytes by slot that the loop reads and writes on this rank, each cell once.
    """

    rank: int
    plan: Plan
    facts: tuple
    counts: dict[str, int]
    reads: dict[int, int]
    writes: dict[int, int]


def forecast(
    runtime: Runtime, plans: PreparedPlans, statements: list[Statement], outlines: Sequence[Outline]
) -> Forecast:
    """Work out what a group will do, and change the outlines: they are then as storages are after the group.

    Parameters
    ----------
    plans : PreparedPlans
        The group's.
    statements : list of Statement
        The group's, on outlines.
    outlines : list of Outline
        By slot; others than the group's may be None.
    """
    group = plans.group
    facts, slots = group.facts(outlines), {id(outlines[slot]): slot for slot in group.slots}
    states = States({slot: outlines[slot].state for slot in group.slots})
    kept = plans.get(facts)
    plan = plan_group(group, statements, slots, states) if kept is None else kept.plan
    wanted = {slot: states[slot].wanted for slot in group.slots}
    reads, writes = touched(group, runtime.rank, statements, slots, wanted)
    counted = dict.fromkeys(COUNTS, 0) | counts(plan)
    for transfer in plan.of(Fetch, RefreshHalo):
        _count(counted, messages(transfer, outlines[transfer.slot])[0])
    for action in plan.of(Combine):
        if action.everywhere:
            counted["collectives"] += 1
            counted["bytes"] += _collective_bytes(action.boxes, runtime.rank, action.dtype)
        else:
            _count(counted, partial_messages(action, runtime.rank)[0])
    for slot, state in states.after(plan.actions).items():
        outlines[slot].state = state
    return Forecast(runtime.rank, plan, facts, counted, reads, writes)


def _count(counted: dict[str, int], sent: Messages) -> None:
    counted["messages"] += len(sent)
    counted["bytes"] += sum(nbytes for _, nbytes in sent)


def messages(action: Fetch | RefreshHalo, outline: Outline) -> tuple[Messages, Messages]:
    """What this rank sends and receives for a transfer."""

    def sizes(parts: Iterable[tuple[int, tuple[Region, ...]]]) -> Messages:
        return [(rank, sum(map(region_size, regions)) * outline.dtype.itemsize) for rank, regions in parts]

    plan = action.messages
    return ([], []) if plan is None else (sizes(plan.sends), sizes(plan.receives))


def partial_messages(action: Combine, me: int) -> tuple[Messages, Messages]:
    """What this rank sends and receives of partial results."""

    def sizes(parts: Iterable[tuple[int, Box]]) -> Messages:
        return [(rank, box_size(box) * action.dtype.itemsize) for rank, box in parts if rank != me]

    return sizes(action.sends), sizes(action.receives)


def _collective_bytes(boxes: Sequence[Box | None], me: int, dtype: np.dtype) -> int:
    """What this rank contributes to the collective, if there are no floating-point events to be told."""
    mine = boxes[me]
    part = None if mine is None else meta_array(tuple(hi - lo for lo, hi in mine), dtype)
    if max((box_size(box) for box in boxes if box is not None), default=0) * dtype.itemsize <= SMALL:
        small = None if part is None else np.zeros(part.shape, dtype)
        return len(pickle.dumps((small, ()), protocol=5))
    shape, nbytes = ((0,), 0) if part is None else (part.shape, part.nbytes)
    inline = bytes(nbytes) if nbytes <= INLINE_DATA_BYTES else None  # see `allgather_array`
    return (nbytes if inline is None else 0) + len(pickle.dumps((dtype.str, shape, inline), protocol=5))


def touched(
    group: Group, rank: int, statements: list[Statement], slots: dict[int, int], wanted: dict[int, bool]
) -> tuple[dict[int, int], dict[int, int]]:
    """Bytes by slot that a group's loop reads and writes, each cell once.

    Parameters
    ----------
    slots : dict of int to int
        By the ids of the statements' storages.
    wanted : dict of int to bool
        By slot, whether a handle wants the values.
    """
    if group.box is None:
        return {}, {}
    reads: dict[tuple, tuple[Ref, Layout | BoxList]] = {}
    writes: dict[tuple, tuple[Ref, Layout | BoxList] | None] = {}
    for statement, origin in zip(statements, group.origins, strict=True):
        for ref in statement.reads():
            key = cell_key(slots[id(ref.storage)], ref, origin)
            if key not in writes:
                reads.setdefault(key, (ref, statement.space))
        if not isinstance(statement, Reduction):
            for out, new in zip(statement.outputs, statement.creates, strict=True):  # type: ignore[attr-defined]
                slot = slots[id(out.storage)]
                stored = not (new and is_contracted(group, slot, wanted[slot]))
                key = cell_key(slot, out, origin)
                writes.setdefault(key, (out, statement.space) if stored else None)
    return _bytes_by_slot(rank, reads), _bytes_by_slot(rank, {key: ref for key, ref in writes.items() if ref})


def is_contracted(group: Group, slot: int, wanted: bool) -> bool:
    """Whether a result that a group makes is never stored."""
    return not wanted and slot not in group.kept


def _bytes_by_slot(rank: int, refs: dict[tuple, tuple[Ref, Layout | BoxList]]) -> dict[int, int]:
    regions: dict[int, list[Region]] = {}
    sizes: dict[int, int] = {}
    for (slot, *_), (ref, space) in refs.items():
        box = space.box(rank)
        if box is None:
            continue
        regions.setdefault(slot, []).append(storage_region(ref.vmap, box))
        sizes[slot] = ref.storage.dtype.itemsize
    found = {}
    for slot, its in regions.items():
        hull = bounding_box([region_hull(region) for region in its])
        cells = min(sum(map(region_size, its)), 0 if hull is None else box_size(hull))
        found[slot] = cells * sizes[slot]
    return found
