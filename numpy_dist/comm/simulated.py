"""Ranks that are threads of one process, for tests: one runs at a time, and they switch only where one must wait.

A run is reproducible: the next rank is the first, counted up from the one that waits, that can go on. If none can, that
is a deadlock, and every rank is told where all of them wait. Messages are delivered when both sides have started them,
without buffering, so that a program that relies on buffering deadlocks here as it may under MPI.
"""

from __future__ import annotations

import contextvars
import sys
import threading
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from numpy_dist.comm import detect
from numpy_dist.comm.base import Bytes, Communicator, Message, PendingExchange
from numpy_dist.comm.divergence.diagnosis import NOT_THE_SAME, deadlock_error, describe, divergence_error
from numpy_dist.comm.divergence.journal import JournalEntry
from numpy_dist.comm.divergence.positions import caller_line
from numpy_dist.comm.process_state import ProcessState
from numpy_dist.errors import DivergenceError, RankError

__all__ = ["SimulatedCommunicator", "run_simulated"]

T = TypeVar("T")


class _Stopped(BaseException):
    """Raised in ranks that still run when the caller of `run_simulated` was interrupted."""


class _Operation:
    """One collective: what each rank has contributed so far, and what they are combined to."""

    def __init__(self) -> None:
        self.kinds: dict[int, str] = {}
        self.parts: dict[int, bytes | Bytes] = {}
        self.problem: str | None = None


class _Message:
    """One side of a message; it is complete once the other side has been found."""

    def __init__(self, rank: int, buffer: Bytes, mark: int) -> None:
        self.rank = rank
        self.buffer = buffer
        self.mark = mark
        self.complete = False
        self.problem: str | None = None


class World:
    """All simulated ranks of one run: their mail, their collectives, and whose turn it is."""

    def __init__(self, size: int, state: ProcessState) -> None:
        self.size = size
        self.turns = [threading.Lock() for _ in range(size)]  # a rank waits for its own, which others release
        for turn in self.turns:
            turn.acquire()
        self.finished = threading.Event()
        self.ended: dict[int, str] = {}
        self.failed: list[int] = []
        self.waits: dict[int, tuple[str, Callable[[], bool], Callable[[], int | None], str]] = {}
        self.communicators: dict[int, SimulatedCommunicator] = {}
        self.deadlock: Exception | None = None
        self.stopped = False
        self.operations: list[_Operation] = []
        self.mail: dict[tuple[int, int, int], tuple[deque[_Message], deque[_Message]]] = defaultdict(
            lambda: (deque(), deque())
        )
        self.states = [state.fork() for _ in range(size)]

    # -- turns -------------------------------------------------------------------------------------------------------

    def wait(self, rank: int, where: str, ready: Callable[[], bool], missing: Callable[[], int | None]) -> None:
        """Let other ranks run until `ready`; `missing` names an ended rank without which it will never be."""
        if not ready():
            line = caller_line(sys._getframe(1))
            self.waits[rank] = (where, ready, missing, line)
            self._pass_on(rank)
            del self.waits[rank]
            if self.stopped:
                raise _Stopped
            if not ready():
                self._explain(rank, where, missing(), line)

    def _explain(self, rank: int, where: str, lost: int | None, line: str) -> None:
        if lost is not None and self.deadlock is None:
            text = f"rank {lost} has ended ({self.ended[lost]}), and rank {rank} waits for it in {where}, "
            text += f"called from {line}"
            if lost not in self.failed:
                text = f"{text}. {describe(self.histories(rank, lost), self.ended)}"
            raise RankError(text, lost)
        assert self.deadlock is not None
        raise type(self.deadlock)(*self.deadlock.args)

    def histories(self, *ranks: int) -> dict[int, list[JournalEntry]]:
        """The latest operations of these ranks, by default of all."""
        checks = {rank: self.communicators[rank].checks for rank in ranks or sorted(self.communicators)}
        return {rank: c.journal.operations() for rank, c in checks.items() if c is not None}

    def _can_go_on(self, rank: int) -> bool:
        if rank in self.ended:
            return False
        if rank not in self.waits:
            return True
        _, ready, missing, _ = self.waits[rank]
        return self.stopped or self.deadlock is not None or ready() or missing() is not None

    def _next(self, rank: int) -> int | None:
        order = [(rank + k) % self.size for k in range(1, self.size + 1)]
        for other in order:
            if self._can_go_on(other):
                return other
        if not self.waits:
            return None
        waits = {r: f"{self.waits[r][0]}, at {self.waits[r][3]}" for r in self.waits}
        self.deadlock = deadlock_error(waits, self.histories(), self.ended)
        return next(other for other in order if self._can_go_on(other))

    def _pass_on(self, rank: int) -> None:
        """Give the turn to the next rank that can go on, and return when this one has it again."""
        following = self._next(rank)
        if following == rank:
            return
        if following is None:
            self.finished.set()
            return
        if rank not in self.ended:
            self.states[rank] = ProcessState.capture(self.states[rank])
        # The turn is given on last: from then on the other thread runs.
        self.turns[following].release()
        if rank not in self.ended:
            self.take_turn(rank)

    def take_turn(self, rank: int) -> None:
        """Wait for this rank's turn; then the process-wide state of libraries is this rank's own."""
        self.turns[rank].acquire()
        self.states[rank].restore()

    def end(self, rank: int, reason: str, failed: bool) -> None:
        """The rank's function has returned or raised."""
        self.ended[rank] = reason
        if failed:
            self.failed.append(rank)
        self._pass_on(rank)

    # -- messages ----------------------------------------------------------------------------------------------------

    def post(self, source: int, destination: int, tag: int, message: _Message, is_send: bool) -> None:
        """Match one side of a message with the oldest one on the other side."""
        sends, receives = self.mail[source, destination, tag]
        mine, others = (sends, receives) if is_send else (receives, sends)
        if not others:
            mine.append(message)
            return
        other = others.popleft()
        send, receive = (message, other) if is_send else (other, message)
        if send.mark != receive.mark:  # neither is complete: all ranks are told
            self.deadlock = self.deadlock or divergence_error(self.histories(source, destination))
            return
        if send.buffer.size == receive.buffer.size:
            receive.buffer[...] = send.buffer
        else:
            problem = (
                f"rank {destination} expected {receive.buffer.size} bytes from rank {source} and got "
                f"{send.buffer.size}: {NOT_THE_SAME}"
            )
            send.problem = receive.problem = problem
        send.complete = receive.complete = True


class _SimulatedPending(PendingExchange):
    def __init__(self, world: World, rank: int, messages: list[_Message]) -> None:
        self._world = world
        self._rank = rank
        self._messages = messages

    def done(self) -> bool:
        return all(message.complete for message in self._messages)

    def _missing(self) -> int | None:
        return next((m.rank for m in self._messages if not m.complete and m.rank in self._world.ended), None)

    def wait(self) -> None:
        missing_from = sorted({m.rank for m in self._messages if not m.complete})
        self._world.wait(self._rank, f"messages with ranks {missing_from}", self.done, self._missing)
        for message in self._messages:
            if message.problem is not None:
                raise DivergenceError(message.problem)


class SimulatedCommunicator(Communicator):
    """The communicator of one simulated rank."""

    name = "simulated"
    takes_device_memory = True  # the threads of a process have one memory

    def __init__(self, world: World, rank: int) -> None:
        super().__init__(rank, world.size)
        self.node_size = world.size
        self.node_rank = rank
        self._world = world
        world.communicators[rank] = self
        self._collectives = 0

    def _collective(self, kind: str, part: bytes | np.ndarray) -> list[Any]:
        """Wait until every rank has contributed to this rank's next collective; all parts in rank order."""
        world = self._world
        ordinal = self._collectives
        self._collectives += 1
        if ordinal == len(world.operations):
            world.operations.append(_Operation())
        operation = world.operations[ordinal]
        operation.kinds[self.rank] = kind
        operation.parts[self.rank] = part

        def ready() -> bool:
            return len(operation.kinds) == self.size

        def missing() -> int | None:
            return next((r for r in range(self.size) if r in world.ended and r not in operation.kinds), None)

        asked = kind if self.checks is None else self.checks.collective
        world.wait(self.rank, f"{asked} (collective {ordinal})", ready, missing)
        if len(set(operation.kinds.values())) > 1:
            if operation.problem is None:
                each = ", ".join(f"rank {r}: {operation.kinds[r]}" for r in range(self.size))
                told = describe(world.histories(), world.ended)
                operation.problem = f"the ranks are in different collectives ({each}). {told}"
            raise DivergenceError(operation.problem)
        return [operation.parts[r] for r in range(self.size)]

    def _allgather_fixed(self, part: bytes) -> bytes:
        return b"".join(self._collective("allgather", part))

    def _allgather_parts(self, part: Bytes, sizes: Sequence[int]) -> Bytes:
        return np.concatenate(self._collective("allgather", part.copy()))

    def _alltoall_fixed(self, parts: Bytes) -> Bytes:
        each = parts.size // self.size
        given = self._collective("alltoall", parts.copy())
        return np.concatenate([part[self.rank * each : (self.rank + 1) * each] for part in given])

    def _sum_numbers(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.sum(self._collective("allsum", numbers.copy()), axis=0)

    def _bcast_into(self, buffer: Bytes, root: int) -> None:
        buffer[...] = self._collective(f"bcast from rank {root}", buffer.copy())[root]

    def _start(self, sends: list[Message], receives: list[Message], tag: int) -> PendingExchange:
        messages = []
        for rank, buffer, mark in receives:
            messages.append(_Message(rank, buffer, mark))
            self._world.post(rank, self.rank, tag, messages[-1], is_send=False)
        for rank, buffer, mark in sends:
            messages.append(_Message(rank, buffer, mark))
            self._world.post(self.rank, rank, tag, messages[-1], is_send=True)
        return _SimulatedPending(self._world, self.rank, messages)

    def abort(self, code: int = 1) -> None:
        raise SystemExit(code)

    def fail(self, exception: BaseException) -> None:
        """Nothing to do: the end of the rank's function is seen by all."""


def run_simulated(nranks: int, function: Callable[..., T], *args: object, **kwargs: object) -> list[T]:
    """Run ``function(*args, **kwargs)`` on `nranks` simulated ranks and return their results, in rank order.

    Each rank is a thread with a copy of the caller's context (so ``config(...)`` blocks apply), in which
    `get_communicator` gives that rank's communicator. Warning filters and the states of `random` and NumPy's global
    random generator are each rank's own, and afterwards as they were before.

    Raises
    ------
    Exception
        What a rank raised: that of the lowest rank that raised something else than RankError, else the lowest one's.
    RuntimeError
        A deadlock, with the place where each rank waits.
    """
    if nranks < 1:
        raise ValueError(f"nranks must be at least 1, not {nranks}")
    before = ProcessState.capture()
    world = World(nranks, before)
    results: list[Any] = [None] * nranks
    errors: dict[int, BaseException] = {}

    def body(rank: int) -> None:
        detect.reset_rank_local()
        detect.current.set(SimulatedCommunicator(world, rank))
        world.take_turn(rank)
        reason, failed = "it ran to its end", False
        try:
            if not world.stopped:
                results[rank] = function(*args, **kwargs)
        except BaseException as error:
            errors[rank] = error
            reason, failed = f"{type(error).__name__}: {error}"[:300], True
        world.end(rank, reason, failed)

    threads = [
        threading.Thread(
            target=contextvars.copy_context().run, args=(body, rank), name=f"simulated rank {rank}", daemon=True
        )
        for rank in range(nranks)
    ]
    for thread in threads:
        thread.start()
    try:
        world.turns[0].release()
        world.finished.wait()
    except BaseException:
        world.stopped = True
        world.finished.wait(5)
        raise
    finally:
        before.restore()
    for thread in threads:
        thread.join()
    if errors:
        raise _original(errors)
    return results


def _original(errors: dict[int, BaseException]) -> BaseException:
    originals = [rank for rank in sorted(errors) if not isinstance(errors[rank], RankError)]
    rank = originals[0] if originals else min(errors)
    error = errors[rank]
    error.add_note(f"raised on simulated rank {rank}; ranks that raised: {sorted(errors)}")
    return error
