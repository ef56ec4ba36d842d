"""Ranks on hosts that were named: each keeps a connection to the launcher, which so learns of those that are lost.

The launcher's system tells it how ranks on its own host end (`roll_call`); of those on other hosts `mpiexec` says
little, and nothing at all of a host that has gone without a word. The connection of a rank that is killed is closed by
its system; one to a host that does not answer any more is given up after some time (TCP's keep-alive).

A rank that crashes tells the launcher where (`faulthandler`). When one is lost, others that wait for it may crash in
the MPI library, and be known to have ended before it: such crashes are no beginnings.
"""

from __future__ import annotations

import faulthandler
import os
import re
import secrets
import selectors
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, MutableMapping, Sequence

if sys.platform != "win32":
    import fcntl

from numpy_dist.cli.roll_call import Death, RollCall

__all__ = ["VARIABLE", "DistantRanks", "connect", "first_death"]

VARIABLE = "_NUMPY_DIST_LAUNCHER"  # how ranks find the launcher
_CONNECT_SECONDS = 2.0
_TOLD_SECONDS = 3.0  # until it is known here that ranks have ended
_PROBES = 4
_LEAVE, _FAILED = b"leave\n", b"failed\n"
_MOST_BYTES = 1024
_MOST_LINES = 500  # of where a rank has crashed
_TOGETHER = 2.0  # seconds within which ranks crash since another one is lost
_IN_MPI = re.compile(r'File "[^"]*numpy_dist/comm/mpi\.py"')
_LAUNCHERS_SOCKET = "PMI_FD"
_DISCARD = 9  # a port: nothing is sent


def _keep_alive(connection: socket.socket, seconds: float) -> None:
    """Have the system give a connection up after a time in which the other side has not answered its questions."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    between = max(1, int(seconds / (_PROBES + 1)))
    for name, value in (("TCP_KEEPIDLE", between), ("TCP_KEEPINTVL", between), ("TCP_KEEPCNT", _PROBES)):
        if hasattr(socket, name):
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


class DistantRanks(threading.Thread):
    """The launcher's side.

    A thread of its own listens to the ranks, unless a `RollCall` does so: it then knows which were lost first, of those
    here and elsewhere.

    Parameters
    ----------
    names : sequence of str
        Of the hosts.
    patience : float
        Seconds without an answer after which a host is taken for lost.

    Attributes
    ----------
    silent : dict of int to str
        The ranks whose hosts do not answer any more, with the names of these.
    left_at : float
        When the first rank has told that it ends by itself.
    """

    def __init__(self, names: Sequence[str], patience: float) -> None:
        super().__init__(daemon=True)
        self.silent: dict[int, str] = {}
        self.left_at = float("inf")
        self._patience = patience
        self._token = secrets.token_hex(16)
        both = socket.has_dualstack_ipv6()
        family = socket.AF_INET6 if both else socket.AF_INET
        self._socket = socket.create_server(("", 0), family=family, dualstack_ipv6=both, backlog=1024)
        self._addresses = list(dict.fromkeys(filter(None, map(_address_towards, names))))
        self._lock = threading.Lock()
        self._told: dict[int, bytes] = {}  # by descriptor: what has come, until it is a whole line
        self._connections: dict[int, socket.socket] = {}
        self._ranks: dict[int, Death] = {}  # by descriptor, while they live
        self._crashes: dict[int, list[str]] = {}  # by descriptor, what has come of where they crash
        self._lost: list[tuple[float, Death]] = []
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._socket, selectors.EVENT_READ)

    def fileno(self) -> int:
        """A descriptor that is ready to be read when ranks have something to say."""
        return self._selector.fileno()  # type: ignore[attr-defined, no-any-return]

    def describe(self, environment: MutableMapping[str, str]) -> None:
        """Tell the ranks how to find this."""
        port = self._socket.getsockname()[1]
        environment[VARIABLE] = f"{self._token} {port} {self._patience:g} {','.join(self._addresses)}"

    def run(self) -> None:
        """Listen to the ranks."""
        while True:
            self.listen(None)

    def listen(self, seconds: float | None = 0.0) -> None:
        """Hear what ranks have to say, if need be after so many seconds (None: whenever)."""
        for key, _ in self._selector.select(seconds):
            descriptor = key.fd
            with self._lock:
                if descriptor == self._socket.fileno():
                    try:
                        connection, _ = self._socket.accept()
                    except OSError:  # no more files can be opened: the ranks that come now are not known
                        self._selector.unregister(self._socket)
                        continue
                    _keep_alive(connection, self._patience)
                    self._connections[connection.fileno()], self._told[connection.fileno()] = connection, b""
                    self._selector.register(connection, selectors.EVENT_READ)
                elif not self._listen(descriptor):
                    self._selector.unregister(descriptor)
                    self._connections.pop(descriptor).close()

    def _listen(self, descriptor: int) -> bool:
        """Hear what a rank has to say; whether there may be more of it."""
        try:
            data = self._connections[descriptor].recv(_MOST_BYTES)
        except ConnectionResetError:
            data = b""
        except OSError:
            rank = self._ranks.pop(descriptor, None)
            if rank is not None:
                self.silent[rank.rank] = rank.host
            return False
        told = self._told[descriptor] + data
        *lines, self._told[descriptor] = told.split(b"\n")
        for line in lines:
            if line == _LEAVE.strip():
                if self._ranks.pop(descriptor, None) is not None:
                    self.left_at = min(self.left_at, time.monotonic())
                return False
            if line == _FAILED.strip():
                if descriptor in self._ranks:
                    self._lost.append((time.monotonic(), self._ranks.pop(descriptor)._replace(failed=True)))
                return False
            if descriptor in self._ranks:
                lines_told = self._crashes.setdefault(descriptor, [])
                lines_told += [line.decode(errors="replace")] if len(lines_told) < _MOST_LINES else []
                continue
            words = line.decode(errors="replace").split(" ", 3)
            if len(words) < 4 or not secrets.compare_digest(words[0].encode(), self._token.encode()):
                return False
            self._ranks[descriptor] = Death(int(words[1]), int(words[2]), None, host=words[3])
        if not data and descriptor in self._ranks:
            crash = "\n".join(self._crashes.pop(descriptor, ()))
            self._lost.append((time.monotonic(), self._ranks.pop(descriptor)._replace(crash=crash)))
        return bool(data) and len(self._told[descriptor]) < _MOST_BYTES

    def first(self) -> tuple[float, Death] | None:
        """The first of these ranks that was lost, and when; to be called when the job has ended.

        Ranks whose hosts have not told by now that they have ended are `silent`.
        """
        deadline = time.monotonic() + _TOLD_SECONDS
        while self._ranks and time.monotonic() < deadline:
            time.sleep(0.01)
        with self._lock:
            self.silent.update((rank.rank, rank.host) for rank in self._ranks.values())
            return first_lost(self._lost)

    def crashed(self) -> list[Death]:
        """The ranks that have told where they crash, in the order in which they were lost."""
        with self._lock:
            return [death for _, death in self._lost if death.crash]


def first_lost(lost: Sequence[tuple[float, Death]]) -> tuple[float, Death] | None:
    """The rank that was lost first, of several with their times in this order.

    Not one that has crashed while it waited for others within MPI, if another one was lost at about the same time.
    """
    together = [each for each in lost if each[0] <= lost[0][0] + _TOGETHER]
    return next((each for each in together if not _waited(each[1].crash)), together[0] if together else None)


def _waited(crash: str) -> bool:
    """Whether a rank has crashed where it waits for others: the innermost line is one of the MPI communicator's."""
    innermost = next((line for line in crash.splitlines() if line.startswith("  File ")), "")
    return _IN_MPI.search(innermost) is not None


def first_death(here: RollCall | None, distant: DistantRanks | None) -> Death | None:
    """The first rank of a job that has ended and did not take its leave; None where that is not known for certain."""
    death = None if here is None else here.first()
    if distant is None:
        return death
    lost = distant.first()
    left = min(distant.left_at, float("inf") if here is None else here.left_at)
    found = [] if lost is None else [lost]
    if here is not None and death is not None:
        if death.failed:
            return death
        # Not by their signals: where one is lost, others may crash within MPI.
        found.append((here.when(death), death))
    when, first = min(found, default=(left, None))
    return first if when < left else None  # after the first has left, mpiexec may have ended the others


def _address_towards(host: str) -> str:
    """The address by which another host reaches this one; empty where that is not known."""
    try:
        found = socket.getaddrinfo(host, _DISCARD, type=socket.SOCK_DGRAM)
    except (OSError, UnicodeError):
        return ""
    for family, kind, protocol, _, address in found:
        with socket.socket(family, kind, protocol) as asked:
            try:
                asked.connect(address)  # which sends nothing
                return str(asked.getsockname()[0])
            except OSError:
                continue
    return ""


def connect(description: str, rank: int) -> Callable[..., None] | None:
    """Have the launcher know of this process, which is a rank; returns what is to be called when it ends by itself.

    A forked child that is about to kill this process, as it has failed, calls it with the number of this process. None
    where there is no such launcher, or where it cannot be reached. `description` is the value of `VARIABLE`.
    """
    words = description.split(" ")
    if len(words) != 4:
        return None
    token, port, patience, addresses = words
    pid = os.getpid()
    for address in filter(None, addresses.split(",")):
        try:
            connection = socket.create_connection((address, int(port)), _CONNECT_SECONDS)
            connection.settimeout(None)
            _keep_alive(connection, float(patience))
            connection.sendall(f"{token} {rank} {pid} {socket.gethostname()}\n".encode())
        except OSError:
            continue
        break
    else:
        return None
    _close_first(connection)
    faulthandler.enable(connection.fileno(), all_threads=False)  # the other threads wait for the launcher, mostly
    threading.Thread(target=_watch, args=(connection, rank), name="numpy_dist launcher", daemon=True).start()

    def leave(failed: int | None = None) -> None:
        if pid in (os.getpid(), failed):
            try:
                connection.sendall(_FAILED if failed else _LEAVE)
            except OSError:  # the launcher has ended
                return

    return leave


def _close_first(connection: socket.socket) -> None:
    """Have the system close the connection before the socket by which MPICH's launcher notices the end of a process.

    Files of a process that is killed are closed in the order of their numbers. The launcher kills other ranks of the
    host as soon as it knows: their connections could be closed before that of the rank that was first.
    """
    text = os.environ.get(_LAUNCHERS_SOCKET, "")
    if not text.isdecimal() or int(text) > connection.fileno():
        return
    try:
        moved = fcntl.fcntl(int(text), fcntl.F_DUPFD_CLOEXEC, connection.fileno() + 1)
    except OSError:  # it is closed, or no more files can be opened
        return
    os.close(int(text))
    os.environ[_LAUNCHERS_SOCKET] = str(moved)  # MPI has not been started


def _watch(connection: socket.socket, rank: int) -> None:
    """End this process where the launcher's host does not answer any more: nobody else would."""
    try:
        connection.recv(1)  # nothing comes; where the launcher ends, so does its mpiexec, which ends the ranks
    except ConnectionResetError:
        return
    except OSError as problem:
        print(f"[rank {rank}] the launcher's host does not answer: {problem}", file=sys.__stderr__, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
