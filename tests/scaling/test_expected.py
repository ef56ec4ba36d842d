"""Counts that depend on elements which nobody has computed: those of evenly distributed ones, and told as such."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import numpy_dist
from numpy_dist import engine
from numpy_dist.comm.simulated import run_simulated
from numpy_dist.scaling.counted import AssumedValue, JobPlan, RankPlan
from numpy_dist.scaling.machine import MachineSpeeds
from numpy_dist.scaling.simulation import plan_rank
from numpy_dist.scaling.text import job_lines
from numpy_dist.settings import config

ELEMENTS = 20_000


def _random(seed: int = 1) -> Any:
    """Even numbers of 0 to 1 that a loop has to compute, so that a plan does not know them."""
    return numpy_dist.random.default_rng(seed).random(ELEMENTS) * 1.0


def ordered() -> Any:
    return np.sort(_random())


def order() -> Any:
    return np.argsort(_random())


def different() -> Any:
    return np.unique(_random())


def labels() -> Any:
    return np.unique(np.floor(_random() * 1000).astype(np.int64), return_inverse=True, return_counts=True)


def selected() -> Any:
    x = _random()
    return x[x > 0.5], np.flatnonzero(x < 0.5)


def picked() -> Any:
    x = _random()
    return x[(_random(2) * ELEMENTS).astype(np.int64)]


def put() -> Any:
    x = _random()
    x[(_random(2) * ELEMENTS).astype(np.int64)] = 1.0
    return x


def largest() -> Any:
    return np.partition(_random(), ELEMENTS - 10)[-10:]


def percentiles() -> Any:
    return np.percentile(_random(), [5, 50, 99])


def _really(program: Any) -> tuple[int, ...]:
    result = program()
    engine.flush()
    rt = engine.runtime()
    counters = rt.comm.counters
    found = rt.pool.peak, counters.bytes, counters.messages, counters.collectives
    del result
    return found


@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("program", [ordered, order, different, labels, selected, picked, put, largest, percentiles])
def test_counts_are_near_those_of_even_elements(program, ranks):
    with config(MIN_SHARD_BYTES=0, AT_ONCE=0, BACKEND="numpy"):
        really = run_simulated(ranks, _really, program)
        broadcasts: dict[int, list] = {}
        planned = [plan_rank(program, rank, ranks, broadcasts) for rank in range(ranks)]
    assert [rank.ending for rank in planned] == [""] * ranks
    for rank, found in zip(planned, really, strict=True):
        assert (rank.messages, rank.collectives) == found[2:]
        share = 0.1 if program is labels else 0.05  # how many labels differ is a guess
        assert (rank.peak, rank.bytes) == pytest.approx(found[:2], rel=share)
        assert rank.expected, "it is told that these counts are expected ones"


def test_what_is_sorted_has_as_many_elements_as_before() -> None:
    """Other ranks are taken to have as many as this one; where shares differ these would be others than there are."""

    def program() -> Any:
        x = numpy_dist.random.default_rng(1).random(50_000) * 1.0
        return np.sort(x) - x, x[np.argsort(x)] - x, x[np.lexsort((x, x))] - x, np.unique(x, return_inverse=True)

    with config(MIN_SHARD_BYTES=0, AT_ONCE=0):
        assert [plan_rank(program, rank, 3).ending for rank in range(3)] == [""] * 3


def test_order_statistics_of_uneven_shares() -> None:
    def program() -> Any:
        x = numpy_dist.ones((600, 8))
        y = x[1:-1] + x[2:] - x[:-2]
        return np.percentile(y, [5, 95]), np.median(y[3:])

    with config(MIN_SHARD_BYTES=0, AT_ONCE=0):
        assert [plan_rank(program, rank, 7).ending for rank in range(7)] == [""] * 7


def test_masks_are_half_true_and_numbers_are_zero_afterwards() -> None:
    def program() -> Any:
        x = _random()
        half = x[x > 5.0].size
        np.sort(x)
        return half, float(x[7]), np.sort(_random()).gather()

    sizes = []

    def noted() -> Any:
        half, value, gathered = program()
        sizes.append((half, value, float(np.ptp(gathered))))

    with config(MIN_SHARD_BYTES=0, AT_ONCE=0):
        rank = plan_rank(noted, 0, 2)
    assert rank.ending == ""
    ((half, value, spread),) = sizes
    assert (half, value) == (ELEMENTS // 2, 0.0) and spread > 0.9
    told = [(each.what, each.text) for each in rank.expected]
    assert ("masks: every other element is taken to be true", "half = x[x > 5.0].size") in told
    assert ("numpy.sort: values are taken to be evenly distributed", "np.sort(x)") in told
    lines = job_lines(JobPlan(2, [rank]), MachineSpeeds())
    (place,) = [number for number, line in enumerate(lines) if line.startswith("expected")]
    assert "numpy.sort" in "".join(lines[place:]) and "half = x[x > 5.0].size" in "".join(lines[place:])


def test_shares_that_are_too_large_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("numpy_dist.scaling.expected.MOST_EXPECTED", 1000)

    def program() -> Any:
        x = _random()
        return np.sort(x), x[x > 0.5], x[(x * 9).astype(np.int64)]

    with config(MIN_SHARD_BYTES=0, AT_ONCE=0):
        rank = plan_rank(program, 1, 2)
    assert rank.ending == ""
    assert {each.what.partition(":")[0] for each in rank.expected} == {"numpy.sort", "masks", "index"}
    assert all("too large here to have values" in each.what for each in rank.expected)


def test_divisions_by_values_that_are_assumed() -> None:
    def program() -> Any:
        return np.average(_random(), weights=_random(2))

    with config(MIN_SHARD_BYTES=0, AT_ONCE=0):
        ended, other = plan_rank(program, 0, 2), plan_rank(program, 0, 2, value=1.0)
    assert other.ending == "" and isinstance(other, RankPlan)
    assert all(isinstance(value, AssumedValue) for value in other.values)
    lines = job_lines(JobPlan(2, [ended]), MachineSpeeds())
    assert "ZeroDivisionError" in "".join(lines) and lines[-1].endswith("--value 1")
