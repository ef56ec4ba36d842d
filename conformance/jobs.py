"""Jobs of several ranks that are expected to fail: how they ended, in what time, and what they have left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from numpy_dist.cli import processes
from numpy_dist.comm import detect

__all__ = ["HEADER", "JobEnd", "MostSeconds", "command", "run"]

HEADER = "Traceback (most recent call last)"
MostSeconds = 10.0  # within which a job ends once one rank has failed
_PATIENCE = 120.0
_SHARED_MEMORY = Path("/dev/shm")
_OURS = ("NUMPY_DIST_", "PYTHONHASHSEED", "NUMBA_NUM", "PMI", "HYDRA", "MPI_LOCAL", "OMPI_", "_NUMPY_DIST")


class JobEnd(NamedTuple):
    """How a job ended: `left` are the processes and files that it has left behind; `hung` if it had to be killed."""

    code: int
    output: str
    errors: str
    seconds: float
    left: list[str]
    hung: bool

    @property
    def text(self) -> str:
        """All that it has printed."""
        return self.output + self.errors


def command(launcher: str, ranks: int, program: Sequence[str]) -> list[str]:
    """What a user types to start a program (a script or ``-m module``, with arguments).

    Parameters
    ----------
    launcher : str
        "run", "mpiexec" or "python".
    """
    if launcher == "python":
        return [sys.executable, *program]
    if launcher == "run":
        return [sys.executable, "-m", "numpy_dist", "run", "-n", str(ranks), "--all-output", *program]
    mpiexec = detect.find_mpiexec()
    if mpiexec is None:
        raise RuntimeError("there is no mpiexec")
    return [mpiexec, "-n", str(ranks), sys.executable, *program]


def run(arguments: Sequence[str], folder: Path, settings: Mapping[str, str] | None = None) -> JobEnd:
    """Run a job, in a folder that should be empty but for the script; one that hangs is killed.

    Parameters
    ----------
    settings : mapping, optional
        Added to the environment.
    """
    mark = f"{os.getpid()}-{time.monotonic_ns()}"
    shared, files = _shared(), set(folder.iterdir())
    environment = {name: value for name, value in os.environ.items() if not name.startswith(_OURS)}
    environment |= {"OMP_NUM_THREADS": "1", "JOB_MARK": mark, "TMPDIR": str(folder)}
    environment |= {"NUMPY_DIST_ADVICE": "off", **(settings or {})}  # what a job writes is looked at
    begun, hung = time.monotonic(), False
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        # Files, not pipes: a process that is left behind must not keep us waiting for the end of a pipe.
        process = subprocess.Popen(
            arguments,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=errors,
            start_new_session=True,
            env=environment,
        )
        try:
            process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            hung = True
            processes.send([*processes.descendants(process.pid), process.pid], signal.SIGKILL)
            process.wait()
        seconds = time.monotonic() - begun
        output.seek(0)
        errors.seek(0)
        texts = output.read(), errors.read()
    left = [f"process {pid}" for pid in _marked(mark)]
    left += [str(_SHARED_MEMORY / name) for name in sorted(_shared() - shared) if _stays(name)]
    left += sorted(str(path) for path in set(folder.iterdir()) - files if path.name != "__pycache__")
    return JobEnd(process.returncode, *texts, seconds, left, hung)


def _shared() -> set[str]:
    """Names in the shared memory that are of this user."""
    return {path.name for path in _SHARED_MEMORY.glob("*") if _mine(path)}


def _mine(path: Path) -> bool:
    try:
        return path.stat().st_uid == os.getuid()
    except OSError:  # it is gone
        return False


def _stays(name: str, patience: float = 20.0) -> bool:
    """Whether this shared memory stays, and nobody uses it: another job may be about to, or to remove it."""
    deadline = time.monotonic() + patience
    while (_SHARED_MEMORY / name).exists() and not _mapped(name):
        if time.monotonic() > deadline:
            return True
        time.sleep(0.1)
    return False


def _mapped(name: str) -> bool:
    """Whether a live process uses this shared memory: one of another job on this machine."""
    for maps in Path("/proc").glob("[0-9]*/maps"):
        try:
            if name in maps.read_text():
                return True
        except OSError:  # it has ended, or is another user's
            continue
    return False


def _marked(mark: str, patience: float = 20.0) -> list[int]:
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
