"""What a profile tells of the rank's other threads: workers, helpers, checkpoints, texts, and who compiles kernels."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import numpy_dist
from numpy_dist import engine
from numpy_dist.comm.simulated import run_simulated
from numpy_dist.files.texts import lines_as_file
from numpy_dist.parallel.threads import run_together, thread_watch
from numpy_dist.profiling import folder as folders
from numpy_dist.profiling.analysis import profiled
from numpy_dist.profiling.log import RankLog
from numpy_dist.profiling.recorder import Recorder
from numpy_dist.settings import config


@pytest.fixture(autouse=True)
def really_sharded() -> Any:
    with config(MIN_SHARD_BYTES=0, AT_ONCE=0):
        yield


def runs_of(log: RankLog, thread: str) -> list[Any]:
    """What a thread did, in order; each within the profile, and with its own time."""
    found = [run for run in log.threads if run.thread == thread]
    for run in found:
        assert log.header.clock <= run.begin <= run.end <= log.last and 0 <= run.busy <= run.end - run.begin
    return found


@pytest.mark.parametrize("ranks", [1, 3])
def test_helpers_and_checkpoints(ranks: int, tmp_path: Path) -> None:
    def rank() -> None:
        x = numpy_dist.linspace(0.0, 1.0, 1000)
        with numpy_dist.profile(tmp_path / "out"):
            run_together([lambda: 0, lambda: np.ones(1000).sum()])
            numpy_dist.checkpoint.save(tmp_path / "saved", {"x": x}, step=3)
            numpy_dist.checkpoint.wait()
        assert thread_watch.get() is None

    run_simulated(ranks, rank)
    logs = folders.read_logs(str(tmp_path / "out"))
    for log in logs:
        (helper,), (saved,) = runs_of(log, "helper 1"), runs_of(log, "checkpoint")
        assert saved.what == "writing of step 3" and log.lines[saved.line].text.startswith("numpy_dist.checkpoint.save")
        assert log.lines[helper.line].text.startswith("run_together")
    assert all({"helper 1", "checkpoint"} <= set(its) for its in profiled(logs).threads.values())


def test_texts(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("1 2\n3 4\n")
    numpy_dist.ones(3)
    with numpy_dist.profile(tmp_path / "out"), lines_as_file(tmp_path / "a.txt", (4, 8)) as name:
        assert Path(name).read_text() == "3 4\n"
    (log,) = folders.read_logs(str(tmp_path / "out"))
    (found,) = runs_of(log, "text")
    assert found.what == "reading of a text" and log.lines[found.line].text.startswith("with numpy_dist.profile")


def test_what_goes_on_when_a_profile_ends_has_its_part() -> None:
    recorder = Recorder(engine.runtime())
    tell = recorder.other_thread("checkpoint", "writing")
    begun = recorder.now
    tell(begun, None)
    recorder.end_threads()
    (found,) = (record for record in recorder.records if type(record).__name__ == "ThreadRun")
    assert found.what == "writing, and was not done" and found.begin == begun and found.end > begun  # type: ignore
    count = len(recorder.records)
    tell(begun, recorder.now)  # it ends later
    assert len(recorder.records) == count


PROGRAM = """
import numpy_dist as np
x = np.linspace(0.0, 1.0, 2_000_000)
for _ in range(20):  # in some of them each worker gets a range, also on a busy machine
    x = np.sin(x) + 0.5
    float(x.sum())
np.fft.fft(x.reshape(1000, 2000))
"""


@pytest.mark.slow
def test_workers_and_compilers(tmp_path: Path) -> None:
    """A process of its own, with three threads and an empty cache of kernels."""
    (tmp_path / "program.py").write_text(PROGRAM)
    settings = {"PROFILE": "out", "NUM_THREADS": "3", "COMPILE": "first", "CACHE_DIR": str(tmp_path / "cache")}
    environment = {**os.environ, **{f"NUMPY_DIST_{name}": value for name, value in settings.items()}}
    environment["NUMPY_DIST_MIN_SHARD_BYTES"] = "0"
    command = [sys.executable, "program.py"]
    subprocess.run(command, cwd=tmp_path, env=environment, timeout=300, check=True)
    (log,) = folders.read_logs(str(tmp_path / "out"))
    for worker in ("worker 0", "worker 1"):
        runs = runs_of(log, worker)
        assert runs and all(run.loop in log.loops and run.ranges > 0 and run.line >= 0 for run in runs)
        for run in runs:  # within the loop that it has taken part in
            assert any(loop.begin <= run.begin and run.end <= loop.end and run.loop in loop.loops for loop in log.runs)
    assert runs_of(log, "helper 1")
    (first, *_) = runs_of(log, "compiler")
    assert first.what.startswith("a kernel, in process ")
