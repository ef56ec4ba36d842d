"""`numpy-dist conformance --numpy`: NumPy's own tests at several numbers of ranks, scored by an ideal duck array."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from numpy_dist.conformance.numpy_tests import files, left_out, score
from numpy_dist.conformance.numpy_tests.runs import ArraysUnderTest, outcomes

__all__ = ["SAMPLE", "add_options", "chosen", "given", "run"]

_DUCKS = ArraysUnderTest("numpy_dist.conformance.duck:Ducks", 1)
LEAST_PERCENT = 99.5  # of what the duck array passes
# A few minutes' worth, for every change.
SAMPLE = ("lib.test_shape_base", "lib.test_twodim_base", "lib.test_ufunclike")


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options that belong to ``--numpy``."""
    group = parser.add_argument_group("NumPy's own tests")
    group.add_argument(
        "--numpy", action="store_true", help="run the tests of the installed NumPy on distributed arrays"
    )
    group.add_argument(
        "--files", action="append", default=[], help="with --numpy: umath,lib.io, or sample (repeatable)"
    )
    group.add_argument("--tests", metavar="WORDS", help="with --numpy: only these, as pytest's -k")
    group.add_argument("--results", type=Path, metavar="FOLDER", help="with --numpy: keeps what has been run, to go on")
    group.add_argument(
        "--test-seconds", type=float, default=120.0, metavar="S", help="time limit (default: %(default)s)"
    )


def given(options: argparse.Namespace) -> bool:
    """Whether an option is given that belongs to ``--numpy``."""
    return bool(options.files or options.tests or options.results)


def chosen(names: Sequence[str]) -> list[str]:
    """The files that the words of ``--files`` mean; all that are not left out if there are none."""
    return list(files.choose([name for word in names for name in (SAMPLE if word == "sample" else (word,))]))


def run(options: argparse.Namespace, names: Sequence[str]) -> int:
    """Run the tests; returns the exit code: 1 for a crash, a hang, an unexplained difference or too low a score."""
    failed, least = False, LEAST_PERCENT if options.at_least is None else options.at_least
    selected = chosen(names)
    with ExitStack() as stack:
        folder = options.results or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="numpy_dist-")))
        folder = folder.resolve()
        folder.mkdir(parents=True, exist_ok=True)
        for ranks in options.ranks:
            subject, scores = ArraysUnderTest(options.adapter, ranks, options.backend), {}
            for file in selected:
                yardstick = outcomes(file, _DUCKS, folder, options.test_seconds, options.tests)
                found = outcomes(file, subject, folder, options.test_seconds, options.tests)
                print(*score.differing(yardstick, found), sep="\n", flush=True)
                scores[file] = score.score_of(yardstick, found)
            print(f"\n{subject.label}: NumPy's own tests", *score.table(scores), sep="\n", flush=True)
            whole = score.total(scores)
            failed |= bool(whole.broken) or whole.percent < least
    for reason, group in left_out.FILES.items():
        print(f"not run: {reason}: {', '.join(group.split())}")
    return int(failed)
