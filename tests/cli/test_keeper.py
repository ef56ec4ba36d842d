"""The process that stays in the place of a rank that was killed, so that the others go on."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from numpy_dist.cli import keeper, processes

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the keeper is for Linux")

KEEPER = [sys.executable, "-I", "-S", str(Path(keeper.__file__)), sys.executable, "-I", "-S", "-c"]
SECONDS = 60


def until(what) -> None:
    deadline = time.monotonic() + SECONDS
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_it_ends_as_the_rank_does() -> None:
    code = "print(input()); raise SystemExit(7)"
    done = subprocess.run([*KEEPER, code], input="said\n", capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (7, "said\n")


def test_it_stays_when_the_rank_is_killed() -> None:
    code = "import os; print('here', flush=True); os.kill(os.getpid(), 9)"
    kept = subprocess.Popen([*KEEPER, code], stdout=subprocess.PIPE)
    assert kept.stdout is not None and kept.stdout.readline() == b"here\n"
    until(lambda: not processes.descendants(kept.pid))
    time.sleep(0.05)
    assert kept.poll() is None
    kept.terminate()
    assert kept.wait(SECONDS) == -15


def test_the_rank_does_not_outlive_it() -> None:
    kept = subprocess.Popen([*KEEPER, "import time; print('here', flush=True); time.sleep(99)"], stdout=subprocess.PIPE)
    assert kept.stdout is not None and kept.stdout.readline() == b"here\n"
    (rank,) = processes.descendants(kept.pid)
    kept.kill()
    kept.wait(SECONDS)
    until(lambda: rank not in {*processes.descendants(0), *processes.descendants(1)})


SURVIVORS = """
import os, sys, time
import numpy_dist
comm = numpy_dist.ones(3).comm
comm.barrier()
if comm.rank == 0:
    os.kill(os.getpid(), 9)
time.sleep(1)
import posix
posix._exit(1)
"""


@pytest.mark.slow
def test_a_death_is_told_also_where_mpiexec_says_nothing_of_it(tmp_path: Path) -> None:
    """It does so, at times, on a busy machine: what it says is left out here."""
    pytest.importorskip("mpi4py.MPI", reason="there is no MPI library")
    (tmp_path / "script.py").write_text(SURVIVORS)
    code = f"""
import os, sys
from numpy_dist.cli import launcher, streams
streams.Filter.death = lambda self: None
sys.exit(launcher.run(launcher.Job(3, ({str(tmp_path / "script.py")!r},), survives=True, environment=dict(os.environ))))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100)
    assert done.returncode == 128 + 9, done.stderr
    assert "numpy-dist: rank 0 (process " in done.stderr and "was ended by signal 9" in done.stderr
