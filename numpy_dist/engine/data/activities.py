"""Long activities of a rank, such as gathers and files, and how far they have come: for those who want to look on."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from numpy_dist.engine.runtime import current

WORTH_TELLING = 1 << 24
"""Bytes: less is over before anybody could look."""


class Activity:
    """Something that takes long.

    Attributes
    ----------
    what : str
        In words.
    total, done : int
        Bytes in all, and until now.
    stepwise : bool
        Whether `done` grows on the way; else only the end is seen.
    begun : float
        By `time.monotonic`.
    """

    __slots__ = ("begun", "done", "stepwise", "total", "what")

    def __init__(self, what: str, total: int, stepwise: bool) -> None:
        self.what, self.total, self.stepwise = what, total, stepwise
        self.done = 0
        self.begun = time.monotonic()


_NOTHING: AbstractContextManager[None] = nullcontext()


def activity(what: str, total: int, stepwise: bool = False) -> AbstractContextManager[None]:
    """A block in which this rank is busy with so many bytes. Not collective; blocks nest, the outermost is told of.

    Other threads of the user's, which have no runtime, tell of nothing.
    """
    found = None if total < WORTH_TELLING else current.get()
    return _NOTHING if found is None else _going_on(found.activities, Activity(what, total, stepwise))


@contextmanager
def _going_on(activities: list[Activity], told: Activity) -> Iterator[None]:
    activities.append(told)
    try:
        yield
    finally:
        activities.pop()


def progressed(nbytes: int) -> None:
    """Note that so many more bytes of the present activity are done; by the thread whose activity it is."""
    found = current.get()
    if found is not None and found.activities:
        found.activities[0].done += nbytes
