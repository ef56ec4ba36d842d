"""Work: one group while it is executed, with what has come for it and what it has made so far."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numpy_dist.engine.executing.transfer import Fetched
from numpy_dist.engine.planning.actions import MEMORY, OLD, Operand
from numpy_dist.ir.statements import Statement

Results = Sequence[Sequence[np.ndarray] | np.ndarray]
"""For each reduction of a loop the partial results of its parts."""


class Work:
    """A group in execution.

    Attributes
    ----------
    runtime : Runtime
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

    __slots__ = ("fetched", "later", "partials", "results", "runtime", "statements", "storages", "waits")

    def __init__(self, runtime: Any, statements: list[Statement], storages: Any) -> None:
        self.runtime, self.statements, self.storages = runtime, statements, storages
        self.fetched: dict[tuple, Fetched] = {}
        self.waits: list[Callable[[], None]] = []
        self.later: list[tuple[np.ndarray, np.ndarray]] = []
        self.results: Results = ()
        self.partials: Sequence[np.ndarray] = ()

    def under(self, operand: Operand) -> Any:
        """The allocation that an operand lies in."""
        if operand.over == MEMORY:
            return self.storages[operand.which].memory
        if operand.over == OLD:
            spare = self.storages[operand.which].spare
            assert spare is not None
            return spare[0]
        return self.fetched[operand.which].block
