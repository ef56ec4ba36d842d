"""Runs of boxes: elements that lie side by side in the whole array."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from numpy_dist.layout.runs import run_length, runs


@st.composite
def boxes(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[tuple[int, int], ...]]:
    shape = tuple(draw(st.lists(st.integers(1, 5), max_size=4)))
    box = []
    for n in shape:
        lo = draw(st.integers(0, n - 1))
        box.append((lo, draw(st.integers(lo + 1, n))))
    return shape, tuple(box)


@given(boxes())
def test_runs_are_the_elements_of_the_box(drawn: tuple[tuple[int, ...], tuple[tuple[int, int], ...]]) -> None:
    shape, box = drawn
    places = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    wanted = places[tuple(slice(lo, hi) for lo, hi in box)].ravel().tolist()
    length, starts = run_length(shape, box), list(runs(shape, box))
    assert [start + i for start in starts for i in range(length)] == wanted


def test_a_box_of_whole_rows_is_one_run() -> None:
    assert run_length((6, 4, 5), ((2, 4), (0, 4), (0, 5))) == 40
    assert list(runs((6, 4, 5), ((2, 4), (0, 4), (0, 5)))) == [40]
    assert run_length((), ()) == 1 and list(runs((), ())) == [0]
