"""The pending program of a rank: statements that were recorded and not yet executed."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Collection, Sequence
from typing import Any

from numpy_dist.engine import floating
from numpy_dist.engine.deferred import Deferred
from numpy_dist.engine.periods import Periods
from numpy_dist.engine.schedule import AGREED, Description, execute, find_schedule, run_program
from numpy_dist.engine.sites import LATEST, search, site_of
from numpy_dist.engine.storage import Storage
from numpy_dist.ir.statements import Statement

_getframe, _capsule = sys._getframe, floating.capsule  # saves look-ups for each statement
MOST_STATEMENTS = 256
MOST_BYTES = 1 << 33  # bytes of results, for each rank, that a pending program may hold back


class Program:
    """Statements in program order.

    The program is divided into periods (see `Periods`). When a third one begins, the first is executed: by then the
    second has bound anew the names of what the first has made, so that nobody can ask for these results and they need
    not be stored.

    Parameters
    ----------
    runtime : Runtime

    Attributes
    ----------
    untold : bool
        Whether ranks may have met events since they last agreed on them, in what they computed themselves (`noted`).
    alike : set
        Events that every rank has met since then, where all of them compute the same.
    """

    def __init__(self, runtime: Any) -> None:
        self._runtime = runtime
        self.untold = False
        self.alike: set[floating.Event] = set()
        self._pending: list[Statement] = []
        self._bytes = 0
        self._most_bytes = MOST_BYTES * runtime.size
        self._next = 0
        self._periods = Periods()
        self._seen = floating.look()
        self._deferred = Deferred()
        self._checks = runtime.comm.checks
        if self._checks is not None:
            self._checks.journal.program = self
        self._ahead: tuple[int, int, Description] | None = None  # pending statements (first and last serial), described
        self._waiting: int | None = None  # serial of the first statement behind a period that waits to be executed

    @property
    def pending(self) -> Sequence[Statement]:
        """What is pending, in program order."""
        return self._pending

    @property
    def recorded(self) -> int:
        """The number of statements that were ever recorded; the serial of the next one."""
        return self._next

    def parts(self) -> list[tuple[Sequence[Statement], set[int]]]:
        """What would be executed if all were asked for, part by part: statements, and the storages used later."""
        used = _used_by(self._pending)
        parts = [(self._deferred.needed(used), used), (self._pending, set[int]())] if self._pending else []
        return [part for part in parts if part[0]]

    def append(self, statement: Statement, now: bool = False, depth: int = 1) -> None:
        """Record a statement; run the program at its bounds, or at once where the user wants to be told of events.

        Parameters
        ----------
        now : bool
            Execute before returning, since the statement's values can raise; one rank's error is raised on all.
        depth : int
            How many frames above the caller the search for the user's begins.
        """
        if now:
            self.run(reader=statement)
        runtime = self._runtime
        statement.serial = serial = self._next
        self._next = serial + 1
        # The user's call site: the one that was seen last at this instruction, if it was called from there, too.
        frame = _getframe(depth + 1)
        try:
            site = LATEST[id(frame.f_code)][frame.f_lasti]
        except KeyError:
            site = search(frame)
        else:
            back = frame.f_back or frame
            if site.called_at != back.f_lasti or site.caller is not back.f_code:
                site = site_of(frame)
        statement.site = site
        periods = self._periods
        if site not in periods.sites:
            periods.sites.add(site)
        elif periods.begins(site, serial):
            self._next_period(serial)
        # The error state: the one of the last statement, if nothing has changed since.
        capsule, filters, count, first, state = self._seen
        now_filters = warnings.filters
        if (
            capsule is not _capsule()
            or filters is not now_filters
            or len(filters) != count
            or (count and filters[0] is not first)
        ):
            self._seen = floating.look()
            state = self._seen[4]
        statement.errstate = state
        pending = self._pending
        pending.append(statement)
        runtime.counters.statements += 1
        for out in statement.outputs:
            storage = out.storage
            storage.last_write = serial
            self._bytes += storage.nbytes
        if now:
            self._run_agreed()
        elif state.eager:
            self.run()
            self.tell()
        elif len(pending) >= MOST_STATEMENTS or self._bytes >= self._most_bytes:
            self.run()
        elif runtime.handed_out and any(ref.storage.pinned for ref in (*statement.reads(), *statement.outputs)):
            self.run()

    def _next_period(self, serial: int) -> None:
        """A period begins with the statement of this serial: execute the one before the last."""
        waiting = self._waiting
        if waiting is not None:
            self._execute(waiting - 1)
            if self._runtime.size == 1:
                self.tell()
        self._waiting = serial

    def _run_agreed(self) -> None:
        """Execute a single statement whose values can raise; collective, so that every rank raises what one has met."""
        error: Exception | None = None
        try:
            self.run()
            self._runtime.backend.memory.fence()
        except AGREED as raised:
            error = raised
        errors = self._runtime.comm.allgather(error) if self._runtime.size > 1 else [error]
        first = next((e for e in errors if e is not None), None)
        if first is not None:
            raise first

    def force(self, storage: Storage) -> None:
        """Execute the program through the last statement that writes a storage."""
        if self._pending and storage.last_write >= self._pending[0].serial:
            self.run(storage.last_write)
        elif self._deferred.makes(storage):
            self.run_deferred()

    def run(self, through: int | None = None, reader: Statement | None = None) -> None:
        """Execute the pending program, or its part through a serial.

        Collective in effect: every rank executes the same part at the same point of its program.

        Parameters
        ----------
        reader : Statement, optional
            One that will be recorded next: what it reads is stored, even if there is no other use of it.
        """
        if self._pending:
            self._execute(through, reader)
            self._periods.interrupt(self._next)
            self._waiting = None
        if self._runtime.size == 1:
            self.tell()

    def _execute(self, through: int | None, reader: Statement | None = None) -> None:
        pending = self._pending
        count = len(pending) if through is None else through - pending[0].serial + 1
        todo, self._pending = pending[:count], pending[count:]
        self._bytes = sum(out.storage.nbytes for s in self._pending for out in s.outputs)
        del pending
        if self._checks is not None:
            self._checks.executing(todo)
        description, self._ahead = self._described(todo) or Description(todo), None
        later: Collection[int] = () if reader is None else _used_by([reader])
        if self._pending:
            # A period that waits is looked at now, for what it needs of this one; when its turn comes, that is known.
            ahead = Description(self._pending)
            self._ahead = self._pending[0].serial, self._pending[-1].serial, ahead
            later = ahead.slots
        if self._deferred.statements:
            self._run_deferred(description.slots, later)
        schedule = find_schedule(self._runtime, todo, description, later)
        if through is not None:
            self._deferred.defer(schedule.deferrable(todo, description.storages))
        execute(self._runtime, schedule, todo, description.storages)
        self._deferred.forget_stored()

    def _described(self, statements: Sequence[Statement]) -> Description | None:
        """What is known of these statements from when they were pending."""
        if self._ahead is None:
            return None
        first, last, description = self._ahead
        return description if (first, last) == (statements[0].serial, statements[-1].serial) else None

    def run_deferred(self) -> None:
        """Execute what was deferred and is still wanted. Not collective."""
        self._run_deferred(_used_by(self._pending))

    def _run_deferred(self, *used: Collection[int]) -> None:
        """Execute what was deferred and is still wanted, also by statements that use storages with these ids."""
        statements = self._deferred.take(*used)
        if statements:
            run_program(self._runtime, statements, {number for ids in used for number in ids})

    def tell(self) -> None:
        """Agree on the floating-point events so far and report them; collective."""
        memory = self._runtime.backend.memory
        if memory.late_events:
            memory.fence()
        if self._runtime.size == 1 and not self._runtime.flags:
            self.untold = False
            return
        mine = tuple(self._runtime.flags)
        self.share(self._runtime.comm.allgather(mine) if self._runtime.size > 1 else [mine])

    def tell_before_value(self) -> None:
        """Report events, for a value goes to Python. Collective only if ranks may have met different ones."""
        memory = self._runtime.backend.memory
        if memory.late_events:
            memory.fence()
        if self.untold:
            self.tell()
        elif self.alike:
            events = set(self.alike)
            self._runtime.flags -= events
            self.alike.clear()
            floating.report(events)

    def note(self, event: floating.Event | None, alike: bool) -> None:
        """Keep an event until ranks agree on events; `alike` tells whether all of them meet it."""
        if event is not None:
            self._runtime.flags.add(event)
            if alike:
                self.alike.add(event)

    def share(self, flags: Sequence[Sequence[floating.Event]]) -> None:
        """Report the events of all ranks, which a collective brought along: one sequence for each rank."""
        self._runtime.flags.clear()
        self.alike.clear()
        self.untold = False
        events = [event for part in flags for event in part]
        if events:
            floating.report(events)


def _used_by(statements: Sequence[Statement]) -> set[int]:
    """Ids of the storages that statements read or write."""
    return {id(ref.storage) for s in statements for ref in (*s.reads(), *s.outputs)}
