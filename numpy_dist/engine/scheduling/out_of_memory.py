"""Statements that find no memory: the second time they are left out, unless somebody asks for what they make."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from numpy_dist.engine.memory.storage import Storage
from numpy_dist.ir.statements import Statement


class OutOfMemory:
    """The statements of a program that were in work when there was no memory, by their serials."""

    def __init__(self) -> None:
        self._before: set[int] = set()
        self._now: set[int] = set()

    def met(self, serials: set[int]) -> None:
        """Take note of the statements that an exception has found in work; none where that was no want of memory."""
        self._now = serials

    def leave_out(self, waiting: Sequence[Statement], needed: set[int]) -> set[int]:
        """The statements that have found no memory for the second time, but for those that are `needed`.

        Parameters
        ----------
        waiting : sequence of Statement
            All that is to be executed yet.
        needed : set of int
            Serials.
        """
        left = (self._now & self._before) - needed
        self._before = (self._before | self._now) & {statement.serial for statement in waiting}
        self._now = set()
        return left


def makers(statements: Sequence[Statement], wanted: Iterable[Storage], reader: Statement | None) -> set[int]:
    """The serials of the statements on which the values of storages depend, and what `reader` reads."""
    needed = {id(storage) for storage in wanted}
    if reader is not None:
        needed.update(id(ref.storage) for ref in reader.reads())
    found: set[int] = set()
    for statement in reversed(statements):
        if any(id(out.storage) in needed for out in statement.outputs):
            needed.update(id(ref.storage) for ref in statement.reads())
            found.add(statement.serial)
    return found
