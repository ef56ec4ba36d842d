"""What a step costs does not depend on the number of ranks."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

import numpy_dist
from numpy_dist import engine
from numpy_dist.engine.planning import transfers
from numpy_dist.layout import Layout, default_layout, plan_fetch
from numpy_dist.settings import config


class Counted(tuple):
    """A tuple that counts how often it is hashed and compared."""

    hashed = compared = 0

    def __hash__(self) -> int:
        self.hashed += 1
        return super().__hash__()

    def __eq__(self, other: object) -> bool:
        self.compared += 1
        return super().__eq__(other)


def halo(ranks: int) -> tuple[Layout, Counted]:
    """Each rank wants the last element of the one before."""
    layout = default_layout((10 * ranks,), ranks)
    starts = [10 * rank for rank in range(ranks)]
    return layout, Counted(((range(start - 1, start),),) if start else () for start in starts)


def test_a_plan_is_found_without_hashing_what_all_ranks_want():
    layout, wanted = halo(8)
    first = transfers.cached_plan(layout, wanted, 3)
    hashed = wanted.hashed
    for _ in range(5):
        assert transfers.cached_plan(layout, wanted, 3) is first
    assert wanted.hashed == hashed
    assert first == plan_fetch(layout, wanted, 3) and first.receives


def test_plans_of_equal_wishes_are_equal_and_of_others_are_not():
    layout, wanted = halo(8)
    one, two = tuple(wanted), tuple(list(wanted))
    other = (*one[:3], (), *one[4:])
    assert transfers.cached_plan(layout, one, 3) == transfers.cached_plan(layout, two, 3)
    assert transfers.cached_plan(layout, other, 3) != transfers.cached_plan(layout, one, 3)
    assert transfers.cached_plan(layout, one, 4) != transfers.cached_plan(layout, one, 3)


def test_short_lived_wishes_are_not_mistaken_for_each_other():
    """An address is used again as soon as its object is gone."""
    layout = default_layout((80,), 8)
    for turn in range(3 * transfers._MOST_KNOWN):
        k = turn % 70
        wanted = tuple(((range(k, k + 3),),) if rank == 3 else () for rank in range(8))
        assert transfers.cached_plan(layout, wanted, 3) == plan_fetch(layout, wanted, 3)
        part = tuple(((range(k, k + 2 + turn % 3),),) if rank == 3 else () for rank in range(8))
        assert transfers.covers(wanted, part) == (turn % 3 < 2)
    assert max(len(transfers._known_plans), len(transfers._known_covers)) <= transfers._MOST_KNOWN


def test_what_covers_is_worked_out_once():
    had, wanted = Counted([((range(9),),)]), Counted([((range(3, 5),),)])
    assert transfers.covers(had, had) and not had.compared
    assert transfers.covers(had, wanted)
    compared = had.compared, wanted.compared
    assert transfers.covers(had, wanted) and (had.compared, wanted.compared) == compared
    assert not transfers.covers(wanted, had)


def _calls(ranks: int) -> int:
    """Python's functions that a step of a stencil calls on an inner rank, when everything has been planned."""
    found = []

    def program(grid: Any) -> None:
        def step() -> None:
            grid[1:-1, 1:-1] = (grid[:-2, 1:-1] + grid[2:, 1:-1] + grid[1:-1, :-2] + grid[1:-1, 2:]) / 4
            engine.flush()

        for _ in range(4):
            step()

        def note(frame: Any, event: str, argument: Any) -> None:
            nonlocal count
            count += event == "call"

        for _ in range(5):
            count = 0
            sys.setprofile(note)
            try:
                step()
            finally:
                sys.setprofile(None)
            found.append(count)

    side = round(ranks**0.5)
    with config(MIN_SHARD_BYTES=1):
        inner = (side // 2) * side + side // 2
        numpy_dist.count_program(program, np.broadcast_to(0.0, (20 * side, 20 * side)), ranks=ranks, only=[inner])
    return min(found)  # the collector of garbage has callbacks


@pytest.mark.parametrize("many", [256, 1024])
def test_a_step_does_the_same_at_any_number_of_ranks(many):
    assert _calls(many) == _calls(25)
