"""The pending program of a rank: statements that were recorded and not yet executed."""

from __future__ import annotations

import sys
import warnings
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Sequence
from operator import attrgetter
from types import FrameType
from typing import TYPE_CHECKING, Any, Protocol

from numpy_dist.comm.portable import first_error, portable_error
from numpy_dist.comm.supervision.signals import Postponed
from numpy_dist.engine.events import floating
from numpy_dist.engine.events.filters import CONTEXT_AWARE, current_filters
from numpy_dist.engine.events.sites import LATEST, search, site_of
from numpy_dist.engine.executing.executing_rank import ExecutingRank, PlanRecorder
from numpy_dist.engine.memory.budget import share_of_memory
from numpy_dist.engine.memory.storage import Storage
from numpy_dist.engine.scheduling.deferred import Deferred
from numpy_dist.engine.scheduling.eagerness import Eagerness, keep_freed_memory, lower_limit
from numpy_dist.engine.scheduling.execution import Execution, ExecutionRecorder, RecordedExecution
from numpy_dist.engine.scheduling.lost import cannot_run
from numpy_dist.engine.scheduling.periods import LARGE, LARGE_ON_DEVICE, Periods
from numpy_dist.engine.scheduling.recovery import Recovery
from numpy_dist.engine.scheduling.schedule import Description, find_schedule, is_of_values
from numpy_dist.errors import LostValueError
from numpy_dist.ir.statements import Statement, is_part

if TYPE_CHECKING:
    from numpy_dist.engine.scheduling.counters import EngineCounters
    from numpy_dist.engine.scheduling.schedule import GroupObserver, Schedule

_getframe, _capsule = sys._getframe, floating.capsule  # saves look-ups for each statement
MOST_STATEMENTS = 256
MOST_BYTES = 1 << 33  # bytes of results, for each rank, that may be pending wherever there is less memory than that
COMES_IN = 32  # times the bytes of an array that no statement makes count: it is in memory, most results never are
PATIENCE = 16  # small statements in a row that are recorded since those before them are pending
WORTH_POSTPONING = 1 << 20  # bytes of results, in all: programs that take long enough for signals to come meanwhile


class ProgramRecorder(PlanRecorder, ExecutionRecorder, Protocol):
    """What is told of the executions of a program."""

    def found_schedule(self, begin: int, schedule: Schedule) -> None:
        """The schedule of a program was looked for since `begin`."""


class SchedulingRank(ExecutingRank, Protocol):
    """A rank with a program: what this needs of the runtime, which is above it."""

    execution: Execution | None
    counters: EngineCounters
    handed_out: bool

    @property
    def recorder(self) -> ProgramRecorder | None: ...
    @property
    def listings(self) -> Sequence[GroupObserver]: ...


class PendingStatements(list[Statement]):
    """The list of recorded statements in program order; the first may be in execution, and are None when they are done.

    A program is replaced as a whole when its execution has ended, so that an exception finds the one or the other.

    Attributes
    ----------
    execution : Execution or None
        The execution that is in progress, or was left by an exception.
    taken : int
        How many statements are in execution.
    """

    execution: Execution | None = None
    taken = 0


class Program:
    """Statements in program order.

    An exception may come at any point, as signals do. A statement is recorded by one operation, `append` of the pending
    list; it leaves the list when it is executed, and the execution keeps a log by which it is undone (see `execution`).

    The program is divided into periods (see `Periods`). When a third one begins, the first is executed: by then the
    second has bound anew the names of what the first has made, so that nobody can ask for these results and they need
    not be stored.

    Parameters
    ----------
    runtime : Runtime

    Attributes
    ----------
    recorded : int
        The number of statements that were ever recorded; the serial of the next one.
    watches : bool
        Whether windows were ever opened, which statements shut (`engine.data.windows`).
    eagerness : Eagerness or None
        What decides whether middle-sized arrays are worked on at once; None with several ranks, and on a device.
    """

    def __init__(self, runtime: SchedulingRank) -> None:
        self._runtime = runtime
        self._pending = PendingStatements()
        self._bytes = self._bytes_done = 0  # of results that were ever recorded (see `came_in`), and if not pending
        self._most_bytes = self._bound = MOST_BYTES * runtime.size  # pending ones, and when that is reached
        self._knows_room = False
        self.recorded = 0
        self._periods = Periods((LARGE if runtime.on_host else LARGE_ON_DEVICE) * runtime.size)
        self._events = runtime.events
        self._seen: floating.Seen = self._events.look()
        self._deferred = Deferred()
        self._recovery = Recovery(self._deferred)
        self._belated: Execution | None = None  # of what was deferred
        self._checks = runtime.comm.checks
        if self._checks is not None:
            self._checks.journal.program = self
        self._ahead: tuple[int, int, Description] | None = None  # pending statements (first and last serial), described
        self._waiting: int | None = None  # serial of the first statement behind a period that waits to be executed
        self.watches = False
        self._many = runtime.size > 1
        self._missed = 0  # how often small work could not be done at once
        eager = runtime.size == 1 and runtime.on_host and runtime.computes
        if runtime.computes:
            keep_freed_memory()
        self.eagerness = Eagerness(getattr(runtime.backend, "threads", 1)) if eager else None
        if self._many:
            lower_limit()  # simulated ranks, in a process that was alone: it decides what they send

    @property
    def pending(self) -> Sequence[Statement]:
        """What is pending, and not in execution, in program order."""
        return self._pending[self._pending.taken :]

    @property
    def is_executing(self) -> bool:
        """Whether something is in execution, or was left there by an exception."""
        return self._pending.execution is not None

    @property
    def place(self) -> tuple[int, ...] | None:
        """How many statements were recorded, and groups executed; None where a loop may have written something."""
        execution = self._pending.execution
        if execution is None:
            return self.recorded, 0
        return (self.recorded, execution.done) if execution.begun <= execution.done else None

    def parts(self) -> list[tuple[Sequence[Statement], set[int]]]:
        """What would be executed if all were asked for, part by part: statements, and the storages used later."""
        self._settle()
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
        statement.serial = serial = self.recorded
        self.recorded = serial + 1
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
        elif periods.begins(site, serial, self._bytes):
            self._next_period(serial)
        # The error state: the one of the last statement, if nothing has changed since.
        capsule, filters, count, first, state = self._seen
        now_filters = current_filters() if CONTEXT_AWARE else warnings.filters
        if (
            capsule is not _capsule()
            or filters is not now_filters
            or len(filters) != count
            or (count and filters[0] is not first)
        ):
            self._seen = self._events.look()
            state = self._seen[4]
        statement.errstate = state
        for out in statement.outputs:
            storage = out.storage
            storage.last_write = serial
            if not storage.origin:
                storage.origin = serial + 1
            self._bytes += storage.nbytes
        if self.watches:
            _shut_windows(statement)
        begin_walk = _step_of(statement, runtime) if self._many and statement.form.reads_part else None
        pending = self._pending
        pending.append(statement)  # before this nothing is recorded, after it all
        runtime.counters.statements += 1
        try:
            if now:
                self._run_agreed()
            elif state.eager:
                self.run()
                self._events.tell()
            elif len(pending) >= MOST_STATEMENTS or (self._bytes >= self._bound and not self._has_room()):
                self.run()
            elif begin_walk is not None:
                self.run()
                begin_walk()
            elif runtime.handed_out and any(ref.storage.pinned for ref in statement.refs()):
                self.run()
        except BaseException:
            self._withdraw(statement)
            raise

    def came_in(self, nbytes: int) -> None:
        """Note an array that no statement makes, of so many bytes, in the midst of the program.

        Statements that are pending keep their operands, also where nobody else does any more: a loop that brings in an
        array a step holds those of three periods. So they make a period long enough sooner than results do.
        """
        if self._pending:
            self._bytes += COMES_IN * nbytes

    def _has_room(self) -> bool:
        """Whether more results may be pending than were thought to; collective when it is asked for the first time.

        Most of them are never stored. Statements that are cut from those that use their results store them.
        """
        if self._knows_room:
            return False
        self._knows_room = True
        self._most_bytes = max(self._most_bytes, share_of_memory(self._runtime) * self._runtime.size)
        self._bound = self._bytes_done + self._most_bytes
        return self._bytes < self._bound

    def is_settled(self, storage: Storage) -> bool:
        """Whether all has been done that writes a storage, and nothing is in progress."""
        pending = self._pending
        if pending.execution is not None:
            return False
        return not pending or storage.last_write < pending[0].serial

    def is_deferred(self, storage: Storage) -> bool:
        """Whether a statement writes a storage that waits until somebody reads it."""
        return self._deferred.makes(storage)

    def is_read(self, storage: Storage) -> bool:
        """Whether something that is pending reads a storage, or something is in progress."""
        pending = self._pending
        if pending.execution is not None:
            return True
        if pending and storage.last_reader < pending[0].serial:
            # The reader that was found last says enough for as long as it is pending.
            found = (s.serial for s in reversed(pending) if any(ref.storage is storage for ref in s.reads()))
            storage.last_reader = next(found, -1)
        return bool(pending) and storage.last_reader >= pending[0].serial

    def has_lingered(self, limit: int) -> bool:
        """Whether nothing but small work was recorded of late, by those who would do it at once; then all is executed.

        A loop whose small statements stand in the way of the next ones would else go on recording them. What small
        statements between large ones wait for is left alone: they are fused, and may save that results are stored.

        Parameters
        ----------
        limit : int
            Bytes that small results stay below.
        """
        self._missed += 1
        pending = self._pending
        if self._missed % PATIENCE or pending.execution is not None:
            return False
        if any(out.array.nbytes >= limit for s in pending[-PATIENCE:] for out in s.outputs):
            return False
        self.run()
        return True

    def _withdraw(self, statement: Statement) -> None:
        """Forget a statement, the last one, if it was not executed: the call that recorded it raises."""
        if self._pending and self._pending[-1] is statement:
            self._pending.pop()

    def _next_period(self, serial: int) -> None:
        """A period begins with the statement of this serial: execute the one before the last."""
        waiting, pending = self._waiting, self._pending
        if waiting is not None:
            if self.eagerness is not None and pending and pending.execution is None:
                self.eagerness.executing(pending[: waiting - pending[0].serial], asked=False)
            self._execute_uninterrupted(waiting - 1)
            if self._runtime.size == 1:
                self._events.tell()
        self._waiting = serial

    def _run_agreed(self) -> None:
        """Execute a single statement whose values can raise, and tell its events.

        Collective, so that every rank raises, and warns of, what one has met.
        """
        error: Exception | None = None
        try:
            self.run(may_raise=True)
            self._runtime.backend.memory.fence()
        except Exception as raised:
            if not is_of_values(raised):
                raise
            error = raised
        comm, mine = self._runtime.comm, (portable_error(error), tuple(self._events.met))
        told = comm.allgather(mine) if self._runtime.size > 1 else [mine]
        found = first_error((error for error, _ in told), comm.rank, error)
        if found is not None:
            raise found[1]
        self._events.share([events for _, events in told])

    def force(self, storage: Storage) -> None:
        """Execute the program through the last statement that writes a storage.

        Raises
        ------
        LostValueError
            If its values are lost.
        """
        if self._pending.execution is not None:
            self._settle()
        if storage.walk is not None:
            storage.walk.write_back(storage)
        if self.eagerness is not None:
            self.eagerness.saved = 0.0
        if self._pending and storage.last_write >= self._pending[0].serial:
            self.run(storage.last_write, wanted=storage)
        elif self._deferred.makes(storage):
            self.run_deferred()
        if storage.lost:
            shape = storage.shape if storage.axes is None else tuple(map(storage.shape.__getitem__, storage.axes))
            raise LostValueError(f"an array of shape {shape}, {storage.dtype}, cannot be read: {storage.lost}")

    def run(
        self,
        through: int | None = None,
        reader: Statement | None = None,
        may_raise: bool = False,
        wanted: Storage | None = None,
    ) -> None:
        """Execute the pending program, or its part through a serial.

        Collective in effect: every rank executes the same part at the same point of its program.

        Parameters
        ----------
        reader : Statement, optional
            One that will be recorded next: what it reads is stored, even if there is no other use of it.
        may_raise : bool
            Whether the program is a single statement whose values can raise.
        wanted : Storage, optional
            Whose values are asked for.
        """
        if self._pending:
            if through is not None and self.eagerness is not None and self._pending.execution is None:
                self.eagerness.executing(self._pending)
            self._execute_uninterrupted(through, reader, may_raise, wanted)
            self._periods.interrupt(self.recorded, self._bytes)
            self._waiting = None
        if self._runtime.size == 1:
            self._events.tell()

    def _execute_uninterrupted(
        self,
        through: int | None,
        reader: Statement | None = None,
        may_raise: bool = False,
        wanted: Storage | None = None,
    ) -> None:
        """Execute statements as `run` does, while signals wait; in one process also without what finds no memory."""
        if self._runtime.size > 1:
            with self._runtime.comm.signals as signals:
                signals.executing()
                self._cut_and_execute(through, reader, may_raise)
            return
        while True:
            try:
                if self._bytes - self._bytes_done < WORTH_POSTPONING:
                    self._cut_and_execute(through, reader, may_raise)
                else:
                    with Postponed() as signals:
                        self._cut_and_execute(through, reader, may_raise, signals)
            except MemoryError as error:
                if not self._leave_starved(error, wanted, reader):
                    raise
            else:
                return

    def _leave_starved(self, error: MemoryError, wanted: Storage | None, reader: Statement | None) -> bool:
        """Leave out statements that find no memory again (see `Recovery`); whether there are such statements."""
        rest = self._recovery.without_starved(self._pending, error, wanted, reader)
        if rest is not None:
            self._replace(rest)
        return rest is not None

    def _cut_and_execute(
        self, through: int | None, reader: Statement | None, may_raise: bool, signals: Postponed | None = None
    ) -> None:
        """Execute the statements through a serial by their schedule; undo what an exception leaves half done."""
        if self._pending.execution is not None or self._recovery.lost:
            self._settle()
        pending = self._pending
        count = len(pending) if through is None or not pending else _number_through(pending, through)
        if not count:
            return
        recorder = self._runtime.recorder
        begun = 0 if recorder is None else recorder.now
        todo, rest = pending[:count], pending[count:]
        if self._checks is not None:
            self._checks.executing(todo)
        description, self._ahead = self._described(todo) or Description(todo), None
        later: Collection[int] = () if reader is None else _used_by([reader])
        if rest:
            # A period that waits is looked at now, for what it needs of this one; when its turn comes, that is known.
            ahead = Description(rest)
            self._ahead = rest[0].serial, rest[-1].serial, ahead
            later = ahead.slots
        try:
            if self._deferred.statements:
                self._run_deferred(description.slots, later)
            schedule = find_schedule(self._runtime, todo, description, later)
            if recorder is not None:
                recorder.found_schedule(begun, schedule)
            if self._checks is not None:
                self._checks.journal.uses(description.parts, schedule.pattern_of(description), description.storages)
            if through is not None:
                found = schedule.deferrable(todo, description.storages)
                if found or self._deferred.statements:
                    self._deferred.defer(found)
            del todo, rest  # what is done gives its memory back
            if recorder is not None:
                execution: Execution = RecordedExecution(
                    recorder, schedule, pending, description.storages, may_raise, signals
                )
            else:
                execution = Execution(schedule, pending, description.storages, may_raise, signals)
            del description
            pending.taken = count
            pending.execution = execution
            self._run_schedule(execution)
            if self._deferred.statements:
                self._deferred.forget_stored()
            self._replace(pending[count:])
        except BaseException as error:
            if pending.execution is None and self._belated is None and cannot_run(error):
                self._recovery.give_up(pending[:count], error)
                self._replace(pending[count:])
            self._recover(error)
            raise
        pending.execution = None  # they refer to each other, and would wait for the garbage collector
        self._events.report_shared()

    def _run_schedule(self, execution: Execution) -> None:
        """Run the schedule of an execution."""
        runtime, checks = self._runtime, self._checks
        runtime.execution = execution
        if checks is not None:
            checks.journal.executes = True
        try:
            execution.schedule.run(runtime, execution.statements, execution.storages, runtime.listings)
        except BaseException as error:
            if not (execution.may_raise and is_of_values(error)):
                # This rank has left a communication that others are in: they must not wait for it, even if it goes on.
                runtime.comm.fail(error)
            raise
        finally:
            if checks is not None:
                checks.journal.executes = False

    def _replace(self, statements: Iterable[Statement]) -> None:
        """Have these pending, and nothing in execution."""
        pending = PendingStatements(statements)
        self._bytes_done = self._bytes - sum([out.storage.nbytes for s in pending for out in s.outputs])
        self._bound = self._bytes_done + self._most_bytes
        self._pending = pending

    def _recover(self, error: BaseException) -> None:
        """Undo what an exception has left half done; what is to be executed yet is pending again.

        May be called again where it was left by an exception itself.
        """
        pending = self._pending
        executions = [execution for execution in (self._belated, pending.execution) if execution is not None]
        rest = self._recovery.undo(executions, pending, error)
        self._belated = self._ahead = self._waiting = None
        self._periods.interrupt(self.recorded, self._bytes)
        self._replace(rest)

    def _settle(self) -> None:
        """Recover from an exception that has left `_recover`, too; leave out statements that read lost values.

        Raises
        ------
        RuntimeError
            Where the program is being executed: finalizers, handlers of signals and other threads cannot ask for values
            then.
        """
        if self._pending.execution is not None:
            frame: FrameType | None = _getframe(1).f_back
            while frame is not None:
                if frame.f_code is Program._cut_and_execute.__code__ and frame.f_locals["self"] is self:
                    raise RuntimeError(
                        "values of distributed arrays were asked for while the program executes, by a handler of a "
                        "signal or a finalizer"
                    )
                frame = frame.f_back
            self._recover(KeyboardInterrupt("an exception"))
        if self._recovery.lost:
            kept = self._recovery.without_readers(self._pending)
            if kept is not None:
                self._ahead = None
                self._replace(kept)

    def lose(self, storages: Iterable[Storage], why: str) -> None:
        """Take note that storages of another runtime have no values, so that all that reads them says so."""
        self._recovery.lose(storages, why)

    def _described(self, statements: Sequence[Statement]) -> Description | None:
        """What is known of these statements from when they were pending."""
        if self._ahead is None:
            return None
        first, last, description = self._ahead
        return description if (first, last) == (statements[0].serial, statements[-1].serial) else None

    def run_deferred(self) -> None:
        """Execute what was deferred and is still wanted. Not collective."""
        self._settle()
        try:
            self._run_deferred(_used_by(self._pending))
        except BaseException as error:
            self._recover(error)
            raise

    def drop_unwanted(self) -> None:
        """Let go of what deferred statements read, if nobody wants their results: memory is needed. Not collective."""
        if self._deferred.statements and self._pending.execution is None:
            self._deferred.drop_unwanted(_used_by(self._pending))

    def _run_deferred(self, *used: Collection[int]) -> None:
        """Execute what was deferred and is still wanted, also by statements that use storages with these ids."""
        deferred, runtime = self._deferred, self._runtime
        statements = deferred.wanted(*used)
        if statements:
            description = Description(statements)
            schedule = find_schedule(runtime, statements, description, {number for ids in used for number in ids})
            recorder, what = runtime.recorder, (schedule, statements, description.storages)
            self._belated = Execution(*what) if recorder is None else RecordedExecution(recorder, *what)
            self._run_schedule(self._belated)
        deferred.clear()
        self._belated = None


Begin = Callable[[], object]
_step: Callable[[SchedulingRank, Storage, int], Begin | None]


def register_walks(step: Callable[[Any, Storage, int], Begin | None]) -> None:
    """Set what is told of each read of a part, of so many bytes, of a storage, and returns how a walk begins."""
    global _step
    _step = step


def _step_of(statement: Statement, runtime: SchedulingRank) -> Begin | None:
    """What is to be done where this statement is the last step before all ranks walk over a copy of what it reads."""
    parts = [ref for ref in statement.reads() if is_part(ref.view)]
    begins = [_step(runtime, ref.storage, ref.array.nbytes) for ref in parts]
    return next((begin for begin in begins if begin is not None), None)


def _shut_windows(statement: Statement) -> None:
    """Let nobody look at what a statement will write, nor write what it will read (see `windows`)."""
    for ref in statement.reads():
        if ref.storage.walk is not None:
            ref.storage.walk.write_back(ref.storage)
        known = ref.storage.window
        if known is not None and (window := known()) is not None:
            window.writeable = False
    for ref in statement.outputs:
        if ref.storage.walk is not None:
            ref.storage.walk.written(ref.storage, ref.array.nbytes)
        known = ref.storage.window
        if known is not None and (window := known()) is not None:
            window.shut()


def _number_through(statements: Sequence[Statement], serial: int) -> int:
    """How many statements there are through a serial."""
    count = serial - statements[0].serial + 1
    if 0 < count <= len(statements) and statements[count - 1].serial == serial:
        return count
    return bisect_right(statements, serial, key=attrgetter("serial"))  # some were done before, or never recorded


def _used_by(statements: Sequence[Statement]) -> set[int]:
    """Ids of the storages that statements read or write."""
    return {id(ref.storage) for s in statements for ref in s.refs()}
