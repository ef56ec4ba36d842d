"""Liveness read from reference counts: whether anybody but the engine can still see an object.

CPython counts references, and what it counts for a reference on its evaluation stack changes from version to version
(3.14 borrows references to local variables instead of counting them). So the numbers that mean "nobody else" are not
written down but measured, at import, by the very accesses that the engine makes: a count above the measured one tells
of somebody else. Where an interpreter's counts do not rise by one with each reference, the numbers are zero: then every
storage counts as alive and no memory as free, which costs speed only.

A debugger or a tracer may hold more references to local variables, never fewer, and so errs on the same side.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

__all__ = ["ARGUMENT", "ATTRIBUTE", "measured"]

# An interpreter has specialised what it has run so many times.
_TIMES = 200


class _Holder:
    """An object with one attribute, as a storage with its token or its memory."""

    def __init__(self) -> None:
        self.held: bytearray = bytearray(1)

    def count(self, getrefcount: Callable[[object], int]) -> int:
        """The count of an attribute's value."""
        return getrefcount(self.held)


class _Taker:
    """An object that is given others, as a pool its blocks."""

    def count(self, given: bytearray, getrefcount: Callable[[object], int]) -> int:
        """The count of an argument."""
        size = len(given)
        return getrefcount(given) + 0 * size


def _of_attribute(others: list[object], getrefcount: Callable[[object], int]) -> int:
    """The count of what an attribute holds, and as many others as there are items."""
    holder = _Holder()
    for place in range(len(others)):
        others[place] = holder.held
    return holder.count(getrefcount)


def _of_argument(others: list[object], getrefcount: Callable[[object], int]) -> int:
    """The count of an argument that its caller has in a variable, and as many others as there are items."""
    given = bytearray(1)
    for place in range(len(others)):
        others[place] = given
    return _Taker().count(given, getrefcount)


def measured(
    probe: Callable[[list[object], Callable[[object], int]], int],
    getrefcount: Callable[[object], int] = sys.getrefcount,
    times: int = _TIMES,
) -> int:
    """The highest count that proves that nobody else holds a reference, or zero where no count proves it.

    Parameters
    ----------
    probe : callable
        Returns the count of an object to which as many others refer as its list has items.
    getrefcount : callable, optional
        What counts.
    times : int, optional
        How often the probe runs: an interpreter may count otherwise once it has specialised a function.

    Returns
    -------
    int
        The least count without others. A larger one, which an interpreter may show at another time, is taken for
        somebody else's.
    """
    alone = {probe([], getrefcount) for _ in range(times)}
    fewest = min(alone)
    # Whoever holds a reference must be told from nobody, whatever the interpreter has made of the function by now.
    with_others = [min(probe([None] * others, getrefcount) for _ in range(3)) for others in (1, 2, 3)]
    rises = all(count >= fewest + others for others, count in enumerate(with_others, start=1))
    return fewest if fewest > 0 and rises else 0


ATTRIBUTE: int = measured(_of_attribute)
"""Most references that `sys.getrefcount(self.attribute)` counts where the attribute is the only one."""

ARGUMENT: int = measured(_of_argument)
"""Most references that `sys.getrefcount(argument)` counts in a method where its caller's variable is the only one."""
