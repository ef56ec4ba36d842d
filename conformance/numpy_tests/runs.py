"""Runs of NumPy's test files as jobs of several ranks: one that crashes or hangs in a test goes on after it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from numpy_dist.cli import processes
from numpy_dist.comm import detect
from numpy_dist.conformance.numpy_tests.files import module_of

__all__ = ["NumPyOutcome", "ArraysUnderTest", "outcomes"]

_ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "NUMPY_DIST_NUM_THREADS": "1",
    "NUMPY_DIST_TIMEOUT": "30",
    "NUMPY_EXPERIMENTAL_DTYPE_API": "1",
    "PYTHONHASHSEED": "0",
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
}
_PYTEST = "-q --no-header --tb=short --color=no -p no:cacheprovider -p no:xdist".split()
_MARKED = "not slow"  # as numpy.test() has it
# pytest configures the last one first: `spmd_plugin` is to look for the launcher before a communicator is made.
_PLUGINS = ("numpy_dist.conformance.numpy_tests.plugin", "numpy_dist.spmd_plugin")
_GRACE = 60.0  # beyond a test's time limit, for starting and for printing stacks
_MOST_RESTARTS = 100
_TAIL = 60
_LIMIT = "the time limit of"  # as `watchdog` has it


class ArraysUnderTest(NamedTuple):
    """Arrays under test at a number of ranks: the adapter's name, ``module:Class``, or None for this library's."""

    adapter: str | None
    ranks: int
    backend: str | None = None

    @property
    def label(self) -> str:
        """A name for files."""
        words = (self.adapter or "numpy_dist").replace(":", "."), self.backend or "", f"{self.ranks}"
        return "-".join(word for word in words if word)


class NumPyOutcome(NamedTuple):
    """How a test went: passed, failed, skipped, left out, crashed, or hung."""

    outcome: str
    message: str


def outcomes(
    file: str, subject: ArraysUnderTest, folder: Path, seconds: float, words: str | None = None
) -> dict[str, NumPyOutcome]:
    """The outcomes of a file's tests, by their names.

    Parameters
    ----------
    folder : Path
        Where the results are kept. What an earlier run has left there is not run again.
    seconds : float
        The time limit of a test.
    words : str, optional
        pytest's ``-k``.
    """
    results = folder / f"{file}-{subject.label}.jsonl"
    log = results.with_suffix(".log")
    results.touch()
    for _ in range(_MOST_RESTARTS):
        found, begun, ended = _read(results)
        if ended:
            return found
        log.write_text("")
        code, hung = _job(file, subject, results, log, list(found), seconds, words)
        found, begun, ended = _read(results)
        if ended:
            return found
        tail = _excerpt(log.read_text(errors="replace"))
        if begun is None:
            found[f"{file}::collection"] = NumPyOutcome("crashed", f"exit code {code}: no test could be run\n{tail}")
            return found
        hung |= _LIMIT in tail
        line = {"test": begun, "outcome": "hung" if hung else "crashed", "message": f"exit code {code}\n{tail}"}
        with results.open("a") as lines:
            lines.write(json.dumps(line) + "\n")
    return found


def _excerpt(text: str) -> str:
    """What tells of the end: from the first line on that names a signal or the time limit, else the last lines."""
    lines = text.rstrip().splitlines()
    marks = [number for number, line in enumerate(lines) if "Fatal Python error" in line or _LIMIT in line]
    return "\n".join(lines[marks[0] :][:_TAIL] if marks else lines[-_TAIL:])


def _read(results: Path) -> tuple[dict[str, NumPyOutcome], str | None, bool]:
    """What has been written: outcomes, the test that has begun and not ended, and whether the file is through."""
    found: dict[str, NumPyOutcome] = {}
    begun, ended = None, False
    for text in results.read_text().splitlines():
        line = json.loads(text)
        begun = line.get("begun", begun)
        ended = line.get("end", ended)
        if "test" in line:
            found[line["test"]] = NumPyOutcome(line["outcome"], line["message"])
    return found, None if begun in found else begun, ended


def _job(
    file: str, subject: ArraysUnderTest, results: Path, log: Path, done: list[str], seconds: float, words: str | None
) -> tuple[int, bool]:
    """Run what is not done of a file; the exit code, and whether the job had to be killed."""
    with tempfile.TemporaryDirectory(prefix="numpy_dist-numpy-tests-") as scratch:
        assignment = Path(scratch) / "assignment.json"
        content = {"file": file, "adapter": subject.adapter, "results": str(results), "folder": scratch}
        assignment.write_text(json.dumps({**content, "done": done, "seconds": seconds}))
        command = [
            *_launcher(subject.ranks),
            sys.executable,
            "-m",
            "pytest",
            *_PYTEST,
            "-m",
            _MARKED,
            *(word for name in _PLUGINS for word in ("-p", name)),
        ]
        command += ["--rootdir", scratch, "-c", os.devnull, f"--spmd-timeout={seconds}"]
        command += ["--numpy-tests", str(assignment), "--pyargs", module_of(file)]
        command += ["-k", words] if words else []
        with log.open("ab") as output:
            process = subprocess.Popen(
                command,
                cwd=scratch,
                env={**os.environ, **_ENVIRONMENT, **_settings(subject)},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                hung = not _ends(process, results, seconds + _GRACE)
            finally:
                if process.poll() is None:
                    processes.send([*processes.descendants(process.pid), process.pid], signal.SIGKILL)
        return process.wait(), hung


def _launcher(ranks: int) -> list[str]:
    """What stands before the interpreter; pytest's ranks are to see that they are launched (`spmd_plugin`)."""
    if ranks == 1:
        return []
    mpiexec = detect.find_mpiexec()
    if mpiexec is None:
        raise RuntimeError("there is no mpiexec beside this Python and none on PATH")
    return [mpiexec, "-n", str(ranks)]


def _settings(subject: ArraysUnderTest) -> dict[str, str]:
    """Variables by which the backend is chosen, and modules of the command's own folder are found."""
    path = os.pathsep.join([os.getcwd(), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {"PYTHONPATH": path, **({"NUMPY_DIST_BACKEND": subject.backend} if subject.backend else {})}


def _ends(process: subprocess.Popen[bytes], results: Path, patience: float) -> bool:
    """Wait for the end; False if nothing has been written for longer than `patience` seconds."""
    size, since = -1, time.monotonic()
    while True:
        try:
            process.wait(1.0)
            return True
        except subprocess.TimeoutExpired:
            now = results.stat().st_size
        if now != size:
            size, since = now, time.monotonic()
        elif time.monotonic() - since > patience:
            return False
