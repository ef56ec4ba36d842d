"""A rank that executes: what actions need of the runtime, which is above them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from numpy_dist.engine.memory.rank import Rank

if TYPE_CHECKING:
    from numpy_dist.backends.transport import Transport
    from numpy_dist.engine.events.reporting import EventReports


class ExecutingRank(Rank, Protocol):
    """A rank with its floating-point events, the transport of its messages, and how far the execution has come."""

    @property
    def backend(self) -> Any: ...  # its `value` is only where it computes nothing
    @property
    def counters(self) -> object: ...
    @property
    def computes(self) -> bool: ...
    @property
    def events(self) -> EventReports: ...
    @property
    def transport(self) -> Transport: ...
    @property
    def execution(self) -> Any: ...  # the class is above
    @property
    def recorder(self) -> Any: ...  # there is one while there is a profile
