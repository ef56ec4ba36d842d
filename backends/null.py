"""The backend that computes nothing: programs are planned and counted, and arrays keep whatever is in memory."""

from __future__ import annotations

from numpy_dist.backends.base import Loop
from numpy_dist.backends.memory import HOST


class NullBackend:
    """Counts the loops that it was given.

    Attributes
    ----------
    loops : int
        Loops given.
    elements : int
        Sum of their iteration spaces.
    value : float
        What the results of reductions are taken to be, on all ranks alike.
    """

    name = "null"
    memory = HOST
    computes = False

    def __init__(self) -> None:
        self.loops = 0
        self.elements = 0
        self.value: float = 0.0

    def run(self, loop: Loop) -> None:
        """Count a loop."""
        self.loops += 1
        count = 1
        for n in loop.shape:
            count *= n
        self.elements += count

    def fence(self) -> None:
        """Nothing is ever pending."""

    def tier(self, memo: dict[str, object]) -> str:
        """As in `backends.base.Backend`."""
        return "null: nothing is computed"


def make(ranks_here: int) -> NullBackend:
    """A new backend."""
    return NullBackend()
