"""The loop of one group on this rank: where its operands lie, what it writes to, and how it is run again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from numpy_dist.backends.base import Loop, ReduceStep, Step, Temp, arrays_of
from numpy_dist.engine import floating
from numpy_dist.engine.storage import Storage
from numpy_dist.engine.transfer import Fetched
from numpy_dist.engine.views import Window, window
from numpy_dist.ir.statements import Reduction, Statement
from numpy_dist.layout.regions import Box
from numpy_dist.layout.views import ViewMap

# What an operand lies in: a storage's memory, what was its memory before a new version was made for this loop, what was
# fetched, and arrays of the loop's own (results that are copied afterwards).
MEMORY, OLD, FETCHED, ASIDE = range(4)


class Operand(NamedTuple):
    """One array of the loop.

    Attributes
    ----------
    over : int
        One of the above.
    which
        The storage's slot, or the key of the view that was fetched.
    itemsize, low, extent, steps, vmap, dtype
        See `views.window`.
    """

    over: int
    which: Any
    itemsize: int
    low: tuple[int, ...]
    extent: tuple[int, ...]
    steps: tuple[int, ...] | None
    vmap: ViewMap
    dtype: np.dtype

    def window(self, box: Box) -> Window:
        """Where a box of it lies."""
        return window(self.itemsize, self.low, self.extent, self.steps, self.vmap, box, self.dtype)


class Present(NamedTuple):
    """What a loop is run with."""

    runtime: Any
    statements: list[Statement]
    storages: Any  # by slot
    fetched: dict[tuple, Fetched]

    def under(self, operand: Operand) -> Any:
        """The allocation that an operand lies in."""
        if operand.over == MEMORY:
            return self.storages[operand.which].memory
        if operand.over == OLD:
            spare = self.storages[operand.which].spare
            assert spare is not None
            return spare[0]
        return self.fetched[operand.which].block


class Body:
    """What a loop consists of in one cell of its iteration space.

    Attributes
    ----------
    box : Box
        The cell.
    numbers : sequence of int
        The statements that run there.
    operands : list of Operand
    steps : list
        For each of these statements its operands: numbers, temporaries, and None for scalars.
    copies, filled : list of (int, int)
        Targets and sources, copied after the loop, and before it for masked writes.
    """

    def __init__(self, box: Box, numbers: Sequence[int]) -> None:
        self.box, self.numbers = box, numbers
        self.operands: list[Operand] = []
        self.steps: list[tuple] = []
        self.copies: list[tuple[int, int]] = []
        self.filled: list[tuple[int, int]] = []


class LocalPlan:
    """How a group's loop runs on this rank while its storages' allocations have the same geometry.

    Attributes
    ----------
    bodies : list of Body
        One for each cell of the iteration space; one in all where every statement runs in all of it.
    allocates, versions, dropped
        Slots that need an allocation, a new version, or no spare one any more; with the box, or the region written.
    takes : list of (int, int)
        Slots that get the memory of another slot, which is not needed any more.
    reads, writes, contracted, stored_temporaries : int
        What is added to the counters.
    parts : list of Part
        The boxes in which the loop runs: all of it, its cells, or its interior and, when all has been brought, its
        edges.
    """

    def __init__(self) -> None:
        self.bodies: list[Body] = []
        self.allocates: list[tuple[int, Any]] = []
        self.versions: list[tuple[int, Any]] = []
        self.dropped: list[int] = []
        self.takes: list[tuple[int, int]] = []
        self.reads = self.writes = self.contracted = self.stored_temporaries = 0
        self.parts: list[Part] = []
        self._early = 0  # parts that run while messages travel

    def divide(self, boxes: Sequence[Box]) -> None:
        """Let the loop run in its cells, or, if there is one, in several boxes: the first while messages travel."""
        self.parts = [Part(body, body.box) for body in self.bodies]
        if len(boxes) > 1:
            (body,) = self.bodies
            self.parts = [Part(body, box) for box in boxes]
            self._early = 1
        memos = [part.memo for part in self.parts]
        for memo in memos if len(memos) > 1 else ():
            memo["siblings"] = memos

    def prepare(self, runtime: Any, storages: list[Storage]) -> None:
        """Count the loop, and have memory for all that it writes."""
        counters = runtime.counters
        counters.loops += 1
        counters.reads += self.reads
        counters.writes += self.writes
        counters.contracted += self.contracted
        counters.stored_temporaries += self.stored_temporaries
        for slot, box in self.allocates:
            storages[slot].allocate(box)
        for slot, donor in self.takes:
            storages[slot].take_over(storages[donor])
        for slot in self.dropped:
            storages[slot].drop_spare()
        for slot, region in self.versions:
            new_version(runtime, storages[slot], region)

    def compute(self, present: Present, waits: list[Callable[[], None]]) -> Sequence[np.ndarray]:
        """Run the loop, which was prepared; returns the partial results of the group's reductions.

        Parameters
        ----------
        waits : list of callable
            They wait for what was asked for; the interior, if there is one, is computed first.
        """
        later: list[tuple[np.ndarray, np.ndarray]] = []
        if len(self.parts) == 1:
            for wait in waits:
                wait()
            partials = self.parts[0].run(present, later)
            for target, source in later:
                present.runtime.backend.memory.copy(target, source)
            return partials
        return self._run_parts(present, later, waits)

    def _run_parts(
        self, present: Present, later: list[tuple[np.ndarray, np.ndarray]], waits: list[Callable[[], None]]
    ) -> Sequence[np.ndarray]:
        for part in self.parts[: self._early]:
            part.run(present, later)
        for wait in waits:
            wait()
        partials = [part.run(present, later) for part in self.parts[self._early :]]
        memory = present.runtime.backend.memory
        for target, source in later:
            memory.copy(target, source)
        return fold_cells(self.parts, partials, present) if partials and partials[0] else []


class Part:
    """The loop in one box.

    Parameters
    ----------
    body : Body
    box : Box
    """

    def __init__(self, body: Body, box: Box) -> None:
        self._body = body
        self.box = box
        self.shape = tuple(hi - lo for lo, hi in box)
        self.windows = [operand.window(box) for operand in body.operands]
        self.memo: dict[str, Any] = {}  # what the backend keeps for this loop
        self.repeat: Any = None  # how the backend runs it again
        # Of the operands whose addresses the repeat wants: the slot, whether the old version is meant, and the offset.
        self._places: list[tuple[int, bool, int]] = []
        self._scalars: list[tuple[int, int]] = []  # the same of scalars: statements and inputs

    def run(self, present: Present, later: list[tuple[np.ndarray, np.ndarray]]) -> Sequence[np.ndarray]:
        """Run the loop; what is to be copied when all parts have run is added to `later`."""
        repeat = self.repeat
        if repeat is not None:
            addresses, scalars = self.arguments(present.statements, present.storages)
            partials = repeat.again(addresses, scalars, lambda: self.loop(present)[0])
            if partials is not None:
                return partials
        loop, arrays = self.loop(present)
        for target, source in self._body.filled:
            present.runtime.backend.memory.copy(arrays[target], arrays[source])
        repeat = present.runtime.backend.run(loop)
        if repeat is not None and self.repeat is None:
            self._keep(repeat, loop, arrays)
        later += [(arrays[target], arrays[source]) for target, source in self._body.copies]
        return [step.partial for step in loop.steps if isinstance(step, ReduceStep)]

    def _keep(self, repeat: Any, loop: Loop, arrays: list[np.ndarray]) -> None:
        """Remember how to run the loop again, if all that it touches lies in storages."""
        body = self._body
        if body.filled or body.copies or any(o.over == FETCHED for o in body.operands):
            return
        numbers = {id(array): number for number, array in enumerate(arrays)}
        order = [numbers[id(array)] for array in arrays_of(loop, lambda x: id(x) in numbers)]
        chosen = [order[number] for number in repeat.operands]
        lies = [(body.operands[number], self.windows[number].offset) for number in chosen]
        self._places = [(operand.which, operand.over == OLD, offset) for operand, offset in lies]
        self._scalars = [(body.numbers[step], position) for step, position in repeat.scalars]
        self.repeat = repeat

    def arguments(self, statements: list[Statement], storages: list[Storage]) -> tuple[list[int], list[Any]]:
        """The addresses and the scalars that `repeat` needs."""
        addresses = [
            (storages[slot].spare[0] if old else storages[slot].memory).address + offset  # type: ignore[index]
            for slot, old, offset in self._places
        ]
        return addresses, [statements[number].inputs[position] for number, position in self._scalars]

    def loop(self, present: Present) -> tuple[Loop, list[np.ndarray]]:
        """The loop over arrays, and the arrays by the numbers of the operands."""
        body, memory = self._body, present.runtime.backend.memory
        arrays = [
            memory.empty(place.shape, place.dtype)
            if operand.over == ASIDE
            else place.over(present.under(operand), memory)
            for operand, place in zip(body.operands, self.windows, strict=True)
        ]
        statements = present.statements
        steps: list[Step | ReduceStep] = []
        for number, (inputs, outputs, where) in zip(body.numbers, body.steps, strict=True):
            statement = statements[number]
            mask = None if where is None else _at(where, arrays)
            if isinstance(statement, Reduction):
                kept = tuple(1 if axis in statement.axes else n for axis, n in enumerate(self.shape))
                partial = memory.empty(kept, statement.dtype)
                steps.append(ReduceStep(statement.op, _at(inputs[0], arrays), partial, statement.axes, mask, number))
            else:
                given = statement.inputs
                values = tuple([given[k] if x is None else _at(x, arrays) for k, x in enumerate(inputs)])
                targets = tuple([_at(x, arrays) for x in outputs])
                steps.append(Step(statement.op, values, targets, mask, statement.options, number))
        watched = frozenset().union(*(statements[number].errstate.watched for number in body.numbers))
        if memory.late_events:  # by then the program has dropped them
            statements = list(statements)
        return Loop(self.shape, steps, reporter(present.runtime, statements), watched, self.memo), arrays


def _at(x: Any, arrays: list[np.ndarray]) -> Any:
    """An operand by its number, or a temporary."""
    return x if type(x) is Temp else arrays[x]


def fold_cells(parts: Sequence[Part], partials: Sequence[Sequence[np.ndarray]], present: Present) -> list[np.ndarray]:
    """The partial results of reductions over a whole loop from those of its cells, in the order of the cells."""
    low = tuple(min(part.box[axis][0] for part in parts) for axis in range(len(parts[0].box)))
    high = tuple(max(part.box[axis][1] for part in parts) for axis in range(len(low)))
    report = reporter(present.runtime, present.statements)
    reductions = [(n, s) for n, s in enumerate(present.statements) if isinstance(s, Reduction)]
    folded, download = [], present.runtime.backend.memory.download
    for position, (number, statement) in enumerate(reductions):
        axes, ufunc = statement.axes, statement.op.ufunc
        assert ufunc is not None
        kept = tuple(1 if a in axes else hi - lo for a, (lo, hi) in enumerate(zip(low, high, strict=True)))
        total = np.empty(kept, statement.dtype)
        with np.errstate(all="call", call=lambda kind, flag, number=number: report(number, kind)):
            for part, results in zip(parts, partials, strict=True):
                sides = enumerate(zip(part.box, low, strict=True))
                place = total[tuple(slice(0, 1) if a in axes else slice(p - o, q - o) for a, ((p, q), o) in sides)]
                result = download(results[position])
                if all(part.box[axis][0] == low[axis] for axis in axes):
                    place[...] = result
                else:
                    ufunc(place, result, out=place)
        folded.append(total)
    return folded


def reporter(runtime: Any, statements: list[Statement]) -> Callable[[int, str], None]:
    """What takes note of a floating-point event of the statement with a number."""

    def report(number: int, kind: str) -> None:
        statement = statements[number]
        name = "reduce" if isinstance(statement, Reduction) else statement.op.name
        met = floating.event(statement.serial, kind, name, statement.errstate, statement.site)
        if met is not None:
            runtime.flags.add(met)

    return report


def new_version(runtime: Any, storage: Storage, region: Any) -> None:
    """Swap in another allocation; cells outside the write are carried over, unless the spare has them."""
    old, spare = storage.memory, storage.spare
    runtime.counters.versions += 1
    if spare is not None and region is not None and spare[1] is region:
        storage.memory, storage.spare = spare[0], (old, region)
        return
    runtime.counters.carried += 1
    new = storage.pool.take(old.size)
    storage.pool.memory.copy(new, old)
    storage.memory, storage.spare = new, (old, region)
    if spare is not None:
        discarded = spare[0]
        del spare
        storage.pool.give(discarded)
