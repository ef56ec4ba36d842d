"""Advice while a program runs: each kind once for a line, on one rank, and never an error."""

from __future__ import annotations

import io
import sys
import warnings
from collections.abc import Iterator
from contextlib import redirect_stderr
from typing import Any

import numpy as np
import pytest

import numpy_dist
from numpy_dist import advice
from numpy_dist.backends.compiled import backend as compiled
from numpy_dist.comm.simulated import run_simulated
from numpy_dist.comm.supervision.waits import LEAST_SECONDS, WaitAccount
from numpy_dist.dispatch.core import policy
from numpy_dist.errors import AdviceWarning, FallbackWarning
from numpy_dist.frames import UserLine
from numpy_dist.settings import config
from tests.cli.test_jobs import Run, environment, mpi, run  # noqa: F401 - fixtures

PLACE = UserLine("a.py", 31)


@pytest.fixture(autouse=True)
def advised() -> Iterator[None]:
    advice.forget()
    with config(ADVICE="on"):
        yield
    advice.forget()


@pytest.fixture
def caught() -> Iterator[list[warnings.WarningMessage]]:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        yield found


def told(caught: list[warnings.WarningMessage]) -> list[str]:
    return [str(w.message) for w in caught if w.category is AdviceWarning]


def test_once_for_a_topic_and_a_place(caught: list[warnings.WarningMessage]) -> None:
    for topic, place in (("a", PLACE), ("a", PLACE), ("b", PLACE), ("a", UserLine("a.py", 32))):
        advice.advise(topic, place, topic, "page")
    assert [(w.filename, w.lineno, str(w.message)) for w in caught] == [
        ("a.py", 31, "a (page)"),
        ("a.py", 31, "b (page)"),
        ("a.py", 32, "a (page)"),
    ]


def test_it_can_be_switched_off(caught: list[warnings.WarningMessage]) -> None:
    with config(ADVICE="off"), redirect_stderr(io.StringIO()) as errors:
        advice.advise("a", PLACE, "text", "page")
        advice.tell("b", PLACE, "text", "page")
    assert not caught and not errors.getvalue()


def test_a_filter_that_makes_errors_of_warnings_makes_a_line_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with warnings.catch_warnings(), redirect_stderr(io.StringIO()) as errors:
        warnings.simplefilter("error")
        advice.advise("a", PLACE, "text", "page")
    assert errors.getvalue() == "numpy_dist: text (page); NUMPY_DIST_ADVICE=off: no advice\n"
    closed = io.StringIO()
    closed.close()
    for stream in (closed, None):
        monkeypatch.setattr(sys, "stderr", stream)
        advice.tell(f"{stream}", PLACE, "text", "page")


# -- gathers ----------------------------------------------------------------------------------------------------------


def gathers(ranks: int, function: Any, caught: list[warnings.WarningMessage]) -> list[str]:
    def body() -> None:
        with config(MIN_SHARD_BYTES=0, FALLBACK="warn"):
            x = numpy_dist.asarray(np.arange(1000.0))
            for _ in range(2):
                function(x)

    run_simulated(ranks, body)
    return told(caught)


def test_large_gathers_that_were_asked_for(
    caught: list[warnings.WarningMessage], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert policy.LARGE_GATHER == 1 << 30
    monkeypatch.setattr(policy, "LARGE_GATHER", 8000)
    monkeypatch.setattr("numpy_dist.engine.data.gather.FEW", 0)
    (text,) = gathers(2, lambda x: x.gather(), caught)
    assert f"{__file__}:" in text and "gathers 7.8 KiB to every rank" in text and "docs/guide/memory.md" in text
    (_, text) = gathers(2, lambda x: x.gather(root=1), caught)
    assert "to rank 1, as it asks for: numpy.save writes it" in text
    assert len(gathers(2, lambda x: x[1:].gather(), caught)) == 2  # too small
    assert len(gathers(1, lambda x: x.gather(), caught)) == 2  # nothing travels


def test_gathers_that_have_warned_give_no_advice(
    caught: list[warnings.WarningMessage], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(policy, "LARGE_GATHER", 1)
    monkeypatch.setattr("numpy_dist.engine.data.gather.FEW", 0)
    assert not gathers(2, np.asarray, caught)
    assert not gathers(2, lambda x: np.apply_along_axis(lambda row: row[:2], 0, x), caught)
    assert len({(w.lineno, str(w.message)) for w in caught if w.category is FallbackWarning}) == 2


# -- loops without a kernel -------------------------------------------------------------------------------------------


@pytest.mark.skipif(np.dtype("g").itemsize == 8, reason="there is no dtype that kernels do not have")
def test_loops_that_cannot_be_compiled(caught: list[warnings.WarningMessage], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "SLOW_SECONDS", 0.0)
    x = numpy_dist.asarray(np.linspace(0.0, 1.0, 100_000).astype("g"))
    z = numpy_dist.asarray(np.linspace(0.0, 1.0, 100_000))
    for _ in range(3):
        y = x * 2
        float(y[1])
        float((z * 2)[1])  # will have a kernel
    # Of this file: what other tests have left pending may be slow, too.
    here = [str(w.message) for w in caught if w.category is AdviceWarning and w.filename == __file__]
    assert len(here) == 1, here
    text = here[0]
    assert f"the loop of {__file__}:" in text and "is interpreted, as no kernel is possible for it" in text
    assert "elements of dtype" in text and text.endswith("(docs/guide/performance.md, Kernels)")


# -- waits ------------------------------------------------------------------------------------------------------------


def waited(account: WaitAccount, *waits: tuple[float, float]) -> str:
    with redirect_stderr(io.StringIO()) as errors:
        for since, now in waits:
            if account.add(since, now):
                account.tell(now)
    return errors.getvalue()


def test_a_rank_that_mostly_waits() -> None:
    text = waited(WaitAccount(1, 100.0), *((100 + n, 100.7 + n) for n in range(10)))
    assert text.startswith("numpy_dist: rank 1 has waited for other ranks for 74 % of the last 6 s, most of it at ")
    assert f"{__file__}:" in text and "(docs/profile.md)" in text and text.count("\n") == 1


def test_a_rank_that_does_not_wait_so_long() -> None:
    assert not waited(WaitAccount(0, 100.0), *((100 + n, 100.4 + n) for n in range(100)))
    assert not waited(WaitAccount(0, 0.0), (0.0, LEAST_SECONDS - 0.1))
    assert not waited(WaitAccount(2, 100.0), (100.0, 160.0))  # ranks 0 and 1 tell


def test_waits_of_long_ago_do_not_count() -> None:
    account = WaitAccount(0, 0.0)
    assert not waited(account, (60.0, 61.0))
    assert "100 % of the last 5 s" in waited(account, *((61.0 + n, 62.0 + n) for n in range(6)))


def test_it_is_told_once_for_a_line() -> None:
    account = WaitAccount(0, 0.0)
    assert waited(account, *((float(n), n + 1.0) for n in range(100))).count("has waited") == 1


LATE = """
import time, warnings
import numpy_dist as np
warnings.simplefilter("error")
x = np.linspace(0.0, 1.0, 100_000)
for _ in range(12):
    if x.comm.rank == 0:
        time.sleep(0.5)
    total = float((x + 1).sum())
"""


@pytest.mark.slow
def test_a_job_with_a_late_rank(mpi: None, environment: dict[str, str], run: Run) -> None:  # noqa: F811
    environment["NUMPY_DIST_ADVICE"] = "on"
    done = run("-n 2", LATE)
    assert done.returncode == 0, done.stderr
    # On a busy machine rank 1 may itself be late at first.
    (line,) = [line for line in done.stderr.splitlines() if "rank 1 has waited for other ranks for " in line]
    assert "most of it at script.py:9" in line
