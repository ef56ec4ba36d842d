"""Counts of programs for ranks that do not exist are those of ranks that do."""

from __future__ import annotations

import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import numpy_dist
from numpy_dist import checkpoint, engine
from numpy_dist.comm.simulated import run_simulated
from numpy_dist.layout.default import default_layout
from numpy_dist.settings import config


def stencil(grid: Any) -> Any:
    center = grid[1:-1, 1:-1]
    for _ in range(4):
        average = center + grid[:-2, 1:-1] + grid[2:, 1:-1] + grid[1:-1, :-2] + grid[1:-1, 2:]
        center[:] = 0.2 * average
    return grid


def chain(grid: Any) -> Any:
    return np.sqrt(np.abs(np.sin(grid) * 2 + np.cos(grid))) - grid.mean()


def reduction(grid: Any) -> Any:
    rows = grid.sum(axis=1)
    return rows - grid.max(axis=0)[: rows.size].min(), float(grid.sum()) > 0


def redistribution(grid: Any) -> Any:
    return grid + grid.T, grid[::-1, ::-1] * 2, grid.reshape(-1)[::3] + 1


def gathering(grid: Any) -> Any:
    rows = grid[0] + 1
    frame = np.ones(10) if engine.runtime().rank == 0 else None
    return rows.gather(), numpy_dist.asarray(frame, root=0) * 2  # a broadcast of shape and dtype, then messages


def _really(function: Any, values: np.ndarray) -> dict[str, int]:
    grid = numpy_dist.asarray(values)
    rt = engine.runtime()
    rt.counters.reset()
    rt.comm.counters.reset()
    result = function(grid)
    engine.flush()
    del result
    return {**vars(rt.counters), **vars(rt.comm.counters), "written": 0}


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
@pytest.mark.parametrize("function", [stencil, chain, reduction, redistribution, gathering])
def test_counts_are_those_of_a_real_run(function, ranks):
    values = np.random.default_rng(0).random((40, 44))[:, :40]
    with config(MIN_SHARD_BYTES=0, BACKEND="numpy"):
        expected = run_simulated(ranks, _really, function, np.ascontiguousarray(values))
        counts = numpy_dist.count_program(function, np.ascontiguousarray(values), ranks=ranks)
    assert list(counts) == list(range(ranks))
    assert [vars(counts[rank]) for rank in range(ranks)] == expected
    assert counts.most("loops") > 0


@pytest.mark.parametrize("local", [100])
def test_the_stencil_scales(local):
    """With a fixed share for each rank, a rank does and sends the same at any number of ranks."""
    found = {}
    begin = time.process_time()
    for ranks in (4, 64, 1024):
        rows, columns = default_layout((10**6, 10**6), ranks).mesh.shape
        shape = rows * local, columns * local
        with config(MIN_SHARD_BYTES=1):
            found[ranks] = numpy_dist.count_program(stencil, np.broadcast_to(0.0, shape), ranks=ranks)
    assert time.process_time() - begin < 60  # a thousand threads would take longer
    few, some, many = found.values()
    assert len(many) < 64 and {0, 31, 992, 1023} <= set(many)
    for name in ("loops", "reads", "writes", "contracted", "versions", "carried", "halos", "messages", "bytes"):
        assert some.most(name) == many.most(name), name
    assert many.most("messages") == 4 * 4
    assert many.most("bytes") == 4 * 4 * local * 8
    assert few.most("messages") == 4 * 2
    corner = many[0]
    assert (corner.messages, corner.bytes) == (4 * 2, 4 * 2 * (local - 1) * 8)
    assert many.most("fetches") == many.most("gathers") == many.most("collectives") == 0


def test_nothing_is_computed_and_no_memory_taken():
    """The arrays of this program would need 24 TB."""

    def program(x: Any) -> bool:
        y = np.exp(x) + x * x
        return float(y.sum()) == 7.0

    counts = numpy_dist.count_program(program, np.broadcast_to(0.0, 10**12), ranks=5000, only=[0, 500], value=7.0)
    assert list(counts) == [0, 500] and counts[500].loops == counts[500].collectives == 1
    answers = []
    numpy_dist.count_program(lambda x: answers.append(program(x)), np.zeros(100_000), ranks=2, value=7.0)
    assert answers == [True, True]


def test_the_surrounding_program_is_left_alone():
    with config(MIN_SHARD_BYTES=0):
        x = numpy_dist.asarray(np.arange(30.0))
        y = x + 1
        rt, before = engine.runtime(), np.random.get_state()[1].copy()  # type: ignore[union-attr]
        pending, statements = len(rt.program.pending), rt.counters.statements
        counts = numpy_dist.count_program(lambda a: (np.random.random(), a * a)[1], y, ranks=3)
        assert counts.most("loops") == 1
        assert engine.runtime() is rt and len(rt.program.pending) == pending and rt.counters.statements == statements
        assert (np.random.get_state()[1] == before).all()  # type: ignore[index]
        assert np.array_equal(y.gather(), np.arange(30.0) + 1)


def test_a_loop_that_ran_on_another_backend_is_not_run_here():
    with config(MIN_SHARD_BYTES=0):

        def program(x: Any) -> Any:
            x *= 3.0
            return x

        x = numpy_dist.asarray(np.ones(50))
        for _ in range(3):
            program(x)
            engine.flush()
        seen = []
        numpy_dist.count_program(lambda a: seen.append(program(a).gather()), np.ones(50), ranks=1)
        assert (seen[0] == 0).all()


def test_errors_warnings_and_arguments():
    with pytest.raises(ZeroDivisionError) as caught:
        numpy_dist.count_program(lambda: 1 // 0, ranks=5)
    assert "raised as rank 0 of 5 was counted" in caught.value.__notes__
    with pytest.raises(ValueError, match="no rank 7 of 5"):
        numpy_dist.count_program(print, ranks=5, only=[7])
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        numpy_dist.count_program(lambda: warnings.warn("once", stacklevel=1), ranks=4)
    assert len(seen) == 1

    def wrong_root(x: Any) -> Any:
        return numpy_dist.asarray(np.ones(10) if engine.runtime().rank == 2 else None, root=2)

    with pytest.raises(RuntimeError, match="rank 0 waits at .* for a broadcast of rank 2"):
        numpy_dist.count_program(wrong_root, 1, ranks=3)


def test_the_table():
    with config(MIN_SHARD_BYTES=0):
        text = str(numpy_dist.count_program(stencil, np.zeros((40, 40)), ranks=9))
    lines = text.splitlines()
    assert lines[0] == "Program for 9 ranks, all counted one by one"
    assert lines[1].split()[:3] == ["ranks", "statements", "loops"] and "gathers" not in lines[1]
    listed = [rank for line in lines[2:] for rank in line.split("  ")[0].split(", ")]
    assert sorted(listed) == list("012345678")


@pytest.mark.parametrize("name", ["inv", "cholesky", "qr", "svd"])
def test_counts_of_one_matrix_are_those_of_a_real_run(name: str) -> None:
    function = getattr(np.linalg, name)
    matrix = np.random.default_rng(0).standard_normal((260, 260))
    matrix = matrix @ matrix.T if name == "cholesky" else matrix
    with config(MIN_SHARD_BYTES=1 << 10, FALLBACK="error"):
        real = run_simulated(3, lambda: _really(function, matrix))
        counted = numpy_dist.count_program(function, matrix, ranks=3)
    for theirs, ours in zip(real, counted.values(), strict=True):
        for what in ("messages", "bytes"):
            # Of a matrix that nobody has sent, it is not known how many eigenvalues are set aside on the way.
            tolerance = 0.01 if name == "svd" else 0
            assert abs(getattr(ours, what) - theirs[what]) <= tolerance * theirs[what]


def test_a_checkpoint_waits_for_no_ranks_that_are_counted(tmp_path):
    """Rank 0 would wait for what others report, and nothing that nobody has computed is left for a checkpoint."""

    def program():
        numpy_dist.checkpoint.save(tmp_path / "state", {"x": numpy_dist.ones(100_000)}, step=1)

    counts = numpy_dist.count_program(program, ranks=4)
    assert all(counts[rank].written >= 200_000 for rank in range(4))
    assert not list(tmp_path.iterdir()) and numpy_dist.checkpoint.restore(tmp_path / "state") is None


def test_what_would_be_written_is_counted(tmp_path: Path) -> None:
    """Results that are there are not lost for values that nobody has computed."""
    kept = tmp_path / "kept.npy"
    np.save(kept, np.arange(3.0))

    def program(x: Any) -> Any:
        numpy_dist.save(kept, x * 2)
        np.savez(tmp_path / "both.npz", x + 1)
        (x + 2).tofile(tmp_path / "raw")
        checkpoint.save(tmp_path / "states", {"x": x}, step=1)
        return x

    with config(MIN_SHARD_BYTES=0):
        counts = numpy_dist.count_program(program, np.ones(3000), ranks=3)
    assert [path.name for path in tmp_path.iterdir()] == ["kept.npy"] and np.load(kept).tolist() == [0.0, 1.0, 2.0]
    assert [counts[rank].written // 8000 for rank in range(3)] == [4] * 3, "a third of the elements, four times"
    assert "written" in str(counts)
