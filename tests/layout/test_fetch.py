"""Fetch plans and halos: everything that is asked for arrives exactly once, and both sides of a message agree."""

from __future__ import annotations

from math import prod

import numpy as np
from hypothesis import strategies as st

from numpy_dist.layout import Layout, default_layout, ghost_blocks, margins, plan_fetch, storage_region
from numpy_dist.layout.regions import Region, box_size, region_of, subtract_box

from .strategies import ViewCase, box_mask, layouts, quick_and_long, shapes, view_cases


@st.composite
def disjoint_regions(draw: st.DrawFn, shape: tuple[int, ...]) -> tuple[Region, ...]:
    """A few disjoint, stepped regions: a region, divided along an axis, interleaved or with holes, in any order."""
    ends = [sorted(draw(st.lists(st.integers(0, n), min_size=2, max_size=2))) for n in shape]
    first: Region = tuple(range(a, b, draw(st.sampled_from([1, 1, 1, 2, 3]))) for a, b in ends)
    kind = draw(st.sampled_from(["nothing", "one", "one", "halves", "interleaved", "around"]))
    if kind == "nothing":
        return ()
    if kind == "one" or not shape:
        return (first,)
    axis = draw(st.integers(0, len(shape) - 1))
    r = first[axis]
    if kind == "around":
        holes = [sorted(draw(st.lists(st.integers(a, max(a, b)), min_size=2, max_size=2))) for a, b in ends]
        pieces = subtract_box(tuple((a, b) for a, b in ends), tuple((a, b) for a, b in holes))
        return tuple(draw(st.permutations([region_of(piece) for piece in pieces])))
    if kind == "halves":
        middle = draw(st.integers(0, len(r)))
        parts = [r[:middle], r[middle:]]
    else:
        parts = [r[::2], r[1::2]]
    return tuple(draw(st.permutations([(*first[:axis], part, *first[axis + 1 :]) for part in parts])))


@st.composite
def fetches(draw: st.DrawFn) -> tuple[Layout, tuple[tuple[Region, ...], ...]]:
    shape = draw(shapes(max_ndim=3, largest=9))
    layout = draw(layouts(shape))
    # Some communicators have more ranks than the layout's mesh.
    extra = draw(st.sampled_from([0, 0, 0, 2]))
    choices = draw(st.lists(disjoint_regions(shape), min_size=1, max_size=4))
    count = layout.size + extra
    picks = draw(st.lists(st.integers(0, len(choices) - 1), min_size=count, max_size=count))
    return layout, tuple(choices[pick] for pick in picks)


def check_plans(layout: Layout, wanted: tuple[tuple[Region, ...], ...]) -> None:
    count = len(wanted)
    plans = [plan_fetch(layout, wanted, rank) for rank in range(count)]
    numbers = np.arange(prod(layout.shape)).reshape(layout.shape)
    messages = {}
    for rank, plan in enumerate(plans):
        held = box_mask(layout.shape, layout.box(rank))
        assert [other for other, _ in plan.sends] == sorted({other for other, _ in plan.sends} - {rank})
        assert [other for other, _ in plan.receives] == sorted({other for other, _ in plan.receives} - {rank})
        for dest, regions in plan.sends:
            assert regions and all(all(region) for region in regions)
            messages[rank, dest] = regions
            assert all(held[np.ix_(*region)].all() for region in regions)
        assert all(held[np.ix_(*region)].all() for region in plan.local)
    received = {(source, rank): regions for rank, plan in enumerate(plans) for source, regions in plan.receives}
    assert received == messages
    for rank, plan in enumerate(plans):
        parts = [region for _, regions in plan.receives for region in regions] + list(plan.local)
        got = [numbers[np.ix_(*region)].ravel() for region in parts]
        asked = [numbers[np.ix_(*region)].ravel() for region in wanted[rank]]
        assert np.array_equal(np.sort(np.concatenate([[], *got])), np.sort(np.concatenate([[], *asked])))
        # What a rank holds it does not fetch, copies included.
        held = box_mask(layout.shape, layout.box(rank))
        assert not any(held[np.ix_(*region)].any() for _, regions in plan.receives for region in regions)


def check_fetches(case: tuple[Layout, tuple[tuple[Region, ...], ...]]) -> None:
    check_plans(*case)


def check_view_fetches(case: ViewCase, data: st.DataObject) -> None:
    """Ranks that iterate over a view in any layout get the storage's region of their box."""
    vmap = case.decode()
    if vmap is None:
        return
    space = data.draw(layouts(case.view.shape, 12))
    boxes = [space.box(rank) for rank in range(max(space.size, case.layout.size))]
    wanted = tuple(() if box is None else (storage_region(vmap, box),) for box in boxes)
    check_plans(case.layout, wanted)


test_fetches, test_fetches_long = quick_and_long(check_fetches, case=fetches())
test_view_fetches, test_view_fetches_long = quick_and_long(
    check_view_fetches, 200, case=view_cases(), data=st.data()
)


def test_copies_are_taken_from_the_nearest_rank() -> None:
    layout = default_layout((3,), 6)
    wanted = tuple(((range(3),),) for _ in range(6))
    for rank in range(6):
        plan = plan_fetch(layout, wanted, rank)
        assert {source % 2 for source, _ in plan.receives} == {rank % 2}


def test_a_halo_costs_its_neighbours_only() -> None:
    layout = default_layout((1024, 1024), 1024)
    wanted = []
    for rank in range(1024):
        own = layout.box(rank)
        assert own is not None
        hull = tuple((max(0, a - 1), min(1024, b + 1)) for a, b in own)
        wanted.append(tuple(region_of(block) for block in subtract_box(hull, own)))
    plan = plan_fetch(layout, wanted, 33 * 16)
    assert len(plan.receives) == len(plan.sends) == 8 and not plan.local


# -- halos -----------------------------------------------------------------------------------------------------------


@st.composite
def any_boxes(draw: st.DrawFn, ndim: int) -> tuple[tuple[int, int], ...]:
    ends = [sorted(draw(st.lists(st.integers(0, 9), min_size=2, max_size=2))) for _ in range(ndim)]
    return tuple((a, b) for a, b in ends)


def check_ghosts(ndim: int, data: st.DataObject) -> None:
    own = data.draw(any_boxes(ndim))
    hulls = data.draw(st.lists(any_boxes(ndim), max_size=4))
    shape = (9,) * ndim
    inside = box_mask(shape, own)
    blocks = ghost_blocks(own, hulls)
    total = np.zeros(shape, int)
    for direction, block in blocks.items():
        assert any(direction) and len(direction) == ndim and box_size(block)
        for side, (a, b), (lo, hi) in zip(direction, block, own, strict=True):
            assert {-1: b <= lo, 0: lo <= a and b <= hi, 1: a >= hi}[side]
        total += box_mask(shape, block)
        for axis in range(ndim):
            # No block is wider than what the hulls need in its direction.
            needed = sum(box_mask(shape, hull).astype(int) for hull in hulls) * box_mask(shape, block)
            touched = np.nonzero(needed.any(axis=tuple(x for x in range(ndim) if x != axis)))[0]
            assert (touched[0], touched[-1] + 1) == block[axis]
    assert total.max(initial=0) <= 1 and not (total.astype(bool) & inside).any()
    for hull in hulls:
        assert ((total > 0) | inside | ~box_mask(shape, hull)).all()
    reach = margins(own, hulls)
    padded = tuple((lo - a, hi + b) for (lo, hi), (a, b) in zip(own, reach, strict=True))
    full = [hull for hull in hulls if box_size(hull)]
    for axis in range(ndim):
        lows, highs = [hull[axis][0] for hull in full], [hull[axis][1] for hull in full]
        assert padded[axis] == (min([own[axis][0], *lows]), max([own[axis][1], *highs]))


test_ghosts, test_ghosts_long = quick_and_long(check_ghosts, ndim=st.integers(1, 3), data=st.data())


def test_stencils() -> None:
    own = ((4, 8), (4, 8))
    five = [((4 + i, 8 + i), (4 + j, 8 + j)) for i, j in [(0, 0), (-1, 0), (1, 0), (0, -1), (0, 1)]]
    nine = [((4 + i, 8 + i), (4 + j, 8 + j)) for i in (-1, 0, 1) for j in (-1, 0, 1)]
    assert sorted(ghost_blocks(own, five)) == [(-1, 0), (0, -1), (0, 1), (1, 0)]
    assert ghost_blocks(own, five)[-1, 0] == ((3, 4), (4, 8))
    assert len(ghost_blocks(own, nine)) == 8 and ghost_blocks(own, nine)[1, 1] == ((8, 9), (8, 9))
    assert margins(own, five) == ((1, 1), (1, 1)) and margins(own, []) == ((0, 0), (0, 0))
    assert ghost_blocks(own, [own]) == {} and ghost_blocks((), [()]) == {}
