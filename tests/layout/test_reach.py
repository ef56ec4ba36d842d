"""Plans that look only at the ranks near by: the same plans, without asking what the others want."""

from __future__ import annotations

from collections.abc import Sequence
from typing import overload

import pytest
from hypothesis import strategies as st

from numpy_dist.layout import Layout, default_layout, ghost_blocks, plan_fetch
from numpy_dist.layout.regions import Box, Region, box_empty, region_of

from .strategies import layouts, quick_and_long, shapes

Wanted = tuple[Region, ...]


class Asked(Sequence[Wanted]):
    """What the ranks want, and a note of whom the planner has asked."""

    def __init__(self, wanted: Sequence[Wanted]) -> None:
        self._wanted = wanted
        self.asked: set[int] = set()

    @overload
    def __getitem__(self, rank: int) -> Wanted: ...
    @overload
    def __getitem__(self, rank: slice) -> Sequence[Wanted]: ...
    def __getitem__(self, rank: int | slice) -> Wanted | Sequence[Wanted]:
        assert isinstance(rank, int)
        self.asked.add(rank)
        return self._wanted[rank]

    def __len__(self) -> int:
        return len(self._wanted)


def _hull(data: st.DataObject, own: Box, shape: tuple[int, ...], reach: Sequence[tuple[int, int]]) -> Box:
    """Some box within the reach around a box."""
    ends = []
    for (lo, hi), (below, above), n in zip(own, reach, shape, strict=True):
        first, last = max(0, lo - below), min(n, hi + above)
        ends.append(tuple(sorted((data.draw(st.integers(first, last)), data.draw(st.integers(first, last))))))
    return tuple((a, b) for a, b in ends)


@st.composite
def halos(draw: st.DrawFn) -> tuple[Layout, tuple[tuple[int, int], ...]]:
    shape = draw(shapes(max_ndim=3, largest=12))
    reach = tuple((draw(st.integers(0, 3)), draw(st.integers(0, 3))) for _ in shape)
    return draw(layouts(shape, 24)), reach


def check_reach(halo: tuple[Layout, tuple[tuple[int, int], ...]], data: st.DataObject) -> None:
    layout, reach = halo
    wanted: list[Wanted] = []
    for rank in range(layout.size):
        own = layout.box(rank)
        if own is None or box_empty(own):
            wanted.append(())
            continue
        hulls = [_hull(data, own, layout.shape, reach) for _ in range(data.draw(st.integers(0, 2)))]
        wanted.append(tuple(region_of(block) for block in ghost_blocks(own, hulls).values()))
    for rank in range(layout.size):
        assert plan_fetch(layout, wanted, rank, reach) == plan_fetch(layout, wanted, rank)


test_reach, test_reach_long = quick_and_long(check_reach, 200, halo=halos(), data=st.data())


@pytest.mark.parametrize("ranks", [64, 1024, 16384])
def test_only_neighbours_are_asked(ranks: int) -> None:
    side = round(ranks**0.5)
    layout = default_layout((10 * side, 10 * side), ranks)
    inner = (side // 2) * side + side // 2
    ring = {inner + i * side + j for i in (-1, 0, 1) for j in (-1, 0, 1)}
    wanted: list[Wanted] = [()] * ranks
    for rank in ring:
        own = layout.box(rank)
        assert own is not None
        (a, b), (c, d) = own
        hulls = [((a - 1, b + 1), (c, d)), ((a, b), (c - 1, d + 1))]
        wanted[rank] = tuple(region_of(block) for block in ghost_blocks(own, hulls).values())
    asked = Asked(wanted)
    plan = plan_fetch(layout, asked, inner, ((1, 1), (1, 1)))
    assert asked.asked <= ring and len(plan.sends) == len(plan.receives) == 4
