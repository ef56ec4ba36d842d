"""The recorder of a rank: what the engine and the communicator tell while a profile is on.

Both have an attribute that is None when nobody listens: `Runtime.recorder` and `Communicator.observer`. They are asked
once for each loop, collective, exchange, plan and gather, never for a recorded statement. A recorder only appends
small tuples (`log`) to `records`; somebody else takes them away and writes them (`session`).
"""

from __future__ import annotations

import linecache
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from numpy_dist.argument_types import Keywords
from numpy_dist.comm.base import PendingExchange
from numpy_dist.engine.explaining.forecast import touched
from numpy_dist.engine.planning.actions import Plan
from numpy_dist.engine.planning.group import Group
from numpy_dist.frames import UserLine, calling_frame, library_folders, user_frame
from numpy_dist.ir.statements import Statement
from numpy_dist.profiling.axes import loop_axes, of_function
from numpy_dist.profiling.log import (
    AxisUse,
    CollectiveRun,
    CompileRun,
    ExchangeStart,
    ExchangeWait,
    FunctionRun,
    GatherRun,
    LoopDescription,
    LoopRun,
    MemoryUse,
    Notice,
    PlanningRun,
    Record,
    SourceText,
    ThreadRun,
)

if TYPE_CHECKING:
    import numpy as np

    from numpy_dist.comm.base import Message
    from numpy_dist.engine.events.sites import CallSite
    from numpy_dist.engine.executing.prepared import PreparedPlans
    from numpy_dist.engine.memory.storage import Storage
    from numpy_dist.engine.runtime import Runtime
    from numpy_dist.engine.scheduling.execution import Execution
    from numpy_dist.engine.scheduling.schedule import Schedule

MOST_RECORDS = 500_000  # of one rank: a page of more could not be looked at
_MOST_KNOWN = 4096  # loops whose bytes are known
_WORTH_TELLING = 100_000  # nanoseconds of a garbage collection
_NOT_YET = "numpy: not yet compiled"

clock = time.perf_counter_ns


class Recorder:
    """What one rank does, as it happens.

    Parameters
    ----------
    runtime : Runtime
        The rank's.

    Attributes
    ----------
    records : deque of Record
        What was not written yet.
    left_out : int
        How many records were too many.
    """

    def __init__(self, runtime: Runtime) -> None:
        self.records: deque[Record] = deque()
        self.left_out = 0
        self._count = 0
        self._runtime = runtime
        self._begun = 0  # when the present loop began
        self._exchanges = 0
        self._collective = (0, "", -1, 0)  # when the last one began, what it is, and the bytes that were counted then
        self._lines: dict[UserLine, int] = {}
        self._sites: dict[CallSite, int] = {}
        self._bytes: dict[tuple[int, tuple[CallSite, ...]], tuple[Plan, int, int]] = {}
        self._loops: dict[tuple, int] = {}
        self._uses: set[AxisUse] = set()
        self._thread = threading.get_ident()  # the rank's, where spans nest
        self._garbage = (0, 0)
        self._memory = (-1, -1)
        self._workers: dict[int, list[int]] = {}  # what they did in the present loop: begin, end, busy, ranges
        self._at_work: dict[object, ThreadRun] = {}  # other threads, while they are
        self._thread_count = 0
        library_folders()  # a garbage collection may ask for them while what they are found by is imported

    def _add(self, record: Record) -> None:
        if self._count < MOST_RECORDS:
            self._count += 1
            self.records.append(record)
        else:
            self.left_out += 1

    # -- loops: told by `engine.scheduling` ---------------------------------------------------------------------------

    @property
    def now(self) -> int:
        """The clock."""
        return clock()

    def found_schedule(self, begin: int, schedule: Schedule) -> None:
        """The schedule of a program was looked for since `begin`."""
        made = not any(schedule.plans)  # nobody has executed it
        self._add(PlanningRun(begin, clock(), "schedule made" if made else "schedule found", schedule.statements))

    def planned(self, begin: int, statements: Sequence[Statement]) -> None:
        """A loop of these statements was planned since `begin`, for memory that lies as it does now."""
        self._add(PlanningRun(begin, clock(), "loop planned", len(statements)))

    def begin_loop(self) -> None:
        """A loop begins, or a chain."""
        if self._workers:  # of launches that were no loop's
            self._end_workers(-1, -1)
        self._begun = clock()

    def ran(self, execution: Execution, number: int) -> None:
        """Loops of an execution are done through this number: one, or several that ran together."""
        done = range(execution.done, number)
        if not done:
            return
        if self._count >= MOST_RECORDS:
            self.left_out += 1
            return
        memory = self._runtime.backend.memory
        if not memory.on_host:
            memory.fence()  # devices work on; their time is the loop's
        end = clock()
        loops = [self._loop(execution, n) for n in done]
        self._add(LoopRun(self._begun, end, loops))
        if self._workers:
            line = self._line_of(execution.statements[execution.schedule.groups[done[0]].positions[0]].site)
            self._end_workers(loops[0], line)
        self._look_at_memory(end)
        self._begun = clock()  # what this has taken is nobody's

    def _loop(self, execution: Execution, number: int) -> int:
        """The number of a loop's description."""
        plans, plan = execution.schedule.plans[number], execution.plans[number]
        group = plans.group
        statements = [execution.statements[position] for position in group.positions]
        sites = tuple([statement.site for statement in statements])
        known = self._bytes.get((id(plan), sites))
        if known is None:
            if len(self._bytes) >= _MOST_KNOWN:
                self._bytes.clear()
            found = _bytes_of(group, statements, execution.storages, self._runtime.rank)
            known = self._bytes[id(plan), sites] = (plan, *found)  # the plan, so that its id stays its own
            moved: list[Any] = [*group.fetches, *[halo for halo, _ in group.halos]]
            travelling = {id(execution.storages[transfer.slot]) for transfer in moved}
            for statement in statements:
                for use in loop_axes(statement, travelling):
                    self._use(*use, self._line_of(statement.site))
        _, reads, writes = known
        lines = tuple([self._line_of(site) for site in sites])
        operations = ", ".join([statement.op.name for statement in statements])
        key = lines, operations, reads, writes, self._tier(plans, plan)
        found_number = self._loops.get(key)
        if found_number is None:
            found_number = self._loops[key] = len(self._loops)
            self.records.append(LoopDescription(found_number, *key))
        return found_number

    def _tier(self, plans: PreparedPlans, plan: Plan) -> str:
        """By what a loop was run, without what changes each time."""
        if plans.group.box is None:
            return "nothing: this rank has no part of it"
        parts = [part for kept in plans.values() if kept.plan is plan for part in kept.parts]
        found = dict.fromkeys(self._runtime.backend.tier(part.memo) for part in parts)
        return "; ".join(dict.fromkeys(_NOT_YET if tier.startswith(_NOT_YET) else tier for tier in found))

    def _use(self, shape: Sequence[int], cut: Sequence[int], along: Sequence[int], known: bool, line: int) -> None:
        use = AxisUse(tuple(shape), tuple(cut), tuple(along), known, line)
        if use not in self._uses and len(self._uses) < _MOST_KNOWN:
            self._uses.add(use)
            self.records.append(use)

    # -- other threads, of which each has a count of its own, so that many of them leave room for the rest -------------

    def _add_thread(self, record: ThreadRun) -> None:
        if self._thread_count < MOST_RECORDS:
            self._thread_count += 1
            self.records.append(record)
        else:
            self.left_out += 1

    def worker_ran(self, number: int, begin: int, end: int, busy: int, ranges: int) -> None:
        """A worker of the rank's pool has computed ranges of a launch, which is over."""
        known = self._workers.get(number)
        if known is None:
            self._workers[number] = [begin, end, busy, ranges]
        else:
            known[1] = end
            known[2] += busy
            known[3] += ranges

    def _end_workers(self, loop: int, line: int) -> None:
        for number, (begin, end, busy, ranges) in self._workers.items():
            self._add_thread(ThreadRun(begin, end, f"worker {number}", "", loop, line, busy, ranges))
        self._workers.clear()

    def other_thread(self, thread: str, what: str) -> Callable[[int, int | None], None]:
        """This thread has work for another one (see `parallel.threads.thread_watch`)."""
        line, key = self._here(), object()

        def tell(begin: int, end: int | None) -> None:
            if end is None:
                self._at_work[key] = ThreadRun(begin, begin, thread, what, -1, line, 0, 0)
            elif self._at_work.pop(key, None) is not None:
                self._add_thread(ThreadRun(begin, end, thread, what, -1, line, end - begin, 0))

        return tell

    def child_compiled(self, pid: int, begin: int, end: int) -> None:
        """A process has compiled a kernel for this one (see `backends.compiled.compiler`)."""
        self._add_thread(ThreadRun(begin, end, "compiler", f"a kernel, in process {pid}", -1, -1, end - begin, 0))

    def wrote(self, begin: int) -> None:
        """The profile's own thread has written what was recorded, since `begin`."""
        end = clock()
        if end - begin >= _WORTH_TELLING:
            self._add_thread(ThreadRun(begin, end, "log", "writing of the profile's log", -1, -1, end - begin, 0))

    def end_threads(self) -> None:
        """The profile ends: what other threads still do has a part in it."""
        end = clock()
        for key in list(self._at_work):
            run = self._at_work.pop(key, None)
            if run is not None:
                self._add_thread(run._replace(end=end, busy=end - run.begin, what=f"{run.what}, and was not done"))

    # -- the user's lines ---------------------------------------------------------------------------------------------

    def _line_of(self, site: CallSite) -> int:
        number = self._sites.get(site)
        if number is None:
            from numpy_dist.engine.events.sites import resolve

            found = resolve(site)
            number = self._sites[site] = self._line(UserLine(found.filename, found.line))
        return number

    def _line(self, where: UserLine) -> int:
        number = self._lines.get(where)
        if number is None:
            number = self._lines[where] = len(self._lines)
            self.records.append(SourceText(number, *where, linecache.getline(*where).strip()))
        return number

    def _here(self) -> int:
        """The user's line that is being executed: not one of an installed library, which he cannot change."""
        frame = calling_frame(user_frame(1))
        return self._line(UserLine(frame.f_code.co_filename, frame.f_lineno))

    # -- communication: told by `comm.base` ---------------------------------------------------------------------------

    def collective_began(self, kind: str, root: int) -> None:
        """This rank joins a collective."""
        self._collective = clock(), kind, root, self._runtime.comm.counters.bytes

    def collective_ended(self) -> None:
        """The collective that this rank has joined last is over."""
        begin, kind, root, before = self._collective
        self._add(CollectiveRun(begin, clock(), kind, root, self._runtime.comm.counters.bytes - before, self._here()))

    def started(
        self, pending: PendingExchange, sends: Sequence[Message], receives: Sequence[Message], tag: int
    ) -> PendingExchange:
        """Messages were started, for which the caller will wait by what is returned."""
        self._exchanges += 1
        out, into = ([(rank, array.nbytes) for rank, array, _ in messages] for messages in (sends, receives))
        self._add(ExchangeStart(clock(), self._exchanges, tag, out, into, self._here()))
        return WatchedExchange(pending, self, self._exchanges)

    def waited(self, begin: int, number: int) -> None:
        """The rank has waited since `begin` for an exchange."""
        self._add(ExchangeWait(begin, clock(), number))

    # -- everything else ----------------------------------------------------------------------------------------------

    def call(self, name: str, function: object, args: Sequence[object], kwargs: Keywords) -> RecordedBlock:
        """A block in which a function runs that is no loop, of which the arguments are known."""
        if self._runtime.size > 1:
            for use in of_function(function, args, kwargs):
                self._use(*use, self._here())
        return self.function(name)

    def positions(self, positions: object, block: np.ndarray, among: int) -> np.ndarray:
        """What a rank has of the positions of an index, as it is; a plan's observer tells others."""
        return block

    def function(self, name: str) -> RecordedBlock:
        """A block in which a function runs that is no loop."""

        def ended(begin: int) -> None:
            end = clock()
            self._add(FunctionRun(begin, end, name, self._here()))
            if self._workers:
                self._end_workers(-1, self._here())
            self._look_at_memory(end)

        return RecordedBlock(ended)

    def collected(self, phase: str, facts: dict[str, int]) -> None:
        """Python's garbage collector begins or ends (see `gc.callbacks`), on any thread."""
        if phase == "start":
            self._garbage = threading.get_ident(), clock()
            return
        thread, begin = self._garbage
        end = clock()
        if thread == threading.get_ident() == self._thread and end - begin >= _WORTH_TELLING:
            name = f"garbage collection (generation {facts['generation']})"
            self._add(FunctionRun(begin, end, name, self._here()))

    def gathered(self, begin: int, nbytes: int, root: int | None) -> None:
        """An array was gathered since `begin`, to one rank or to all."""
        self._add(GatherRun(begin, clock(), nbytes, -1 if root is None else root, self._here()))

    def notice(self, how: str, function: str, reason: str, amount: int, site: UserLine) -> None:
        """Something that nobody asked for (see `log.Notice`)."""
        self._add(Notice(clock(), how, function, reason, amount, self._line(site)))

    def compiled(self, seconds: float, failure: str) -> None:
        """A kernel has come, or has failed, that was wanted for some time; by any thread."""
        end = clock()
        self._add(CompileRun(end - int(seconds * 1e9), end, failure))

    def _look_at_memory(self, now: int) -> None:
        pool = self._runtime.pool
        use = pool.held, pool.free
        if use != self._memory:
            self._memory = use
            self._add(MemoryUse(now, *use))


def _bytes_of(group: Group, statements: list[Statement], storages: Sequence[Storage], rank: int) -> tuple[int, int]:
    """Bytes that a loop reads and writes."""
    slots = {id(storages[slot]): slot for slot in group.slots}
    stored = {slot: storages[slot].wanted for slot in group.slots}
    reads, writes = touched(group, rank, statements, slots, stored)
    return sum(reads.values()), sum(writes.values())


class RecordedBlock:
    """A context that tells when it ends, with the time at which it began."""

    def __init__(self, ended: Callable[[int], None]) -> None:
        self._ended = ended

    def __enter__(self) -> None:
        self._begin = clock()

    def __exit__(self, *error: object) -> None:
        self._ended(self._begin)


class WatchedExchange(PendingExchange):
    """An exchange whose waits are recorded."""

    def __init__(self, pending: PendingExchange, recorder: Recorder, number: int) -> None:
        self._pending, self._recorder, self._number = pending, recorder, number

    def wait(self) -> None:
        begin = clock()
        self._pending.wait()
        self._recorder.waited(begin, self._number)

    def done(self) -> bool:
        return self._pending.done()
