"""Jobs that are asked to end save first: by Slurm's signals, and by `numpy-dist run --max-time`."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from numpy_dist.checkpoint import ending
from numpy_dist.cli import processes
from numpy_dist.cli.main import _duration

SCRIPT = """
import os, signal, sys, time
import numpy_dist as nd
from numpy_dist import checkpoint

folder = sys.argv[1]
x = nd.asarray(range(1000), split=0)
state = checkpoint.restore(folder) or {"step": 0, "x": x + 0}
told = False
while not checkpoint.should_end():
    state["x"] += 1
    state["step"] += 1
    time.sleep(0.02)
    if not told and x.comm.rank == 0:
        told = True
        print("begun", os.getpid(), flush=True)
    assert state["step"] < 5000
    if len(sys.argv) > 2 and state["step"] == 5 and x.comm.rank == x.comm.size - 1:
        os.kill(os.getpid(), getattr(signal, sys.argv[2]))
checkpoint.save(folder, state, step=state["step"])
assert (state["x"].gather() == x.gather() + state["step"]).all()
if x.comm.rank == 0:
    print("saved", state["step"], flush=True)
"""


SOON = 90.0  # a busy machine takes its time; a job that nobody ends takes longer, and then fails


@pytest.fixture
def started(tmp_path: Path):
    """What starts the script, whose processes are ended."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    made: list[subprocess.Popen[str]] = []

    def start(*options: str, sends: str | None = None) -> subprocess.Popen[str]:
        words = [*options, str(script), str(tmp_path / "saved"), *([sends] if sends else [])]
        command = [sys.executable, "-m", "numpy_dist", "run", *words]
        made.append(subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE))
        return made[-1]

    yield start
    for process in made:
        process.kill()
        process.communicate()


def steps(process: subprocess.Popen[str]) -> int:
    """Up to which step a job has saved that has ended in good order."""
    output, errors = process.communicate(timeout=SOON)
    assert process.returncode == 0, errors
    assert errors == ""
    return int(output.split("saved")[1])


def until(condition: Callable[[], bool | None]) -> None:
    deadline = time.monotonic() + SOON
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def is_stopped(pid: int) -> bool:
    """Whether all threads of a process have stopped; until then one may take a signal."""
    try:
        return all("\nState:\tT" in path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/status"))
    except OSError:  # one of them has ended
        return False


def waits(number: int, pid: int) -> bool:
    """Whether a signal has come to a process that is stopped."""
    (pending,) = re.findall(r"ShdPnd:\s*(\w+)", Path(f"/proc/{pid}/status").read_text())
    return bool(int(pending, 16) >> (number - 1) & 1)


@pytest.mark.parametrize("number", [pytest.param(signal.SIGUSR1, marks=pytest.mark.slow), signal.SIGTERM])
@pytest.mark.parametrize("options", [pytest.param("-n 1", marks=pytest.mark.slow), "-n 3", "-n 2 --restart=2"])
def test_a_signal_to_the_launcher(started, options: str, number: int) -> None:
    process = started(*options.split())
    assert process.stdout.readline().startswith("begun")
    process.send_signal(number)
    saved = steps(process)
    again = started("-n", "1")  # which goes on from there
    assert again.stdout.readline().startswith("begun")
    again.send_signal(number)
    assert steps(again) > saved > 0


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("name", ["SIGUSR1", "SIGTERM"])
def test_a_signal_to_one_rank(started, ranks: int, name: str) -> None:
    assert steps(started("-n", str(ranks), sends=name)) in range(5, 8)


@pytest.mark.parametrize("ranks", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_the_time_that_was_given(started, ranks: int) -> None:
    begin = time.monotonic()
    assert steps(started("-n", str(ranks), "--max-time", "4", "--restart=1")) >= 0  # none, if importing takes so long
    assert 4 <= time.monotonic() - begin


@pytest.mark.slow
def test_a_signal_that_comes_before_the_ranks_can_handle_it(started) -> None:
    process = started("-n", "2")
    until(lambda: signal.SIGUSR1 in processes.handled(process.pid))
    process.send_signal(signal.SIGUSR1)
    steps(process)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGTERM])
@pytest.mark.parametrize("options", ["-n 1", "-n 3", "-n 2 --restart=2"])
def test_signals_to_all_processes(started, options: str, number: int) -> None:
    """As Slurm sends them to the processes of a step, `mpiexec` and its helpers among them: SIGCONT comes before."""
    process = started(*options.split())
    assert process.stdout.readline().startswith("begun")
    everything = [process.pid, *processes.descendants(process.pid)]
    for sent in (signal.SIGCONT, number):
        processes.send(everything, sent)
    steps(process)
    assert not any(os.path.exists(f"/proc/{pid}") for pid in everything[1:])


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGTERM])
def test_signals_to_all_ranks(started, number: int) -> None:
    """As they come to ranks that `srun` has started: to each by itself, and twice."""
    process = started("-n", "3")
    assert process.stdout.readline().startswith("begun")
    until(lambda: len(ranks_that_end(process.pid)) == 3)
    for sent in (signal.SIGCONT, number, number):
        processes.send(ranks_that_end(process.pid), sent)
    steps(process)


def ranks_that_end(pid: int) -> list[int]:
    """The ranks of a job that handle what asks them to end."""
    below = processes.descendants(pid)
    return [rank for rank in processes.ending_by_themselves(pid) if below.get(rank) != "mpiexec"]


def test_of_several_signals_only_a_late_one_ends_a_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    """Slurm sends a rank several within a moment, and those of other ranks are none of its own."""
    ended: list[int] = []
    monkeypatch.setattr(ending, "_asked", set())
    monkeypatch.setattr(ending, "_begun", [])
    monkeypatch.setattr(ending, "os", SimpleNamespace(kill=lambda _, number: ended.append(number), getpid=os.getpid))
    monkeypatch.setattr(ending, "signal", SimpleNamespace(SIGTERM=signal.SIGTERM, SIG_DFL=0, signal=lambda *_: None))
    monkeypatch.setattr(ending, "ONE_SIGTERM", 0.0)
    ending._note(signal.SIGTERM, None)
    ending._note(signal.SIGTERM, None)
    ending._note(signal.SIGUSR1, sys._getframe())
    ending._note(signal.SIGUSR1, sys._getframe())
    assert not ended and ending._asked == {signal.SIGTERM, signal.SIGUSR1}
    monkeypatch.setattr(ending, "ONE_SIGTERM", float("inf"))
    ending._note(signal.SIGTERM, sys._getframe())
    ending._note(signal.SIGTERM, sys._getframe())
    assert not ended
    monkeypatch.setattr(ending, "ONE_SIGTERM", 0.0)
    ending._note(signal.SIGTERM, sys._getframe())
    assert ended == [signal.SIGTERM]


@pytest.mark.slow
def test_a_later_signal_ends_the_job(started) -> None:
    process = started("-n", "2")
    assert process.stdout.readline().startswith("begun")
    below, ranks = processes.descendants(process.pid), ranks_that_end(process.pid)
    assert len(ranks) == 2
    for rank in ranks:
        os.kill(rank, signal.SIGSTOP)  # it does not come to its end
    until(lambda: all(is_stopped(rank) for rank in ranks))
    process.send_signal(signal.SIGTERM)
    until(lambda: all(waits(signal.SIGTERM, rank) for rank in ranks))  # two that come together are one
    # Those that come soon after the first are the same.
    until(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in ranks) or process.send_signal(signal.SIGTERM))
    process.communicate(timeout=SOON)
    assert process.returncode == 128 + signal.SIGTERM
    until(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in below))


@pytest.mark.slow
def test_a_lost_rank_ends_the_others(started) -> None:
    process = started("-n", "2", sends="SIGKILL")
    _, errors = process.communicate(timeout=SOON)
    assert process.returncode == 128 + signal.SIGKILL and "signal 9" in errors


def test_durations() -> None:
    assert [_duration(text) for text in ("90", "1.5s", "90m", "12h", "1d")] == [90, 1.5, 5400, 43200, 86400]
