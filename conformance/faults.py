"""Faults at every call of every example: ``python -m numpy_dist.conformance.faults`` writes docs/faults.md.

One rank fails at its k-th communication, run of a loop or allocation, for every k (for some, in `PROGRAMS`): on
simulated ranks, and for a sample of k in real jobs. Each must end: with the planted error on that rank and nothing else
than RankError on the others; a real job within ten seconds, with one traceback, an exit code other than 0, and nothing
left behind.

Options: ``--sample N`` (every N-th fault only), ``--examples FOLDER``, ``--output FILE`` (``-``: print it).
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import io
import os
import platform
import runpy
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

import numpy as np

import numpy_dist
from numpy_dist.conformance import jobs
from numpy_dist.errors import RankError
from numpy_dist.settings import config
from numpy_dist.spmd_testing import ALLOCATION, BACKEND, COMMUNICATION, inject, run_simulated

__all__ = ["EXAMPLES", "FaultRow", "examples_folder", "real_rows", "simulated_rows"]

ROOT = Path(numpy_dist.__file__).resolve().parent.parent
# Examples and their arguments: small, and so that every kind of communication is among them.
EXAMPLES: dict[str, tuple[str, ...]] = {
    "stencil.py": ("--size", "30", "--steps", "6"),
    "pi.py": ("--points", "2000"),
    "images.py": ("--images", "24", "--size", "6"),
    "terrain.py": ("--enlarge", "1", "--steps", "4", "--picture", ""),
}
# Examples with many calls that are alike: about so many of each row are injected.
PROGRAMS: dict[str, tuple[str, ...]] = {
    "cavity.py": ("--size", "24", "--steps", "2"),
    "gradients.py": ("--size", "24", "--steps", "3"),
    "kmeans.py": ("--points", "300", "--centres", "3", "--steps", "1"),
    "options.py": ("--count", "500"),
    "layers.py": ("--rows", "64", "--width", "8"),
    "batches.py": ("--rows", "80", "--columns", "8"),
    "bodies.py": ("--bodies", "24", "--steps", "1"),
    "shallow.py": ("--size", "24", "--steps", "2"),
    "regression.py": ("--samples", "400", "--features", "4", "--steps", "2"),
    "life.py": ("--size", "24", "--steps", "3"),
}
_OF_PROGRAMS = 12
# Not run there: a rank in the middle holds a column more than the example's own check of memory allows.
_NOT_AT = {("cavity.py", 16)}
ARGUMENTS = EXAMPLES | PROGRAMS
SIMULATED_RANKS = (2, 3, 4, 7, 16)
_PLANTED = "planted by numpy_dist.conformance.faults"
_SETTINGS = {"MIN_SHARD_BYTES": "0", "FALLBACK": "error"}


def _raise() -> None:
    raise ValueError(_PLANTED)


def _no_memory() -> None:
    raise MemoryError(_PLANTED)


def _kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


# What happens at the call, and at which calls.
KINDS: dict[str, tuple[Callable[[], object], tuple[str, ...]]] = {
    "exception": (_raise, (COMMUNICATION, BACKEND)),
    "exit": (lambda: sys.exit(3), (COMMUNICATION, BACKEND)),
    "failed allocation": (_no_memory, (ALLOCATION,)),
    "os._exit": (lambda: os._exit(3), (COMMUNICATION, BACKEND)),
    "SIGKILL": (_kill, (COMMUNICATION, BACKEND)),
}
SIMULATED_KINDS = ("exception", "exit", "failed allocation")  # the others would end all simulated ranks


@dataclass
class FaultRow:
    """All faults of one kind in one example at one number of ranks.

    Attributes
    ----------
    where : str
        "simulated", or the launcher of real jobs.
    calls : int
        Calls of the rank that fails, in a run without a fault.
    faults : int
        How many were injected.
    problems : list of str
        Those that did not end as they should have.
    seconds : float
        The longest time to the end.
    said : str
        The last line of what one of them said.
    """

    where: str
    example: str
    ranks: int
    kind: str
    calls: int = 0
    faults: int = 0
    problems: list[str] = field(default_factory=list)
    seconds: float = 0.0
    said: str = ""

    def add(self, what: str, problem: str | None, seconds: float, said: str) -> None:
        """Enter the outcome of one fault."""
        self.faults += 1
        self.seconds = max(self.seconds, seconds)
        if problem is not None:
            self.problems.append(f"{what}: {problem}")
        self.said = self.said or said


def examples_folder() -> Path:
    """Where the examples are: beside the package in a checkout."""
    return ROOT / "examples"


def available(example: str) -> bool:
    """Whether what an example needs is installed."""
    return example != "terrain.py" or find_spec("matplotlib") is not None


# -- simulated ranks -------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _as_script(path: Path, arguments: Sequence[str]) -> Iterator[None]:
    """Within the block, `sys.argv` and `sys.path` are those of a script."""
    argv, before = sys.argv, list(sys.path)
    sys.argv = [str(path), *arguments]
    sys.path.insert(0, str(path.parent))
    try:
        yield
    finally:
        sys.argv, sys.path[:] = argv, before


def _run_once(
    path: Path, ranks: int, victim: int, position: int, kind: str
) -> tuple[list[list[str]], list[BaseException | None]]:
    """The calls of every rank, and the error that each has ended with (None: it ran to its end)."""
    action, places = KINDS[kind]
    calls: list[list[str]] = [[] for _ in range(ranks)]
    ends: list[BaseException | None] = [None] * ranks

    def body() -> None:
        rank = numpy_dist.engine.runtime().rank
        try:
            with inject(position if rank == victim else -1, action, places) as calls[rank]:
                runpy.run_path(str(path), run_name="__main__")
        except BaseException as error:
            ends[rank] = error
            raise

    try:
        with contextlib.redirect_stdout(io.StringIO()):
            run_simulated(ranks, body)
    except BaseException as error:
        if not any(error is end for end in ends):
            raise
    return calls, ends


def _judged(victim: int, ends: list[BaseException | None]) -> str | None:
    """What is wrong with how simulated ranks have ended."""
    planted = ends[victim]
    expected = isinstance(planted, SystemExit) and planted.code == 3 or _PLANTED in str(planted)
    if planted is None or not expected:
        return f"rank {victim} ended with {planted!r} instead of the planted error"
    for rank, error in enumerate(ends):
        if rank != victim and error is not None and not isinstance(error, RankError):
            return f"rank {rank} ended with {str(error)[:200]!r}"
    return None


def simulated_rows(
    folder: Path, ranks: Sequence[int] = SIMULATED_RANKS, every: int = 1, examples: Sequence[str] = tuple(ARGUMENTS)
) -> Iterator[FaultRow]:
    """Inject a fault at every call (of `PROGRAMS`, at some), of the last rank and the first by turns."""
    for example in filter(available, examples):
        path = folder / example
        with (
            _as_script(path, ARGUMENTS[example]),
            config(MIN_SHARD_BYTES=0, FALLBACK="error", BACKEND="numpy"),
        ):
            for number, count in enumerate(ranks):
                for kind in SIMULATED_KINDS if (example, count) not in _NOT_AT else ():
                    victim = count - 1 if number % 2 else 0
                    yield _simulated_row(path, count, victim, kind, every)


def _simulated_row(path: Path, ranks: int, victim: int, kind: str, every: int) -> FaultRow:
    row = FaultRow("simulated", path.name, ranks, kind)
    calls, ends = _run_once(path, ranks, victim, -1, kind)
    if any(ends):
        raise RuntimeError(f"{path.name} fails without any fault: {[end for end in ends if end]}")
    row.calls = len(calls[victim])
    if path.name in PROGRAMS:
        every *= max(1, row.calls // _OF_PROGRAMS)
    for position in range(0, row.calls, every):
        begun = time.monotonic()
        _, ends = _run_once(path, ranks, victim, position, kind)
        said = next((f"RankError: {end}" for end in ends if isinstance(end, RankError)), "")
        what = f"rank {victim}, call {position} ({calls[victim][position]})"
        row.add(what, _judged(victim, ends), time.monotonic() - begun, said)
    return row


# -- real jobs -------------------------------------------------------------------------------------------------------


def _start(launcher: str, path: Path, ranks: int, victim: int, position: int, kind: str) -> jobs.JobEnd:
    """Run an example as a job in which one rank fails; its script is this module, which runs the example."""
    fault = ["-m", __name__ if __name__ != "__main__" else "numpy_dist.conformance.faults", "--fault"]
    program = [*fault, f"{victim}:{position}:{kind}", str(path), *ARGUMENTS[path.name]]
    settings = {f"NUMPY_DIST_{name}": value for name, value in _SETTINGS.items()}
    with tempfile.TemporaryDirectory() as folder:
        return jobs.run(jobs.command(launcher, ranks, program), Path(folder), settings)


def _act(fault: str, path: Path, arguments: Sequence[str]) -> None:
    """One rank of such a job."""
    victim, position, kind = fault.split(":")
    action, places = KINDS[kind]
    mine = numpy_dist.engine.runtime().rank == int(victim)
    with _as_script(path, arguments), inject(int(position) if mine else -1, action, places) as calls:
        runpy.run_path(str(path), run_name="__main__")
    if mine:
        print(f"\ncalls: {len(calls)}", flush=True)


def _judged_job(job: jobs.JobEnd, kind: str, most_seconds: float = jobs.MostSeconds) -> str | None:
    """What is wrong with how a job has ended."""
    if job.hung:
        return f"it hangs; it has printed: {job.text[-1000:]}"
    if job.code == 0:
        return "its exit code is 0"
    if job.seconds > most_seconds:
        return f"it took {job.seconds:.0f} s to end"
    tracebacks = job.text.count(jobs.HEADER)
    if tracebacks != (0 if kind == "SIGKILL" else 1):
        return f"{tracebacks} tracebacks: {job.text[-1000:]}"
    if job.left:
        return f"left behind: {', '.join(job.left)}"
    if kind in ("exception", "failed allocation") and _PLANTED not in job.text:
        return f"it does not name the planted error: {job.text[-1000:]}"
    return None


def real_rows(folder: Path, positions: int = 3, examples: Sequence[str] = tuple(ARGUMENTS)) -> Iterator[FaultRow]:
    """Inject faults at some calls of real jobs (`PROGRAMS`: at one): 2 to 4 ranks, under both launchers, by turns."""
    number = 0
    for example in filter(available, examples):
        for kind in KINDS:
            ranks, launcher = 2 + number % 3, ("mpiexec", "run")[number % 2]
            victim, number = number % ranks, number + 1
            row = FaultRow(launcher, example, ranks, kind)
            count = _start(launcher, folder / example, ranks, victim, -1, kind)
            found = [line for line in count.output.splitlines() if "calls: " in line]
            if count.code or not found:
                raise RuntimeError(f"{example} fails without any fault: {count}")
            row.calls = int(found[0].partition("calls: ")[2])
            steps = range(positions) if example in EXAMPLES else [number % positions]
            for step in steps:
                position = (row.calls - 1) * step // max(1, positions - 1)
                job = _start(launcher, folder / example, ranks, victim, position, kind)
                lines = [line for line in job.errors.splitlines() if line.strip()]
                row.add(
                    f"rank {victim}, call {position}", _judged_job(job, kind), job.seconds, lines[-1] if lines else ""
                )
            yield row


# -- the table -------------------------------------------------------------------------------------------------------

_BY_HAND = "## Files\n", "## On one machine\n\n"
"""Where the part of the page begins and ends that no run of this module makes: its rows are tests of their own."""

_HEAD = """# Faults that were injected

{by_hand}Made by `python -m numpy_dist.conformance.faults` on {date}, with numpy_dist {version}, Python {python},
NumPy {numpy}, on {cores} cores, in {minutes:.0f} minutes. In each run one rank fails at one of its calls: a
communication or the run of a loop, or, for failed allocations, a request for memory. On simulated ranks at {which}
call, in real jobs (`mpiexec`, and `numpy-dist run`) at the first, the last and one between them. Of the examples from
cavity.py on, whose calls are much alike, about {of_programs} calls for each row on simulated ranks, and one of these
three in real jobs.

A fault *ended well* if the rank that failed ended with the planted error and the others with nothing else than
`RankError`; a real job also within ten seconds, with one traceback (none after SIGKILL), an exit code other than 0, and
no process, shared memory or file left behind. Seconds are those of the longest whole job, with its start.

{faults} faults, {well} ended well.

| where | example | ranks | fault | calls | injected | ended well | seconds | what was said last |
|---|---|---|---|---|---|---|---|---|
"""


def written_by_hand(page: str) -> str:
    """The part of the page that stays as it is; empty where it has none."""
    start, stop = (page.find(heading) for heading in _BY_HAND)
    return page[start : stop + len(_BY_HAND[1])] if 0 <= start < stop else ""


def table(rows: Sequence[FaultRow], minutes: float, every: int, by_hand: str = "") -> str:
    """The page."""
    faults, problems = sum(row.faults for row in rows), sum(len(row.problems) for row in rows)
    text = _HEAD.format(
        by_hand=by_hand,
        date=datetime.date.today().isoformat(),
        version=numpy_dist.__version__,
        python=platform.python_version(),
        numpy=np.__version__,
        cores=os.cpu_count(),
        minutes=minutes,
        of_programs=_OF_PROGRAMS,
        which="every" if every == 1 else f"every {every}-th",
        faults=faults,
        well=faults - problems,
    )
    for row in rows:
        said = row.said.strip().replace("|", "\\|").replace(f"{ROOT}{os.sep}", "")[:150]
        cells = (row.where, row.example, row.ranks, row.kind, row.calls, row.faults, row.faults - len(row.problems))
        text += f"| {' | '.join(map(str, cells))} | {row.seconds:.1f} | {said} |\n"
    wrong = [f"- {row.where}, {row.example}, {row.ranks} ranks: {text}\n" for row in rows for text in row.problems]
    return text + ("\n## Did not end well\n\n" + "".join(wrong) if wrong else "")


def main(arguments: Sequence[str] | None = None) -> int:
    """Inject the faults and write the table; returns 1 if any did not end well."""
    parser = argparse.ArgumentParser(prog="python -m numpy_dist.conformance.faults", description=__doc__)
    parser.add_argument("--sample", type=int, default=1, help="inject every N-th fault on simulated ranks only")
    parser.add_argument("--examples", type=Path, default=examples_folder(), help="where the examples are")
    parser.add_argument("--output", default=str(ROOT / "docs" / "faults.md"), help="the page to write; -: print it")
    parser.add_argument("--fault", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.fault:
        _act(options.fault[0], Path(options.fault[1]), options.fault[2:])
        return 0
    begun, rows = time.monotonic(), []
    for source in (real_rows(options.examples), simulated_rows(options.examples, every=options.sample)):
        for row in source:
            print(row.where, row.example, row.ranks, row.kind, row.faults, f"{row.seconds:.1f} s", *row.problems[:1])
            sys.stdout.flush()
            rows.append(row)
    page = Path(options.output)
    by_hand = written_by_hand(page.read_text()) if page.is_file() else ""
    text = table(rows, (time.monotonic() - begun) / 60, options.sample, by_hand)
    if options.output == "-":
        print(text)
    else:
        page.write_text(text)
    return 1 if any(row.problems for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
