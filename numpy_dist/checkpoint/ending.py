"""The end of a job that its scheduler asks for, in time to save: by a signal, or by ``numpy-dist run --max-time``."""

from __future__ import annotations

import os
import signal
import threading
import time
from types import FrameType

from numpy_dist import engine
from numpy_dist.comm.launchers import END_VARIABLE
from numpy_dist.comm.supervision.signals import ONE_SIGTERM

__all__ = ["should_end"]

_SIGNALS = (signal.SIGTERM, signal.SIGUSR1)
_asked: set[int] = set()  # signals that any rank has got, as far as this one knows
_begun: list[float] = []  # when this process has got its first SIGTERM


def should_end() -> bool:
    """Whether the program is to save and to end now, as its scheduler asks (collective, one allgather).

    True on every rank, from then on, when any of them has got SIGTERM or SIGUSR1, as Slurm sends them before a job's
    time is over (``--signal=USR1@60``), or ``numpy-dist run --max-time`` is over. The first call installs handlers of
    these signals, unless the program has some. A rank ends at once of a SIGTERM that comes ten seconds after its first
    one: Slurm sends a rank several within a moment, by itself and through ``srun``.

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
    """Handle a signal of this process; without a frame it is another rank's, of which all are told."""
    _asked.add(number)
    if frame is not None and number == signal.SIGTERM:
        _begun.append(time.monotonic())
        if _begun[-1] >= _begun[0] + ONE_SIGTERM:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
