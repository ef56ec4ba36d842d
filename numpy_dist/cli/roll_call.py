"""Which rank was the first to end without leave: each rank tells the launcher which process it is, and when it leaves.

When a rank is killed `mpiexec` kills the others, and names any of them. The system, however, tells whoever watches
processes of their ends in the order in which they happened.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

__all__ = ["AVAILABLE", "Death", "RollCall", "enter"]

AVAILABLE = hasattr(os, "pidfd_open") and hasattr(select, "epoll")
# How long a rank waits for the launcher to watch it, and the launcher for what it should have been told by then.
_PATIENCE = 5.0


class Death(NamedTuple):
    """The end of a rank that had not taken its leave: `number` is the signal, if the system still knew it."""

    rank: int
    pid: int
    number: int | None


def enter(descriptor: int, rank: int) -> Callable[[], None]:
    """Have the launcher watch this process, which is a rank; returns what is to be called when it ends by itself."""
    pid = os.getpid()
    launcher = socket.socket(fileno=descriptor)
    launcher.set_inheritable(False)
    try:
        own = os.pidfd_open(pid)
    except OSError:  # the system is too old
        return launcher.close
    watched, answer = os.pipe()
    try:
        socket.send_fds(launcher, [b"%d %d" % (pid, rank)], [own, answer])
    except OSError:  # the launcher has ended
        return launcher.close
    finally:
        os.close(own)
        os.close(answer)
    select.select([watched], [], [], _PATIENCE)  # until the launcher has closed its end
    os.close(watched)

    def leave() -> None:
        if os.getpid() == pid:
            try:
                launcher.send(b"%d" % pid)
            except OSError:  # the launcher has ended
                return

    return leave


class RollCall(threading.Thread):
    """The launcher's side.

    Parameters
    ----------
    ranks : int
        How many there will be.

    Attributes
    ----------
    for_ranks : socket.socket
        For the ranks; to be closed once they have been started.
    """

    def __init__(self, ranks: int) -> None:
        super().__init__(daemon=True)
        self._socket, self.for_ranks = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._expected = ranks
        self._ranks: dict[int, int] = {}  # by process
        self._left: set[int] = set()
        self._deaths: list[Death] = []  # in the order in which they happened
        self._watched: dict[int, int] = {}  # processes by descriptor
        self._poll = select.epoll()
        self._late = False

    def run(self) -> None:
        """Listen to the ranks, and watch their processes."""
        self._poll.register(self._socket, select.EPOLLIN)
        while self._watched or self._socket.fileno() >= 0:
            # Of processes it tells in the order in which they ended, also when this thread comes late.
            for descriptor, _ in self._poll.poll():
                if descriptor in self._watched:
                    self._ended(descriptor)
                else:
                    self._listen()

    def first(self) -> Death | None:
        """The first rank that ended without leave; None where that is not known for certain."""
        self.join(_PATIENCE)
        if self._late or len(set(self._ranks.values())) != self._expected:
            return None
        return next((death for death in self._deaths if death.pid not in self._left), None)

    def _listen(self) -> None:
        message, descriptors, _, _ = socket.recv_fds(self._socket, 64, 2)
        if not message:  # no process can write any more
            self._poll.unregister(self._socket)
            self._socket.close()
            return
        pid, *rank = map(int, message.split())
        if not rank:
            self._left.add(pid)
            return
        own, answer = descriptors
        self._ranks[pid], self._watched[own] = rank[0], pid
        # The order of ends before this one, if there are any, is not known.
        self._late |= bool(select.select([own], [], [], 0)[0])
        self._poll.register(own, select.EPOLLIN)
        os.close(answer)

    def _ended(self, descriptor: int) -> None:
        pid = self._watched.pop(descriptor)
        self._deaths.append(Death(self._ranks[pid], pid, _signal_of(pid)))
        self._poll.unregister(descriptor)
        os.close(descriptor)


def _signal_of(pid: int) -> int | None:
    """The signal that has ended a process, as long as its parent has not asked for it."""
    try:
        words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    number = int(words[-1]) & 0x7F
    return number if words[0] == "Z" and number in set(signal.Signals) else None
