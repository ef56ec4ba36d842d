"""Predictions of counts that are made up: each part of the time comes of what it should, and the limit is named."""

from __future__ import annotations

import pytest

from numpy_dist.frames import UserLine
from numpy_dist.scaling.counted import HeldArray, JobPlan, LineCounts, RankPlan, merged
from numpy_dist.scaling.machine import MachineSpeeds, load_speeds, save_speeds
from numpy_dist.scaling.prediction import predict, predict_counts, rounds
from numpy_dist.scaling.text import job_lines, seconds_text, size_text, summary_lines

LINE, OTHER = UserLine("script.py", 3), UserLine("script.py", 7)
MACHINE = MachineSpeeds("made up", 100.0, 50.0, 10.0, 2.0, 4.0, 0.25, 1e4)


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


def test_a_collective_brings_a_slot_of_each_rank() -> None:
    small = predict_counts(LineCounts(collectives=1, collective_bytes=8, bytes=8), 1001, MACHINE)
    assert small.bandwidth == 256 * 1000 / 4.0 and small.latency == 2.0 * 10
    assert predict_counts(LineCounts(collectives=1, collective_bytes=8, bytes=8), 1, MACHINE).total == 0.0
    assert [rounds(size) for size in (1, 2, 3, 4, 5, 1024, 1025)] == [0, 1, 2, 2, 3, 10, 11]


def test_ranks_on_one_machine_share_its_memory() -> None:
    shared = MachineSpeeds("made up", 100.0, 50.0, 10.0, 2.0, 4.0, 0.25, 1e4, 4)
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
    save_speeds(MACHINE, path)
    assert load_speeds(path) == MACHINE
    good = path.read_text()
    for text, words in [
        ("{", "no machine file"),
        ("[]", "no machine file of format 1"),
        (good.replace('"latency": 2.0', '"latency": 0'), "latency is 0"),
        (good.replace('"latency": 2.0', '"latency": true'), "latency is True"),
        (good.replace('"latency"', '"lag"'), "lag is none of a machine's speeds"),
    ]:
        path.write_text(text)
        with pytest.raises(ValueError, match=words):
            load_speeds(path)
