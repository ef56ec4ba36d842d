"""Meshes, layouts, default layouts and regions."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from itertools import pairwise, product
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from numpy_dist.layout import (
    BoxList,
    Copies,
    Cut,
    Layout,
    Mesh,
    Pinned,
    default_layout,
    default_points,
    replicated_layout,
)
from numpy_dist.layout.default import reweighted
from numpy_dist.layout.regions import (
    Region,
    bounding_box,
    box_contains,
    box_shape,
    box_size,
    box_slices,
    clip,
    full_box,
    intersect_boxes,
    intersect_ranges,
    intersect_regions,
    region_hull,
    region_of,
    region_size,
    subtract_box,
)
from numpy_dist.layout.weights import speed_weights, weighted_points

from .strategies import box_mask, layouts, quick_and_long, shapes

# -- regions ---------------------------------------------------------------------------------------------------------

RANGES = st.builds(range, st.integers(-5, 30), st.integers(-5, 60), st.integers(1, 7))


def check_ranges(first: range, second: range, lo: int, hi: int) -> None:
    clipped = clip(first, lo, hi)
    assert list(clipped) == [i for i in first if lo <= i < hi]
    assert clipped.stop == clipped[-1] + 1 if clipped else clipped == range(0)
    assert list(intersect_ranges(first, second)) == sorted(set(first) & set(second))


@st.composite
def boxes(draw: st.DrawFn, shape: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
    ends = [sorted(draw(st.lists(st.integers(0, n), min_size=2, max_size=2))) for n in shape]
    return tuple((a, b) for a, b in ends)


def check_boxes(shape: tuple[int, ...], data: st.DataObject) -> None:
    first, second = data.draw(boxes(shape)), data.draw(boxes(shape))
    a, b = box_mask(shape, first), box_mask(shape, second)
    assert box_size(first) == a.sum() == prod(box_shape(first)) == region_size(region_of(first))
    common = intersect_boxes(first, second)
    assert np.array_equal(box_mask(shape, common), a & b)
    assert box_contains(first, second) == bool((a >= b).all())
    pieces = subtract_box(first, second)
    total = sum((box_mask(shape, piece).astype(int) for piece in pieces), np.zeros(shape, int))
    assert np.array_equal(total, (a & ~b).astype(int)) and len(pieces) <= max(1, 2 * len(shape))
    around = bounding_box([first, second])
    assert (around is None) == (not (a | b).any())
    if around is not None:
        for axis, (lo, hi) in enumerate(around):
            touched = np.nonzero((a | b).any(axis=tuple(x for x in range(len(shape)) if x != axis)))[0]
            assert (lo, hi) == (touched[0], touched[-1] + 1)


def check_regions(shape: tuple[int, ...], data: st.DataObject) -> None:
    region: Region = tuple(range(a, b, data.draw(st.integers(1, 3))) for a, b in data.draw(boxes(shape)))
    box = data.draw(boxes(shape))
    numbers = np.arange(prod(shape)).reshape(shape)
    mask = np.zeros(shape, bool)
    mask[np.ix_(*region)] = True
    part = intersect_regions(region, region_of(box))
    assert np.array_equal(numbers[np.ix_(*part)].ravel(), numbers[mask & box_mask(shape, box)])
    hull = region_hull(region)
    local = numbers[box_slices(hull, [0] * len(shape))]
    inside = [np.array(axis, int) - lo for axis, (lo, _) in zip(region, hull, strict=True)]
    assert np.array_equal(local[np.ix_(*inside)], numbers[np.ix_(*region)])


test_ranges, test_ranges_long = quick_and_long(
    check_ranges, first=RANGES, second=RANGES, lo=st.integers(-9, 60), hi=st.integers(-9, 60)
)
test_boxes, test_boxes_long = quick_and_long(check_boxes, shape=shapes(), data=st.data())
test_regions, test_regions_long = quick_and_long(check_regions, shape=shapes(), data=st.data())


# -- meshes and layouts ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(1,), (5,), (2, 3), (3, 1, 4)])
def test_mesh_is_row_major(shape: tuple[int, ...]) -> None:
    mesh = Mesh(shape)
    numbers = np.arange(mesh.size).reshape(shape)
    for coordinates in np.ndindex(shape):
        assert mesh.rank(coordinates) == numbers[coordinates]
        assert mesh.coordinates(int(numbers[coordinates])) == coordinates
    with pytest.raises(ValueError, match="not in a mesh"):
        mesh.coordinates(mesh.size)
    with pytest.raises(ValueError, match="not in a mesh"):
        mesh.rank(shape)


@st.composite
def laid_out(draw: st.DrawFn, max_ranks: int = 64) -> Layout:
    return draw(layouts(draw(shapes()), max_ranks))


def check_owners(layout: Layout) -> None:
    """Every element has exactly one primary owner, and copies lie where Copies says."""
    count = np.zeros(layout.shape, int)
    held = np.zeros(layout.shape, int)
    for rank in range(layout.size):
        box = layout.box(rank)
        mask = box_mask(layout.shape, box)
        held += mask
        count += mask & layout.primary(rank)
        assert not layout.primary(rank) or box is not None
        assert (rank in layout.holders()) == bool(mask.any())
    assert (count == 1).all()
    copies = prod(e for e, what in zip(layout.mesh.shape, layout.dims, strict=True) if isinstance(what, Copies))
    assert (held == copies).all()
    assert layout.box(layout.size) is None and not layout.primary(layout.size)
    assert layout.is_replicated == (copies == layout.size and all(isinstance(what, Copies) for what in layout.dims))


def check_locate(layout: Layout, near: int, data: st.DataObject) -> None:
    ends = [sorted(data.draw(st.lists(st.integers(0, n), min_size=2, max_size=2))) for n in layout.shape]
    region = tuple(range(a, b, data.draw(st.integers(1, 4))) for a, b in ends)
    found = layout.locate(region, near)
    assert [rank for rank, _ in found] == sorted({rank for rank, _ in found})
    count = np.zeros(layout.shape, int)
    inside = near < layout.size
    for rank, part in found:
        assert all(part)
        box = layout.box(rank)
        assert box is not None
        mask = np.zeros(layout.shape, bool)
        mask[np.ix_(*part)] = True
        assert (mask <= box_mask(layout.shape, box)).all()
        count += mask
        assert layout.holds_for(rank, near)
        theirs = layout.mesh.coordinates(near) if inside else (0,) * layout.mesh.ndim
        for what, mine, other in zip(layout.dims, layout.mesh.coordinates(rank), theirs, strict=True):
            assert not isinstance(what, Copies) or mine == other
    expected = np.zeros(layout.shape, int)
    expected[np.ix_(*region)] = 1
    assert np.array_equal(count, expected)


def check_axes(layout: Layout, data: st.DataObject) -> None:
    order = tuple(data.draw(st.permutations(range(layout.ndim))))
    turned = layout.transpose(order)
    assert turned.shape == tuple(layout.shape[a] for a in order)
    for rank in range(layout.size):
        box = layout.box(rank)
        assert turned.box(rank) == (None if box is None else tuple(box[a] for a in order))
    assert layout.transpose().transpose() == layout
    axis = data.draw(st.integers(-layout.ndim - 1, layout.ndim))
    wider = layout.insert_axes([axis])
    assert wider.shape == tuple(np.expand_dims(np.empty(layout.shape), axis).shape)
    assert wider.drop_axes([axis]) == layout
    if layout.ndim:
        gone = data.draw(st.integers(0, layout.ndim - 1))
        rest = layout.drop_axes([gone])
        for rank in range(layout.size):
            box = layout.box(rank)
            assert rest.box(rank) == (None if box is None else box[:gone] + box[gone + 1 :])


def check_identity(layout: Layout) -> None:
    again = pickle.loads(pickle.dumps(layout))
    assert again == layout and hash(again) == hash(layout) and again is not layout
    assert again != "something else" and layout.describe()
    assert layout == Layout(layout.shape, Mesh(layout.mesh.shape), layout.dims)


RANKS = st.integers(0, 70)
test_owners, test_owners_long = quick_and_long(check_owners, layout=laid_out())
test_locate, test_locate_long = quick_and_long(check_locate, layout=laid_out(), near=RANKS, data=st.data())
test_axes, test_axes_long = quick_and_long(check_axes, layout=laid_out(), data=st.data())
test_identity, test_identity_long = quick_and_long(check_identity, 100, layout=laid_out())


def test_descending_cut() -> None:
    cut = Cut(0, (5, 3, 0))
    assert cut.interval(0) == (3, 5) and cut.interval(1) == (0, 3)
    assert [cut.owner(i) for i in range(5)] == [1, 1, 1, 0, 0]
    assert cut.split(range(5)) == [(0, range(3, 5)), (1, range(3))]


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Mesh(()), "mesh shape"),
        (lambda: Mesh((2, 0)), "mesh shape"),
        (lambda: Cut(0, (0,)), "at least two points"),
        (lambda: Cut(0, (0, 3, 2)), "ascend from 0"),
        (lambda: Cut(0, (1, 3)), "ascend from 0"),
        (lambda: Cut(-1, (0, 3)), "must not be negative"),
        (lambda: Layout((-1,), Mesh((1,)), (Copies(),)), "must not be negative"),
        (lambda: Layout((3,), Mesh((1, 2)), (Copies(),)), "needs 2 entries"),
        (lambda: Layout((3,), Mesh((1,)), (Cut(1, (0, 3)),)), "axis 1 is cut"),
        (lambda: Layout((3,), Mesh((2,)), (Cut(0, (0, 3)),)), "need 3 cut points"),
        (lambda: Layout((3,), Mesh((1,)), (Cut(0, (0, 4)),)), "do not span"),
        (lambda: Layout((3,), Mesh((1, 1)), (Cut(0, (0, 3)), Cut(0, (0, 3)))), "at most one"),
        (lambda: Layout((3,), Mesh((2,)), (Pinned(2),)), "pinned to coordinate 2"),
        (lambda: Layout((3,), Mesh((2,)), ("cut",)), "Cut, Copies or Pinned"),
        (lambda: default_layout((3,), 0), "at least 1"),
        (lambda: default_layout((3,), 2, split=1), "out of bounds"),
        (lambda: default_layout((3,), 2, split=0, mesh=(2,)), "not both"),
        (lambda: default_layout((3,), 2, mesh=(3,)), "does not have 2 ranks"),
        (lambda: default_layout((3,), 2, mesh=(1, 2)), "more dimensions"),
        (lambda: replicated_layout((3,), 2).transpose((1,)), "no permutation"),
        (lambda: replicated_layout((3,), 2).locate(()), "does not fit"),
        (lambda: Cut(0, (0, 3)).owner(3), "not in an axis"),
        (lambda: Cut(0, (0, 3)).split(range(5)), "not in an axis"),
    ],
)
def test_wrong_arguments(build: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build()


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Mesh(0), "mesh shape must be a tuple of integers"),
        (lambda: Mesh((1.5,)), "mesh shape must be a tuple of integers"),
        (lambda: default_layout((3,), 2, split="a"), "split='a' must be an integer"),
        (lambda: default_layout((3,), 2, mesh=2), "mesh=2 a tuple of integers"),
    ],
)
def test_arguments_of_wrong_types(build: Callable[[], object], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        build()


def test_box_list() -> None:
    boxes = BoxList((4,), (((0, 2),), None, ((2, 4),)))
    assert boxes.size == 3 and boxes.box(0) == ((0, 2),) and boxes.box(1) is None and boxes.box(7) is None
    assert hash(boxes) == hash(pickle.loads(pickle.dumps(boxes)))


# -- default layouts -------------------------------------------------------------------------------------------------


def surface(shape: tuple[int, ...], parts: tuple[int, ...]) -> int:
    return sum((p - 1) * prod(n for b, n in enumerate(shape) if b != a) for a, p in enumerate(parts))


def check_default(shape: tuple[int, ...], nranks: int) -> None:
    layout = default_layout(shape, nranks)
    assert layout.shape == shape and layout.size == nranks
    for what in layout.dims:
        if isinstance(what, Cut):
            assert what.points == default_points(shape[what.axis], what.extent)
    parts = tuple(1 if (cut := layout.cut_of(axis)) is None else cut.extent for axis in range(len(shape)))
    divisors = [d for d in range(1, nranks + 1) if nranks % d == 0]
    fitting = [
        p
        for p in product(divisors, repeat=len(shape))
        if prod(p) == nranks and all(k == 1 or k <= n for k, n in zip(p, shape, strict=True))
    ]
    if shape and nranks == 1:
        assert layout.dims == (Cut(0, (0, shape[0])),)
    elif fitting and shape:
        assert parts == min(fitting, key=lambda p: (surface(shape, p), [-k for k in p]))
        assert len(layout.dims) == len(layout.cut_axes)
    else:
        assert prod(parts) < nranks or not shape
        assert all(k == 1 or k <= n for k, n in zip(parts, shape, strict=True))
    generous = default_layout(shape, nranks, allow_empty=True)
    assert not shape or all(isinstance(what, Cut) for what in generous.dims)
    assert not fitting or not shape or generous == layout


test_default, test_default_long = quick_and_long(
    check_default, 200, 3000, shape=shapes(max_ndim=3, largest=40), nranks=st.integers(1, 64)
)


def test_default_examples() -> None:
    assert default_layout((), 3) == replicated_layout((), 3)
    assert default_layout((10,), 1) == Layout((10,), Mesh((1,)), (Cut(0, (0, 10)),))
    assert default_layout((100, 100), 2).dims == (Cut(0, (0, 50, 100)),)
    assert default_layout((100, 100), 4).mesh.shape == (2, 2)
    assert default_layout((3, 100), 4).dims == (Cut(1, (0, 25, 50, 75, 100)),)
    assert default_layout((4, 5), 2, split=-1).dims == (Cut(1, (0, 3, 5)),)
    assert default_layout((4, 6, 7), 4, mesh=(2, 2)).dims == (Cut(0, (0, 2, 4)), Cut(1, (0, 3, 6)))
    assert default_layout((3,), 5, allow_empty=True).dims == (Cut(0, (0, 1, 2, 3, 3, 3)),)
    assert default_layout((1, 3), 4, allow_empty=True).dims == (Cut(1, (0, 1, 2, 3, 3)),)
    assert default_layout((0, 8, 8), 4).dims == (Cut(1, (0, 2, 4, 6, 8)),)
    assert default_layout((3,), 6).dims == (Cut(0, (0, 1, 2, 3)), Copies())
    assert default_layout((3,), 5).is_replicated
    assert default_layout((2,) * 12, 1024).mesh.shape == (2,) * 10
    assert full_box((2, 3)) == ((0, 2), (0, 3))


# -- ranks that are not alike ----------------------------------------------------------------------------------------

WEIGHTS = st.lists(st.sampled_from([0.25, 1.0, 1.5, 3.0, 100.0]), min_size=1, max_size=6)


@given(st.integers(0, 300), WEIGHTS)
def test_weighted_points_are_within_one_index_of_the_shares(n: int, weights: list[float]) -> None:
    points = weighted_points(n, weights)
    sizes = [b - a for a, b in pairwise(points)]
    assert points[0] == 0 and points[-1] == n and min(sizes) >= (n >= len(weights))
    if n * min(weights) >= 2 * sum(weights):  # nobody had to be given an index
        assert all(
            abs(size - n * weight / sum(weights)) <= 1 + 1e-9 for size, weight in zip(sizes, weights, strict=True)
        )


def test_weights_of_speeds_are_without_noise() -> None:
    assert speed_weights([100.0]) == speed_weights([]) == ()
    assert speed_weights([100.0, 93.0, 110.0, 98.0]) == ()
    assert speed_weights([205.0, 100.0, 108.0]) == (2.0, 1.0, 1.0)
    assert speed_weights([33.0, 1000.0, 30.0, 950.0]) == (1.0, 31.75, 1.0, 31.75)
    # A rank between two kinds does not make one kind of them.
    assert len(set(speed_weights([100.0, 78.0, 60.0]))) == 3


@given(st.lists(st.floats(1e-3, 1e9), min_size=1, max_size=9))
def test_weights_of_speeds_are_in_their_order(speeds: list[float]) -> None:
    found = speed_weights(speeds) or (1.0,) * len(speeds)
    assert len(found) == len(speeds) and min(found) == 1
    for (slow, less), (fast, more) in pairwise(sorted(zip(speeds, found, strict=True))):
        assert less <= more and (fast > 1.25 * slow) <= (less < more or fast == slow)


def test_layouts_follow_weights() -> None:
    assert default_layout((100, 10), 3, weights=(2, 1, 1)).dims == (Cut(0, (0, 50, 75, 100)),)
    assert default_layout((10, 100), 3, weights=(2, 1, 1)).dims == (Cut(1, (0, 50, 75, 100)),)
    assert default_layout((8, 90), 2, split=0, weights=(1, 3)).dims == (Cut(0, (0, 2, 8)),)
    # Two nodes of which one is twice as fast: rows of the mesh can follow it.
    two = default_layout((90, 90), 4, weights=(2, 2, 1, 1))
    assert two.mesh.shape == (2, 2) and two.dims == (Cut(0, (0, 60, 90)), Cut(1, (0, 45, 90)))
    # No cuts in two directions can follow these.
    assert default_layout((90, 90), 4, weights=(6, 1, 1, 1)).dims == (Cut(0, (0, 60, 70, 80, 90)),)
    # Two ranks hold the same: their weights count together.
    copied = default_layout((3, 1), 6, weights=(1, 1, 1, 1, 1, 2))
    assert copied.dims == (Cut(0, (0, 1, 2, 3)), Copies())
    assert default_layout((100,), 1, weights=(3, 4)) == default_layout((100,), 1)
    assert default_layout((7, 7), 3, weights=(5, 5, 5)) == default_layout((7, 7), 3)
    with pytest.raises(ValueError, match="2 weights for 3 ranks"):
        default_layout((100,), 3, weights=(1, 2))


def test_reweighted_layouts_keep_the_cut_axes() -> None:
    columns = default_layout((40, 9), 2, split=1)
    assert reweighted(columns, (1, 2)).dims == (Cut(1, (0, 3, 9)),)
    assert reweighted(reweighted(columns, (1, 2)), ()) == columns
    grid = default_layout((90, 90), 4)
    assert reweighted(grid, (2, 2, 1, 1)).dims == (Cut(0, (0, 60, 90)), Cut(1, (0, 45, 90)))
    assert reweighted(grid, (6, 1, 1, 1)).mesh.shape == (4,)


def crossing(layout: Layout, nodes: Sequence[int]) -> int:
    """How many elements have a neighbour of the next index, along any axis, on another node."""
    owner = np.empty(layout.shape, int)
    for rank in range(layout.size):
        box = layout.box(rank)
        assert box is not None
        owner[tuple(slice(*interval) for interval in box)] = nodes[rank]
    return sum(np.count_nonzero(np.diff(owner, axis=axis)) for axis in range(layout.ndim))


@pytest.mark.parametrize(("nodes", "each"), [(2, 4), (4, 2), (2, 3), (3, 2), (2, 8), (4, 4)])
def test_meshes_put_neighbours_on_one_node(nodes: int, each: int) -> None:
    places = [node for node in range(nodes) for _ in range(each)]
    shape = (240, 240)
    found = default_layout(shape, nodes * each, nodes=places)
    others = [default_layout(shape, nodes * each, mesh=(n, nodes * each // n)) for n in (1, 2, 3, 4, 6, 8)
              if nodes * each % n == 0]  # fmt: skip
    costs = {layout.mesh.shape: total_crossing(layout) + 3 * crossing(layout, places) for layout in others}
    assert total_crossing(found) + 3 * crossing(found, places) == min(costs.values())
    assert crossing(found, places) <= crossing(default_layout(shape, nodes * each), places)


def total_crossing(layout: Layout) -> int:
    """As `crossing`, on another rank."""
    return crossing(layout, range(layout.size))


def test_nodes_with_pairs_of_ranks_take_another_mesh() -> None:
    pairs = (0, 0, 1, 1, 2, 2, 3, 3)
    assert default_layout((240, 240), 8).mesh.shape == (4, 2)
    found = default_layout((240, 240), 8, nodes=pairs)
    assert found.mesh.shape == (2, 4) and crossing(found, pairs) == 480
    assert crossing(default_layout((240, 240), 8), pairs) == 720


def test_ranks_that_are_dealt_out_to_nodes_take_a_mesh_whose_columns_are_nodes() -> None:
    dealt = (0, 1) * 4
    found = default_layout((240, 240), 8, nodes=dealt)
    assert found.mesh.shape == (4, 2) and crossing(found, dealt) == 240
    three = default_layout((240, 240), 6, nodes=(0, 1, 2) * 2)
    assert three.mesh.shape == (2, 3) and crossing(three, (0, 1, 2) * 2) == 480
