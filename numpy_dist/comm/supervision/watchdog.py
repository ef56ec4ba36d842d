"""Where every rank is, told when one has waited for long: the setting ``TIMEOUT``.

Each rank has a thread that looks every now and then whether the rank has waited for too long. If so, it asks the
threads of all other ranks for their positions, prints all of them together with the first difference between the
operations of the ranks, and, if the setting ``ON_TIMEOUT`` says so, ends the job. Ranks that compute, sleep or loop
answer too.
"""

from __future__ import annotations

import atexit
import pickle
import sys
import threading
import time
import zlib
from collections.abc import Sequence
from types import FrameType
from typing import TYPE_CHECKING, Protocol

from numpy_dist.comm.divergence.diagnosis import describe
from numpy_dist.comm.divergence.journal import JournalEntry
from numpy_dist.comm.divergence.positions import Position, Waiting, called_function, line_of, stack_of
from numpy_dist.comm.supervision.debugging import OpenDebuggers
from numpy_dist.frames import user_call

if TYPE_CHECKING:
    from numpy_dist.comm.divergence.checks import Checks

__all__ = ["ANSWER_TAG", "ASK_TAG", "WatchdogMail", "Watchdog", "position_of", "report"]

ASK_TAG, ANSWER_TAG = 2, 3
_LOOK_SECONDS = 0.2
# How long ranks have for their answer; a thread of Python's may have to wait for a computation that holds the lock.
_ANSWER_SECONDS = 3.0


class WatchdogMail(Protocol):
    """Messages between the ranks' threads, and what they need to know of the communicator."""

    rank: int
    size: int
    checks: Checks | None
    waiting: Waiting | None
    debuggers: OpenDebuggers

    def post(self, rank: int, tag: int, message: bytes) -> None: ...
    def poll(self, tag: int) -> tuple[int, bytes] | None: ...
    def abort(self, code: int) -> None: ...


def position_of(frame: FrameType, checks: Checks | None, waits: str) -> Position:
    """The position of a rank whose innermost frame is given."""
    user, called = user_call(frame)
    operations: Sequence[JournalEntry] = ()
    number = 0
    if checks is not None:
        operations = checks.journal.operations()
        number = checks.journal.recorded + checks.journal.calls
    line = line_of(user.f_code, user.f_lasti)
    return Position(called_function(called), line, waits, number, operations, stack_of(frame))


def report(positions: dict[int, Position | None], headline: str) -> str:
    """The positions of all ranks in words; None for a rank that has not answered."""
    lines = [headline]
    for rank, position in sorted(positions.items()):
        lines.append(f"[rank {rank}] {position if position is not None else 'has not answered'}")
    known = {rank: position for rank, position in positions.items() if position is not None}
    if len(known) > 1:
        histories = {rank: position.operations for rank, position in known.items()}
        lines.append(describe(histories, behind={rank for rank, position in known.items() if not position.waits}))
    for rank, position in sorted(known.items()):
        lines.append(f"[rank {rank}] stack, innermost call last:\n{position.stack.rstrip()}")
    return "\n".join(lines) + "\n"


class Watchdog:
    """The thread of one rank.

    Parameters
    ----------
    mail : WatchdogMail
        The communicator.
    """

    def __init__(self, mail: WatchdogMail) -> None:
        self._mail = mail
        self._main = threading.get_ident()
        self._stopped = threading.Event()
        self._told: object = None  # the wait that was reported, or is being reported by another rank
        self._questions = 0  # the number of the last one, which its answers repeat
        self._thread = threading.Thread(target=self._run, name="numpy_dist watchdog", daemon=True)
        self._thread.start()
        atexit.register(self.stop)

    def stop(self) -> None:
        """End the thread: from then on MPI may be finalised."""
        self._stopped.set()
        if self._thread is not threading.current_thread():
            self._thread.join()
        atexit.unregister(self.stop)

    def _run(self) -> None:
        while not self._stopped.wait(_LOOK_SECONDS):
            self._answer()
            waiting = self._mail.waiting
            if waiting is None or waiting is self._told or not waiting.timeout:
                continue
            if self._mail.debuggers.waited(waiting.since) >= waiting.timeout:
                self._told = waiting
                self._tell(waiting)

    def _position(self) -> Position:
        frame = sys._current_frames()[self._main]
        waiting = self._mail.waiting
        return position_of(frame, self._mail.checks, "" if waiting is None else waiting.where)

    def _answer(self) -> int:
        """Tell the ranks that ask where this one is; the lowest of them."""
        lowest = self._mail.size
        while (asked := self._mail.poll(ASK_TAG)) is not None:
            rank, question = asked
            lowest = min(lowest, rank)
            self._told = self._mail.waiting
            position = zlib.compress(pickle.dumps(self._position(), protocol=5))
            self._mail.post(rank, ANSWER_TAG, question + position)
        return lowest

    def _tell(self, waiting: Waiting) -> None:
        """Gather the positions of all ranks and print them, unless a lower rank does the same."""
        mail = self._mail
        others = [rank for rank in range(mail.size) if rank != mail.rank]
        self._questions += 1
        question = self._questions.to_bytes(8, "little")
        for rank in others:
            mail.post(rank, ASK_TAG, question)
        positions: dict[int, Position | None] = {rank: None for rank in others}
        positions[mail.rank] = self._position()
        deadline, lowest = time.monotonic() + _ANSWER_SECONDS, mail.size
        while time.monotonic() < deadline and not self._stopped.wait(0.01):
            lowest = min(lowest, self._answer())
            while (answer := mail.poll(ANSWER_TAG)) is not None:
                # Answers to a question before, which a lower rank reported, may still lie here.
                if answer[1].startswith(question):
                    positions[answer[0]] = pickle.loads(zlib.decompress(answer[1].removeprefix(question)))
            if all(position is not None for position in positions.values()):
                break
        # A rank that asks sends its question before its answer, so the questions of all that answered are here.
        if min(lowest, self._answer()) < mail.rank:
            return
        seconds = time.monotonic() - waiting.since
        headline = f"[rank {mail.rank}] has waited {seconds:.0f} s in {waiting.where}. Where every rank is:"
        sys.stdout.flush()
        sys.stderr.write(report(positions, headline))
        sys.stderr.flush()
        if waiting.ends_job and mail.waiting is waiting:
            sys.stderr.write(f"[rank {mail.rank}] ends the job (ON_TIMEOUT=end)\n")
            mail.abort(1)
