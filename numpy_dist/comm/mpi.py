"""Ranks that are processes of an MPI job; the only module that imports mpi4py.

MPI's blocking calls are not used: a rank that waits polls its own requests and, beside them, a second communicator on
which ranks announce that they end. Two ranks may share a core, so waiting yields it.
"""

from __future__ import annotations

import os
import pickle
import sys
import threading
import time
import traceback
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import cast

import mpi4py
import numpy as np
from numpy.typing import NDArray

from numpy_dist.comm import devices
from numpy_dist.comm.base import PROGRAM_TAG, Bytes, Communicator, Message, PendingExchange, dealt_out
from numpy_dist.comm.divergence import fingerprint
from numpy_dist.comm.divergence.diagnosis import NOT_THE_SAME, describe
from numpy_dist.comm.divergence.journal import packed, unpacked
from numpy_dist.comm.divergence.positions import Waiting, caller_line
from numpy_dist.comm.launchers import only_pmix
from numpy_dist.comm.shared_memory import unlink_segments, unlink_topologies
from numpy_dist.comm.supervision.deadlock import Deadlocks, Need, Wanted
from numpy_dist.comm.supervision.debugging import OpenDebuggers
from numpy_dist.comm.supervision.exits import EndNotice, ExitGuard
from numpy_dist.comm.supervision.pipes import wait_until_read
from numpy_dist.comm.supervision.waits import WaitAccount
from numpy_dist.comm.supervision.watchdog import Watchdog
from numpy_dist.errors import DivergenceError, RankError
from numpy_dist.settings import config

if "mpi4py.MPI" not in sys.modules:
    # MPI is started below, once it is known that it will not abort the process.
    mpi4py.rc.initialize, mpi4py.rc.finalize = False, True
import mpi4py.MPI as MPI

__all__ = [
    "MpiCommunicator",
    "Progress",
    "all_complete",
    "at_finalize",
    "can_start",
    "library_version",
    "start",
    "world_is_parallel",
]

# Tests of a request before the core is yielded, and seconds of waiting before the rank sleeps between tests.
_SPINS_BEFORE_YIELD = 32
_SPINS_BETWEEN_LOOKS = 16
_SECONDS_BEFORE_SLEEP = 0.01
_SLEEP_SECONDS = 0.0001
# From one look for questions of ranks that wait to the next.
_SECONDS_BETWEEN_QUESTIONS = 0.05
_NOTICE_TAG = 1
_LEAST_TAGS = 32767  # what every MPI has
_MARKS_KEPT = 64  # of messages to each rank


def start() -> int:
    """Start MPI unless the program has; the number of ranks in its world. Other ranks may wait for it."""
    if not MPI.Is_initialized():
        level = str(mpi4py.rc.thread_level).upper() if mpi4py.rc.threads else "SINGLE"
        MPI.Init_thread(getattr(MPI, f"THREAD_{level}"))
    return MPI.COMM_WORLD.Get_size()


def can_start(environment: Mapping[str, str]) -> bool:
    """False where this library would abort the process: MPICH without PMIx, under a launcher that speaks only PMIx."""
    text = MPI.Get_library_version()
    return MPI.Is_initialized() or "mpich" not in text.lower() or "pmix" in text.lower() or not only_pmix(environment)


def at_finalize(act: Callable[[], None]) -> None:
    """Have this called when MPI is finalised, first of all: messages still travel."""
    # Not by mpi4py's own finalisation, when Python has ended.
    key = MPI.Comm.Create_keyval(delete_fn=lambda *attribute: act())
    MPI.COMM_SELF.Set_attr(key, None)


def world_is_parallel() -> bool:
    """Whether MPI is up with more than one rank."""
    return MPI.Is_initialized() and not MPI.Is_finalized() and MPI.COMM_WORLD.Get_size() > 1


def library_version() -> str:
    """The name and version of the MPI library that mpi4py has loaded."""
    lines = MPI.Get_library_version().replace("\x00", "").strip().splitlines()
    return " ".join(lines[0].split()) if lines else "unknown MPI library"


Progress = tuple[bool, int, dict[tuple[int, int], int], dict[tuple[int, int], int], bool]
"""Of a rank: whether it has announced its end, how many collectives and messages to and from each rank and tag there
were, and whether all of them are complete.
"""


class _Wait:
    """The state of one wait: when to look for ended ranks, when to yield, when to sleep, when the time is up."""

    def __init__(
        self,
        communicator: MpiCommunicator,
        where: str,
        missing: Callable[[EndNotice], bool],
        wanted: Callable[[], Wanted],
    ) -> None:
        self._communicator = communicator
        self._where = where
        self._missing = missing
        self._wanted = wanted
        self._found: Wanted | None = None
        self._next_look = _SECONDS_BETWEEN_QUESTIONS
        self._spins = 0
        self._since = 0.0  # 0: it has not taken long enough to look at a clock
        self._now = 0.0
        self._timeout = 0.0

    def until(self, done: Callable[[], bool]) -> None:
        """Return when it is done; raises RankError when what is waited for cannot come any more."""
        try:
            while not done():
                self._pause()
            if self._since and self._communicator.waits.add(self._since, self._now):
                self._communicator.tell_of_waits(self._now)
        finally:
            self._communicator.waiting = None

    def _pause(self) -> None:
        """Between two tests of the requests."""
        self._spins += 1
        communicator = self._communicator
        if self._spins % _SPINS_BETWEEN_LOOKS == 0:
            communicator.look_for_notices()
            communicator.raise_if_missing(self._missing, self._where)
        if self._spins < _SPINS_BEFORE_YIELD:
            return
        now = self._now = time.monotonic()
        if not self._since:
            self._since, self._timeout = now, float(config.TIMEOUT)
            communicator.waiting = Waiting(
                now, communicator.named(self._where), self._timeout, config.ON_TIMEOUT == "end"
            )
        if now - self._since < _SECONDS_BEFORE_SLEEP:
            os.sched_yield()
            return
        if now - self._since >= self._next_look:
            self._look_for_deadlock(now - self._since)
        time.sleep(_SLEEP_SECONDS)
        if self._timeout and now - self._since > self._timeout and not communicator.is_watched:
            if communicator.debuggers.waited(self._since) > self._timeout:
                communicator.report_position(self._where, now - self._since)
                self._timeout = 0.0

    def _look_for_deadlock(self, waited: float) -> None:
        """Ask other ranks what they wait for, and answer those that ask."""
        communicator = self._communicator
        self._next_look = waited + _SECONDS_BETWEEN_QUESTIONS
        if communicator.deadlocks is None:
            return
        if self._found is None:
            self._found = self._wanted()
            communicator.deadlocks.begin()
        communicator.deadlocks.look(self._found, waited)


class _MpiPending(PendingExchange):
    def __init__(self, communicator: MpiCommunicator, tag: int) -> None:
        self._communicator: MpiCommunicator = communicator
        self._tag = tag
        self._requests: list[MPI.Request] = []
        self._statuses: list[MPI.Status] = []
        self._expected: list[tuple[int, int]] = []
        self._looks = 0
        # The ordinals, among all messages of a pair of ranks and this tag, of this exchange's last ones.
        self._last_sent: dict[int, int] = {}
        self._last_received: dict[int, int] = {}
        self._mark: dict[int, int] = {}  # of the last message that is expected from each rank

    def start(self, sends: list[Message], receives: list[Message]) -> None:
        communicator, tag = self._communicator, self._tag
        communicator.go_on_together(self._where())
        communicator.watch()
        native, sent, posted = communicator.native, communicator.sent, communicator.posted
        marked, marks = tag == PROGRAM_TAG, communicator.marks
        wire = tag
        for rank, buffer, mark in receives:
            if marked:
                wire = PROGRAM_TAG + mark % marks.count
            self._requests.append(native.Irecv(buffer, rank, wire))
            self._expected.append((rank, buffer.size))
            posted[rank, tag] += 1
            self._last_received[rank] = posted[rank, tag]
            self._mark[rank] = mark
        for rank, buffer, mark in sends:
            if marked:
                wire = PROGRAM_TAG + mark % marks.count
                marks.note(rank, mark)
            self._requests.append(native.Isend(buffer, rank, wire))
            sent[rank, tag] += 1
            self._last_sent[rank] = sent[rank, tag]
        self._statuses = [MPI.Status() for _ in self._requests]
        # MPI writes into the buffers until the requests are complete, even if the caller drops this object.
        self._communicator.active[id(self)] = self

    def done(self) -> bool:
        if self._requests and self._test():
            self._finish()
        elif self._requests:
            self._looks += 1
            if self._looks % _SPINS_BETWEEN_LOOKS == 0:  # a loop until it is done is a wait, too
                self._communicator.look_for_notices()
                self._communicator.raise_if_missing(self._is_missing, self._where())
        return not self._requests

    def wait(self) -> None:
        if not self._requests:
            return
        _Wait(self._communicator, self._where(), self._is_missing, self._wanted).until(self._test)
        self._finish()

    def _where(self) -> str:
        return f"messages with ranks {sorted({*self._last_received, *self._last_sent})}"

    def _wanted(self) -> Wanted:
        received, sent = self._last_received, self._last_sent
        return Wanted(
            self._where(),
            {
                r: Need(tag=self._tag, sent=received.get(r, 0), posted=sent.get(r, 0), mark=self._mark.get(r, 0))
                for r in {*received, *sent}
            },
        )

    def _test(self) -> bool:
        try:
            return MPI.Request.Testall(self._requests, self._statuses)
        except MPI.Exception as error:
            raise RuntimeError(
                f"MPI failed in a message of rank {self._communicator.rank}: {error}. If a message was truncated, "
                f"the ranks do not agree on its size: {NOT_THE_SAME}"
            ) from error

    def _finish(self) -> None:
        self._communicator.active.pop(id(self), None)
        self._requests = []
        for (rank, size), status in zip(self._expected, self._statuses, strict=False):
            received = status.Get_count(MPI.BYTE)
            if received != size:
                raise DivergenceError(
                    f"rank {self._communicator.rank} expected {size} bytes from rank {rank} and got {received}: "
                    f"{NOT_THE_SAME}"
                )

    def _is_missing(self, notice: EndNotice) -> bool:
        expected = self._last_received.get(notice.rank, 0)
        if self._tag == PROGRAM_TAG and notice.marks.get(expected, self._mark.get(notice.rank)) != self._mark.get(
            notice.rank
        ):
            return True  # what has come in its place is something else
        return self._last_received.get(notice.rank, 0) > notice.sent.get(self._tag, 0) or self._last_sent.get(
            notice.rank, 0
        ) > notice.posted.get(self._tag, 0)


class _Marks:
    """The marks of the latest messages to each rank.

    Parameters
    ----------
    most : int
        The largest tag that MPI has: a message's is a remainder of its mark, so that others are not matched.

    Attributes
    ----------
    count : int
        How many tags there are.
    """

    def __init__(self, most: int) -> None:
        self.count = most - PROGRAM_TAG + 1
        self._latest: defaultdict[int, deque[int]] = defaultdict(lambda: deque(maxlen=_MARKS_KEPT))
        self._sent: Counter[int] = Counter()

    def note(self, rank: int, mark: int) -> None:
        """A message is sent."""
        self._latest[rank].append(mark)
        self._sent[rank] += 1

    def latest(self, rank: int) -> dict[int, int]:
        """Those that were sent to a rank last, by their ordinals."""
        known = list(self._latest[rank])
        return dict(enumerate(known, self._sent[rank] - len(known) + 1))


class MpiCommunicator(Communicator):
    """All ranks of ``MPI.COMM_WORLD``, on communicators of our own (collective to make).

    Parameters
    ----------
    guard : ExitGuard, optional
        What tells the other ranks, over this communicator, that this one ends.

    Attributes
    ----------
    ended : dict of int to EndNotice
        The ranks that are known to have ended.
    """

    name = "mpi"
    _made = 0  # communicators: the same number on all ranks

    def __init__(self, guard: ExitGuard | None = None) -> None:
        world = MPI.COMM_WORLD
        communicators = self._duplicate(world), self._duplicate(world)
        node = world.Split_type(MPI.COMM_TYPE_SHARED)
        nodes = _numbered_nodes(communicators[1], node) if node.Get_size() < world.Get_size() else ()
        if dealt_out(nodes) and _told_by_first(communicators[1], config.RANK_ORDER == "node"):
            # Those of one node keep their order.
            ordered = cast(MPI.Intracomm, world.Split(0, nodes[world.Get_rank()]))
            for before in communicators:
                before.Free()
            communicators = self._duplicate(ordered), self._duplicate(ordered)
            ordered.Free()
            nodes = tuple(sorted(nodes))
        self._control, self.native = communicators
        super().__init__(self.native.Get_rank(), self.native.Get_size())
        self.ended: dict[int, EndNotice] = {}
        # Messages that were started, by (rank, tag): a notice tells the other rank how many of them will ever come.
        self.sent: Counter[tuple[int, int]] = Counter()
        self.posted: Counter[tuple[int, int]] = Counter()
        self.marks = _Marks(int(world.Get_attr(MPI.TAG_UB) or _LEAST_TAGS))
        self.active: dict[int, object] = {}
        self._collectives = 0
        self._announced = False
        self._standing: tuple[int, ...] | None = None  # where it failed, if it may go on
        self._failure = ""  # what it was, and where
        self._started: tuple[dict[tuple[int, int], int], dict[tuple[int, int], int]] = ({}, {})
        self._later: list[EndNotice] = []  # what ranks have announced that had gone on after a failure
        self.node_size, self.node_rank, self.nodes = node.Get_size(), node.Get_rank(), nodes
        node.Free()
        self.takes_device_memory = devices.go_into_messages(MPI.__file__)
        self._devices = self._told_by_all(devices.usable())
        unlink_segments()
        if self.node_rank == 0:
            unlink_topologies()
        # Completes when all ranks have come to their end; tells which of them have sent notices.
        self._end: tuple[MPI.Request, bytearray] | None = None
        self._notices: list[tuple[MPI.Request, bytes]] = []
        self._guard = guard
        self.waiting: Waiting | None = None
        self.waits = WaitAccount(self.rank, time.monotonic())
        self.debuggers = OpenDebuggers(self)
        self._watchdog: Watchdog | None = None
        self._posts: list[tuple[MPI.Request, bytes]] = []
        self._post_lock = threading.Lock()
        MpiCommunicator._made += 1
        self.deadlocks = None if guard is None else Deadlocks(self, MpiCommunicator._made)
        if guard is not None:
            guard.connect(self)
            self.watch()
            self.signals.connect(self)
        else:
            self.checks = None  # its collectives are not the program's

    @staticmethod
    def _duplicate(world: MPI.Intracomm) -> MPI.Intracomm:
        communicator, request = world.Idup()
        _complete(request)
        return communicator

    def _told_by_all(self, number: int) -> list[int]:
        """A small number of each rank."""
        numbers = bytearray(self.size)
        _complete(self.native.Iallgather(bytes([min(number, 255)]), numbers))
        return list(numbers)

    # -- operations on bytes -----------------------------------------------------------------------------------------

    def _allgather_fixed(self, part: bytes) -> bytearray:
        result = bytearray(self.size * len(part))
        self._collective("allgather", lambda: self.native.Iallgather(part, result), (part, result))
        return result

    def _allgather_parts(self, part: Bytes, sizes: Sequence[int]) -> Bytes:
        result = np.empty(sum(sizes), np.uint8)
        starts = [0]
        for size in sizes:
            starts.append(starts[-1] + size)
        target = [result, (list(sizes), starts[:-1]), MPI.BYTE]
        self._collective("allgather", lambda: self.native.Iallgatherv([part, MPI.BYTE], target), (part, result))
        return result

    def _alltoall_fixed(self, parts: Bytes) -> Bytes:
        result = np.empty_like(parts)
        start = self.native.Ialltoall
        self._collective("alltoall", lambda: start([parts, MPI.BYTE], [result, MPI.BYTE]), (parts, result))
        return result

    def _sum_numbers(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        result = np.empty_like(numbers)
        start = self.native.Iallreduce
        self._collective("allsum", lambda: start(numbers, result), (numbers, result))
        return result

    def _bcast_into(self, buffer: Bytes, root: int) -> None:
        self._collective("bcast", lambda: self.native.Ibcast(buffer, root), (buffer,), root)

    def _start(self, sends: list[Message], receives: list[Message], tag: int) -> PendingExchange:
        pending = _MpiPending(self, tag)
        pending.start(sends, receives)
        return pending

    def _collective(
        self, where: str, start: Callable[[], MPI.Request], buffers: tuple[object, ...], root: int | None = None
    ) -> None:
        self.go_on_together(where)
        ordinal = self._collectives + 1
        self.watch()

        def missing(notice: EndNotice) -> bool:
            return notice.collectives < ordinal

        if self.ended:
            self.raise_if_missing(missing, where)
        self._collectives = ordinal
        request = start()
        if request.Test():
            return
        self.active[id(request)] = (request, buffers)

        def wanted() -> Wanted:
            need = Need(collective=ordinal, kind=where)
            if root is None or root == self.rank:
                return Wanted(where, all=need, collective=need)
            # Others that have not joined need not be waited for.
            return Wanted(where, {root: need}, collective=need)

        _Wait(self, where, missing, wanted).until(request.Test)
        del self.active[id(request)]

    def named(self, where: str) -> str:
        """What is waited for as the caller knows it: a barrier, say, may wait in a first comparison of the ranks."""
        asked = self.checks.collective if self.checks is not None else ""
        return where if where.startswith("messages") or not asked else asked

    def renewed(self) -> MpiCommunicator:
        """A communicator in place of this one, after an error on some ranks that all have come back from; collective.

        The old one is freed only if all that was started on it is complete: what is left of it would be taken for
        messages of another communicator, as MPI gives the same identity out again.
        """
        new = MpiCommunicator(self._guard)
        checks, new.checks = new.checks, None  # what follows is not the program's
        states = new.allgather(self.progress())
        announced = {rank for rank, state in enumerate(states) if state[0]} - {self.rank}
        while not announced <= self.ended.keys():
            self.look_for_notices()
        new.barrier()
        new.checks = checks
        if self._watchdog is not None:
            self._watchdog.stop()
        self._control.Free()
        if all_complete(states):
            self.native.Free()
        return new

    # -- ends of ranks -----------------------------------------------------------------------------------------------

    def look_for_notices(self) -> None:
        """Receive what other ranks have announced about their end."""
        status = MPI.Status()
        while self._control.Iprobe(MPI.ANY_SOURCE, _NOTICE_TAG, status):
            buffer = bytearray(status.Get_count(MPI.BYTE))
            self._control.Recv(buffer, status.Get_source(), _NOTICE_TAG)
            self._take(pickle.loads(buffer))
        self.signals.look()

    def _take(self, notice: EndNotice) -> None:
        known = self.ended.get(notice.rank)
        if known is None or known.standing is None:
            self.ended[notice.rank] = notice
        else:  # it knows already that all have failed alike
            self._later.append(notice)

    def raise_if_missing(self, missing: Callable[[EndNotice], bool], where: str) -> None:
        """Raise RankError for the first ended rank that `missing` selects, one that did not wait for another if any."""
        for notice in sorted(self.ended.values(), key=lambda notice: (notice.follows, notice.rank)):
            rank = notice.rank
            if missing(notice):
                place = f"{self.named(where)}, called from {caller_line()}"
                what = "ended" if notice.standing is None else "failed"
                text = f"rank {rank} has {what} ({notice.reason}), and rank {self.rank} waits for it in {place}"
                if notice.operations and self.checks is not None:
                    histories = {self.rank: self.checks.journal.operations(), rank: unpacked(notice.operations)}
                    text = f"{text}. {describe(histories, {rank: notice.reason})}"
                    differences = fingerprint.compare({self.rank: fingerprint.deciding(), rank: notice.decides})
                    text += f"\nThese ranks are not alike:\n{differences.text}" if differences.text else ""
                raise RankError(text, rank, place)

    def announce(self, code: int, reason: str, failed: bool, exits: bool, claims: bool) -> None:
        """Tell all other ranks that this one ends; returns at once."""
        self._announced = True
        told = packed(self.checks.journal.operations()) if self.checks is not None and not failed else b""
        for rank in range(self.size):
            if rank == self.rank:
                continue
            notice = self.notice_to(rank, code, reason, failed, exits, claims, told)
            buffer = pickle.dumps(notice, protocol=5)
            self._notices.append((self._control.Isend([buffer, MPI.BYTE], rank, _NOTICE_TAG), buffer))

    def notice_to(
        self,
        rank: int,
        code: int,
        reason: str,
        failed: bool,
        exits: bool = False,
        claims: bool = False,
        operations: bytes = b"",
    ) -> EndNotice:
        """What another rank is to know if this one does nothing more; not collective, and sends nothing."""
        return EndNotice(
            rank=self.rank,
            code=code,
            reason=reason,
            failed=failed,
            exits=exits,
            claims=claims,
            collectives=self._collectives,
            sent={tag: n for (other, tag), n in self.sent.items() if other == rank},
            posted={tag: n for (other, tag), n in self.posted.items() if other == rank},
            operations=operations,
            marks=self.marks.latest(rank),
            decides=fingerprint.deciding() if operations else {},
            standing=self._standing,
            started=({}, {}) if self._standing is None else self._started,
        )

    def progress(self) -> Progress:
        """How far this rank has come, to be compared by `all_complete`; not collective."""
        return self._announced, self._collectives, dict(self.sent), dict(self.posted), not self.active

    def withdraw(self) -> None:
        """Take back what ranks have announced of their ends, on all of them: they go on. No notice is on its way."""
        self._announced, self._standing, self.ended, self._later = False, None, {}, []
        if self._guard is not None:
            self._guard.withdraw()

    def all_have_ended(self) -> bool:
        """Whether every rank has come to its end, and their notices are here.

        A first call says that this rank has come to its end; further ones drive messages on.
        """
        if not self.can_communicate():
            return True
        if self._end is None:
            told = bytearray(self.size)
            self._end = self._control.Iallgather(bytes([self._announced]), told), told
        self.look_for_notices()
        if self.deadlocks is not None:
            self.deadlocks.drain()
        if not self.is_watched:  # else its thread does so
            self.debuggers.drain()
        request, told = self._end
        # Notices may come later than the ends that they announce, but they do come.
        return bool(request.Test()) and all(rank in self.ended or rank == self.rank for rank, n in enumerate(told) if n)

    def can_communicate(self) -> bool:
        """Whether MPI is still up, and this is not a forked child."""
        return os.getpid() == self._pid and not MPI.Is_finalized()

    def close(self) -> None:
        """Refuse what comes: MPI is finalised, and would end the process."""
        if self._watchdog is not None:
            self._watchdog.stop()
        self.signals.disconnect()
        self._pid = 0

    def fail(self, exception: BaseException) -> None:
        """As in the base class.

        After a MemoryError that all ranks have met at the same place (one array is too large for any of them), and have
        caught, the job goes on: see `go_on_together`.
        """
        if self._guard is not None:
            if isinstance(exception, MemoryError) and not self._announced and self.checks is not None:
                place = self.checks.journal.place()
                if place is not None:
                    self._standing = self._collectives, *place
                    self._started = dict(self.sent), dict(self.posted)
                    what = "".join(traceback.format_exception_only(exception)).strip()
                    self._failure = f"{what}\nIt happened in a call from {caller_line()}"
            self._guard.announce_failure(exception)

    def go_on_together(self, where: str) -> None:
        """After a failure that was caught: wait until all ranks are known to have failed alike, and take it back.

        Each rank compares the same notices, so that all go on, or none.

        Raises
        ------
        RankError
            If another rank has ended, or has failed elsewhere.
        """
        if not self._announced or self._standing is None:
            return
        mine = self._standing

        def unlike(notice: EndNotice) -> bool:
            return notice.standing != mine

        others = set(range(self.size)) - {self.rank}
        try:
            _Wait(self, where, unlike, lambda: Wanted(where)).until(lambda: others <= self.ended.keys())
            started = {rank: notice.started for rank, notice in self.ended.items()} | {self.rank: self._started}
            self.raise_if_missing(unlike if _all_met(started) else lambda notice: True, where)
        except RankError as error:
            text = f"{self._failure}. It was caught, but the other ranks could not go on without it: {error}"
            raise RankError(text, error.rank, error.where) from None
        self._announced, self._standing, self.ended = False, None, {}
        later, self._later = self._later, []
        for notice in later:
            self._take(notice)
        if self._guard is not None:
            self._guard.withdraw()

    def abort(self, code: int = 1) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        wait_until_read()
        if self._guard is not None:
            self._guard.at_last()
        MPI.COMM_WORLD.Abort(code)

    # -- the watchdog ------------------------------------------------------------------------------------------------

    def watch(self) -> None:
        """Start the watchdog if the setting TIMEOUT asks for it, and MPI lets its thread communicate."""
        if self._watchdog is None and self._guard is not None and config.TIMEOUT:
            if MPI.Query_thread() == MPI.THREAD_MULTIPLE:
                self._watchdog = Watchdog(self)

    @property
    def is_watched(self) -> bool:
        """Whether a watchdog prints where the ranks are."""
        return self._watchdog is not None

    # -- messages about waiting --------------------------------------------------------------------------------------

    def post(self, rank: int, tag: int, message: bytes) -> None:
        """Send a message over the control channel; also by the thread of the watchdog."""
        with self._post_lock:
            self._posts = [(request, kept) for request, kept in self._posts if not request.Test()]
            self._posts.append((self._control.Isend([message, MPI.BYTE], rank, tag), message))

    def poll(self, tag: int) -> tuple[int, bytes] | None:
        """A message from the control channel, and from whom; None if there is none."""
        status = MPI.Status()
        if not self._control.Iprobe(MPI.ANY_SOURCE, tag, status):
            return None
        buffer = bytearray(status.Get_count(MPI.BYTE))
        self._control.Recv(buffer, status.Get_source(), tag)
        return status.Get_source(), bytes(buffer)

    def wait_for_all(self, where: str, ranks: Collection[int]) -> None:
        """Wait until all ranks are in a collection, which looks for messages fill."""

        def done() -> bool:
            self.signals.look()
            return len(ranks) == self.size

        _Wait(self, where, lambda notice: notice.rank not in ranks, lambda: Wanted(where)).until(done)

    def tell_of_waits(self, now: float) -> None:
        """Tell that most of some seconds was waited, unless it was for somebody who debugs."""
        if self.debuggers.waited(self.waits.begun) < now - self.waits.begun:
            self.waits.begin(now)
        else:
            self.waits.tell(now)

    def contradicts(self, need: Need, rank: int) -> bool:
        """Whether this rank has sent something else than another one waits for, in its place."""
        return need.tag == PROGRAM_TAG and self.marks.latest(rank).get(need.sent, need.mark) != need.mark

    def has_done(self, need: Need, rank: int) -> bool:
        """Whether this rank has done what another one waits for."""
        if need.collective > self._collectives or need.sent > self.sent[rank, need.tag]:
            return False
        return need.posted <= self.posted[rank, need.tag]

    def report_position(self, where: str, seconds: float) -> None:
        """Print where this rank waits, where no thread can tell of all ranks."""
        stack = "".join(traceback.format_stack(sys._getframe(1)))
        text = f"has waited {seconds:.0f} s in {where} (collective {self._collectives})\n{stack}"
        sys.stderr.write(f"[rank {self.rank}] {text}")
        sys.stderr.flush()


def _numbered_nodes(world: MPI.Intracomm, node: MPI.Comm) -> tuple[int, ...]:
    """The number of the node of each rank, for ranks on several nodes; `node` has those of this one.

    Nodes are numbered by their first ranks, so that of rank 0 is the first.
    """
    first, firsts = np.array([world.Get_rank()], np.int64), np.empty(world.Get_size(), np.int64)
    _complete(node.Ibcast(first, 0))
    _complete(world.Iallgather(first, firsts))
    number = {int(rank): place for place, rank in enumerate(np.unique(firsts))}
    return tuple(number[int(rank)] for rank in firsts)


def _told_by_first(world: MPI.Intracomm, choice: bool) -> bool:
    """What rank 0 has chosen: environments of ranks may differ."""
    chosen = bytearray([choice])
    _complete(world.Ibcast(chosen, 0))
    return bool(chosen[0])


def _complete(request: MPI.Request) -> None:
    """Wait for what all ranks do as they start."""
    while not request.Test():
        os.sched_yield()


def all_complete(states: Sequence[Progress]) -> bool:
    """Whether all ranks have completed the same collectives, and all messages that were sent."""
    met = _all_met({rank: (state[2], state[3]) for rank, state in enumerate(states)})
    return met and len({state[1] for state in states}) == 1 and all(state[4] for state in states)


def _all_met(started: Mapping[int, tuple[dict[tuple[int, int], int], dict[tuple[int, int], int]]]) -> bool:
    """Whether all messages that were started are on both sides, by the numbers of those sent and received."""
    sent = {(r, other, tag): n for r, (numbers, _) in started.items() for (other, tag), n in numbers.items()}
    received = {(other, r, tag): n for r, (_, numbers) in started.items() for (other, tag), n in numbers.items()}
    return sent == received
