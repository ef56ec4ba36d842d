"""Every function against NumPy, over random layouts, on seven simulated ranks."""

from __future__ import annotations

import pytest

from numpy_dist.conformance.checking.tally import run
from numpy_dist.conformance.suite import groups
from numpy_dist.conformance.test_functions import LONG
from numpy_dist.spmd_testing import run_simulated

RANKS = 7


@pytest.mark.parametrize("name", groups())
def test_function(name: str) -> None:
    problems = run_simulated(RANKS, run, groups()[name], ["simulated"])[0]
    assert not problems, "\n".join(problems)


@pytest.mark.long
@pytest.mark.parametrize("name", groups())
def test_function_in_more_layouts(name: str) -> None:
    problems = run_simulated(RANKS, run, groups()[name], LONG)[0]
    assert not problems, "\n".join(problems)
