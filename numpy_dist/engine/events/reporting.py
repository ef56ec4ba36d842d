"""Reports of floating-point events: what a rank has met, what all have agreed on, and when the user is told."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Protocol

from numpy_dist.engine.events import floating
from numpy_dist.engine.events.filters import Filters
from numpy_dist.engine.events.floating import Event

if TYPE_CHECKING:
    from numpy_dist.backends.base import Backend
    from numpy_dist.comm.base import Communicator

MOST_FILTERS = 512  # whose events may be still unreported: for more, the oldest that are left stand in


class RecordedProgram(Protocol):
    """The program of a rank: how many statements were recorded, and whether some are in execution."""

    @property
    def recorded(self) -> int: ...
    @property
    def is_executing(self) -> bool: ...


class ReportingRank(Protocol):
    """A rank as reports need it: what they read of the runtime, which is above them."""

    @property
    def size(self) -> int: ...
    @property
    def comm(self) -> Communicator: ...
    @property
    def backend(self) -> Backend: ...
    @property
    def program(self) -> RecordedProgram: ...


class ReportedTogether:
    """A context, to be nested at will, whose events are reported behind it.

    An error that the user's error state makes of an event then leaves the outputs of a call of several statements
    written, as NumPy's loops do. A call that has failed in another way raises no second error for its events.
    """

    __slots__ = ("_events", "_first", "depth")

    def __init__(self, events: EventReports) -> None:
        self._events = events
        self.depth = 0

    def __enter__(self) -> None:
        if not self.depth:
            self._first = self._events.next_serial
        self.depth += 1

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        self.depth -= 1
        if error is None:
            self._events.report_shared()
        elif not self.depth:
            self._events.forget_errors(since=self._first)


class EventReports:
    """The events of a rank that the user was not told of yet.

    Parameters
    ----------
    runtime : ReportingRank

    Attributes
    ----------
    met : set
        Those of this rank that the others do not know (they travel with the next collective).
    unreported : bool
        Whether ranks may have met events since they last agreed on them, in what they computed themselves.
    alike : set
        Events that every rank has met since then, where all of them compute the same.
    together : ReportedTogether
        The context of a call that computes and then writes an output.
    """

    def __init__(self, runtime: ReportingRank) -> None:
        self._runtime = runtime
        self.met: set[Event] = set()
        self.unreported = False
        self.alike: set[Event] = set()
        self.together = ReportedTogether(self)
        self._shared: list[Event] = []  # of all ranks, to be reported once the program has been executed
        self._call: tuple[int, set[Event]] = (-1, set())  # the last of several statements; what was told of it
        self._filters = Filters(0)
        self._numbered = {0: self._filters}

    @property
    def next_serial(self) -> int:
        """The serial of the statement that is recorded next."""
        return self._runtime.program.recorded

    def look(self) -> floating.Seen:
        """The error state here and now (see `floating.look`). To be called on every rank: it numbers the filters."""
        if not self._filters.in_force():
            number = self._filters.number + 1
            self._filters = self._numbered[number] = Filters(number)
            if len(self._numbered) > MOST_FILTERS:
                del self._numbered[next(iter(self._numbered))]
        return floating.look(self._filters)

    def error_state(self) -> floating.ErrorState:
        """The error state here and now (see `look`)."""
        return self.look()[4]

    def note(self, event: Event | None, alike: bool) -> None:
        """Keep an event until ranks agree on events; `alike` tells whether all of them meet it."""
        if event is not None:
            self.met.add(event)
            if alike:
                self.alike.add(event)

    def tell(self) -> None:
        """Agree on the events so far and report them; collective."""
        self._fence()
        if self._runtime.size == 1 and not self.met:
            self.unreported = False
            return
        mine = tuple(self.met)
        self.share(self._runtime.comm.allgather(mine) if self._runtime.size > 1 else [mine])

    def tell_before_value(self) -> None:
        """Report events, for a value goes to Python. Collective only if ranks may have met different ones."""
        self._fence()
        if self.unreported:
            self.tell()
        elif self.alike:
            self.met -= self.alike
            self._shared += self.alike
            self.alike.clear()
            self.report_shared()

    def _fence(self) -> None:
        memory = self._runtime.backend.memory
        if memory.late_events:
            memory.fence()

    def share(self, met: Sequence[Sequence[Event]]) -> None:
        """Report the events of all ranks, which a collective brought along: one sequence for each rank.

        While a program is executed they wait until it has been: reporting may raise.
        """
        self.met.clear()
        self.alike.clear()
        self.unreported = False
        self._shared += [event for part in met for event in part]
        if not self._runtime.program.is_executing:
            self.report_shared()

    def report_shared(self) -> None:
        """Report the events that all ranks have been told of, unless a call goes on that reports them when it ends."""
        if self._shared and not self.together.depth:
            events, self._shared = self._shared, []
            self.report(events)

    def forget_errors(self, since: int) -> None:
        """Raise nothing for the events of statements from a serial on."""
        self._shared = [event for event in self._shared if event[0] < since or event[3] != "raise"]

    def begin_call(self) -> int:
        """The serial of a call of which several statements follow, for `told_as`: each of its events is told once."""
        self._call = self.next_serial, set()
        return self.next_serial

    def report(self, events: Iterable[Event]) -> None:
        """Report events now, under the filters of their statements (see `floating.report`)."""
        serial, told = self._call
        events = [event for event in events if event not in told]
        told.update(event for event in events if event[0] == serial)
        oldest = next(iter(self._numbered.values()))
        floating.report(events, lambda number: self._numbered.get(number, oldest))
