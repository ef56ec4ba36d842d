"""Jobs that are started again: those that have lost a rank, and no others."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from numpy_dist.cli.restarting import lost_by

SCRIPT = """
import os, signal, sys
start = int(os.environ["NUMPY_DIST_RESTART"])
print("start", start, *sys.argv[1:], flush=True)
{what}
"""


def launched(folder: Path, what: str, *options: str) -> subprocess.Popen[str]:
    script = folder / "script.py"
    script.write_text(SCRIPT.format(what=what))
    command = [sys.executable, "-m", "numpy_dist", "run", *options, str(script), "-x", "--restart=5"]
    return subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def test_codes() -> None:
    assert [lost_by(code) for code in (0, 1, 2, 128 + 9, 128 + 11, -9, -6)] == [0, 0, 0, 9, 11, 9, 6]
    assert [lost_by(code) for code in (128, 255, 130, 143, -2, -15)] == [0] * 6


@pytest.mark.parametrize("ranks", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_a_job_that_has_lost_a_rank_is_started_again(ranks: int, tmp_path: Path) -> None:
    kill = "if start < 2: os.kill(os.getpid(), signal.SIGSEGV if start else signal.SIGKILL)"
    process = launched(tmp_path, kill, "-n", str(ranks), "--restart", "3")
    output, errors = process.communicate(timeout=90)
    assert process.returncode == 0, errors
    assert [line for line in output.splitlines() if line][-1] == "start 2 -x --restart=5"
    told = [line for line in errors.splitlines() if "is started again" in line]
    assert len(told) == 2 and "signal 9" in told[0] and "(2 of 3)" in told[1]


@pytest.mark.slow
def test_not_more_often_than_was_asked_for(tmp_path: Path) -> None:
    process = launched(tmp_path, "os.kill(os.getpid(), signal.SIGKILL)", "--restart=1")
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGKILL
    assert output.split("\n")[:2] == ["start 0 -x --restart=5", "start 1 -x --restart=5"]
    assert errors.count("is started again") == 1


@pytest.mark.slow
def test_an_error_is_no_reason(tmp_path: Path) -> None:
    process = launched(tmp_path, "sys.exit(3)", "--restart=2")
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 3 and output.splitlines() == ["start 0 -x --restart=5"] and "again" not in errors


@pytest.mark.slow
def test_an_interrupt_ends_it(tmp_path: Path) -> None:
    process = launched(tmp_path, "import time; time.sleep(100)", "--restart=2")
    assert process.stdout is not None and process.stdout.readline().startswith("start 0")
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode in (130, 1) and "is started again" not in errors
