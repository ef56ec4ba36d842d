"""Elements moved by kernels: in the same order as by NumPy, for any division, also by parts of the owners' rows."""

from __future__ import annotations

import numpy as np
import pytest

from numpy_dist import engine
from numpy_dist.backends.compiled.backend import Compiled
from numpy_dist.backends.compiled.compiler import Compiler
from numpy_dist.parallel import division, picking, sample_sort
from numpy_dist.spmd_testing import run_simulated

RANKS = pytest.mark.parametrize("ranks", [2, 3, 7])


class Space(division.Plain):
    """NumPy's memory; elements are moved by kernels, which count how many times they are used."""

    def __init__(self, backend: Compiled) -> None:
        self.backend, self.used = backend, 0

    @property
    def mover(self):
        return self

    def moving(self, places, count, back=False):
        move = self.backend.mover.moving(places, count, back)
        self.used += move is not None and count > 0
        return move

    def rows(self, *arguments, **options):
        done = self.backend.mover.rows(*arguments, **options)
        self.used += done
        return done


@pytest.fixture(scope="module")
def backend(kernel_cache):
    pytest.importorskip("numba")
    compiler = Compiler(kernel_cache, 1 << 30)
    made = Compiled(compiler, 1, "first")
    yield made
    made.pool.close()
    compiler.close()


def _points(n: int, ranks: int) -> tuple[int, ...]:
    inner = sorted((k * k * n) // (ranks * ranks) for k in range(1, ranks))
    if ranks > 2:
        inner[1] = inner[0]
    return (0, *inner, n)


def _small(monkeypatch, parts: bool) -> None:
    for module in (picking, division):
        monkeypatch.setattr(module, "ELEMENTS", 16)
    if parts:
        monkeypatch.setattr(picking, "MANY", 4)
        monkeypatch.setattr(picking, "PART_BYTES", 64)
        monkeypatch.setattr(picking, "MOST_PARTS", 20)


@pytest.mark.slow
@RANKS
@pytest.mark.parametrize("dtype", ["i1", "f2", "f4", "f8", "M8[s]", "S4", "c16", "U3"])
@pytest.mark.parametrize("parts", [False, True], ids=["by rank", "by part"])
@pytest.mark.parametrize("times", [0, 1000], ids=["asked for", "all"])
def test_rows_are_picked(ranks, dtype, parts, times, backend, monkeypatch):
    _small(monkeypatch, parts)
    for name in ("TIMES", "TIMES_SMALL"):
        monkeypatch.setattr(picking, name, times)

    def on_rank() -> None:
        comm, space = engine.runtime().comm, Space(backend)
        for n in (1000, 97, 1):
            array = np.random.default_rng(n).integers(0, 99, n).astype("i8").astype(dtype)
            points = _points(n, ranks)
            block = array[points[comm.rank] : points[comm.rank + 1]]
            for size in (333 * (comm.rank % 2), 40 * comm.rank, 50):
                wanted = np.random.default_rng(size + comm.rank).integers(0, n, size)
                np.testing.assert_array_equal(picking.pick(block, points, wanted, comm, space), array[wanted])
        # Of larger elements only the positions are moved so.
        assert any(comm.allgather(space.used)) or np.dtype(dtype).itemsize > 8

    run_simulated(ranks, on_rank)


@RANKS
@pytest.mark.parametrize("dtype", ["?", "i2", "f4", "f8", "c16"])
@pytest.mark.parametrize("parts", [False, True], ids=["by rank", "by part"])
def test_rows_are_stored(ranks, dtype, parts, backend, monkeypatch):
    """Of several values for one row the last one stays, in the order of all."""
    _small(monkeypatch, parts)
    n = 300

    def on_rank() -> None:
        comm, space = engine.runtime().comm, Space(backend)
        points, rng = _points(n, ranks), np.random.default_rng(5)
        wanted = [rng.integers(0, n, 97 * rank) for rank in range(ranks)]
        values = [rng.integers(0, 99, len(part)).astype(dtype) for part in wanted]
        expected = np.zeros(n, dtype)
        expected[np.concatenate(wanted)] = np.concatenate(values)
        own = slice(points[comm.rank], points[comm.rank + 1])
        where, what = picking.route(points, wanted[comm.rank], values[comm.rank], comm, space)
        block = np.zeros_like(expected[own])
        picking.store(block, points[comm.rank], where, what, space)
        np.testing.assert_array_equal(block, expected[own])
        assert any(comm.allgather(space.used))

    run_simulated(ranks, on_rank)


@RANKS
@pytest.mark.parametrize("dtype", ["?", "i2", "f4", "f8", "i8", "m8[s]", "c16"])
def test_sorting(ranks, dtype, backend, monkeypatch):
    monkeypatch.setattr(division, "ELEMENTS", 64)

    def on_rank() -> None:
        comm, space = engine.runtime().comm, Space(backend)
        for alike in (1, 7, 10**6):
            parts = [np.random.default_rng(r + 1).integers(0, alike, 500 * r + 3).astype(dtype) for r in range(ranks)]
            whole = np.concatenate(parts)
            first = sum(map(len, parts[: comm.rank]))
            part, counts = sample_sort.sort(parts[comm.rank], "stable", comm, space)
            own = slice(sum(counts[: comm.rank]), sum(counts[: comm.rank + 1]))
            np.testing.assert_array_equal(part, np.sort(whole)[own])
            places, counts = sample_sort.positions_in_order(parts[comm.rank], first, comm, space)
            own = slice(sum(counts[: comm.rank]), sum(counts[: comm.rank + 1]))
            np.testing.assert_array_equal(places, np.argsort(whole, kind="stable")[own])
        assert any(comm.allgather(space.used))

    run_simulated(ranks, on_rank)


def test_parts_are_in_order(backend, monkeypatch):
    """What arrives is sorted by parts of the rows, and within one of them in the order in which it was sent."""
    _small(monkeypatch, True)

    def on_rank() -> None:
        comm = engine.runtime().comm
        wanted = np.random.default_rng(3).integers(0, 1000, 400)
        where, what = picking.route((0, 333, 1000), wanted, np.arange(400.0), comm, Space(backend))
        first = slice(0, len(where) // 2)  # what rank 0 has sent; both ranks have the same
        parts, numbers = where[first].astype(int) >> 6, what[first]
        assert len(np.unique(parts)) > 3 and np.all(np.diff(parts) >= 0)
        for part in np.unique(parts):
            assert np.all(np.diff(numbers[parts == part]) > 0)

    run_simulated(2, on_rank)
