"""Logs: what one rank did when, as small tuples, and as lines of JSON in a file.

Times are nanoseconds of the rank's own clock (`time.perf_counter_ns`). Lines of the user's code and loops are described
once, and meant by their numbers.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple


class SourceText(NamedTuple):
    """A line of the user's code: its number in the log, where it stands, and what it says."""

    number: int
    filename: str
    line: int
    text: str


class LoopDescription(NamedTuple):
    """A loop that was executed, once or often.

    Attributes
    ----------
    number : int
    lines : sequence of int
        For each of its statements the line that has recorded it.
    operations : str
        What the statements compute, in their order.
    reads, writes : int
        Bytes on this rank for one pass, each cell once.
    tier : str
        By what it was run.
    """

    number: int
    lines: Sequence[int]
    operations: str
    reads: int
    writes: int
    tier: str


class LoopRun(NamedTuple):
    """Loops were executed: one, or several together (a chain)."""

    begin: int
    end: int
    loops: Sequence[int]


class PlanningRun(NamedTuple):
    """Something was planned; `what` says whether a schedule was made or found, or a loop was planned."""

    begin: int
    end: int
    what: str
    statements: int


class CollectiveRun(NamedTuple):
    """A collective operation; `sent` are the bytes that this rank has added, and `root` is -1 where there is none."""

    begin: int
    end: int
    kind: str
    root: int
    sent: int
    line: int


class ExchangeStart(NamedTuple):
    """Messages were started: ranks and bytes of those that are sent and of those that are expected."""

    at: int
    number: int
    tag: int
    sends: Sequence[Sequence[int]]
    receives: Sequence[Sequence[int]]
    line: int


class ExchangeWait(NamedTuple):
    """This rank has waited for the messages with a number."""

    begin: int
    end: int
    number: int


class CompileRun(NamedTuple):
    """A kernel was wanted until it was there, or had failed (`failure` says why)."""

    begin: int
    end: int
    failure: str


class GatherRun(NamedTuple):
    """An array came to one rank or to all (`root` is -1)."""

    begin: int
    end: int
    nbytes: int
    root: int
    line: int


class FunctionRun(NamedTuple):
    """A function ran that is no loop: a sort, a product, gathered NumPy, random numbers."""

    begin: int
    end: int
    function: str
    line: int


class ThreadRun(NamedTuple):
    """Another thread of the rank, or a process that compiles for it, was at work.

    Attributes
    ----------
    begin, end : int
    thread : str
        What it is called: "worker 0", "checkpoint".
    what : str
        What it did; "" for ranges of a loop.
    loop : int
        The loop, or the first of several that ran together; -1 for none.
    line : int
        Of the user's code, -1 where it is not known.
    busy : int
        Nanoseconds of these in which it worked; the rest it waited for more to do.
    ranges : int
        How many ranges of the loop it has computed.
    """

    begin: int
    end: int
    thread: str
    what: str
    loop: int
    line: int
    busy: int
    ranges: int


class Notice(NamedTuple):
    """What nobody asked for: an array was gathered or replicated, or a loop reads elements one by one.

    Attributes
    ----------
    how : str
        "gathered", "replicated" or "elements".
    amount : int
        Bytes, or elements.
    """

    at: int
    how: str
    function: str
    reason: str
    amount: int
    line: int


class MemoryUse(NamedTuple):
    """Bytes of the pool that arrays held, and that were kept for reuse."""

    at: int
    held: int
    free: int


class AxisUse(NamedTuple):
    """Along which axes a line works on arrays, once for each line, shape and cut.

    Attributes
    ----------
    shape, cut : sequence of int
        The arrays' shape, and the axes that are cut.
    along : sequence of int
        Axes along which elements come together: neighbours in a loop, what is reduced, scanned or sorted.
    known : bool
        Whether that is all; otherwise it may be any axis.
    line : int
    """

    shape: Sequence[int]
    cut: Sequence[int]
    along: Sequence[int]
    known: bool
    line: int


class MemorySpeed(NamedTuple):
    """Bytes per second that a copy on the rank's threads reads and writes, when the profile begins."""

    copy: float


class LogEnd(NamedTuple):
    """The profile has ended: what the communicator has counted meanwhile, the pool's peak, and what was left out."""

    at: int
    messages: int
    nbytes: int
    collectives: int
    peak: int
    left_out: int


Record = (
    SourceText
    | LoopDescription
    | LoopRun
    | PlanningRun
    | CollectiveRun
    | ExchangeStart
    | ExchangeWait
    | CompileRun
    | GatherRun
    | FunctionRun
    | ThreadRun
    | Notice
    | MemoryUse
    | AxisUse
    | MemorySpeed
    | LogEnd
)
# The first word of each line of a file.
WORDS: dict[str, Any] = {
    "line": SourceText,
    "loop": LoopDescription,
    "run": LoopRun,
    "planning": PlanningRun,
    "collective": CollectiveRun,
    "messages": ExchangeStart,
    "wait": ExchangeWait,
    "compile": CompileRun,
    "gather": GatherRun,
    "function": FunctionRun,
    "thread": ThreadRun,
    "notice": Notice,
    "memory": MemoryUse,
    "axes": AxisUse,
    "speed": MemorySpeed,
    "end": LogEnd,
}
_WORD_OF = {kind: word for word, kind in WORDS.items()}
FORMAT = 2


class LogHeader(NamedTuple):
    """The first line of a file.

    Attributes
    ----------
    format : int
    rank, size : int
    clock, wall : int
        The rank's clock and the time of day at one moment, by which the clocks of machines are compared.
    machine : str
        Ranks on one machine have one clock.
    host, backend, folder, command : str
        The machine's name, what computes, the working directory, and the program with its arguments.
    pid : int
    """

    format: int
    rank: int
    size: int
    clock: int
    wall: int
    machine: str
    host: str
    backend: str
    folder: str
    command: str
    pid: int


@dataclass
class RankLog:
    """What one rank has recorded.

    Attributes
    ----------
    header : LogHeader
    lines, loops : dict
        Descriptions by number.
    runs, plannings, collectives, starts, waits, compiles, gathers, functions, threads, notices, memory
        What happened, in the order in which it ended.
    uses : list of AxisUse
        Along which axes lines work.
    copy_speed : float
        Bytes per second; 0 where it was not measured.
    end : LogEnd or None
        None where the rank has not come to the end of its profile.
    last : int
        The latest time in the log.
    """

    header: LogHeader
    lines: dict[int, SourceText] = field(default_factory=dict)
    loops: dict[int, LoopDescription] = field(default_factory=dict)
    runs: list[LoopRun] = field(default_factory=list)
    plannings: list[PlanningRun] = field(default_factory=list)
    collectives: list[CollectiveRun] = field(default_factory=list)
    starts: list[ExchangeStart] = field(default_factory=list)
    waits: list[ExchangeWait] = field(default_factory=list)
    compiles: list[CompileRun] = field(default_factory=list)
    gathers: list[GatherRun] = field(default_factory=list)
    functions: list[FunctionRun] = field(default_factory=list)
    threads: list[ThreadRun] = field(default_factory=list)
    notices: list[Notice] = field(default_factory=list)
    memory: list[MemoryUse] = field(default_factory=list)
    uses: list[AxisUse] = field(default_factory=list)
    copy_speed: float = 0.0
    end: LogEnd | None = None
    last: int = 0

    @property
    def rank(self) -> int:
        """The rank whose log this is."""
        return self.header.rank

    def add(self, record: Record) -> None:
        """Take a record up."""
        if isinstance(record, SourceText):
            self.lines[record.number] = record
            return
        if isinstance(record, LoopDescription):
            self.loops[record.number] = record
            return
        if isinstance(record, AxisUse):
            self.uses.append(record)
            return
        if isinstance(record, MemorySpeed):
            self.copy_speed = record.copy
            return
        if isinstance(record, LogEnd):
            self.end = record
        else:
            getattr(self, _LISTS[type(record)]).append(record)
        moment = isinstance(record, ExchangeStart | Notice | MemoryUse | LogEnd)
        self.last = max(self.last, record.at if moment else record.end)  # type: ignore[union-attr]


_LISTS: dict[type, str] = {
    LoopRun: "runs",
    PlanningRun: "plannings",
    CollectiveRun: "collectives",
    ExchangeStart: "starts",
    ExchangeWait: "waits",
    CompileRun: "compiles",
    GatherRun: "gathers",
    FunctionRun: "functions",
    ThreadRun: "threads",
    Notice: "notices",
    MemoryUse: "memory",
}


def log_of(header: LogHeader, records: Iterable[Record]) -> RankLog:
    """A log of these records."""
    log = RankLog(header, last=header.clock)
    for record in records:
        log.add(record)
    return log


def to_line(record: Record | LogHeader) -> str:
    """A record as a line of a file."""
    return json.dumps(["profile" if isinstance(record, LogHeader) else _WORD_OF[type(record)], *record]) + "\n"


def read_log(text: str) -> RankLog | None:
    """The log in a file; None where there is none. The last line may be cut off, as by the end of a process.

    Raises
    ------
    ValueError
        If the file is none of ours, or of another version.
    """
    lines = text.split("\n")[:-1]  # what has no end of line was not written to its end
    if not lines:
        return None
    first = json.loads(lines[0])
    if not isinstance(first, list) or first[:2] != ["profile", FORMAT]:
        raise ValueError(f"not a log of a profile in format {FORMAT}")
    words = [json.loads(line) for line in lines[1:]]
    return log_of(LogHeader(*first[1:]), (WORDS[word](*values) for word, *values in words))
