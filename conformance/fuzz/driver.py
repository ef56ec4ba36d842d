"""The loop of a fuzzer's run: programs are generated, run on ranks, and made small where they fail."""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from numpy_dist.conformance.fuzz.comparison import Problem
from numpy_dist.conformance.fuzz.grammar import generate
from numpy_dist.conformance.fuzz.job import HANG, FuzzJob
from numpy_dist.conformance.fuzz.program import RandomProgram, script
from numpy_dist.conformance.fuzz.shrinking import shrink

__all__ = ["Found", "add_options", "run"]

ENVIRONMENT = {
    "NUMPY_DIST_FALLBACK": "silent",
    "NUMPY_DIST_NUM_THREADS": "2",
    "NUMPY_DIST_MIN_SHARD_BYTES": "262144",
    "OMP_NUM_THREADS": "1",
}
SHRINKING = 90.0  # seconds for each finding
PATIENCE = {"never": 60.0, "auto": 90.0, "first": 180.0}  # seconds after which a program hangs


@dataclass
class Found:
    """What a run has found.

    Attributes
    ----------
    programs : int
    seconds : float
    problems : dict
        By what they say without its numbers: scripts that show them, and how often they came.
    """

    programs: int = 0
    seconds: float = 0.0
    problems: dict[str, tuple[str, int]] = field(default_factory=dict)


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of the fuzzer."""
    group = parser.add_argument_group("fuzzing", "random programs in place of the written cases")
    group.add_argument("--fuzz", action="store_true", help="run random programs; --seed N is the seed of the first")
    group.add_argument("--minutes", type=float, help="for all numbers of ranks together (default: 5)")
    group.add_argument("--programs", type=int, help="for each number of ranks, in place of a time")
    group.add_argument("--tiers", choices=sorted(PATIENCE), default="auto", help="COMPILE of the ranks (default: auto)")


def run(
    ranks: int,
    seed: int,
    tiers: str,
    minutes: float | None,
    programs: int | None,
    backend: str | None = None,
    words: Sequence[str] = (),
) -> Found:
    """Run programs on so many ranks, from a seed on, and print a script for each kind of failure.

    Parameters
    ----------
    ranks, seed : int
    tiers : {"auto", "first", "never"}
        The setting `COMPILE`.
    minutes, programs
        When to end: whichever comes first.
    backend : str, optional
        The setting `BACKEND`.
    words : sequence of str
        Options for the workers.
    """
    found, begun = Found(), time.monotonic()
    chosen = {"NUMPY_DIST_COMPILE": tiers} | ({"NUMPY_DIST_BACKEND": backend} if backend else {})
    environment = ENVIRONMENT | chosen
    with FuzzJob(ranks, environment, PATIENCE[tiers], words) as job:
        since = seed  # the first program of the job that runs
        while (programs is None or found.programs < programs) and (
            minutes is None or time.monotonic() - begun < 60 * minutes
        ):
            program = generate(seed + found.programs)
            starts = job.starts
            problem = job.attempt(program)
            since = program.seed if job.starts > starts else since
            found.programs += 1
            if problem is not None:
                _enter(found, job, program, problem, since, environment)
    found.seconds = time.monotonic() - begun
    return found


def _signature(problem: Problem, program: RandomProgram) -> str:
    """What a problem says without numbers and names, so that the same one is told once."""
    step = program.statements[problem.step] if 0 <= problem.step < len(program.statements) else ""
    functions = " ".join(sorted(set(re.findall(r"np\.[\w.]+", step)))) if problem.kind != HANG else ""
    text = problem.text.splitlines()[0] if problem.kind != HANG else ""
    return f"{problem.kind} {functions} {re.sub(r'[-+]?[0-9.]+', '#', text)[:120]}"


def _enter(
    found: Found, job: FuzzJob, program: RandomProgram, problem: Problem, since: int, environment: dict[str, str]
) -> None:
    """Make a failing program small and print it, unless the same was found before."""
    first = _signature(problem, program)
    if first in found.problems:
        found.problems[first] = found.problems[first][0], found.problems[first][1] + 1
        return
    job.stop()
    again = job.attempt(program)
    if again is None or again.kind != problem.kind:
        text = (
            f"# program {program.seed} alone does not fail: run --seed {since} --programs {program.seed - since + 1}\n"
            + script(program, job.ranks, environment, f"{problem.kind}: {problem.text}")
        )
    else:
        text = _smallest(job, program, again, environment)
    found.problems[first] = text, 1
    print(f"--- found with seed {program.seed}, {job.ranks} ranks ---\n{text}", flush=True)


def _smallest(job: FuzzJob, program: RandomProgram, problem: Problem, environment: dict[str, str]) -> str:
    """The script of the smallest program that fails in this way."""
    last = problem

    def fails(statements: list[str]) -> bool:
        nonlocal last
        shown = job.attempt(program.with_statements(statements))
        if shown is None or shown.kind != problem.kind:
            return False
        last = shown
        return True

    seconds = SHRINKING if problem.kind != HANG else 4 * job.patience
    statements = shrink(list(program.statements), fails, seconds)
    told = f"--fuzz --seed {program.seed} --programs 1 --ranks {job.ranks}\n{last.kind}: {last.text}"
    return script(program.with_statements(statements), job.ranks, environment, told)
