"""Real ranks that wait for each other are found while they wait, whatever the settings."""

from __future__ import annotations

import pickle
import textwrap
from collections import defaultdict, deque
from pathlib import Path
from typing import Any

import pytest

from numpy_dist.comm.divergence.journal import packed
from numpy_dist.comm.supervision import deadlock
from numpy_dist.comm.supervision.deadlock import Deadlocks, Need, Wanted
from tests.failures.jobs import HEADER, SECONDS, JobEnd, run

PREAMBLE = """
import os, sys, time
import numpy as np
import numpy_dist
from numpy_dist import engine
from numpy_dist.comm.detect import get_communicator
comm = get_communicator()
rank, size = comm.rank, comm.size
x = numpy_dist.asarray(np.arange(200_000.0))
"""
ONE_OVERRIDE = """
def register(number):
    if rank == number:
        @numpy_dist.implements(np.cumsum)
        def mine(a, axis=None, dtype=None, out=None):
            return numpy_dist.ones(a.shape)
"""


def failed(script: str, folder: Path, ranks: int, **environment: str) -> JobEnd:
    """A job that must end by an error of all ranks, of which one is printed."""
    lines = "".join(f"os.environ[{name!r}] = {value!r}\n" for name, value in environment.items())
    job = run("mpiexec", "import os\n" + lines + PREAMBLE + textwrap.dedent(script), folder, ranks)
    assert job.code != 0 and job.seconds < SECONDS, job
    assert job.errors.count(HEADER) == 1, job.errors
    return job


@pytest.mark.slow
@pytest.mark.parametrize(("ranks", "other"), [(2, 1), (3, 1), (3, 2)])
def test_an_override_of_one_rank_where_the_others_begin_with_messages(ranks: int, other: int, tmp_path: Path) -> None:
    job = failed(ONE_OVERRIDE + f"register({other})\nnp.cumsum(x[::-1] + x).local", tmp_path, ranks)
    without = ", ".join(str(rank) for rank in range(ranks) if rank != other)
    sides = [f"rank {without}: not set", f"rank {other}: __main__.register"]
    if "rank 2 has ended" in job.errors:  # its part of the work needed nothing of the others
        sides = ["rank 2: not set", "rank 1: __main__.register"]
    assert "override of numpy.cumsum: " in job.errors, job.errors
    assert all(side in job.errors for side in sides), job.errors


@pytest.mark.slow
@pytest.mark.parametrize("use", ["np.cumsum(x[::-1] + x).local", "float(x.sum())", "comm.bcast(1)"])
def test_an_override_that_one_rank_registers_later(use: str, tmp_path: Path) -> None:
    job = failed(ONE_OVERRIDE + f"comm.barrier()\nregister(1)\n{use}\nfloat(x.sum())", tmp_path, 2)
    assert "override of numpy.cumsum: rank 0: not set; rank 1: __main__.register" in job.errors, job.errors


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [2, 3])
def test_messages_on_one_rank_and_a_collective_on_the_others(ranks: int, tmp_path: Path) -> None:
    job = failed("y = x + 1\n(y + y[::-1]).local if rank == 0 else comm.barrier()", tmp_path, ranks)
    others = ", ".join(map(str, range(1, ranks)))
    assert "DivergenceError: deadlock: every rank waits" in job.errors, job.errors
    assert f"  rank 0: messages with ranks [{others}], at " in job.errors and "  rank 1: barrier, at " in job.errors
    assert f"  rank {others}: comm.barrier, at " in job.errors, job.errors


@pytest.mark.slow
def test_messages_that_nobody_sends(tmp_path: Path) -> None:
    """A circle of three ranks, and a fourth in a collective that they do not reach."""
    script = """
    buffer = np.zeros(3)
    if rank < 3:
        comm.exchange([], [((rank + 1) % 3, buffer)])
    comm.exchange([((rank + 2) % 3, buffer)] if rank < 3 else [], [])
    comm.barrier()
    """
    job = failed(script, tmp_path, 4)
    assert "deadlock: every rank waits" in job.errors, job.errors
    assert "  rank 0: messages with ranks [1]" in job.errors and "  rank 2: messages with ranks [0]" in job.errors
    assert "  rank 3: barrier" in job.errors, job.errors


@pytest.mark.slow
def test_a_rank_that_computes_is_named(tmp_path: Path) -> None:
    """It need not come to its end for the others to be told that they cannot go on."""
    script = """
    if rank == 2:
        while True: time.sleep(0.1)
    comm.exchange([], [(1, np.zeros(3))]) if rank == 0 else comm.barrier()
    """
    job = failed(script, tmp_path, 3)
    assert "  rank 2: has not answered: it computes, or waits outside of numpy_dist" in job.errors, job.errors
    assert "deadlock: every rank waits" not in job.errors and "deadlock: ranks wait for each other" in job.errors


@pytest.mark.slow
def test_different_collectives(tmp_path: Path) -> None:
    job = failed("comm.barrier()\ncomm.barrier() if rank else comm.allgather(1)", tmp_path, 2)
    assert "rank 0: comm.allgather, at " in job.errors and "rank 1: comm.barrier, at " in job.errors, job.errors


@pytest.mark.slow
def test_a_long_wait_is_none(tmp_path: Path) -> None:
    script = """
    if rank == 1:
        time.sleep(3)
    y = x + 1
    y = y + y[::-1]
    engine.force(y)
    if rank == 0:
        time.sleep(2)
    print(float(y.sum()), comm.bcast(rank, root=1))
    """
    job = run("mpiexec", PREAMBLE + textwrap.dedent(script), tmp_path, 3)
    assert (job.code, job.errors) == (0, ""), job


# -- without MPI -----------------------------------------------------------------------------------------------------


class FakeMail:
    """The mail of ranks of one process."""

    def __init__(self, boxes: dict[tuple[int, int], deque[tuple[int, bytes]]], rank: int, size: int) -> None:
        self.rank, self.size, self.checks = rank, size, None
        self.ended: dict[int, Any] = {}
        self.sent: set[int] = set()
        self.mark = 0  # of all that was sent
        self.joined = 0
        self.count = 0
        self._boxes = boxes

    def post(self, rank: int, tag: int, message: bytes) -> None:
        self.count += 1
        self._boxes[rank, tag].append((self.rank, message))

    def poll(self, tag: int) -> tuple[int, bytes] | None:
        box = self._boxes[self.rank, tag]
        return box.popleft() if box else None

    def has_done(self, need: Need, rank: int) -> bool:
        return need.collective <= self.joined and (need.sent == 0 or rank in self.sent)

    def contradicts(self, need: Need, rank: int) -> bool:
        return rank in self.sent and need.mark != self.mark

    def look_for_notices(self) -> None:
        return None

    def named(self, where: str) -> str:
        return where


def ranks_of(size: int, era: int = 1) -> tuple[list[FakeMail], list[Deadlocks]]:
    boxes: dict[tuple[int, int], deque[tuple[int, bytes]]] = defaultdict(deque)
    mails = [FakeMail(boxes, rank, size) for rank in range(size)]
    return mails, [Deadlocks(mail, era) for mail in mails]


def rounds(searches: list[Deadlocks], wanted: list[Wanted], count: int = 40) -> list[type[Exception] | None]:
    """What the ranks raise, as they look in turns, half a second after each other."""
    ends: list[type[Exception] | None] = [None] * len(searches)
    for search in searches:
        search.begin()
    for turn in range(count):
        for rank, search in enumerate(searches):
            if ends[rank] is None:
                try:
                    search.look(wanted[rank], turn / 2)
                except Exception as error:
                    ends[rank] = type(error)
    return ends


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadlock, "_ANSWER_SECONDS", 0.0)


def receiving(*sources: int) -> Wanted:
    return Wanted("messages", {source: Need(sent=1) for source in sources})


def test_a_circle_is_found_by_all_that_wait() -> None:
    _, searches = ranks_of(4)
    wanted = [receiving(1), receiving(2, 3), receiving(0), Wanted("barrier", all=Need(1, "barrier"))]
    assert None not in rounds(searches, wanted)


def test_a_chain_that_ends_at_a_rank_which_has_sent_is_no_circle() -> None:
    mails, searches = ranks_of(3)
    mails[2].sent = {1}
    assert rounds(searches, [receiving(1), receiving(2), receiving(0)]) == [None] * 3
    assert all(mail.count < 40 for mail in mails)


def test_a_rank_in_a_collective_that_the_asking_one_has_joined_is_no_reason() -> None:
    mails, searches = ranks_of(3)
    mails[0].joined = mails[1].joined = 5
    mails[2].sent = {0, 1}
    wanted = [receiving(1), Wanted("barrier", all=Need(5, "barrier")), Wanted("barrier", all=Need(5, "barrier"))]
    assert rounds(searches, wanted) == [None] * 3
    mails[0].joined = 4
    assert None not in rounds(searches, wanted)


def test_only_the_root_of_a_broadcast_is_waited_for() -> None:
    mails, searches = ranks_of(3)
    wanted = [receiving(1), Wanted("bcast", {2: Need(1, "bcast")}), Wanted("barrier", all=Need(1, "barrier"))]
    mails[1].joined = 1
    mails[2].joined = 1
    assert rounds(searches, wanted) == [None] * 3


def test_what_another_communicator_left_behind_is_dropped() -> None:
    mails, before = ranks_of(2, era=1)
    wanted = [receiving(1), receiving(0)]
    for rank in (0, 1):
        before[rank].look(wanted[rank], 1.5)
    for rank in (0, 1):
        mails[rank].post(1 - rank, deadlock.STATE_TAG, pickle.dumps((1, "", packed([]), {})))
    later = [Deadlocks(mail, 2) for mail in mails]
    assert rounds(later, wanted, 2) == [None, None]  # half a second is too short for a question of their own
    assert None not in rounds(later, wanted)


def test_ranks_in_different_collectives_are_found() -> None:
    mails, searches = ranks_of(3)
    needs = [Need(2, kind) for kind in ("barrier", "allgather", "bcast")]
    for mail in mails:
        mail.joined = 2
    wanted = [Wanted("", all=needs[0], collective=needs[0]), Wanted("", all=needs[1], collective=needs[1])]
    assert None not in rounds(searches, [wanted[0], wanted[1], wanted[0]])
    mails, searches = ranks_of(3)
    for mail in mails:
        mail.joined = 2
    assert rounds(searches, [wanted[0]] * 3) == [None] * 3
    assert None not in rounds(searches, [wanted[1], wanted[1], Wanted("", {0: needs[2]}, collective=needs[2])])


def test_a_rank_that_has_sent_something_else_is_found_at_the_first_question() -> None:
    mails, searches = ranks_of(2)
    mails[1].sent, mails[1].mark = {0}, 7
    wanted = [Wanted("messages", {1: Need(sent=1, mark=7)}), Wanted("barrier", all=Need(1, "barrier"))]
    assert rounds(searches, wanted, 6) == [None, None]
    mails[1].mark = 8
    for search in searches:
        search.begin()
    assert None not in rounds(searches, wanted, 5)  # the first question is asked after a second
