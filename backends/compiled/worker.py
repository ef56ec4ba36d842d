"""The process that compiles: kernels' sources come in by stdin, their machine code goes to the cache.

It is run as a file, without `site` and without the package around it, so that it starts fast and that nothing of MPI
is loaded. It ends when it is told to, or when it has been idle for long. Where its parent ends first, it compiles what
was asked for to its end, for a minute at most, and no longer than the scheduler's job that it belongs to.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import linecache
import math
import os
import select
import signal
import sys
import threading
import time
import types
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from llvmlite.binding import ModuleRef, TargetMachine

    from numpy_dist.backends.store import Store

SIGNATURE = "int64(int64,int64,int64)"
_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": False, "boundscheck": False}
NICENESS = 5  # once nobody waits for it; before, the program is slow until its kernels are there
MOST_SECONDS = 60.0  # after the parent's end
_OBJECTS_BETWEEN_COLLECTIONS = 100_000  # Numba makes many objects that stay; looking at them takes a tenth of its time
_PR_SET_NAME = 15
_IDLE_SECONDS = 30.0
_HEARTBEAT_SECONDS = 20.0

_WRAPPER = """
declare i32 @"{native}"(ptr, ptr, i64, i64, i64)
define i64 @"{symbol}"(i64 %block, i64 %first, i64 %last) {{
  %result = alloca i64
  %error = alloca ptr
  %status = call i32 @"{native}"(ptr %result, ptr %error, i64 %block, i64 %first, i64 %last)
  %value = load i64, ptr %result
  ret i64 %value
}}
"""


class SourceError(RuntimeError):
    """The kernel cannot be compiled, and never will."""


def compile_kernel(source: str, symbol: str) -> bytes:
    """The kernel of a source, as `loader.pack` packs it.

    Raises
    ------
    SourceError
        Whatever is wrong with the source; the message says what.
    """
    from numpy_dist.backends.compiled import elf, loader

    code = object_file(source, symbol)
    try:
        made = elf.ObjectFile(code)
        image = made.image(symbol)
    except elf.FormatError as problem:  # LLVM ends the process that loads an object with a symbol it does not find
        raise SourceError(str(problem)) from problem
    externals = made.undefined()
    missing = [name for name in externals if not loader.resolvable(name)]
    if missing:
        raise SourceError(f"the kernel calls {', '.join(missing)}, which a process without Numba does not have")
    return loader.pack(symbol, externals, code, image)


def object_file(source: str, symbol: str) -> bytes:
    """What Numba and LLVM make of a source. Raises `SourceError`."""
    import llvmlite.binding as llvm
    import numba

    from numpy_dist.backends.compiled import linker

    filename = f"<{symbol}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    namespace: dict[str, Any] = {"__name__": symbol}
    try:
        exec(compile(source, filename, "exec"), namespace)
        function = numba.cfunc(SIGNATURE, **_OPTIONS)(namespace["kernel"])
        module = llvm.parse_assembly(function.inspect_llvm())
    except MemoryError:
        raise
    except Exception as problem:
        raise SourceError(f"{type(problem).__name__}: {problem}") from problem
    finally:
        del linecache.cache[filename]
    native = function.native_name.removeprefix("cfunc.")
    _check_returns(module, native)
    machine = linker.target_machine()
    _keep_only(module, native, symbol, machine)
    return machine.emit_object(module)


def _check_returns(module: ModuleRef, native: str) -> None:
    """Refuse a kernel that could raise: nobody would see the exception."""
    for block in module.get_function(native).blocks:
        for instruction in block.instructions:
            if instruction.opcode == "ret" and str(next(instruction.operands)).split() != ["i32", "0"]:
                raise SourceError("the kernel can raise an exception")


def _keep_only(module: ModuleRef, native: str, symbol: str, machine: TargetMachine) -> None:
    """Leave one function, `symbol`, that returns the kernel's value, and what it needs.

    Numba's own C function, which this replaces, calls Python to report exceptions.
    """
    import llvmlite.binding as llvm

    module.link_in(llvm.parse_assembly(_WRAPPER.format(native=native, symbol=symbol)))
    for function in module.functions:
        if not function.is_declaration and function.name != symbol:
            function.linkage = "internal"
    for variable in module.global_variables:
        if not variable.is_declaration and str(variable.linkage.name) != "common":
            variable.linkage = "internal"
    passes = llvm.create_new_module_pass_manager()
    passes.add_always_inliner_pass()
    passes.add_global_dead_code_eliminate_pass()
    passes.run(module, llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options()))


class Queue:
    """Requests by key, that of the largest gain first. One thread puts them in, another one takes them out."""

    def __init__(self) -> None:
        self._waiting: dict[str, tuple[float, str]] = {}  # gain and source by key, in the order of their first request
        self._changed = threading.Condition()

    def put(self, key: str, gain: float, source: str | None = None) -> None:
        """Add a request, or say what one gains that waits already (without its source)."""
        with self._changed:
            if source is None:
                if key not in self._waiting:
                    return
                source = self._waiting[key][1]
            self._waiting[key] = gain, source
            self._changed.notify()

    def take(self) -> tuple[str, str]:
        """Key and source of the request that gains most; waits for one."""
        with self._changed:
            while not self._waiting:
                self._changed.wait()
            key = max(self._waiting, key=lambda key: self._waiting[key][0])  # the first of several
            return key, self._waiting.pop(key)[1]


class Worker:
    """Reads requests, one JSON object a line, in one thread, and compiles in the other."""

    def __init__(self, source: int, answers: int) -> None:
        self._source = source
        self._answers = answers
        self._parent = os.getppid()
        self._ready = threading.Event()  # to import modules
        self._waiting = Queue()
        self._held: set[str] = set()  # keys whose locks are ours
        self._store: Store | None = None
        self._owner = ""
        self._after = 0.0  # seconds to go on for after the parent's end
        self._job: tuple[int, str] | None = None  # what ends with the job

    def run(self) -> None:
        """Serve until the reader ends the process."""
        threading.Thread(target=self._read, daemon=True).start()
        self._ready.wait()
        with contextlib.suppress(Exception):  # a kernel that needs it will tell
            import numba  # noqa: F401 - before there is anything to do
        while True:
            self._serve(*self._waiting.take())

    def _read(self) -> None:
        buffer = b""
        last_request = last_beat = time.monotonic()
        while True:
            ready, _, _ = select.select([self._source], [], [], 0.5)
            now = time.monotonic()
            if ready:
                data = os.read(self._source, 1 << 20)
                if not data:
                    break
                *lines, buffer = (buffer + data).split(b"\n")
                for line in lines:
                    self._take(json.loads(line))
                last_request = now
            elif os.getppid() != self._parent:
                break
            elif not self._held and now - last_request > _IDLE_SECONDS:
                break
            last_beat = self._beat(last_beat)
        self._outlive()
        self._end()

    def _outlive(self) -> None:
        """Go on without the parent until all is done, the time is over, or the job ends."""
        end = time.monotonic() + min(self._after, MOST_SECONDS)
        last_beat = -math.inf
        if self._store is None or not self._held or time.monotonic() >= end:
            return
        from numpy_dist.backends import jobs

        os.nice(NICENESS)
        self._store.makes = False  # who has removed the folder wants it no more
        while self._held and time.monotonic() < end and (self._job is None or jobs.process(self._job[0]) == self._job):
            last_beat = self._beat(last_beat)
            time.sleep(0.1)

    def _beat(self, last: float) -> float:
        """Show other machines that the owner of locks lives, from time to time; returns when that was."""
        now = time.monotonic()
        if now - last <= _HEARTBEAT_SECONDS:
            return last
        for key in list(self._held):
            if self._store is not None:
                self._store.refresh(key, self._owner)
        return now

    def _end(self) -> None:
        for key in list(self._held):
            if self._store is not None:
                self._store.unlock(key, self._owner)
        os._exit(0)  # also out of the middle of a compilation

    def _take(self, message: dict[str, Any]) -> None:
        if self._store is None:
            sys.path[:] = message["path"]
            from numpy_dist.backends import store

            self._store = store.Store(message["directory"], message["limit"], ancestors=message["ancestors"])
            self._owner = store.describe_owner(os.getpid())
            self._after = message["after"]
            self._job = None if message["job"] is None else (message["job"][0], message["job"][1])
            self._ready.set()
        elif "end" in message:
            self._end()
        else:
            if "source" in message:
                self._held.add(message["key"])
            self._waiting.put(message["key"], message["gain"], message.get("source"))

    def _serve(self, key: str, source: str) -> None:
        assert self._store is not None
        begun = time.perf_counter_ns()
        self._say({"key": key, "status": "begun"})
        answer = {"key": key, "status": "done"}
        try:
            content = reason = None
            if self._store.read(key) is None:
                content = compile_kernel(source, "kernel_" + key[:32])
        except SourceError as problem:
            reason = str(problem)
            answer |= {"status": "failed", "reason": reason}
        except Exception as problem:  # not the kernel's fault: no memory, a Numba that cannot be imported
            answer |= {"status": "broken", "reason": f"{type(problem).__name__}: {problem}"}
        try:
            if content is not None:
                self._store.write(key, content)
            elif reason is not None:
                self._store.write_failure(key, reason)
        except OSError as problem:
            answer |= {"status": "unwritable", "reason": str(problem)}
        self._store.unlock(key, self._owner)
        self._say(answer | {"times": f"{begun} {time.perf_counter_ns()}"})
        self._held.discard(key)

    def _say(self, answer: dict[str, str]) -> None:
        with contextlib.suppress(BrokenPipeError):  # the parent has ended
            os.write(self._answers, json.dumps(answer).encode() + b"\n")


def _stand_alone() -> None:
    """Make this folder's modules importable by their names, without running the package's `__init__`."""
    folder = os.path.dirname(os.path.abspath(__file__))
    above = os.path.dirname(folder)
    paths = {"numpy_dist": [], "numpy_dist.backends": [above], "numpy_dist.backends.compiled": [folder]}
    for name, path in paths.items():
        package = types.ModuleType(name)
        package.__path__ = path
        sys.modules[name] = package


def _take_name() -> None:
    """Let launchers see what this process is: it may outlive a job's ranks for a while."""
    from numpy_dist.backends import jobs

    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(_PR_SET_NAME, jobs.NAME.encode(), 0, 0, 0)


def main() -> None:
    """Serve the process that started this one."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C at the terminal is for the script; our stdin tells the end
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS)
    answers = os.dup(1)
    os.dup2(2, 1)  # whatever prints must not answer
    _stand_alone()
    _take_name()
    Worker(0, answers).run()


if __name__ == "__main__":
    main()
