"""The pending program of a rank: statements that were recorded and not yet executed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy_dist.engine import floating
from numpy_dist.engine.schedule import run_program
from numpy_dist.engine.sites import user_site
from numpy_dist.engine.storage import Storage
from numpy_dist.ir.statements import Statement

MOST_STATEMENTS = 256
SHORTEST_PERIOD = 32
MOST_BYTES = 1 << 33  # bytes of results, for each rank, that a pending program may hold back


class Program:
    """Statements in program order.

    The program is divided into periods: a new one begins where a call site recurs (but none is shorter than
    `SHORTEST_PERIOD` statements, so that short loops unroll). When a third one begins, the first is executed: by then
    the second has bound anew the names of what the first has made, so that nobody can ask for these results and they
    need not be stored. The statements of a loop thus meet in the same groups each time.

    Parameters
    ----------
    runtime : Runtime
    """

    def __init__(self, runtime: Any) -> None:
        self._runtime = runtime
        self._pending: list[Statement] = []
        self._bytes = 0
        self._most_bytes = MOST_BYTES * runtime.size
        self._next = 0
        self._sites: set[int] = set()  # of the present period
        self._period = 0  # serials of the first statements of the present period and of the one before
        self._before = -1

    @property
    def pending(self) -> Sequence[Statement]:
        """What is pending, in program order."""
        return self._pending

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
            self.run()
        runtime = self._runtime
        statement.serial = serial = self._next
        self._next = serial + 1
        site = statement.site = user_site(depth + 1)
        if id(site) not in self._sites:
            self._sites.add(id(site))
        elif serial - self._period >= SHORTEST_PERIOD:
            self._new_period(serial, id(site))
        state = statement.errstate = floating.current_state()
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

    def _new_period(self, serial: int, site: int) -> None:
        """Begin a period with the statement of this serial and site; execute the one before the last."""
        begun = self._period
        if self._before >= 0:
            self.run(begun - 1)
        self._before, self._period, self._sites = begun, serial, {site}

    def _run_agreed(self) -> None:
        """Execute a single statement whose values can raise; collective, so that every rank raises what one has met."""
        error: Exception | None = None
        try:
            self.run()
        except (ValueError, ArithmeticError) as raised:
            error = raised
        errors = self._runtime.comm.allgather(error) if self._runtime.size > 1 else [error]
        first = next((e for e in errors if e is not None), None)
        if first is not None:
            raise first

    def force(self, storage: Storage) -> None:
        """Execute the program through the last statement that writes a storage."""
        if self._pending and storage.last_write >= self._pending[0].serial:
            self.run(storage.last_write)

    def run(self, through: int | None = None) -> None:
        """Execute the pending program, or its part through a serial.

        Collective in effect: every rank executes the same part at the same point of its program.
        """
        if self._pending:
            self._execute(through)
        if self._runtime.size == 1:
            self.tell()

    def _execute(self, through: int | None) -> None:
        pending = self._pending
        count = len(pending) if through is None else through - pending[0].serial + 1
        todo, self._pending = pending[:count], pending[count:]
        self._bytes = sum(out.storage.nbytes for s in self._pending for out in s.outputs)
        self._before, self._period, self._sites = -1, self._next, set()
        runtime = self._runtime
        later = {id(ref.storage) for s in self._pending for ref in (*s.reads(), *s.outputs)}
        del pending
        run_program(runtime, todo, later)

    def tell(self) -> None:
        """Agree on the floating-point events so far and report them; collective."""
        mine = tuple(self._runtime.flags)
        self.share(self._runtime.comm.allgather(mine) if self._runtime.size > 1 else [mine])

    def share(self, flags: Sequence[Sequence[floating.Event]]) -> None:
        """Report the events of all ranks, which a collective brought along: one sequence for each rank."""
        self._runtime.flags.clear()
        events = [event for part in flags for event in part]
        if events:
            floating.report(events)
