"""What ranks bring each other before a loop: halos and fetched regions, as functions of metadata."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import lru_cache
from typing import overload

from numpy_dist.engine.planning.actions import Margin, Wanted
from numpy_dist.layout.alignment import Access
from numpy_dist.layout.fetch import FetchPlan, Reach, plan_fetch
from numpy_dist.layout.halo import ghost_blocks, margins
from numpy_dist.layout.layout import Layout
from numpy_dist.layout.regions import Box, Region
from numpy_dist.layout.views import addressable_region

_planned = lru_cache(maxsize=2048)(plan_fetch)
_MOST_KNOWN = 1024
_known_plans: dict[tuple[Layout, int, int], tuple[Wanted, FetchPlan]] = {}
_known_covers: dict[tuple[int, int], tuple[Wanted, Wanted, bool]] = {}
_lock = threading.RLock()  # a finalizer may plan in between


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


def _keep(known: dict, key: tuple, what: tuple) -> None:
    with _lock:  # simulated ranks are threads
        if len(known) >= _MOST_KNOWN:
            del known[next(iter(known))]
        known[key] = what


class PerRank(Sequence[tuple[Region, ...]]):
    """For each rank the regions that it wants, worked out where they are asked for.

    Equal ones are made of the same; what they are made of is the same on every rank.
    """

    _made_of: tuple[object, ...]
    _size: int

    def __len__(self) -> int:
        return self._size

    @overload
    def __getitem__(self, rank: int) -> tuple[Region, ...]: ...
    @overload
    def __getitem__(self, rank: slice) -> tuple[tuple[Region, ...], ...]: ...
    def __getitem__(self, rank: int | slice) -> tuple:
        if isinstance(rank, slice):
            return tuple(map(self._of, range(self._size)[rank]))
        return self._of(range(self._size)[rank])

    def __hash__(self) -> int:
        return hash(self._made_of)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, PerRank) and self._made_of == other._made_of)

    def _of(self, rank: int) -> tuple[Region, ...]:
        raise NotImplementedError


class Ghosts(PerRank):
    """For each rank the ghost blocks that a loop's halo reads of one storage need."""

    def __init__(self, layout: Layout, accesses: tuple[Access, ...]) -> None:
        self._layout, self._accesses = layout, accesses
        self._made_of, self._size = ("ghosts", layout, accesses), layout.size

    def _of(self, rank: int) -> tuple[Region, ...]:
        own = self._layout.box(rank)
        hulls = hulls_of(self._accesses, rank)
        blocks = ghost_blocks(own, hulls) if own is not None and hulls else {}
        return tuple(tuple(range(lo, hi) for lo, hi in block) for block in blocks.values())

    def contain(self, other: Wanted) -> bool:
        """Whether these contain others, as is seen without looking at any rank."""
        return isinstance(other, Ghosts) and self._layout == other._layout and {*other._accesses} <= {*self._accesses}


class FetchedRegions(PerRank):
    """For each rank what it fetches of a view that it cannot keep as a halo."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._made_of, self._size = ("fetched", access), access.layout.size

    def _of(self, rank: int) -> tuple[Region, ...]:
        region = self._access.region(rank)
        return () if region is None else (addressable_region(self._access.vmap, region),)


@lru_cache(maxsize=1024)
def ghosts(layout: Layout, accesses: tuple[Access, ...]) -> Ghosts:
    """Those of a storage, the same object each time: what is known of them is known by it."""
    return Ghosts(layout, accesses)


@lru_cache(maxsize=1024)
def fetched_regions(access: Access) -> FetchedRegions:
    """Those of an access, the same object each time."""
    return FetchedRegions(access)


def hulls_of(accesses: Sequence[Access], rank: int) -> list[Box]:
    """The boxes that a rank reads."""
    return [hull for access in accesses if (hull := access.hull(rank)) is not None]


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
    if had == wanted or (isinstance(had, Ghosts) and had.contain(wanted)):
        return True
    return all(
        all(
            any(all(a.start >= b.start and a.stop <= b.stop for a, b in zip(r, h, strict=True)) for h in have)
            for r in want
        )
        for want, have in zip(wanted, had, strict=True)
    )


def wider_margin(
    own: Box, hulls: Sequence[Box], low: tuple[int, ...], extent: tuple[int, ...], allocated: bool
) -> Margin | None:
    """The margin that an allocation must get so that it holds the hulls, too; None if it does."""
    need = tuple(margins(own, hulls))
    if not allocated:
        return need
    have = tuple((lo - first, first + n - hi) for (lo, hi), first, n in zip(own, low, extent, strict=True))
    if all(a >= c and b >= d for (a, b), (c, d) in zip(have, need, strict=True)):
        return None
    return tuple((max(a, c), max(b, d)) for (a, b), (c, d) in zip(have, need, strict=True))
