"""The thread pool that runs kernels on all cores of a rank; `launch` is what its threads run."""

from __future__ import annotations

import ctypes
import os
import struct
import sys
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from typing import Protocol

from numpy_dist.backends.compiled.kernel_files import kernel_file
from numpy_dist.backends.compiled.threads_count import spare_cpus

__all__ = ["ThreadPool"]

KERNEL = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)

# Offsets in bytes, as in launch.py, which the main process does not import (it would import Numba).
_CONSTANTS, _CLOCK, _SLOTS, _SLOT, _LOCK, _ALIGNMENT = 648, 688, 768, 128, 8, 128
_NOTED = struct.Struct("=4q")
_NOTED_AT = 16  # in a slot
_CLOSE = -1
_DESCRIPTION = struct.Struct("=5q")
_STOPS = _DESCRIPTION.size

# A launch has at most so many ranges: far more than threads, few enough for a list of stops of a fixed size.
MOST_RANGES = 4096
SPIN_SECONDS = 400e-6
AWAKE_SECONDS = 300e-6  # after a launch: less, so that workers do not park meanwhile
JOIN_SECONDS = 1.0
_KEPT_FUNCTIONS = 1024


class KernelProvider(Protocol):
    """What the pool needs of the compiler: `request` a source, and ask for the `address` of its kernel."""

    def accompany(self, source: str) -> object: ...

    def request(self, source: str) -> object: ...

    def address(self, source: str) -> int | None: ...


WorkerWatch = Callable[[int, int, int, int, int], None]
"""Is told of a worker in a launch: its number, when it began and ended, how long it worked (in ns), its ranges."""


def launch_source() -> str:
    """The source of the kernel that the threads run."""
    return kernel_file("launch")


class Request:
    """The description of one launch and room for its stops, at a fixed address."""

    __slots__ = ("address", "memory")

    def __init__(self) -> None:
        self.memory = ctypes.create_string_buffer(_STOPS + 16 * MOST_RANGES)
        self.address = ctypes.addressof(self.memory)

    def stops(self, count: int) -> list[tuple[int, int]]:
        """The ranges that were not done, ascending: threads note them in any order."""
        words = struct.unpack_from(f"={2 * count}q", self.memory, _STOPS)
        return sorted(zip(words[::2], words[1::2], strict=True))


class Shared:
    """What the threads of a pool have in common. They hold this and not the pool, which may then be collected.

    Attributes
    ----------
    state : int
        The address of the words that `launch` works with.
    function : callable
        The kernel of `launch`; while somebody watches, a function that calls it.
    """

    def __init__(self, workers: int, address: int) -> None:
        self.memory = ctypes.create_string_buffer(_SLOTS + _SLOT * workers + _ALIGNMENT)
        self.state = -(-ctypes.addressof(self.memory) // _ALIGNMENT) * _ALIGNMENT
        self.kernel: Callable[[int, int, int], int] = KERNEL(address)
        self.function: Callable[[int, int, int], int] = self.kernel
        self.threads: list[threading.Thread] = []
        self.workers = workers
        self.process = os.getpid()
        python = ctypes.pythonapi
        allocate = ctypes.PYFUNCTYPE(ctypes.c_void_p)(("PyThread_allocate_lock", python))
        acquire = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int)(("PyThread_acquire_lock", python))
        functions = (
            _address(python.PyThread_acquire_lock),
            _address(python.PyThread_release_lock),
            _address(ctypes.CDLL(None).sched_yield),
        )
        self.store(_CONSTANTS, workers, *functions)
        for slot in range(workers):
            lock = allocate()
            if lock is None:
                raise MemoryError
            acquire(lock, 1)  # never freed: a worker that is late may still be about to wait for it
            self.store(_SLOTS + _SLOT * slot + _LOCK, lock)
        self.store(_CONSTANTS + 32, self.spins())

    def store(self, offset: int, *words: int) -> None:
        """Store words of the state, before any thread uses it."""
        values = (ctypes.c_int64 * len(words))(*words)
        ctypes.memmove(self.state + offset, values, ctypes.sizeof(values))

    def spins(self) -> int:
        """How many turns of the waiting loop take `SPIN_SECONDS`."""
        turns, times = 1000, []
        for _ in range(4):
            begin = time.perf_counter()
            self.function(self.state, 0, _CLOSE - turns)
            times.append(time.perf_counter() - begin)
        return max(1, int(SPIN_SECONDS / min(times) * turns))

    def watch(self, told: WorkerWatch | None) -> None:
        """Have somebody told of what workers do in each launch, from now on; or nobody."""
        if not sys.platform.startswith("linux"):  # Python's clock is another one
            return
        kernel = self.kernel
        if told is None:
            self.function = kernel
            self.store(_CLOCK, 0)
            return

        def launch(state: int, request: int, role: int) -> int:
            found = kernel(state, request, role)
            if request and found >= 0:  # all ranges are done: no worker writes to its slot
                for slot in range(self.workers):
                    place = self.state + _SLOTS + _SLOT * slot + _NOTED_AT
                    ranges, begin, end, busy = _NOTED.unpack(ctypes.string_at(place, _NOTED.size))
                    if ranges:
                        ctypes.memset(place, 0, 8)
                        told(slot, begin, end, busy, ranges)
            return found

        self.store(_CLOCK, _address(ctypes.CDLL(None).clock_gettime))
        self.function = launch

    def start(self, pin: bool) -> None:
        """Start the workers, or as many as the system lets us have."""
        cpus = spare_cpus(self.workers) if pin else [None] * self.workers
        for slot, cpu in enumerate(cpus):
            thread = threading.Thread(
                target=self._work, args=(slot, cpu), name=f"numpy_dist-worker-{slot}", daemon=True
            )
            self.threads.append(thread)
            try:
                thread.start()
            except RuntimeError:  # no more threads, or the interpreter is about to end
                self.threads.pop()
                return

    def _work(self, slot: int, cpu: int | None) -> None:
        """What a worker's thread does: all but this is in compiled code, and outside of the interpreter."""
        if cpu is not None:
            try:
                os.sched_setaffinity(0, (cpu,))  # 0 is this thread alone
            except OSError as error:
                print(f"numpy_dist: worker {slot} is not pinned to cpu {cpu}: {error}", file=sys.stderr)
        self.kernel(self.state, 0, slot)

    def close(self) -> None:
        """End the workers, as `weakref.finalize` does too when the pool is collected, or the interpreter ends."""
        if os.getpid() != self.process:
            return
        self.function(self.state, 0, _CLOSE)
        for thread in self.threads:
            # A collector that runs in a worker may have come here.
            if thread.is_alive() and thread is not threading.current_thread():
                thread.join(JOIN_SECONDS)


def _address(function: object) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0  # type: ignore[arg-type]


class ThreadPool:
    """Runs kernels on several threads.

    A kernel is ``kernel(block, first, last) -> int64``, all of them 64-bit integers: it computes the units
    ``first <= unit < last`` of the loop nest that the words at `block` describe. Any range may be computed by any
    thread at any time. It returns 0, or, where it stopped before `unit`, ``unit + 1``.

    Parameters
    ----------
    count : int
        The number of threads, the calling one included.
    compiler : KernelProvider
        Compiles what the workers run. Until that is done, kernels run on the calling thread alone.
    pin : bool, optional
        Whether each worker is bound to a cpu of its own; the calling thread never is. No gain was measured on two
        cores, and a bound worker cannot leave a cpu that somebody else takes.

    Notes
    -----
    Workers are started by the first launch that can use them. They sleep when nothing was launched for 400
    microseconds. `run` may be called by several threads: all but one of them then compute alone. So does a forked
    child, which has no workers.
    """

    def __init__(self, count: int, compiler: KernelProvider, *, pin: bool = False) -> None:
        self.count = max(1, count)
        self._compiler = compiler
        self._pin = pin
        self._shared: Shared | None = None
        self._alone = self.count == 1
        self._requested = ""
        self._requests: deque[Request] = deque()
        self._functions: dict[int, Callable[[int, int, int], int]] = {}
        self._starting = threading.RLock()
        self._asked = 0.0  # when there last was work for several threads
        self._told: WorkerWatch | None = None
        if not self._alone:
            compiler.accompany(launch_source())
        _pools.add(self)

    def run(self, address: int, block: int, units: int, grain: int) -> list[tuple[int, int]]:
        """Compute the units ``0 <= unit < units`` with the kernel at `address`, and return when this is done.

        Parameters
        ----------
        address, block : int
            The kernel and its first argument.
        units, grain : int
            Threads take ranges of `grain` units, or of more where the ranges would be more than `MOST_RANGES`.

        Returns
        -------
        list of tuple of int
            The ranges ``(first, end)`` that were not computed, since a kernel stopped at `first`: ascending, and the
            same for any number of threads.
        """
        if 0 < units <= grain and address in self._functions:  # little work, as there is much of
            stop = self._functions[address](block, 0, units)
            return [] if stop == 0 else [(stop - 1, units)]
        if grain < 1:
            raise ValueError(f"grain={grain} must be positive")
        grain = max(grain, -(-units // MOST_RANGES))
        if units <= grain or self._alone or (self._shared is None and not self._start()):
            return self._run_alone(address, block, units, grain)
        shared = self._shared
        assert shared is not None
        try:
            request = self._requests.pop()
        except IndexError:
            request = Request()
        _DESCRIPTION.pack_into(request.memory, 0, address, block, units, grain, 0)
        stops = shared.function(shared.state, request.address, 0)
        self._asked = time.perf_counter()
        found = request.stops(stops) if stops > 0 else []
        self._requests.append(request)
        return found if stops >= 0 else self._run_alone(address, block, units, grain)  # another thread is launching

    def watch(self, told: WorkerWatch | None) -> None:
        """Have somebody told of what each worker does in a launch, once it is over; or nobody.

        Nothing is asked in a launch of which nobody is told.
        """
        with self._starting:
            self._told = told
            if self._shared is not None:
                self._shared.watch(told)

    def awake(self) -> bool:
        """Whether workers are probably awake, so that even little work may be divided; the caller has some."""
        last, self._asked = self._asked, time.perf_counter()
        return self._asked - last < AWAKE_SECONDS and not self._alone

    @property
    def threads(self) -> int:
        """How many threads there are at present, the calling one included."""
        if self._alone or self._shared is None:
            return 1
        return 1 + sum(thread.is_alive() for thread in self._shared.threads)

    def close(self) -> None:
        """End the workers; from here on kernels run on the calling thread."""
        self._alone = True
        if self._shared is not None:
            self._finalizer()

    def _run_alone(self, address: int, block: int, units: int, grain: int) -> list[tuple[int, int]]:
        function = self._functions.get(address)
        if function is None:
            if len(self._functions) >= _KEPT_FUNCTIONS:
                self._functions.clear()
            function = self._functions[address] = KERNEL(address)
        stops = []
        first = 0
        while first < units:
            stop = function(block, first, units)
            if stop == 0:
                break
            # Go on where another thread would have gone on, so that the ranges are the same.
            first = min(units, (stop - 1) // grain * grain + grain)
            stops.append((stop - 1, first))
        return stops

    def _start(self) -> bool:
        """Start the workers if that is possible now; returns whether there are any."""
        if not self._requested:
            source = launch_source()
            self._compiler.request(source)
            self._requested = source
        address = self._compiler.address(self._requested)
        if address is None:
            return False
        with self._starting:
            if self._shared is None and not self._alone:
                shared = Shared(self.count - 1, address)
                # Also at the end of the interpreter, while threads may still be joined.
                self._finalizer = weakref.finalize(self, shared.close)
                shared.start(self._pin)
                if self._told is not None:
                    shared.watch(self._told)
                self._shared = shared
        return self._shared is not None

    def _forget_threads(self) -> None:
        """In a forked child, which has only the thread that forked."""
        self._alone = True


_pools: weakref.WeakSet[ThreadPool] = weakref.WeakSet()


def _after_fork() -> None:
    for pool in list(_pools):
        pool._forget_threads()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
