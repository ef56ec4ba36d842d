"""From a kernel's source to its address: at once where the cache has it, else by a process that compiles meanwhile."""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

from numpy_dist.backends import store as stores
from numpy_dist.backends.compiled import keys

if TYPE_CHECKING:
    from numpy_dist.backends.compiled.child import Child

_LOOK_SECONDS = 0.004  # between looks for a kernel that is not there yet
_LEADER_SECONDS = 0.25  # that another rank of this machine, which has a child, gets to take up a kernel before us
_STUCK_SECONDS = 120.0  # of a child that says nothing while it has work
_TRIES = 2
_MOST_SOURCES = 2048  # whose keys are known: sources of loops that nobody compiles
_MOST_KERNELS = 500  # of one child, whose memory grows by some hundred kilobytes with each
_DEATHS = 6  # of children in a row, without any answer: then there will be no more of them


class CompileError(RuntimeError):
    """A kernel cannot be compiled; the message says why."""


class CompileObserver(Protocol):
    """Who is told of kernels that are compiled."""

    def compiled(self, seconds: float, failure: str) -> object:
        """A kernel has come that was wanted for some time, or has failed, for the reason that is given."""

    def child_compiled(self, pid: int, begin: int, end: int) -> object:
        """The child with this number compiled one between two times of `time.perf_counter_ns`."""


class Compiler:
    """Kernels by source. It may be used by several threads, and is of no use after `close`.

    Parameters
    ----------
    directory : str
        The cache. Where it cannot be used, or might hold other people's code, kernels are kept for this process only,
        and `warning` says why.
    limit : int
        Bytes that the cache may take.
    after : float
        For how many seconds what was requested is compiled on when this process has ended (see `Child`).

    Attributes
    ----------
    observer : CompileObserver or None
        Told of kernels that were wanted.
    """

    observer: CompileObserver | None = None

    def __init__(self, directory: str, limit: int, after: float = 0.0) -> None:
        self._directory = directory
        self._limit = limit
        self._after = after
        self._lock = threading.RLock()
        self._store: stores.Store | None = None
        self._warning: str | None = None
        self._refused = False  # whether a file of the cache was not loaded, which is said once
        self._addresses: dict[str, int] = {}
        self._failures: dict[str, str] = {}
        self._keys: dict[str, str] = {}
        self._next_look: dict[str, float] = {}
        self._wanted: dict[str, float] = {}  # requested, not there yet: when we compile it ourselves at the earliest
        self._since: dict[str, float] = {}  # when a kernel was first wanted
        self._gains: dict[str, float] = {}  # of what is wanted
        self._submitted: dict[str, str] = {}  # sources by key, in the order in which our child gets them
        self._begun: str | None = None  # the key of what our child compiles
        self._tries: dict[str, int] = {}
        self._deaths = 0
        self._compiled = 0  # by the present child
        self._unable = ""  # why no child is of use
        self._companion = ""
        self._child: Child | None = None
        self._closed = False

    # What users call

    def accompany(self, source: str) -> None:
        """Have a kernel compiled before any other one is: the others are of full use only with this one.

        A script that ends as soon as its own kernels are there would else never leave it in the cache.
        """
        self._companion = source

    def prepare(self) -> None:
        """Have a child ready where the cache shows that there will be something to compile; returns at once.

        That takes it longer than compiling a kernel. Where the cache has what accompanies all kernels, others may be
        there as well, and no child is started before one is missed.
        """
        with self._lock:
            if self._companion:
                self.request(self._companion)
            elif not self._unable and self._open().is_empty():
                try:
                    if self._leads():
                        self._start_child()
                except OSError as problem:
                    self._without_cache(problem)

    def request(self, source: str, gain: float = math.inf) -> None:
        """Have a kernel compiled, if it is not there; returns at once.

        Parameters
        ----------
        source : str
        gain : float
            What it is worth in comparison with others, such as the seconds that were spent without it. Those that are
            worth more are compiled first. A later request may say more.
        """
        if source in self._addresses or source in self._failures or self._gains.get(source, -1.0) >= gain:
            return
        with self._lock:
            if source in self._wanted:
                self._gains[source] = gain
                if self._has_child() and (key := self._key(source)) in self._submitted:
                    assert self._child is not None
                    self._child.weigh(key, gain)
            elif self._load(source) is None and source not in self._failures:
                if self._companion and source != self._companion:
                    self.request(self._companion)
                self._wanted[source], self._gains[source] = 0.0, gain
                self._attend(source)

    def address(self, source: str) -> int | None:
        """The kernel's address, or None where it is not there yet (or cannot be compiled: see `failed`)."""
        found = self._addresses.get(source)
        if found is not None or source in self._failures:
            return found
        now = time.monotonic()
        if now < self._next_look.get(source, 0.0):
            return None
        with self._lock:
            self._next_look[source] = now + _LOOK_SECONDS
            self._listen()
            found = self._load(source)
            if found is None and source in self._wanted:
                self._attend(source)
            return found

    def compile(self, source: str) -> int:
        """The kernel's address; waits for it, and for the one that accompanies it.

        Raises
        ------
        CompileError
            Where it cannot be compiled.
        """
        self.request(source)
        if self._companion:
            self.request(self._companion)
            self._wait(self._companion)
        found = self._wait(source)
        if found is None:
            raise CompileError(self._failures[source])
        return found

    def _wait(self, source: str) -> int | None:
        """The address of a kernel that was requested, as soon as it is there; None as soon as it has failed."""
        pause = 0.001
        while (found := self.address(source)) is None and source not in self._failures:
            time.sleep(pause)
            pause = min(0.005, pause * 1.5)
        return found

    def failed(self, source: str) -> str | None:
        """Why a kernel cannot be compiled; None where that is not known."""
        return self._failures.get(source)

    def look(self) -> None:
        """Hear what the child has done, of which the `observer` is told; returns at once."""
        with self._lock:
            self._listen()

    def warning(self) -> str | None:
        """What a user should know about the cache; said once, then None."""
        with self._lock:
            said, self._warning = self._warning, None
            if said is None and not self._refused and self._store is not None:
                said = self._store.refusal()
                self._refused = said is not None
            return said

    def close(self) -> None:
        """End the child. Kernels that are not there yet will not come; addresses stay valid."""
        with self._lock:
            self._closed = True
            for source in self._wanted:
                self._failures.setdefault(source, "the compiler was closed")
            self._wanted.clear()
            self._gains.clear()
            self._drop_child()

    # The cache

    def _open(self) -> stores.Store:
        if self._store is None:
            try:
                self._store, self._warning = stores.Store.open(self._directory, self._limit)
            except OSError as problem:  # nothing can be written anywhere; what is there may be read
                self._store = stores.Store(self._directory, self._limit)
                self._give_up(str(problem))
        return self._store

    def _give_up(self, reason: str) -> None:
        """Compile nothing any more: loops without kernels are interpreted."""
        self._warning = self._unable = reason
        self._fail_all(list(self._wanted), reason)

    def _key(self, source: str) -> str:
        key = self._keys.get(source)
        if key is None:
            if len(self._keys) >= _MOST_SOURCES:
                self._keys.clear()
                self._next_look.clear()
            key = self._keys[source] = keys.kernel_key(source)
        return key

    def _load(self, source: str) -> int | None:
        """The address, where the kernel is loaded or in the cache; notes a failure that is in the cache."""
        if source in self._addresses or source in self._failures:
            return self._addresses.get(source)
        key, store = self._key(source), self._open()
        content = store.read(key)
        if content is None:
            reason = store.read_failure(key)
            if reason is not None:
                self._fail(source, reason)
            return None
        from numpy_dist.backends.compiled import loader

        try:
            found = loader.load(content)
        except loader.LoadError as problem:
            self._fail(source, str(problem))
            return None
        self._addresses[source] = found
        self._tell(source, "")
        self._forget(source)
        return found

    def _fail(self, source: str, reason: str) -> None:
        self._failures[source] = reason
        self._tell(source, reason)
        self._forget(source)

    def _tell(self, source: str, failure: str) -> None:
        """Tell whoever listens of a kernel that was wanted, and has come or failed."""
        since = self._since.get(source)
        if self.observer is not None and since is not None:
            self.observer.compiled(time.monotonic() - since, failure)

    def _forget(self, source: str) -> None:
        self._wanted.pop(source, None)
        self._gains.pop(source, None)
        self._submitted.pop(self._key(source), None)
        self._next_look.pop(source, None)
        self._since.pop(source, None)

    # The child

    def _attend(self, source: str) -> None:
        """See to it that somebody compiles a kernel that is wanted."""
        if self._unable:
            self._fail(source, self._unable)
            return
        key, store = self._key(source), self._open()
        now = time.monotonic()
        patient = now - self._since.setdefault(source, now) < _STUCK_SECONDS  # with another process
        if key in self._submitted or self._closed or (patient and store.locked(key)):
            return
        try:
            if not self._may_start(source, now):
                return
            child = self._start_child()
            if store.lock(key, child.owner) or not patient:
                self._submit(key, source)
        except OSError as problem:
            self._without_cache(problem)

    @staticmethod
    def _leader() -> tuple[str, str]:
        """The lock of the process that has a child on this machine, and this process as its owner."""
        return "leader-" + stores.this_machine(), stores.describe_owner(os.getpid())

    def _leads(self) -> bool:
        """Whether this process has a child, or is the one of this machine that may start one at once."""
        return self._has_child() or self._open().lock(*self._leader())

    def _may_start(self, source: str, now: float) -> bool:
        """Whether to compile a kernel here: the process that leads may, others what it leaves undone for a while."""
        if self._leads():
            return True
        if not self._wanted[source]:
            self._wanted[source] = now + _LEADER_SECONDS
        return now >= self._wanted[source]

    def _has_child(self) -> bool:
        if self._child is not None and self._child.parent != os.getpid():
            self._child.abandon()
            self._child = self._begun = None
            self._submitted.clear()
        return self._child is not None

    def _start_child(self) -> Child:
        if self._has_child():
            assert self._child is not None
            return self._child
        from numpy_dist.backends.compiled.child import Child  # where all kernels are there, nobody needs it

        self._child, self._compiled = Child(self._open(), self._after), 0
        return self._child

    def _submit(self, key: str, source: str) -> None:
        assert self._child is not None
        if not self._submitted:
            self._child.answered = time.monotonic()
        self._submitted[key] = source
        self._child.compile(key, source, self._gains.get(source, math.inf))

    def _listen(self) -> None:
        """Take the child's answers; see whether it lives and moves."""
        if not self._has_child():
            return
        child = self._child
        assert child is not None
        alive = child.alive()
        for answer in child.answers():
            if answer["status"] == "begun":
                self._begun = answer["key"]
                continue
            self._begun = None
            self._deaths = 0
            self._compiled += 1
            if self.observer is not None and "times" in answer:
                self.observer.child_compiled(child.pid, *map(int, answer["times"].split()))
            source = self._submitted.pop(answer["key"], None)
            if source is None:
                continue
            if answer["status"] in ("failed", "broken"):
                self._fail(source, answer.get("reason", "no reason was given"))
            elif answer["status"] == "unwritable":
                self._without_cache(OSError(answer.get("reason", "no reason was given")))
                return
        if not alive:
            self._bury(f"the process that compiles {child.fate()}")
        elif self._submitted and time.monotonic() - child.answered > _STUCK_SECONDS:
            self._bury(f"compiling took more than {_STUCK_SECONDS:g} seconds")
        elif self._compiled >= _MOST_KERNELS and not self._submitted:
            self._drop_child()

    def _bury(self, reason: str) -> None:
        """Do without the child. The kernel that it was compiling has a second try; the others wait for the next one."""
        first = self._submitted.get(self._begun or "") or next(iter(self._submitted.values()), None)
        self._drop_child()
        if first is None:
            return
        self._deaths += 1
        self._tries[first] = self._tries.get(first, 0) + 1
        if self._deaths >= _DEATHS:
            self._unable = reason
            self._fail_all(list(self._wanted), reason)
        elif self._tries[first] >= _TRIES:
            self._fail(first, reason)

    def _fail_all(self, sources: Iterable[str], reason: str) -> None:
        for source in sources:
            self._fail(source, reason)

    def _drop_child(self) -> None:
        if not self._has_child():
            return
        child, store = self._child, self._open()
        assert child is not None
        self._child = self._begun = None
        child.close()
        for key in self._submitted:
            store.unlock(key, child.owner)
        store.unlock(*self._leader())
        self._submitted.clear()

    def _without_cache(self, problem: OSError) -> None:
        """Go on with a directory of our own, where the cache (or starting a child) stopped working."""
        self._drop_child()
        if self._open().directory != self._directory:
            self._fail_all(list(self._wanted), f"kernels cannot be compiled here: {problem}")
            return
        try:
            self._store, self._warning = stores.Store.private(self._directory, self._limit, problem)
        except OSError as another:
            self._give_up(str(another))
