"""Logs written by hand: two ranks, of which the first comes late, whose times are easy to add up."""

from __future__ import annotations

from collections.abc import Iterable

from numpy_dist.profiling.log import (
    FORMAT,
    CollectiveRun,
    CompileRun,
    ExchangeStart,
    ExchangeWait,
    FunctionRun,
    GatherRun,
    LogEnd,
    LogHeader,
    LoopDescription,
    LoopRun,
    MemoryUse,
    Notice,
    PlanningRun,
    RankLog,
    Record,
    SourceText,
    ThreadRun,
    log_of,
)

MS = 1_000_000
START = 5_000 * MS
A, B = "/project/work/a.py", "/project/work/B<.py"


def header(rank: int, size: int = 2, clock: int = START, wall: int = 77, machine: str = "one") -> LogHeader:
    where = "host", "numba", "/project/work", "a.py --x"
    return LogHeader(FORMAT, rank, size, clock, wall, machine, *where, 4000 + rank)


LINES: list[Record] = [
    SourceText(0, A, 12, "y = f(x) < 1"),
    SourceText(1, A, 31, "z = np.unwrap(y)"),
    SourceText(2, B, 7, "print('</script><b>')"),
]


def at(ms: float) -> int:
    return START + int(ms * MS)


def records(rank: int) -> list[Record]:
    """100 ms: rank 0 computes 60 of them, rank 1 20; then a halo, and a collective at the end."""
    busy = 60 if rank == 0 else 20
    other = 1 - rank
    return [
        *LINES,
        LoopDescription(0, [0, 0, 1], "sin, less, add", 3_000_000, 1_500_000, "numpy: not yet compiled"),
        LoopDescription(1, [0], "less", 1_000_000, 500_000, "numba"),
        PlanningRun(at(0), at(2), "schedule made", 4),
        LoopRun(at(2), at(busy), [0]),
        MemoryUse(at(busy), 4_000_000, 0),
        ExchangeStart(at(busy), 1, 0, [[other, 800]], [[other, 800]], 0),
        ExchangeWait(at(busy + 1), at(61), 1),
        LoopRun(at(busy), at(70), [1]),
        CompileRun(at(3), at(30), ""),
        Notice(at(71), "gathered", "numpy.unwrap", "it has no distributed implementation", 800_000_000, 1),
        GatherRun(at(72), at(75), 800_000_000, 0, 1),
        FunctionRun(at(71), at(80), "numpy.unwrap", 1),
        CollectiveRun(at(85 if rank else 95), at(100), "allgather", -1, 50, 2),
        MemoryUse(at(100), 1_000_000, 3_000_000),
        LogEnd(at(100), 1, 850, 1, 4_000_000, 0),
    ]


def logs() -> list[RankLog]:
    return [log_of(header(rank), records(rank)) for rank in range(2)]


def threads(workers: int = 1) -> list[Record]:
    """Workers that take part in the first loop, each a millisecond less than the one before, and a checkpoint."""
    return [
        *(ThreadRun(at(3), at(20), f"worker {n}", "", 0, 0, (16 - n) * MS, 4) for n in range(workers)),
        ThreadRun(at(40), at(90), "checkpoint", "writing of step 5", -1, 2, 50 * MS, 0),
    ]


def logs_with_threads(workers: int = 1) -> list[RankLog]:
    return [log_of(header(rank), [*records(rank), *threads(workers)]) for rank in range(2)]


def without(kinds: type | tuple[type, ...], log: Iterable[Record]) -> list[Record]:
    return [record for record in log if not isinstance(record, kinds)]
