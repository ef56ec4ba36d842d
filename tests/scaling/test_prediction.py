"""Predictions of counts that are made up: each part of the time comes of what it should, and the limit is named."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from numpy_dist.frames import UserLine
from numpy_dist.scaling.counted import FunctionWork, HeldArray, JobPlan, LineCounts, LoopWork, RankPlan, merged
from numpy_dist.scaling.machine import MachineSpeeds, load_speeds, save_speeds
from numpy_dist.scaling.observer import function_work
from numpy_dist.scaling.prediction import predict, predict_counts, rounds
from numpy_dist.scaling.text import job_lines, seconds_text, size_text, summary_lines

LINE, OTHER = UserLine("script.py", 3), UserLine("script.py", 7)
# Python takes no time on it but for statements.
NOTHING = dict.fromkeys(("collective_seconds", "loop_seconds", "value_seconds", "function_seconds"), 0.0)
MACHINE = MachineSpeeds("made up", 100.0, 50.0, 10.0, 2.0, 4.0, 0.25, 1e4, **NOTHING)


def rank_of(number: int = 0, statements: int = 0, **counts: int) -> RankPlan:
    return RankPlan(number, statements, lines={LINE: LineCounts(**counts)}, texts={LINE: "y = x + 1"})


def test_each_part_comes_of_its_counts() -> None:
    found = predict_counts(LineCounts(loop_bytes=100, function_bytes=100, flops=30), 4, MACHINE)
    assert (found.memory, found.arithmetic, found.latency, found.bandwidth) == (100 / 50 + 100 / 100, 3.0, 0.0, 0.0)
    # The larger direction counts, and what goes to collectives is no message.
    counts = LineCounts(messages=3, bytes=1000 + 40, received_messages=5, received_bytes=80)
    counts.add(collectives=2, collective_bytes=1000)
    found = predict_counts(counts, 4, MACHINE)
    assert found.latency == 2.0 * (5 + 2 * 2)
    assert found.bandwidth == (80 + 1000 * 3) / 4.0
    assert found.memory == 2 * (40 + 80) / 100, "messages are packed, and unpacked"


def test_a_collective_brings_a_slot_of_each_rank() -> None:
    small = predict_counts(LineCounts(collectives=1, collective_bytes=8, bytes=8), 1001, MACHINE)
    assert small.bandwidth == 256 * 1000 / 4.0 and small.latency == 2.0 * 10
    assert predict_counts(LineCounts(collectives=1, collective_bytes=8, bytes=8), 1, MACHINE).total == 0.0
    assert [rounds(size) for size in (1, 2, 3, 4, 5, 1024, 1025)] == [0, 1, 2, 2, 3, 10, 11]


def test_ranks_on_one_machine_share_its_memory() -> None:
    shared = MachineSpeeds("made up", 100.0, 50.0, 10.0, 2.0, 4.0, 0.25, 1e4, 4, **NOTHING)
    counts = LineCounts(loop_bytes=100, flops=10, messages=1)
    alone, two, eight = (predict_counts(counts, size, shared) for size in (1, 2, 8))
    assert (alone.memory, two.memory, eight.memory) == (2.0, 4.0, 8.0)
    assert (alone.arithmetic, eight.arithmetic) == (1.0, 4.0) and alone.latency == eight.latency


@pytest.mark.parametrize(
    "counts, words",
    [
        ({"loop_bytes": 1000, "messages": 1}, "memory bandwidth"),
        ({"flops": 1000, "loop_bytes": 10}, "arithmetic"),
        ({"messages": 100, "bytes": 4}, "network latency"),
        ({"messages": 1, "bytes": 4000}, "network bandwidth"),
        ({"statements": 1000, "loop_bytes": 10}, "the interpreter"),
        ({}, "nothing that is counted"),
    ],
)
def test_what_limits(counts: dict[str, int], words: str) -> None:
    found = predict(JobPlan(2, [rank_of(0, **counts), rank_of(1, **counts)]), MACHINE)
    assert found.limit.startswith(words) and found.share == 1.0


def test_one_rank_that_has_more() -> None:
    job = JobPlan(3, [rank_of(0, loop_bytes=100), rank_of(1, loop_bytes=400), rank_of(2, loop_bytes=100)])
    found = predict(job, MACHINE)
    assert (found.rank, found.seconds, found.share) == (1, 8.0, 4.0)
    assert found.limit.startswith("rank 1, which has 4.0 times") and "memory bandwidth" in found.limit


def test_the_most_of_any_rank_by_line() -> None:
    first, second = rank_of(0, messages=2, bytes=5), rank_of(1, messages=1, bytes=9)
    second.lines[OTHER] = LineCounts(gathers=1)
    most = JobPlan(2, [first, second]).most_by_line()
    assert (most[LINE].messages, most[LINE].bytes, most[OTHER].gathers) == (2, 9, 1)
    assert (second.totals.messages, second.totals.gathers) == (1, 1)


def test_arrays_that_are_alike_stand_together() -> None:
    held = [HeldArray(LINE, "x", "float64 (3,)", 8), HeldArray(OTHER, "y", "float64 (3,)", 20)]
    found = merged([*held, HeldArray(LINE, "x", "float64 (3,)", 16)])
    assert [(each.line, each.nbytes, each.count) for each in found] == [(LINE, 24, 2), (OTHER, 20, 1)]


def test_text() -> None:
    assert [size_text(n) for n in (0, 999, 1500, 2.5e9, 3e15)] == ["0 B", "999 B", "1.5 kB", "2.5 GB", "3000.0 TB"]
    assert [seconds_text(s) for s in (2.0, 0.012, 3e-6)] == ["2 s", "12 ms", "3 us"]
    rank = rank_of(5, messages=2, bytes=4000, received_messages=2, received_bytes=4000)
    rank.messages, rank.bytes, rank.peak = 2, 4000, 8000
    rank.held = [HeldArray(LINE, "y = x + 1", "float64 (1000,)", 8000)]
    lines = job_lines(JobPlan(64, [rank]), MACHINE)
    assert lines[0] == "Plan for 64 ranks, 1 of them run without data: 5"
    assert any("8.0 kB  float64 (1000,)  script.py:3  y = x + 1" in line for line in lines)
    (sent,) = [line for line in lines if line.startswith("sent")]
    assert "2 messages, 4.0 kB, 0 collectives, 0 gathers" in sent and "limited by network bandwidth" in lines
    assert not any(line.startswith(("values", "ended", "note")) for line in lines)
    rank.peak = 10**5
    assert any("MORE THAN THERE IS: a rank has 10.0 kB" in line for line in job_lines(JobPlan(64, [rank]), MACHINE))
    rank.peak = 8000
    head, row = summary_lines([JobPlan(64, [rank])], MACHINE)
    assert row.split()[:5] == ["64", "8.0", "kB", "2", "4.0"] and len(head) > 0


def test_machine_files(tmp_path) -> None:
    path = tmp_path / "machine.json"
    whole = replace(MACHINE, **dict.fromkeys(NOTHING, 1.0), bandwidths=((1.0, 9.0), (2.0, 8.0)))
    whole = replace(whole, operation_rates={"exp": 3.0})
    save_speeds(whole, path)
    assert load_speeds(path) == whole
    good = path.read_text()
    for text, words in [
        ("{", "no machine file"),
        ("[]", "no machine file of format 1"),
        (good.replace('"latency": 2.0', '"latency": 0'), "latency is 0"),
        (good.replace('"latency": 2.0', '"latency": true'), "latency is True"),
        (good.replace('"latency"', '"lag"'), "lag is none of a machine's speeds"),
        (good.replace('"exp": 3.0', '"exp": -3.0'), "operation_rates is .*numbers above 0 by names"),
        (re.sub(r'"operation_rates": {[^}]*}', '"operation_rates": 3', good), "operation_rates is 3"),
        (re.sub(r'"bandwidths": .*?]\s*]', '"bandwidths": [[2,8],[1,9]]', good, flags=re.S), "bandwidths.*ascending"),
        (re.sub(r'"bandwidths": .*?]\s*]', '"bandwidths": [3]', good, flags=re.S), "bandwidths is .*pairs of bytes"),
    ]:
        path.write_text(text)
        with pytest.raises(ValueError, match=words):
            load_speeds(path)


def test_bandwidths_of_caches() -> None:
    machine = replace(MACHINE, bandwidths=((100.0, 800.0), (10_000.0, 200.0)))
    assert [machine.bandwidth(n) for n in (1, 100, 1000, 10_000, 10_001)] == [800.0, 800.0, 400.0, 200.0, 50.0]
    counts = LineCounts(loops=2, loop_bytes=200, work=Counter({LoopWork(100, ()): 2}))
    assert predict_counts(counts, 1, machine).memory == 2 * 100 / 800
    # Ten ranks share the cache, and its bandwidth.
    shared = predict_counts(counts, 10, replace(machine, ranks_per_machine=10))
    assert shared.memory == pytest.approx(10 * 2 * 100 / 400)


def test_a_loop_takes_what_limits_it() -> None:
    machine = replace(MACHINE, operation_rates={"exp": 4.0, "add": 1000.0})
    light, heavy = LoopWork(100, (("add", 100), ("copysign", 99))), LoopWork(100, (("add", 100), ("exp", 100)))
    found = predict_counts(LineCounts(loops=2, loop_bytes=200, work=Counter([light, heavy])), 1, machine)
    assert (found.memory, found.operations, found.total) == (100 / 50, 100 / 4 + 100 / 1000, 27.1)


def test_complex_operations_have_rates_of_their_own() -> None:
    work = LoopWork(100, (("complex divide", 100), ("complex exp", 100), ("complex copysign", 9)))
    machine = replace(MACHINE, operation_rates={"divide": 8.0, "complex divide": 2.0, "exp": 4.0})
    found = predict_counts(LineCounts(loops=1, loop_bytes=100, work=Counter([work])), 1, machine)
    assert found.operations == 100 / 2 + 100 / 4, "as of real numbers, where nothing else is known"


def test_sums_along_rows_and_across_them_have_rates_of_their_own() -> None:
    names = "a reduction of rows", "a reduced row", "a reduction of columns", "an added row"
    work = LoopWork(1, tuple((name, 100) for name in names))
    counts = LineCounts(loops=1, loop_bytes=1, work=Counter([work]))
    machine = replace(MACHINE, operation_rates=dict(zip(names, (100.0, 50.0, 25.0, 10.0), strict=True)))
    assert predict_counts(counts, 1, machine).operations == 1 + 2 + 4 + 10
    older = replace(MACHINE, operation_rates={"a reduction": 100.0, "a reduced row": 50.0})
    assert predict_counts(counts, 1, older).operations == 1 + 2 + 1 + 2


def test_functions_have_speeds_of_their_own() -> None:
    machine = replace(MACHINE, sort_rate=5.0, transform_flops=7.0, random_rate=2.0, function_seconds=1.0)
    x = np.empty((64, 16))
    works = [
        function_work("numpy.sort", [x], {}, 2),
        function_work("numpy.fft.fft2", [x], {}, 2),
        function_work("numpy.matmul", [x], {}, 2, [(64, 16), (16,)]),
        FunctionWork("random numbers", 0, "random", 10),
        function_work("numpy.trace", [x], {}, 2),
    ]
    assert [work.amount for work in works[:3]] == [512 * 4, 5 * 512 * 10, 64 * 16 * 2 // 2]
    amounts = {"functions": 5, "function_bytes": 4 * x.nbytes // 2, "flops": works[2].amount}
    found = predict_counts(LineCounts(**amounts, work=Counter(works)), 2, machine)
    passes = 2 * works[1].nbytes / 100  # a transform reads its lines and writes them
    assert found.functions == pytest.approx(works[0].amount / 5 + works[1].amount / 7 + passes + 10 / 2)
    assert found.arithmetic == works[2].amount / 10 and found.interpreter == 5.0
    assert found.memory == x.nbytes / 2 / 100, "what is not known reads its arguments"
    rank = RankPlan(0, lines={LINE: LineCounts(**amounts, work=Counter(works))}, texts={LINE: "y = trace(x)"})
    assert rank.not_modelled == {"numpy.trace": 1}
    (told,) = [line for line in job_lines(JobPlan(1, [rank]), machine) if line.startswith("not modelled")]
    assert "numpy.trace (1)" in told


def test_functions_of_tall_matrices_and_short_rows() -> None:
    machine = replace(MACHINE, product_bandwidth=4.0, factor_flops=8.0, row_rate=2.0, making_rate=5.0)
    x = np.empty((400, 4))
    found = {
        "vector product": (function_work("numpy.matmul", [x], {}, 2, [x.shape, (4,)]), x.nbytes / 2 / 4),
        "tall": (function_work("numpy.linalg.lstsq", [x], {}, 2), 2 * 400 * 4**2 / 2 / 8),
        "rows": (function_work("numpy.argmin", [x], {"axis": -1}, 2), 400 / 2 / 2 + x.nbytes / 2 / 100),
        "making": (FunctionWork("making an array", 0, "making", 30), 30 / 5),
    }
    for kind, (work, seconds) in found.items():
        counts = LineCounts(function_bytes=work.nbytes, work=Counter([work]))
        counts.flops = work.amount if kind == "vector product" else 0
        assert (work.kind, predict_counts(counts, 2, machine).total) == (kind, pytest.approx(seconds))
    kinds = [function_work("numpy.argmin", [x], {"axis": axis}, 2).kind for axis in (0, None)]
    assert kinds == ["extremes", "extremes"]
    assert function_work("numpy.matmul", [x], {}, 2, [x.shape, (4, 4)]).kind == "product"


@pytest.mark.parametrize(
    "name, shapes, kind, amount",
    [
        ("numpy.histogram", [(640,)], "histogram", 320),
        ("numpy.bincount", [(640,), (640,)], "histogram", 320),
        ("numpy.nanpercentile", [(64, 10)], "selection", 320),
        ("numpy.multiply.accumulate", [(640,)], "scan", 320),
        ("numpy.flatnonzero", [(640,)], "selecting", 320),
        ("numpy.take", [(640,), (100,)], "picking", 50),
        ("numpy.searchsorted", [(16,), (640,)], "search", 320 * 4),
        ("numpy.searchsorted", [(640,), (16,)], "search", 320 * 4),
        ("numpy.convolve", [(640,), (9,)], "convolution", 320 * 9),
        ("numpy.linalg.inv", [(10, 8, 8)], "factorisation", 2 * 10 * 8**3 // 2),
        ("numpy.linalg.solve", [(60, 60), (60, 30)], "factorisation", (2 * 60**3 // 3 + 2 * 60**2 * 30) // 2),
        ("numpy.linalg.eigh", [(60, 60)], "spectrum", 9 * 60**3 // 2),
    ],
)
def test_functions_have_rates_of_their_kind(name: str, shapes: list, kind: str, amount: int) -> None:
    work = function_work(name, [np.empty(shape) for shape in shapes], {}, 2, shapes)
    assert (work.kind, work.amount) == (kind, amount)
    machine = replace(MACHINE, copy_bandwidth=1e9, function_rates={kind: 4.0})
    counts = LineCounts(functions=1, function_bytes=work.nbytes, work=Counter([work]))
    assert predict_counts(counts, 1, replace(machine, function_seconds=1e-9)).functions == pytest.approx(amount / 4)
    unknown = predict_counts(counts, 1, replace(machine, function_rates={}))
    assert (unknown.functions, unknown.memory) == (0.0, work.nbytes / 1e9), "what is not known reads its arguments"


def test_each_part_of_a_loop_takes_its_time() -> None:
    machine = replace(MACHINE, loop_seconds=2.0)
    assert [predict_counts(LineCounts(loops=3, parts=n), 1, machine).interpreter for n in (0, 7)] == [6.0, 14.0]


def test_loops_find_nothing_in_caches_that_the_arrays_of_a_rank_do_not_fit_in() -> None:
    machine = replace(MACHINE, bandwidths=((100.0, 800.0), (10_000.0, 200.0)))
    counts = LineCounts(loops=2, loop_bytes=200, work=Counter({LoopWork(100, ()): 2}))
    found = [predict_counts(counts, 1, machine, held).memory for held in (100, 1000, 10_001)]
    assert found == [2 * 100 / 800, 2 * 100 / 400, 2 * 100 / 50]
    rank = RankPlan(0, peak=1000, lines={LINE: counts}, texts={LINE: "y = x + 1"})
    assert predict(JobPlan(1, [rank]), machine).parts.memory == 2 * 100 / 400


def test_exchanges_and_functions_that_communicate_take_python() -> None:
    machine = replace(MACHINE, exchange_seconds=3.0, spread_seconds=5.0, collective_seconds=7.0)
    counts = LineCounts(exchanges=2, spread_functions=1, collectives=4)
    assert predict_counts(counts, 4, machine).interpreter == 2 * 3.0 + 5.0 + 4 * 7.0


def test_ranks_that_outnumber_the_cores_take_turns() -> None:
    machine = replace(MACHINE, cores=2, threads=1, ranks_per_machine=8, exchange_seconds=3.0, switch_seconds=0.5)
    assert [machine.turns(size) for size in (1, 2, 4, 8, 16)] == [(n, n) for n in (1, 1, 2, 4, 4)]
    assert replace(machine, threads=2).turns(4) == (2, 4), "each of them would have all cores"
    counts = LineCounts(loop_bytes=100, exchanges=2, collectives=1)
    two, four, eight = (predict_counts(counts, size, machine) for size in (2, 4, 8))
    assert [each.memory for each in (two, four, eight)] == [2.0, 4.0, 8.0]
    assert [each.interpreter for each in (two, four, eight)] == [6.0, 12.0, 24.0]
    assert [each.turns for each in (two, four, eight)] == [0.0, (2 + 2) * 0.5, (2 + 3) * 0.5 * 3]
    told = job_lines(JobPlan(4, [rank_of(0, 4, exchanges=2)]), machine)
    assert any(line.strip() == "4 ranks on 2 cores, which they use in turn" for line in told)
    assert not any("in turn" in line for line in job_lines(JobPlan(2, [rank_of(0, 4, exchanges=2)]), machine))


def test_cores_that_all_work_are_slower() -> None:
    machine = replace(MACHINE, busy={"kernel_bandwidth": 25.0, "statement_seconds": 1.0})
    counts = LineCounts(loop_bytes=100)
    assert [predict_counts(counts, 2, each).memory for each in (machine, replace(machine, ranks_per_machine=2))] == [
        2,
        8,
    ]
    found = predict(JobPlan(2, [rank_of(0, statements=8)]), replace(machine, ranks_per_machine=2, cores=2, threads=1))
    assert found.parts.interpreter == 8.0


def test_products_of_narrow_matrices_are_slower() -> None:
    machine = replace(MACHINE, product_rates=((4.0, 5.0), (16.0, 20.0)))
    assert [machine.product_flops(side) for side in (0, 1, 4, 8, 16, 99)] == [10, 5, 5, pytest.approx(10), 20, 20]
    work = function_work("numpy.matmul", [np.empty((400, 4))], {}, 2, [(400, 4), (4, 7)])
    assert (work.side, function_work("numpy.matmul", [np.empty((8, 8))], {}, 4, [(8, 8), (8, 8)]).side) == (4, 2)
    counts = LineCounts(flops=work.amount, function_bytes=work.nbytes, work=Counter([work]))
    assert predict_counts(counts, 2, machine).arithmetic == max(work.amount / 5, work.nbytes / 100)


def test_busy_machines_in_files(tmp_path) -> None:
    path = tmp_path / "machine.json"
    whole = replace(MACHINE, **dict.fromkeys(NOTHING, 1.0), cores=2, threads=1, product_rates=((1.0, 9.0),))
    whole = replace(whole, busy={"flops": 3.0, "bandwidths": ((1.0, 9.0), (2.0, 8.0)), "operation_rates": {"exp": 2.0}})
    save_speeds(whole, path)
    assert load_speeds(path) == whole
    good = path.read_text()
    for text, words in [
        (good.replace('"flops": 3.0', '"flops": -3.0'), "busy is .*speeds by their names"),
        (good.replace('"flops": 3.0', '"cores": 3'), "busy is .*speeds by their names"),
        (good.replace('"cores": 2', '"cores": 0'), "cores is 0"),
    ]:
        path.write_text(text)
        with pytest.raises(ValueError, match=words):
            load_speeds(path)


def test_a_script_that_writes_is_told_what_to_leave_out() -> None:
    rank = rank_of(0, 1, loop_bytes=8)
    rank.ending = "script.py:7 (np.save('a.npy', x)): WritesNothing: a.npy would be changed, and a plan writes no files"
    lines = job_lines(JobPlan(1, [rank]), MACHINE)
    assert "make the script leave out what it writes at script.py:7" in lines[-1]
    assert not any("nobody" in line for line in lines)
    rank.ending = "script.py:7 (1 / 0): ZeroDivisionError: division by zero"
    assert "nobody has computed" in job_lines(JobPlan(1, [rank]), MACHINE)[-1]
