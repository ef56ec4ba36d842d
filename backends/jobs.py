"""Processes and schedulers' jobs: when a process started, and with which process a job ends."""

from __future__ import annotations

import os
from collections.abc import Mapping

__all__ = ["NAME", "Process", "in_job", "process", "root_of_job", "started"]

NAME = "nd-compiles"  # of the processes that compile, as the system shows it: 15 characters at most

# By these, processes know their job: of Slurm, PBS, LSF, Grid Engine, Flux, Cobalt, OAR, and Fujitsu's scheduler.
VARIABLES = (
    "SLURM_JOB_ID",
    "PBS_JOBID",
    "LSB_JOBID",
    "SGE_TASK_ID",
    "FLUX_JOB_ID",
    "COBALT_JOBID",
    "OAR_JOB_ID",
    "PJM_JOBID",
)

Process = tuple[int, str]
"""The number of a process, and when it started: numbers are used again."""


def _words(pid: int) -> list[str] | None:
    """What the system says of a process after its name: state, parent, and so on."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()
    except OSError:
        return None


def started(pid: int) -> str:
    """When a process started, where the system tells. "ended" for a zombie."""
    words = _words(pid)
    if words is None:
        return "?"
    return "ended" if words[0] in "ZX" else words[19]


def process(pid: int) -> Process:
    """A process that is told from later ones of the same number."""
    return pid, started(pid)


def in_job(environment: Mapping[str, str] = os.environ) -> str | None:
    """What a scheduler's job is known by, as ``NAME=value``; None outside of jobs."""
    return next((f"{name}={environment[name]}" for name in VARIABLES if environment.get(name)), None)


def root_of_job(job: str) -> Process | None:
    """The farthest ancestor of this process that is of the same job: its script's shell, or what a user typed.

    None where this process is the job's first one itself, or where the system does not tell.
    """
    found = None
    pid = os.getppid()
    while pid > 1 and (words := _words(pid)) is not None:
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:  # what it was started with
                ours = job.encode() in file.read().split(b"\0")
        except OSError:  # another user's: the scheduler's own
            break
        if not ours:
            break
        found = pid, words[19]
        pid = int(words[1])
    return found
