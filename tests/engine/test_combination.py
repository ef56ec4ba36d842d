"""Partial results of reductions: who sends what, on metadata, and in which form they travel."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from numpy_dist import engine
from numpy_dist.comm.simulated import run_simulated
from numpy_dist.engine.executing.combine import SMALL, _gather_all
from numpy_dist.engine.explaining.forecast import _collective_bytes, partial_messages
from numpy_dist.engine.planning.actions import Combine
from numpy_dist.engine.planning.combination import combination, partial_boxes
from numpy_dist.layout.layout import BoxList, Copies, Layout
from numpy_dist.layout.mesh import Mesh

from .metadata import reduction, ref, rows, storage


def test_bytes_of_partial_results_are_those_of_their_boxes() -> None:
    boxes = (((0, 5), (0, 3)),) * 3
    rows = [((0, 2), (0, 3)), ((2, 4), (0, 3)), ((4, 5), (0, 3))]
    for me, (first, second) in enumerate([(1, 2), (0, 2), (0, 1)]):
        sends = tuple((rank, rows[rank]) for rank in (first, second))
        receives = tuple((rank, rows[me]) for rank in range(3))  # of itself, too, without a message
        action = Combine(0, 0, np.dtype("c8"), boxes, False, sends, receives)
        own = [48, 48, 24]
        assert partial_messages(action, me) == (
            [(first, own[first]), (second, own[second])],
            [(first, own[me]), (second, own[me])],
        )


class _Comm:
    """Two ranks with the same partial results."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def allgather(self, value: Any) -> list[Any]:
        self.calls.append("objects")
        return [value, value]

    def allgather_array(self, array: np.ndarray) -> list[np.ndarray]:
        self.calls.append("arrays")
        return [array, array]


@pytest.mark.parametrize("more", [-1, 0, 1])
@pytest.mark.parametrize("contributes", [True, False])
def test_large_partial_results_travel_as_arrays(more: int, contributes: bool) -> None:
    """Small ones travel with the floating-point events that the ranks have met; how large is known to all ranks."""
    dtype = np.dtype("f8")
    count = SMALL // dtype.itemsize + more
    boxes = (((0, count),) if contributes else None, ((0, count),))
    partial = np.arange(float(count)) if contributes else None
    told: list[Any] = []
    events = SimpleNamespace(met=["an event"], share=told.extend)
    comm = _Comm()
    pieces = _gather_all(SimpleNamespace(comm=comm, events=events), partial, boxes, dtype)
    assert comm.calls == ["arrays" if more > 0 else "objects"]
    assert told == ([] if more > 0 else [("an event",)] * 2)
    assert [box for box, _ in pieces] == [box for box in boxes if box is not None]
    if partial is not None:
        assert all(np.array_equal(part, partial) for _, part in pieces)


@pytest.mark.parametrize("more", [0, 1])
@pytest.mark.parametrize("dtype", ["f8", "i2"])
def test_bytes_of_collectives_are_known_beforehand(more: int, dtype: str) -> None:
    """Also those of ranks that contribute little, or nothing."""

    def on_rank() -> tuple[int, int]:
        kind = np.dtype(dtype)
        box = ((0, SMALL // kind.itemsize + more),)
        runtime, boxes = engine.runtime(), (box, None, ((5, 21),))
        own = boxes[runtime.rank]
        partial = None if own is None else np.zeros(own[0][1] - own[0][0], kind)
        before = runtime.comm.counters.bytes
        _gather_all(runtime, partial, boxes, kind)
        return runtime.comm.counters.bytes - before, _collective_bytes(boxes, runtime.rank, kind)

    for sent, forecast in run_simulated(3, on_rank):
        assert sent == forecast


# -- who sends what, on metadata ---------------------------------------------------------------------------------------


def _replicated(*shape: int) -> Layout:
    return Layout(shape, Mesh((2,)), (Copies(),))


def _over(source: Layout, result: Layout, axes: tuple[int, ...], rank: int = 0) -> Combine:
    """How a reduction over a part of the axes comes together."""
    statement = reduction(ref(storage(result)), ref(storage(source)), axes)
    return combination(statement, 3, 5, rank)


def test_results_that_every_rank_has_are_combined_in_one_collective() -> None:
    box = ((0, 4),)
    for rank in range(2):
        found = _over(rows(20, 4), _replicated(4), (0,), rank)
        assert found == Combine(3, 5, np.dtype("f8"), (box, box), True, (), ())


def test_one_rank_combines_with_nobody() -> None:
    alone = [Layout(shape, Mesh((1,)), (Copies(),)) for shape in ((20, 4), (4,))]
    found = _over(alone[0], alone[1], (0,))
    assert not found.everywhere and (found.sends, found.receives) == ((), ((0, ((0, 4),)),))


def test_partial_results_go_to_the_owners_of_the_result() -> None:
    zero, one = _over(rows(20, 4), rows(4, at=3), (0,), 0), _over(rows(20, 4), rows(4, at=3), (0,), 1)
    assert zero.sends == ((1, ((3, 4),)),) and zero.receives == ((0, ((0, 3),)), (1, ((0, 3),)))
    assert one.sends == ((0, ((0, 3),)),) and one.receives == ((0, ((3, 4),)), (1, ((3, 4),)))
    assert not zero.everywhere


def test_partial_results_that_are_the_results_are_not_sent() -> None:
    for rank, box in enumerate([((0, 10),), ((10, 20),)]):
        found = _over(rows(20, 4), rows(20), (1,), rank)
        assert (found.sends, found.receives) == ((), ((rank, box),))


def test_ranks_without_elements_contribute_nothing() -> None:
    zero, one = _over(rows(20, 4, at=0), rows(4), (0,), 0), _over(rows(20, 4, at=0), rows(4), (0,), 1)
    assert zero.boxes == (None, ((0, 4),))
    assert (zero.sends, zero.receives) == ((), ((1, ((0, 2),)),))
    assert (one.sends, one.receives) == (((0, ((0, 2),)),), ((1, ((2, 4),)),))


def test_elements_that_several_ranks_have_count_once() -> None:
    assert _over(_replicated(20, 4), rows(4), (0,)).boxes == (((0, 4),), None)


def test_spaces_that_are_no_layouts_have_no_copies() -> None:
    boxes = BoxList((20, 4), (((0, 8), (0, 4)), None))
    assert partial_boxes(boxes, (0,), False, 2, None) == (((0, 4),), None)


def test_axes_that_are_kept_have_one_index() -> None:
    space = rows(20, 4)
    assert partial_boxes(space, (0,), True, 2, None) == (((0, 1), (0, 4)),) * 2
    assert partial_boxes(space, (1,), True, 2, None) == (((0, 10), (0, 1)), ((10, 20), (0, 1)))
    assert partial_boxes(space, (1,), False, 2, None) == (((0, 10),), ((10, 20),))


def test_partial_results_lie_as_the_result_does() -> None:
    space = rows(20, 4, 3)
    assert partial_boxes(space, (2,), False, 2, (1, 0)) == (((0, 4), (0, 10)), ((0, 4), (10, 20)))
