"""The setting TIMEOUT: once a rank has waited for long, it is printed where every rank is."""

from __future__ import annotations

import io
import sys
import threading
import time
from collections import defaultdict, deque
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from typing import Any

import pytest

from numpy_dist.comm.divergence.journal import JournalEntry
from numpy_dist.comm.divergence.positions import Position, Waiting, stack_of
from numpy_dist.comm.supervision import watchdog
from numpy_dist.comm.supervision.debugging import OpenDebuggers
from numpy_dist.comm.supervision.watchdog import ANSWER_TAG, ASK_TAG, Watchdog, report
from tests.comm.test_exits import SECONDS, TOLD, Runner, run  # noqa: F401 - a fixture

# A short limit is set once all ranks are there and have done all once, which takes a busy machine longer than that.
PREAMBLE = """
import threading
import numpy_dist as nd
from numpy_dist.comm.supervision import watchdog
watchdog._ANSWER_SECONDS = 30.0
nd.config.TIMEOUT = 1000
x = nd.ones(100_000)
rank = x.comm.rank
x.comm.barrier()
"""


@pytest.mark.slow
def test_every_rank_is_shown_and_the_job_ends(run: Runner) -> None:  # noqa: F811
    script = """
        nd.config.ON_TIMEOUT = "end"
        float((x + 2).sum())  # what takes longer the first time
        x.comm.barrier()
        nd.config.TIMEOUT = 1
        def compute():
            y = x * 3
            while True: pass
        if rank == 0: float((x + 1).sum())
        elif rank == 1: compute()
        else: x.comm.allgather(2)
    """
    job = run(script, nranks=3, preamble=PREAMBLE)
    assert job.code != 0 and job.seconds < SECONDS
    assert job.errors.count("Where every rank is:") == 1
    assert "[rank 0] waits in allgather, called by numpy.sum, at " in job.errors
    assert "[rank 2] waits in allgather, called by comm.allgather, at " in job.errors and "script.py:" in job.errors
    stacks = job.errors.split("stack, innermost call last:")
    assert len(stacks) == 4
    assert "calls within numpy_dist and NumPy" in stacks[1] and "float((x + 1).sum())" in stacks[1]
    assert "The first difference is in operation 7:" in job.errors
    assert "rank 0: add(float64[100000], int) -> float64[100000]" in job.errors
    assert "rank 1: multiply(float64[100000], int)" in job.errors and "rank 2: comm.allgather, at" in job.errors
    assert "ends the job (ON_TIMEOUT=end)" in job.errors


@pytest.mark.slow
def test_a_rank_that_computes_is_shown_and_waited_for(run: Runner) -> None:  # noqa: F811
    script = """
        nd.config.TIMEOUT = 1
        told = []
        def look():
            wait_until_told()
            told.append(True)
        def compute():
            while not told: pass
        if rank == 1:
            threading.Thread(target=look, daemon=True).start()
            compute()
        print(float(x.sum()))
    """
    job = run(script, nranks=2, preamble=PREAMBLE + TOLD)
    assert (job.code, job.text) == (0, "100000.0100000.0")
    assert "[rank 1] does not wait: the program, at " in job.errors and " in compute (after operation 2)" in job.errors
    assert "the others wait for those that do not" in job.errors and job.errors.count("stack, innermost") == 2


# -- without MPI -----------------------------------------------------------------------------------------------------


class Post:
    """The mail of some watchdogs of one process, and which ranks wait: replaced at once, not rank after rank."""

    def __init__(self) -> None:
        self.waiting: dict[int, Waiting] = {}
        self.boxes: dict[tuple[int, int], deque[tuple[int, bytes]]] = defaultdict(deque)


class FakeMail:
    def __init__(self, post: Post, rank: int, size: int) -> None:
        self.rank, self.size, self.checks = rank, size, None
        self._post = post
        self.debuggers = OpenDebuggers(self)
        self.aborted: list[int] = []

    @property
    def waiting(self) -> Waiting | None:
        return self._post.waiting.get(self.rank)

    def post(self, rank: int, tag: int, message: bytes) -> None:
        self._post.boxes[rank, tag].append((self.rank, message))

    def poll(self, tag: int) -> tuple[int, bytes] | None:
        box = self._post.boxes[self.rank, tag]
        return box.popleft() if box else None

    def abort(self, code: int) -> None:
        self.aborted.append(code)


def wait_until(condition: Any, seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    assert condition()


@contextmanager
def stopped_afterwards(dogs: list[Watchdog]) -> Iterator[None]:
    try:
        yield
    finally:
        for dog in dogs:
            dog.stop()


def test_one_of_several_waiting_ranks_prints_once_for_each_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watchdog, "_ANSWER_SECONDS", 60.0)
    errors, post = io.StringIO(), Post()
    mails = [FakeMail(post, rank, 3) for rank in range(3)]
    dogs = [Watchdog(mail) for mail in mails]

    def reports() -> int:
        return errors.getvalue().count("Where every rank is:")

    with redirect_stderr(errors), stopped_afterwards(dogs):
        for round_ in (1, 2):
            post.waiting = {rank: Waiting(time.monotonic() - 5, "allgather", 1.0, False) for rank in (0, 1)}
            wait_until(lambda n=round_: reports() == n)
            time.sleep(0.6)
            assert reports() == round_
            assert errors.getvalue().count("[rank 2] does not wait") == round_
            post.waiting = {}
        post.waiting = {2: Waiting(time.monotonic() - 5, "messages", 1.0, True)}
        wait_until(lambda: mails[2].aborted == [1])
    assert not [thread for thread in threading.enumerate() if thread.name == "numpy_dist watchdog"]
    assert mails[0].aborted == mails[1].aborted == []


def test_answers_to_a_question_before_are_none_to_this_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watchdog, "_ANSWER_SECONDS", 0.5)
    errors, post = io.StringIO(), Post()
    dogs = [Watchdog(FakeMail(post, rank, 2)) for rank in range(2)]
    with redirect_stderr(errors), stopped_afterwards(dogs):
        post.boxes[1, ASK_TAG].append((0, bytes(8)))
        wait_until(lambda: post.boxes[0, ANSWER_TAG])
        dogs.pop().stop()
        post.waiting = {0: Waiting(time.monotonic() - 5, "allgather", 1.0, False)}
        wait_until(lambda: "Where every rank is:" in errors.getvalue())
    assert "[rank 1] has not answered" in errors.getvalue()


def test_ranks_that_do_not_answer_are_named() -> None:
    here = JournalEntry(0, "add", "statement", "script.py:3 in <module>", "script.py:3 in <module>")
    there = JournalEntry(0, "exp", "statement", "script.py:5 in <module>", "script.py:5 in <module>")
    positions = {
        0: Position("numpy.sum", "script.py:9 in f", "allgather (collective 3)", 1, [here], "  the stack"),
        1: None,
        2: Position("the program", "script.py:1 in g", "", 1, [there], "  another"),
    }
    lines = report(positions, "[rank 0] has waited 5 s").splitlines()
    assert lines[1] == (
        "[rank 0] waits in allgather (collective 3), called by numpy.sum, at script.py:9 in f (after operation 1)"
    )
    assert lines[2] == "[rank 1] has not answered"
    assert lines[3] == "[rank 2] does not wait: the program, at script.py:1 in g (after operation 1)"
    assert lines[4] == "The first difference is in operation 1:"
    assert lines[-4:] == [
        "[rank 0] stack, innermost call last:", "  the stack", "[rank 2] stack, innermost call last:", "  another"
    ]  # fmt: skip


def test_a_stack_of_the_user_alone_is_whole() -> None:
    def inner() -> str:
        return stack_of(sys._getframe())

    text = inner()
    assert "in inner" in text and "in test_a_stack_of_the_user_alone_is_whole" in text and "calls within" not in text
