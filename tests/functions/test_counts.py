"""What ranks tell each other before they exchange elements: of many ranks the same as of few, without their table."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import numpy_dist
from numpy_dist import engine
from numpy_dist.comm.counting import CountingCommunicator
from numpy_dist.comm.detect import get_communicator
from numpy_dist.comm.simulated import run_simulated
from numpy_dist.parallel import counts, sample_sort, selection
from numpy_dist.settings import config

rng = np.random.default_rng(6)
NUMBERS, SAME = rng.standard_normal(500), rng.integers(0, 3, 500)
PLACES = rng.integers(0, 500, 400)


def _at(m: Any, x: Any) -> Any:
    x = x.copy()
    m.add.at(x, PLACES, 1.0)
    return x


def _put(x: Any) -> Any:
    x = x.copy()
    x[PLACES] = np.arange(400.0)
    return x


CALLS = {
    "sort": lambda m, x, k: m.sort(x),
    "sort of equal elements": lambda m, x, k: m.sort(k),
    "argsort": lambda m, x, k: m.argsort(k, kind="stable"),
    "unique": lambda m, x, k: m.unique(k, return_inverse=True)[1],
    "lexsort": lambda m, x, k: m.lexsort((x, k)),
    "median": lambda m, x, k: m.quantile(x, [0.1, 0.5, 0.93]),
    "take": lambda m, x, k: x[m.argsort(x)],
    "put": lambda m, x, k: _put(x),
    "at": lambda m, x, k: _at(m, x),
    "reduceat": lambda m, x, k: m.add.reduceat(x, np.sort(PLACES[::9])),
}


@pytest.mark.parametrize("name", CALLS)
def test_without_the_table(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counts, "FEW", 1)
    monkeypatch.setattr(selection, "FEW", 20)
    monkeypatch.setattr(selection, "SAMPLES", 8)
    call = CALLS[name]

    def on_rank() -> np.ndarray:
        found = call(np, numpy_dist.asarray(NUMBERS), numpy_dist.asarray(SAME))
        return engine.gather(found) if engine.is_handle(found) else found

    expected = call(np, NUMBERS, SAME)
    with config(MIN_SHARD_BYTES=0):
        for found in run_simulated(3, on_rank):
            np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


def test_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    def on_rank() -> list[list[int]]:
        comm = get_communicator()
        return [counts.summed([comm.rank + k for k in range(n)], comm) for n in (0, 1, 4, 9)]

    few = run_simulated(4, on_rank)
    monkeypatch.setattr(counts, "FEW", 1)
    assert run_simulated(4, on_rank) == few and few[0][1:3] == [[6], [6, 10, 14, 18]]


def test_a_sort_tells_each_rank_a_number_for_each_other() -> None:
    """Not a table of them: what a rank contributes to collectives grows with the ranks, what it gets does, too."""
    most = []
    for ranks in (64, 1024):
        comm = CountingCommunicator(1, ranks, {})
        received = []
        gather = comm._allgather_parts
        comm._allgather_parts = lambda part, sizes, gather=gather, into=received: into.append(sum(sizes)) or gather(
            part, sizes
        )
        sample_sort.sort(np.random.default_rng(2).random(100), None, comm)
        most.append(max(received))
    assert most[1] <= 1024 * 100 * 8  # the samples; the table would take four times as much
