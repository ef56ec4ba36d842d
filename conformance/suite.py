"""All cases, by function, and how a run of them is judged."""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from numpy_dist.conformance import adapter, cases, known_differences
from numpy_dist.conformance.case import Case, Topic
from numpy_dist.conformance.oracle import check
from numpy_dist.dispatch.core.keys import name_of

_added: list[Topic] = []


def add(topic: Topic) -> None:
    """Let the suite run the cases of one more topic: of overrides that somebody else has written."""
    _added.append(topic)
    for cached in (topics, cases_by_function, groups):
        cached.cache_clear()


def added() -> tuple[Topic, ...]:
    """The topics that were added."""
    return tuple(_added)


@functools.cache
def topics() -> tuple[Topic, ...]:
    """The topics, sorted by the names of their modules; then those that were added."""
    names = sorted(module.name for module in pkgutil.iter_modules(cases.__path__))
    return (*(importlib.import_module(f"{cases.__name__}.{name}").TOPIC for name in names), *_added)


@functools.cache
def cases_by_function() -> dict[Any, tuple[Case, ...]]:
    """The cases of each function, in the order in which the topics have them."""
    found: dict[Any, list[Case]] = {}
    for topic in topics():
        for case in topic.cases:
            if not known_differences.crashes_numpy(case):
                found.setdefault(case.function, []).append(case)
    return {function: tuple(its) for function, its in found.items()}


def owner_of(function: Any) -> Any:
    """The ufunc that a function is a method of, else the function itself."""
    owner = getattr(function, "__self__", None)
    return owner if isinstance(owner, np.ufunc) else function


def label(function: Any) -> str:
    """A name for a function that no other has: ``numpy.linalg.trace``, ``numpy.clip (ufunc)``."""
    name = name_of(function)
    if isinstance(function, np.ufunc):
        return f"{name if name.startswith('numpy.') else f'numpy._core.umath.{name}'} (ufunc)"
    return name


@functools.cache
def groups() -> dict[str, tuple[Case, ...]]:
    """The cases by the labels of their functions, those of a ufunc together with those of its methods; sorted."""
    found: dict[str, list[Case]] = {}
    for function, its in cases_by_function().items():
        found.setdefault(label(owner_of(function)), []).extend(its)
    return {name: tuple(found[name]) for name in sorted(found)}


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
