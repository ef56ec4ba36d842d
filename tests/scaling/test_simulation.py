"""Ranks that are planned alone do what ranks of a real job do: memory, messages, bytes, collectives, by line."""

from __future__ import annotations

import importlib
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import numpy_dist
from numpy_dist import engine
from numpy_dist.comm.simulated import run_simulated
from numpy_dist.scaling import doors
from numpy_dist.scaling.counted import FunctionWork, LoopWork
from numpy_dist.scaling.machine import MachineSpeeds
from numpy_dist.scaling.simulation import PlanningError, plan_job, plan_rank, small_run
from numpy_dist.settings import config
from tests.scaling.real_runs import taken


def stencil() -> Any:
    grid = numpy_dist.zeros((60, 60))
    for _ in range(3):
        grid[1:-1, 1:-1] = (grid[:-2, 1:-1] + grid[2:, 1:-1] + grid[1:-1, :-2] + grid[1:-1, 2:]) / 4
    return grid


def reductions() -> Any:
    x = numpy_dist.linspace(0.0, 1.0, 3000).reshape(60, 50)
    centred = x - x.mean(axis=0)
    return centred, float(centred.max())


def gathering() -> Any:
    x = numpy_dist.ones((40, 50)) * 2.0
    return (x + x.reshape(50, 40).T).gather(), x @ x.T


def moved() -> Any:
    """Ranks ask for the budget of a gather, and not for that of small shares."""
    return np.fft.fft2(numpy_dist.ones((40, 50)))


def taken_over() -> Any:
    """What an algorithm has made in scratch memory becomes an array, which is not copied."""
    return np.fft.ifftn(np.fft.fftn(numpy_dist.ones((32, 32, 64)))).real.copy()


def grams() -> Any:
    """Half of a symmetric product is computed where it lies on a mesh, and mirrored; one of columns is added."""
    x, tall = numpy_dist.ones((90, 80)), numpy_dist.ones((640, 70))
    return x.T @ x, x @ x.T, tall.T @ tall


def long_sums() -> Any:
    """Partial products of operands that are cut along their other axes."""
    wide, tall = np.ones((20, 3000)), np.ones((3000, 10))
    return numpy_dist.asarray(wide, split=0) @ numpy_dist.asarray(tall, split=1)


@pytest.mark.parametrize("ranks", [1, 2, 4])
@pytest.mark.parametrize("program", [stencil, reductions, gathering, moved, taken_over, grams, long_sums])
def test_a_plan_is_what_happens(program, ranks):
    with config(MIN_SHARD_BYTES=0, AT_ONCE=0, BACKEND="numpy"):
        expected = run_simulated(ranks, taken, program)
        broadcasts: dict[int, list] = {}
        planned = [plan_rank(program, rank, ranks, broadcasts) for rank in range(ranks)]
    assert [rank.ending for rank in planned] == [""] * ranks
    names = "peak", "messages", "bytes", "collectives"
    assert [{name: getattr(rank, name) for name in names} for rank in planned] == expected
    for rank in planned:  # lines have all of it
        totals = rank.totals
        assert (totals.messages, totals.bytes, totals.collectives) == (rank.messages, rank.bytes, rank.collectives)
        assert sum(held.nbytes for held in rank.held) == rank.peak > 0


@pytest.mark.parametrize("groups", [[3000], [1400, 0, 1600], [170] * 17 + [110]])
def test_reading_of_columns_is_what_happens(groups: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that one rank decodes for others: of numbers in parts, of objects and of few rows for everyone."""
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    monkeypatch.setattr("numpy_dist.formats.parquet._BATCH", 500)
    given = {"real": np.arange(3000.0), "whole": np.arange(3000, dtype=np.int16), "text": [str(i) for i in range(3000)]}
    table, path = pyarrow.table(given), tmp_path / "x.parquet"
    with parquet.ParquetWriter(path, table.schema) as writer:
        for start, rows in zip(np.cumsum([0, *groups]), groups, strict=False):
            writer.write_table(table.slice(start, rows), row_group_size=max(rows, 1))

    def columns() -> Any:
        with numpy_dist.open(path) as file:
            both, first, few = file.read(["real", "whole"]), file["real"][100:2500], file["text"][5:1000]
        return both["real"] + both["whole"], float(both["whole"][7]), first, few

    for ranks in (1, 2, 4):
        test_a_plan_is_what_happens(columns, ranks)


def test_objects_of_many_ranks_are_one_where_they_are_large() -> None:
    def program() -> Any:
        comm = engine.runtime().comm
        large, small = comm.allgather(bytes(1 << 20)), comm.allgather([comm.rank])
        assert len(large) == len(small) == 64 and set(large) == {bytes(1 << 20)}
        assert large[0] is large[1] and small[0] is not small[1]

    rank = plan_rank(program, 3, 64)
    assert rank.ending == "" and rank.collectives == 2 and rank.bytes > 1 << 20


def test_lines() -> None:
    with config(MIN_SHARD_BYTES=0):
        rank = plan_rank(stencil, 1, 4)
        gathered = plan_rank(gathering, 0, 3)
    (sending,) = [line for line, counts in rank.lines.items() if counts.messages]
    assert rank.texts[sending].startswith("grid[1:-1, 1:-1] = (grid[:-2") and rank.lines[sending].messages == 3 * 2
    assert {held.text.partition(" =")[0] for held in rank.held} <= {"grid", "grid[1:-1, 1:-1]"}
    (line,) = [line for line, counts in gathered.lines.items() if counts.gathers]
    assert ".gather()" in gathered.texts[line] and gathered.lines[line].gathered_bytes == 2000 * 8
    assert gathered.largest_gather == 2000 * 8
    assert sum(counts.flops for counts in gathered.lines.values()) == 2 * 40 * 50 * 40 // 3


def test_rows_and_parts_are_counted() -> None:
    """Rows of loops, where memory does not go on from one to the next; edges, which are loops of their own."""

    def program() -> object:
        x, y = numpy_dist.ones((40, 5)), numpy_dist.zeros((40, 5))
        y[:] = x - np.arange(5.0)
        numpy_dist.wait(y)
        plain = x + 1.0
        numpy_dist.wait(plain)
        return y, plain, np.argmin(y, axis=1)

    def sums() -> object:
        x, mask = numpy_dist.ones((40, 5)), numpy_dist.arange(40) > 20
        numpy_dist.wait(x, mask)
        near = [((x - np.full(5, k)) ** 2).sum(axis=1) for k in range(3)]
        made = np.stack(near, axis=1)
        numpy_dist.wait(made)
        return near, made, np.where(mask[:, None], x, 0.0).sum(axis=0)

    def waves() -> object:
        x = numpy_dist.ones(40, complex) / 3.0
        return x, numpy_dist.ones(40) / 3.0

    with config(MIN_SHARD_BYTES=0):
        rank, plate, summed = plan_rank(program, 0, 2), plan_rank(stencil, 0, 1), plan_rank(sums, 0, 2)
        mixed = plan_rank(waves, 0, 2)
    divided = {name for work in mixed.totals.work if isinstance(work, LoopWork) for name, _ in work.operations}
    assert {"complex divide", "divide"} <= divided
    found = [dict(work.operations) for work in summed.totals.work if isinstance(work, LoopWork)]
    names = "a row", "a reduced row", "a reduction of rows", "an added row", "a reduction of columns", "a reduction"
    of_rows = [tuple(map(each.get, names)) for each in found if {"a reduced row", "an added row"} & set(each)]
    along, across = (3 * 20, 3 * 20, 300, None, None, None), (None, None, None, 20, 100, None)
    assert sorted(of_rows, key=str) == [along, across]  # a row that is repeated, and not a column
    assert not any("a row" in each for each in found if "cast" in each)  # columns have rows of one element
    rows = [dict(work.operations).get("a row") for work in rank.totals.work if isinstance(work, LoopWork)]
    assert rows.count(20) == 1 and rows.count(None) == len(rows) - 1, rows
    assert "rows" in {work.kind for work in rank.totals.work if isinstance(work, FunctionWork)}
    assert rank.not_modelled == {} and plate.totals.parts >= plate.totals.loops > 0


def test_ranks_that_share_nodes() -> None:
    """A gather goes node by node, and a mesh puts neighbours on one; neither where a node has one rank, or all."""

    def gathers() -> float:
        return float(numpy_dist.zeros(40_000).gather()[0])

    with config(MIN_SHARD_BYTES=0):
        messages = {
            k: plan_rank(gathers, 0, 8, nodes=MachineSpeeds(ranks_per_machine=k).nodes(8)).messages for k in (1, 4, 8)
        }
    # To the other node's first rank, and the whole array to three of its own; else to seven.
    assert messages == {1: 7, 4: 4, 8: 7}
    assert MachineSpeeds(ranks_per_machine=3).nodes(7) == (0, 0, 0, 1, 1, 1, 2)


def test_arrays_that_no_machine_has() -> None:
    def program() -> Any:
        x = numpy_dist.arange(10**13) * 2.0  # 80 TB
        y = numpy_dist.ones((10**6, 10**6))
        y[1:] += y[:-1]
        return x, y

    rank = plan_rank(program, 7, 16)
    assert rank.ending == "" and rank.peak >= 2 * 10**13 * 8 // 16
    assert plan_rank(program, 0, 1).peak >= 10**13 * 8


def test_values_are_assumed_or_those_of_a_small_run() -> None:
    def program(n: int) -> list[float]:
        x = numpy_dist.ones(n)
        seen = []
        for step in range(3):
            seen.append(float((x * step).max()))
        return seen

    values = small_run(lambda: program(100))
    assert list(values.values()) == [[0.0, 1.0, 2.0]]
    seen: list[float] = []
    with config(MIN_SHARD_BYTES=0):
        assumed = plan_rank(lambda: seen.extend(program(1000)), 1, 3, value=5.0)
        taken = plan_rank(lambda: seen.extend(program(1000)), 1, 3, values={k: v[:2] for k, v in values.items()})
    assert seen == [5.0, 5.0, 5.0, 0.0, 1.0, 0.0]
    ((line, _, count, none),) = [(v.line, v.text, v.assumed, v.taken) for v in assumed.values]
    assert (count, none) == (3, 0) and line in values
    assert [(v.assumed, v.taken) for v in taken.values] == [(1, 2)]


def test_a_loop_that_assumed_values_never_end_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doors, "MOST_ASSUMED", 20)

    def program() -> None:
        x, total = numpy_dist.ones(100), 0.0
        while total < 10:
            total += float(x.sum())

    with config(MIN_SHARD_BYTES=0):
        rank = plan_rank(program, 1, 3)
        assert plan_rank(program, 1, 3, value=5.0).ending == ""
    assert "test_simulation.py" in rank.ending and ": 20 values that nobody has computed" in rank.ending
    assert [each.assumed for each in rank.values] == [20]


def test_kinds_of_random_numbers() -> None:
    def program() -> Any:
        rng, shape = numpy_dist.random.default_rng(1), (4000,)
        made = rng.random(shape), rng.normal(size=shape), rng.exponential(size=shape), rng.integers(0, 9, shape)
        return *made, rng.gamma(2.0, size=shape), numpy_dist.random.RandomState(1).standard_normal(shape)

    with config(MIN_SHARD_BYTES=0, AT_ONCE=0):
        rank = plan_rank(program, 0, 4)
    found = {work.kind: work.amount for work in rank.totals.work if isinstance(work, FunctionWork)}
    assert found == {"random": 1000, "normal": 1000, "exponential": 1000, "integers": 1000, "distribution": 4000}
    assert rank.not_modelled == {}


def test_what_is_drawn_is_held_by_the_line_that_draws() -> None:
    def program() -> object:
        return numpy_dist.random.default_rng(0).random((200, 50))

    with config(MIN_SHARD_BYTES=0):
        (held,) = plan_rank(program, 0, 1).held
    assert held.line.filename == __file__ and "random((200, 50))" in held.text


def test_endings(tmp_path) -> None:
    kept = tmp_path / "kept.txt"
    kept.write_text("worth something")

    def overwrites() -> None:
        numpy_dist.ones(100_000).sum()
        kept.write_text("nothing")

    def divides() -> float:
        return 1 / float(numpy_dist.ones(100_000).sum())

    (rank,) = plan_job(overwrites, 1).ranks
    assert rank.ending == "" and kept.read_text() == "worth something" and rank.statements
    assert rank.totals.written == len("nothing")
    ends = [rank.ending for rank in plan_job(divides, 3).ranks]
    assert len(ends) == 3 and all("test_simulation.py" in end and "ZeroDivisionError" in end for end in ends)
    (rank,) = plan_job(lambda: np.sort(numpy_dist.ones((4 * 10**6, 10**6)), axis=None), 1).ranks
    assert "would really run here" in rank.ending
    (rank,) = plan_job(lambda: exit(3), 1).ranks
    assert "exit code 3" in rank.ending
    with pytest.raises(PlanningError, match="small run"):
        small_run(lambda: 1 / 0)


def test_the_program_around_is_left_alone() -> None:
    rt = engine.runtime()
    plan_rank(stencil, 2, 5)
    assert engine.runtime() is rt and rt.recorder is None
    job = plan_job(stencil, 100, only=[3, 99])
    assert [rank.rank for rank in job.ranks] == [3, 99] and rt.comm.observer is None


@pytest.mark.slow
@pytest.mark.parametrize("name", ["stencil", "shallow"])
def test_examples_on_a_thousand_ranks(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ranks at corners, on edges and inside have their own part only, and messages to neighbours."""
    monkeypatch.syspath_prepend(Path(__file__).resolve().parents[2] / "examples")
    functions = importlib.import_module(f"{name}_functions")

    def program() -> Any:
        grids = [numpy_dist.ones((640, 640)) for _ in range(3)]
        return functions.relax(grids[0], 2) if name == "stencil" else functions.waves(*grids, 2)

    with config(MIN_SHARD_BYTES=0):
        job = plan_job(program, 1024, only=[0, 16, 528, 1023])
    share, grids = 640 * 640 * 8 // 1024, 3
    assert [rank.ending for rank in job.ranks] == [""] * 4
    assert share <= job.fullest.peak <= 12 * grids * share
    assert 0 < max(rank.messages for rank in job.ranks) < 1023  # not one to each of the others


PROGRAMS = runpy.run_path(str(Path(__file__).resolve().parents[2] / "benchmarks" / "plan.py"))["PROGRAMS"]
MOST_SHARES = {"gradients": 3, "poisson": 9, "products": 4}  # blocks of products, halos and cubes on so many ranks


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_thousand_ranks_share_the_memory_of_one(name: str) -> None:
    """All examples, a sort and a product, at the sizes with which `benchmarks/plan.py` compares plans with jobs."""
    with config(MIN_SHARD_BYTES=0):
        alone = plan_job(PROGRAMS[name], 1)
        job = plan_job(PROGRAMS[name], 1024, only=[0, 16, 528, 1023])
    assert [rank.ending for rank in (*alone.ranks, *job.ranks)] == [""] * 5
    assert job.fullest.peak <= MOST_SHARES.get(name, 2) * alone.fullest.peak / 1024


def test_inner_ranks_have_what_nobody_has_sent() -> None:
    """Positions in messages are zeros, and of few lines most ranks have none."""

    def put() -> Any:
        x = numpy_dist.arange(1024) * 1.0
        x[numpy_dist.arange(1024)[::-1].copy()] = 2.0
        return x

    def transform() -> Any:
        return np.fft.fft(numpy_dist.arange(40.0).reshape(2, 20))

    def added() -> Any:
        x = numpy_dist.arange(1024) * 1.0
        np.add.at(x, numpy_dist.arange(1024)[::-1].copy(), 1.0)
        return x

    with config(MIN_SHARD_BYTES=0, AT_ONCE=0):
        for program in (put, transform, added):
            planned = [plan_rank(program, rank, 16) for rank in (0, 10, 15)]
            assert [rank.ending for rank in planned] == [""] * 3 and planned[1].messages > 0


def test_matrices_without_values_are_told() -> None:
    def program() -> Any:
        return np.linalg.inv(numpy_dist.zeros((400, 8, 8)))  # a stack, of which each rank has some

    with config(MIN_SHARD_BYTES=0):
        assert "Singular matrix. Nothing is computed" in plan_rank(program, 0, 4).ending
        with pytest.raises(np.linalg.LinAlgError) as raised:
            numpy_dist.count_program(program, ranks=4)
    assert "Leave the call out" in raised.value.__notes__[0]


def test_exchanges_and_functions_that_communicate_are_counted() -> None:
    def ordered() -> Any:
        return np.sort(numpy_dist.linspace(0.0, 1.0, 4000))

    with config(MIN_SHARD_BYTES=0, AT_ONCE=0):
        steps, two, alone = plan_rank(stencil, 1, 4), plan_rank(ordered, 0, 2), plan_rank(ordered, 0, 1)
    assert (steps.totals.exchanges, steps.totals.spread_functions) == (3, 0)
    assert (two.totals.spread_functions, alone.totals.spread_functions) == (1, 0)
    assert two.totals.functions == alone.totals.functions > 1
