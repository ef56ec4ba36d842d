"""Plans prepared for execution: each action with the function that performs it, and its loops with their kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from numpy_dist.engine.executing.combine import combine
from numpy_dist.engine.executing.horizontal_fusion import Folds, FusedParts
from numpy_dist.engine.executing.part import Part, Results, Work
from numpy_dist.engine.executing.transfer import fetch, refresh_halo, widen
from numpy_dist.engine.memory.storage import Storage
from numpy_dist.engine.planning.actions import (
    Allocate,
    Combine,
    CopyBack,
    Donate,
    DropSpare,
    Fetch,
    Fold,
    Launch,
    NewVersion,
    Outdate,
    Plan,
    RefreshHalo,
    Release,
    Wait,
    Widen,
    counts,
)
from numpy_dist.engine.planning.group import Group
from numpy_dist.engine.planning.local_planner import plan_group
from numpy_dist.engine.planning.states import States, state_of
from numpy_dist.ir.statements import Reduction, Statement

if TYPE_CHECKING:
    from numpy_dist.engine.executing.executing_rank import ExecutingRank

_MOST_PREPARED = 16  # plans of a group

PLANNED: list[Callable[[Group, Plan, Sequence[Statement], States], None]] = []
"""What is told of every new plan, before it is performed; with the states of the group's storages."""


class Prepared:
    """A plan that is performed again and again.

    Parameters
    ----------
    plan : Plan
    statements : sequence of Statement
        An example of the group's.

    Attributes
    ----------
    parts : list of Part
        The loop in all its boxes.
    """

    def __init__(self, plan: Plan, statements: Sequence[Statement]) -> None:
        self.plan = plan
        self.parts: list[Part] = []
        self.counts = [(name, count) for name, count in counts(plan).items() if count]
        launches = plan.of(Launch)
        boxes = [box for launch in launches for _, box in launch.parts]
        steps: list[tuple[Callable[[Work, Any], None], Any]] = []
        for action in plan.actions:
            if isinstance(action, Launch):
                parts = [Part(plan.bodies[number], box) for number, box in action.parts]
                self.parts += parts
                steps.append((_run, parts[0]) if len(boxes) == 1 else (_run_fused, FusedParts(parts)))
            elif isinstance(action, Fold):
                steps.append((_fold, Folds(boxes, statements)))
            elif isinstance(action, Combine):
                steps.append((_combine, (action, plan.of(Combine).index(action))))
            elif not isinstance(action, Release):
                steps.append((PERFORM[type(action)], action))
        if len(self.parts) > 1:
            memos = [part.memo for part in self.parts]
            for memo in memos:
                memo["siblings"] = memos
        # Memory comes first, which may fail for want of it: messages, allocations; and then what cannot be undone.
        kinds = [perform for perform, _ in steps]
        first = next((n for n, kind in enumerate(kinds) if kind in (_run, _run_fused, _wait, _outdate)), len(steps))
        self.before, self.after = steps[:first], steps[first:]

    def begin(self, work: Work, number: int) -> None:
        """Count the group, ask for what it needs, and have memory for all that it makes; `number` is the group's."""
        work.execution.prepare(number, self.plan)
        counters = work.runtime.counters.__dict__
        for name, count in self.counts:
            counters[name] += count
        for perform, action in self.before:
            perform(work, action)

    def outdate(self, work: Work) -> None:
        """Forget the halos of what the group writes, which somebody else runs."""
        for action in self.plan.of(Outdate):
            _outdate(work, action)

    def end(self, work: Work) -> None:
        """Run the loop, and put the partial results of reductions together."""
        for perform, action in self.after:
            perform(work, action)


class PreparedPlans(dict[tuple, Prepared]):
    """The prepared plans of one group, by its facts (`Group.facts`); the oldest ones are forgotten first.

    Parameters
    ----------
    group : Group
    """

    def __init__(self, group: Group) -> None:
        super().__init__()
        self.group = group

    def find(self, runtime: ExecutingRank, statements: list[Statement], storages: list[Storage]) -> Prepared:
        """The plan for the present states of the group's storages, made if there is none."""
        group = self.group
        facts = group.facts(storages)
        found = self.get(facts)
        if found is None:
            recorder = runtime.recorder
            begun = 0 if recorder is None else recorder.now
            states = States({slot: state_of(storages[slot]) for slot in group.slots})
            plan = plan_group(group, statements, {id(storages[slot]): slot for slot in group.slots}, states)
            for tell in PLANNED:
                tell(group, plan, statements, states)
            if len(self) >= _MOST_PREPARED:
                del self[next(iter(self))]
            found = self[facts] = Prepared(plan, statements)
            if recorder is not None:
                recorder.planned(begun, statements)
        return found


def execute(plans: PreparedPlans, runtime: ExecutingRank, statements: list[Statement], storages: list[Storage]) -> None:
    """Execute a group but for its releases, which come when it is done (see `Schedule.run`)."""
    chosen = plans.find(runtime, statements, storages)
    work = Work(runtime, statements, storages)
    chosen.begin(work, plans.group.number)
    chosen.end(work)


# -- what performs each action ---------------------------------------------------------------------------------------


def _allocate(work: Work, action: Allocate) -> None:
    work.storages[action.slot].allocate(action.box, action.margin)


def _widen(work: Work, action: Widen) -> None:
    widen(work.storages[action.slot], action)


def _fetch(work: Work, action: Fetch) -> None:
    found, wait = fetch(work.runtime, work.storages[action.slot], action)
    work.waits.append(wait)
    if found is not None:
        work.fetched[action.key] = found


def _refresh_halo(work: Work, action: RefreshHalo) -> None:
    wait = refresh_halo(work.runtime, work.storages[action.slot], action)
    if wait is not None:
        work.waits.append(wait)


def _new_version(work: Work, action: NewVersion) -> None:
    """Swap in another allocation; cells outside the write are carried over, unless the spare has them."""
    storage = work.storages[action.slot]
    old, spare = storage.memory, storage.spare
    work.execution.replace(storage, old)
    if not action.carries:
        assert spare is not None
        storage.memory, storage.spare = spare[0], (old, action.region)
        return
    new = storage.pool.take(old.size)
    storage.pool.memory.copy(new, old)
    storage.memory, storage.spare = new, (old, action.region)
    if spare is not None:
        discarded = spare[0]
        del spare
        storage.pool.give(discarded)


def _donate(work: Work, action: Donate) -> None:
    work.storages[action.slot].take_over(work.storages[action.donor])


def _drop_spare(work: Work, action: DropSpare) -> None:
    work.storages[action.slot].drop_spare()


def _wait(work: Work, action: Wait) -> None:
    for wait in work.waits:
        wait()


def _run(work: Work, part: Part) -> None:
    work.partials = part.run(work)


def _run_fused(work: Work, parts: FusedParts) -> None:
    work.results = _joined(work.results, parts.run(work))


def _joined(first: Results, second: Results) -> Results:
    """The results of parts that ran first and of the others, of which there may be none."""
    if not first or not second:
        return first or second
    return [[*a, *b] for a, b in zip(first, second, strict=True)]


def _fold(work: Work, folds: Folds) -> None:
    work.partials = folds.fold(work.results, work)


def _copy_back(work: Work, action: CopyBack) -> None:
    for target, source in work.later:
        work.runtime.backend.memory.copy(target, source)


def _outdate(work: Work, action: Outdate) -> None:
    for slot in action.slots:
        storage = work.storages[slot]
        if storage.fresh:
            storage.fresh = ()


def _combine(work: Work, what: tuple[Combine, int]) -> None:
    action, number = what
    statement = work.statements[action.number]
    assert isinstance(statement, Reduction)
    partial = work.partials[number] if work.partials else None
    combine(work.runtime, action, statement, work.storages[action.slot], partial)


PERFORM: dict[type, Callable[[Work, Any], None]] = {
    Allocate: _allocate,
    Widen: _widen,
    Fetch: _fetch,
    RefreshHalo: _refresh_halo,
    NewVersion: _new_version,
    Donate: _donate,
    DropSpare: _drop_spare,
    Wait: _wait,
    CopyBack: _copy_back,
    Outdate: _outdate,
}
