"""The execution of a program: how far it has come, and its undoing where an exception leaves it.

An exception may leave an execution anywhere: Ctrl-C, an alarm's handler, memory that is not to be had. What was
executed then stays executed, and what was not is executed when it is next asked for. In between lie the groups that
were *prepared* (their results have memory) and those that have *begun* (their loops may have written). They are undone,
which gives back the memory of results and takes back new versions, and are executed once more. A loop that has begun to
overwrite what it reads cannot be: the values of all that it writes are lost (see `lost`). Nor can one that raises an
error itself, which would be met again whatever is asked for.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Protocol

from numpy_dist.comm.supervision.signals import Postponed
from numpy_dist.engine.memory.storage import Storage
from numpy_dist.engine.planning.actions import Allocate, Donate, Plan
from numpy_dist.engine.scheduling.lost import cannot_run, reason
from numpy_dist.engine.scheduling.schedule import Schedule, is_of_values
from numpy_dist.ir.statements import Statement

if TYPE_CHECKING:
    from numpy_dist.backends.memory import Array


class Execution:
    """The log of an execution, by which it can be undone.

    What decides is written by single assignments, and in an order in which an exception between any two of them does no
    harm.

    Parameters
    ----------
    schedule : Schedule
    statements : list of Statement
        By position, perhaps with others behind them; those that are done become None.
    storages : list of Storage
        By slot; those that are done with become None.
    may_raise : bool
        Whether values of these statements can raise, which then have no results.
    signals : Postponed, optional
        Signals that are handled when a group is done.

    Attributes
    ----------
    done : int
        How many groups are done.
    begun : int
        How many groups are done or may have written something.
    number : int
        The group that was prepared last.
    plans : dict of int to Plan
        The plans of prepared groups, by number.
    versions : list of (int, Storage, Block)
        The memory that new versions have replaced, and by which group's plan.
    """

    def __init__(
        self,
        schedule: Schedule,
        statements: list[Statement],
        storages: list[Storage],
        may_raise: bool = False,
        signals: Postponed | None = None,
    ) -> None:
        self.schedule, self.statements, self.storages, self.may_raise = schedule, statements, storages, may_raise
        self._signals = signals
        self.done = self.begun = self.number = 0
        self.plans: dict[int, Plan] = {}
        self.versions: list[tuple[int, Storage, Array]] = []

    def prepare(self, number: int, plan: Plan) -> None:
        """Take note that a group gets memory for all that it makes, by its plan."""
        self.plans[number] = plan
        self.number = number

    def replace(self, storage: Storage, old: Array) -> None:
        """Take note that the group that is prepared gives a storage a new version, in place of this memory."""
        self.versions.append((self.number, storage, old))

    def begin(self, end: int) -> None:
        """Take note that the loops of all groups before this number may write from now on."""
        self.begun = end

    def finish(self, number: int) -> None:
        """Take note that so many groups are done."""
        self.done = number
        if self.versions:
            self.versions = []

    def pause(self) -> None:
        """Handle signals that came while a group was executed."""
        if self._signals is not None and self._signals.noted:
            self._signals.deliver()

    def roll_back(self, error: BaseException) -> list[Storage]:
        """Undo what has begun and is not done; the statements that are to be executed once more are left.

        May be called again where it was left by an exception itself.

        Returns
        -------
        list of Storage
            Those whose values are lost.
        """
        groups = self.schedule.groups
        if self.may_raise and is_of_values(error):
            self._leave_out(range(len(groups)))
            return []
        begun = range(self.done, self.begun)
        lost: list[Storage] = []
        failed = cannot_run(error)
        if failed:
            begun = self._in_work()
        if failed or any(self.plans[number].overwrites for number in begun):
            for number in begun:
                lost += self._lose(number, error)
        for number in reversed(range(self.done, len(groups))):
            self._give_back(number)
        self._leave_out(range(self.done))
        if lost:
            self._leave_out(begun)
        return lost

    def _in_work(self) -> range:
        """The numbers of the groups that were prepared, or were about to be, and are not done."""
        return range(self.done, min(max(self.begun, self.number + 1, self.done + 1), len(self.schedule.groups)))

    def in_work(self) -> set[int]:
        """The serials of the statements that an exception has found in work."""
        positions = [position for number in self._in_work() for position in self.schedule.groups[number].positions]
        return {s.serial for position in positions if (s := self.statements[position]) is not None}

    def _lose(self, number: int, error: BaseException) -> Iterable[Storage]:
        """Mark what a group writes, and what its results have taken the memory of, as lost."""
        group = self.schedule.groups[number]
        own = [s for position in group.positions if (s := self.statements[position]) is not None]
        found = [(out.storage, statement) for statement in own for out in statement.outputs]
        plan = self.plans.get(number)
        if plan is not None and own:
            found += [(self.storages[action.donor], own[0]) for action in plan.of(Donate)]
        for storage, statement in found:
            storage.lost = reason(statement, error)
        return [storage for storage, _ in found]

    def _give_back(self, number: int) -> None:
        """Undo the preparation of a group: its results have no memory, and what it reads has what it had."""
        group, storages = self.schedule.groups[number], self.storages
        for by, storage, old in self.versions:
            if by == number:
                storage.return_to_version(old)
        for halo, _ in group.halos:
            storages[halo.slot].fresh = ()
        plan = self.plans.get(number)
        if plan is None:
            return
        for donation in plan.of(Donate):
            storages[donation.slot].return_to(storages[donation.donor])
        for action in plan.of(Allocate):
            storages[action.slot].release()

    def _leave_out(self, numbers: Iterable[int]) -> None:
        """Let the statements of these groups not be executed again."""
        nothing: Any = None
        for number in numbers:
            for position in self.schedule.groups[number].positions:
                self.statements[position] = nothing


class ExecutionRecorder(Protocol):
    """What is told of the loops of an execution."""

    def begin_loop(self) -> None:
        """A loop begins, or a chain."""

    def ran(self, execution: Execution, number: int) -> None:
        """Loops of an execution are done through this number: one, or several that ran together."""


class RecordedExecution(Execution):
    """An execution of which somebody is told (`Runtime.recorder`); others do not ask whether anybody is.

    Attributes
    ----------
    recorder : ExecutionRecorder
    """

    def __init__(self, recorder: ExecutionRecorder, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.recorder = recorder
        recorder.begin_loop()

    def finish(self, number: int) -> None:
        """As in the base class."""
        self.recorder.ran(self, number)
        super().finish(number)

    def pause(self) -> None:
        """As in the base class."""
        super().pause()
        if self.done < len(self.schedule.groups):
            self.recorder.begin_loop()
