"""How a rank ends: the other ranks learn of it, one traceback is printed, and the job ends.

A rank that ends says so to all others (`EndNotice`) and then stays, driving messages on, until all ranks have come to
their end; only then MPI is finalised. A rank that *fails* (an uncaught exception, KeyboardInterrupt, an exit with a
code) stays for a short time only: then it aborts the job. The first failed rank claims the right to print; of ranks
that claim at the same time (an error raised on every rank), the lowest one prints.
"""

from __future__ import annotations

import atexit
import dis
import mmap
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import takewhile
from types import FrameType, TracebackType
from typing import NoReturn, Protocol

from numpy_dist.comm import launchers
from numpy_dist.comm.divergence.positions import caller_line
from numpy_dist.comm.divergence.ranks_in_words import ranks_in_words
from numpy_dist.comm.supervision import system_exit
from numpy_dist.comm.supervision.last_resort import LastResort
from numpy_dist.comm.supervision.signals import AgreedSignals
from numpy_dist.comm.supervision.tracebacks import program_part, shorten, show
from numpy_dist.errors import LauncherError, RankError

__all__ = ["EndNotice", "ExitGuard", "exit_code"]

# A normal end is announced only if the others have not ended too within this time: usually all end together.
_QUIET_SECONDS = 0.05
# How long a failed rank waits for claims of lower ranks to print, and for the others to leave before it aborts the job.
_CLAIM_SECONDS = 0.5
_LEAVE_SECONDS = 2.0
# A machine on which a look at the others takes longer than this is busy, and they get more time: so many times as much.
_QUICK_LOOK_SECONDS = 0.002
_MOST_TIMES = 3
# How long a rank that fails before it has ever communicated waits for the others to start MPI.
_START_SECONDS = 4.0
_POLL_SECONDS = 0.001
# Addresses that are given back when a rank fails: where its memory is used up, MPI needs some for the last messages.
_RESERVE_BYTES = 16 << 20
_REASON_LENGTH = 300
_INTERRUPTED = 130
_WAITED = "waited for rank "
_HEADER = "Traceback (most recent call last):"


@dataclass(frozen=True)
class EndNotice:
    """What a rank that ends tells one other rank.

    A rank has `failed` if it ends by an exception or, then `exits` is set too, by SystemExit with a code.
    `collectives` is the number of collective operations it took part in; `sent` and `posted` are, by tag, the numbers
    of messages it has started to that rank and of receives it has started from it: what goes beyond will never come.
    `operations` are its latest ones, packed (`comm.journal.packed`), if it has not failed; `decides` is the part of its
    fingerprint by which it decided what to communicate. `standing` is where a rank stands that may go on after its
    failure, if all ranks have failed at the same place; `started` are then its numbers of messages to and from all
    ranks, by rank and tag. `marks` are those of the messages that it sent last to that rank, by their ordinals.
    """

    rank: int
    code: int
    reason: str
    failed: bool
    exits: bool
    claims: bool
    collectives: int
    sent: dict[int, int] = field(default_factory=dict)
    posted: dict[int, int] = field(default_factory=dict)
    operations: bytes = b""
    decides: dict[str, str] = field(default_factory=dict)
    standing: tuple[int, ...] | None = None
    started: tuple[dict[tuple[int, int], int], dict[tuple[int, int], int]] = ({}, {})
    marks: dict[int, int] = field(default_factory=dict)

    @property
    def follows(self) -> bool:
        """Whether the rank has failed only because it waited for another one."""
        return self.reason.startswith(_WAITED)


class Ending(Protocol):
    """What `ExitGuard` needs of a communicator."""

    rank: int
    size: int
    ended: dict[int, EndNotice]
    signals: AgreedSignals

    def look_for_notices(self) -> None: ...
    def announce(self, code: int, reason: str, failed: bool, exits: bool, claims: bool) -> None: ...
    def all_have_ended(self) -> bool: ...
    def can_communicate(self) -> bool: ...
    def close(self) -> None: ...
    def abort(self, code: int) -> None: ...


def others_text(rank: int, size: int, mine: EndNotice | None, notices: dict[int, EndNotice], all_ended: bool) -> str:
    """What the other ranks did when this one failed, a line for each thing that they did.

    Parameters
    ----------
    rank, size : int
        This rank, and how many there are.
    mine : EndNotice or None
        What this rank has told the others.
    notices : dict of int to EndNotice
        What others have told, by rank.
    all_ended : bool
        Whether all have come to their end; those that told nothing then ran to it.
    """
    by_what: dict[str, list[int]] = {}
    for other in range(size):
        notice = notices.get(other)
        if other == rank:
            continue
        if notice is None:
            what = "ran to its end" if all_ended else "did not answer: it computes, or waits outside of numpy_dist"
        elif mine is not None and notice.failed and notice.reason == mine.reason:
            what = "failed in the same way"
        else:
            what = notice.reason.removeprefix("it ") if not notice.failed or notice.follows else notice.reason
        by_what.setdefault(what, []).append(other)
    lines = [f"  rank {ranks_in_words(ranks)}: {what}\n" for what, ranks in by_what.items()]
    return "The other ranks meanwhile:\n" + "".join(lines) if lines else ""


def _chain(frame: FrameType | None) -> Iterator[FrameType]:
    """A frame and its callers, innermost first."""
    while frame is not None:
        yield frame
        frame = frame.f_back


def _stack_text(frame: FrameType | None, last: str) -> str:
    """The stack down to `frame`, without a launcher's frames, as a traceback with this last line."""
    frames = list(takewhile(lambda outer: "_launcher_frame" not in outer.f_locals, _chain(frame)))
    stack = traceback.StackSummary.extract((frame, frame.f_lineno) for frame in reversed(frames)).format()
    return f"{_HEADER}\n{''.join(stack)}{last}\n"


def exit_code(value: object) -> int:
    """The process's exit code for the argument of `sys.exit`."""
    if value is None:
        return 0
    return value & 0xFF if isinstance(value, int) else 1


class ExitGuard:
    """Watches how the main program of this rank ends.

    Parameters
    ----------
    join : callable
        Called where the program ends before it has ever communicated: makes the communicator, as the other ranks may
        wait for this one to do so; None if there is none to be had.
    """

    def __init__(self, join: Callable[[], Ending | None] = lambda: None) -> None:
        self._join = join
        self._communicator: Ending | None = None
        self._pid = os.getpid()
        self._installed = False
        self._announced = False
        self._reserve: mmap.mmap | None = None
        self._told: EndNotice | None = None  # by this rank
        self._failure_text = ""  # of the failure that the others were told of
        self._claims = False
        self._over = False
        self.at_last: Callable[[], None] = lambda: None  # called when nothing is left to be done
        # Called by a forked child with the number of this process, which has failed and which it is about to kill.
        self.at_kill: Callable[[int], None] = lambda pid: None
        self._main_frame: FrameType | None = None
        self._exit_argument: object = None
        self._exit_stack: str | None = None
        self._exit_frames: set[int] = set()
        self._previous_hook: Callable[..., object] = sys.__excepthook__
        self._previous_exit: Callable[..., object] = sys.exit
        self._previous_os_exit: Callable[[int], NoReturn] = os._exit

    def install(self) -> None:
        """Hook `sys.excepthook`, `atexit` and the ways to exit of this process, once."""
        if self._installed:
            return
        self._installed = True
        self._previous_hook = sys.__excepthook__ if sys.excepthook is show else sys.excepthook
        self._previous_exit = sys.exit
        sys.excepthook = self._hook
        sys.exit = self._exit  # type: ignore[assignment]
        self._previous_os_exit = os._exit
        os._exit = self._os_exit
        atexit.register(self._at_exit)
        if threading.current_thread() is threading.main_thread():
            *_, self._main_frame = _chain(sys._getframe())
            system_exit.watch(self._main_frame.f_code, self.note_exit, self._made)

    def connect(self, communicator: Ending) -> None:
        """From now on, this is the communicator of the program."""
        self._communicator = communicator
        self._reserve = self._reserve or mmap.mmap(-1, _RESERVE_BYTES)
        self.withdraw()

    def withdraw(self) -> None:
        """Take a failure back that was announced: all ranks go on."""
        self._announced = self._claims = False
        self._told, self._failure_text = None, ""

    # -- the ways in which a program ends ----------------------------------------------------------------------------

    def _hook(self, kind: type[BaseException], value: BaseException, trace: TracebackType | None) -> None:
        # Programs also call the hook to show an exception, and interactive ones go on after it; only the interpreter
        # itself calls it from no frame.
        if sys._getframe().f_back is not None or hasattr(sys, "ps1") or sys.flags.interactive:
            self._previous_hook(kind, value, trace)
            return
        if self._communicator is not None and os.getpid() == self._pid:
            self._communicator.signals.close()
        code = _INTERRUPTED if issubclass(kind, KeyboardInterrupt) else self._code_of(value)
        trace = program_part(trace)
        value = value.with_traceback(trace)
        left_out = ""
        if self._previous_hook is sys.__excepthook__:  # a hook of the user's gets all
            left_out = shorten(value)
            trace = value.__traceback__
        text = "".join(traceback.format_exception(kind, value, trace)) + left_out
        self._end_failed(code, value, text, lambda: self._print_exception(kind, value, trace, left_out))

    def _exit(self, status: object = None, /) -> None:
        # SystemExit passes by the hook, and is gone when atexit runs: note here who asked for it.
        self._note(status, sys._getframe(1))
        self._previous_exit(status)

    def _note(self, status: object, frame: FrameType) -> None:
        if threading.current_thread() is threading.main_thread():
            self._exit_argument = status
            self._exit_stack = _stack_text(frame, f"SystemExit: {status}")
            self._exit_frames = {id(outer) for outer in _chain(frame)}

    def _made(self, status: object, frame: FrameType) -> None:
        """A SystemExit was made. That of `sys.exit` is made where it is caught, and noted before."""
        if status is not self._exit_argument or id(frame) not in self._exit_frames:
            self._note(status, frame)

    def _os_exit(self, status: int) -> NoReturn:
        # MPI's launcher would kill the others without a word, and take a status of 0 for the job's.
        communicator = self._communicator
        in_main = threading.current_thread() is threading.main_thread()
        if in_main and not self._over and os.getpid() == self._pid and communicator is not None:
            text = f"os._exit({status})"
            self._end_with_code(status, text, _stack_text(sys._getframe(1), text), always_abort=True)
        self.at_last()
        self._previous_os_exit(status)

    def note_exit(self, error: SystemExit) -> None:
        """A SystemExit is about to leave the main program (for those that see it pass, as launchers do)."""
        self._exit_argument = error.code
        frames = traceback.extract_tb(program_part(error.__traceback__))
        if frames and frames[-1].filename == __file__:  # `_exit`, in place of `sys.exit`
            frames.pop()
        self._exit_stack = f"{_HEADER}\n{''.join(frames.format())}SystemExit: {error.code}\n"
        self._main_frame = None

    def finalizing(self) -> None:
        """The program finalises MPI, and may go on without it: stay until all ranks do so, or come to their end."""
        handler = signal.getsignal(signal.SIGINT)
        if not self._over:
            self._end_normally("it has called MPI.Finalize()")
        if self._communicator is not None:
            self._communicator.close()
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, handler)

    def _at_exit(self) -> None:
        if not self._over:
            self._come_to_end()
        self.at_last()

    def _come_to_end(self) -> None:
        left = self._left_by_exception()
        code = exit_code(self._exit_argument) if left else 0
        if os.getpid() != self._pid:
            self._end_child(code if not left or self._exit_stack is not None else 1)
            return
        uncaught = getattr(sys, "last_value", None)
        if left and self._exit_stack is not None and code:
            self._end_with_code(code, f"SystemExit: {self._exit_argument}", self._exit_stack)
        elif left and isinstance(uncaught, BaseException) and not hasattr(sys, "ps1"):
            # Another hook than ours has shown it.
            self._end_failed(1, uncaught, "", lambda: None)
        else:
            self._end_normally("it left by SystemExit" if left else "it ran to its end")

    def _end_child(self, code: int) -> None:
        """A forked child must not finalise its parent's MPI, which Python would do next."""
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)

    def _left_by_exception(self) -> bool:
        """Whether the main program did not run to its end (so that a noted `sys.exit` was not caught)."""
        frame = self._main_frame
        if frame is None or frame.f_lasti < 0:
            return self._exit_stack is not None
        return not dis.opname[frame.f_code.co_code[frame.f_lasti]].startswith("RETURN")

    # -- what is done about it ---------------------------------------------------------------------------------------

    def _end_normally(self, reason: str) -> None:
        """Stay until all ranks have come to their end."""
        self._over = True
        if not self._connected(None):
            return
        if self._failure_text:
            # The others were told, and may have ended without a word: this rank was to report it.
            self._stay(_CLAIM_SECONDS, until=self._lower_have_told)
            first = self._is_first()
            if first:
                self.write(f"{self._failure_text}It was caught, but the other ranks could not go on without it.\n")
            if not self._leave(first):
                self._abort(1)
            return
        if not self._stay(_QUIET_SECONDS):
            self._announce(0, reason, failed=False)
            self._stay(None)

    def _end_failed(self, code: int, error: BaseException, text: str, report: Callable[[], None]) -> None:
        """Announce the failure, `report` it if this rank is the one to do so, and end the job."""
        if self._over or os.getpid() != self._pid or not self._connected(text):
            if isinstance(error, LauncherError) and self._told_rank() not in ("0", "?"):
                # The same on every rank, and no way to agree on who reports it.
                self.write("LauncherError, as on rank 0\n")
            else:
                report()
            return
        self._over = True
        self.announce_failure(error, code)
        self._stay(_CLAIM_SECONDS, until=self._lower_have_told)
        first = self._is_first()
        if first:
            report()
        if not self._leave(first):
            self._abort(code)
        if code != 1:
            # Python's own would be 1, or, after a KeyboardInterrupt, the signal, which launchers take for a crash.
            raise SystemExit(code)

    def _leave(self, first: bool, seconds: float = _LEAVE_SECONDS) -> bool:
        """Wait for the others for a short time; the rank that reports tells what they did. Whether all have ended."""
        # The others leave it to the one that reports to abort the job, unless that takes much too long.
        ended = self._stay(seconds if first else seconds + _MOST_TIMES * _LEAVE_SECONDS)
        if first and self._communicator is not None:
            communicator = self._communicator
            self.write(others_text(communicator.rank, communicator.size, self._told, communicator.ended, ended))
        return ended

    def _end_with_code(self, code: int, reason: str, stack: str, always_abort: bool = False) -> None:
        """An exit with a code: all ranks may do so together; it is reported only if others do something else."""
        self._over = True
        if not self._connected(stack):
            return
        self._announce(code, reason, failed=True, exits=True)
        together = self._stay(_LEAVE_SECONDS, until=self._others_followed)
        if together and not self._others_followed():
            return
        first = self._is_first()
        if first:
            self.write(stack)
        # The others had their time, unless it was cut short by one that failed as it waited for this rank.
        ended = self._leave(first, _LEAVE_SECONDS if self._others_followed() else 0)
        if always_abort or not ended:
            self._abort(code)

    def _code_of(self, error: BaseException) -> int:
        """The exit code of a rank that fails: that of the rank that it waited for, as launchers mix those of all."""
        if not isinstance(error, RankError) or self._communicator is None:
            return 1
        notice = self._communicator.ended.get(-1 if error.rank is None else error.rank)
        return (notice.code if notice is not None and notice.failed else 0) or 1

    def announce_failure(self, error: BaseException, code: int = 1) -> None:
        """Tell the others; the program may still go on for a while."""
        if self._reserve is not None:
            self._reserve.close()
            self._reserve = None
        reason = "".join(traceback.format_exception_only(error)).strip()
        if not self._announced:
            text = "".join(traceback.format_exception(error))
            self._failure_text = f"{text}It happened in a call from {caller_line()}.\n"
        if isinstance(error, RankError) and error.where:
            reason = f"{_WAITED}{error.rank} in {error.where}"
        self._announce(code, reason, failed=True)

    def _connected(self, text: str | None) -> bool:
        """Whether the others can be told; a failed rank (with a text) tries for a limited time only."""
        if self._communicator is None:
            resort = LastResort.none()
            if text is not None:
                resort = LastResort(_START_SECONDS, self._prefixed(text), self.at_kill)
            with resort:
                self._communicator = self._join()
        return self._communicator is not None and self._communicator.can_communicate()

    def _announce(self, code: int, reason: str, failed: bool, exits: bool = False) -> None:
        communicator = self._communicator
        if self._announced or communicator is None or not communicator.can_communicate():
            return
        self._announced = True
        communicator.look_for_notices()
        self._claims = failed and not any(notice.claims for notice in communicator.ended.values())
        reason = reason[:_REASON_LENGTH]
        self._told = EndNotice(communicator.rank, code, reason, failed, exits, self._claims, 0)
        communicator.announce(code, reason, failed, exits, self._claims)

    def _notices(self) -> list[EndNotice]:
        return [] if self._communicator is None else list(self._communicator.ended.values())

    def _is_first(self) -> bool:
        return self._claims and all(self._rank() < notice.rank for notice in self._notices() if notice.claims)

    def _lower_have_told(self) -> bool:
        """Whether all lower ranks have told how they end, so that no other claim will take precedence."""
        return len([notice for notice in self._notices() if notice.rank < self._rank()]) == self._rank()

    def _others_followed(self) -> bool:
        """Whether another rank has raised, perhaps because this one has exited."""
        return any(notice.failed and not notice.exits for notice in self._notices())

    def _stay(self, seconds: float | None, until: Callable[[], bool] = lambda: False) -> bool:
        """Drive messages on until all ranks have ended (True) or, at most, for so long (False)."""
        if threading.current_thread() is threading.main_thread():
            # Nothing is left to interrupt: Ctrl-C now just ends the process.
            signal.signal(signal.SIGINT, signal.SIG_DFL)
        begun, looks = time.monotonic(), 0
        while self._communicator is not None and not self._communicator.all_have_ended():
            if until():
                return False
            if seconds is not None and (waited := time.monotonic() - begun) > seconds:
                if looks * _QUICK_LOOK_SECONDS > seconds or waited > _MOST_TIMES * seconds:
                    return False
            looks += 1
            time.sleep(_POLL_SECONDS)
        return True

    def _abort(self, code: int) -> None:
        if self._communicator is not None:
            self._communicator.abort(code or 1)

    # -- printing ----------------------------------------------------------------------------------------------------

    def _rank(self) -> int:
        return 0 if self._communicator is None else self._communicator.rank

    def _told_rank(self) -> str:
        """This rank's number, from its launcher if there is no communicator."""
        if self._communicator is not None:
            return str(self._communicator.rank)
        rank = launchers.launched_rank(os.environ)
        return "?" if rank is None else str(rank)

    def _prefixed(self, text: str) -> str:
        return f"[rank {self._told_rank()}] {text}"

    def _print_exception(
        self, kind: type[BaseException], value: BaseException, trace: TracebackType | None, left_out: str
    ) -> None:
        if self._previous_hook is sys.__excepthook__:
            self.write("".join(traceback.format_exception(kind, value, trace)) + left_out)
            return
        self.write("")
        self._previous_hook(kind, value, trace)

    def write(self, text: str) -> None:
        """Print this, with the rank, in one piece, so that the lines of several ranks do not mix."""
        sys.stdout.flush()
        sys.stderr.write(self._prefixed(text))
        sys.stderr.flush()
