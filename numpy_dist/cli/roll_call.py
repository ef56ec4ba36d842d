"""Which rank was the first to die: each rank tells the launcher which process it is, and when it leaves by itself.

When a rank is killed `mpiexec` kills the others, and names any of them. The system, however, tells of ends in the order
in which they happened. `mpiexec` notices the end of a process by a socket that is closed, which may be some time before
all of the process is gone; so ranks hold pipes that are closed at that time, too. Files of a process that ends are
closed in the order of their numbers, or in the opposite one: of two pipes, one is closed before the socket.
"""

from __future__ import annotations

import os
import resource
import select
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, Protocol

if sys.platform.startswith("linux"):
    import fcntl

__all__ = ["AVAILABLE", "Death", "RollCall", "enter"]

AVAILABLE = hasattr(os, "pidfd_open") and hasattr(select, "epoll")
# How long a rank waits for the launcher to watch it, and the launcher for what it should have been told by then.
_PATIENCE = 5.0
_HIGH = 500  # above the numbers of the files of MPI libraries


# Linux 6.15 tells the status of a process that has been reaped: _IOWR(0xFF, 11, struct pidfd_info).
_GET_INFO, _INFO_BYTES, _INFO_EXIT = 0xC040FF0B, 64, 1 << 3
_STATUS = slice(60, 64)


class Death(NamedTuple):
    """The end of a rank that had not taken its leave.

    Attributes
    ----------
    rank, pid : int
    number : int or None
        The signal that ended it, if that is known.
    failed : bool
        Whether it had failed before, told so, and could be ended by no other means.
    host : str
        Where it was, if that is another host (`distant_ranks`).
    crash : str
        Where it was when it crashed, as far as it could tell; of ranks on other hosts.
    """

    rank: int
    pid: int
    number: int | None
    failed: bool = False
    host: str = ""
    crash: str = ""


def enter(descriptor: int, rank: int) -> Callable[..., None]:
    """Have the launcher watch this process, which is a rank; returns what is to be called when it ends by itself.

    A forked child that is about to kill this process, as it has failed, calls it with the number of this process.
    """
    pid = os.getpid()
    launcher = socket.socket(fileno=descriptor)
    launcher.set_inheritable(False)
    watched, answer = os.pipe()
    pipes = [os.pipe() for _ in range(2)]  # their other ends stay open as long as this process lives
    sent = [answer, *(reading for reading, _ in pipes)]
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    fcntl.fcntl(pipes[1][1], fcntl.F_DUPFD_CLOEXEC, _HIGH if most < 0 else min(_HIGH, most // 2))  # -1: no limit
    os.close(pipes[1][1])
    try:
        sent.append(os.pidfd_open(pid))
        socket.send_fds(launcher, [b"%d %d" % (pid, rank)], sent)
    except OSError:  # the launcher has ended, or the system is too old
        launcher.close()
        return lambda failed=None: None
    finally:
        for used in sent:
            os.close(used)
    _is_ready(watched, _PATIENCE)  # once the launcher has closed its end
    os.close(watched)

    def leave(failed: int | None = None) -> None:
        if pid in (os.getpid(), failed):
            try:
                launcher.send(b"%d" % (-pid if failed else pid))
            except OSError:  # the launcher has ended
                return

    return leave


class Listener(Protocol):
    """What else is heard by who watches ranks."""

    def fileno(self) -> int:
        """A descriptor that is ready when there is something to hear."""

    def listen(self) -> None:
        """Hear it."""


class RollCall(threading.Thread):
    """The launcher's side.

    Parameters
    ----------
    ranks : int
        How many there will be.
    others : Listener, optional
        For ranks on other hosts, to which this listens, too: which were lost first is known by the system's order.

    Attributes
    ----------
    for_ranks : socket.socket
        For the ranks; to be closed once they have been started.
    left_at : float
        When the first of them has told that it ends by itself, by the monotonic clock.
    """

    def __init__(self, ranks: int, others: Listener | None = None) -> None:
        super().__init__(daemon=True)
        self._others = others
        self._over = threading.Event()  # all ranks have ended
        self._socket, self.for_ranks = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._expected = ranks
        self.left_at = float("inf")
        self._ranks: dict[int, int] = {}  # by process
        self._left: set[int] = set()
        self._failed: set[int] = set()
        self._ended: dict[int, float] = {}  # when each process has ended, in that order
        self._handles: dict[int, int] = {}  # for processes, by process
        self._statuses: dict[int, int | None] = {}  # by process, as known at its end
        self._watched: dict[int, int] = {}  # processes by each of their descriptors
        self._poll = select.epoll()
        self._late = False

    def run(self) -> None:
        """Listen to the ranks, and watch their processes."""
        self._poll.register(self._socket, select.EPOLLIN)
        if self._others is not None:
            self._poll.register(self._others, select.EPOLLIN)
        while not self._over.is_set() or self._others is not None:
            # Of processes it tells in the order in which they ended, also when this thread comes late.
            for descriptor, _ in self._poll.poll():
                if self._others is not None and descriptor == self._others.fileno():
                    self._others.listen()
                elif descriptor in self._watched:
                    self._end(descriptor)
                else:
                    self._listen()
            if not self._watched and self._socket.fileno() < 0:
                self._over.set()

    def first(self) -> Death | None:
        """The first rank that was ended by a signal, or without leave; None where that is not known for certain."""
        self._over.wait(_PATIENCE)
        if self._late or len(set(self._ranks.values())) != self._expected:
            return None
        deaths = [death for death in map(self._death, self._ended) if death is not None]
        # It kills by SIGKILL; who has failed, or died of another signal, was before.
        return min(deaths, key=lambda death: death.number == signal.SIGKILL and not death.failed, default=None)

    def when(self, death: Death) -> float:
        """When a rank's end was known here, by the monotonic clock."""
        return self._ended[death.pid]

    def _death(self, pid: int) -> Death | None:
        """How a process was ended; None where it has left or ended with a code."""
        if pid in self._failed:
            return Death(self._ranks[pid], pid, None, failed=True)
        told = _status_of_reaped(self._handles[pid])
        status = self._statuses.get(pid) if told is None else told
        if status is None:
            return None if pid in self._left else Death(self._ranks[pid], pid, None)
        return Death(self._ranks[pid], pid, os.WTERMSIG(status)) if os.WIFSIGNALED(status) else None

    def _end(self, descriptor: int) -> None:
        """One of the descriptors tells that its process has ended."""
        self._poll.unregister(descriptor)
        pid = self._watched.pop(descriptor)
        self._ended.setdefault(pid, time.monotonic())
        if descriptor == self._handles[pid]:
            self._statuses[pid] = _status_of_zombie(pid)
        else:
            os.close(descriptor)

    def _listen(self) -> None:
        message, descriptors, _, _ = socket.recv_fds(self._socket, 64, 4)
        if not message:  # no process can write any more
            self._poll.unregister(self._socket)
            self._socket.close()
            return
        pid, *rank = map(int, message.split())
        if not rank:
            (self._left if pid > 0 else self._failed).add(abs(pid))
            self.left_at = min(self.left_at, time.monotonic())
            return
        answer, *watched = descriptors
        self._ranks[pid], self._handles[pid] = rank[0], watched[-1]
        # The order of ends before this one, if there are any, is not known.
        self._late |= any(_is_ready(descriptor, 0.0) for descriptor in watched)
        for descriptor in watched:
            self._watched[descriptor] = pid
            self._poll.register(descriptor, select.EPOLLIN)
        os.close(answer)


def _is_ready(descriptor: int, seconds: float) -> bool:
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(1000 * seconds))


def _status_of_zombie(pid: int) -> int | None:
    """How a process has ended (as `os.wait` tells), as long as its parent has not asked for it."""
    try:
        words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return int(words[-1]) if words[0] == "Z" else None


def _status_of_reaped(descriptor: int) -> int | None:
    """How a process has ended whose parent has asked for it, where the system is new enough."""
    info = bytearray(_INFO_EXIT.to_bytes(8, sys.byteorder).ljust(_INFO_BYTES, b"\0"))
    try:
        fcntl.ioctl(descriptor, _GET_INFO, info)
    except OSError:
        return None
    told = int.from_bytes(info[:8], sys.byteorder) & _INFO_EXIT
    return int.from_bytes(info[_STATUS], sys.byteorder) if told else None
