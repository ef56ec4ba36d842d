"""How a rank ends: the other ranks learn of it, one traceback is printed, and the job ends.

A rank that ends says so to all others (`EndNotice`) and then stays, driving messages on, until all ranks have come to
their end; only then MPI is finalised. A rank that *fails* (an uncaught exception, KeyboardInterrupt, an exit with a
code) stays for a short time only: then it aborts the job. The first failed rank claims the right to print; of ranks
that claim at the same time (an error raised on every rank), the lowest one prints.
"""

from __future__ import annotations

import atexit
import dis
import sys
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from types import FrameType, TracebackType
from typing import Any, Protocol

__all__ = ["EndNotice", "ExitGuard", "exit_code"]

# A normal end is announced only if the others have not ended too within this time: usually all end together.
_QUIET_SECONDS = 0.05
# How long a failed rank waits for other claims to print, and for the other ranks to leave before it aborts the job.
_CLAIM_SECONDS = 0.2
_LEAVE_SECONDS = 2.0
_POLL_SECONDS = 0.001
_REASON_LENGTH = 300


@dataclass(frozen=True)
class EndNotice:
    """What a rank that ends tells one other rank.

    `collectives` is the number of collective operations it took part in; `sent` and `posted` are, by tag, the numbers
    of messages it has started to that rank and of receives it has started from it: what goes beyond will never come.
    """

    rank: int
    code: int
    reason: str
    failed: bool
    claims: bool
    collectives: int
    sent: dict[int, int] = field(default_factory=dict)
    posted: dict[int, int] = field(default_factory=dict)


class _Ending(Protocol):
    """What `ExitGuard` needs of a communicator."""

    rank: int
    ended: dict[int, EndNotice]

    def look_for_notices(self) -> None: ...
    def announce(self, code: int, reason: str, failed: bool, claims: bool) -> None: ...
    def all_have_ended(self) -> bool: ...
    def can_communicate(self) -> bool: ...
    def abort(self, code: int) -> None: ...


def exit_code(value: object) -> int:
    """The process's exit code for the argument of `sys.exit`."""
    if value is None:
        return 0
    return value & 0xFF if isinstance(value, int) else 1


class ExitGuard:
    """Watches how the main program of this rank ends."""

    def __init__(self, communicator: _Ending) -> None:
        self._communicator = communicator
        self._announced = False
        self._claims = False
        self._over = False
        self._main_frame: FrameType | None = None
        self._exit_argument: object = None
        self._exit_stack: str | None = None
        self._previous_hook: Callable[..., Any] = sys.__excepthook__
        self._previous_exit: Callable[..., Any] = sys.exit

    def install(self) -> None:
        """Hook `sys.excepthook`, `sys.exit` and `atexit` of this process."""
        self._previous_hook = sys.excepthook
        self._previous_exit = sys.exit
        sys.excepthook = self._hook
        sys.exit = self._exit  # type: ignore[assignment]
        atexit.register(self._at_exit)
        if threading.current_thread() is threading.main_thread():
            frame: FrameType | None = sys._getframe()
            while frame is not None:
                self._main_frame, frame = frame, frame.f_back

    # -- the three ways in which a program ends ----------------------------------------------------------------------

    def _hook(self, kind: type[BaseException], value: BaseException, trace: TracebackType | None) -> None:
        # Programs also call the hook to show an exception, and interactive ones go on after it; only the interpreter
        # itself calls it from no frame.
        if sys._getframe().f_back is not None or hasattr(sys, "ps1") or sys.flags.interactive:
            self._previous_hook(kind, value, trace)
            return
        code = 130 if issubclass(kind, KeyboardInterrupt) else 1
        self.end_failed(code, value, lambda: self._print_exception(kind, value, trace))

    def _exit(self, status: object = None, /) -> None:
        # SystemExit passes by the hook, and is gone when atexit runs: note here who asked for it.
        if threading.current_thread() is threading.main_thread():
            self._exit_argument = status
            self._exit_stack = "".join(traceback.format_stack(sys._getframe(1))) + f"SystemExit: {status}\n"
        self._previous_exit(status)

    def _at_exit(self) -> None:
        if self._over or not self._communicator.can_communicate():
            return
        code = exit_code(self._exit_argument)
        if self._exit_stack is None or not self._left_by_exception() or code == 0:
            self.end_normally()
            return
        stack = "Traceback (most recent call last):\n" + self._exit_stack
        self._end_with_code(code, f"SystemExit: {self._exit_argument}", lambda: self._write(stack))

    def _left_by_exception(self) -> bool:
        """Whether the main program did not run to its end (so that a noted `sys.exit` was not caught)."""
        frame = self._main_frame
        if frame is None or frame.f_lasti < 0:
            return True
        return not dis.opname[frame.f_code.co_code[frame.f_lasti]].startswith("RETURN")

    # -- what is done about it ---------------------------------------------------------------------------------------

    def end_normally(self) -> None:
        """Stay until all ranks have come to their end."""
        if self._over:
            return
        self._over = True
        if not self._stay(_QUIET_SECONDS):
            if not self._announced:
                self._announce(0, "it ran to its end", failed=False)
            self._stay(None)

    def end_failed(self, code: int, error: BaseException, report: Callable[[], None]) -> None:
        """Announce the failure, `report` it if this rank is the one to do so, and end the job."""
        if self._over or not self._communicator.can_communicate():
            report()
            return
        self._over = True
        self.announce_failure(error, code)
        self._stay(_CLAIM_SECONDS)
        if self._is_first():
            report()
        self._leave(code)

    def _end_with_code(self, code: int, reason: str, report: Callable[[], None]) -> None:
        """An exit with a code: all ranks may do so together; it is reported only if others do something else."""
        self._over = True
        self._announce(code, reason, failed=True)
        alone = not self._stay(_LEAVE_SECONDS, until=self._others_failed)
        others_failed = self._others_failed()
        if (alone or others_failed) and self._is_first():
            report()
        self._leave(code)

    def announce_failure(self, error: BaseException, code: int = 1) -> None:
        """Tell the others; the program may still go on for a while."""
        if not self._announced and self._communicator.can_communicate():
            reason = "".join(traceback.format_exception_only(error)).strip()
            self._announce(code, reason, failed=True)

    def _announce(self, code: int, reason: str, failed: bool) -> None:
        self._announced = True
        self._communicator.look_for_notices()
        self._claims = failed and not any(notice.claims for notice in self._communicator.ended.values())
        self._communicator.announce(code, reason[:_REASON_LENGTH], failed, self._claims)

    def _is_first(self) -> bool:
        claims = [notice.rank for notice in self._communicator.ended.values() if notice.claims]
        return self._claims and all(self._communicator.rank < rank for rank in claims)

    def _others_failed(self) -> bool:
        return any(notice.failed and not notice.claims for notice in self._communicator.ended.values())

    def _stay(self, seconds: float | None, until: Callable[[], bool] = lambda: False) -> bool:
        """Drive messages on until all ranks have ended (True) or, at most, for so long (False)."""
        deadline = None if seconds is None else time.monotonic() + seconds
        while not self._communicator.all_have_ended():
            if until() or (deadline is not None and time.monotonic() > deadline):
                return False
            time.sleep(_POLL_SECONDS)
        return True

    def _leave(self, code: int) -> None:
        if not self._stay(_LEAVE_SECONDS):
            self._communicator.abort(code or 1)

    # -- printing ----------------------------------------------------------------------------------------------------

    def _print_exception(self, kind: type[BaseException], value: BaseException, trace: TracebackType | None) -> None:
        if self._previous_hook is sys.__excepthook__:
            self._write("".join(traceback.format_exception(kind, value, trace)))
            return
        self._write("")
        self._previous_hook(kind, value, trace)

    def print_stack(self, why: str) -> None:
        """Print where this rank is."""
        self._write(f"{why}\n" + "".join(traceback.format_stack(sys._getframe(1))))

    def _write(self, text: str) -> None:
        # One write, so that the lines of several ranks do not mix.
        sys.stdout.flush()
        sys.stderr.write(f"[rank {self._communicator.rank}] {text}")
        sys.stderr.flush()
