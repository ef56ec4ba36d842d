"""Profiles of whole jobs: `numpy-dist run --profile`, the setting, a rank that is killed, and merging by hand."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from numpy_dist.cli import library
from numpy_dist.profiling import folder as folders
from tests.cli.test_jobs import COMMAND, PATIENCE, Run, environment, mpi, run  # noqa: F401 - fixtures

pytestmark = pytest.mark.slow

LATE = """
import gc, sys, time
gc.set_threshold(1)  # many collections, each of which is recorded wherever it comes
import numpy_dist as np
rank = np.asarray([1.0], split=0).comm.rank
x = np.linspace(0.0, 1.0, 100_000)
for _ in range(4):
    y = x[1:] - x[:-1]
    if rank == 0:
        time.sleep(0.2)
    print(float(y.sum()))
sys.exit(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
"""


def test_a_job_of_two_ranks(mpi: None, run: Run, tmp_path: Path) -> None:  # noqa: F811
    done = run("-n 2 --profile out", LATE)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count(f"the profile is in {tmp_path.resolve() / 'out' / 'profile.html'}") == 1
    assert "Exception" not in done.stderr
    folder = tmp_path / "out"
    assert sorted(path.name for path in folder.iterdir()) == [
        "profile.html", "rank-00000.jsonl", "rank-00001.jsonl", "trace.json",
    ]  # fmt: skip
    page = (folder / "profile.html").read_text()
    assert "rank 1 waits for rank 0, most of it at line 8 of script.py" in page
    assert "Rank 0 meanwhile runs code outside of numpy_dist after line " in page
    assert "y = x[1:] - x[:-1]" in page
    for log in folders.read_logs(str(folder)):
        sent = sum(n for start in log.starts for _, n in start.sends) + sum(call.sent for call in log.collectives)
        assert log.end is not None and (sent, len(log.collectives)) == (log.end.nbytes, log.end.collectives)
        assert log.end.messages == sum(len(start.sends) for start in log.starts) == log.rank ^ 1  # to the left
    assert {event["pid"] for event in json.loads((folder / "trace.json").read_text())["traceEvents"]} == {0, 1}


def test_a_rank_that_is_killed(mpi: None, run: Run, tmp_path: Path) -> None:  # noqa: F811
    script = """
import os, signal, time
import numpy_dist as np
x = np.linspace(0.0, 1.0, 100_000)
print(float(np.sqrt(x).sum()))
logs = ["out/rank-00000.jsonl", "out/rank-00001.jsonl"]
while x.comm.rank == 1 and not all('["run", ' in open(log).read() for log in logs):
    time.sleep(0.05)
if x.comm.rank == 1:
    os.kill(os.getpid(), signal.SIGKILL)
print(float((x * x).sum()))
"""
    done = run("-n 2 --profile out", script)
    assert done.returncode == 128 + 9
    first, second = folders.read_logs(str(tmp_path / "out"))
    assert first.runs and second.runs and second.end is None
    page = (tmp_path / "out" / "profile.html").read_text()
    assert "Rank 1 did not come to the end of the profile" in page and "np.sqrt(x).sum()" in page


def test_one_rank_and_programs_that_it_starts(run: Run, tmp_path: Path) -> None:  # noqa: F811
    script = """
import subprocess, sys
import numpy_dist as np
engine_runs = float((np.linspace(0.0, 1.0, 100_000) + 1).sum())
if len(sys.argv) == 1:
    subprocess.run([sys.executable, __file__, "child"], check=True)
print(engine_runs)
"""
    done = run("--profile out", script)
    assert done.returncode == 0 and done.stderr.count("the profile is in") == 1
    (log,) = folders.read_logs(str(tmp_path / "out"))
    assert log.header.command == "script.py" and log.end is not None
    assert (tmp_path / "out" / "profile.html").exists()


def test_the_environment_variable_and_merging_by_hand(
    mpi: None,  # noqa: F811
    tmp_path: Path,
    environment: dict[str, str],  # noqa: F811
) -> None:
    script = "import numpy_dist as np; print(float((np.linspace(0, 1, 100_000) + 1).sum()))"
    environment["NUMPY_DIST_PROFILE"] = str(tmp_path / "out")
    launcher = library.matching_launcher(library.find_library(), library.find_launchers())
    for start in [launcher.path, "-n", "3"], []:
        words = [*start, sys.executable, "-c", script]
        done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=PATIENCE)
        assert done.returncode == 0 and done.stderr.count("the profile is in") == 1
    page = tmp_path / "out" / "profile.html"
    before = page.read_text()
    page.unlink()
    merge = [*COMMAND, "profile", "merge", str(tmp_path / "out")]
    done = subprocess.run(merge, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0 and page.read_text() == before
    done = subprocess.run([*merge[:-1], str(tmp_path)], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 1 and "no logs of a profile" in done.stderr


def test_a_job_without_arrays(run: Run, tmp_path: Path) -> None:  # noqa: F811
    done = run("-n 1 --profile out", "import numpy_dist; print(7)")
    assert (done.stdout, done.returncode) == ("7\n", 0)
    assert not list((tmp_path / "out").iterdir())


def test_a_folder_that_cannot_be_made(run: Run, tmp_path: Path) -> None:  # noqa: F811
    (tmp_path / "file").write_text("")
    done = run("--profile file", "print(7)")
    assert done.returncode == 2 and not done.stdout and "--profile" in done.stderr
