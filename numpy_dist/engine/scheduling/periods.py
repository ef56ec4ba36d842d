"""Periods: where a program is cut, so that a loop's statements meet in the same groups each time."""

from __future__ import annotations

from numpy_dist.engine.events.sites import CallSite

SHORTEST = 32  # statements: shorter loops are unrolled, unless their results are large
LARGE, LARGE_ON_DEVICE = 1 << 32, 1 << 29  # bytes of results for each rank; a device waits while nothing is executed
PATIENCE = 128  # statements for which a loop that has begun may go without its first call site


class Periods:
    """Finds the beginnings of periods from the call sites of the statements.

    The first call site that recurs is where a loop begins, hence every later period, too: the *anchor*. A period begins
    where the anchor recurs and the present period has at least `SHORTEST` statements, or large results. When others
    recur but the anchor does not, another loop has begun.

    Parameters
    ----------
    large : int
        Bytes of results, of all ranks, with which a period is long enough.

    Attributes
    ----------
    first : int
        Serial of the first statement of the present period.
    bytes_before : int
        Of the results that were recorded before it.
    sites : set of CallSite
        Those of the present period.
    """

    def __init__(self, large: int) -> None:
        self._large = large
        self.first = self.bytes_before = 0
        self.sites: set[CallSite] = set()
        self._anchor: CallSite | None = None
        self._anchored = 0  # serial at which the anchor was seen last

    def begins(self, site: CallSite, serial: int, nbytes: int) -> bool:
        """Whether a period begins with the statement of a serial, whose site is among those of the present period.

        Parameters
        ----------
        nbytes : int
            Of the results of all statements before it.
        """
        if site is not self._anchor:
            if self._anchor in self.sites and serial - self._anchored < PATIENCE:
                return False
            self._anchor = site
        self._anchored = serial
        if serial - self.first < SHORTEST and nbytes - self.bytes_before < self._large:
            return False
        self.first, self.bytes_before, self.sites = serial, nbytes, {site}
        return True

    def interrupt(self, serial: int, nbytes: int) -> None:
        """Something has forced the program: the present period begins with the next statement, of this serial."""
        self.first, self.bytes_before, self.sites = serial, nbytes, set()
