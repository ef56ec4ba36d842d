"""Which functions a run of the suite is about."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from numpy_dist.conformance import suite
from numpy_dist.conformance.case import Case


def topic_of() -> dict[Any, str]:
    """The first topic that has a case of a function."""
    found: dict[Any, str] = {}
    for topic in suite.topics():
        for case in topic.cases:
            found.setdefault(case.function, topic.title)
            found.setdefault(suite.owner_of(case.function), topic.title)
    return found


def is_meant(label: str, names: Iterable[str]) -> bool:
    """Whether a label such as ``numpy.linalg.norm`` is meant by one of the names: ``linalg.norm``, ``norm``."""
    plain = label.removesuffix(" (ufunc)")
    return any(name in (label, plain) or plain.endswith(f".{name}") for name in names)


def choose(areas: Iterable[str] = (), functions: Iterable[str] = ()) -> Iterator[tuple[str, str, tuple[Case, ...]]]:
    """The title of the topic, label and cases of each function that is asked for (default: all), sorted by both.

    Parameters
    ----------
    areas : iterable of str
        Parts of titles of topics, such as ``"sorting"``.
    functions : iterable of str
        Names of functions, with or without their modules.
    """
    titles, areas, functions = topic_of(), [area.lower() for area in areas], list(functions)
    rows = [(titles[its[0].function], label, its) for label, its in suite.groups().items()]
    for title, label, its in sorted(rows, key=lambda row: row[:2]):
        in_area = not areas or any(area in title.lower() for area in areas)
        if in_area and (not functions or is_meant(label, functions)):
            yield title, label, its
