"""A rank that schedules: what its program needs of the runtime, which is above it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from numpy_dist.engine.executing.executing_rank import ExecutingRank

if TYPE_CHECKING:
    from numpy_dist.engine.scheduling.counters import EngineCounters


class SchedulingRank(ExecutingRank, Protocol):
    """A rank that executes, and what it is told to keep of its executions."""

    execution: Any  # the class knows schedules
    counters: EngineCounters
    handed_out: bool
    listings: list[Any]  # the class is above
