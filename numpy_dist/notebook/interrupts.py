"""Ctrl-C in a notebook of several ranks: it leaves what the user has written, never what runs cells."""

from __future__ import annotations

import signal
import sys
from types import FrameType

__all__ = ["CellInterrupt"]


class CellInterrupt:
    """The handler of SIGINT while a cell runs.

    Parameters
    ----------
    names : dict
        The variables of the notebook, by which its code is known.
    """

    def __init__(self, names: dict[str, object]) -> None:
        self._names = names

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Raise KeyboardInterrupt where code of the notebook runs, or what that has called."""
        if self.is_due():
            raise KeyboardInterrupt

    def is_due(self) -> bool:
        """Whether code of the notebook is being executed."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            if frame.f_globals is self._names:
                return True
            frame = frame.f_back
        return False

    def install(self) -> None:
        """Handle the signal by this from now on."""
        signal.signal(signal.SIGINT, self)
