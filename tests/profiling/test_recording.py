"""What is recorded of real programs: on one rank, on simulated ones, and that nothing stays behind."""

from __future__ import annotations

import gc
import heapq
import json
import os
import sys
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import numpy_dist
from numpy_dist import engine
from numpy_dist.backends.compiled import chained
from numpy_dist.comm.simulated import run_simulated
from numpy_dist.frames import library_folders
from numpy_dist.profiling import advice as advices
from numpy_dist.profiling import folder as folders
from numpy_dist.profiling import recorder as recorders
from numpy_dist.profiling.analysis import profiled, sent_bytes
from numpy_dist.profiling.log import RankLog
from numpy_dist.settings import config
from tests.engine.random_programs import random_program
from tests.engine.test_random_programs import _run as run_random_program

HERE = str(Path(__file__).resolve())


@pytest.fixture(autouse=True)
def really_sharded() -> Any:
    with config(MIN_SHARD_BYTES=0, AT_ONCE=0, FALLBACK="silent"):
        yield


def line_of(text: str) -> int:
    """The line of this file that has a mark."""
    return next(n for n, line in enumerate(Path(HERE).read_text().splitlines(), 1) if line.endswith(f"# {text}"))


def program() -> float:
    """Halos, a reduction, a sort, what only gathered NumPy can do, and a gather."""
    x = numpy_dist.linspace(0.0, 1.0, 4000)
    y = x[1:] + 2 * x[:-1]  # halo
    y[1:-1] = y[2:] - y[:-2]
    total = float(np.sqrt(y * y).sum())  # reduction
    np.sort(y)  # sort
    np.apply_along_axis(lambda row: row[:2], 0, y)  # fallback
    y.gather()  # gather
    return total


def profile_of(folder: Path, function: Callable[[], Any] = program) -> tuple[Any, Any]:
    """What a function returns, and what was counted meanwhile on this rank, before the page was made."""
    rt = engine.runtime()
    counters = rt.comm.counters
    with numpy_dist.profile(folder):
        before = counters.messages, counters.bytes, counters.collectives
        result = function()
        rt.program.run()
        after = counters.messages, counters.bytes, counters.collectives
    return result, [b - a for a, b in zip(before, after, strict=True)]


def described(log: RankLog) -> dict[str, set[int]]:
    """The lines of this file by what ran for them."""
    here = {number: line.line for number, line in log.lines.items() if line.filename == HERE}
    return {
        "loops": {here[n] for loop in log.loops.values() for n in loop.lines if n in here},
        "gathers": {here[gather.line] for gather in log.gathers if gather.line in here},
        "functions": {here[run.line] for run in log.functions if run.line in here},
        "notices": {here[notice.line] for notice in log.notices if notice.line in here},
    }


@pytest.mark.parametrize("ranks", [1, 2, 3, 8])
def test_a_program_is_recorded(ranks: int, tmp_path: Path) -> None:
    def rank() -> tuple[float, list[int]]:
        return profile_of(tmp_path)

    results = run_simulated(ranks, rank)
    logs = folders.read_logs(str(tmp_path))
    assert [log.rank for log in logs] == list(range(ranks))
    for log, (_, counted) in zip(logs, results, strict=True):
        # Bytes add up to what the communicator has counted, and messages, and collectives.
        sent = sum(n for start in log.starts for _, n in start.sends) + sum(call.sent for call in log.collectives)
        messages = sum(len(start.sends) for start in log.starts)
        assert [messages, sent, len(log.collectives)] == counted
        assert log.end is not None and [log.end.messages, log.end.nbytes, log.end.collectives] == counted
        found = described(log)
        assert {line_of("halo"), line_of("reduction")} <= found["loops"]
        assert line_of("gather") in found["gathers"]
        assert line_of("sort") in found["functions"]
        assert found["notices"] == ({line_of("fallback")} if ranks > 1 or log.notices else set())
        assert log.plannings and log.memory and log.lines[0].text
    found_all = profiled(logs)
    assert all(sum(its.values()) >= found_all.length for its in found_all.shares.values())
    assert set(sent_bytes(found_all)) >= {(0, 1), (1, 0)} or ranks == 1
    page, trace = (tmp_path / "profile.html").read_text(), json.loads((tmp_path / "trace.json").read_text())
    assert "y = x[1:] + 2 * x[:-1]" in page
    assert {event["pid"] for event in trace["traceEvents"]} == set(range(ranks))


def test_loops_have_the_bytes_of_their_listing(tmp_path: Path) -> None:
    x = numpy_dist.linspace(0.0, 1.0, 1000)
    kept: list[Any] = []

    def one() -> None:
        kept.append(np.sqrt(x) + 1)

    profile_of(tmp_path, one)
    (loop,) = folders.read_logs(str(tmp_path))[0].loops.values()
    assert (loop.reads, loop.writes, loop.operations) == (8000, 8000, "sqrt, add")


@pytest.mark.slow  # it compiles kernels
def test_chains_stay_chains(tmp_path: Path, kernel_cache: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chained, "SMALLEST", 0)
    monkeypatch.setattr(chained, "STEP_BYTES", 1 << 10)

    def softmax(x: Any) -> Any:
        powers = np.exp(x - x.max(axis=1, keepdims=True))
        return powers / powers.sum(axis=1, keepdims=True)

    def rank() -> tuple[int, int]:
        backend: Any = engine.runtime().backend
        x = numpy_dist.asarray(np.random.default_rng(1).random((200, 100)))
        for _ in range(3):
            engine.force(softmax(x))
        before = backend.chained
        engine.force(softmax(x))
        without = backend.chained - before
        with numpy_dist.profile(tmp_path):
            before = backend.chained
            engine.force(softmax(x))
            within = backend.chained - before
        return without, within

    with config(BACKEND="numba", COMPILE="first", CACHE_DIR=kernel_cache, NUM_THREADS=2):
        ((without, within),) = run_simulated(1, rank)
    assert without == within > 0
    (log,) = folders.read_logs(str(tmp_path))
    assert max(len(run.loops) for run in log.runs) > 1
    ran = [number for run in log.runs for number in run.loops]
    assert len(ran) == 3 and {log.loops[n].tier for n in ran} == {"numba"}


@pytest.mark.slow  # it compiles a kernel
def test_kernels_that_are_compiled(tmp_path: Path) -> None:
    def rank() -> None:
        x = numpy_dist.linspace(0.0, 1.0, 1000)
        profile_of(tmp_path / "out", lambda: engine.force(np.sqrt(x + 3) * 2))

    with config(BACKEND="numba", COMPILE="first", CACHE_DIR=tmp_path / "cache", NUM_THREADS=1):
        run_simulated(1, rank)
    (log,) = folders.read_logs(str(tmp_path / "out"))
    assert log.compiles and all(run.end > run.begin and not run.failure for run in log.compiles)


def test_random_programs_do_the_same_while_they_are_recorded(tmp_path: Path) -> None:
    """The same values, and the same loops, messages and bytes."""

    def rank(seed: int, recorded: bool) -> tuple[list[bytes], dict[str, int]]:
        rt = engine.runtime()
        rt.program.run()
        with numpy_dist.profile(tmp_path) if recorded else nullcontext():
            before = vars(rt.counters) | vars(rt.comm.counters)
            results = [array.tobytes() for array in run_random_program(random_program(seed))]
            after = vars(rt.counters) | vars(rt.comm.counters)
        return results, {name: count - before[name] for name, count in after.items()}

    for seed in range(4):
        assert run_simulated(3, rank, seed, True) == run_simulated(3, rank, seed, False)
        assert all(log.runs for log in folders.read_logs(str(tmp_path)))


def test_nobody_listens_afterwards(tmp_path: Path) -> None:
    rt = engine.runtime()
    profile_of(tmp_path)
    assert rt.recorder is None and rt.comm.observer is None
    before = [log.last for log in folders.read_logs(str(tmp_path))]
    program()
    assert [log.last for log in folders.read_logs(str(tmp_path))] == before


def test_a_profile_within_another_takes_its_place(tmp_path: Path) -> None:
    def both() -> None:
        program()
        with numpy_dist.profile(tmp_path / "inner"):
            engine.force(numpy_dist.arange(100.0) + 1)
        engine.force(numpy_dist.arange(100.0) - 1)

    profile_of(tmp_path / "outer", both)

    def operations_of(name: str) -> set[str]:
        (log,) = folders.read_logs(str(tmp_path / name))
        return {operation for loop in log.loops.values() for operation in loop.operations.split(", ")}

    operations = {name: operations_of(name) for name in ("inner", "outer")}
    assert "subtract" in operations["outer"] and operations["inner"] == {"add"}


@pytest.mark.parametrize("ranks", [1, 3])
def test_an_error_leaves_logs_and_a_page(ranks: int, tmp_path: Path) -> None:
    def rank() -> str:
        with pytest.raises(KeyError), numpy_dist.profile(tmp_path):
            engine.force(numpy_dist.arange(100.0) + 1)
            raise KeyError
        return "it goes on"

    assert run_simulated(ranks, rank) == ["it goes on"] * ranks
    assert len(folders.read_logs(str(tmp_path))) == ranks and (tmp_path / "profile.html").exists()


def test_one_rank_that_cannot_write_is_told_on_every_rank(tmp_path: Path) -> None:
    (tmp_path / "rank-00001.jsonl").mkdir()

    def rank() -> None:
        with pytest.raises(IsADirectoryError), numpy_dist.profile(tmp_path):
            pytest.fail("the block is not entered")
        engine.runtime().comm.barrier()

    run_simulated(3, rank)
    assert [path.name for path in tmp_path.iterdir()] == ["rank-00001.jsonl"]


def test_a_folder_that_cannot_be_made_is_told_on_every_rank(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    def rank() -> None:
        with pytest.raises(OSError), numpy_dist.profile(tmp_path / "file"):
            pytest.fail("the block is not entered")
        assert engine.runtime().recorder is None
        engine.runtime().comm.barrier()

    run_simulated(3, rank)


def test_a_full_log_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorders, "MOST_RECORDS", 5)
    profile_of(tmp_path)
    (log,) = folders.read_logs(str(tmp_path))
    assert log.end is not None and log.end.left_out > 0
    assert "records were left out" in (tmp_path / "profile.html").read_text()


def test_the_setting_records_simulated_ranks_from_their_first_array(tmp_path: Path) -> None:
    from numpy_dist.profiling import session

    def rank() -> None:
        program()
        found.append(engine.runtime())

    found: list[Any] = []
    registered: list[Any] = []
    with pytest.MonkeyPatch.context() as patch, config(PROFILE=os.fspath(tmp_path)):
        patch.setattr(session.atexit, "register", lambda function, recording: registered.append((function, recording)))
        run_simulated(2, rank)
    assert len(registered) == 2 and not (tmp_path / "profile.html").exists()
    for function, recording in registered:
        function(recording)
    assert "reduction" in (tmp_path / "profile.html").read_text()
    assert all(rt.recorder is None for rt in found)


def along_rows(split: int) -> float:
    """Neighbours, sorts and sums along axis 1."""
    x = numpy_dist.asarray(np.sin(np.add.outer(7.0 * np.arange(400), np.arange(300))), split=split)
    for _ in range(3):
        y = x[:, 1:] - x[:, :-1]
        x = np.cumsum(np.sort(x, axis=1), axis=1) / 300.0
    return float(x.sum(axis=1).max()) + float(y.sum())


@pytest.mark.parametrize("ranks", [2, 4])
def test_to_cut_the_axis_that_is_advised_saves_messages(ranks: int, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(advices, "_LARGE", 1 << 18)
    told, sent, values = [], [], []
    for split in (1, 0):
        folder = tmp_path / str(split)
        values += run_simulated(ranks, partial(profile_of, folder, partial(along_rows, split)))
        found = profiled(folders.read_logs(str(folder)))
        told.append([text for text in advices.advise(found) if "is cut, and" in text])
        sent.append(sum(sent_bytes(found).values()))
    assert "no line works along axis 0: cut axis 0 " in told[0][0] and not told[1]
    assert sent[1] < sent[0] / 2
    np.testing.assert_allclose([value for value, _ in values], values[0][0])


def test_which_axes_lines_work_along(tmp_path: Path) -> None:
    def work() -> None:
        x = numpy_dist.ones((40, 30), split=1)
        y = x[1:] * x[:-1]  # rows
        y.sum()  # all
        y.max(axis=1)  # columns

    run_simulated(2, lambda: profile_of(tmp_path, work))
    log = folders.read_logs(str(tmp_path))[0]
    found: dict[int, set[tuple[int, ...]]] = {}
    for use in log.uses:
        found.setdefault(log.lines[use.line].line, set()).add(tuple(use.along))
    assert found[line_of("rows")] == {(0,), ()}
    assert found[line_of("all")] == {()}
    assert (1,) in found[line_of("columns")] and (0,) not in found[line_of("columns")]


def test_the_speed_of_a_copy_is_measured_once(tmp_path: Path) -> None:
    profile_of(tmp_path / "one")
    profile_of(tmp_path / "two")
    speeds = [folders.read_logs(str(tmp_path / name))[0].copy_speed for name in ("one", "two")]
    assert speeds[0] == speeds[1] and 1e8 < speeds[0] < 1e13


def test_garbage_collections(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(recorders, "_WORTH_TELLING", 0)
    before = list(gc.callbacks)
    library_folders.cache_clear()

    def work() -> None:
        monkeypatch.setitem(sys.modules, "sysconfig", ModuleType("sysconfig"))  # as it looks while it is imported
        gc.collect()  # garbage

    profile_of(tmp_path, work)
    assert gc.callbacks == before
    log = folders.read_logs(str(tmp_path))[0]
    runs = [run for run in log.functions if run.function == "garbage collection (generation 2)"]
    assert line_of("garbage") in {log.lines[run.line].line for run in runs}


class Gathers:
    """What a module of Python's is given, and calls."""

    def __init__(self, x: Any) -> None:
        self.gather = partial(x.__class__.gather, x)


def test_lines_are_the_users_and_not_those_of_libraries(tmp_path: Path) -> None:
    """What a module of Python's calls belongs to who called that."""
    x = numpy_dist.linspace(0.0, 1.0, 4000)
    with numpy_dist.profile(tmp_path):
        heapq.nsmallest(1, [0], key=Gathers(x).gather)  # through heapq
    (log,) = folders.read_logs(str(tmp_path))
    assert {line.filename for line in log.lines.values()} == {HERE}
    assert line_of("through heapq") in described(log)["gathers"]
