"""docs/api-status.md is what the table and the cases say."""

from __future__ import annotations

import re

import numpy as np
import pytest

from numpy_dist.conformance import coverage, status


def test_the_page_is_up_to_date() -> None:
    if not status.DEFAULT.exists():
        pytest.skip("no docs beside the package: it is installed from a wheel")
    page = status.DEFAULT.read_text(encoding="utf-8")
    version = ".".join(np.__version__.split(".")[:2])
    if f"with\nNumPy {version}." not in page:
        pytest.skip("the page was made with another version of NumPy")
    assert page == status.text(), "run `python -m numpy_dist.conformance.status`"


def test_the_counts_in_the_readme() -> None:
    readme = status.DEFAULT.parent.parent / "README.md"
    if not readme.exists() or np.__version__[:3] != "2.4":
        pytest.skip("no README beside the package, or it counts the functions of another version of NumPy")
    native, functions, native_targets, targets = coverage.share()
    text = " ".join(readme.read_text(encoding="utf-8").split())
    assert f"{native} of {functions} functions and {native_targets} of {targets} ufuncs and ufunc methods" in text


def test_every_function_stands_in_it_once() -> None:
    rows = re.findall(r"^\| `([^`]+)` \|", status.text(), re.MULTILINE)
    assert len(rows) == len(set(rows))
