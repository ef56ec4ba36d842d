"""The command line of `numpy-dist`."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import time
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

from numpy_dist.cli import cache, completion, hosts, kernels, launcher, profiles, restarting
from numpy_dist.comm.launchers import END_VARIABLE, PROGRESS_VARIABLE
from numpy_dist.errors import LauncherError
from numpy_dist.settings import MEASURED, config

RUN_OPTIONS_WITH_VALUE = (
    *("-n", "--ranks", "--backend", "--timeout", "--restart", "--max-time", "--debug", "--hosts", "--hostfile"),
    *("--profile", "--weights", "--bind"),
)


def split_command(
    arguments: Sequence[str], with_value: Sequence[str] = RUN_OPTIONS_WITH_VALUE
) -> tuple[list[str], list[str]]:
    """Split what follows `run`, `plan` or `cache warm` into our options and the script (or `-m module`).

    What follows the script are its own arguments, which stay with it.
    """
    position = 0
    while position < len(arguments):
        word = arguments[position]
        if word == "--":
            return list(arguments[:position]), list(arguments[position + 1 :])
        if word == "-m" or not word.startswith("-"):
            break
        position += 2 if word in with_value else 1
    return list(arguments[:position]), list(arguments[position:])


def _at_least_one(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a number of ranks; there must be at least one")
    return number


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text} is not a number of times")
    return int(text)


def _rank(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text} is not the number of a rank")
    return int(text)


def backend(text: str) -> str:
    """A backend of ours, or of a plug-in."""
    try:
        with config(BACKEND=text):
            return config.BACKEND
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _seconds(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not a number of seconds")
    return number


def _duration(text: str) -> float:
    unit = {"s": 1, "m": 60, "h": 3600, "d": 86400}.get(text[-1:], 0)
    return _seconds(text[:-1]) * unit if unit else _seconds(text)


def _weights(text: str) -> str:
    try:
        with config(WEIGHTS=text) as settings:
            return MEASURED if settings.WEIGHTS == MEASURED else text
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _hosts(text: str) -> list[hosts.Place]:
    try:
        return hosts.parse_hosts(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _hostfile(text: str) -> list[hosts.Place]:
    try:
        return hosts.parse_hostfile(Path(text))
    except (OSError, ValueError) as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _add_ranks(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-n", "--ranks", type=_at_least_one, default=1, metavar="N", help="number of ranks (default: 1)"
    )


def build_parser() -> tuple[argparse.ArgumentParser, argparse.ArgumentParser, argparse.ArgumentParser]:
    """The parser, and those of `run` and `cache warm` (for errors about scripts, which argparse cannot see)."""
    parser = argparse.ArgumentParser(prog="numpy-dist", description="Runs NumPy programs on several ranks.")
    parser.add_argument("--version", action="version", version=f"numpy-dist {metadata.version('numpy-dist')}")
    tasks = "{run,plan,conformance,info,doctor,kernel,cache,profile,completion}"
    commands = parser.add_subparsers(dest="task", required=True, metavar=tasks)
    run = commands.add_parser(
        "run",
        allow_abbrev=False,  # `split_command` must know which words have values
        help="run a script on several ranks",
        usage="numpy-dist run [-n N] [options] script.py [argument ...]\n"
        "       numpy-dist run [-n N] [options] -m module [argument ...]",
        description="Runs a script on N ranks. Shows what rank 0 prints, and the errors of every rank with its number.",
    )
    _add_ranks(run)
    where = run.add_mutually_exclusive_group()
    where.add_argument("--hosts", type=_hosts, metavar="A,B:2", help="run on these hosts; host:2 takes two ranks")
    where.add_argument(
        "--hostfile",
        dest="hosts",
        type=_hostfile,
        metavar="FILE",
        help="run on the hosts of a file, one a line, as host:2 or host slots=2",
    )
    run.add_argument(
        "--bind",
        choices=("none", "auto"),
        default="none",
        help="auto: bind each rank and its threads to its share of its machine's processors, by memory domains and "
        "cores; none (the default): leave that to MPI and the scheduler",
    )
    run.add_argument(
        "--weights",
        type=_weights,
        metavar="W,W|measured",
        help="how much each rank gets of new arrays, beside the others: 2,1,1 gives rank 0 half; measured: as much as "
        "its speed says, which is measured at the start (sets NUMPY_DIST_WEIGHTS)",
    )
    run.add_argument("--backend", type=backend, help="sets NUMPY_DIST_BACKEND")
    run.add_argument(
        "--timeout",
        type=_seconds,
        metavar="S",
        help="print where every rank is once one has waited S seconds for the others (sets NUMPY_DIST_TIMEOUT)",
    )
    run.add_argument(
        "--restart",
        type=_count,
        default=0,
        metavar="K",
        help="start the job again, up to K times, when it has lost a rank (killed, crashed, out of memory); the script "
        "goes on from what it has saved (numpy_dist.checkpoint)",
    )
    run.add_argument(
        "--max-time",
        type=_duration,
        metavar="T",
        help="tell the script to save and to end after this time (numpy_dist.checkpoint.should_end), which leaves it "
        "the rest of a scheduler's limit; in seconds, or as 90m, 12h, 1d",
    )
    run.add_argument("--all-output", action="store_true", help="show what every rank prints, with its number")
    run.add_argument(
        "--merge-output",
        action="store_true",
        help="show equal lines of several ranks once, with the ranks: errors and, with --all-output, what ranks print",
    )
    run.add_argument(
        "--debug",
        type=_rank,
        metavar="RANK",
        help="the rank on which breakpoint() opens the debugger (default: 0), and which reads standard input",
    )
    run.add_argument("--profile", metavar="FOLDER", help="write a profile of all ranks there (sets NUMPY_DIST_PROFILE)")
    run.add_argument("--progress", action="store_true", help="show bars of what takes long (needs the package tqdm)")
    run.add_argument(
        "--patch",
        action="store_true",
        help="give the script and the modules beside it (of -m: its package) numpy_dist where they import numpy; "
        "what is installed keeps its NumPy",
    )
    # Their options stand with what is imported where it is wanted.
    commands.add_parser("plan", add_help=False, help="tell what a script would take on many ranks, without running it")
    commands.add_parser("conformance", add_help=False, help="compare every function with NumPy, on 1 to 4 ranks")
    info = commands.add_parser("info", help="show what this machine offers, and what is missing")
    info.add_argument("--json", action="store_true", help="print JSON")
    doctor = commands.add_parser("doctor", help="examine installation and machine, and tell how to mend what is amiss")
    doctor.add_argument("--json", action="store_true", help="print JSON")
    doctor.add_argument("--quick", action="store_true", help="leave out what takes more than a second")
    doctor.add_argument(
        "--measure", metavar="FILE", help="measure this machine instead, for numpy-dist plan --machine FILE"
    )
    kernels.add_to(commands.add_parser("kernel", help="notebooks whose cells run on several ranks"), _add_ranks)
    profiles.add_to(commands.add_parser("profile", help="make the page of a profile from the logs of its ranks"))
    commands.add_parser("completion", help="print what makes a shell complete these options").add_argument(
        "shell", choices=completion.SHELLS
    )
    kept = commands.add_parser("cache", help="show, make or clear the compiled kernels that are kept on disk")
    actions = kept.add_subparsers(dest="action", required=True, metavar="{info,warm,clear}")
    actions.add_parser("info", help="show what they take").add_argument(
        "--json", action="store_true", help="print JSON"
    )
    warm = actions.add_parser(
        "warm",
        allow_abbrev=False,
        help="make those of a script, so that its next run has them from the start",
        usage="numpy-dist cache warm [-n N] script.py [argument ...]\n"
        "       numpy-dist cache warm [-n N] -m module [argument ...]",
        description="Runs a script on N ranks, and compiles each kernel as soon as it is needed.",
    )
    _add_ranks(warm)
    actions.add_parser("clear", help="remove them")
    return parser, run, warm


def _check_command(parser: argparse.ArgumentParser, command: Sequence[str]) -> None:
    """End with an error where there is no script to run."""
    if not command or command == ["-m"]:
        parser.error("no script given")
    if command[0] != "-m" and not os.path.exists(command[0]):
        parser.error(f"no such script: {command[0]}")


def _check_ranks(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """End with an error where an option of `run` does not fit the number of ranks."""
    if options.debug is not None and options.debug >= options.ranks:
        parser.error(f"argument --debug: there is no rank {options.debug} of {options.ranks}; they count from 0")
    text = options.weights
    if text not in (None, MEASURED) and len(text.replace(",", " ").split()) != options.ranks:
        parser.error(f"argument --weights: {options.weights} are not the weights of {options.ranks} ranks")
    if options.bind != "none" and not hasattr(os, "sched_setaffinity"):
        parser.error("argument --bind: this system cannot bind processes to processors")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `numpy-dist` with the given arguments (default: those of the command line); returns the exit code."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    parser, run_parser, warm_parser = build_parser()
    if arguments[:1] == ["conformance"]:
        return _conformance(arguments[1:])
    if arguments[:1] == ["plan"]:
        from numpy_dist.cli import planning

        return planning.main(*split_command(arguments[1:], planning.OPTIONS_WITH_VALUE))
    if arguments[:2] == ["cache", "warm"]:
        own, command = split_command(arguments[2:])
        options = parser.parse_args(["cache", "warm", *own])
        _check_command(warm_parser, command)
        return cache.warm(options.ranks, command)
    if arguments[:1] != ["run"]:
        options = parser.parse_args(arguments)
        if options.task == "kernel":
            return kernels.run(options)
        if options.task == "completion":
            return _completion(options.shell, parser, run_parser, warm_parser)
        if options.task == "profile":
            return profiles.merge(options.folder)
        if options.task == "cache":
            return cache.clear() if options.action == "clear" else cache.show(as_json=options.json)
        if options.task == "doctor":
            if options.measure is not None:
                from numpy_dist.cli import planning

                return planning.main(["--measure", options.measure], [])
            from numpy_dist.cli.doctor import command as examination

            return examination.show(options.json, options.quick)
        from numpy_dist.cli import report  # which imports NumPy and all that computes

        return report.show(as_json=options.json)
    own, command = split_command(arguments[1:])
    options = parser.parse_args(["run", *own])
    _check_command(run_parser, command)
    _check_ranks(run_parser, options)
    if options.progress:
        os.environ[PROGRESS_VARIABLE] = "on"
    if options.profile is not None:
        try:
            profiles.begin(options.profile)
        except OSError as problem:
            run_parser.error(f"argument --profile: {problem}")
    if options.max_time is not None:
        os.environ.setdefault(END_VARIABLE, repr(time.time() + options.max_time))  # of a first start, for all others
    if options.restart:
        return restarting.run([*own, "--restart", "0", "--", *command], options.restart)
    job = launcher.Job(
        options.ranks,
        tuple(command),
        options.backend,
        options.timeout,
        options.all_output,
        options.patch,
        options.debug,
        hosts=tuple(options.hosts or ()),
        weights=options.weights,
        bind=options.bind == "auto",
        merge=options.merge_output,
    )
    try:
        code = launcher.run(job)
    except LauncherError as problem:
        print(f"numpy-dist: {problem}", file=sys.stderr)
        return 2
    if options.profile is not None:
        profiles.end()
    return code


def _completion(shell: str, parser: argparse.ArgumentParser, *of_scripts: argparse.ArgumentParser) -> int:
    from numpy_dist.cli import planning

    suite = importlib.import_module("numpy_dist.conformance.command")  # by name, as below
    elsewhere = {"plan": planning.build_parser(), "conformance": suite.build_parser()}
    return completion.show(shell, parser, (*of_scripts, elsewhere["plan"]), elsewhere)


def _conformance(arguments: Sequence[str]) -> int:
    # By name: the suite, which is no lower layer, uses parts of the launcher.
    command = importlib.import_module("numpy_dist.conformance.command")
    return command.main(arguments)


if __name__ == "__main__":
    sys.exit(main())
