"""Every kind of end of one rank, under every launcher, while the others wait for it and while they compute."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.failures.jobs import HEADER, SECONDS, run

pytestmark = pytest.mark.slow
RANKS = 3
LAST = RANKS - 1

# What the last rank does, and how many tracebacks there are.
KINDS = {
    "exception": ("raise ValueError('planted')", 1),
    "sys.exit(3)": ("sys.exit(3)", 1),
    "os._exit(3)": ("os._exit(3)", 1),
    "os._exit(0)": ("os._exit(0)", 1),
    "KeyboardInterrupt": ("os.kill(os.getpid(), signal.SIGINT); time.sleep(100)", 1),
    "SIGTERM": ("os.kill(os.getpid(), signal.SIGTERM); time.sleep(100)", 0),
    "SIGKILL": ("os.kill(os.getpid(), signal.SIGKILL)", 0),
    "MPI.Abort": ("from mpi4py import MPI; MPI.COMM_WORLD.Abort(5)", 0),
    "return": ("sys.exit()", 1),
}
OTHERS = {"wait": "float((x + 1).sum())", "compute": "time.sleep(100)"}

SCRIPT = """
import os, signal, sys, time
import numpy as np
import numpy_dist
from numpy_dist import engine
x = numpy_dist.asarray(np.arange(1e5))
rank, size = engine.runtime().rank, engine.runtime().size
float(x.sum())
if rank == size - 1:
    {end}
{others}
"""


def check(launcher: str, kind: str, others: str, folder: Path) -> None:
    end, tracebacks = KINDS[kind]
    legal = kind == "return" and others == "compute"
    rest = "time.sleep(0.5)" if legal else OTHERS[others]
    job = run(launcher, SCRIPT.format(end=end, others=rest), folder, RANKS)
    text = job.output + job.errors
    assert not job.left and job.seconds < SECONDS, job
    if legal:
        assert (job.code, text.strip()) == (0, ""), job
        return
    assert job.code != 0, job
    assert text.count(HEADER) == tracebacks, text
    if kind == "return":
        assert f"rank {LAST} has ended" in text and "script.py" in text, text
    elif tracebacks:
        assert f"[rank {LAST}] {HEADER}" in text, text
        said = f"waited for rank {LAST} in allgather, called from" if others == "wait" else "did not answer"
        assert text.count(f"rank 0, 1: {said}") == 1, text
    elif launcher == "run" and kind.startswith("SIG"):
        assert f"numpy-dist: rank {LAST} (process" in text, text
        assert job.code == 128 + signal.Signals[kind], job


@pytest.mark.parametrize(
    ("launcher", "kind", "others"),
    [
        ("run", "os._exit(0)", "wait"),
        ("run", "SIGTERM", "compute"),
        ("run", "KeyboardInterrupt", "wait"),
        ("run", "MPI.Abort", "wait"),
        ("run", "return", "compute"),
        ("mpiexec", "os._exit(3)", "compute"),
        ("mpiexec", "SIGKILL", "wait"),
    ],
)
def test_some_ends(launcher: str, kind: str, others: str, tmp_path: Path) -> None:
    check(launcher, kind, others, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("others", OTHERS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("launcher", ["run", "mpiexec"])
def test_every_end(launcher: str, kind: str, others: str, tmp_path: Path) -> None:
    check(launcher, kind, others, tmp_path)


@pytest.mark.parametrize(
    ("kind", "code", "tracebacks"),
    [
        ("exception", 1, 1),
        ("sys.exit(3)", 3, 0),
        ("os._exit(3)", 3, 0),
        ("KeyboardInterrupt", -signal.SIGINT, 1),
        ("SIGTERM", -signal.SIGTERM, 0),
    ],
)
def test_plain_python_ends_as_ever(kind: str, code: int, tracebacks: int, tmp_path: Path) -> None:
    job = run("python", SCRIPT.format(end=KINDS[kind][0], others=""), tmp_path)
    assert (job.code, job.errors.count(HEADER), job.left) == (code, tracebacks, [])
    assert "rank" not in job.errors.replace("if rank == size", "")


def test_all_ranks_may_leave_by_os_exit_together(tmp_path: Path) -> None:
    script = SCRIPT.format(end="pass", others="print('end', flush=True); os._exit(0)")
    job = run("run", script, tmp_path, 2)
    assert (job.code, job.output.count("end"), job.errors, job.left) == (0, 2, "", [])


def test_an_end_with_builtins_exit_is_told(tmp_path: Path) -> None:
    job = run("mpiexec", SCRIPT.format(end="exit(3)", others=OTHERS["compute"]), tmp_path, 2)
    assert job.code == 3 and job.seconds < SECONDS and job.errors.count(HEADER) == 1, job


def test_a_rank_that_fails_before_mpi_has_started_leaves_nothing(tmp_path: Path) -> None:
    # It waits in vain for the other in MPI_Init, which has shared memory by then.
    script = "import os, time\nimport numpy_dist\nif os.environ['PMI_RANK'] == '1':\n    raise ValueError('planted')\n"
    job = run("mpiexec", script + "time.sleep(100)", tmp_path, 2)
    assert job.code != 0 and job.seconds < SECONDS and not job.left, job
    assert job.errors.count(HEADER) == 1 and f"[rank 1] {HEADER}" in job.errors, job
