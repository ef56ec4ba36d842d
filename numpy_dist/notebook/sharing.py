"""What rank 0 does for all ranks: input of the user's, commands of the system, and the times by which ``%timeit``
chooses how often it repeats. The other ranks wait for its result and go on with the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from IPython.core.magics import execution

__all__ = ["SCRIPTS", "Sharing", "share_times"]

SCRIPTS = frozenset("bash perl pypy python python2 python3 ruby script sh".split())
"""Magics of cells that are run by another program."""


class Sharing(Protocol):
    """What is needed of `channel.RootHub` and `channel.RankLink`."""

    def share(self, kind: str, work: Callable[[], object]) -> Any:
        """What `work` gives on rank 0."""


def share_times(sharing: Sharing) -> None:
    """Have ``%timeit`` decide by the times of rank 0, on all ranks."""

    class SharedTimer(execution.Timer):  # type: ignore[misc, name-defined]
        def timeit(self, number: int = 1_000_000) -> float:
            seconds = super().timeit(number)
            return float(sharing.share("a measurement", lambda: seconds))

    execution.Timer = SharedTimer  # type: ignore[misc, attr-defined]
