"""The simulation of a job rank by rank: a program runs as one of many ranks, and nothing is computed."""

from __future__ import annotations

import contextvars
import linecache
import os
import pickle
import sys
import tempfile
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import IO, Any

import numpy as np

from numpy_dist import engine
from numpy_dist.comm import detect
from numpy_dist.comm.base import Bytes, Message, PendingExchange
from numpy_dist.comm.counting import Broadcasts, CountingCommunicator
from numpy_dist.comm.single import SingleCommunicator
from numpy_dist.counting import NO_MATRIX, representatives
from numpy_dist.frames import UserLine, is_internal
from numpy_dist.scaling.counted import AssumedValue, ExpectedCounts, JobPlan, RankPlan
from numpy_dist.scaling.doors import EndlessLoop, NotingDoors, PlanDoors, Values
from numpy_dist.scaling.machine import MachineSpeeds
from numpy_dist.scaling.observer import PlanObserver, TooLargeToPlan
from numpy_dist.scaling.pool import AttributedPool
from numpy_dist.scaling.script_files import ScriptFiles
from numpy_dist.scaling.values import MOST_COPIED, UnrealMemory, unreal_bytes
from numpy_dist.settings import config


class PlanningError(RuntimeError):
    """A program that cannot be planned; the message says why."""


class UnrealCommunicator(CountingCommunicator):
    """A counting communicator that does not fill large messages with zeros, which take the pages of a share."""

    def _allgather_parts(self, part: Bytes, sizes: Sequence[int]) -> Bytes:
        if sum(sizes) > MOST_COPIED:
            return unreal_bytes(sum(sizes))
        return super()._allgather_parts(part, sizes)

    def _start(self, sends: list[Message], receives: list[Message], tag: int) -> PendingExchange:
        return super()._start(sends, [message for message in receives if message[1].nbytes <= MOST_COPIED], tag)


def plan_rank(
    program: Callable[[], object],
    rank: int,
    size: int,
    broadcasts: Broadcasts | None = None,
    value: float = 0.0,
    values: Values | None = None,
    memory: int = int(MachineSpeeds.memory),
    nodes: tuple[int, ...] = (),
) -> RankPlan:
    """What one rank does in a program, which is run here without data. Not collective.

    Parameters
    ----------
    program : callable
    rank, size : int
    broadcasts : Broadcasts, optional
        Of ranks that were planned before, to which this one's are added.
    value : float
        What the result of every reduction is taken to be, as in `counting.count_program`.
    values : Values, optional
        What goes to Python at each line, in order, before `value` does.
    memory : int
        Bytes of memory that the rank has: the engine's budgets are made of it, as on the rank's machine.
    nodes : tuple of int
        The number of the node of each rank; empty where all are on one. Meshes and gathers are made for them.

    Returns
    -------
    RankPlan
        Where the program has raised an error its `ending` says so.
    """
    comm = UnrealCommunicator(rank, size, {} if broadcasts is None else broadcasts)
    comm.nodes = nodes
    return contextvars.copy_context().run(_plan_rank, program, comm, value, values or {}, memory)


def _plan_rank(
    program: Callable[[], object], comm: UnrealCommunicator, value: float, values: Values, nbytes: int
) -> RankPlan:
    detect.reset_rank_local()
    detect.current.set(comm)
    with config(BACKEND="null"):
        rt = engine.runtime()
        observer = PlanObserver(rt)
        doors = PlanDoors(observer.here, values, value, observer.expected)
        memory = UnrealMemory(observer.asking_line, doors, nbytes, observer.expected)
        backend: Any = rt.backend
        backend.value, backend.memory = value, memory
        pool = rt.pool = observer.pool = AttributedPool(memory, observer)
        comm.observer, comm.unwritten = observer, observer.wrote
        engine.have_recorder(rt, observer)
        with doors.opened():
            ending, result = _run(program, rt)
        engine.have_recorder(rt, None)
        found = RankPlan(comm.rank, rt.counters.statements, pool.peak, **vars(comm.counters))
        del result
    found.lines, found.texts, found.held = observer.lines, observer.texts, pool.held_at_peak
    found.largest_exchange, found.largest_gather = observer.largest_exchange, observer.largest_gather
    for line, count in memory.asked.items():
        observer.counts(line).add(values=count)
    lines = dict.fromkeys((*doors.assumed, *doors.taken))
    found.values = [AssumedValue(line, observer.text(line), doors.assumed[line], doors.taken[line]) for line in lines]
    told = observer.expected.told
    found.expected = [ExpectedCounts(line, observer.text(line), what) for line, what in told]
    found.ending = ending
    return found


def _run(program: Callable[[], object], rt: engine.Runtime) -> tuple[str, object]:
    """Run a program to its end; returns how it has ended otherwise, and its result, whose arrays are wanted."""
    result: object = None
    try:
        try:
            result = program()
        except SystemExit as ended:
            rt.program.run()
            code = ended.code
            return ("" if code in (None, 0) else f"the program has ended itself with exit code {code!r}"), None
        rt.program.run()
    except (TooLargeToPlan, EndlessLoop) as problem:
        return str(problem), None
    except Exception as error:  # the user's program may raise anything; what it did before is told
        note = f". {NO_MATRIX}" if isinstance(error, np.linalg.LinAlgError) else ""
        return f"{_error_line(error)}: {type(error).__name__}: {error}{note}", None
    return "", result


def _error_line(error: BaseException) -> str:
    """The line of the user's at which an error was raised."""
    frames = [(frame, line) for frame, line in traceback.walk_tb(error.__traceback__) if not is_internal(frame)]
    if not frames:
        return "numpy_dist"
    frame, line = frames[-1]
    filename = frame.f_code.co_filename
    return f"{UserLine(filename, line)} ({linecache.getline(filename, line).strip()})"


def plan_job(
    program: Callable[[], object],
    size: int,
    value: float = 0.0,
    values: Values | None = None,
    only: Sequence[int] | None = None,
    quiet: bool = True,
    progress: Callable[[str], None] = lambda text: None,
    memory: int = int(MachineSpeeds.memory),
    nodes: tuple[int, ...] = (),
) -> JobPlan:
    """What a job of some ranks does in a program.

    Each rank runs in a child process of its own, one after the other, so that they share nothing that the program
    changes. Not collective; the process must not have started MPI or threads.

    Parameters
    ----------
    program : callable
    size : int
        The number of ranks.
    value, values, memory, nodes
        As in `plan_rank`.
    only : sequence of int, optional
        Which ranks are looked at; default: as in `counting.count_program`.
    quiet : bool
        Whether what the program prints is left out. Errors are printed for rank 0.
    progress : callable, optional
        Is told which rank comes next.

    Raises
    ------
    PlanningError
        If a child process ends before its time.
    """
    chosen = representatives(size) if only is None else sorted(set(only))
    broadcasts: Broadcasts = {}
    planned: list[RankPlan] = []
    every = sorted({0, *chosen})
    for number, rank in enumerate(every, 1):
        progress(f"{size:,} ranks: rank {rank}, {number} of {len(every)}")

        def rank_of_job(rank: int = rank) -> tuple[RankPlan, list[Bytes]]:
            return plan_rank(program, rank, size, broadcasts, value, values, memory, nodes), broadcasts[rank]

        found, broadcasts[rank] = in_child(rank_of_job, f"rank {rank} of {size}", quiet, errors=rank == 0)
        planned.append(found)
    return JobPlan(size, [found for found in planned if found.rank in chosen])


def small_run(program: Callable[[], object], quiet: bool = True) -> Mapping[UserLine, Sequence[object]]:
    """The values that a program gets as scalars on one rank that computes, by line, in order.

    It runs in a child process, with all arrays sharded, as those of large jobs are.

    Raises
    ------
    PlanningError
        If it fails.
    """
    context = contextvars.copy_context()
    found, ending = in_child(lambda: context.run(_noted_values, program), "the small run", quiet, errors=True)
    if ending:
        raise PlanningError(f"the small run, which is to give values, has failed: {ending}")
    return found


def _noted_values(program: Callable[[], object]) -> tuple[dict[UserLine, list[object]], str]:
    detect.reset_rank_local()
    comm = SingleCommunicator()
    comm.unwritten = lambda nbytes: None
    detect.current.set(comm)
    with config(BACKEND="numpy", MIN_SHARD_BYTES=0, AT_ONCE=0):
        rt = engine.runtime()
        observer = PlanObserver(rt)
        doors = NotingDoors(observer.here)
        engine.have_recorder(rt, observer)
        with doors.opened():
            ending, _ = _run(program, rt)
        engine.have_recorder(rt, None)
    return doors.values, ending


def in_child(work: Callable[[], object], name: str, quiet: bool, errors: bool) -> Any:
    """What a function returns in a forked child process.

    Parameters
    ----------
    work : callable
    name : str
        For messages.
    quiet, errors : bool
        Whether stdout is left out, and whether stderr is shown.

    Raises
    ------
    PlanningError
    """
    sys.stdout.flush()
    sys.stderr.flush()
    # A file, not a pipe: what the program has started, and left behind, could keep a pipe open.
    with tempfile.TemporaryFile() as file:
        child = os.fork()
        if not child:
            _answer(work, file, quiet, errors)
        _, status = os.waitpid(child, 0)
        file.seek(0)
        answer = file.read()
    if not answer:
        code = os.waitstatus_to_exitcode(status)
        how = f"by signal {-code}" if code < 0 else f"with exit code {code}"
        raise PlanningError(f"{name} has ended {how} before it was through")
    return pickle.loads(answer)


def _count_written(nbytes: int) -> None:
    """Count what the script would write by itself, on the rank that is being planned."""
    recorder = engine.runtime().recorder
    if recorder is not None:
        recorder.wrote(nbytes)


def _answer(work: Callable[[], object], file: IO[bytes], quiet: bool, errors: bool) -> None:
    """Do the work of a child process, and end it; what the program has registered for that is not run."""
    code, files = 1, ScriptFiles(_count_written)
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        sys.dont_write_bytecode = True
        files.leave_out()
        for stream, shown in ((1, not quiet), (2, errors)):
            if not shown:
                os.dup2(nowhere, stream)
        answer = pickle.dumps(work(), protocol=5)
        sys.stdout.flush()
        sys.stderr.flush()
        file.write(answer)
        file.flush()
        code = 0
    except BaseException:  # whatever it is must not go on into what the parent does
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        files.tidy()
        os._exit(code)
