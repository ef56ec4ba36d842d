"""Debuggers that are open on ranks of a job: as long as one is, waiting for its rank is no hang."""

from __future__ import annotations

import time
from typing import Protocol

__all__ = ["DEBUG_TAG", "OpenDebuggers"]

DEBUG_TAG = 7


class DebuggerMail(Protocol):
    """What is needed of a communicator."""

    rank: int
    size: int

    def post(self, rank: int, tag: int, message: bytes) -> None: ...
    def poll(self, tag: int) -> tuple[int, bytes] | None: ...


class OpenDebuggers:
    """The ranks whose user is at the prompt of a debugger, as one rank knows them.

    Parameters
    ----------
    mail : DebuggerMail
        The communicator.
    """

    def __init__(self, mail: DebuggerMail) -> None:
        self._mail = mail
        self._open: set[int] = set()
        self._closed_at = float("-inf")

    def tell(self, is_open: bool) -> None:
        """Tell the other ranks that the debugger of this one has been opened, or closed; not collective."""
        for rank in range(self._mail.size):
            if rank != self._mail.rank:
                self._mail.post(rank, DEBUG_TAG, bytes([is_open]))

    def waited(self, since: float) -> float:
        """The seconds since a time (of `time.monotonic`) that a rank has waited for others; not while they debug."""
        self.drain()
        return 0.0 if self._open else time.monotonic() - max(since, self._closed_at)

    def drain(self) -> None:
        """Receive what others have told."""
        while (told := self._mail.poll(DEBUG_TAG)) is not None:
            rank, message = told
            if message[0]:
                self._open.add(rank)
            else:
                self._open.discard(rank)
                self._closed_at = time.monotonic()
