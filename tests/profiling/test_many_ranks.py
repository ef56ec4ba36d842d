"""Profiles of 64 ranks: the page stays one that can be looked at, and merging takes time by the size of the logs."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from numpy_dist.profiling import folder as folders
from numpy_dist.profiling.advice import advise
from numpy_dist.profiling.analysis import KINDS, profiled, ranks_text, sent_bytes
from numpy_dist.profiling.groups import MOST_ROWS, drawn_together, neighbours, rows_of, standing_out
from numpy_dist.profiling.log import (
    CollectiveRun,
    ExchangeStart,
    ExchangeWait,
    LogEnd,
    LoopDescription,
    LoopRun,
    MemoryUse,
    RankLog,
    Record,
    log_of,
    to_line,
)
from numpy_dist.profiling.page import page_of
from tests.profiling.hand_made import LINES, at, header
from tests.profiling.test_page import Reader

RANKS, STEPS = 64, 30
LATE, KILLED = 5, 40


def records(rank: int, ranks: int = RANKS, steps: int = STEPS) -> list[Record]:
    """Each step 1 ms: a halo of neighbours, a loop, and a collective that all wait in for one rank."""
    made: list[Record] = [*LINES, LoopDescription(0, [0], "sin", 8_000_000, 8_000_000, "numba")]
    beside = [other for other in (rank - 1, rank + 1) if 0 <= other < ranks]
    for step in range(steps):
        busy = 0.8 if rank == LATE else 0.2
        made += [
            ExchangeStart(at(step), step, 0, [[r, 800] for r in beside], [[r, 800] for r in beside], 0),
            ExchangeWait(at(step + 0.01), at(step + 0.02), step),
            LoopRun(at(step), at(step + busy), [0]),
            CollectiveRun(at(step + busy), at(step + 0.9), "allgather", -1, 50, 1),
            MemoryUse(at(step + 0.9), 4_000_000 + rank, 0),
        ]
    return [*made, LogEnd(at(steps), len(beside) * steps, 0, steps, 5_000_000, 0)]


def job(ranks: int = RANKS, steps: int = STEPS) -> list[RankLog]:
    return [log_of(header(rank, ranks), records(rank, ranks, steps)) for rank in range(ranks)]


def test_groups_of_neighbours() -> None:
    assert [group.label for group in neighbours(3)] == ["0", "1", "2"]
    assert [group.name for group in neighbours(64)][:2] == ["ranks 0 to 3", "ranks 4 to 7"]
    for size in range(1, 300):
        groups = neighbours(size)
        assert [rank for group in groups for rank in group.ranks] == list(range(size)) and len(groups) <= MOST_ROWS


def test_ranks_in_words() -> None:
    assert ranks_text([*range(15), 16, 17, *range(20, 64)]) == "ranks 0 to 14, 16, 17, 20 to 63"


def test_rows_of_17_ranks_have_all_of_them() -> None:
    rows = rows_of(profiled(job(17, 3)))
    assert {rank for row in rows for rank in row.ranks} == set(range(17))


def test_what_several_ranks_did() -> None:
    found = profiled(job(4, 2))
    drawn = drawn_together(found, range(4))
    kinds = {KINDS[kind] for _, _, kind, _ in drawn}
    assert kinds >= {"loop", "collective"} and all(begin < end <= found.length for begin, end, *_ in drawn)
    assert drawn[0][0] == 0 and all(a[1] <= b[0] for a, b in zip(drawn, drawn[1:], strict=False))
    words = next(text for begin, _, _, text in drawn if begin >= 0.5e6)
    assert words == "100 % collective"
    gap = [begin for begin, end, *_ in drawn if 0.9e6 <= begin and end <= 1e6]
    assert not gap  # outside


def test_bytes_to_every_rank() -> None:
    sent = sent_bytes(profiled(job(8, 3)))
    assert sent[0, 1] == 3 * 850 and sent[0, 2] == 3 * 50 and len(sent) == 56


def test_the_page_of_64_ranks() -> None:
    found = profiled(job())
    told = advise(found)
    assert any(text.startswith("60 % of the time ranks 0 to 4, 6 to 63 wait for rank 5") for text in told)
    page = page_of(found, told)
    words = Reader(page).words
    data = json.loads(words["data"])
    names = [row["name"] for row in data["ranks"]]
    assert names[-MOST_ROWS:] == [group.name for group in neighbours(RANKS)] and f"rank {LATE}" in names
    assert len(names) <= MOST_ROWS + 8
    for name in ("bytes", "waiting"):
        assert words[name].split()[:MOST_ROWS] == [group.label for group in neighbours(RANKS)]
    assert page.count("<polyline") <= 16
    assert len(page) < 1_000_000
    assert LATE in standing_out(found)


def test_a_rank_is_killed_and_the_job_with_it() -> None:
    logs = job()
    for rank in range(RANKS):
        cut = records(rank)[: 60 if rank == KILLED else 66]
        logs[rank] = log_of(header(rank, RANKS), cut)
    first = advise(profiled(logs))[0]
    assert first.startswith("Ranks 0 to 63 did not come to the end of the profile: their logs end after 11 ms to 12 ms")


def calls(function: Callable[[], object]) -> int:
    """How many functions of Python's and lines of ours a function runs: its work, whatever the machine is busy with."""
    count = 0

    def look(frame: object, event: str, argument: object) -> object:
        nonlocal count
        count += 1
        return look

    before = sys.gettrace()
    sys.settrace(look)
    try:
        function()
    finally:
        sys.settrace(before)
    return count


@pytest.mark.slow
def test_merging_takes_time_by_the_size_of_the_logs() -> None:
    def merge(logs: list[RankLog]) -> Callable[[], object]:
        def all_of_it() -> None:
            found = profiled(logs)
            page_of(found, advise(found))

        return all_of_it

    few, many = calls(merge(job(16, 48))), calls(merge(job(64, 12)))
    longer = calls(merge(job(64, 48)))
    assert many < 1.5 * few  # as many records
    assert longer < 4.4 * many


@pytest.mark.slow
def test_64_logs_of_which_one_ends_in_the_middle(tmp_path: Path) -> None:
    for rank in range(RANKS):
        text = "".join(map(to_line, [header(rank, RANKS), *records(rank)]))
        if rank == KILLED:
            text = text[: len(text) // 2]  # in the middle of a line, too
        Path(folders.log_path(str(tmp_path), rank)).write_text(text)
    page = Path(folders.write_results(str(tmp_path))).read_text()
    words = Reader(page).words
    assert f"Rank {KILLED} did not come to the end of the profile: its log ends after " in words["advice"]
    names = [row["name"] for row in json.loads(words["data"])["ranks"]]
    assert f"rank {KILLED}" in names and "ranks 40 to 43" in names
    spans = next(row["spans"] for row in json.loads(words["data"])["ranks"] if row["name"] == f"rank {KILLED}")
    assert 10 < len(spans) < 4 * STEPS and max(begin + length for begin, length, *_ in spans) < 20e6
    assert "wait for rank 5" in words["advice"]
    trace = json.loads((tmp_path / "trace.json").read_text())
    assert {event["pid"] for event in trace["traceEvents"]} == set(range(RANKS))
