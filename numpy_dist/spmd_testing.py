"""For tests of SPMD programs: simulated ranks, agreement on outcomes, a watchdog, and a ban on gathers."""

from __future__ import annotations

import functools
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from numpy_dist.argument_types import Function
from numpy_dist.comm.base import Communicator
from numpy_dist.comm.detect import get_communicator, renew
from numpy_dist.comm.simulated import run_simulated
from numpy_dist.engine.runtime import runtime
from numpy_dist.errors import RankError

if TYPE_CHECKING:
    from numpy_dist.backends.base import Backend, Loop, Repeat

__all__ = ["Agreement", "forbid_gathers", "inject", "run_simulated", "spmd", "watchdog"]

Result = TypeVar("Result")

# How long a rank whose time is up lets the other ranks print their stacks too.
_SECONDS_FOR_OTHERS = 1.0


def spmd(*nranks: int) -> Callable[[Callable[..., object]], Callable[..., None]]:
    """Run the decorated test on each of these numbers of simulated ranks.

    Examples
    --------
    >>> from numpy_dist.comm.detect import get_communicator
    >>> @spmd(1, 2, 3)
    ... def test_ranks():
    ...     comm = get_communicator()
    ...     assert comm.allgather(comm.rank) == list(range(comm.size))
    >>> test_ranks()
    """

    def decorate(function: Callable[..., object]) -> Callable[..., None]:
        @functools.wraps(function)
        def run(*args: object, **kwargs: object) -> None:
            for n in nranks:
                run_simulated(n, function, *args, **kwargs)

        return run

    return decorate


@contextmanager
def forbid_gathers() -> Iterator[Communicator]:
    """Within the block, gathering a whole array raises `numpy_dist.errors.CommunicationRefused`.

    It concerns the running context's communicator only: on simulated ranks, enter it on each rank.
    """
    communicator = get_communicator()
    before = communicator.refuse_gathers
    communicator.refuse_gathers = True
    try:
        yield communicator
    finally:
        communicator.refuse_gathers = before


# What a communicator does to communicate; each call is a place where `inject` may act.
_OPERATIONS = ("_allgather_fixed", "_allgather_parts", "_alltoall_fixed", "_sum_numbers", "_bcast_into", "_start")
COMMUNICATION, BACKEND, ALLOCATION = "communication", "backend", "allocation"


@contextmanager
def inject(
    position: int, action: Callable[[], object], places: Collection[str] = (COMMUNICATION,)
) -> Iterator[list[str]]:
    """Within the block, call `action` just before this rank's call number `position` (from 0) of those counted.

    Used to fail or to exit at every communication of an example, on one rank. The block's value lists the operations
    that were called; so a first run, with position -1, tells how many there are. Not collective.

    Parameters
    ----------
    places : collection of str
        What is counted: ``"communication"``, ``"backend"`` (each run of a loop), ``"allocation"`` (each piece of memory
        that is asked of the system).
    """
    called: list[str] = []

    def wrapped(name: str, original: Function) -> Function:
        def operation(*args: object) -> object:
            called.append(name)
            if len(called) == position + 1:
                action()
            return original(*args)

        return operation

    communicator, found = get_communicator(), runtime()
    chosen: list[tuple[object, str]] = [(communicator, name) for name in _OPERATIONS] if COMMUNICATION in places else []
    chosen += [(found.pool, "attempt")] if ALLOCATION in places else []
    backend = found.backend
    for owner, name in chosen:
        setattr(owner, name, wrapped(name, getattr(owner, name)))
    if BACKEND in places:
        found.backend = _Backend(backend, wrapped)  # simulated ranks may share the backend itself
    try:
        yield called
    finally:
        found.backend = backend
        for owner, name in chosen:
            delattr(owner, name)


class _Backend:
    """A backend whose runs of loops, also repeated ones, are wrapped."""

    def __init__(self, backend: Backend, wrapped: Callable[[str, Function], Function]) -> None:
        self._backend, self._wrapped = backend, wrapped

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend, name)

    def run(self, loop: Loop) -> _Repeat | None:
        repeat = self._wrapped("run", self._backend.run)(loop)
        return None if repeat is None else _Repeat(repeat, self._wrapped)


class _Repeat:
    def __init__(self, repeat: Repeat, wrapped: Callable[[str, Function], Function]) -> None:
        self.operands, self.scalars = repeat.operands, repeat.scalars
        self.again = wrapped("again", repeat.again)


# -- the watchdog ----------------------------------------------------------------------------------------------------


@contextmanager
def watchdog(seconds: float, what: str = "this block", descriptor: int = 2) -> Iterator[None]:
    """If the block takes longer, print the stacks of all threads of every rank, and abort the job.

    Parameters
    ----------
    seconds : float
        0 for no limit. Every rank enters the block and so keeps its own time.
    what : str
        For the message.
    descriptor : int
        The file descriptor to write to (test runners redirect 2).
    """
    communicator = get_communicator()
    ended = threading.Event()

    def watch() -> None:
        if ended.wait(seconds):
            return
        os.write(
            descriptor, _all_stacks(communicator.rank, f"{what}: the time limit of {seconds:g} s is over").encode()
        )
        time.sleep(_SECONDS_FOR_OTHERS)
        _abort(communicator)

    thread = threading.Thread(target=watch, name="watchdog", daemon=True)
    if seconds > 0:
        thread.start()
    try:
        yield
    finally:
        ended.set()


def _abort(communicator: Communicator) -> None:
    if communicator.name == "mpi":
        communicator.abort(1)
    os._exit(1)


def _all_stacks(rank: int, headline: str) -> str:
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    lines = [headline]
    for identity, frame in sys._current_frames().items():
        if names.get(identity) == "watchdog":
            continue
        lines.append(f"thread {names.get(identity, identity)}, innermost call last:")
        calls = [call for call in traceback.extract_stack(frame) if not _is_test_runner(call.filename)]
        lines += "".join(traceback.format_list(calls)).rstrip().splitlines()
    return "".join(f"[rank {rank}] {line}\n" for line in lines)


def _is_test_runner(filename: str) -> bool:
    return any(f"{os.sep}{package}{os.sep}" in filename for package in ("_pytest", "pluggy"))


# -- agreement on outcomes -------------------------------------------------------------------------------------------


class Agreement:
    """Lets the ranks of an MPI job agree on how a piece of a test went, on a communicator of its own (collective).

    A rank that failed may have left the others in the middle of a communication: it tells them, they leave it with
    RankError, all come together here, and go on with a new communicator.
    """

    def __init__(self) -> None:
        from numpy_dist.comm import mpi

        get_communicator()
        self._communicator: Communicator = mpi.MpiCommunicator()

    @property
    def rank(self) -> int:
        """This rank."""
        return self._communicator.rank

    @property
    def size(self) -> int:
        """The number of ranks."""
        return self._communicator.size

    def exchange(self, value: Result) -> list[Result]:
        """The values of all ranks."""
        return self._communicator.allgather(value)

    def settle(self, outcome: str, error: BaseException | None, text: str) -> tuple[list[str], dict[int, str]]:
        """Agree on one piece of a test.

        Parameters
        ----------
        outcome : str
            This rank's, in words that the caller chooses.
        error : BaseException, optional
            Set if this rank has left the piece by an error, at a point where the others may wait for it.
        text : str
            What to tell the others about the error.

        Returns
        -------
        outcomes : list of str
            Of all ranks.
        texts : dict of int to str
            Of the ranks with an error. Those that failed only because another rank did come last, in one line.
        """
        if error is not None:
            get_communicator().fail(error)
        all_results = self._communicator.allgather((outcome, error is not None, isinstance(error, RankError)))
        outcomes = [result[0] for result in all_results]
        if not any(failed for _, failed, _ in all_results):
            return outcomes, {}
        originals = [rank for rank, (_, failed, followed) in enumerate(all_results) if failed and not followed]
        if originals and isinstance(error, RankError):
            text = f"RankError: {error}".splitlines()[0]
        texts = self._communicator.allgather(text)
        renew()
        order = originals + [rank for rank in range(self.size) if rank not in originals]
        return outcomes, {rank: texts[rank] for rank in order if all_results[rank][1]}
