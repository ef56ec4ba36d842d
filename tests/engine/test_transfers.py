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
from numpy_dist.layout.alignment import Access, plan_access
from numpy_dist.settings import config

from .metadata import N, ref, rows, storage


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


# -- what ranks want, worked out where it is asked for -----------------------------------------------------------------


def _access(shift: int, layout: Layout | None = None) -> Access:
    """How ranks read an array from some cells on, where the others are computed."""
    x = storage(layout)
    space = ref(x, np.s_[: N - 4]).view.write_space
    return plan_access(x.layout, ref(x, np.s_[shift : N - 4 + shift]).vmap, space)


def test_what_ranks_want_is_a_sequence():
    wanted = transfers.Ghosts(rows(), (_access(2),))
    assert len(wanted) == 2 and list(wanted) == [((range(10, 12),),), ()]
    assert wanted[0:2] == tuple(wanted) and wanted[1:] == ((),) and wanted[-1] == ()
    with pytest.raises(IndexError):
        wanted[2]


def test_wishes_made_of_the_same_are_equal():
    layout, one, two = rows(), (_access(1),), (_access(2),)
    ghosts, again, others = transfers.Ghosts(layout, one), transfers.Ghosts(layout, one), transfers.Ghosts(layout, two)
    assert ghosts == ghosts and ghosts == again and hash(ghosts) == hash(again)
    assert ghosts != others and ghosts != tuple(ghosts)
    assert transfers.FetchedRegions(one[0]) != ghosts != transfers.Ghosts(rows(at=9), one)


def test_ghosts_contain_those_of_fewer_accesses_to_the_same_layout():
    layout, one, two = rows(), _access(1), _access(2)
    both = transfers.Ghosts(layout, (one, two))
    assert both.contain(transfers.Ghosts(layout, (two,))) and both.contain(transfers.Ghosts(layout, (two, one)))
    assert not transfers.Ghosts(layout, (two,)).contain(both)
    assert not both.contain(transfers.Ghosts(rows(at=9), (one,)))
    assert not both.contain(tuple(both)) and not both.contain(transfers.FetchedRegions(one))


def test_ghosts_that_contain_others_are_not_looked_at(monkeypatch: pytest.MonkeyPatch):
    one, two = _access(1), _access(2)
    had, wanted = transfers.Ghosts(rows(), (one, two)), transfers.Ghosts(rows(), (one,))
    monkeypatch.setattr(transfers.PerRank, "__getitem__", lambda self, rank: pytest.fail("a rank was looked at"))
    assert transfers.covers(had, wanted)
    assert transfers.covers(transfers.Ghosts(rows(), (one, two)), transfers.Ghosts(rows(), (one, two)))


def test_a_rank_without_work_wants_nothing():
    layout = rows(at=0)  # all belongs to the second rank
    assert transfers.Ghosts(layout, (_access(1, layout),))[0] == ()
    assert transfers.FetchedRegions(_access(1, layout))[0] == ()
    assert transfers.FetchedRegions(_access(2))[0] == ((range(2, 12),),)


@pytest.mark.parametrize(
    ("had", "wanted", "covered"),
    [
        ([range(3, 5)], [range(3, 5)], True),  # the same
        ([range(3, 5)], [range(2, 5)], False),  # one more below
        ([range(3, 5)], [range(3, 6)], False),  # and above
        ([range(3, 5), range(5, 7)], [range(4, 6)], False),  # in neither of two
        ([range(0, 1), range(3, 5)], [range(3, 4)], True),  # in one of two
        ([range(3, 5)], [range(3, 5), range(7, 8)], False),  # only one of those that are wanted
        ([range(3, 5)], [], True),
        ([], [range(3, 5)], False),
    ],
)
def test_regions_cover_others_that_lie_within_one_of_them(had: list[range], wanted: list[range], covered: bool):
    one, two = (tuple((r,) for r in had),), (tuple((r,) for r in wanted),)
    assert transfers.covers(one, two) is covered


@pytest.mark.parametrize("axis", [0, 1])
def test_regions_are_covered_along_each_axis(axis: int):
    had, wanted = [range(3, 5), range(3, 5)], [range(3, 5), range(3, 5)]
    wanted[axis] = range(3, 6)
    assert not transfers.covers(((tuple(had),),), ((tuple(wanted),),))


def test_every_rank_must_be_covered():
    one, two = ((range(3, 5),),), ((range(3, 6),),)
    assert not transfers.covers((two, one), (two, two)) and transfers.covers((two, two), (one, two))


OWN = ((10, 20),)


@pytest.mark.parametrize(
    ("low", "extent", "margin"),
    [
        (10, 10, ((1, 2),)),  # no margins so far
        (9, 13, None),  # just what is needed
        (8, 14, None),  # more than that
        (10, 12, ((1, 2),)),  # too little below
        (9, 12, ((1, 2),)),  # too little above
        (5, 15, ((5, 2),)),  # what there is below stays
        (10, 15, ((1, 5),)),  # and above
    ],
)
def test_margins_are_widened_where_hulls_reach_out_of_them(low: int, extent: int, margin: Any):
    assert transfers.wider_margin(OWN, [((9, 22),)], (low,), (extent,), True) == margin


def test_margins_are_widened_along_one_axis_alone():
    own, hulls = ((10, 20), (0, 8)), [((9, 20), (0, 9))]
    assert transfers.wider_margin(own, hulls, (9, 0), (11, 8), True) == ((1, 0), (0, 1))
    assert transfers.wider_margin(own, hulls, (10, 0), (10, 9), True) == ((1, 0), (0, 1))
    assert transfers.wider_margin(own, hulls, (9, 0), (11, 9), True) is None


def test_new_memory_has_the_margins_that_are_needed():
    """Whatever low and extent say of an allocation that is gone."""
    assert transfers.wider_margin(OWN, [((9, 22),)], (5,), (25,), False) == ((1, 2),)
    assert transfers.wider_margin(OWN, [((12, 15),)], (5,), (25,), False) == ((0, 0),)


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
