"""How the ranks get at a view: what each needs, and whether it has it, can keep it as a halo, or must fetch it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

from numpy_dist.layout.layout import Layout
from numpy_dist.layout.regions import Box, Region, box_empty, region_hull
from numpy_dist.layout.views import ViewMap, storage_region

if TYPE_CHECKING:
    from numpy_dist.layout.layout import BoxList

DIRECT, HALO, FETCH = "direct", "halo", "fetch"


@dataclass(frozen=True)
class Access:
    """How one view is read over one iteration space.

    Attributes
    ----------
    mode : {"direct", "halo", "fetch"}
        The same on every rank.
    regions : tuple of (Region or None)
        For each rank, the region of the storage that it needs; None where it has nothing to compute.
    hulls : tuple of (Box or None)
        The same regions as contiguous boxes.
    """

    mode: str
    regions: tuple[Region | None, ...]
    hulls: tuple[Box | None, ...]
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash((self.mode, self.regions, self.hulls)))

    def __hash__(self) -> int:
        return self._hash  # worked out once: there is an entry for each rank


@lru_cache(maxsize=2048)
def plan_access(layout: Layout, vmap: ViewMap, space: Layout | BoxList) -> Access:
    """Plan the reading of a view (`vmap` over a storage of `layout`) by ranks that iterate over `space`.

    A pure function of metadata: every rank gets the same plan.
    """
    mode = DIRECT
    regions: list[Region | None] = []
    hulls: list[Box | None] = []
    for rank in range(layout.size):
        box = space.box(rank)
        if box is None or box_empty(box):
            regions.append(None)
            hulls.append(None)
            continue
        region = storage_region(vmap, box)
        need = region_hull(region)
        regions.append(region)
        hulls.append(need)
        if mode != FETCH:
            mode = max(mode, _mode(layout.box(rank), need), key=_RANKING.__getitem__)
    return Access(mode, tuple(regions), tuple(hulls))


_RANKING = {DIRECT: 0, HALO: 1, FETCH: 2}


def _mode(own: Box | None, need: Box) -> str:
    if own is None:
        return FETCH
    mode = DIRECT
    for (lo, hi), (need_lo, need_hi) in zip(own, need, strict=True):
        below, above = lo - need_lo, need_hi - hi
        if below > 0 or above > 0:
            if max(below, above) > hi - lo:
                return FETCH
            mode = HALO
    return mode
