"""Tasks side by side on threads of a rank."""

from __future__ import annotations

import _thread
import time
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import TypeVar

__all__ = ["run_together", "thread_watch", "watched"]

T = TypeVar("T")

ThreadWatch = Callable[[str, str], Callable[[int, int | None], None]]
thread_watch: ContextVar[ThreadWatch | None] = ContextVar("thread_watch", default=None)
"""Who is told of the rank's other threads: of a thread's name and what it is to do, and is then given what to call when
it begins (with the time, and None) and when it has ended (with both times)."""


def watched(thread: str, what: str, task: Callable[[], T]) -> Callable[[], T]:
    """A task for another thread of the rank; a profile, where there is one, is told when it began and ended.

    Parameters
    ----------
    thread : str
        What the thread is called; another one that is called so has ended before.
    what : str
        What it does.
    task : callable
    """
    asked = thread_watch.get()
    if asked is None:
        return task
    tell = asked(thread, what)

    def run() -> T:
        begin = time.perf_counter_ns()
        tell(begin, None)
        try:
            return task()
        finally:
            tell(begin, time.perf_counter_ns())

    return run


def run_together(tasks: Sequence[Callable[[], object]]) -> None:
    """Run the first task on this thread, each other one on a thread of its own, and raise the first one's error.

    Threads are made for each call: pools have locks in Python's code, which an exception from a signal's handler leaves
    closed, and take nothing on while the interpreter ends.
    """
    errors: dict[int, BaseException] = {}
    if thread_watch.get() is not None:
        what = "its part of a function"
        tasks = [tasks[0], *(watched(f"helper {n}", what, task) for n, task in enumerate(tasks[1:], 1))]

    def run(number: int, ended: _thread.LockType | None = None) -> None:
        try:
            tasks[number]()
        except BaseException as error:  # raised below
            errors[number] = error
        finally:
            if ended is not None:
                ended.release()

    running = []
    for number in range(1, len(tasks)):
        ended = _thread.allocate_lock()
        ended.acquire()
        try:
            _thread.start_new_thread(run, (number, ended))
        except RuntimeError:  # the interpreter ends, or the system has no more threads
            run(number)
        else:
            running.append(ended)
    run(0)
    for ended in running:
        ended.acquire()
    if errors:
        raise errors[min(errors)]
