"""Every function against NumPy, over random layouts: on one rank, and in MPI jobs with ``--ranks``."""

from __future__ import annotations

import pytest

from numpy_dist.conformance.checking.tally import run
from numpy_dist.conformance.suite import groups

pytestmark = pytest.mark.spmd(ranks=(1,))
LONG = tuple(str(seed) for seed in range(1, 9))


@pytest.mark.parametrize("name", groups())
def test_function(name: str) -> None:
    problems = run(groups()[name], ["0"])
    assert not problems, "\n".join(problems)


@pytest.mark.long
@pytest.mark.parametrize("name", groups())
def test_function_in_more_layouts(name: str) -> None:
    problems = run(groups()[name], LONG)
    assert not problems, "\n".join(problems)
