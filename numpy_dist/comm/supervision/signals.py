"""Postponement of signals: their handlers run where nothing is half done, and on several ranks at one place of all.

Python calls a signal's handler between any two of its steps, and the exception that it raises leaves the loop that is
being run, which may then have overwritten part of what it reads, or the ranks that wait for this one. With one rank
signals are handled between two groups of statements (`Postponed`). With several ranks each tells the others of its
signals in the next collective, when that has ended all ranks handle them (`AgreedSignals`).
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # what `signal` wraps in enumerations, at several times the cost
import _thread
import os
import signal
import struct
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from types import FrameType
from typing import Protocol

# Those by which programs are left; profilers, say, want theirs at once.
_NAMES = ("SIGINT", "SIGTERM", "SIGALRM", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGBREAK")
_NUMBERS = tuple(int(getattr(signal, name)) for name in _NAMES if hasattr(signal, name))
_TAG = 6  # of the control channel
_ANSWER = struct.Struct("<qqq")  # the number of the round, how far the rank has come, its signal
ONE_SIGTERM = 10.0  # seconds within which several of a scheduler's are one: Slurm's own, and those handed on by srun
PATIENCE = 2.0  # seconds in which ranks are to agree on a signal, or it is handled by those that have met it

Handler = Callable[[int, FrameType | None], object]


class Postponed:
    """A context manager in which signals that have handlers in Python are noted, to be handled by `deliver`.

    It does nothing where handlers do not run: in other threads than the main one.

    Attributes
    ----------
    noted : list of (int, frame)
        Signals that came and were not handled yet.
    """

    def __init__(self) -> None:
        self.noted: list[tuple[int, FrameType | None]] = []
        self._handlers: dict[int, Handler] = {}
        self._active = False
        self._note = self._noting  # one object, to be recognised

    def _noting(self, number: int, frame: FrameType | None) -> None:
        if self._active:
            self.noted.append((number, frame))
            return
        # The handler of another signal has raised as the handlers were given back.
        _signal.signal(number, self._handlers[number])
        self._handlers[number](number, frame)

    def deliver(self) -> None:
        """Call the handlers of signals that came; what they raise is raised here."""
        while self.noted:
            number, frame = self.noted.pop(0)
            self._handlers[number](number, frame)

    def __enter__(self) -> Postponed:
        if threading.get_ident() == threading.main_thread().ident:
            found = {number: _signal.getsignal(number) for number in _NUMBERS}
            self._handlers = {number: handler for number, handler in found.items() if callable(handler)}
            self._active = True
            try:
                for number in self._handlers:
                    _signal.signal(number, self._note)
            except BaseException:
                self.restore()
                raise
        return self

    def __exit__(self, *error: object) -> None:
        self.restore()
        self.deliver()

    def restore(self) -> None:
        """Give the handlers back; signals that were noted are not handled."""
        self._active = False
        for number in reversed(self._handlers):
            if _signal.getsignal(number) is self._note:
                _signal.signal(number, self._handlers[number])


class Channel(Protocol):
    """How ranks tell each other of signals, besides collectives."""

    rank: int
    size: int

    def post(self, rank: int, tag: int, message: bytes) -> None:
        """Send a message."""

    def poll(self, tag: int) -> tuple[int, bytes] | None:
        """A message that has come, and from whom."""

    def wait_for_all(self, where: str, ranks: Collection[int]) -> None:
        """Wait until all ranks are in a collection, which `AgreedSignals.look` fills."""


class AgreedSignals:
    """The signals of the ranks of a job: what one rank meets within this library is handled by all, at the same place.

    A signal that comes while code of this library runs, or what that has called, is noted. There are two places where
    all ranks handle it. The next collective tells of it, and the outermost block of this context manager ends with the
    handlers that each rank has for what was told. If a program is executed before that, the rank asks the others in a
    *round* how many programs each has executed; all handle the signal when they have executed as many as the foremost.
    A signal that comes to this rank when it has been handled as another rank's, and before the next program, is the
    same one: a Ctrl-C reaches the ranks one after the other. A signal on which ranks do not agree for `PATIENCE`
    seconds is handled by the rank that has met it; the others learn of that as they do of any error. No handler
    interrupts the end of a program (`close`).

    Attributes
    ----------
    patience_outside : float
        For so many seconds a signal that comes in the user's own code waits for a place of all ranks, too; 0: it is
        handled at once.
    """

    def __init__(self) -> None:
        self.patience_outside = 0.0
        self._channel: Channel | None = None
        self._depth = 0
        self._noted: dict[int, tuple[float, FrameType | None]] = {}  # by number: when, and what was interrupted
        self._late: dict[int, float] = {}  # handled as another rank's: until when this rank's own is the same one
        self._agreed: list[int] = []
        self._pid = os.getpid()
        self._closed = False
        self._executed = 0
        self._handled = False  # in a collective, since the last execution
        self._round = 0
        self._told: defaultdict[int, dict[int, tuple[int, int]]] = defaultdict(dict)  # by round and rank: place, signal

    def __enter__(self) -> AgreedSignals:
        self._depth += 1
        return self

    def __exit__(self, *error: object) -> None:
        self._depth -= 1
        if not self._depth and self._agreed and error[0] is None:  # else the next block, since an error comes first
            self._handled = True
            while self._agreed:
                self._handle(self._agreed.pop(0))

    def connect(self, channel: Channel) -> None:
        """Stand before the handlers of this process, from here on."""
        self._channel = channel
        self.install()

    def disconnect(self) -> None:
        """Leave signals to their handlers again: the ranks cannot tell each other any more."""
        self._channel = None

    def close(self) -> None:
        """Handle no signals any more: the program has ended, and the ranks tell each other how."""
        self._closed = True
        self._noted.clear()

    def install(self) -> None:
        """Stand before the handlers that there are now, in the main thread, if there are ranks to agree with."""
        if self._channel is None or threading.get_ident() != threading.main_thread().ident:
            return
        for number in _NUMBERS:
            handler = _signal.getsignal(number)
            if isinstance(handler, _Noting):
                if handler.signals is self:
                    continue
                handler = handler.handler  # of a communicator that this one has replaced
            if callable(handler):
                _signal.signal(number, _Noting(self, handler))

    def note(self, number: int, frame: FrameType | None) -> bool:
        """Whether a signal that has come is not to be handled now: it waits for the other ranks, or comes too late."""
        if self._channel is None or os.getpid() != self._pid:
            return False
        if time.monotonic() < self._late.pop(number, 0.0):
            return True
        patience = PATIENCE if self._depth or _is_within(frame) else self.patience_outside
        if not patience:
            return False
        if self._closed:
            return True
        now = time.monotonic()
        since, _ = self._noted.setdefault(number, (now, frame))
        if now - since >= patience:
            del self._noted[number]
            return False
        if now == since:
            _thread.start_new_thread(self._remind, (number, since, patience))
        return True

    def _remind(self, number: int, since: float, patience: float) -> None:
        """Send a signal to the main thread again, if ranks have not agreed on it."""
        for seconds in (patience, PATIENCE - patience):  # where it came in the user's code, the rank may wait by now
            time.sleep(seconds)
            if self._noted.get(number, (0.0, None))[0] == since and isinstance(_signal.getsignal(number), _Noting):
                signal.pthread_kill(threading.main_thread().ident or 0, number)

    def forget(self, round: int) -> None:
        """Leave out the signals that were not handled yet, on all ranks, and go on with a round that is new to all."""
        self._noted.clear()
        self._late.clear()
        self._agreed.clear()
        self._told.clear()
        self._round = round

    # -- in collectives ----------------------------------------------------------------------------------------------

    def number(self) -> int:
        """The signal of which the other ranks are to be told in a collective, or 0."""
        if not self._noted:
            return 0
        told = self._told[self._round].values()
        return next((number for number in self._noted if all(number != other for _, other in told)), 0)

    def tell(self, numbers: Sequence[int]) -> None:
        """Take note of what all ranks have told in a collective."""
        self._agreed += [number for number in dict.fromkeys(numbers) if number and number not in self._agreed]

    # -- in rounds ---------------------------------------------------------------------------------------------------

    def executing(self) -> None:
        """A program is about to be executed: handle the signals on which all ranks agree here."""
        channel = self._channel
        if channel is None:
            return
        if self._late:
            self._late.clear()
        self.install()
        self.look()
        place = self._executed + 1
        told = self._told[self._round]
        if told or self._noted:
            self._join(place)
            channel.wait_for_all("an agreement on signals", told)
            if place == max(place for place, _ in told.values()):
                del self._told[self._round]
                self._round += 1
                if not self._handled:
                    for number in dict.fromkeys(told[rank][1] for rank in sorted(told)):
                        if number:
                            self._handle(number)
        self._executed, self._handled = place, False

    def look(self) -> None:
        """Take in what other ranks ask, and answer; not collective."""
        channel = self._channel
        if channel is None:
            return
        while (message := channel.poll(_TAG)) is not None:
            source, content = message
            number, place, signal_number = _ANSWER.unpack(content)
            self._told[number][source] = place, signal_number
        if self._told[self._round]:
            self._join(self._executed + 1)

    def _join(self, place: int) -> None:
        """Tell all ranks up to where this one cannot handle signals any more, and which one it has met."""
        channel, told = self._channel, self._told[self._round]
        if channel is None or channel.rank in told:
            return
        told[channel.rank] = place, self.number()
        answer = _ANSWER.pack(self._round, *told[channel.rank])
        for rank in range(channel.size):
            if rank != channel.rank:
                channel.post(rank, _TAG, answer)

    def _handle(self, number: int) -> None:
        """Call this rank's handler of a signal; where it has none, of another rank's signal, that is an interrupt."""
        if number not in self._noted:
            self._late[number] = time.monotonic() + PATIENCE
        _, frame = self._noted.pop(number, (0.0, None))
        handler = _signal.getsignal(number)
        if isinstance(handler, _Noting):
            handler = handler.handler
        if callable(handler):
            handler(number, frame)
        elif handler != signal.SIG_IGN:
            raise KeyboardInterrupt(f"{signal.Signals(number).name} on another rank")


class _Noting:
    """A handler of a signal that stands before another one.

    Attributes
    ----------
    signals : AgreedSignals
    handler : callable
    """

    def __init__(self, signals: AgreedSignals, handler: Handler) -> None:
        self.signals, self.handler = signals, handler

    def __call__(self, number: int, frame: FrameType | None) -> object:
        if not self.signals.note(number, frame):
            return self.handler(number, frame)
        return None


# What runs programs.
_OUTSIDE = (
    "numpy_dist.cli",
    "numpy_dist.conformance",
    "numpy_dist.notebook",
    "numpy_dist.spmd_plugin",
    "numpy_dist.spmd_testing",
)


def _is_within(frame: FrameType | None) -> bool:
    """Whether code of this library is being executed, or what it has called: not the program that it has launched."""
    while frame is not None and "_launcher_frame" not in frame.f_code.co_varnames:  # as in `tracebacks.program_part`
        name = str(frame.f_globals.get("__name__", ""))
        if name.startswith("numpy_dist.") and not name.startswith(_OUTSIDE):
            return True
        frame = frame.f_back
    return False
