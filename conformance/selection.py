"""Which functions a run of the suite is about."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from numpy_dist.conformance import suite, topics
from numpy_dist.conformance.case import Case


def topic_of() -> dict[object, str]:
    """The topic of NumPy's manual for each function that has cases; of others the first topic that has a case."""
    found: dict[object, str] = {}
    for topic in suite.topics():
        for case in topic.cases:
            for function in (case.function, suite.owner_of(case.function)):
                if function not in found:
                    found[function] = topics.title_of(suite.owner_of(function)) or topic.title
    return found


def _added_titles() -> dict[object, set[str]]:
    """The titles of added topics that have a case of a function."""
    found: dict[object, set[str]] = {}
    for topic in suite.added():
        for case in topic.cases:
            found.setdefault(suite.owner_of(case.function), set()).add(topic.title)
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
        Parts of titles: of topics of NumPy's manual, as ``"sorting"``, or of one that was added.
    functions : iterable of str
        Names of functions, with or without their modules.
    """
    titles, areas, functions = topic_of(), [area.lower() for area in areas], list(functions)
    added = _added_titles()
    rows = [(titles[its[0].function], label, its) for label, its in suite.groups().items()]
    for title, label, its in sorted(rows, key=lambda row: row[:2]):
        its_titles = {title, *added.get(suite.owner_of(its[0].function), ())}
        in_area = not areas or any(area in one.lower() for area in areas for one in its_titles)
        if in_area and (not functions or is_meant(label, functions)):
            yield title, label, its


def not_found(areas: Iterable[str], functions: Iterable[str]) -> list[str]:
    """Those of the texts that no topic, or no function, has."""
    known, labels = set(topic_of().values()).union(*_added_titles().values()), list(suite.groups())
    lost = [area for area in areas if not any(area.lower() in title.lower() for title in known)]
    return lost + [name for name in functions if not any(is_meant(label, [name]) for label in labels)]
