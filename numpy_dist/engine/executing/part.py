"""A group's work, and its loop in one box: run, and run again on other memory without being made anew."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from numpy_dist.advice import advise
from numpy_dist.backends.base import Loop, ReduceStep, Step, Temp, arrays_of
from numpy_dist.engine.events import floating
from numpy_dist.engine.events.sites import resolve
from numpy_dist.engine.executing.transfer import Fetched
from numpy_dist.engine.memory.storage import Storage
from numpy_dist.engine.planning.actions import ASIDE, FETCHED, MEMORY, OLD, Body, Operand
from numpy_dist.frames import UserLine
from numpy_dist.ir.statements import Reduction, Statement
from numpy_dist.layout.layout import Layout
from numpy_dist.layout.regions import Box

if TYPE_CHECKING:
    from numpy_dist.backends.base import Repeat
    from numpy_dist.backends.memory import Array
    from numpy_dist.engine.executing.executing_rank import ExecutingRank


class BySlot(Protocol):
    """Storages by slot: those of a program, or as the loops of a chain find them."""

    def __getitem__(self, slot: int, /) -> Storage: ...


Results = Sequence[Sequence[np.ndarray] | np.ndarray]
"""For each reduction of a loop the partial results of its parts."""


class Work:
    """A group in execution.

    Attributes
    ----------
    runtime : ExecutingRank
    execution : ExecutionLog
    statements : list of Statement
        The group's.
    storages
        By slot.
    fetched : dict of tuple to Fetched
    waits : list of callable
        They wait for messages.
    later : list of (ndarray, ndarray)
        Targets and sources that are copied when all parts have run.
    results : sequence
        Partial results of parts.
    partials : sequence of ndarray
        Those of the whole loop, one for each reduction.
    """

    __slots__ = ("execution", "fetched", "later", "partials", "results", "runtime", "statements", "storages", "waits")

    def __init__(self, runtime: ExecutingRank, statements: list[Statement], storages: BySlot) -> None:
        self.runtime, self.statements, self.storages = runtime, statements, storages
        assert runtime.execution is not None
        self.execution = runtime.execution
        self.fetched: dict[tuple, Fetched] = {}
        self.waits: list[Callable[[], None]] = []
        self.later: list[tuple[np.ndarray, np.ndarray]] = []
        self.results: Results = ()
        self.partials: Sequence[np.ndarray] = ()

    def under(self, operand: Operand) -> Array:
        """The allocation that an operand lies in."""
        if operand.over == MEMORY:
            return self.storages[operand.which].memory
        if operand.over == OLD:
            spare = self.storages[operand.which].spare
            assert spare is not None
            return spare[0]
        return self.fetched[operand.which].block


class Part:
    """The loop in one box.

    Parameters
    ----------
    body : Body
    box : Box

    Attributes
    ----------
    views : list of AllocationView
        Of the operands, in the box.
    repeat
        How the backend runs it again, if it can (see `backends.base.Repeat`).
    places : list of (int, bool, int)
        Of the operands whose addresses that wants: the slot, whether the old version is meant, and the offset.
    scalars : list of (int, int)
        The same of scalars: statements and inputs.
    memo : dict
        What the backend keeps for this loop.
    """

    def __init__(self, body: Body, box: Box) -> None:
        self._body = body
        self.box = box
        self.shape = tuple(hi - lo for lo, hi in box)
        self.views = [operand.view(box) for operand in body.operands]
        self.memo: dict[str, object] = {}
        self.repeat: Any = None
        self.places: list[tuple[int, bool, int]] = []
        self.scalars: list[tuple[int, int]] = []

    def run(self, work: Work) -> Sequence[np.ndarray]:
        """Run the loop; returns the partial results of its reductions."""
        repeat, execution = self.repeat, work.execution
        if repeat is not None:
            addresses, scalars = self.arguments(work.statements, work.storages)
            execution.begin(execution.number + 1)
            partials = repeat.again(addresses, scalars, lambda: self.loop(work)[0])
            if partials is not None:
                return partials
        loop, arrays = self.loop(work)
        execution.begin(execution.number + 1)
        for target, source in self._body.filled:
            work.runtime.backend.memory.copy(arrays[target], arrays[source])
        repeat = work.runtime.backend.run(loop)
        if repeat is not None and self.repeat is None:
            self._keep(repeat, loop, arrays)
        elif repeat is None and "slow" in self.memo:
            self._advise(work, str(self.memo.pop("slow")))
        work.later += [(arrays[target], arrays[source]) for target, source in self._body.copies]
        return [step.partial for step in loop.steps if isinstance(step, ReduceStep)]

    def _advise(self, work: Work, told: str) -> None:
        """Tell that no kernel is possible for this loop, which has taken long."""
        if work.runtime.rank:
            return
        found = [resolve(work.statements[number].site) for number in self._body.numbers]
        lines = list(dict.fromkeys(UserLine(line.filename, line.line) for line in found))
        others = f" and {len(lines) - 1} more lines" if len(lines) > 1 else ""
        advise(
            "kernel",
            lines[0],
            f"the loop of {lines[0]}{others} is interpreted, as no kernel is possible for it, {told}",
            "docs/guide/performance.md, Kernels",
        )

    def _keep(self, repeat: Repeat, loop: Loop, arrays: list[np.ndarray]) -> None:
        """Remember how to run the loop again, if all that it touches lies in storages."""
        body = self._body
        if body.filled or body.copies or any(o.over == FETCHED for o in body.operands):
            return
        numbers = {id(array): number for number, array in enumerate(arrays)}
        order = [numbers[id(array)] for array in arrays_of(loop, lambda x: id(x) in numbers)]
        chosen = [order[number] for number in repeat.operands]
        lies = [(body.operands[number], self.views[number].offset) for number in chosen]
        self.places = [(operand.which, operand.over == OLD, offset) for operand, offset in lies]
        self.scalars = [(body.numbers[step], position) for step, position in repeat.scalars]
        self.repeat = repeat

    def arguments(self, statements: list[Statement], storages: BySlot) -> tuple[list[int], list[object]]:
        """The addresses and the scalars that `repeat` needs."""
        addresses = [address_of(storages[slot], old) + offset for slot, old, offset in self.places]
        return addresses, [statements[number].inputs[position] for number, position in self.scalars]

    def loop(self, work: Work) -> tuple[Loop, list[np.ndarray]]:
        """The loop over arrays, and the arrays by the numbers of the operands."""
        body, memory = self._body, work.runtime.backend.memory
        arrays = [
            memory.empty(view.shape, view.dtype) if operand.over == ASIDE else view.over(work.under(operand), memory)
            for operand, view in zip(body.operands, self.views, strict=True)
        ]
        statements = work.statements
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
        report = reporter(work.runtime, statements)
        return Loop(self.shape, steps, report, watched, self.memo, self._is_alike(work)), arrays

    def _is_alike(self, work: Work) -> bool:
        """Whether other ranks, with other backends, have copies of what is computed, which have to be the same bits."""
        if not work.runtime.uneven:
            return False
        spaces = [work.statements[number].space for number in self._body.numbers]
        return any(isinstance(space, Layout) and space.has_copies for space in spaces)


def address_of(storage: Storage, old: bool) -> int:
    """Where a storage's memory lies, or what was its memory before a new version was made."""
    return (storage.spare[0] if old else storage.memory).address  # type: ignore[index]


def _at(x: int | Temp, arrays: list[np.ndarray]) -> Array | Temp:
    """An operand by its number, or a temporary."""
    return x if isinstance(x, Temp) else arrays[x]


def reporter(runtime: ExecutingRank, statements: list[Statement]) -> Callable[[int, str], None]:
    """What takes note of a floating-point event of the statement with a number."""

    def report(number: int, kind: str) -> None:
        statement = statements[number]
        name = "reduce" if isinstance(statement, Reduction) else statement.op.name
        met = floating.event(statement.serial, kind, name, statement.errstate, statement.site)
        same = not isinstance(statement, Reduction) and statement.outputs[0].storage.layout.is_replicated
        runtime.events.note(met, alike=same)

    return report
