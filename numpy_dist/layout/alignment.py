"""How the ranks get at a view: what each needs, and whether it has it, can keep it as a halo, or must fetch it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

from numpy_dist.layout.layout import Copies, Cut, Layout, Pinned
from numpy_dist.layout.regions import Box, Region, box_empty, region_hull
from numpy_dist.layout.views import ViewMap, compute_storage_region, storage_region

if TYPE_CHECKING:
    from numpy_dist.layout.layout import BoxList

DIRECT, HALO, FETCH = "direct", "halo", "fetch"
FEW = 16  # ranks of which each may be looked at, and what they need be kept


@dataclass(frozen=True)
class Access:
    """How one view is read over one iteration space.

    What a rank needs is worked out where it is asked for: each has to do with its neighbours only, and a table of what
    all need would be kilobytes for each of them.

    Attributes
    ----------
    mode : {"direct", "halo", "fetch"}
        The same on every rank.
    layout : Layout
        Of the storage.
    vmap : ViewMap
        Of the view over the storage.
    space : Layout or BoxList
        The iteration space.
    """

    mode: str
    layout: Layout
    vmap: ViewMap
    space: Layout | BoxList
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash((self.layout, self.vmap, self.space)))

    def __hash__(self) -> int:
        return self._hash

    def region(self, rank: int) -> Region | None:
        """The region of the storage that a rank needs; None where it has nothing to compute."""
        box = self.space.box(rank)
        return None if box is None or box_empty(box) else _region(self.layout, self.vmap, box)

    def hull(self, rank: int) -> Box | None:
        """The same region as a contiguous box."""
        region = self.region(rank)
        return None if region is None else region_hull(region)


@lru_cache(maxsize=2048)
def plan_access(layout: Layout, vmap: ViewMap, space: Layout | BoxList) -> Access:
    """Plan the reading of a view (`vmap` over a storage of `layout`) by ranks that iterate over `space`.

    A pure function of metadata: every rank gets the same plan.
    """
    mode = DIRECT
    for rank in _decisive_ranks(layout, vmap, space):
        box = space.box(rank)
        if box is not None and not box_empty(box):
            need = region_hull(_region(layout, vmap, box))
            mode = max(mode, _mode(layout.box(rank), need), key=_RANKING.__getitem__)
            if mode == FETCH:
                break
    return Access(mode, layout, vmap, space)


def _region(layout: Layout, vmap: ViewMap, box: Box) -> Region:
    """What is needed of a storage for a box of a view; of a large job it is not kept, which has too many ranks."""
    return storage_region(vmap, box) if layout.size <= FEW else compute_storage_region(vmap, box)


def _decisive_ranks(layout: Layout, vmap: ViewMap, space: Layout | BoxList) -> Iterable[int]:
    """Ranks among which is one that needs most: all, or one line along each dimension of the mesh.

    Lines will do where what is needed along an axis of the storage, and what is there, follow from the coordinate along
    one dimension. The other coordinates are such that there is something to compute.
    """
    everyone = range(layout.size)
    if layout.size <= FEW or not isinstance(space, Layout) or space.mesh != layout.mesh or vmap.merged:
        return everyone
    own, moved = _dims_by_axis(layout), _dims_by_axis(space)
    for axis in range(layout.ndim):
        dims = {dim for view_axis, dim in moved.items() if vmap.steps[view_axis][axis]}
        if len(dims | ({own[axis]} if axis in own else set())) > 1:
            return everyone
    usual = []
    for dim, what in enumerate(space.dims):
        filled = (
            c for c in range(space.mesh.shape[dim]) if not isinstance(what, Cut) or what.points[c] != what.points[c + 1]
        )
        coordinate = what.coordinate if isinstance(what, Pinned) else next(filled, None)
        if coordinate is None:
            return ()
        usual.append(coordinate)
    found = [layout.mesh.rank(usual)]
    for dim, pair in enumerate(zip(layout.dims, space.dims, strict=True)):
        if any(not isinstance(what, Copies) for what in pair):
            line = range(layout.mesh.shape[dim])
            found += [layout.mesh.rank((*usual[:dim], coordinate, *usual[dim + 1 :])) for coordinate in line]
    return found


def _dims_by_axis(layout: Layout) -> dict[int, int]:
    """For each axis that is cut the dimension of the mesh that cuts it."""
    return {what.axis: dim for dim, what in enumerate(layout.dims) if isinstance(what, Cut)}


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
