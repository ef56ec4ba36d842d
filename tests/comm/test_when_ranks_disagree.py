"""The examples of docs/when-ranks-disagree.md, on two ranks: they end as the page says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.comm.pages import Example, examples, outcome

PAGE = Path(__file__).parents[2] / "docs" / "when-ranks-disagree.md"
EXAMPLES = examples(PAGE.read_text())


def test_the_page_has_examples() -> None:
    assert len(EXAMPLES) >= 10 and sum(not example.expected for example in EXAMPLES) == 1


@pytest.mark.parametrize("example", EXAMPLES, ids=range(len(EXAMPLES)))
def test_an_example_ends_as_the_page_says(example: Example) -> None:
    assert outcome(example.code) == example.expected
