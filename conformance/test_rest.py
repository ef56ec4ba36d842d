"""The cases that are not in the sample: with `test_sample` all of them have run, as by `test_functions`.

A function with known differences has all its cases here, since each difference must appear in one of them.
"""

from __future__ import annotations

import functools

import pytest

from numpy_dist.conformance import adapter
from numpy_dist.conformance.case import Case
from numpy_dist.conformance.checking.tally import run
from numpy_dist.conformance.suite import groups
from numpy_dist.conformance.test_sample import is_sampled

pytestmark = pytest.mark.spmd(ranks=(1,))


@functools.cache
def rest() -> dict[str, list[Case]]:
    """The cases that are left, by function."""
    differing = {known.function for known in adapter.current().differences()}
    left = {
        name: [case for k, case in enumerate(cases) if case.function in differing or not is_sampled(name, k)]
        for name, cases in groups().items()
    }
    return {name: cases for name, cases in left.items() if cases}


@pytest.mark.parametrize("name", rest())
def test_rest(name: str) -> None:
    problems = run(rest()[name], ["0"])
    assert not problems, "\n".join(problems)
