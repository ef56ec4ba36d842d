"""Long activities of a rank, such as gathers and files, and how far they have come: for those who want to look on."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from numpy_dist.engine.runtime import current

_LONG = 1 << 24  # bytes: less is over before anybody could look


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


@contextmanager
def activity(what: str, total: int, stepwise: bool = False) -> Iterator[None]:
    """A block in which this rank is busy with so many bytes. Not collective; blocks nest, the outermost is told of.

    Other threads of the user's, which have no runtime, tell of nothing.
    """
    found = current.get()
    if total < _LONG or found is None:
        yield
        return
    found.activities.append(Activity(what, total, stepwise))
    try:
        yield
    finally:
        found.activities.pop()


def progressed(nbytes: int) -> None:
    """Note that so many more bytes of the present activity are done; by the thread whose activity it is."""
    found = current.get()
    if found is not None and found.activities:
        found.activities[0].done += nbytes
