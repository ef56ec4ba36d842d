"""The end of a job that its scheduler asks for, in time to save: by a signal, or by ``numpy-dist run --max-time``."""

from __future__ import annotations

import os
import signal
import threading
import time
from types import FrameType

from numpy_dist import engine
from numpy_dist.comm.launchers import END_VARIABLE

__all__ = ["should_end"]

_SIGNALS = (signal.SIGTERM, signal.SIGUSR1)
_asked: set[int] = set()


def should_end() -> bool:
    """Whether the program is to save and to end now, as its scheduler asks (collective, one allgather).

    True on every rank, from then on, when any of them has got SIGTERM or SIGUSR1, as Slurm sends them before a job's
    time is over (``--signal=USR1@60``), or ``numpy-dist run --max-time`` is over. The first call installs handlers of
    these signals, unless the program has some; of a second SIGTERM the process ends at once.

    Returns
    -------
    bool

    Examples
    --------
    >>> while not done(state) and not checkpoint.should_end():
    ...     advance(state)
    >>> checkpoint.save("run", state, step=state["step"])
    """
    comm = engine.runtime().comm
    _install()
    mine = bool(_asked) or (comm.rank == 0 and time.time() >= float(os.environ.get(END_VARIABLE, "inf")))
    return any(comm.allgather(mine)) if comm.size > 1 else mine


def _install() -> None:
    if threading.current_thread() is threading.main_thread():
        for number in _SIGNALS:
            if signal.getsignal(number) is signal.SIG_DFL and number not in _asked:
                signal.signal(number, _note)


def _note(number: int, frame: FrameType | None) -> None:
    if number in _asked and number == signal.SIGTERM:
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    _asked.add(number)
