"""Decoding views and their layouts, with NumPy as the oracle."""

from __future__ import annotations

from math import gcd, prod

import numpy as np
import pytest
from hypothesis import strategies as st

from numpy_dist.layout import (
    Cut,
    Layout,
    Mesh,
    ViewMap,
    decode,
    default_layout,
    image,
    iteration_layout,
    owned_boxes,
    storage_region,
    view_layout,
)

from .strategies import WORD, ViewCase, box_mask, quick_and_long, view_cases, words_of


def geometry_coordinates(case: ViewCase, extents: tuple[int, ...]) -> np.ndarray:
    """Coordinates of each element's first byte in a geometry: view shape + (axes,)."""
    first = words_of(case.view)[..., 0] * WORD
    return np.stack(np.unravel_index(first, extents), axis=-1)


def is_affine(coordinates: np.ndarray) -> bool:
    ndim = coordinates.ndim - 1
    origin = coordinates[(0,) * ndim]
    expected = np.broadcast_to(origin, coordinates.shape).copy()
    for axis, n in enumerate(coordinates.shape[:-1]):
        if n > 1:
            unit = coordinates[tuple(int(axis == a) for a in range(ndim))] - origin
            steps = np.arange(n).reshape([-1 if a == axis else 1 for a in range(ndim)])
            expected += steps[..., None] * unit
    return bool((expected == coordinates).all())


def check_decode(case: ViewCase) -> None:
    vmap = case.decode()
    view, storage = case.view, case.storage
    if not view.size:
        assert vmap is not None and vmap.shape == view.shape
        return
    if vmap is None:
        separate = (*storage.shape, storage.itemsize)
        starts = sorted({0, *case.layout.cut_axes})
        merged = tuple(prod(separate[a:b]) for a, b in zip(starts, [*starts[1:], len(separate)], strict=True))
        straddles = view.itemsize > storage.itemsize
        assert straddles or not is_affine(geometry_coordinates(case, separate))
        fits = geometry_coordinates(case, merged)[..., -1].max() + view.itemsize <= merged[-1]
        assert not (is_affine(geometry_coordinates(case, merged)) and fits)
        return
    assert prod(vmap.axes_shape) == storage.nbytes
    assert tuple(a for group in vmap.groups for a in group) == tuple(range(storage.ndim + 1))
    for group in vmap.groups if vmap.merged else ():
        assert not set(group[1:]) & set(case.layout.cut_axes)
    expected = geometry_coordinates(case, vmap.axes_shape)
    indices = np.array(list(np.ndindex(view.shape)), np.int64).reshape(view.size, view.ndim)
    steps = np.array(vmap.steps, np.int64).reshape(view.ndim, len(vmap.axes_shape))
    got = np.array(vmap.offset) + indices @ steps
    assert np.array_equal(got, expected.reshape(got.shape))
    for n, row in zip(vmap.shape, vmap.steps, strict=True):
        assert n > 1 or not any(row)
    probe = tuple(n // 2 for n in view.shape)
    assert vmap.coordinates(probe) == tuple(expected[probe].tolist())


def check_plain_views_decode_unmerged(case: ViewCase) -> None:
    vmap = case.decode()
    assert vmap is not None and not vmap.merged
    assert view_layout(case.layout, vmap) is not None
    assert owned_boxes(case.layout, vmap) is not None


def must_have_layout(case: ViewCase, several: bool) -> bool:
    """Whether each cut axis follows at most one view axis (and, unless `several`, no two of them the same one)."""
    vmap = case.decode()
    if vmap is None or case.view.itemsize > case.storage.itemsize:
        return False
    drivers = []
    for axis, group in enumerate(vmap.groups):
        if group[0] in case.layout.cut_axes:
            driving = [v for v, row in enumerate(vmap.steps) if row[axis]]
            if len(driving) > 1:
                return False
            drivers += driving
    return several or len(set(drivers)) == len(drivers)


def check_view_layout(case: ViewCase) -> None:
    vmap = case.decode()
    if vmap is None:
        return
    result = view_layout(case.layout, vmap)
    if result is None:
        assert not must_have_layout(case, several=False)
        return
    assert result.shape == case.view.shape and result.mesh == case.layout.mesh
    for rank in range(result.size):
        held = case.held(case.layout.box(rank))
        assert np.array_equal(held.any(-1), held.all(-1))
        assert np.array_equal(box_mask(case.view.shape, result.box(rank)), held.all(-1))
    for axis, n in enumerate(case.view.shape):
        if n > 1 and not case.view.strides[axis]:
            assert result.cut_of(axis) is None


def check_owned_boxes(case: ViewCase) -> None:
    vmap = case.decode()
    if vmap is None:
        return
    result = owned_boxes(case.layout, vmap)
    if result is None:
        assert not must_have_layout(case, several=True)
        return
    assert result.shape == case.view.shape and result.size == case.layout.size
    total = np.zeros(case.view.shape, int)
    for rank in range(result.size):
        box = case.layout.box(rank) if case.layout.primary(rank) else None
        mask = box_mask(case.view.shape, result.box(rank))
        assert np.array_equal(mask, case.held(box).all(-1))
        total += mask
    assert (total == 1).all()


def check_iteration_layout(case: ViewCase) -> None:
    vmap = case.decode()
    if vmap is None:
        return
    result, exact = iteration_layout(case.layout, vmap), view_layout(case.layout, vmap)
    if exact is not None:
        assert result == exact
        return
    if result is None:
        drives = [
            {v for v, row in enumerate(vmap.steps) if row[axis]}
            for axis, group in enumerate(vmap.groups)
            if group[0] in case.layout.cut_axes
        ]
        straddles = case.view.itemsize > case.storage.itemsize
        assert straddles or any(a & b for i, a in enumerate(drives) for b in drives[:i])
        return
    assert result.shape == case.view.shape
    count = sum(box_mask(result.shape, result.box(r)).astype(int) for r in range(result.size) if result.primary(r))
    assert (count == 1).all()


def check_images(case: ViewCase, data: st.DataObject) -> None:
    vmap = case.decode()
    if vmap is None:
        return
    ends = [sorted(data.draw(st.lists(st.integers(0, n), min_size=2, max_size=2))) for n in case.view.shape]
    check_image(case, vmap, tuple((a, b) for a, b in ends))
    check_image(case, vmap, tuple((0, n) for n in case.view.shape))


def check_image(case: ViewCase, vmap: ViewMap, box: tuple[tuple[int, int], ...]) -> None:
    slices = tuple(slice(a, b) for a, b in box)
    got, region = image(vmap, box), storage_region(vmap, box)
    assert len(region) == case.storage.ndim
    part = case.view[slices]
    if not part.size:
        assert not all(got)
        return
    exact = geometry_coordinates(ViewCase(case.layout, case.storage, part, False), vmap.axes_shape)
    exact = exact.reshape(-1, len(vmap.axes_shape))
    for axis, r in enumerate(got):
        values = np.unique(exact[:, axis]).tolist()
        # The smallest range that contains the values: both ends are needed, and their greatest step.
        step = gcd(*[b - values[0] for b in values]) or 1
        assert r == range(values[0], values[-1] + 1, step)
    cells = ViewCase(case.layout, case.storage, part, False).cells()
    for axis, r in enumerate(region):
        assert set(np.unique(cells[..., axis]).tolist()) <= set(r) <= set(range(case.storage.shape[axis]))
        assert r.step >= 1
        if not vmap.merged:
            assert r == got[axis]
        else:
            assert r[0] == cells[..., axis].min() or len(r) == case.storage.shape[axis]


test_decode, test_decode_long = quick_and_long(check_decode, 600, case=view_cases())
test_plain, test_plain_long = quick_and_long(check_plain_views_decode_unmerged, case=view_cases(plain=True))
test_view_layout, test_view_layout_long = quick_and_long(check_view_layout, 600, case=view_cases())
test_owned_boxes, test_owned_boxes_long = quick_and_long(check_owned_boxes, 500, case=view_cases())
test_iteration_layout, test_iteration_layout_long = quick_and_long(check_iteration_layout, case=view_cases())
test_images, test_images_long = quick_and_long(check_images, case=view_cases(), data=st.data())


def test_a_map_that_merges_a_cut_axis_is_refused() -> None:
    vmap = decode((4, 6), 8, (), 0, (24,), (8,), 8)
    assert vmap is not None and vmap.merged
    with pytest.raises(ValueError, match="axis 1 were whole"):
        view_layout(default_layout((4, 6), 2), vmap)
    assert decode((4, 6), 8, (1,), 0, (24,), (8,), 8) is None


def test_reshapes_of_a_matrix_with_cut_rows() -> None:
    layout = default_layout((4, 6), 2, split=0)
    flat = decode((4, 6), 8, (0,), 0, (24,), (8,), 8)
    assert flat is not None and view_layout(layout, flat) == default_layout((24,), 2)
    rows = decode((24,), 8, (0,), 0, (4, 6), (48, 8), 8)
    assert rows is not None and view_layout(default_layout((24,), 2), rows) == layout
    # 5 rows of 6 do not end where 2 equal parts do: some row has two owners.
    rows = decode((30,), 8, (0,), 0, (5, 6), (48, 8), 8)
    assert rows is not None and view_layout(default_layout((30,), 2), rows) is None
    assert iteration_layout(default_layout((30,), 2), rows) == default_layout((5, 6), 2, split=0)


def test_elements_wider_than_the_storage() -> None:
    # Four float32 seen as two complex64: a cut after the first float32 would divide an element.
    layout = Layout((4,), Mesh((2,)), (Cut(0, (0, 2, 4)),))
    pairs = decode((4,), 4, (0,), 0, (2,), (8,), 8)
    assert pairs is not None and view_layout(layout, pairs) == Layout((2,), Mesh((2,)), (Cut(0, (0, 1, 2)),))
    assert storage_region(pairs, ((1, 2),)) == (range(2, 4),)
    assert view_layout(Layout((4,), Mesh((2,)), (Cut(0, (0, 1, 4)),)), pairs) is None
