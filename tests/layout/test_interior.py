"""The interior of a loop reads nothing that others own, and with what is left around it it is the whole loop."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from numpy_dist.layout.interior import interior_box, narrowed
from numpy_dist.layout.regions import Box, box_size, subtract_box
from numpy_dist.layout.views import decode, storage_region

SHAPE = (14, 11)
_slices = st.builds(slice, st.integers(0, 4), st.integers(8, 11), st.sampled_from([1, 2, 3, -1, -2])).map(
    lambda s: s if s.step > 0 else slice(s.stop, s.start or None, s.step)
)


@st.composite
def cases(draw: st.DrawFn) -> tuple[Box, list]:
    """A rank's box of a storage, its box of the space, and some views of one shape, perhaps transposed."""
    storage = np.empty(SHAPE)
    own = tuple(tuple(sorted(draw(st.lists(st.integers(0, n), min_size=2, max_size=2, unique=True)))) for n in SHAPE)
    views = []
    for _ in range(draw(st.integers(1, 3))):
        view = storage[draw(_slices), draw(_slices)]
        views.append(view.T if draw(st.booleans()) else view)
    least = [min(view.shape[axis] for view in views) for axis in range(2)]
    views = [view[: least[0], : least[1]] for view in views]
    box = tuple(tuple(sorted(draw(st.lists(st.integers(0, n), min_size=2, max_size=2, unique=True)))) for n in least)
    reads = []
    for view in views:
        offset = view.__array_interface__["data"][0] - storage.__array_interface__["data"][0]
        vmap = decode(SHAPE, 8, (0, 1), offset, view.shape, view.strides, 8)
        assert vmap is not None
        reads.append((own, vmap))
    return box, reads


@settings(max_examples=300, deadline=None)
@given(cases())
def test_interior_and_edges(case: tuple[Box, list]) -> None:
    box, reads = case
    interior = interior_box(box, reads)

    def inside(part: Box) -> bool:
        return all(
            lo <= r[0] and r[-1] < hi
            for own, vmap in reads
            for (lo, hi), r in zip(own, storage_region(vmap, part), strict=True)
        )

    cells = [((i, i + 1), (j, j + 1)) for i in range(*box[0]) for j in range(*box[1])]
    if interior is None:  # each view is monotonous along both axes: what can be told is found
        assert not any(map(inside, cells))
        return
    assert inside(interior)
    seen = np.zeros([hi for _, hi in box], int)
    for part in (interior, *subtract_box(box, interior)):
        assert box_size(part) > 0
        seen[tuple(slice(lo, hi) for lo, hi in part)] += 1
    assert (seen[tuple(slice(lo, hi) for lo, hi in box)] == 1).all() and seen.sum() == box_size(box)
    within = {(cell[0][0], cell[1][0]) for cell in cells if inside(cell)}
    assert within == {(i, j) for i in range(*interior[0]) for j in range(*interior[1])}


def test_the_interior_of_a_loop_is_narrowed_where_a_statement_needs_it() -> None:
    box, own = ((4, 8), (0, 9)), ((5, 8), (0, 9))
    assert narrowed(box, own, own) == box
    assert narrowed(box, own, ((6, 8), (0, 8))) == ((6, 8), (0, 8))
    assert narrowed(box, own, ((5, 7), (0, 9))) == ((4, 7), (0, 9))
    assert narrowed(((4, 6), (0, 9)), own, ((7, 8), (0, 9))) is None
