"""Counts of a planned job, as plain data: what each rank that was looked at does, by the user's lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from typing import NamedTuple

from numpy_dist.frames import UserLine


class LoopWork(NamedTuple):
    """What one fused loop does on a rank.

    Attributes
    ----------
    nbytes : int
        It reads and writes, each cell once.
    operations : tuple of (str, int)
        NumPy's names of its operations ("a reduction" for any), and how many results of 8 bytes each of them gives; of
        a reduction, how many elements it reads. "a row", "a reduced row": how many rows are begun, as in
        `observer.operations_of`.
    """

    nbytes: int
    operations: tuple[tuple[str, int], ...]


class FunctionWork(NamedTuple):
    """What one call of a function that is no loop does on a rank.

    Attributes
    ----------
    name : str
    nbytes : int
        This rank's part of its arguments.
    kind : str
        "product", "vector product", "tall", "rows", "sort", "fft", "random", "making" or "copy", one of
        `machine.FUNCTION_RATES`, or empty: nothing is known of what such functions take.
    amount : int
        Of products and of decompositions of tall matrices, floating-point operations; of functions along rows, how many
        there are; of arrays that are made of their indices, elements; of a sort, comparisons, as ``n log2 n``; of a
        transform, operations, as ``5 n log2 n``; of random numbers, how many; of a copy, bytes; of the others, as
        `machine.MachineSpeeds.function_rates` counts them.
    side : int
        Of products, the least side of this rank's part of the matrices.
    """

    name: str
    nbytes: int
    kind: str = ""
    amount: int = 0
    side: int = 0


@dataclass
class LineCounts:
    """What a line of the program makes one rank do.

    Attributes
    ----------
    loops : int
        Fused loops; each counts at the line of its last statement.
    parts : int
        Boxes in which these loops run, one after the other: edges, for example, apart from the inside.
    loop_bytes : int
        Bytes that they read and write, each cell once a loop.
    functions, function_bytes : int
        Functions that are no loops, and this rank's part of the bytes of their arguments.
    spread_functions : int
        Those of them that send messages or join collectives.
    flops : int
        This rank's part of the floating-point operations of matrix products.
    messages, bytes : int
        Messages to other ranks, and bytes sent in them and contributed to collectives.
    received_messages, received_bytes : int
        Messages from other ranks.
    exchanges : int
        How often messages are sent and received together, and waited for.
    collectives, collective_bytes : int
        Collective operations, and the bytes that this rank contributes to them.
    gathers, gathered_bytes : int
        Arrays that come whole to one rank or to all.
    values : int
        Numbers that go to Python, which waits for them.
    written : int
        Bytes that would be written to files.
    work : Counter of LoopWork and FunctionWork
        The loops and functions one by one, alike ones counted.
    """

    loops: int = 0
    parts: int = 0
    loop_bytes: int = 0
    functions: int = 0
    function_bytes: int = 0
    spread_functions: int = 0
    flops: int = 0
    messages: int = 0
    bytes: int = 0
    received_messages: int = 0
    received_bytes: int = 0
    exchanges: int = 0
    collectives: int = 0
    collective_bytes: int = 0
    gathers: int = 0
    gathered_bytes: int = 0
    values: int = 0
    written: int = 0
    work: Counter[LoopWork | FunctionWork] = field(default_factory=Counter)

    def add(self, **counts: int) -> None:
        """Add to these counts."""
        for name, count in counts.items():
            setattr(self, name, getattr(self, name) + count)

    def add_all(self, others: LineCounts) -> None:
        """Add all counts of other lines."""
        self.add(**{name: getattr(others, name) for name in COUNT_NAMES})
        self.work.update(others.work)


COUNT_NAMES = tuple(count.name for count in fields(LineCounts) if count.name != "work")


@dataclass(frozen=True)
class HeldArray:
    """Allocations that are alike, when memory was at its peak.

    Attributes
    ----------
    line : UserLine
        Where the values were computed, or where the array came in.
    text : str
        That line.
    what : str
        The array's dtype and shape (the global one), or what else the memory is for.
    nbytes : int
        Of all of them together, on this rank.
    count : int
        How many there are.
    """

    line: UserLine
    text: str
    what: str
    nbytes: int
    count: int = 1


@dataclass(frozen=True)
class AssumedValue:
    """A line at which a value went to Python that nobody has computed.

    Attributes
    ----------
    line : UserLine
    text : str
    assumed : int
        How many values were assumed.
    taken : int
        How many came from a small run.
    """

    line: UserLine
    text: str
    assumed: int
    taken: int = 0


@dataclass(frozen=True)
class ExpectedCounts:
    """A line whose counts depend on elements that nobody has computed.

    Attributes
    ----------
    line : UserLine
    text : str
    what : str
        What looks at the elements, and how they are taken to be.
    """

    line: UserLine
    text: str
    what: str


@dataclass
class RankPlan:
    """What one rank does in the program.

    Attributes
    ----------
    rank : int
    statements : int
        Statements recorded.
    peak : int
        Most bytes of arrays that it holds at once (`Pool.peak`).
    messages, bytes, collectives : int
        As the communicator counts them.
    lines : dict of UserLine to LineCounts
    texts : dict of UserLine to str
    held : list of HeldArray
        What is held at the peak, the largest first.
    largest_exchange : int
        Most bytes of messages that are under way at once, sent and received: they lie beside the arrays.
    largest_gather : int
        Bytes of the largest array that is gathered.
    values : list of AssumedValue
    expected : list of ExpectedCounts
        Where counts are those of values that nobody has computed.
    ending : str
        How the program has ended, where that was not at its end.
    """

    rank: int
    statements: int = 0
    peak: int = 0
    messages: int = 0
    bytes: int = 0
    collectives: int = 0
    lines: dict[UserLine, LineCounts] = field(default_factory=dict)
    texts: dict[UserLine, str] = field(default_factory=dict)
    held: list[HeldArray] = field(default_factory=list)
    largest_exchange: int = 0
    largest_gather: int = 0
    values: list[AssumedValue] = field(default_factory=list)
    expected: list[ExpectedCounts] = field(default_factory=list)
    ending: str = ""

    @property
    def totals(self) -> LineCounts:
        """The counts of all lines."""
        made = LineCounts()
        for counts in self.lines.values():
            made.add_all(counts)
        return made

    @property
    def not_modelled(self) -> Counter[str]:
        """Functions of which nothing is known but how large their arguments are, and how often they were called."""
        found: Counter[str] = Counter()
        for work, count in self.totals.work.items():
            if isinstance(work, FunctionWork) and not work.kind:
                found[work.name] += count
        return found


@dataclass
class JobPlan:
    """What a job of a number of ranks does.

    Attributes
    ----------
    size : int
        The number of ranks.
    ranks : list of RankPlan
        Those that were looked at.
    """

    size: int
    ranks: list[RankPlan]

    @property
    def fullest(self) -> RankPlan:
        """The rank that takes the most memory."""
        return max(self.ranks, key=lambda rank: rank.peak)

    @property
    def texts(self) -> dict[UserLine, str]:
        """The texts of all lines."""
        return {line: text for rank in self.ranks for line, text in rank.texts.items()}

    def most_by_line(self) -> dict[UserLine, LineCounts]:
        """For each line the largest count of any rank, each count by itself."""
        found: dict[UserLine, LineCounts] = {}
        for rank in self.ranks:
            for line, counts in rank.lines.items():
                most = found.setdefault(line, LineCounts())
                for name in COUNT_NAMES:
                    setattr(most, name, max(getattr(most, name), getattr(counts, name)))
        return found


def merged(held: Iterable[HeldArray]) -> list[HeldArray]:
    """Allocations of the same line and kind as one, the largest first."""
    found: dict[tuple[UserLine, str], HeldArray] = {}
    for each in held:
        key = each.line, each.what
        if key in found:
            same = found[key]
            each = HeldArray(each.line, each.text, each.what, each.nbytes + same.nbytes, each.count + same.count)
        found[key] = each
    return sorted(found.values(), key=lambda each: -each.nbytes)
