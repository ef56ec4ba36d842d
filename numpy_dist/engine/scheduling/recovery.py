"""Recovery of a program from an exception: what is half done is undone, and whose values are lost is known."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Sequence

from numpy_dist.engine.memory.storage import Storage
from numpy_dist.engine.scheduling.deferred import Deferred
from numpy_dist.engine.scheduling.execution import Execution
from numpy_dist.engine.scheduling.lost import propagate, reason
from numpy_dist.engine.scheduling.out_of_memory import OutOfMemory, makers
from numpy_dist.engine.scheduling.schedule import SCHEDULES
from numpy_dist.ir.statements import Statement


class Recovery:
    """What exceptions have left of a program: lost values, and statements that have found no memory.

    Each method gives the statements that can still be executed, which the program is to have from then on.

    Parameters
    ----------
    deferred : Deferred
        The program's.

    Attributes
    ----------
    lost : list of weakref
        Storages whose values are lost.
    """

    def __init__(self, deferred: Deferred) -> None:
        self._deferred = deferred
        self._out_of_memory = OutOfMemory()
        self.lost: list[weakref.ref[Storage]] = []

    def undo(
        self, executions: Iterable[Execution], pending: Iterable[Statement | None], error: BaseException
    ) -> list[Statement]:
        """The pending statements, when what an exception has left half done is undone.

        May be called again where it was left by an exception itself.
        """
        lost: list[Storage] = []
        in_work: set[int] = set()
        for execution in executions:
            if isinstance(error, MemoryError):
                in_work |= execution.in_work()
            lost += execution.roll_back(error)
            SCHEDULES.forget(execution.schedule)
        self._out_of_memory.met(in_work)
        self.lost += map(weakref.ref, lost)
        rest = [statement for statement in pending if statement is not None]
        self._deferred.recover(rest)
        return rest

    def give_up(self, statements: Iterable[Statement], error: BaseException, why: str = "") -> None:
        """Let the results of statements be lost, which are not executed."""
        for statement in statements:
            for out in statement.outputs:
                out.storage.lost = reason(statement, error, why)
                self.lost.append(weakref.ref(out.storage))

    def lose(self, storages: Iterable[Storage], why: str) -> None:
        """Take note that storages of another runtime have no values."""
        for storage in storages:
            storage.lost, storage.walk, storage.window = why, None, None
            self.lost.append(weakref.ref(storage))

    def without_starved(
        self, pending: Sequence[Statement], error: MemoryError, wanted: Storage | None, reader: Statement | None
    ) -> list[Statement] | None:
        """The pending statements but for those that find no memory for the second time; None where there are none.

        What is asked for does not depend on them. Their results, of which the user has been told that there is no
        memory for them, are lost: as in a program of NumPy's, which does not have them, all others can be computed.
        """
        waiting = [*self._deferred.statements, *pending]
        needed = makers(waiting, [] if wanted is None else [wanted], reader)
        left = self._out_of_memory.leave_out(waiting, needed)
        if not left:
            return None
        self.give_up((s for s in waiting if s.serial in left), error, "there was no memory for it")
        self._deferred.leave_out(left)
        return [statement for statement in pending if statement.serial not in left]

    def without_readers(self, pending: Sequence[Statement]) -> list[Statement] | None:
        """The pending statements but for those that read lost values, whose results are lost, too; None if none do."""
        lost = self._deferred.propagate()
        kept, more = propagate(pending)
        found = (*lost, *more, *(ref() for ref in self.lost))
        known = {id(storage): storage for storage in found if storage is not None}
        self.lost = [weakref.ref(storage) for storage in known.values() if storage.lost]
        return kept if more else None
