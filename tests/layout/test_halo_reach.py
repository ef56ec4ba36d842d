"""Halos reach no further than `halo_reach` says, so their plans are those that look at all ranks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import strategies as st

from numpy_dist.layout import Layout, decode, default_layout, ghost_blocks, owned_boxes, plan_fetch
from numpy_dist.layout.alignment import DIRECT, FETCH, HALO, Access, _decisive_ranks, _mode, plan_access
from numpy_dist.layout.fetch import halo_reach
from numpy_dist.layout.layout import Copies, Cut, Pinned
from numpy_dist.layout.regions import Box, Region, box_empty, region_hull, region_of
from numpy_dist.layout.views import storage_region

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
        own, hulls = layout.box(rank), [h for access in reads if (h := access.hull(rank)) is not None]
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


def check_modes(data: st.DataObject) -> None:
    """The mode is that of the rank that needs most, though only some ranks are looked at."""
    shape = tuple(data.draw(st.lists(st.integers(0, 12), min_size=1, max_size=3)))
    layout = data.draw(layouts(shape, 24))
    array = np.empty(shape, "f8")
    steps = st.sampled_from([1, 1, 1, 2, -1])
    key = tuple(slice(*data.draw(st.tuples(st.integers(0, 3), st.integers(4, 12)))) for _ in shape)
    view = array[key][tuple(slice(None, None, data.draw(steps)) for _ in shape)]
    if data.draw(st.booleans()):
        view = view.transpose(data.draw(st.permutations(range(view.ndim))))
    if view.ndim > 1 and data.draw(st.booleans()):
        view = view.diagonal()
    offset = view.__array_interface__["data"][0] - array.__array_interface__["data"][0] if view.size else 0
    vmap = decode(shape, 8, layout.cut_axes, offset, view.shape, view.strides, 8)
    if vmap is None:
        return
    same_mesh = data.draw(st.booleans())
    space = layout_like(layout, view.shape, data) if same_mesh else data.draw(layouts(view.shape, layout.size))
    if space.size != layout.size:
        return
    modes = [DIRECT]
    for rank in range(layout.size):
        box = space.box(rank)
        if box is not None and not box_empty(box):
            modes.append(_mode(layout.box(rank), region_hull(storage_region(vmap, box))))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("numpy_dist.layout.alignment.FEW", data.draw(st.sampled_from([0, 100])))
        found = plan_access.__wrapped__(layout, vmap, space)
        looked_at = len(set(_decisive_ranks(layout, vmap, space)))
    assert found.mode == max(modes, key=[DIRECT, HALO, FETCH].index)
    LOOKED_AT.add((found.mode, looked_at < layout.size))


def layout_like(layout: Layout, shape: tuple[int, ...], data: st.DataObject) -> Layout:
    """Any layout of arrays of this shape on the same mesh, often with nearly the same cuts."""
    axes = list(range(len(shape)))
    dims: list[Cut | Copies | Pinned] = []
    for extent, what in zip(layout.mesh.shape, layout.dims, strict=True):
        kind = data.draw(st.sampled_from(["like", "like", "like", "copies", "pinned", "cut"]))
        if kind == "like" and isinstance(what, Cut) and what.axis in axes:
            axes.remove(what.axis)
            n, moved = shape[what.axis], data.draw(st.integers(-1, 0))
            inner = [min(max(point + moved, 0), n) for point in what.ascending[1:-1]]
            points = (0, *inner, n)
            dims.append(Cut(what.axis, points[::-1] if what.descends else points))
        elif kind == "cut" and axes:
            axis = axes.pop(data.draw(st.integers(0, len(axes) - 1)))
            inner = data.draw(st.lists(st.integers(0, shape[axis]), min_size=extent - 1, max_size=extent - 1))
            dims.append(Cut(axis, (0, *sorted(inner), shape[axis])))
        elif kind == "pinned":
            dims.append(Pinned(data.draw(st.integers(0, extent - 1))))
        else:
            dims.append(Copies())
    return Layout(shape, layout.mesh, tuple(dims))


LOOKED_AT: set[tuple[str, bool]] = set()
test_modes, test_modes_long = quick_and_long(check_modes, 600, data=st.data())


def test_some_ranks_were_left_out() -> None:
    """The property says little where all ranks are looked at."""
    LOOKED_AT.clear()
    test_modes()
    assert {(mode, some) for mode in (DIRECT, HALO, FETCH) for some in (True, False)} <= LOOKED_AT


def test_of_a_large_mesh_its_edges_are_looked_at() -> None:
    layout = default_layout((6400, 6400), 4096, mesh=(64, 64))
    array = np.empty((6400, 6400), "i1")
    vmap = decode(array.shape, 1, layout.cut_axes, 0, (6398, 6398), array.strides, 1)
    assert vmap is not None
    space = default_layout((6398, 6398), 4096, mesh=(64, 64))
    assert len(set(_decisive_ranks(layout, vmap, space))) == 127
    assert plan_access(layout, vmap, space).mode == HALO


def test_accesses_of_the_same_are_equal() -> None:
    layout = default_layout((100,), 4)
    vmap = decode((100,), 8, layout.cut_axes, 0, (100,), (8,), 8)
    assert vmap is not None
    one, other = (Access(HALO, layout, vmap, default_layout((100,), 4)) for _ in range(2))
    assert one == other and hash(one) == hash(other)
