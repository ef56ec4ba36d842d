"""Frames of views, and the cells of an iteration space."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from numpy_dist.layout.frames import Frame, cells, count_cells, frame_of, framed, shifted
from numpy_dist.layout.layout import Cut, Layout
from numpy_dist.layout.mesh import Mesh
from numpy_dist.layout.regions import Box, box_size
from numpy_dist.layout.views import ViewMap, decode


def _map(array: np.ndarray, key: object) -> ViewMap:
    view = array[key]
    offset = view.__array_interface__["data"][0] - array.__array_interface__["data"][0]
    found = decode(array.shape, array.itemsize, (0,), offset, view.shape, view.strides, view.itemsize)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("key", "origin"),
    [
        (np.s_[1:], (1, 0)),
        (np.s_[:-1, 2:], (0, 2)),
        (np.s_[:, :], (0, 0)),
        (np.s_[::2], None),
        (np.s_[::-1], None),
        (np.s_[1], None),
        (np.s_[1:2], None),  # its map does not say which way rows would go on
        (np.s_[:, None], None),
        (np.s_[3:3], None),
    ],
)
def test_frames_are_those_of_boxes(key, origin):
    array = np.empty((5, 6))
    layout = Layout(array.shape, Mesh((1,)), (Cut(0, (0, 5)),))
    found = frame_of(layout, _map(array, key))
    assert found == (None if origin is None else Frame(layout, origin))


@pytest.mark.parametrize("name", ["first", "second"])
def test_parts_of_elements_have_no_frames(name):
    array = np.empty((5, 6), [("first", "i4"), ("second", "i4")])
    layout = Layout(array.shape, Mesh((1,)), (Cut(0, (0, 5)),))
    assert frame_of(layout, _map(array, np.s_[1:])) == Frame(layout, (1, 0))
    assert frame_of(layout, _map(array, name)) is None


def test_a_framed_map_leads_to_the_same_cells():
    array = np.empty((5, 6))
    vmap = _map(array, np.s_[:-1, 1:])
    moved = framed(vmap, (1, 2))
    for i, j in np.ndindex(*vmap.shape):
        assert moved.coordinates((i + 1, j + 2)) == vmap.coordinates((i, j))
    assert framed(vmap, ()) is vmap


def _boxes(shape: tuple[int, ...]) -> st.SearchStrategy[Box | None]:
    side = [st.tuples(st.integers(0, n), st.integers(0, n)).filter(lambda s: s[0] < s[1]) for n in shape]
    return st.one_of(st.none(), st.tuples(*side))


@given(st.data(), st.lists(st.integers(1, 6), min_size=1, max_size=3).map(tuple))
def test_each_box_is_the_union_of_its_cells(data, shape):
    boxes = data.draw(st.lists(_boxes(shape), min_size=1, max_size=4))
    whole = tuple((0, n) for n in shape)
    made = cells(whole, boxes)
    covered = np.zeros((len(boxes), *shape), int)
    for box, inside in made:
        for number in inside:
            covered[(number, *(slice(*side) for side in box))] += 1
        assert box_size(box) > 0 and inside == tuple(sorted(inside))
    for number, box in enumerate(boxes):
        expected = np.zeros(shape, int)
        if box is not None:
            expected[tuple(slice(*side) for side in box)] = 1
        assert np.array_equal(covered[number], expected)
    some = [box for box in boxes if box is not None]
    assert len(made) <= count_cells([whole, *some])


def test_a_shifted_box():
    assert shifted(((0, 3), (1, 2)), (1, 4)) == ((1, 4), (5, 6))
    assert shifted(((0, 3),), ()) == ((0, 3),)
