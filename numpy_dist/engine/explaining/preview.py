"""What a group will do on this rank, worked out from metadata alone: nothing is run, sent or allocated."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

import numpy as np

from numpy_dist.engine.memory.storage import Storage
from numpy_dist.engine.planning.combine import SMALL, meet, partial_boxes
from numpy_dist.engine.planning.group import GroupPlan
from numpy_dist.engine.planning.local_plan import LocalPlan
from numpy_dist.engine.planning.local_planner import cell_key
from numpy_dist.engine.planning.transfer import Fetched, cached_plan, covers, ghosts, wider_margins
from numpy_dist.engine.scheduling.counters import EngineCounters
from numpy_dist.ir.meta_arrays import meta_array
from numpy_dist.ir.statements import Reduction, Ref, Statement
from numpy_dist.layout.regions import Box, Region, bounding_box, box_size, region_hull, region_size
from numpy_dist.layout.views import storage_region

COUNTS = (*(f.name for f in fields(EngineCounters)), "messages", "bytes", "collectives")
"""What is counted: see `engine.counters.EngineCounters`, and for the last three `comm.base.TrafficCounters`."""


class _Memory(NamedTuple):
    """Stands for an allocation."""

    size: int


class Shadow:
    """A storage without its memory: all that plans are made of, free to change, and a name."""

    def __init__(self, storage: Storage) -> None:
        self.shape, self.dtype, self.layout, self.axes = storage.shape, storage.dtype, storage.layout, storage.axes
        self.nbytes, self.low, self.extent, self.fresh = storage.nbytes, storage.low, storage.extent, storage.fresh
        self.movable, self.moved, self.pinned = storage.movable, storage.moved, storage.pinned
        self.deferred, self.reserved = storage.deferred, storage.reserved
        self.alive = storage.alive
        self.wanted: bool = getattr(storage, "wanted", self.alive)
        self.memory = None if storage.memory is None else _Memory(storage.memory.size)
        spare = storage.spare
        self.spare = None if spare is None else (_Memory(spare[0].size), spare[1])
        self.name = ""

    def allocate(self, box: Box, margin: Sequence[tuple[int, int]] | None = None) -> None:
        """As `Storage.allocate`."""
        margin = margin or ((0, 0),) * len(box)
        self.low = tuple(lo - below for (lo, _), (below, _) in zip(box, margin, strict=True))
        self.extent = tuple(hi - lo + a + b for (lo, hi), (a, b) in zip(box, margin, strict=True))
        self.memory = _Memory(int(np.prod(self.extent, dtype=object)) * self.dtype.itemsize)


def shadow_statements(statements: Iterable[Statement], shadows: dict[int, Any]) -> list[Statement]:
    """The same statements on shadows, which are given by the ids of their storages."""

    def on_shadow(x: Any) -> Any:
        return Ref(shadows[id(x.storage)], x.array, x.view) if type(x) is Ref else x

    made = []
    for statement in statements:
        same = copy.copy(statement)
        same.inputs, same.outputs = tuple(map(on_shadow, statement.inputs)), tuple(map(on_shadow, statement.outputs))
        same.where = on_shadow(statement.where)
        made.append(same)
    return made


@dataclass
class Transfer:
    """What is brought for a group: a halo, or a region that is fetched.

    Attributes
    ----------
    kind : {"halo", "fetch"}
    slot : int
    view : View or None
        What is fetched.
    sends, receives : list of (int, int)
        Ranks and bytes.
    fresh : bool
        A halo that is there already: nothing is sent.
    """

    kind: str
    slot: int
    view: Any = None
    sends: list[tuple[int, int]] = field(default_factory=list)
    receives: list[tuple[int, int]] = field(default_factory=list)
    fresh: bool = False


@dataclass
class Combination:
    """How the partial results of a reduction come together.

    Attributes
    ----------
    slot : int
        Of the result.
    everywhere : bool
        All ranks' partial results go to all ranks, in one collective.
    sends, receives
        As for `Transfer`.
    """

    slot: int
    everywhere: bool
    sends: list[tuple[int, int]] = field(default_factory=list)
    receives: list[tuple[int, int]] = field(default_factory=list)


@dataclass
class Preview:
    """What a group will do on this rank.

    Attributes
    ----------
    counts : dict
        What it adds to `COUNTS`.
    transfers, combinations
    plan : LocalPlan or None
        None where the rank has no part of the loop.
    geometry : tuple or None
        Under which the group keeps this plan.
    carried : dict
        For each slot that gets a new version the bytes that are copied for it, perhaps 0.
    reads, writes : dict
        Bytes by slot that the loop reads and writes on this rank.
    """

    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(COUNTS, 0))
    transfers: list[Transfer] = field(default_factory=list)
    combinations: list[Combination] = field(default_factory=list)
    plan: LocalPlan | None = None
    geometry: tuple | None = None
    carried: dict[int, int] = field(default_factory=dict)
    reads: dict[int, int] = field(default_factory=dict)
    writes: dict[int, int] = field(default_factory=dict)

    def add(self, messages: Sequence[tuple[int, int]]) -> None:
        """Count messages that this rank sends."""
        self.counts["messages"] += len(messages)
        self.counts["bytes"] += sum(nbytes for _, nbytes in messages)


def preview(runtime: Any, group: GroupPlan, statements: list[Statement], shadows: list[Any]) -> Preview:
    """Work out what a group will do, and do it to the shadows: they are then as storages are after the group.

    Parameters
    ----------
    statements : list of Statement
        The group's, on shadows.
    shadows : list of Shadow
        By slot; others than the group's may be None.
    """
    found = Preview()
    fetched = _preview_fetches(runtime, group, shadows, found)
    _preview_halos(runtime, group, shadows, found)
    if group.box is not None:
        _preview_loop(runtime, group, statements, shadows, fetched, found)
        _measure(group, runtime.rank, statements, shadows, found)
    for slot in group.written:
        shadows[slot].fresh = ()
    slots = {id(shadows[slot]): slot for slot in group.slots}
    for number in group.reductions:
        statement = statements[number]
        assert isinstance(statement, Reduction)
        _preview_combination(runtime, statement, slots[id(statement.outputs[0].storage)], found)
    return found


def _bring(runtime: Any, shadow: Shadow, wanted: Any, transfer: Transfer, found: Preview) -> None:
    """As `transfer.start_fetch`."""
    plan = cached_plan(shadow.layout, wanted, runtime.rank)
    own = shadow.layout.box(runtime.rank)
    if shadow.memory is None and (plan.sends or plan.local):
        assert own is not None
        shadow.allocate(own)

    def sizes(messages: Iterable[tuple[int, tuple[Region, ...]]]) -> list[tuple[int, int]]:
        return [(rank, sum(map(region_size, regions)) * shadow.dtype.itemsize) for rank, regions in messages]

    transfer.sends, transfer.receives = sizes(plan.sends), sizes(plan.receives)
    found.add(transfer.sends)


def _preview_fetches(runtime: Any, group: GroupPlan, shadows: list[Any], found: Preview) -> dict[tuple, Fetched]:
    fetched: dict[tuple, Fetched] = {}
    for key, slot, wanted in group.fetches:
        found.transfers.append(Transfer("fetch", slot, key[1]))
        _bring(runtime, shadows[slot], wanted, found.transfers[-1], found)
        found.counts["fetches"] += 1
        if wanted[runtime.rank]:
            region = wanted[runtime.rank][0]
            fetched[key] = Fetched(meta_array(tuple(map(len, region)), shadows[slot].dtype), None, region)
    return fetched


def _preview_halos(runtime: Any, group: GroupPlan, shadows: list[Any], found: Preview) -> None:
    """As `transfer.start_halo`."""
    for slot, accesses in group.halos:
        shadow = shadows[slot]
        wanted = ghosts(shadow.layout, accesses)
        own = shadow.layout.box(runtime.rank)
        hulls = [hull for access in accesses if (hull := access.hulls[runtime.rank]) is not None]
        if own is not None and hulls:
            wider = wider_margins(shadow, own, hulls)
            if wider is not None:
                if shadow.memory is not None:
                    shadow.spare = None
                shadow.allocate(own, wider)
        transfer = Transfer("halo", slot, fresh=any(covers(had, wanted) for had in shadow.fresh))
        found.transfers.append(transfer)
        if not transfer.fresh:
            shadow.fresh = (*shadow.fresh, wanted)
            found.counts["halos"] += 1
            _bring(runtime, shadow, wanted, transfer, found)


def _preview_loop(
    runtime: Any,
    group: GroupPlan,
    statements: list[Statement],
    shadows: list[Any],
    fetched: dict[tuple, Fetched],
    found: Preview,
) -> None:
    """As `LocalPlan.run`."""
    assert group.box is not None
    found.geometry = group.geometry(shadows)
    plan = group.locals.get(found.geometry)
    if plan is None:
        plan = group.planner(runtime.rank, statements, shadows, fetched).plan()
    found.plan = plan
    found.counts["loops"] += 1
    for name in ("reads", "writes", "contracted", "stored_temporaries"):
        found.counts[name] += getattr(plan, name)
    for slot, box in plan.allocates:
        shadows[slot].allocate(box)
    for slot, donor in plan.takes:
        shadows[slot].low, shadows[slot].extent = shadows[donor].low, shadows[donor].extent
        shadows[slot].memory, shadows[donor].memory = shadows[donor].memory, None
    for slot in plan.dropped:
        shadows[slot].spare = None
    for slot, region in plan.versions:
        shadow = shadows[slot]
        swapped = shadow.spare is not None and region is not None and shadow.spare[1] is region
        found.carried[slot] = 0 if swapped else shadow.memory.size
        shadow.spare = shadow.memory, region
        found.counts["versions"] += 1
        found.counts["carried"] += not swapped


def _preview_combination(runtime: Any, statement: Reduction, slot: int, found: Preview) -> None:
    """As `combine.combine`."""
    shadow, me = statement.outputs[0].storage, runtime.rank
    layout, dtype = shadow.layout, statement.dtype
    boxes = partial_boxes(statement.space, statement.axes, statement.keepdims, layout.mesh.size, shadow.axes)
    made = Combination(slot, layout.is_replicated)
    if runtime.size > 1:
        found.combinations.append(made)
        if made.everywhere:
            found.counts["collectives"] += 1
            found.counts["bytes"] += _collective_bytes(boxes, me, dtype)
        else:
            for rank in range(runtime.size):
                out, back = meet(boxes[me], layout.box(rank)), meet(boxes[rank], layout.box(me))
                if rank != me and out is not None:
                    made.sends.append((rank, box_size(out) * dtype.itemsize))
                if rank != me and back is not None:
                    made.receives.append((rank, box_size(back) * dtype.itemsize))
            found.add(made.sends)
    own = layout.box(me)
    if own is not None:
        shadow.allocate(own)


def _collective_bytes(boxes: Sequence[Box | None], me: int, dtype: np.dtype) -> int:
    """What this rank contributes to the collective, if there are no floating-point events to be told."""
    mine = boxes[me]
    part = None if mine is None else meta_array(tuple(hi - lo for lo, hi in mine), dtype)
    if max((box_size(box) for box in boxes if box is not None), default=0) * dtype.itemsize <= SMALL:
        small = None if part is None else np.zeros(part.shape, dtype)
        return len(pickle.dumps((small, ()), protocol=5))
    nbytes = 0 if part is None else part.nbytes
    return nbytes + len(pickle.dumps((dtype.str, (0,) if part is None else part.shape, None), protocol=5))


def _measure(group: GroupPlan, rank: int, statements: list[Statement], shadows: list[Any], found: Preview) -> None:
    """Bytes that the loop reads and writes, each cell once."""
    slots = {id(shadows[slot]): slot for slot in group.slots}
    assert found.plan is not None
    reads: dict[tuple, tuple[Ref, Any]] = {}
    writes: dict[tuple, tuple[Ref, Any] | None] = {}
    for statement, origin in zip(statements, group.origins, strict=True):
        for ref in statement.reads():
            key = cell_key(slots[id(ref.storage)], ref, origin)
            if key not in writes:
                reads.setdefault(key, (ref, statement.space))
        if not isinstance(statement, Reduction):
            for out, new in zip(statement.outputs, statement.creates, strict=True):  # type: ignore[attr-defined]
                slot = slots[id(out.storage)]
                stored = not (new and is_contracted(group, slot, out.storage))
                key = cell_key(slot, out, origin)
                writes.setdefault(key, (out, statement.space) if stored else None)
    found.reads = _bytes_by_slot(rank, reads)
    found.writes = _bytes_by_slot(rank, {key: ref for key, ref in writes.items() if ref is not None})


def is_contracted(group: GroupPlan, slot: int, storage: Any) -> bool:
    """Whether a result that a group makes is never stored."""
    return not storage.wanted and slot not in group.kept


def _bytes_by_slot(rank: int, refs: dict[tuple, tuple[Ref, Any]]) -> dict[int, int]:
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
