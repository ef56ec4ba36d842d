"""The observer of a planned rank: it is told what a profile's recorder is told, and counts by the user's lines."""

from __future__ import annotations

import linecache
import math
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from numpy_dist.engine.events.sites import resolve
from numpy_dist.engine.explaining.forecast import touched
from numpy_dist.engine.memory.handle import is_handle, metadata
from numpy_dist.engine.memory.limits import Limits
from numpy_dist.engine.planning.actions import Combine, Donate, Fetch, RefreshHalo
from numpy_dist.frames import UserLine, user_frame
from numpy_dist.ir.statements import Statement
from numpy_dist.scaling.counted import LineCounts

if TYPE_CHECKING:
    from numpy_dist.comm.base import Message, PendingExchange
    from numpy_dist.engine.events.sites import CallSite
    from numpy_dist.engine.memory.storage import Storage
    from numpy_dist.engine.planning.group import GroupPlan
    from numpy_dist.engine.runtime import Runtime
    from numpy_dist.engine.scheduling.execution import Execution

MOST_FLOPS = 2e11  # of one product that is really computed here: some seconds to a minute
_PRODUCTS = ("matmul", "dot", "vdot", "inner", "vecdot", "matvec", "vecmat")
_MOST_KNOWN = 4096


class TooLargeToPlan(RuntimeError):
    """A function that is no loop would really run, on more than this machine has."""


class PlanObserver:
    """What one rank does, by line.

    Parameters
    ----------
    runtime : Runtime
        The rank's.

    Attributes
    ----------
    lines : dict of UserLine to LineCounts
    texts : dict of UserLine to str
    largest_exchange, largest_gather : int
        Most bytes of messages that were started together; of a gathered array.
    pool : AttributedPool or None
        Is told where an array takes over the memory of another one.
    """

    now = 0  # times do not matter

    def __init__(self, runtime: Runtime) -> None:
        self.lines: dict[UserLine, LineCounts] = {}
        self.texts: dict[UserLine, str] = {}
        self.largest_exchange = self.largest_gather = 0
        self.pool: Any = None
        self._runtime = runtime
        self._executing = False
        self._met = (-1, 0, 0)  # the present loop's number, and how many of its transfers and collectives were started
        self._collective: tuple[UserLine, int] = (UserLine("", 0), 0)  # its line, and bytes before it
        self._touched: dict[tuple[int, tuple[CallSite, ...]], tuple[Any, int]] = {}

    # -- lines --------------------------------------------------------------------------------------------------------

    def counts(self, line: UserLine) -> LineCounts:
        """The counts of a line."""
        found = self.lines.get(line)
        if found is None:
            found = self.lines[line] = LineCounts()
            self.text(line)
        return found

    def text(self, line: UserLine) -> str:
        """What a line says."""
        if line not in self.texts:
            self.texts[line] = linecache.getline(*line).strip()
        return self.texts[line]

    def here(self) -> UserLine:
        """The user's line that is being executed."""
        frame = user_frame(2)
        return UserLine(frame.f_code.co_filename, frame.f_lineno)

    def asking_line(self) -> UserLine | None:
        """The user's line that asks for a value; None where a loop's own work does."""
        return None if self._executing else self.here()

    @property
    def group(self) -> tuple[GroupPlan, Any, list[Statement | None], Sequence[Storage]] | None:
        """The loop that is being prepared or run, its plan, its statements, and storages by slot; None outside."""
        execution = self._runtime.execution
        if not self._executing or execution is None or execution.number not in execution.plans:
            return None
        group = execution.schedule.groups[execution.number]
        statements = [execution.statements[position] for position in group.positions]
        return group, execution.plans[execution.number], statements, execution.storages  # type: ignore[return-value]

    def line_of(self, statement: Statement | None) -> UserLine:
        """Where a statement was recorded."""
        if statement is None:
            return self.here()
        found = resolve(statement.site)
        return UserLine(found.filename, found.line)

    # -- loops --------------------------------------------------------------------------------------------------------

    def begin_loop(self) -> None:
        """As in `profiling.recorder`."""
        self._executing, self._met = True, (-1, 0, 0)

    def ran(self, execution: Execution, number: int) -> None:
        """As in `profiling.recorder`."""
        for done in range(execution.done, number):
            group, plan = execution.schedule.groups[done], execution.plans[done]
            statements = [execution.statements[position] for position in group.positions]
            line = self.line_of(statements[-1])
            self.counts(line).add(loops=1, loop_bytes=self._touched_bytes(group, plan, statements, execution))
            if self.pool is not None:
                for action in plan.of(Donate):
                    storage = execution.storages[action.slot]
                    self.pool.relabel(storage.memory, storage, self._writer(statements, storage) or line)
        self._executing = False

    def _touched_bytes(self, group: GroupPlan, plan: Any, statements: list[Statement], execution: Execution) -> int:
        sites = tuple([statement.site for statement in statements])
        known = self._touched.get((id(plan), sites))
        if known is None:
            if len(self._touched) >= _MOST_KNOWN:
                self._touched.clear()
            slots = {id(execution.storages[slot]): slot for slot in group.slots}
            stored = {slot: execution.storages[slot].wanted for slot in group.slots}
            reads, writes = touched(group, self._runtime.rank, statements, slots, stored)
            known = plan, sum(reads.values()) + sum(writes.values())
            self._touched[id(plan), sites] = known  # with the plan, so that its id stays its own
        return known[1]

    def _writer(self, statements: Sequence[Statement | None], storage: Storage) -> UserLine | None:
        """The line that writes an array in a loop; None where none does."""
        of = [s for s in statements if s is not None and any(out.storage is storage for out in s.outputs)]
        return self.line_of(of[0]) if of else None

    def writing_line(self, storage: Storage) -> UserLine | None:
        """The line that writes an array in the present loop; None where none does."""
        found = self.group
        return None if found is None else self._writer(found[2], storage)

    def found_schedule(self, begin: int, schedule: object) -> None:
        """As in `profiling.recorder`."""

    def planned(self, begin: int, statements: object) -> None:
        """As in `profiling.recorder`."""

    # -- communication ------------------------------------------------------------------------------------------------

    def collective_began(self, kind: str, root: int) -> None:
        """As in `profiling.recorder`."""
        counters = self._runtime.comm.counters
        self._collective = self._line_of_collective(), counters.bytes
        self.counts(self._collective[0]).add(collectives=1)

    def collective_ended(self) -> None:
        """As in `profiling.recorder`."""
        line, before = self._collective
        sent = self._runtime.comm.counters.bytes - before
        self.counts(line).add(collective_bytes=sent, bytes=sent)

    def started(
        self, pending: PendingExchange, sends: Sequence[Message], receives: Sequence[Message], tag: int
    ) -> PendingExchange:
        """As in `profiling.recorder`."""
        sent, received = (sum(array.nbytes for _, array, _ in messages) for messages in (sends, receives))
        counts = self.counts(self._line_of_messages())
        counts.add(messages=len(sends), bytes=sent, received_messages=len(receives), received_bytes=received)
        self.largest_exchange = max(self.largest_exchange, sent + received)
        return pending

    def _numbers(self, transfers: int, collectives: int) -> tuple[int, int]:
        """How many transfers and collectives of the present loop there were before this one."""
        execution = self._runtime.execution
        assert execution is not None
        _, before, collected = self._met if self._met[0] == execution.number else (-1, 0, 0)
        self._met = execution.number, before + transfers, collected + collectives
        return before, collected

    def _line_of_messages(self) -> UserLine:
        """The line of the statement that needs what is sent; the reading one, of halos and fetched operands."""
        found = self.group
        if found is None:
            return self.here()
        group, plan, statements, storages = found
        lines: list[UserLine] = []
        for action in plan.of(Fetch, RefreshHalo):
            if action.messages is not None and (action.messages.sends or action.messages.receives):
                storage = storages[action.slot]
                of = [s for s in statements if s is not None and any(ref.storage is storage for ref in s.reads())]
                lines.append(self.line_of(next(iter(of or statements), None)))
        for action in plan.of(Combine):
            if not action.everywhere:
                lines.append(self.line_of(statements[action.number]))
        number, _ = self._numbers(1, 0)
        return lines[min(number, len(lines) - 1)] if lines else self.here()

    def _line_of_collective(self) -> UserLine:
        """The line of the reduction whose parts are brought together."""
        found = self.group
        if found is None:
            return self.here()
        _, plan, statements, _ = found
        combined = [action for action in plan.of(Combine) if action.everywhere]
        _, number = self._numbers(0, 1)
        return self.line_of(statements[combined[number].number]) if number < len(combined) else self.here()

    def gathered(self, begin: int, nbytes: int, root: int | None) -> None:
        """As in `profiling.recorder`; counted where the communicator has several ranks."""
        elements = self._runtime.counters.gathers
        if self._runtime.size > 1 and elements > self._gathers:
            self.counts(self.here()).add(gathers=1, gathered_bytes=nbytes)
            self.largest_gather = max(self.largest_gather, nbytes)
        self._gathers = elements

    _gathers = 0

    def notice(self, *details: object) -> None:
        """As in `profiling.recorder`: what was gathered is counted by itself."""

    # -- functions that are no loops ----------------------------------------------------------------------------------

    def function(self, name: str) -> AbstractContextManager[None]:
        """As in `profiling.recorder`. Such functions really run, on what is in memory.

        Raises
        ------
        TooLargeToPlan
        """
        arguments = sys._getframe(1).f_locals.get("args", ())  # of the dispatcher
        given = [metadata(x) for x in arguments if is_handle(x)] if isinstance(arguments, tuple) else []
        line, size = self.here(), self._runtime.size
        nbytes = sum(array.nbytes for array in given) // size
        flops = product_flops(name, [array.shape for array in given]) // size
        room = Limits().room().available
        if nbytes > room or flops > MOST_FLOPS:
            much = f"{nbytes:,} bytes" if nbytes > room else f"{flops:.1e} operations"
            raise TooLargeToPlan(
                f"{line}: {name} is no loop: it would really run here, with {much} on rank {self._runtime.rank}. Plan "
                "with more ranks, or with a smaller problem on as many ranks"
            )
        self.counts(line).add(functions=1, function_bytes=nbytes, flops=flops)
        return nullcontext()


def product_flops(name: str, shapes: Sequence[tuple[int, ...]]) -> int:
    """Floating-point operations of a matrix product of arrays of these shapes; 0 for anything else."""
    if name.rpartition(".")[2] not in _PRODUCTS or len(shapes) < 2 or not (shapes[0] and shapes[1]):
        return 0
    left, right = shapes[:2]
    inner = left[-1] or 1
    return 2 * math.prod(left) * math.prod(right) // inner // (1 if len(right) < 3 else math.prod(right[:-2]))
