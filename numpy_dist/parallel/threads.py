"""Tasks side by side on threads of a rank."""

from __future__ import annotations

import _thread
from collections.abc import Callable, Sequence

__all__ = ["run_together"]


def run_together(tasks: Sequence[Callable[[], object]]) -> None:
    """Run the first task on this thread, each other one on a thread of its own, and raise the first one's error.

    Threads are made for each call: pools have locks in Python's code, which an exception from a signal's handler leaves
    closed, and take nothing on while the interpreter ends.
    """
    errors: dict[int, BaseException] = {}

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
