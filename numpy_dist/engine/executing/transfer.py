"""Regions of storages on their way to the ranks that want them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import EllipsisType
from typing import TYPE_CHECKING, NamedTuple

from numpy_dist.engine.memory.storage import Storage
from numpy_dist.engine.planning.actions import Fetch, RefreshHalo, Wanted, Widen
from numpy_dist.engine.planning.transfers import cached_plan
from numpy_dist.layout.fetch import FetchPlan
from numpy_dist.layout.regions import Region, region_size

if TYPE_CHECKING:
    from numpy_dist.backends.memory import Array
    from numpy_dist.engine.executing.executing_rank import ExecutingRank


def start_fetch(
    runtime: ExecutingRank,
    storage: Storage,
    wanted: Wanted,
    part: Callable[[Region], Array],
) -> Callable[[], None]:
    """Begin to bring every rank the regions that it wants.

    Parameters
    ----------
    wanted : tuple
        For each rank its regions, the same on every rank.
    part : callable
        ``part(region)`` is the array that receives a region on this rank.

    Returns
    -------
    callable
        Waits and unpacks. Communicates only where a rank wants what it does not hold.
    """
    plan = cached_plan(storage.layout, wanted, runtime.rank)
    if storage.memory is None and (plan.sends or plan.local):
        own = storage.layout.box(runtime.rank)
        assert own is not None
        storage.allocate(own)
    return _start(runtime, storage, plan, part)


def _start(
    runtime: ExecutingRank, storage: Storage, plan: FetchPlan, part: Callable[[Region], Array]
) -> Callable[[], None]:
    """Send, ask for and copy what a plan says; returns what waits and unpacks."""
    dtype, held = storage.dtype, storage.part

    def targets(regions: Sequence[Region]) -> Callable[[], list[Array]]:
        return lambda: [part(region) for region in regions]

    finish = runtime.transport.start(
        [(rank, [held(region) for region in regions]) for rank, regions in plan.sends],
        [(rank, sum(map(region_size, regions)) * dtype.itemsize, targets(regions)) for rank, regions in plan.receives],
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


def refresh_halo(runtime: ExecutingRank, storage: Storage, action: RefreshHalo) -> Callable[[], None] | None:
    """Begin to refresh ghost cells; None if they are fresh."""
    if action.messages is None:
        return None
    storage.fresh = (*storage.fresh, action.wanted)
    # What arrives belongs to this version: the storage may have got another one by then.
    part = storage.parts() if storage.memory is not None else storage.part
    return _start(runtime, storage, action.messages, part)


def widen(storage: Storage, action: Widen) -> None:
    """Give an allocation wider margins; what is there moves along.

    Ghosts, too: that some are fresh is known to all ranks, of which only some widen their margins.
    """
    mine, held = storage.array(), tuple((low, low + n) for low, n in zip(storage.low, storage.extent, strict=True))
    old = storage.memory
    storage.drop_spare()
    storage.allocate(action.box, action.margin)
    storage.pool.memory.copy(storage.part(held), mine)
    del mine
    storage.pool.give(old)


# Bytes below which every rank fetches what it wants itself: a message more takes longer than they do on the network.
_HANDED_ON = 1 << 16


class Fetched(NamedTuple):
    """An array that was fetched, the block that it lies in, and the region that it holds."""

    array: Array
    block: Array
    region: Region


def fetch_array(runtime: ExecutingRank, storage: Storage, wanted: Wanted) -> tuple[Fetched | None, Callable[[], None]]:
    """Begin to fetch one region for each rank into an array of its own.

    Returns
    -------
    fetched : Fetched or None
        A dense array of the region's shape; None where this rank wants nothing.
    finish : callable
    """
    mine = wanted[runtime.rank]
    if not mine:
        return None, start_fetch(runtime, storage, wanted, storage.part)
    fetched, part = _target(storage, mine[0])
    return fetched, start_fetch(runtime, storage, wanted, part)


def fetch_on_all(runtime: ExecutingRank, storage: Storage, region: Region) -> Fetched:
    """Fetch a region into an array on every rank, and wait for it.

    Where ranks run on several nodes, one of each node gets it, and hands it on: so it crosses the network once for a
    node, and not for each of its ranks.
    """
    nodes = runtime.comm.nodes
    by_node = bool(nodes) and runtime.on_host and region_size(region) * storage.dtype.itemsize >= _HANDED_ON
    heads = [nodes.index(node) for node in nodes] if by_node else list(range(runtime.size))
    mine = heads[runtime.rank]
    fetched, finish = fetch_array(runtime, storage, tuple((region,) if n == h else () for n, h in enumerate(heads)))
    finish()
    if not by_node:
        assert fetched is not None
        return fetched
    if fetched is None:
        fetched, _ = _target(storage, region)
    target = fetched.array
    mates = [rank for rank, head in enumerate(heads) if head == runtime.rank != rank]
    nbytes = region_size(region) * storage.dtype.itemsize
    receives = [] if mine == runtime.rank else [(mine, nbytes, lambda: [target])]
    runtime.transport.start([(rank, [target]) for rank in mates], receives, storage.dtype)()
    return fetched


def fetch(runtime: ExecutingRank, storage: Storage, action: Fetch) -> tuple[Fetched | None, Callable[[], None]]:
    """The same as an action says, for a storage that has memory if this rank sends of it."""
    if action.region is None:
        return None, _start(runtime, storage, action.messages, storage.part)
    fetched, part = _target(storage, action.region)
    return fetched, _start(runtime, storage, action.messages, part)


def _target(storage: Storage, region: Region) -> tuple[Fetched, Callable[[Region], Array]]:
    """An array for a region of a storage, and what finds parts of the region there."""
    memory = storage.pool.memory
    block = storage.pool.attempt(memory.allocate, region_size(region) * storage.dtype.itemsize)
    target = memory.array(block, [len(r) for r in region], storage.dtype)

    def part(piece: Region) -> Array:
        slices = []
        for r, p in zip(region, piece, strict=True):
            start = (p.start - r.start) // r.step
            slices.append(slice(start, start + len(p)))
        key: tuple[slice | EllipsisType, ...] = (*slices, ...)
        return target[key]

    return Fetched(target, block, region), part
