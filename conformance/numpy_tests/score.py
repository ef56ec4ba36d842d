"""Scores of arrays under test by NumPy's tests: what they pass of what an ideal duck array passes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from numpy_dist.conformance.numpy_tests.left_out import difference_of
from numpy_dist.conformance.numpy_tests.runs import NumPyOutcome

__all__ = ["Score", "differing", "score_of", "table", "total"]


class Score(NamedTuple):
    """Counts of the tests of a file, or of several.

    Attributes
    ----------
    tests : int
        All that were run.
    left_out : int
        Those that were not, by the table.
    duck : int
        Those that the duck array passes: the yardstick.
    passed : int
        Of these, those that the arrays under test pass.
    known : int
        Of these, those that fail as the table of differences says.
    broken : int
        Crashes and hangs, of all tests.
    """

    tests: int
    left_out: int
    duck: int
    passed: int
    known: int
    broken: int

    @property
    def percent(self) -> float:
        """What is passed of what the duck array passes; 100 of nothing."""
        return 100 * self.passed / self.duck if self.duck else 100.0

def score_of(yardstick: Mapping[str, NumPyOutcome], found: Mapping[str, NumPyOutcome]) -> Score:
    """The score of a file, from the outcomes of its tests with the duck array and with the arrays under test."""
    run = [name for name, outcome in found.items() if outcome.outcome != "left out"]
    by_duck = [name for name, outcome in yardstick.items() if outcome.outcome == "passed"]
    passed = [name for name in by_duck if _passes(found.get(name))]
    known = [name for name in by_duck if not _passes(found.get(name)) and difference_of(name)]
    broken = [name for name in run if found[name].outcome in ("crashed", "hung")]
    return Score(len(run), len(found) - len(run), len(by_duck), len(passed), len(known), len(broken))


def _passes(outcome: NumPyOutcome | None) -> bool:
    return outcome is not None and outcome.outcome == "passed"


def total(scores: Mapping[str, Score]) -> Score:
    """The sum of scores."""
    return Score(*(map(sum, zip(*scores.values(), strict=True)) if scores else [0] * len(Score._fields)))


def differing(yardstick: Mapping[str, NumPyOutcome], found: Mapping[str, NumPyOutcome]) -> Iterator[str]:
    """What differs from the duck array, in words: each test, and what its failure says."""
    for name, outcome in yardstick.items():
        own = found.get(name, NumPyOutcome("not run", ""))
        if outcome.outcome == "passed" and own.outcome != "passed":
            reason = difference_of(name)
            yield f"{name}: {own.outcome}{f' (known: {reason})' if reason else ''}: {own.message}"
    for name, own in found.items():
        if own.outcome in ("crashed", "hung") and yardstick.get(name, own).outcome != "passed":
            yield f"{name}: {own.outcome}: {own.message}"


def table(scores: Mapping[str, Score]) -> Iterator[str]:
    """The scores of files and their total, in columns."""
    width = max(map(len, [*scores, "file"]))
    yield f"{'file':{width}}  tests  left out   duck   ours      %  known  crashes and hangs"
    for name, score in {**scores, "all": total(scores)}.items():
        counts = f"{score.tests:5}  {score.left_out:8}  {score.duck:5}  {score.passed:5}  {score.percent:5.1f}"
        yield f"{name:{width}}  {counts}  {score.known:5}  {score.broken:17}"
