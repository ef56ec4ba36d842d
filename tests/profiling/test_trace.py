"""The trace in the trace-event format: what the viewers ask of it."""

from __future__ import annotations

import json
from collections import defaultdict

from numpy_dist.profiling.analysis import profiled
from numpy_dist.profiling.trace import trace_events, trace_text
from tests.profiling.hand_made import logs, logs_with_threads


def test_it_is_valid_and_says_all() -> None:
    trace = json.loads(trace_text(profiled(logs())))
    events = trace["traceEvents"]
    for event in events:
        assert {"ph", "pid", "tid", "name", "ts"} <= event.keys() and event["ts"] >= 0
        assert event["ph"] in "XMCibesf"
        assert ("dur" in event) == (event["ph"] == "X")
        assert ("id" in event) == (event["ph"] in "besf")
    assert {event["pid"] for event in events} == {0, 1}
    names = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    assert names == {r: f"rank {r} (host, process {4000 + r}, numba)" for r in (0, 1)}
    assert {"sin, less, add", "numpy.unwrap", "allgather", "messages with rank 0"} <= {e["name"] for e in events}


def test_events_of_a_thread_nest() -> None:
    threads = defaultdict(list)
    for event in trace_events(profiled(logs())):
        if event["ph"] == "X":
            threads[event["pid"], event["tid"]].append((event["ts"], -event["dur"]))
    assert threads
    for events in threads.values():
        open_ends: list[float] = []
        for begin, duration in sorted(events):
            while open_ends and open_ends[-1] <= begin:
                open_ends.pop()
            assert not open_ends or begin - duration <= open_ends[-1]
            open_ends.append(begin - duration)


def test_loops_tell_their_lines_and_bandwidth() -> None:
    events = list(trace_events(profiled(logs())))
    first = next(e for e in events if e["name"] == "sin, less, add" and e["pid"] == 1)
    assert (first["ts"], first["dur"]) == (2000, 18000)
    assert first["args"] == {
        "lines": ["a.py:12", "a.py:31"], "bytes": 4_500_000, "GB/s": 0.25, "by": "numpy: not yet compiled",
    }  # fmt: skip
    wait = next(e for e in events if e["name"] == "messages with rank 0")
    assert wait["args"]["waits for"] == "rank 0, 39000 µs"


def test_memory_kernels_and_arrows() -> None:
    events = list(trace_events(profiled(logs())))
    assert [e["args"] for e in events if e["ph"] == "C" and e["pid"] == 0] == [
        {"held": 4_000_000, "free": 0}, {"held": 1_000_000, "free": 3_000_000},
    ]  # fmt: skip
    assert [e["ts"] for e in events if e["ph"] in "be" and e["pid"] == 0] == [3000, 30000]
    arrows = [(e["ph"], e["pid"], e["id"], e["ts"]) for e in events if e["ph"] in "sf"]
    assert ("s", 0, 0, 60000) in arrows and ("f", 1, 0, 61000) in arrows and len(arrows) == 4


def test_other_threads() -> None:
    events = list(trace_events(profiled(logs_with_threads(2))))
    names = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert [names[1, tid] for tid in range(5)] == [
        "program", "kernels that are wanted", "worker 0", "worker 1", "checkpoint",
    ]  # fmt: skip
    assert {e["cat"] for e in events if e["ph"] == "X" and e["tid"] > 1} == {"thread"}
    worker = next(e for e in events if e["ph"] == "X" and (e["pid"], e["tid"]) == (1, 3))
    assert (worker["name"], worker["ts"], worker["dur"]) == ("sin, less, add", 3000, 17000)
    assert worker["args"] == {"busy": 15000, "lines": ["a.py:12"], "ranges": 4}
    saved = next(e for e in events if e["name"] == "writing of step 5")
    assert saved["args"] == {"busy": 50000, "lines": ["B<.py:7"]}
