"""Sockets between rank 0 of a notebook and the other ranks: cells, outcomes, and what rank 0 was told by the user.

Messages between two ranks come in order. Threads read them, so that a rank that computes learns of an interrupt, and
of ranks that have finished the cell or died: these are noted where ranks that wait look for ends (`ended` of the
communicator), so that nobody waits for what will never come.
"""

from __future__ import annotations

import os
import posix
import queue
import secrets
import signal
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Client, Connection, Listener
from typing import TYPE_CHECKING, Any

from numpy_dist.comm.portable import portable_error, restored
from numpy_dist.comm.supervision.exits import EndNotice
from numpy_dist.notebook.settling import CellOutcome, CellOver

if TYPE_CHECKING:
    from numpy_dist.comm.mpi import MpiCommunicator

__all__ = ["SharedRequest", "Answer", "Leave", "RankLink", "RootHub", "connect", "leave_soon"]

LEAVE_SECONDS = 2.0  # for a rank that is to end and is still busy
_ARM_SECONDS = 5.0
_POLL_SECONDS = 0.02


@dataclass(frozen=True)
class SharedRequest:
    """What all ranks are to do now: run a cell, complete a name, and so on.

    Attributes
    ----------
    serial : int
    kind : str
        The name of the method of `rank_shell.RankRequests` that does it.
    arguments : dict
    """

    serial: int
    kind: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True)
class Answer:
    """What rank 0 has been told, or has found, and all ranks are to have alike: a line of input, say."""

    serial: int
    kind: str
    value: Any
    error: Any = None


@dataclass(frozen=True)
class Finished:
    """A rank has finished a request, and how."""

    serial: int
    outcome: CellOutcome


@dataclass(frozen=True)
class FinishNotice:
    """For a rank that may wait: what another one has done, which does nothing more in this request."""

    serial: int
    to: int
    notice: EndNotice


@dataclass(frozen=True)
class Died:
    """The process of a rank is gone."""

    rank: int
    pid: int


@dataclass(frozen=True)
class Interrupt:
    """The user has interrupted a request."""

    serial: int


@dataclass(frozen=True)
class Leave:
    """The notebook ends; with `at_once` not all ranks are there to end together."""

    at_once: bool


def leave_soon(seconds: float = LEAVE_SECONDS, keepers: Collection[int] = ()) -> None:
    """End this process if it has not ended by itself in so many seconds: it is busy, and nobody wants its results.

    Parameters
    ----------
    seconds : float
    keepers : collection of int
        Processes that are to be ended as well, which stay in the place of dead ranks.
    """

    def end() -> None:
        time.sleep(seconds)
        for keeper in keepers:
            with suppress(ProcessLookupError):
                os.kill(keeper, signal.SIGKILL)
        posix._exit(0)  # that of `os` waits for the other ranks

    threading.Thread(target=end, daemon=True).start()


def death_notice(rank: int, pid: int) -> EndNotice:
    """What a rank that waits for a dead one gets."""
    return EndNotice(rank, 1, f"its process {pid} has died", True, False, False, collectives=0)


class _Ends:
    """The ends of other ranks that are noted in the communicator for the time of a request.

    Attributes
    ----------
    comm : MpiCommunicator
        It may be replaced between two requests.
    """

    def __init__(self, comm: MpiCommunicator) -> None:
        self.comm = comm
        self._lock = threading.Lock()
        self._serial, self._goes_on = 0, False  # the last request that has begun here
        self._noted: list[EndNotice] = []
        self._early: list[tuple[int, EndNotice]] = []  # of requests that have not begun here
        self.dead: dict[int, int] = {}

    def note(self, serial: int, notice: EndNotice) -> None:
        """Another rank does nothing more in a request, which may be over here already, or may not have begun."""
        with self._lock:
            if serial == self._serial and self._goes_on:
                self._note(notice)
            elif serial > self._serial:
                self._early.append((serial, notice))

    def begin(self, serial: int) -> None:
        """A request begins here."""
        with self._lock:
            self._withdraw()
            self._serial, self._goes_on = serial, True
            early, self._early = self._early, []
            for of, notice in early:
                if of == serial:
                    self._note(notice)

    def over(self) -> None:
        """The request is over, on all ranks: they have not ended."""
        with self._lock:
            self._withdraw()
            self._goes_on = False

    def rest(self, notices: Iterable[EndNotice]) -> None:
        """Until the next request begins other ranks do nothing."""
        with self._lock:
            for notice in notices:
                self._note(notice)

    def _note(self, notice: EndNotice) -> None:
        self._noted.append(notice)
        self.comm.ended.setdefault(notice.rank, notice)

    def _withdraw(self) -> None:
        for notice in self._noted:
            if self.comm.ended.get(notice.rank) is notice:
                del self.comm.ended[notice.rank]
        self._noted.clear()

    def died(self, rank: int, pid: int) -> None:
        """A rank will never do anything again."""
        with self._lock:
            self.dead[rank] = pid
            self.comm.ended[rank] = death_notice(rank, pid)


class RootHub:
    """Rank 0's side.

    Parameters
    ----------
    comm : MpiCommunicator
    connections : dict of int to Connection
        To each other rank.
    pids, keepers : dict of int to int
        The processes of the ranks, and their parents.

    Attributes
    ----------
    serial : int
        Of the request that was begun last.
    active : bool
        Whether it is going on.
    interrupted : bool
        Whether the user has interrupted it.
    outcomes : dict of int to CellOutcome
        Of the ranks that have finished it.
    leaving : bool
        Whether the notebook ends.
    """

    def __init__(
        self, comm: MpiCommunicator, connections: dict[int, Connection], pids: dict[int, int], keepers: dict[int, int]
    ) -> None:
        self.ends = _Ends(comm)
        self.serial = 0
        self.active = self.interrupted = False
        self.outcomes: dict[int, CellOutcome] = {}
        self.pids, self.keepers = pids, keepers
        self._connections = connections
        self._locks = {rank: threading.Lock() for rank in connections}
        self.leaving = False
        for rank in connections:
            threading.Thread(target=self._read, args=(rank,), name=f"notebook rank {rank}", daemon=True).start()

    @property
    def comm(self) -> MpiCommunicator:
        """The program's communicator, as it is now."""
        return self.ends.comm

    @property
    def dead(self) -> dict[int, int]:
        """The processes of the ranks that have died."""
        return self.ends.dead

    def begin(self, kind: str, **arguments: object) -> int:
        """Have the other ranks begin a request, which this rank begins now, too; returns its number."""
        self.serial += 1
        self.ends.begin(self.serial)
        self.outcomes, self.interrupted, self.active = {}, False, True
        self.tell(SharedRequest(self.serial, kind, arguments))
        return self.serial

    def tell(self, message: object, to: int | None = None) -> None:
        """Send a message to one of the other ranks, or to all."""
        for rank, connection in self._connections.items():
            if to in (None, rank) and rank not in self.dead:
                try:
                    with self._locks[rank]:
                        connection.send(message)
                except OSError:  # it has died: its thread learns of it
                    continue

    def share(self, kind: str, work: Callable[[], object]) -> Any:
        """What `work` gives here, or raises, on this rank and on all others, which call `RankLink.share`."""
        try:
            value = work()
        except Exception as error:
            self.tell(Answer(self.serial, kind, None, portable_error(error)))
            raise
        except KeyboardInterrupt as error:
            self.tell(Answer(self.serial, kind, None, error))
            raise
        self.tell(Answer(self.serial, kind, value))
        return value

    def interrupt(self) -> None:
        """Interrupt what the other ranks do; called in any thread."""
        if self.active:
            self.interrupted = True
            self.tell(Interrupt(self.serial))

    def finished(self, reason: str, failed: bool, operations: bytes = b"") -> None:
        """Tell the others that rank 0 does nothing more in this request."""
        for rank in self._connections:
            notice = self.comm.notice_to(rank, 1, reason, failed, operations=operations)
            self.tell(FinishNotice(self.serial, rank, notice), to=rank)

    def waited_for(self) -> list[int]:
        """The other ranks that have not finished the request yet."""
        return [rank for rank in self._connections if rank not in self.outcomes and rank not in self.dead]

    def over(self, how: str, announced: frozenset[int]) -> CellOver:
        """All ranks have finished: have them go on."""
        message = CellOver(self.serial, how, announced, self.interrupted)
        self.active = False
        self.ends.over()
        self.tell(message)
        return message

    def rest(self) -> None:
        """Until the next request the others wait: what would wait for them raises an error."""
        collectives = self.comm.progress()[1]
        reason = "it waits for the next cell: only what cells do, all ranks do"
        alive = [rank for rank in self._connections if rank not in self.dead]
        self.ends.rest(EndNotice(rank, 0, reason, False, False, False, collectives) for rank in alive)

    def leave(self) -> None:
        """The notebook ends, on all ranks."""
        self.leaving = True
        self.tell(Leave(at_once=bool(self.dead)))

    def _read(self, rank: int) -> None:
        while True:
            try:
                message = self._connections[rank].recv()
            except (EOFError, OSError):
                break
            if isinstance(message, Finished):
                if message.serial == self.serial:
                    self.outcomes[rank] = message.outcome
            elif message.to:
                self.tell(message, to=message.to)
            else:
                self.ends.note(message.serial, message.notice)
        if not self.leaving:
            self.ends.died(rank, self.pids[rank])
            self.tell(Died(rank, self.pids[rank]))


class RankLink:
    """The side of another rank than 0.

    Parameters
    ----------
    comm : MpiCommunicator
    connection : Connection
        To rank 0.

    Attributes
    ----------
    todo : queue
        Of `SharedRequest`, `CellOver` and `Leave`, for the main thread.
    armed : threading.Event
        Set by the main thread while an interrupt of the request is to reach it.
    """

    def __init__(self, comm: MpiCommunicator, connection: Connection) -> None:
        self.ends = _Ends(comm)
        self.todo: queue.SimpleQueue[SharedRequest | CellOver | Leave] = queue.SimpleQueue()
        self.armed = threading.Event()
        self.serial = 0
        self._answers: queue.SimpleQueue[Answer] = queue.SimpleQueue()
        self._root_finished = 0  # the request
        self._connection = connection
        self._lock = threading.Lock()
        threading.Thread(target=self._read, name="notebook", daemon=True).start()

    @property
    def comm(self) -> MpiCommunicator:
        """The program's communicator, as it is now."""
        return self.ends.comm

    def finish(self, serial: int, outcome: CellOutcome) -> None:
        """Tell rank 0 how a request went."""
        self._send(Finished(serial, outcome))

    def finished(self, serial: int, reason: str, failed: bool, operations: bytes = b"") -> None:
        """Tell the others that this rank does nothing more in a request; by now the next one may have come."""
        for rank in range(self.comm.size):
            if rank != self.comm.rank:
                notice = self.comm.notice_to(rank, 1, reason, failed, operations=operations)
                self._send(FinishNotice(serial, rank, notice))

    def share(self, kind: str, work: Callable[[], object]) -> Any:
        """What `work` gives on rank 0, or raises there, also after an interrupt; it is not called here."""
        handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            return self._answer(kind)
        finally:
            signal.signal(signal.SIGINT, handler)

    def _answer(self, kind: str) -> object:
        while True:
            try:
                answer = self._answers.get(timeout=_POLL_SECONDS)
            except queue.Empty:
                if self.serial == self._root_finished:
                    raise RuntimeError(
                        f"{kind} is done by rank 0 for all ranks, and rank 0 has finished the cell without it"
                    ) from None
                continue
            if answer.serial != self.serial:
                continue
            if answer.kind != kind:
                raise RuntimeError(f"rank 0 has done {answer.kind} where this rank wanted {kind}")
            if answer.error is not None:
                raise restored(answer.error)
            return answer.value

    def _send(self, message: object) -> None:
        try:
            with self._lock:
                self._connection.send(message)
        except OSError:  # rank 0 has died, of which the thread learns
            return

    def _read(self) -> None:
        while True:
            try:
                message = self._connection.recv()
            except (EOFError, OSError):
                posix._exit(1)  # rank 0 has died, and with it the notebook
            self._take(message)
            if isinstance(message, Leave):
                return

    def _take(self, message: Answer) -> None:
        if isinstance(message, Answer):
            self._answers.put(message)
        elif isinstance(message, FinishNotice):
            if message.notice.rank == 0:
                self._root_finished = message.serial
            self.ends.note(message.serial, message.notice)
        elif isinstance(message, Died):
            self.ends.died(message.rank, message.pid)
        elif isinstance(message, Interrupt):
            if message.serial == self.serial and self.armed.wait(_ARM_SECONDS):
                os.kill(os.getpid(), signal.SIGINT)
        else:
            if isinstance(message, SharedRequest):
                self.armed.clear()
                self.serial = message.serial
            elif isinstance(message, Leave):
                if message.at_once:
                    posix._exit(0)
                leave_soon()
            self.todo.put(message)


def connect(comm: MpiCommunicator) -> RootHub | RankLink:
    """Connect rank 0 with the other ranks; collective, by messages of MPI's own."""
    key, listener, place = b"", None, None
    with tempfile.TemporaryDirectory() as folder:
        if comm.rank == 0:
            key = secrets.token_bytes(32)
            alone = comm.node_size == comm.size
            address = os.path.join(folder, "notebook") if alone else (socket.gethostname(), 0)
            listener = Listener(address, backlog=comm.size, authkey=key)
            place = listener.address
        place, key = comm.native.bcast((place, key), 0)
        if listener is None:
            connection = Client(place, authkey=key)
            connection.send((comm.rank, os.getpid(), os.getppid()))
            comm.native.barrier()
            return RankLink(comm, connection)
        connections: dict[int, Connection] = {}
        pids, keepers = {}, {}
        with listener:
            while len(connections) < comm.size - 1:
                connection = listener.accept()
                rank, pids[rank], keepers[rank] = connection.recv()
                connections[rank] = connection
        comm.native.barrier()
    return RootHub(comm, connections, pids, keepers)
