"""Halos reach no further than `halo_reach` says, so their plans are those that look at all ranks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import strategies as st

from numpy_dist.layout import Layout, decode, default_layout, ghost_blocks, owned_boxes, plan_fetch
from numpy_dist.layout.alignment import DIRECT, FETCH, HALO, Access, _mode, plan_access
from numpy_dist.layout.fetch import halo_reach
from numpy_dist.layout.regions import Box, Region, region_of

from .strategies import layouts, quick_and_long

MODES: set[str] = set()


def accesses(layout: Layout, center: tuple[slice, ...], others: list[tuple[slice, ...]]) -> list[Access]:
    """How views are read by the ranks that own the view `center`."""
    array = np.empty(layout.shape, "f8")

    def mapped(key: tuple[slice, ...]):
        view = array[key]
        offset = view.__array_interface__["data"][0] - array.__array_interface__["data"][0]
        vmap = decode(array.shape, 8, layout.cut_axes, offset, view.shape, view.strides, 8)
        assert vmap is not None
        return vmap

    space = owned_boxes(layout, mapped(center))
    return [] if space is None else [plan_access(layout, mapped(key), space) for key in others]


def ghosts(layout: Layout, reads: list[Access]) -> list[tuple[Region, ...]]:
    wanted = []
    for rank in range(layout.size):
        own, hulls = layout.box(rank), [h for access in reads if (h := access.hulls[rank]) is not None]
        blocks = ghost_blocks(own, hulls) if own is not None and hulls else {}
        wanted.append(tuple(region_of(block) for block in blocks.values()))
    return wanted


def check_halos(data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.integers(5, 14), min_size=1, max_size=3)))
    layout = data.draw(layouts(shape, 24))
    shifts = data.draw(st.lists(st.tuples(*[st.integers(-2, 2)] * len(shape)), min_size=1, max_size=3))
    keys = [tuple(slice(2 + d, n - 2 + d) for d, n in zip(shift, shape, strict=True)) for shift in shifts]
    found = accesses(layout, tuple(slice(2, n - 2) for n in shape), keys)
    MODES.update(access.mode for access in found)
    reads = [access for access in found if access.mode == HALO]
    wanted, reach = ghosts(layout, reads), halo_reach(layout)
    for rank in range(layout.size):
        assert plan_fetch(layout, wanted, rank, reach) == plan_fetch(layout, wanted, rank)


test_halos, test_halos_long = quick_and_long(check_halos, 300, data=st.data())


def test_there_were_halos() -> None:
    """The property says nothing where every reading is a fetch."""
    MODES.clear()
    test_halos()
    assert HALO in MODES


def test_the_bound_is_the_longest_shard() -> None:
    assert halo_reach(default_layout((100, 90), 4, mesh=(4, 1))) == ((25, 25), (90, 90))
    assert halo_reach(default_layout((10, 90), 4, split=0)) == ((3, 3), (0, 0))
    assert halo_reach(default_layout((0, 9), 2, split=0)) == ((0, 0), (0, 0))


@pytest.mark.parametrize(
    ("own", "need", "mode"),
    [
        (((5, 8),), ((5, 8),), DIRECT),
        (((5, 8),), ((6, 7),), DIRECT),
        (((5, 8),), ((4, 8),), HALO),
        (((5, 8),), ((5, 9),), HALO),
        (((5, 8),), ((2, 11),), HALO),
        (((5, 8),), ((1, 8),), FETCH),
        (((5, 8),), ((5, 12),), FETCH),
        (((5, 8), (0, 9)), ((4, 8), (0, 9)), HALO),
        (((5, 8), (0, 1)), ((4, 8), (0, 3)), FETCH),
        (None, ((0, 1),), FETCH),
        ((), (), DIRECT),
    ],
)
def test_halos_are_at_most_as_wide_as_what_a_rank_owns(own: Box | None, need: Box, mode: str) -> None:
    assert _mode(own, need) == mode


class Counted(tuple):
    """A tuple that counts how often it is hashed."""

    hashed = 0

    def __hash__(self) -> int:
        self.hashed += 1
        return super().__hash__()


def test_an_access_is_hashed_once() -> None:
    regions = Counted([(range(3),), (range(3, 6),)])
    access = Access(HALO, regions, (((0, 3),), ((3, 6),)))
    assert len({hash(access) for _ in range(3)}) == 1 and regions.hashed == 1
    same = Access(HALO, tuple(regions), (((0, 3),), ((3, 6),)))
    assert access == same and hash(access) == hash(same)
