"""All cases, by function."""

from __future__ import annotations

import functools
import importlib
import pkgutil

import numpy as np

from numpy_dist.conformance import cases, known_differences
from numpy_dist.conformance.case import Case, Topic
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
def cases_by_function() -> dict[object, tuple[Case, ...]]:
    """The cases of each function, in the order in which the topics have them."""
    found: dict[object, list[Case]] = {}
    for topic in topics():
        for case in topic.cases:
            if not known_differences.crashes_numpy(case):
                found.setdefault(case.function, []).append(case)
    return {function: tuple(its) for function, its in found.items()}


def owner_of(function: object) -> object:
    """The ufunc that a function is a method of, else the function itself."""
    owner = getattr(function, "__self__", None)
    return owner if isinstance(owner, np.ufunc) else function


def label(function: object) -> str:
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
