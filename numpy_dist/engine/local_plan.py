"""The loop of one group on this rank: where its operands lie, what it writes to, and how it is run again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from numpy_dist.backends.base import Loop, ReduceStep, Step, Temp, arrays_of
from numpy_dist.engine import floating
from numpy_dist.engine.fuse import disjoint
from numpy_dist.engine.storage import Storage
from numpy_dist.engine.views import Window, window
from numpy_dist.ir.statements import Elementwise, Reduction, Ref, Statement
from numpy_dist.layout.regions import Box, Region

# What an operand's window lies over: a storage's memory before the loop, the same after new versions were made,
# what was fetched, and arrays of the loop's own (results that are copied afterwards).
BEFORE, AFTER, FETCHED, ASIDE = range(4)


class Fetched(NamedTuple):
    """An array that was fetched, and the region that it holds."""

    array: np.ndarray
    region: Region


class Operand(NamedTuple):
    """One array of the loop: `over` is one of the above, `which` the slot, the view's key, or a running number."""

    over: int
    which: Any
    window: Window


class LocalPlan:
    """How a group's loop runs on this rank while its storages' allocations have the same geometry.

    Parameters
    ----------
    box : Box
        This rank's part of the iteration space.
    slots : sequence of int
        The group's storages.
    kept : frozenset of int
        Slots that must be stored, since others read or write them.
    runtime, statements, storages, fetched
        An example of what it will be run with.

    Attributes
    ----------
    operands : list of Operand
    steps : list
        Steps of the loop in which an operand is meant by its number.
    """

    def __init__(
        self,
        box: Box,
        slots: Sequence[int],
        kept: frozenset[int],
        runtime: Any,
        statements: Sequence[Statement],
        storages: Sequence[Storage],
        fetched: dict[tuple, Fetched],
    ) -> None:
        self.box, self.slots, self.kept = box, slots, kept
        self.shape = tuple(hi - lo for lo, hi in box)
        self.operands: list[Operand] = []
        self.steps: list[tuple] = []
        self.allocates: list[tuple[int, Any]] = []  # (slot, box)
        self.versions: list[tuple[int, Any]] = []  # (slot, region of the write)
        self.dropped: list[int] = []  # slots whose spare allocation is of no use any more
        self.copies: list[tuple[int, int]] = []  # (target, source) after the loop
        self.filled: list[tuple[int, int]] = []  # (target, source) before it, for masked writes
        self.counts = dict.fromkeys(("reads", "writes", "contracted", "stored_temporaries"), 0)
        self.memo: dict[str, Any] = {}  # what the backend keeps for this loop
        self.repeat: Any = None
        self._order: list[int] = []
        _Planner(self, runtime, statements, storages, fetched).plan()

    # -- running ----------------------------------------------------------------------------------------------------

    def run(
        self, runtime: Any, statements: list[Statement], storages: list[Storage], fetched: dict[tuple, Fetched]
    ) -> Sequence[np.ndarray]:
        """Run the loop; returns the partial results of the group's reductions."""
        counters = runtime.counters
        counters.loops += 1
        for name, count in self.counts.items():
            if count:
                setattr(counters, name, getattr(counters, name) + count)
        for slot, box in self.allocates:
            storages[slot].allocate(box)
        memory = {slot: storages[slot].memory for slot in self.slots}
        for slot in self.dropped:
            storages[slot].drop_spare()
        for slot, region in self.versions:
            new_version(runtime, storages[slot], region)
        repeat = self.repeat
        if repeat is not None and not self.copies and not self.filled and not fetched:
            addresses = [
                memory[o.which].address + o.window.offset
                if o.over == BEFORE
                else storages[o.which].memory.address + o.window.offset
                for o in [self.operands[number] for number in self._order]
            ]
            scalars = [statements[step].inputs[position] for step, position in repeat.scalars]
            partials = repeat.again(
                addresses, scalars, lambda: self._loop(runtime, statements, storages, memory, {})[0]
            )
            if partials is not None:
                return partials
        loop, arrays = self._loop(runtime, statements, storages, memory, fetched)
        for target, source in self.filled:
            np.copyto(arrays[target], arrays[source])
        repeat = runtime.backend.run(loop)
        if repeat is not None and self.repeat is None:
            numbers = {id(array): number for number, array in enumerate(arrays)}
            order = [numbers[id(array)] for array in arrays_of(loop)]
            self._order = [order[number] for number in repeat.operands]
            self.repeat = repeat
        for target, source in self.copies:
            np.copyto(arrays[target], arrays[source])
        return [step.partial for step in loop.steps if isinstance(step, ReduceStep)]

    def _loop(
        self,
        runtime: Any,
        statements: list[Statement],
        storages: list[Storage],
        memory: dict[int, Any],
        fetched: dict[tuple, Fetched],
    ) -> tuple[Loop, list[np.ndarray]]:
        """The loop over arrays, and the arrays."""
        arrays: list[np.ndarray] = []
        for over, which, place in self.operands:
            if over == BEFORE:
                arrays.append(place.over(memory[which]))
            elif over == AFTER:
                arrays.append(place.over(storages[which].memory))
            elif over == FETCHED:
                array = fetched[which].array
                arrays.append(place.over(array if array.base is None else array.base))
            else:
                arrays.append(np.empty(place.shape, place.dtype))
        steps: list[Step | ReduceStep] = []
        for number, (statement, step) in enumerate(zip(statements, self.steps, strict=True)):
            if isinstance(statement, Reduction):
                source, where, kept = step
                partial = np.empty(kept, statement.dtype)
                mask = None if where is None else _at(where, arrays)
                steps.append(ReduceStep(statement.op, _at(source, arrays), partial, statement.axes, mask, number))
            else:
                inputs, outputs, where = step
                given = statement.inputs
                values = tuple([given[k] if x is None else _at(x, arrays) for k, x in enumerate(inputs)])
                targets = tuple([_at(x, arrays) for x in outputs])
                mask = None if where is None else _at(where, arrays)
                steps.append(Step(statement.op, values, targets, mask, statement.options, number))
        watched = frozenset().union(*(s.errstate.watched for s in statements))
        return Loop(self.shape, steps, _reporter(runtime, statements), watched, self.memo), arrays


def _reporter(runtime: Any, statements: list[Statement]) -> Callable[[int, str], None]:
    """What takes note of a floating-point event of the statement with a number."""

    def report(number: int, kind: str) -> None:
        statement = statements[number]
        name = "reduce" if isinstance(statement, Reduction) else statement.op.name
        met = floating.event(statement.serial, kind, name, statement.errstate, statement.site)
        if met is not None:
            runtime.flags.add(met)

    return report


def _at(x: Any, arrays: list[np.ndarray]) -> Any:
    """An operand by its number, or a temporary."""
    return x if type(x) is Temp else arrays[x]


def new_version(runtime: Any, storage: Storage, region: Any) -> None:
    """Swap in another allocation; cells outside the write are carried over, unless the spare has them."""
    old, spare = storage.memory, storage.spare
    runtime.counters.versions += 1
    if spare is not None and region is not None and spare[1] is region:
        storage.memory, storage.spare = spare[0], (old, region)
        return
    runtime.counters.carried += 1
    new = storage.pool.take(old.size)
    np.copyto(new, old)
    storage.memory, storage.spare = new, (old, region)
    if spare is not None:
        discarded = spare[0]
        del spare
        storage.pool.give(discarded)


class _Planner:
    """Works out a `LocalPlan` for an example of its statements and storages."""

    def __init__(
        self,
        plan: LocalPlan,
        runtime: Any,
        statements: Sequence[Statement],
        storages: Sequence[Storage],
        fetched: dict[tuple, Fetched],
    ) -> None:
        self.made, self.rank = plan, runtime.rank
        self.statements, self.storages, self.fetched = statements, storages, fetched
        self.slots = {id(storages[slot]): slot for slot in plan.slots}
        self.present: dict[tuple, Any] = {}  # by view: the operand's number or temporary with its present value
        self.reads: dict[tuple, Ref] = {}
        self.stored: set[tuple] = set()  # views that the loop has an array for
        self.geometry: dict[int, tuple] = {}  # slot -> low and extent
        self.temps = 0

    def key(self, ref: Ref) -> tuple:
        """What identifies the elements of a ref within the group."""
        return self.slots[id(ref.storage)], ref.view

    def plan(self) -> None:
        made, counts = self.made, self.made.counts
        written: set[tuple] = set()
        for statement in self.statements:
            for ref in statement.reads():
                key = self.key(ref)
                if key not in written and key not in self.reads:
                    self.reads[key] = ref
                    self.present[key] = self._source(key, ref)
            if not isinstance(statement, Reduction):
                written.update(self.key(out) for out in statement.outputs)
        counts["reads"] = len({slot for slot, _ in self.reads})
        versions = self._versions()
        for statement in self.statements:
            where = None if statement.where is None else self.present[self.key(statement.where)]
            if isinstance(statement, Reduction):
                kept = tuple(1 if axis in statement.axes else n for axis, n in enumerate(made.shape))
                made.steps.append((self._input(statement.inputs[0]), where, kept))
                continue
            assert isinstance(statement, Elementwise)
            inputs = tuple(self._input(x) for x in statement.inputs)
            outputs = tuple(
                self._target(statement, out, new, versions)
                for out, new in zip(statement.outputs, statement.creates, strict=True)
            )
            made.steps.append((inputs, outputs, where))

    def _input(self, x: Any) -> Any:
        return self.present[self.key(x)] if type(x) is Ref else None

    def _operand(self, over: int, which: Any, place: Window) -> int:
        self.made.operands.append(Operand(over, which, place))
        return len(self.made.operands) - 1

    def _source(self, key: tuple, ref: Ref) -> int:
        found = self.fetched.get(key)
        if found is None:
            return self._operand(BEFORE, key[0], self._window(key[0], ref))
        low, steps = tuple(r.start for r in found.region), tuple(r.step for r in found.region)
        itemsize, box = ref.storage.dtype.itemsize, self.made.box
        place = window(itemsize, low, found.array.shape, steps, ref.vmap, box, ref.array.dtype)
        return self._operand(FETCHED, key, place)

    def _window(self, slot: int, ref: Ref) -> Window:
        storage = ref.storage
        if slot not in self.geometry:
            if storage.memory is None:
                box = storage.layout.box(self.rank)
                self.made.allocates.append((slot, box))
                self.geometry[slot] = tuple(lo for lo, _ in box), tuple(hi - lo for lo, hi in box)
            else:
                self.geometry[slot] = storage.low, storage.extent
        low, extent = self.geometry[slot]
        return window(storage.dtype.itemsize, low, extent, None, ref.vmap, self.made.box, ref.array.dtype)

    # -- what is written --------------------------------------------------------------------------------------------

    def _versions(self) -> dict[int, str]:
        """For each written storage: write "through", to a new "version", or by way of an "aside" array."""
        verdict: dict[int, str] = {}
        targets: dict[int, dict[Any, Ref]] = {}
        for statement in self.statements:
            for out in () if isinstance(statement, Reduction) else statement.outputs:
                slot, view = key = self.key(out)
                if view not in targets.setdefault(slot, {}):
                    targets[slot][view] = out
                    verdict[slot] = max(verdict.get(slot, "through"), self._verdict(out, key), key=_HOW.index)
        for slot, views in targets.items():
            storage = self.storages[slot]
            region = next(iter(views)) if len(views) == 1 else None
            if verdict[slot] == "version":
                self.made.versions.append((slot, region))
            elif storage.spare is not None and (region is None or storage.spare[1] is not region):
                self.made.dropped.append(slot)
        return verdict

    def _verdict(self, out: Ref, key: tuple) -> str:
        storage = out.storage
        conflict = any(
            ref.storage is storage and other != key and other not in self.fetched and not disjoint(ref, out)
            for other, ref in self.reads.items()
        )
        if not conflict:
            return "through"
        count = out.array.itemsize
        for n in self.made.shape:
            count *= n
        return "aside" if 2 * count < storage.memory.size or storage.pinned else "version"

    def _target(self, statement: Elementwise, out: Ref, creates: bool, versions: dict[int, str]) -> Any:
        """Where a statement writes: a temporary, or an array over the storage's memory."""
        key, storage, counts = self.key(out), out.storage, self.made.counts
        if key in self.stored:
            return self.present[key]
        self.stored.add(key)
        slot = key[0]
        if creates and not storage.alive and slot not in self.made.kept:
            counts["contracted"] += 1
            temp = self.present[key] = Temp(self.temps, out.array.dtype)
            self.temps += 1
            return temp
        counts["writes"] += 1
        if creates and not storage.alive:
            counts["stored_temporaries"] += 1
        place = self._window(slot, out)
        how = versions[slot]
        number = self._operand(AFTER, slot, place)
        if how == "aside":
            target, number = number, self._operand(ASIDE, len(self.made.operands), place)
            if statement.where is not None:
                self.made.filled.append((number, target))
            self.made.copies.append((target, number))
        elif how == "version" and statement.where is not None:
            self.made.filled.append((number, self._operand(BEFORE, slot, place)))
        self.present[key] = number
        return number


_HOW = ("through", "version", "aside")
