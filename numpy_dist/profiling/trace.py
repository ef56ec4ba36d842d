"""A profile in the trace-event format, which Perfetto and chrome://tracing show. A pure function.

Each rank is a process (pid); what it does is its first thread, kernels that it waits to be compiled are the second, and
its other threads follow.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from typing import Any

from numpy_dist.profiling.analysis import LOOP, LateWait, Profiled, ProfileSpan, matched_messages, thread_work
from numpy_dist.profiling.log import RankLog
from numpy_dist.profiling.words import file_word

MOST_ARROWS = 20_000  # of messages: more are no help
_MAIN, _COMPILING, _OTHERS = 0, 1, 2

Event = dict[str, Any]


def trace_text(found: Profiled) -> str:
    """The trace as JSON."""
    first = found.logs[0].header
    about = {"command": first.command, "ranks": found.size, "folder": first.folder}
    return json.dumps({"traceEvents": list(trace_events(found)), "displayTimeUnit": "ms", "otherData": about})


def trace_events(found: Profiled) -> Iterator[Event]:
    """The events of all ranks; times are microseconds."""
    late = {(wait.rank, wait.span): wait for wait in found.late}
    for log in found.logs:
        yield from _names(log)
        for number, span in enumerate(found.spans[log.rank]):
            yield _complete(log.rank, span, late.get((log.rank, number)), found.folder)
        yield from _other_threads(log, found)
        for notice in log.notices:
            args = {"function": notice.function, "reason": notice.reason, "amount": notice.amount}
            name = f"{notice.how}: {notice.function}"
            yield _event("i", log.rank, name, notice.at, cat="notice", s="t", args=args)
        for use in log.memory:
            yield _event("C", log.rank, "memory", use.at, args={"held": use.held, "free": use.free})
        for n, kernel in enumerate(log.compiles):
            name = f"failed: {kernel.failure}" if kernel.failure else "kernel"
            # They overlap: asynchronous events may.
            yield _event("b", log.rank, name, kernel.begin, tid=_COMPILING, cat="compile", id=f"{log.rank}.{n}")
            yield _event("e", log.rank, name, kernel.end, tid=_COMPILING, cat="compile", id=f"{log.rank}.{n}")
    yield from _arrows(found)


def _event(phase: str, rank: int, name: str, at: int, tid: int = _MAIN, **more: object) -> Event:
    return {"ph": phase, "pid": rank, "tid": tid, "name": name, "ts": at / 1000, **more}


def _names(log: RankLog) -> Iterator[Event]:
    head = log.header
    name = f"rank {log.rank} ({head.host}, process {head.pid}, {head.backend})"
    yield _event("M", log.rank, "process_name", 0, args={"name": name})
    yield _event("M", log.rank, "process_sort_index", 0, args={"sort_index": log.rank})
    yield _event("M", log.rank, "thread_name", 0, args={"name": "program"})
    if log.compiles:
        yield _event("M", log.rank, "thread_name", 0, tid=_COMPILING, args={"name": "kernels that are wanted"})


def _other_threads(log: RankLog, found: Profiled) -> Iterator[Event]:
    for number, (name, runs) in enumerate(found.threads[log.rank].items(), _OTHERS):
        yield _event("M", log.rank, "thread_name", 0, tid=number, args={"name": name})
        for run in runs:
            args: Event = {"busy": run.busy / 1000}
            if run.line >= 0:
                source = log.lines[run.line]
                args["lines"] = [f"{file_word(source.filename, found.folder)}:{source.line}"]
            if run.ranges:
                args["ranges"] = run.ranges
            duration = (run.end - run.begin) / 1000
            what = thread_work(log, run)
            yield _event("X", log.rank, what, run.begin, tid=number, dur=duration, cat="thread", args=args)


def _complete(rank: int, span: ProfileSpan, late: LateWait | None, folder: str) -> Event:
    args: Event = {"lines": [f"{file_word(name, folder)}:{line}" for name, line in span.lines]}
    if span.nbytes:
        args["bytes"] = span.nbytes
    if span.kind == LOOP and span.end > span.begin:
        args["GB/s"] = round(span.nbytes / (span.end - span.begin), 3)
    if span.detail:
        args["by"] = span.detail
    if late is not None:
        args["waits for"] = f"rank {late.late}, {(late.end - late.begin) / 1000:.0f} µs"
    return _event("X", rank, span.name, span.begin, dur=(span.end - span.begin) / 1000, cat=span.kind, args=args)


def _arrows(found: Profiled) -> Iterator[Event]:
    """Messages, from where they were sent to where they were waited for."""
    ended = {(log.rank, wait.number): wait.end for log in found.logs for wait in log.waits}
    started = {(log.rank, start.number): start.at for log in found.logs for start in log.starts}
    messages = ((m, ended[m[2], m[3]]) for m in matched_messages(found.logs) if (m[2], m[3]) in ended)
    for number, ((source, one, target, _, nbytes, _), end) in enumerate(islice(messages, MOST_ARROWS)):
        about: Event = {"cat": "message", "id": number, "args": {"bytes": nbytes}}
        yield _event("s", source, "message", started[source, one], **about)
        yield _event("f", target, "message", end, bp="e", **about)
