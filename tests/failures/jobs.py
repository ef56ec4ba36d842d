"""Runs scripts on several ranks and looks at what is left of them: processes, shared memory, files."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import pytest

from numpy_dist.cli import processes
from numpy_dist.comm import detect

SECONDS = 10.0
PATIENCE = 60.0
HEADER = "Traceback (most recent call last)"
SHARED_MEMORY = Path("/dev/shm")

LAUNCHERS = ("run", "mpiexec", "python")


class Job(NamedTuple):
    """How a job ended: `left` are the processes and files that it has left behind."""

    code: int
    output: str
    errors: str
    seconds: float
    left: list[str]


def command(launcher: str, ranks: int, script: Path) -> list[str]:
    """What a user types to start a script."""
    if launcher == "python":
        return [sys.executable, str(script)]
    if launcher == "run":
        return [sys.executable, "-m", "numpy_dist", "run", "-n", str(ranks), "--all-output", str(script)]
    mpiexec = detect.find_mpiexec()
    if mpiexec is None or shutil.which(mpiexec) is None:
        pytest.skip("there is no mpiexec")
    return [mpiexec, "-n", str(ranks), sys.executable, str(script)]


def run(launcher: str, script: str, folder: Path, ranks: int = 2) -> Job:
    """Run a script, given as text; a job that hangs is killed, and fails the test."""
    path = folder / "script.py"
    path.write_text(script)
    mark = f"{os.getpid()}-{time.monotonic_ns()}"
    shared, files = _shared(), set(folder.iterdir())
    ours = ("NUMPY_DIST_", "PYTHONHASHSEED", "NUMBA_NUM", "PMI", "HYDRA", "MPI_LOCAL", "OMPI_")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    environment |= {"OMP_NUM_THREADS": "1", "JOB_MARK": mark, "TMPDIR": str(folder)}
    started = time.monotonic()
    process = subprocess.Popen(
        command(launcher, ranks, path),
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env=environment,
    )
    try:
        output, errors = process.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        processes.send([*processes.descendants(process.pid), process.pid], signal.SIGKILL)
        output, errors = process.communicate()
        pytest.fail(f"the job hangs; it has printed:\n{output}\n{errors}")
    seconds = time.monotonic() - started
    left = [f"process {pid}" for pid in _marked(mark)]
    left += [str(SHARED_MEMORY / name) for name in sorted(_shared() - shared) if not _mapped(name)]
    left += sorted(str(path) for path in set(folder.iterdir()) - files if path.name != "__pycache__")
    return Job(process.returncode, output, errors, seconds, left)


def _shared() -> set[str]:
    """Names in the shared memory that are of this user."""
    return {path.name for path in SHARED_MEMORY.glob("*") if _mine(path)}


def _mapped(name: str) -> bool:
    """Whether a live process uses this shared memory: one of another job on this machine."""
    for maps in Path("/proc").glob("[0-9]*/maps"):
        try:
            if name in maps.read_text():
                return True
        except OSError:  # it has ended, or is another user's
            continue
    return False


def _mine(path: Path) -> bool:
    try:
        return path.stat().st_uid == os.getuid()
    except OSError:  # it is gone
        return False


def _marked(mark: str, patience: float = 2.0) -> list[int]:
    """The live processes that have a job's mark in their environment, once they have had time to end."""
    deadline = time.monotonic() + patience
    while True:
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                if f"JOB_MARK={mark}".encode() in (folder / "environ").read_bytes():
                    found.append(int(folder.name))
            except OSError:  # it has ended, or is another user's
                continue
        if not found or time.monotonic() > deadline:
            return found
        time.sleep(0.05)
