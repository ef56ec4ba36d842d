"""How much of its time a rank waits for others, from clocks that its waits read anyway."""

from __future__ import annotations

from collections import defaultdict

from numpy_dist.advice import tell
from numpy_dist.frames import UserLine, calling_frame, user_frame
from numpy_dist.settings import config

__all__ = ["WaitAccount"]

LEAST_SECONDS = 5.0  # that are looked at together
MUCH = 0.5  # of them
_LONG = 0.01  # seconds of a wait whose line is looked for
_TELLING = (0, 1)


class WaitAccount:
    """The waits of one rank.

    Stretches of a few seconds are looked at, one after the other: what a program did long ago does not matter. Where
    one rank is late all others wait, and do not know that others do: ranks 0 and 1 tell, of which one waits whoever is
    late.

    Parameters
    ----------
    rank : int
        The rank.
    begun : float
        When its first stretch begins, by `time.monotonic`, as all times here.
    """

    def __init__(self, rank: int, begun: float) -> None:
        self._tells = rank in _TELLING
        self._rank, self._begun, self._waited = rank, begun, 0.0
        self._places: defaultdict[UserLine, float] = defaultdict(float)

    def add(self, since: float, now: float) -> bool:
        """Count a wait; returns whether it ends a stretch most of which was waited, of which `tell` should be called.

        Parameters
        ----------
        since, now : float
            When the wait began, and when it was last looked at.
        """
        if not self._tells:
            return False
        self._waited += now - since
        if now - since >= _LONG:
            self._places[_here()] += now - since
        if now - self._begun < LEAST_SECONDS:
            return False
        if self._waited > MUCH * (now - self._begun) and config.ADVICE == "on":
            return True
        self.begin(now)
        return False

    @property
    def begun(self) -> float:
        """When the present stretch has begun."""
        return self._begun

    def begin(self, now: float) -> None:
        """Begin another stretch."""
        self._begun, self._waited = now, 0.0
        self._places.clear()

    def tell(self, now: float) -> None:
        """Tell what the present stretch was spent with, and begin another one."""
        seconds, share = now - self._begun, self._waited / (now - self._begun)
        place = max(self._places, key=lambda line: self._places[line]) if self._places else _here()
        self.begin(now)
        tell(
            "waiting",
            place,
            f"rank {self._rank} has waited for other ranks for {100 * share:.0f} % of the last {seconds:.0f} s, most "
            f"of it at {place}: `numpy-dist run --profile` shows for whom, and what that one did meanwhile",
            "docs/profile.md",
        )


def _here() -> UserLine:
    """The program's line that waits."""
    frame = calling_frame(user_frame(1))
    return UserLine(frame.f_code.co_filename, frame.f_lineno)
