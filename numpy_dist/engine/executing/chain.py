"""The execution of a chain of groups (see `links`): together where there are kernels, else one after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from numpy_dist.backends.base import Loop
from numpy_dist.engine.executing.part import Work
from numpy_dist.engine.executing.prepared import Prepared, PreparedPlans, execute
from numpy_dist.engine.memory.storage import Storage
from numpy_dist.engine.planning.actions import Donate, NewVersion
from numpy_dist.ir.statements import Statement

if TYPE_CHECKING:
    from numpy_dist.backends.base import Chained
    from numpy_dist.engine.executing.executing_rank import ExecutingRank, ExecutionLog

_MOST_KEPT = 16


class _Member(NamedTuple):
    """A group that has memory for all that it makes, and whose kernel has its arguments."""

    prepared: Prepared
    statements: list[Statement]
    results: list[int]  # slots of its reductions' results
    number: int  # of the group


class Chain:
    """Groups that may run together.

    Parameters
    ----------
    plans : sequence of PreparedPlans
        Of the groups.
    aligned : frozenset of int
        See `links.ChainPlan`.
    """

    def __init__(self, plans: Sequence[PreparedPlans], aligned: frozenset[int]) -> None:
        self.plans, self._aligned = plans, aligned
        self._made: dict[tuple[Prepared, ...], Chained] = {}

    def run(self, runtime: ExecutingRank, statements: Sequence[list[Statement]], storages: list[Storage]) -> None:
        """Execute the groups, whose statements are given."""
        execution = runtime.execution
        assert execution is not None
        ready: list[_Member] = []
        for plans, own in zip(self.plans, statements, strict=True):
            group = plans.group
            chosen = plans.get(group.facts(storages))
            if chosen is None or not self._may_wait(chosen):
                self._launch(runtime, execution, ready, storages)
                ready = []
                execute(plans, runtime, own, storages)
                execution.finish(group.number + 1)
                continue
            work = Work(runtime, own, storages)
            try:
                chosen.begin(work, group.number)
            except MemoryError:
                # What was recorded before is there, as it is without chains.
                self._launch(runtime, execution, ready, storages)
                raise
            (part,) = chosen.parts
            if part.repeat.fill(*part.arguments(own, storages)):
                chosen.outdate(work)
                ready.append(_Member(chosen, own, group.results, group.number))
                continue
            self._launch(runtime, execution, ready, storages)
            ready = []
            chosen.end(work)
            execution.finish(group.number + 1)
        self._launch(runtime, execution, ready, storages)

    def _may_wait(self, chosen: Prepared) -> bool:
        """Whether a loop can be run later than it is prepared, and row by row."""
        plan = chosen.plan
        if len(chosen.parts) != 1 or plan.of(NewVersion) or not hasattr(chosen.parts[0].repeat, "chain"):
            return False
        (part,) = chosen.parts
        return part.repeat.has_rows(part.shape[0]) and all(a.donor in self._aligned for a in plan.of(Donate))

    def _launch(
        self, runtime: ExecutingRank, execution: ExecutionLog, members: Sequence[_Member], storages: list[Storage]
    ) -> None:
        """Run loops that wait."""
        if not members:
            return
        end = members[-1].number + 1
        execution.begin(end)
        taken = {a.donor: a.slot for member in members for a in member.prepared.plan.of(Donate)}
        lying = _Lying(storages, taken)

        def maker(member: _Member) -> Callable[[], Loop]:
            return lambda: member.prepared.parts[0].loop(Work(runtime, member.statements, lying))[0]

        loops = [maker(member) for member in members]
        chained = self._chained(members) if len(members) > 1 else None
        if chained is not None:
            chained.launch([[lying.array(slot).reshape(-1) for slot in m.results] for m in members], loops)
            execution.finish(end)
            return
        for member, loop in zip(members, loops, strict=True):
            for slot, partial in zip(member.results, member.prepared.parts[0].repeat.launch(loop), strict=True):
                array = lying.array(slot)
                array[...] = partial.reshape(array.shape)
        execution.finish(end)

    def _chained(self, members: Sequence[_Member]) -> Chained | None:
        """The loops as one; None if there is none, or not yet."""
        key = tuple(member.prepared for member in members)
        found = self._made.get(key)
        if found is None:
            first, *others = (member.prepared.parts[0].repeat for member in members)
            rows = members[0].prepared.parts[0].shape[0]
            found = first.chain(others, rows)
            if found is not None:
                if len(self._made) >= _MOST_KEPT:
                    del self._made[next(iter(self._made))]
                self._made[key] = found
        return found


class _Lying:
    """Storages by slot as loops find them that wait: a later one may have taken their memory over."""

    def __init__(self, storages: list[Storage], taken: dict[int, int]) -> None:
        self._storages, self._taken = storages, taken

    def __getitem__(self, slot: int) -> Storage:
        while slot in self._taken:
            slot = self._taken[slot]
        return self._storages[slot]

    def array(self, slot: int) -> np.ndarray:
        """All that a storage has here, which may lie in another one's memory."""
        own = self._storages[slot]
        return own.pool.memory.array(self[slot].memory, own.extent, own.dtype)
