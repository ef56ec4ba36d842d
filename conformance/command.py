"""`numpy-dist conformance`: runs the suite on several numbers of ranks, and reports."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from numpy_dist.argument_types import Keywords
from numpy_dist.cli.main import backend
from numpy_dist.conformance import rank_options, report, selection
from numpy_dist.conformance.coverage import share, share_text
from numpy_dist.conformance.fuzz import driver
from numpy_dist.conformance.numpy_tests import command as numpy_tests
from numpy_dist.conformance.rank_options import names_in

ENVIRONMENT = {"OMP_NUM_THREADS": "1", "NUMPY_DIST_NUM_THREADS": "1", "NUMPY_DIST_TIMEOUT": "120"}


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options that are the command's own."""
    parser.add_argument("--ranks", type=_numbers, default="1,2,3,4", help="numbers of ranks (default: %(default)s)")
    parser.add_argument("--backend", type=backend, help="sets NUMPY_DIST_BACKEND")
    parser.add_argument("--report", type=_file, metavar="FILE", help="write an HTML page")
    parser.add_argument("--share", action="store_true", help="only print how much of NumPy runs without gathering")
    driver.add_options(parser)
    parser.add_argument(
        "--at-least", type=float, metavar="PERCENT", help="with --share or --numpy: fail below this (--numpy: 99.5)"
    )
    numpy_tests.add_options(parser)


def _numbers(text: str) -> list[int]:
    return [rank_options.at_least_one(word) for word in text.split(",")]


def _file(text: str) -> Path:
    """A file that can be written: the page is written at the end, after minutes."""
    try:
        Path(text).open("a").close()
    except OSError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return Path(text)


def run_job(ranks: int, backend: str | None, given: Sequence[str]) -> tuple[int, list[Keywords]]:
    """Run the suite as a job of so many ranks: its exit code, and the rows that it has written."""
    with tempfile.TemporaryDirectory(prefix="numpy_dist-conformance-") as folder:
        results = Path(folder) / "results.jsonl"
        results.touch()
        command = [sys.executable, "-m", "numpy_dist", "run", "-n", str(ranks)]
        command += ["--backend", backend] if backend else []
        command += ["-m", "numpy_dist.conformance.worker", "--results", str(results), *given]
        code = subprocess.run(command, env={**ENVIRONMENT, **os.environ}).returncode
        return code, [json.loads(line) for line in results.read_text().splitlines()]


def run(options: argparse.Namespace) -> int:
    """Run the command; returns the exit code: 1 where something differs, and is not known to."""
    if options.share:
        print(share_text())
        native, functions, _, _ = share()
        return int(options.at_least is not None and 100 * native < options.at_least * functions)
    given, failed = rank_options.as_words(options), False
    expected = len(list(selection.choose(names_in(options.area), names_in(options.functions))))
    runs: dict[int, list[Keywords]] = {}
    for ranks in options.ranks:
        code, runs[ranks] = run_job(ranks, options.backend, given)
        rows = runs[ranks]
        for row in rows:
            print("".join(f"{row['function']}: {text}\n" for text in row["problems"]), end="")
        if code or len(rows) < expected:
            end = f"the run ended with exit code {code} after {len(rows)} of {expected} functions"
            print(f"{report.counted(ranks, 'rank')}: {end}")
            failed = True
        print(*report.summary({ranks: rows}), sep="\n", flush=True)
        failed |= any(row["problems"] for row in rows)
    if options.report:
        title = f"Conformance of {options.adapter or 'numpy_dist'} with NumPy"
        line = "" if options.adapter else share_text()
        page = report.html(runs, line, list(report.known()), f"{title} {np.__version__}")
        options.report.write_text(page, encoding="utf-8")
        print(f"wrote {options.report}")
    return int(failed)


def fuzz(options: argparse.Namespace) -> int:
    """Run random programs; returns the exit code: 1 where something was found."""
    words = [word for name in options.load for word in ("--load", name)]
    words += ["--adapter", options.adapter] if options.adapter else []
    minutes = options.minutes
    if minutes is None and options.programs is None:
        minutes = 5.0
    failed = False
    for ranks in options.ranks:
        share = None if minutes is None else minutes / len(options.ranks)
        found = driver.run(ranks, int(options.seed), options.tiers, share, options.programs, options.backend, words)
        failed |= bool(found.problems)
        kinds = "".join(f"\n    {times} x {text}" for text, (_, times) in found.problems.items())
        told = f"{found.programs} programs in {found.seconds / 60:.1f} minutes, tiers {options.tiers}"
        told += f", from seed {options.seed}"
        print(f"{report.counted(ranks, 'rank')}: {told}; {len(found.problems)} problems{kinds}", flush=True)
    return int(failed)


def build_parser() -> argparse.ArgumentParser:
    """The command's parser."""
    parser = argparse.ArgumentParser(
        prog="numpy-dist conformance",
        parents=[rank_options.parser()],
        description="Compares every function with NumPy: values, dtypes, views, errors and warnings.",
    )
    add_options(parser)
    return parser


def main(arguments: Sequence[str]) -> int:
    """Run `numpy-dist conformance` with these arguments; returns the exit code."""
    parser = build_parser()
    options = parser.parse_args(arguments)
    if options.fuzz and not options.seed.isdecimal():
        parser.error(f"--fuzz takes a number as its --seed, not {options.seed!r}")
    if not options.fuzz and (options.minutes is not None or options.programs is not None):
        parser.error("--minutes and --programs are about --fuzz")
    if options.at_least is not None and not (options.share or options.numpy):
        parser.error("--at-least is about --share and --numpy")
    if not options.numpy and numpy_tests.given(options):
        parser.error("--files, --tests and --results are about --numpy")
    if "" not in sys.path:
        sys.path.insert(0, "")  # as the ranks have it, which `python -m` starts
    try:
        rank_options.load(options.load)
        under_test = rank_options.adapter_named(options.adapter)
    except (ImportError, TypeError) as error:
        traceback.print_exc()
        parser.error(f"--load or --adapter: {error}")
    if options.numpy:
        try:
            return numpy_tests.run(options, names_in(options.files))
        except LookupError as error:
            parser.error(str(error.args[0]))
    areas, functions = names_in(options.area), names_in(options.functions)
    lost = selection.not_found(areas, functions)
    if lost or not any(selection.choose(areas, functions)):
        parser.error(f"no function has this name, or no topic contains this text: {', '.join(lost or functions)}")
    with under_test:
        return fuzz(options) if options.fuzz else run(options)
