"""A rank that executes: what actions need of the runtime, which is above them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from numpy_dist.engine.memory.rank import Rank

if TYPE_CHECKING:
    from numpy_dist.backends.memory import Array
    from numpy_dist.backends.transport import Transport
    from numpy_dist.engine.events.reporting import EventReports
    from numpy_dist.engine.memory.storage import Storage
    from numpy_dist.engine.planning.actions import Plan
    from numpy_dist.ir.statements import Statement


class ExecutionLog(Protocol):
    """How far an execution has come, by which it is undone where an exception leaves it (`scheduling.execution`).

    Attributes
    ----------
    number : int
        The group that was prepared last.
    """

    number: int

    def prepare(self, number: int, plan: Plan) -> None:
        """Take note that a group gets memory for all that it makes, by its plan."""

    def replace(self, storage: Storage, old: Array) -> None:
        """Take note that the group that is prepared gives a storage a new version, in place of this memory."""

    def begin(self, end: int) -> None:
        """Take note that the loops of all groups before this number may write from now on."""

    def finish(self, number: int) -> None:
        """Take note that so many groups are done."""

    def pause(self) -> None:
        """Handle signals that came while a group was executed."""


class PlanRecorder(Protocol):
    """What is told of new plans."""

    @property
    def now(self) -> int:
        """The clock."""

    def planned(self, begin: int, statements: Sequence[Statement]) -> None:
        """A loop of these statements was planned since `begin`."""


class ExecutingRank(Rank, Protocol):
    """A rank with its floating-point events, the transport of its messages, and how far the execution has come."""

    @property
    def backend(self) -> Any: ...  # its `value` is only where it computes nothing
    @property
    def uneven(self) -> bool: ...
    @property
    def on_host(self) -> bool: ...
    @property
    def counters(self) -> object: ...
    @property
    def computes(self) -> bool: ...
    @property
    def events(self) -> EventReports: ...
    @property
    def transport(self) -> Transport: ...
    @property
    def execution(self) -> ExecutionLog | None: ...
    @property
    def recorder(self) -> PlanRecorder | None: ...
