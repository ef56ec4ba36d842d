"""Recording a profile: `numpy_dist.profile` for a block, and the setting ``PROFILE`` for a whole program."""

from __future__ import annotations

import atexit
import gc
import os
import socket
import sys
import threading
import time
from types import TracebackType
from typing import TYPE_CHECKING, Self

from numpy_dist.comm.portable import agree, on_root
from numpy_dist.engine.data.gather import have_recorder
from numpy_dist.engine.runtime import runtime
from numpy_dist.parallel.threads import thread_watch
from numpy_dist.profiling import folder as folders
from numpy_dist.profiling.copy_speed import copy_speed
from numpy_dist.profiling.log import FORMAT, LogEnd, LogHeader, MemorySpeed, to_line
from numpy_dist.profiling.recorder import Recorder, clock
from numpy_dist.settings import PREFIX, config

if TYPE_CHECKING:
    from numpy_dist.engine.runtime import Runtime

_WRITE_SECONDS = 0.1  # between two looks at what is to be written: what a rank may lose when it is killed


def profile(folder: str | os.PathLike[str]) -> Profile:
    """A profile of a block: what each rank did when, written to a folder when the block ends.

    ``with numpy_dist.profile("out"):`` writes ``out/profile.html``, a page with a timeline of the ranks, the most
    expensive lines, who waits for whom, and advice; ``out/trace.json``, for Perfetto and chrome://tracing; and a log of
    each rank, ``out/rank-00000.jsonl`` and so on. ``numpy-dist run --profile out script.py``, or the environment
    variable ``NUMPY_DIST_PROFILE=out``, do the same for a whole script. See docs/profile.md.

    All ranks enter the block and leave it: both execute what is pending. Entering ends with an allgather of one small
    message, leaving with an allgather and a broadcast. When an exception leaves the block nothing is communicated;
    the logs are there, and ``numpy-dist profile merge out`` makes the page of them.

    Parameters
    ----------
    folder : path
        On a file system of all ranks. It is made if it is not there; an earlier profile in it is replaced.

    Returns
    -------
    Profile
        A context manager, to be entered once. Within the block of another profile it takes that one's place.

    Raises
    ------
    OSError
        On every rank, when the block is entered or left, if one of them cannot write there.

    Examples
    --------
    >>> import tempfile
    >>> import numpy_dist as np
    >>> with tempfile.TemporaryDirectory() as out, np.profile(out):
    ...     total = float(np.sqrt(np.ones(100_000)).sum())
    """
    return Profile(folder)


class Profile:
    """The block of a profile; see `profile`.

    Attributes
    ----------
    folder : str
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = os.path.abspath(os.fspath(folder))
        self._recording: Recording | None = None

    def __enter__(self) -> Self:
        if self._recording is not None:
            raise RuntimeError("a profile is of one block")
        rt = runtime()
        rt.program.run()
        problem: OSError | None = None
        try:
            self._recording = Recording(rt, self.folder)
        except OSError as error:
            problem = error
        try:
            agree(problem, rt.comm)
        except BaseException:
            if self._recording is not None:
                self._recording.discard()
            raise
        assert self._recording is not None
        self._recording.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        recording = self._recording
        assert recording is not None
        rt, problem = recording.runtime, None
        try:
            if error is None:  # else other ranks may not come here
                rt.program.run()
        finally:
            problem = recording.end()
        if error is None:
            agree(problem, rt.comm)
            on_root(lambda: folders.write_results(self.folder), rt.comm)
        elif problem is None and folders.is_complete(self.folder, rt.size):
            folders.write_results(self.folder)


class Recording:
    """The log of one rank while it is written. Nothing is recorded before `start`.

    A thread writes some times a second, so that little is lost when the rank is killed.

    Parameters
    ----------
    runtime : Runtime
    folder : str

    Raises
    ------
    OSError
        If the log cannot be written.
    """

    def __init__(self, runtime: Runtime, folder: str) -> None:
        self.runtime, self.folder = runtime, folder
        speed: list[MemorySpeed] = []  # measured before the clock of the profile begins
        if runtime.backend.memory.on_host and runtime.computes:
            speed.append(MemorySpeed(copy_speed(getattr(runtime.backend, "threads", 1))))
        self.recorder = Recorder(runtime)
        self._pid = os.getpid()
        self._ended = threading.Event()
        self._problem: OSError | None = None
        self._before: tuple[object, object] = (None, None)
        counters = runtime.comm.counters
        self._counts = counters.messages, counters.bytes, counters.collectives
        if runtime.rank:
            os.makedirs(folder, exist_ok=True)
        else:  # other ranks replace their logs themselves
            folders.prepare(folder, runtime.size)
        self._file = open(folders.log_path(folder, runtime.rank), "w", encoding="utf-8")
        try:
            self._write(to_line(_header(runtime)) + "".join(map(to_line, speed)))
        except OSError:
            self._file.close()
            raise
        self._thread = threading.Thread(target=self._write_on, name="numpy_dist profile", daemon=True)

    def start(self) -> None:
        """Record from now on."""
        rt, recorder = self.runtime, self.recorder
        counters = rt.comm.counters
        self._counts = counters.messages, counters.bytes, counters.collectives
        self._before = have_recorder(rt, recorder), rt.comm.observer
        rt.comm.observer = recorder
        compiler = getattr(rt.backend, "compiler", None)
        if compiler is not None and compiler.observer is None:
            compiler.observer = recorder
        _watch_workers(rt, recorder.worker_ran)
        thread_watch.set(recorder.other_thread)
        gc.callbacks.append(recorder.collected)
        self._thread.start()

    def discard(self) -> None:
        """Leave no log, where nothing was recorded yet."""
        self._file.close()
        os.remove(self._file.name)

    def end(self) -> OSError | None:
        """Record nothing more, and close the log; returns what has gone wrong."""
        if self._ended.is_set() or os.getpid() != self._pid:
            return self._problem
        rt, recorder = self.runtime, self.recorder
        if recorder.collected in gc.callbacks:
            gc.callbacks.remove(recorder.collected)
        before, rt.comm.observer = self._before
        have_recorder(rt, before)
        compiler = getattr(rt.backend, "compiler", None)
        if compiler is not None and compiler.observer is recorder:
            compiler.look()
            compiler.observer = None
        outer = before.worker_ran if isinstance(before, Recorder) else None
        _watch_workers(rt, outer)
        thread_watch.set(before.other_thread if isinstance(before, Recorder) else None)
        recorder.end_threads()
        self._ended.set()
        self._thread.join()
        counters = rt.comm.counters
        now = counters.messages, counters.bytes, counters.collectives
        messages, nbytes, collectives = (after - before for after, before in zip(now, self._counts, strict=True))
        recorder.records.append(LogEnd(clock(), messages, nbytes, collectives, rt.pool.peak, recorder.left_out))
        self._take_away()
        try:
            self._file.close()
        except OSError as problem:
            self._problem = self._problem or problem
        return self._problem

    def _write_on(self) -> None:
        while not self._ended.wait(_WRITE_SECONDS):
            self._take_away()

    def _take_away(self) -> None:
        """Write what was recorded."""
        records = self.recorder.records
        if self._problem is not None:
            records.clear()
            return
        lines, begun = [], clock()
        while records:
            lines.append(to_line(records.popleft()))
        try:
            self._write("".join(lines))
        except OSError as problem:
            self._problem = problem
        if not self._ended.is_set():
            self.recorder.wrote(begun)

    def _write(self, text: str) -> None:
        self._file.write(text)
        self._file.flush()


def _watch_workers(rt: Runtime, told: object) -> None:
    """Have somebody told of the threads that run the rank's kernels, where there are such threads; or nobody."""
    watch = getattr(getattr(rt.backend, "pool", None), "watch", None)
    if watch is not None:
        watch(told)


def _header(rt: Runtime) -> LogHeader:
    command, backend, host = " ".join(getattr(sys, "argv", [""])), str(rt.backend.name), socket.gethostname()
    now, wall = clock(), time.time_ns()
    return LogHeader(FORMAT, rt.rank, rt.size, now, wall, _machine(), host, backend, os.getcwd(), command, os.getpid())


def _machine() -> str:
    """What is the same for processes with one clock."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return socket.gethostname()


def begin(rt: Runtime) -> None:
    """Record a whole program, from the first distributed array of a rank to its end. Not collective."""
    folder = config.PROFILE
    os.environ.pop(f"{PREFIX}PROFILE", None)  # programs that this one starts are not part of it
    try:
        recording = Recording(rt, folder)
    except OSError as problem:
        print(f"numpy_dist: rank {rt.rank} writes no profile: {problem}", file=sys.stderr)
        return
    recording.start()
    atexit.register(_end_program, recording)


def _end_program(recording: Recording) -> None:
    """The program has ended. The last rank makes the page; it does not wait for others, which may never come."""
    problem, folder = recording.end(), recording.folder
    if os.getpid() != recording._pid:
        return
    try:
        if problem is not None:
            raise problem
        if folders.is_complete(folder, recording.runtime.size) and (page := folders.write_first_results(folder)):
            print(f"numpy_dist: the profile is in {page}", file=sys.stderr)
    except (OSError, ValueError) as error:
        print(f"numpy_dist: the profile of rank {recording.runtime.rank} is not complete: {error}", file=sys.stderr)
