"""docs/conformance.md names cases that there are."""

from __future__ import annotations

import inspect
import re

import pytest

from numpy_dist.conformance import status, suite

PAGE = status.DEFAULT.parent / "conformance.md"


def rows() -> list[tuple[str, str]]:
    """The case and the statement of each row of the page's table."""
    text = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    found = re.findall(r"^\|.*\| `([^`]+)` \| (?:`([^`]+)` )?\|$", text, re.MULTILINE)
    return [(case.replace("\\|", "|"), statement) for case, statement in found]


def source(via: object) -> str:
    """The statements of a case, or the name of what is called."""
    name = getattr(via, "__name__", "")
    return inspect.getsource(via) if inspect.isfunction(via) else f"{name} operator.{name}"  # type: ignore[arg-type]


@pytest.mark.skipif(not PAGE.exists(), reason="no docs beside the package: it is installed from a wheel")
def test_every_case_of_the_page_is_there() -> None:
    by_text: dict[str, list[str]] = {}
    for topic in suite.topics():
        for case in topic.cases:
            by_text.setdefault(str(case).partition(" via line")[0], []).append(source(case.via) if case.via else "")
    named = rows()
    assert len(named) > 30
    assert [row for row in named if not any(row[1] in text for text in by_text.get(row[0], ()))] == []
