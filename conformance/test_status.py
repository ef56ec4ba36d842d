"""docs/api-status.md is what the table and the cases say."""

from __future__ import annotations

import re

import numpy as np
import pytest

from numpy_dist.conformance import status


def test_the_page_is_up_to_date() -> None:
    if not status.DEFAULT.exists():
        pytest.skip("no docs beside the package: it is installed from a wheel")
    page = status.DEFAULT.read_text(encoding="utf-8")
    version = ".".join(np.__version__.split(".")[:2])
    if f"with\nNumPy {version}." not in page:
        pytest.skip("the page was made with another version of NumPy")
    assert page == status.text(), "run `python -m numpy_dist.conformance.status`"


def test_every_function_stands_in_it_once() -> None:
    rows = re.findall(r"^\| `([^`]+)` \|", status.text(), re.MULTILINE)
    assert len(rows) == len(set(rows))
