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
