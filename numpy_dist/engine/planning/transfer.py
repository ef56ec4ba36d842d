"""Fetching: regions of storages brought to the ranks that want them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from numpy_dist.engine.memory.storage import Storage
from numpy_dist.layout.alignment import Access
from numpy_dist.layout.fetch import FetchPlan, Reach, halo_reach, plan_fetch
from numpy_dist.layout.halo import ghost_blocks, margins
from numpy_dist.layout.layout import Layout
from numpy_dist.layout.regions import Box, Region

Wanted = tuple[tuple[Region, ...], ...]
_planned = lru_cache(maxsize=2048)(plan_fetch)
_MOST_KNOWN = 1024
_known_plans: dict[tuple[Layout, int, int], tuple[Wanted, FetchPlan]] = {}
_known_covers: dict[tuple[int, int], tuple[Wanted, Wanted, bool]] = {}
_lock = threading.Lock()


def cached_plan(layout: Layout, wanted: Wanted, rank: int, reach: Reach | None = None) -> FetchPlan:
    """As `layout.fetch.plan_fetch`; for a `wanted` seen before it costs the same at any number of ranks.

    A tuple with an entry for each rank takes long to hash. A loop comes with the same object again and again: it is
    known by its address, which stays its own since it is kept.
    """
    found = _known_plans.get((layout, id(wanted), rank))
    if found is None:
        found = wanted, _planned(layout, wanted, rank, reach)
        _keep(_known_plans, (layout, id(wanted), rank), found)
    return found[1]


def _keep(known: dict[Any, Any], key: Any, what: Any) -> None:
    with _lock:  # simulated ranks are threads
        if len(known) >= _MOST_KNOWN:
            del known[next(iter(known))]
        known[key] = what


def start_fetch(
    runtime: Any,
    storage: Storage,
    wanted: Wanted,
    part: Callable[[Region], Any],
    reach: Reach | None = None,
) -> Callable[[], None]:
    """Begin to bring every rank the regions that it wants.

    Parameters
    ----------
    wanted : tuple
        For each rank its regions, the same on every rank.
    part : callable
        ``part(region)`` is the array that receives a region on this rank.
    reach : tuple of (int, int), optional
        As in `layout.fetch.plan_fetch`.

    Returns
    -------
    callable
        Waits and unpacks. Communicates only where a rank wants what it does not hold.
    """
    plan = cached_plan(storage.layout, wanted, runtime.rank, reach)
    if storage.memory is None and (plan.sends or plan.local):
        own = storage.layout.box(runtime.rank)
        assert own is not None
        storage.allocate(own)
    dtype, held = storage.dtype, storage.part

    def targets(regions: Sequence[Region]) -> Callable[[], list[Any]]:
        return lambda: [part(region) for region in regions]

    finish = runtime.transport.start(
        [(rank, [held(region) for region in regions]) for rank, regions in plan.sends],
        [(rank, _count(regions) * dtype.itemsize, targets(regions)) for rank, regions in plan.receives],
        dtype,
        plan.marks,
    )
    memory = storage.pool.memory
    for region in plan.local:
        target = part(region)
        source = storage.part(region)
        if memory.address(target) != memory.address(source):
            memory.copy(target, source)
    return finish


def _count(regions: Sequence[Region]) -> int:
    total = 0
    for region in regions:
        count = 1
        for r in region:
            count *= len(r)
        total += count
    return total


@lru_cache(maxsize=1024)
def ghosts(layout: Layout, accesses: tuple[Access, ...]) -> Wanted:
    """For each rank the ghost blocks that a loop's halo reads of one storage need."""
    wanted = []
    for rank in range(layout.mesh.size):
        own = layout.box(rank)
        hulls = [h for access in accesses if (h := access.hulls[rank]) is not None]
        blocks = ghost_blocks(own, hulls) if own is not None and hulls else {}
        wanted.append(tuple(tuple(range(lo, hi) for lo, hi in block) for block in blocks.values()))
    return tuple(wanted)


def start_halo(runtime: Any, storage: Storage, accesses: tuple[Access, ...]) -> Callable[[], None] | None:
    """Begin to refresh the ghost cells that these reads need; None if they are fresh."""
    wanted = ghosts(storage.layout, accesses)
    _make_room(
        storage, storage.layout.box(runtime.rank), [h for a in accesses if (h := a.hulls[runtime.rank]) is not None]
    )
    if any(covers(had, wanted) for had in storage.fresh):
        return None
    storage.fresh = (*storage.fresh, wanted)
    runtime.counters.halos += 1
    # What arrives belongs to this version: the storage may have got another one by then.
    part = storage.parts() if storage.memory is not None else storage.part
    return start_fetch(runtime, storage, wanted, part, halo_reach(storage.layout))


def covers(had: Wanted, wanted: Wanted) -> bool:
    """Whether ghost regions that were exchanged contain those that are wanted, on every rank."""
    if had is wanted:
        return True
    found = _known_covers.get((id(had), id(wanted)))
    if found is None:
        found = had, wanted, _covers(had, wanted)
        _keep(_known_covers, (id(had), id(wanted)), found)
    return found[2]


def _covers(had: Wanted, wanted: Wanted) -> bool:
    return had == wanted or all(
        all(
            any(all(a.start >= b.start and a.stop <= b.stop for a, b in zip(r, h, strict=True)) for h in have)
            for r in want
        )
        for want, have in zip(wanted, had, strict=True)
    )


def wider_margins(storage: Storage, own: Box, hulls: Sequence[Box]) -> Sequence[tuple[int, int]] | None:
    """The margins that an allocation must get so that it holds the hulls, too; None if it does."""
    need = margins(own, hulls)
    if storage.memory is None:
        return need
    have = tuple((lo - low, low + n - hi) for (lo, hi), low, n in zip(own, storage.low, storage.extent, strict=True))
    if all(a >= c and b >= d for (a, b), (c, d) in zip(have, need, strict=True)):
        return None
    return tuple((max(a, c), max(b, d)) for (a, b), (c, d) in zip(have, need, strict=True))


def _make_room(storage: Storage, own: Box | None, hulls: list[Box]) -> None:
    """Give the allocation margins as wide as the hulls reach; what is there moves along."""
    if own is None or not hulls:
        return
    wider = wider_margins(storage, own, hulls)
    if storage.memory is None:
        storage.allocate(own, wider)
        return
    if wider is None:
        return
    # Ghosts move along: that some are fresh is known to all ranks, of which only some widen their margins.
    mine, held = storage.array(), tuple((low, low + n) for low, n in zip(storage.low, storage.extent, strict=True))
    old = storage.memory
    storage.drop_spare()
    storage.allocate(own, wider)
    storage.pool.memory.copy(storage.part(held), mine)
    del mine
    storage.pool.give(old)


class Fetched(NamedTuple):
    """An array that was fetched, the block that it lies in, and the region that it holds."""

    array: Any
    block: Any
    region: Region


def fetch_array(runtime: Any, storage: Storage, wanted: Wanted) -> tuple[Fetched | None, Callable[[], None]]:
    """Begin to fetch one region for each rank into an array of its own.

    Returns
    -------
    fetched : Fetched or None
        A dense array of the region's shape; None where this rank wants nothing.
    finish : callable
    """
    runtime.counters.fetches += 1
    mine = wanted[runtime.rank]
    if not mine:
        return None, start_fetch(runtime, storage, wanted, storage.part)
    region = mine[0]
    memory = storage.pool.memory
    block = storage.pool.attempt(memory.allocate, _count(mine) * storage.dtype.itemsize)
    target = memory.array(block, [len(r) for r in region], storage.dtype)

    def part(piece: Region) -> Any:
        slices = []
        for r, p in zip(region, piece, strict=True):
            start = (p.start - r.start) // r.step
            slices.append(slice(start, start + len(p)))
        key: Any = (*slices, ...)
        return target[key]

    return Fetched(target, block, region), start_fetch(runtime, storage, wanted, part)
