"""How the ranks of a notebook go on after a cell: as before, together, or with a new communicator."""

from __future__ import annotations

from dataclasses import replace

import pytest

pytest.importorskip("mpi4py.MPI", reason="there is no MPI library")

from numpy_dist.notebook.settling import AS_BEFORE, RENEWED, TOGETHER, CellOutcome, announced_by, decide

FINE = CellOutcome("", "", False, (), (False, 5, {}, {}, True), ((12, 0), 99))
FAILED = replace(FINE, name="ValueError", text="wrong")


def test_nothing_is_compared_where_nothing_failed() -> None:
    assert decide({0: FINE, 1: replace(FINE, program=((13, 0), 1))}) == AS_BEFORE


@pytest.mark.parametrize("other", [FINE, FAILED], ids=["one rank", "all ranks"])
def test_ranks_that_have_come_equally_far_go_on_together(other: CellOutcome) -> None:
    assert decide({0: other, 1: FAILED}) == TOGETHER


@pytest.mark.parametrize(
    "change",
    [
        {"progress": (False, 6, {}, {}, True)},  # another collective
        {"progress": (False, 5, {(0, 3): 1}, {}, True)},  # a message that nobody receives
        {"progress": (False, 5, {}, {}, False)},  # something is not complete
        {"program": ((13, 0), 99)},  # another statement
        {"program": ((12, 0), 98)},  # the same number of others
    ],
)
def test_ranks_that_have_parted(change: dict[str, tuple[object, ...]]) -> None:
    assert decide({0: FINE, 1: replace(FAILED, **change)}) == RENEWED


def test_a_loop_that_may_have_written_something() -> None:
    half = replace(FAILED, program=(None, 99))
    assert decide({0: half, 1: half}) == RENEWED


def test_a_failure_that_was_caught_and_announced() -> None:
    told = replace(FINE, progress=(True, *FINE.progress[1:]))
    assert announced_by({0: FINE, 1: told}) == {1}
    assert decide({0: FINE, 1: told}) == TOGETHER
