"""Rows to and from their owners, by any division and any way in which they can travel."""

from __future__ import annotations

import numpy as np
import pytest

from numpy_dist import engine
from numpy_dist.parallel import division, picking
from numpy_dist.spmd_testing import run_simulated

RANKS = pytest.mark.parametrize("ranks", [1, 2, 3, 7])


def _points(n: int, ranks: int) -> tuple[int, ...]:
    """Uneven cuts; where there are several ranks, one has nothing."""
    inner = sorted((k * k * n) // (ranks * ranks) for k in range(1, ranks))
    if ranks > 2:
        inner[1] = inner[0]
    return (0, *inner, n)


@RANKS
@pytest.mark.parametrize("times", [0, 1000], ids=["asked for", "all"])
@pytest.mark.parametrize("compared", [0, 16])
def test_rows_are_picked(ranks, times, compared, monkeypatch):
    for name in ("TIMES", "TIMES_SMALL"):
        monkeypatch.setattr(picking, name, times)
    monkeypatch.setattr(picking, "MOST_COMPARED", compared)
    for module in (picking, division):
        monkeypatch.setattr(module, "ELEMENTS", 16)

    def on_rank() -> None:
        comm = engine.runtime().comm
        for n, shape, dtype in ((1000, (), "f8"), (97, (3, 2), "i2"), (97, (0,), "f8"), (50, (), "U3"), (1, (), "?")):
            array = np.random.default_rng(n).integers(0, 99, (n, *shape)).astype(dtype)
            points = _points(n, ranks)
            block = array[points[comm.rank] : points[comm.rank + 1]]
            for size in (0, 1, 333 * (comm.rank % 2), 40 * comm.rank):
                wanted = np.random.default_rng(size + comm.rank).integers(0, n, size)
                found = picking.pick(block, points, wanted, comm)
                assert found.dtype == array.dtype
                np.testing.assert_array_equal(found, array[wanted])

    run_simulated(ranks, on_rank)


@RANKS
def test_rows_are_put(ranks, monkeypatch):
    """Of several values for one row, the last in the order of all stays; other rows are told apart."""
    for module in (picking, division):
        monkeypatch.setattr(module, "ELEMENTS", 16)
    monkeypatch.setattr(picking, "MOST_COMPARED", 3)
    n = 90

    def on_rank() -> None:
        comm = engine.runtime().comm
        points = _points(n, ranks)
        for shape in ((), (2,)):
            rng = np.random.default_rng(5)
            parts = [rng.integers(0, n, 17 * rank) for rank in range(ranks)]
            values = [rng.random((len(part), *shape)) for part in parts]
            expected, written = np.zeros((n, *shape)), np.zeros(n, bool)
            for part, value in zip(parts, values, strict=True):
                expected[part], written[part] = value, True
            own = slice(points[comm.rank], points[comm.rank + 1])
            new, chosen = picking.put(expected[own], points, parts[comm.rank], values[comm.rank], comm)
            np.testing.assert_array_equal(new, expected[own])
            np.testing.assert_array_equal(chosen, written[own])

    run_simulated(ranks, on_rank)


def test_messages():
    """Two each way between any two ranks, or all rows of a rank at once; positions travel in 32 bits."""

    def on_rank() -> None:
        comm = engine.runtime().comm
        n, me = 4000, comm.rank
        points = (0, 1000, 2000, 3000, 4000)
        block = np.arange(float(n))[me * 1000 : me * 1000 + 1000]
        for wanted, messages, nbytes in ((np.arange(0, n, 10), 6, 3 * 100 * (4 + 8)), (np.arange(n), 3, 3 * 8000)):
            comm.counters.reset()
            picking.pick(block, points, wanted, comm)
            assert comm.counters.messages == messages and comm.counters.collectives == 1
            assert comm.counters.bytes <= nbytes + 200
        comm.counters.reset()
        picking.put(block, points, np.arange(0, n, 10), np.zeros(400), comm)
        assert comm.counters.messages == 6 and comm.counters.bytes <= 3 * 100 * (4 + 8) + 200

    run_simulated(4, on_rank)


@pytest.mark.parametrize("dtype", ["i1", "u1", "i4", "u4", "i8", "u8"])
def test_negative_indices(dtype, monkeypatch):
    monkeypatch.setattr(picking, "ELEMENTS", 4)
    index = np.arange(20).reshape(4, 5).astype(dtype)
    found, changed = picking.from_zero(index, 20)
    assert changed == (dtype != "i8") and found.dtype == np.intp and (found is index) == (not changed)
    np.testing.assert_array_equal(found, np.arange(20).reshape(4, 5))
    assert picking.from_zero(index, 19) == (None, False)
    assert picking.from_zero(index[:0], 0)[0].shape == (0, 5)
    if index.dtype.kind == "i":
        index -= 20
        found, changed = picking.from_zero(index, 20)
        assert changed
        np.testing.assert_array_equal(found, np.arange(20).reshape(4, 5))
        assert picking.from_zero(index, 19) == (None, False)
        assert index.min() == -20
