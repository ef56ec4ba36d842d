"""What the logs of all ranks say together: pure functions.

Each rank's time is divided among *spans*, which nest as calls do: a loop, and the wait for messages within it. What a
span takes without those within it is its *own* time, which belongs to a line of the user's. What no span covers is
code outside of numpy_dist.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from numpy_dist.profiling.log import RankLog, Record, ThreadRun

Line = tuple[str, int]
"""A file and a number: the same on all ranks."""

LOOP, FUNCTION, GATHER, PLANNING, COLLECTIVE, MESSAGES = "loop function gather planning collective messages".split()
KINDS = (LOOP, FUNCTION, GATHER, PLANNING, COLLECTIVE, MESSAGES)
COMMUNICATION = (COLLECTIVE, MESSAGES)


class ProfileSpan(NamedTuple):
    """Something that a rank did, in nanoseconds since the profile began.

    Attributes
    ----------
    begin, end : int
    kind : str
        One of `KINDS`.
    name : str
    lines : dict of Line to float
        To which of the user's lines it belongs, and with which part; the parts add up to 1.
    nbytes : int
        That a loop has read and written, or that were sent or gathered.
    within : int
        Which span it lies in, -1 for none; `own` is its time without those in it.
    own : int
    detail : str
        By what a loop was run, or what was planned.
    """

    begin: int
    end: int
    kind: str
    name: str
    lines: dict[Line, float]
    nbytes: int
    within: int = -1
    own: int = 0
    detail: str = ""


class LateWait(NamedTuple):
    """A wait of one rank for another that came later.

    Attributes
    ----------
    rank, late : int
        Who has waited, and for whom.
    begin, end : int
    span : int
        In which of its spans.
    """

    rank: int
    late: int
    begin: int
    end: int
    span: int


@dataclass
class LineCost:
    """What one line has cost on all ranks, in nanoseconds.

    Attributes
    ----------
    line : Line
    text : str
        What it says.
    busy, communicating : int
        Time in loops and functions, and in communication (waits included).
    nbytes : int
        Read and written by its loops, whose time is `looping`.
    looping : int
    runs : int
        How many loops, functions and gathers ran for it.
    tiers : dict of str to int
        By what its loops were run, and for how long.
    """

    line: Line
    text: str
    busy: int = 0
    communicating: int = 0
    nbytes: int = 0
    looping: int = 0
    runs: int = 0
    tiers: dict[str, int] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """All its time."""
        return self.busy + self.communicating


@dataclass
class Profiled:
    """A profile: the logs of its ranks on one clock that begins with 0, and what follows from them.

    Attributes
    ----------
    logs : list of RankLog
    length : int
        Nanoseconds in all.
    spans : dict of int to list of ProfileSpan
        By rank, in the order in which they begin.
    late : list of LateWait
    """

    logs: list[RankLog]
    length: int
    spans: dict[int, list[ProfileSpan]]
    late: list[LateWait]

    @property
    def size(self) -> int:
        """How many ranks the job had, whose logs may not all be here."""
        return self.logs[0].header.size

    @property
    def folder(self) -> str:
        """Where the job ran."""
        return self.logs[0].header.folder

    @cached_property
    def copy_speed(self) -> float:
        """Bytes per second that a copy reads and writes on a rank: the median of ranks; 0 where it was not measured."""
        speeds = sorted(log.copy_speed for log in self.logs if log.copy_speed)
        return speeds[len(speeds) // 2] if speeds else 0.0

    @cached_property
    def threads(self) -> dict[int, dict[str, list[ThreadRun]]]:
        """What other threads of each rank did, by their names."""
        return {log.rank: threads_of(log) for log in self.logs}

    @cached_property
    def costs(self) -> list[LineCost]:
        """What the user's lines have cost, the most expensive first."""
        return _line_costs(self)

    @cached_property
    def shares(self) -> dict[int, dict[str, int]]:
        """How each rank has spent the whole time: nanoseconds by `SHARES`, which add up to it."""
        return _shares(self)


_THREADS = ("worker", "helper", "compiler", "checkpoint", "text", "log")


def threads_of(log: RankLog) -> dict[str, list[ThreadRun]]:
    """What each other thread of a rank did, by its name: those that compute first."""
    found: defaultdict[str, list[ThreadRun]] = defaultdict(list)
    for run in log.threads:
        found[run.thread].append(run)

    def place(name: str) -> tuple[int, int, str]:
        kind, _, number = name.partition(" ")
        return _THREADS.index(kind) if kind in _THREADS else len(_THREADS), int(number or 0), name

    return {name: sorted(found[name]) for name in sorted(found, key=place)}


def thread_work(log: RankLog, run: ThreadRun) -> str:
    """What another thread did, in words."""
    return run.what or (log.loops[run.loop].operations if run.loop >= 0 else "ranges of a function")


def profiled(logs: Sequence[RankLog]) -> Profiled:
    """The profile that these logs are of."""
    logs = on_one_clock(logs)
    spans = {log.rank: spans_of(log) for log in logs}
    length = max([log.last for log in logs] + [1])
    return Profiled(logs, length, spans, late_waits(logs, spans))


# -- clocks -----------------------------------------------------------------------------------------------------------


def on_one_clock(logs: Sequence[RankLog]) -> list[RankLog]:
    """The same logs with times since the beginning of the first of them.

    Ranks on one machine have one clock. Others are compared by the time of day, which may be off by milliseconds.
    """
    first = logs[0].header
    shifts = []
    for log in logs:
        h = log.header
        shifts.append(0 if h.machine == first.machine else (h.wall - h.clock) - (first.wall - first.clock))
    origin = min(log.header.clock + shift for log, shift in zip(logs, shifts, strict=True))
    return [_shifted(log, shift - origin) for log, shift in zip(logs, shifts, strict=True)]


def _shifted(log: RankLog, by: int) -> RankLog:
    def moved(record: Any) -> Any:
        if hasattr(record, "at"):
            return record._replace(at=record.at + by)
        # What was wanted before the profile began is seen from there.
        return record._replace(begin=max(0, record.begin + by), end=record.end + by)

    header = log.header._replace(clock=log.header.clock + by)
    made = RankLog(header, log.lines, log.loops, uses=log.uses, copy_speed=log.copy_speed, last=log.last + by)
    for record in _records(log):
        made.add(moved(record))
    return made


def _records(log: RankLog) -> Iterator[Record]:
    yield from log.runs
    yield from log.plannings
    yield from log.collectives
    yield from log.starts
    yield from log.waits
    yield from log.compiles
    yield from log.gathers
    yield from log.functions
    yield from log.threads
    yield from log.notices
    yield from log.memory
    if log.end is not None:
        yield log.end


# -- spans ------------------------------------------------------------------------------------------------------------


def spans_of(log: RankLog) -> list[ProfileSpan]:
    """What a rank did, in the order in which it began; times in it nest."""
    at = {number: (found.filename, found.line) for number, found in log.lines.items()}
    flat = [*_loop_spans(log, at), *_other_spans(log, at)]
    flat.sort(key=lambda span: (span.begin, -span.end, KINDS.index(span.kind)))
    return _nested(flat)


def _loop_spans(log: RankLog, at: dict[int, Line]) -> Iterator[ProfileSpan]:
    for run in log.runs:
        loops = [log.loops[number] for number in run.loops]
        lines = [at[number] for loop in loops for number in loop.lines]
        parts: defaultdict[Line, float] = defaultdict(float)
        for line in lines:
            parts[line] += 1 / len(lines)
        name = "; ".join(loop.operations for loop in loops)
        nbytes = sum(loop.reads + loop.writes for loop in loops)
        tier = "; ".join(dict.fromkeys(loop.tier for loop in loops))
        yield ProfileSpan(run.begin, run.end, LOOP, name, dict(parts), nbytes, detail=tier)


def _other_spans(log: RankLog, at: dict[int, Line]) -> Iterator[ProfileSpan]:
    for planning in log.plannings:
        name = f"{planning.what}, {planning.statements} statements"
        yield ProfileSpan(planning.begin, planning.end, PLANNING, name, {}, 0, detail=planning.what)
    for call in log.collectives:
        yield ProfileSpan(call.begin, call.end, COLLECTIVE, call.kind, {at[call.line]: 1.0}, call.sent)
    starts = {start.number: start for start in log.starts}
    for wait in log.waits:
        start = starts.get(wait.number)
        if start is not None:
            partners = sorted({rank for rank, _ in (*start.sends, *start.receives)})
            name = "messages with " + ranks_text(partners)
            nbytes = sum(n for _, n in start.sends)
            yield ProfileSpan(wait.begin, wait.end, MESSAGES, name, {at[start.line]: 1.0}, nbytes)
    for gather in log.gathers:
        name = "gather to every rank" if gather.root < 0 else f"gather to rank {gather.root}"
        yield ProfileSpan(gather.begin, gather.end, GATHER, name, {at[gather.line]: 1.0}, gather.nbytes)
    for run in log.functions:
        yield ProfileSpan(run.begin, run.end, FUNCTION, run.function, {at[run.line]: 1.0}, 0)


def _nested(flat: list[ProfileSpan]) -> list[ProfileSpan]:
    """Spans with those that they lie in; communication within a loop belongs to the loop's lines."""
    made: list[ProfileSpan] = []
    open_spans: list[int] = []
    own = [span.end - span.begin for span in flat]
    for number, span in enumerate(flat):
        while open_spans and made[open_spans[-1]].end < span.end:
            open_spans.pop()
        within = open_spans[-1] if open_spans and made[open_spans[-1]].begin <= span.begin else -1
        lines = span.lines
        if within >= 0:
            own[within] -= span.end - span.begin
            if made[within].kind in (LOOP, FUNCTION) or not lines:
                lines = made[within].lines
        made.append(span._replace(within=within, lines=lines))
        open_spans.append(number)
    return [span._replace(own=max(0, time)) for span, time in zip(made, own, strict=True)]


def ranks_text(ranks: Sequence[int]) -> str:
    """Some ranks in rising order: "rank 0", "ranks 1 to 3", "ranks 0, 2", "ranks 0 to 14, 16 to 63"."""
    if len(ranks) == 1:
        return f"rank {ranks[0]}"
    runs: list[list[int]] = []
    for rank in ranks:
        if runs and rank == runs[-1][-1] + 1:
            runs[-1].append(rank)
        else:
            runs.append([rank])
    words = [f"{run[0]} to {run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs]
    return "ranks " + ", ".join(words)


# -- who waits for whom -----------------------------------------------------------------------------------------------


def late_waits(logs: Sequence[RankLog], spans: dict[int, list[ProfileSpan]]) -> list[LateWait]:
    """The part of each wait in which the rank that was waited for had not even come.

    The n-th collective of all ranks is one, and waits for the rank that comes last. Messages between two ranks with one
    tag match in order; what they wait for begins when the other rank has started its side.
    """
    places = {rank: {(s.begin, s.end, s.kind): n for n, s in enumerate(its)} for rank, its in spans.items()}
    found = [*_late_collectives(logs), *_late_messages(logs)]
    late = []
    for rank, other, begin, end, until, kind in found:
        if until > begin:
            late.append(LateWait(rank, other, begin, min(until, end), places[rank][begin, end, kind]))
    return sorted(late, key=lambda wait: wait.begin)


Waiting = tuple[int, int, int, int, int, str]
"""Who waits, for whom, the span's begin and end, when the other one came, and the span's kind."""


def _late_collectives(logs: Sequence[RankLog]) -> Iterator[Waiting]:
    if len(logs) < logs[0].header.size:
        return  # who came last is not known
    for number in range(min(len(log.collectives) for log in logs)):
        calls = [log.collectives[number] for log in logs]
        if len({call.kind for call in calls}) > 1:
            return  # they do not do the same, or did not begin at the same place
        last = max(range(len(calls)), key=lambda n: calls[n].begin)
        for log, call in zip(logs, calls, strict=True):
            if log is not logs[last]:
                yield log.rank, logs[last].rank, call.begin, call.end, calls[last].begin, COLLECTIVE


def matched_messages(logs: Sequence[RankLog]) -> Iterator[tuple[int, int, int, int, int, int]]:
    """Messages of which both sides are known: source, its exchange, destination, its exchange, bytes, and the tag."""
    sent: defaultdict[tuple[int, int, int], list[tuple[int, int]]] = defaultdict(list)
    received: defaultdict[tuple[int, int, int], list[tuple[int, int]]] = defaultdict(list)
    for log in logs:
        for start in log.starts:
            for rank, nbytes in start.sends:
                sent[log.rank, rank, start.tag].append((start.number, nbytes))
            for rank, nbytes in start.receives:
                received[rank, log.rank, start.tag].append((start.number, nbytes))
    for (source, target, tag), messages in sent.items():
        for (one, nbytes), (other, expected) in zip(messages, received[source, target, tag], strict=False):
            if nbytes != expected:
                break  # they do not belong together
            yield source, one, target, other, nbytes, tag


def _late_messages(logs: Sequence[RankLog]) -> Iterator[Waiting]:
    started = {(log.rank, start.number): start.at for log in logs for start in log.starts}
    partners: defaultdict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    for source, one, target, other, _, _ in matched_messages(logs):
        partners[target, other].append((started[source, one], source))
        partners[source, one].append((started[target, other], target))
    for log in logs:
        for wait in log.waits:
            # What came after the end was not waited for: the message was sent without it.
            came = [found for found in partners[log.rank, wait.number] if found[0] <= wait.end]
            if came:
                until, other = max(came)
                yield log.rank, other, wait.begin, wait.end, until, MESSAGES


def waiting_matrix(found: Profiled) -> dict[tuple[int, int], int]:
    """Nanoseconds that a rank has waited for another one that came later, by both."""
    total: defaultdict[tuple[int, int], int] = defaultdict(int)
    for wait in found.late:
        total[wait.rank, wait.late] += wait.end - wait.begin
    return dict(total)


# -- sums -------------------------------------------------------------------------------------------------------------

COMPUTING, WAITING, SENDING, PLANNED, OUTSIDE = "computing", "waiting", "communicating", "planning", "outside"
SHARES = (COMPUTING, WAITING, SENDING, PLANNED, OUTSIDE)


def _shares(found: Profiled) -> dict[int, dict[str, int]]:
    made = {}
    waited: defaultdict[int, int] = defaultdict(int)
    for wait in found.late:
        waited[wait.rank] += wait.end - wait.begin
    for log in found.logs:
        its = dict.fromkeys(SHARES, 0)
        for span in found.spans[log.rank]:
            name = SENDING if span.kind in (*COMMUNICATION, GATHER) else PLANNED if span.kind == PLANNING else COMPUTING
            its[name] += span.own
        late = waited[log.rank]
        its[WAITING], its[SENDING] = late, max(0, its[SENDING] - late)
        its[OUTSIDE] = max(0, found.length - sum(its.values()))
        made[log.rank] = its
    return made


def _line_costs(found: Profiled) -> list[LineCost]:
    texts = {(s.filename, s.line): s.text for log in found.logs for s in log.lines.values()}
    costs: dict[Line, LineCost] = {}
    for span in _all(found.spans):
        for line, part in span.lines.items():
            cost = costs.get(line)
            if cost is None:
                cost = costs[line] = LineCost(line, texts.get(line, ""))
            own = round(span.own * part)
            cost.runs += span.kind in (LOOP, FUNCTION, GATHER)
            if span.kind in COMMUNICATION or span.kind == GATHER:
                cost.communicating += own
                continue
            cost.busy += own
            if span.kind == LOOP:
                cost.looping += own
                cost.nbytes += round(span.nbytes * part)
                cost.tiers[span.detail] = cost.tiers.get(span.detail, 0) + own
    return sorted(costs.values(), key=lambda cost: -cost.total)


def _all(spans: dict[int, list[ProfileSpan]]) -> Iterable[ProfileSpan]:
    return (span for its in spans.values() for span in its)


def sent_bytes(found: Profiled) -> dict[tuple[int, int], int]:
    """Bytes from rank to rank. What a rank gives to a collective counts for each rank that gets it."""
    total: defaultdict[tuple[int, int], int] = defaultdict(int)
    for log in found.logs:
        me, everyone = log.rank, 0
        for start in log.starts:
            for rank, nbytes in start.sends:
                total[me, rank] += nbytes
        for call in log.collectives:
            if call.kind != "gather":
                everyone += call.sent // (max(1, found.size - 1) if call.kind == "scatter" else 1)
            elif call.root != me:
                total[me, call.root] += call.sent
        for rank in range(found.size):
            if rank != me:
                total[me, rank] += everyone
    return {key: nbytes for key, nbytes in total.items() if nbytes}


def line_traffic(found: Profiled) -> dict[Line, int]:
    """Bytes that lines have sent, all ranks together; what is given to a collective, once for each other rank."""
    total: defaultdict[Line, float] = defaultdict(float)
    for span in _all(found.spans):
        if span.kind in COMMUNICATION:
            copies = found.size - 1 if span.kind == COLLECTIVE else 1
            for line, part in span.lines.items():
                total[line] += part * span.nbytes * copies
    return {line: round(nbytes) for line, nbytes in total.items()}


def own_pieces(spans: Sequence[ProfileSpan]) -> list[tuple[int, int, int]]:
    """When each span was the innermost one: begin, end, and its number, in order and without overlaps."""
    pieces: list[tuple[int, int, int]] = []
    stack: list[int] = []
    now = 0

    def until(time: int) -> None:
        nonlocal now
        if stack and time > now:
            pieces.append((now, time, stack[-1]))
        now = max(now, time)

    for number, span in enumerate(spans):
        while stack and stack[-1] != span.within:
            until(spans[stack[-1]].end)
            stack.pop()
        until(span.begin)
        stack.append(number)
    while stack:
        until(spans[stack[-1]].end)
        stack.pop()
    return pieces


def meanwhile(found: Profiled, waits: Iterable[LateWait]) -> dict[tuple[int, int, bool], int]:
    """What the ranks that were waited for did meanwhile.

    Returns
    -------
    dict
        Nanoseconds by the rank, the number of its span, and whether it was in that span; else it ran code outside of
        numpy_dist after it, where -1 stands for no span.
    """
    waits = list(waits)
    pieces = {rank: own_pieces(found.spans[rank]) for rank in {wait.late for wait in waits}}
    begins = {rank: [piece[0] for piece in its] for rank, its in pieces.items()}
    total: defaultdict[tuple[int, int, bool], int] = defaultdict(int)
    for wait in waits:
        its, now = pieces[wait.late], wait.begin
        place = max(0, bisect_left(begins[wait.late], now) - 1)
        while now < wait.end:
            before = its[place - 1][2] if place else -1
            begin, end, number = its[place] if place < len(its) else (wait.end, wait.end, -1)
            outside, inside = min(begin, wait.end), min(end, wait.end)
            if outside > now:
                total[wait.late, before, False] += outside - now
                now = outside
            if inside > now:
                total[wait.late, number, True] += inside - now
                now = inside
            place += 1
    return dict(total)
