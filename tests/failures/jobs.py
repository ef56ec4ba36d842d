"""Scripts, given as text, as jobs."""

from __future__ import annotations

from pathlib import Path

import pytest

from numpy_dist.comm import detect
from numpy_dist.conformance import jobs
from numpy_dist.conformance.jobs import HEADER, JobEnd

SECONDS = 90.0  # a busy machine takes its time; ranks that nobody ends would take longer

__all__ = ["HEADER", "SECONDS", "JobEnd", "run"]


def run(launcher: str, script: str, folder: Path, ranks: int = 2) -> JobEnd:
    """Run a script; a job that hangs fails the test."""
    if launcher != "python" and detect.find_mpiexec() is None:
        pytest.skip("there is no mpiexec")
    path = folder / "script.py"
    path.write_text(script)
    job = jobs.run(jobs.command(launcher, ranks, [str(path)]), folder)
    if job.hung:
        pytest.fail(f"the job hangs; it has printed:\n{job.text}")
    return job
