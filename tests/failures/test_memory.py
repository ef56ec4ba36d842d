"""Memory that one rank does not get ends the job, and the message tells what it was for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import numpy_dist
from numpy_dist import engine
from numpy_dist.engine.memory import pool as pools
from numpy_dist.engine.memory.limits import AvailableMemory
from numpy_dist.engine.memory.pool import Pool
from numpy_dist.errors import GatherError
from numpy_dist.settings import config
from numpy_dist.spmd_testing import run_simulated
from tests.failures.jobs import SECONDS, run

PREAMBLE = """
import resource, sys
import numpy as np
import numpy_dist
from numpy_dist import engine
rank, size = engine.runtime().rank, engine.runtime().size
x = numpy_dist.asarray(np.zeros((2000, 1000)), split=0)
float((x[1:] + x[:-1]).sum())
if rank == 1:
    used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 20), used + (1 << 20)))
"""


@pytest.mark.slow
def test_a_rank_without_memory_ends_the_job(tmp_path: Path) -> None:
    job = run("mpiexec", PREAMBLE + "a, b, c = x + 1, x + 2, x + 3\nfloat(a.sum() + b.sum() + c.sum())", tmp_path)
    assert job.code != 0 and job.seconds < SECONDS and not job.left, job
    assert job.errors.count("Traceback") == 1 and "[rank 1] Traceback" in job.errors, job.errors
    assert "MemoryError" in job.errors, job.errors
    assert "8000000 bytes were for the part ((1000, 2000), (0, 1000)) of an array of shape (2000, 1000)" in job.errors
    assert "are in use by arrays of this rank" in job.errors


@pytest.mark.slow
def test_a_rank_that_goes_on_without_memory_does_not_keep_the_others(tmp_path: Path) -> None:
    script = """
y = x[1:] + x[:-1]
try:
    z = [y + i for i in range(5)]
    engine.force(*z)
except MemoryError:
    pass
comm = engine.runtime().comm
comm.barrier() if rank == 1 else float(z[-1].sum())
"""
    job = run("mpiexec", PREAMBLE + script, tmp_path)
    assert job.code != 0 and job.seconds < SECONDS and not job.left, job
    assert "MemoryError" in job.errors and "It was caught, but the other ranks could not go on" in job.errors, (
        job.errors
    )
    assert job.errors.count("Traceback") == 1 and "It happened in a call from" in job.errors, job.errors
    assert "script.py:16 in <module>" in job.errors, job.errors


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [2, 3])
def test_ranks_that_all_have_no_memory_go_on(tmp_path: Path, ranks: int) -> None:
    script = """
import numpy as np
import numpy_dist
from numpy_dist import engine
d = numpy_dist.arange(250_000.0)
e = d[1:] + d[:-1]
for attempt in range(3):
    for _ in range(attempt + 1):
        try:
            big = numpy_dist.zeros((10**6, 10**6))
        except MemoryError as error:
            caught = error
    assert float(d.max()) == 249_999, attempt
assert np.array_equal(e.gather(), np.arange(1, 499_999, 2.0))
e += 1
assert float(e.sum()) == float((np.arange(1, 499_999, 2.0) + 1).sum())
if engine.runtime().rank == 0:
    print("caught", type(caught).__name__)
"""
    job = run("mpiexec", script, tmp_path, ranks)
    assert job.code == 0 and "MemoryError" in job.output, job


def test_a_pool_tells_of_memory_that_is_not_to_be_had(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[MemoryError] = []
    pool = Pool(room=lambda: AvailableMemory(1 << 40, 5000), failed=told.append)
    block = pool.take(100)

    def refuse(nbytes: int) -> pools.Block:
        raise MemoryError(f"no {nbytes} bytes")

    monkeypatch.setattr(pools, "make_block", refuse)
    with pytest.raises(MemoryError, match="no 200 bytes") as caught:
        pool.take(200)
    assert told == [caught.value]
    assert caught.value.__notes__ == ["100 bytes are in use by arrays of this rank, and 5000 are available here"]
    assert pool.held == 100 and block.size == 100


def test_the_error_tells_the_layout(monkeypatch: pytest.MonkeyPatch) -> None:
    with config(MIN_SHARD_BYTES=0):
        x = numpy_dist.asarray(np.ones((6, 4)))

        def refuse(nbytes: int) -> pools.Block:
            raise MemoryError("planted")

        engine.runtime().pool.clear()
        monkeypatch.setattr(pools, "make_block", refuse)
        y = x + 1
        with pytest.raises(MemoryError, match="planted") as caught:
            engine.force(y)
    assert any("192 bytes were for the part ((0, 6), (0, 4)) of an array" in note for note in caught.value.__notes__)


def test_what_does_not_fit_is_refused_with_the_numbers_before_anything_is_sent() -> None:
    def on_each_rank() -> tuple[list[str], int, int]:
        comm = engine.runtime().comm
        with config(MIN_SHARD_BYTES=0, MEMORY_BUDGET=1000, FALLBACK="silent"):
            x = numpy_dist.asarray(np.arange(300.0).reshape(30, 10), split=0)
            y = x + 1
            replicated = engine.runtime().replicated_layout((30, 10))
            works: dict[str, Callable[[], Any]] = {
                "gather": lambda: y.gather(),
                "redistribution": lambda: y.redistribute(replicated),
                "opaque": lambda: np.roots(y.reshape(-1)),
            }
            texts = []
            comm.counters.reset()
            for work in works.values():
                with pytest.raises(GatherError) as caught:
                    work()
                texts.append(str(caught.value))
            sent = comm.counters.messages, comm.counters.collectives
            assert y.redistribute(split=1).local.shape[0] == 30  # a share fits
            return (texts, *sent)

    for texts, messages, collectives in run_simulated(4, on_each_rank):
        assert len(texts) == 3 and all("2400" in text and "1000 bytes" in text for text in texts), texts
        assert "redistributing an array of shape (30, 10), float64" in texts[1]
        assert (messages, collectives) == (0, 1), "what the ranks agree on is the budget, once"
