"""A run of cases, and its problems: what differs, but for known differences, which must appear."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from numpy_dist.conformance import adapter, known_differences
from numpy_dist.conformance.case import Case
from numpy_dist.conformance.checking.oracle import check
from numpy_dist.dispatch.core.keys import name_of


@dataclass
class Tally:
    """How a run of cases went.

    Attributes
    ----------
    cases, passed : int
        Runs: a case in two layouts counts twice. Those with known differences have passed.
    known : int
        Runs with known differences only.
    problems : list of str
        What differs and is not a known difference, and known differences that were not seen in any of the cases of
        their function (an unexpected pass).
    """

    cases: int = 0
    passed: int = 0
    known: int = 0
    problems: list[str] = field(default_factory=list)


def run(chosen: Iterable[Case], seeds: Iterable[str], attempt: Callable[[Case, str], list[str]] = check) -> list[str]:
    """Check cases on the calling rank (collective): the problems of `tally`."""
    return tally(chosen, seeds, attempt).problems


def tally(chosen: Iterable[Case], seeds: Iterable[str], attempt: Callable[[Case, str], list[str]] = check) -> Tally:
    """Check cases on the calling rank (collective).

    Parameters
    ----------
    chosen : iterable of Case
    seeds : iterable of str
        For each of them a layout.
    attempt : callable, optional
        What checks one case: `check`, or what survives its errors.
    """
    chosen, seeds = list(chosen), list(seeds)
    found, seen, listed = Tally(), set(), adapter.current().differences()
    for case in chosen:
        for seed in seeds:
            problems = attempt(case, seed)
            explained = [known_differences.matching(case, problem, listed) for problem in problems]
            seen |= set().union(*explained)
            found.cases += 1
            found.passed += all(explained)
            found.known += bool(explained) and all(explained)
            found.problems += [text for text, known in zip(problems, explained, strict=True) if not known]
    functions = {case.function for case in chosen}
    varied = {case.function for case in chosen if case.variant}
    found.problems += [
        f"{name_of(known.function)}: the known difference '{known.text}' did not appear; take it from the list"
        for known in listed
        if known.function in (varied if known.variants else functions)
        and known not in seen
        and known.here
        and not known.by_layout
    ]
    return found
