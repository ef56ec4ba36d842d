"""Generated cases against NumPy, over random layouts: on one rank, in MPI jobs, and on simulated ranks."""

from __future__ import annotations

import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from numpy_dist.argument_types import Keywords
from numpy_dist.conformance import known_differences
from numpy_dist.conformance.checking.oracle import check
from numpy_dist.conformance.generated import FAMILIES
from numpy_dist.spmd_testing import run_simulated

pytestmark = pytest.mark.spmd(ranks=(1, 3))
QUIET: Keywords = {"deadline": None, "suppress_health_check": list(HealthCheck)}


def problems(case, seed):
    return [text for text in check(case, str(seed)) if not known_differences.matching(case, text)]


def body(name):
    @given(FAMILIES[name](), st.integers(0, 99))
    def run(case, seed):
        found = problems(case, seed)
        assert not found, "\n".join(found)

    return run


@pytest.mark.parametrize("name", FAMILIES)
def test_generated(name):
    settings(max_examples=40, derandomize=True, database=None, **QUIET)(body(name))()


@pytest.mark.long
@pytest.mark.parametrize("name", FAMILIES)
def test_many_generated(name):
    settings(max_examples=3000, derandomize=True, database=None, **QUIET)(body(name))()


@pytest.mark.parametrize("ranks", (2, 5))
@pytest.mark.parametrize("name", FAMILIES)
def test_on_simulated_ranks(name, ranks):
    @settings(max_examples=25, derandomize=True, database=None, **QUIET)
    @given(FAMILIES[name](), st.integers(0, 99))
    def run(case, seed):
        found = run_simulated(ranks, problems, case, seed)[0]
        assert not found, "\n".join(found)

    random.seed(0)
    run()
