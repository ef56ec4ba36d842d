"""`numpy-dist plan`: what a script would take, send and last on numbers of ranks that are not there."""

from __future__ import annotations

import argparse
import dataclasses
import os
import shlex
import sys
from collections.abc import Callable, Sequence

from numpy_dist.cli import runner
from numpy_dist.errors import LauncherError
from numpy_dist.scaling.machine import MachineSpeeds, load_speeds, save_speeds

OPTIONS_WITH_VALUE = ("-n", "--ranks", "--machine", "--measure", "--value", "--values", "--per-machine", "--only")


def _ranks(text: str) -> list[int]:
    found = [int(word) if word.isdecimal() else 0 for word in text.split(",")]
    if not found or min(found) < 1:
        raise argparse.ArgumentTypeError(f"{text} is no list of numbers of ranks, such as 64,1024")
    return found


def _numbers(text: str) -> list[int]:
    words = text.split(",")
    if not all(word.isdecimal() for word in words):
        raise argparse.ArgumentTypeError(f"{text} is no list of ranks, such as 0,31")
    return [int(word) for word in words]


def _positive(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text} is no number of ranks")
    return int(text)


def _machine(text: str) -> MachineSpeeds:
    try:
        return load_speeds(text)
    except (OSError, ValueError) as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def build_parser() -> argparse.ArgumentParser:
    """The parser of what stands before the script."""
    parser = argparse.ArgumentParser(
        prog="numpy-dist plan",
        allow_abbrev=False,  # the command line is split before it is parsed
        usage="numpy-dist plan -n N[,N...] [options] script.py [argument ...]\n"
        "       numpy-dist plan -n N[,N...] [options] -m module [argument ...]\n"
        "       numpy-dist plan --measure machine.json",
        description="Runs a script without data, as one rank after another of jobs of N ranks, and prints memory, "
        "messages, gathers, and a predicted time. Nothing is computed: values that the script asks for are assumed.",
    )
    parser.add_argument("-n", "--ranks", type=_ranks, default=[64, 1024], metavar="N[,N...]", help="(default: 64,1024)")
    parser.add_argument("--machine", type=_machine, metavar="FILE", help="the speeds of the job's machines")
    parser.add_argument("--measure", metavar="FILE", help="measure this machine, write the file, and use it")
    parser.add_argument(
        "--hosts", default="", metavar="A,B", help="with --measure: measure messages between these two (default: here)"
    )
    parser.add_argument(
        "--per-machine",
        type=_positive,
        metavar="K",
        help="how many ranks share a machine, one after the other (default: the file's, or 1)",
    )
    parser.add_argument("--value", type=float, default=0.0, metavar="X", help="what every reduction gives (default: 0)")
    parser.add_argument(
        "--values",
        metavar="ARGUMENTS",
        help="run the script with these arguments first, on one rank and with data; what goes to Python at each line "
        "is what the plan gets there, in order",
    )
    parser.add_argument("--only", type=_numbers, metavar="R[,R...]", help="the ranks to look at (default: a choice)")
    parser.add_argument("--output", action="store_true", help="show what the script prints, for each rank")
    parser.add_argument("--patch", action="store_true", help="give the script numpy_dist where it imports numpy")
    return parser


def main(own: Sequence[str], command: Sequence[str]) -> int:
    """Plan a job; returns the exit code.

    Parameters
    ----------
    own : sequence of str
        The options.
    command : sequence of str
        The script or ``-m module``, with its arguments; nothing where a machine is measured only.
    """
    parser = build_parser()
    options = parser.parse_args(own)
    machine = options.machine or MachineSpeeds()
    if options.measure is not None:
        if options.machine is not None:
            parser.error("argument --measure: not with --machine")
        try:
            machine = _measured(options.measure, options.hosts)
        except (LauncherError, OSError) as problem:
            print(f"numpy-dist: {problem}", file=sys.stderr)
            return 2
        if not command:
            return 0
    if not command or command == ["-m"]:
        parser.error("no script given")
    if command[0] != "-m" and not os.path.exists(command[0]):
        parser.error(f"no such script: {command[0]}")
    least = min(options.ranks)
    if options.only is not None and max(options.only) >= least:
        parser.error(f"argument --only: there is no rank {max(options.only)} of {least}; they count from 0")
    if options.per_machine is not None:
        machine = dataclasses.replace(machine, ranks_per_machine=options.per_machine)
    return _plan(options, command, machine)


def _measured(path: str, hosts: str) -> MachineSpeeds:
    from numpy_dist.cli.measuring import measure

    machine = measure(hosts)
    save_speeds(machine, path)
    print(f"Measured here, and written to {path}:")
    for name, found in dataclasses.asdict(machine).items():
        print(f"  {name:<18}  {_told(found)}")
    return machine


def _told(found: object) -> str:
    """A number of a machine, or several."""
    if isinstance(found, float):
        return f"{found:.3g}"
    if isinstance(found, dict):
        return ", ".join(f"{name} {_told(rate)}" for name, rate in found.items())
    if isinstance(found, tuple):
        return ", ".join(f"{place:.2g}: {speed:.3g}" for place, speed in found)
    return str(found)


def _program(command: Sequence[str], patch: bool) -> Callable[[], object]:
    """What runs a script as its rank does."""

    def program() -> object:
        function, *arguments = runner.prepare(command, patch)
        return function(*arguments)

    return program


def _progress(text: str) -> None:
    """Tell who waits at a terminal what goes on, in a line that is written over."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="\r", file=sys.stderr, flush=True)


def _plan(options: argparse.Namespace, command: Sequence[str], machine: MachineSpeeds) -> int:
    from numpy_dist.dispatch.core import registry
    from numpy_dist.scaling.simulation import PlanningError, plan_job, small_run
    from numpy_dist.scaling.text import job_lines, summary_lines

    registry.load()  # once, and not in every child
    program, quiet, jobs = _program(command, options.patch), not options.output, []
    try:
        values = None
        if options.values is not None:
            length = 2 if command[0] == "-m" else 1
            small = [*command[:length], *shlex.split(options.values)]
            values = small_run(_program(small, options.patch), quiet)
        print(f"{' '.join(command)}: nothing is computed, and nothing is measured; speeds of machine {machine.name!r}")
        for size in options.ranks:
            place = machine.rank_memory(size), machine.nodes(size)
            job = plan_job(program, size, options.value, values, options.only, quiet, _progress, *place)
            _progress("")
            jobs.append(job)
            print("", *job_lines(job, machine), sep="\n", flush=True)
    except PlanningError as problem:
        print(f"numpy-dist: {problem}", file=sys.stderr)
        return 2
    if len(jobs) > 1:
        print("", "The most of any rank that was looked at:", *summary_lines(jobs, machine), sep="\n")
    return 1 if any(rank.ending for job in jobs for rank in job.ranks) else 0
