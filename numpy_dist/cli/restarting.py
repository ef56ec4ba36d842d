"""`numpy-dist run --restart`: a job that has lost a rank is started again, and goes on from its checkpoints."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence

from numpy_dist.cli import processes
from numpy_dist.cli.launcher import Signals

VARIABLE = "NUMPY_DIST_RESTART"
"""How often the job has been started again, for the ranks to see."""


def lost_by(code: int) -> int:
    """The signal by which a rank was lost, from the exit code of a job; 0 if none was.

    What the user sends is none: an interrupt, or what a scheduler ends jobs with.
    """
    number = -code if code < 0 else code - 128
    if number <= 0 or number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1):
        return 0
    return number if number in signal.valid_signals() else 0


def run(arguments: Sequence[str], restarts: int) -> int:
    """Run a job until it ends by itself, or has been started again so many times; returns its exit code.

    Parameters
    ----------
    arguments : sequence of str
        Of ``numpy-dist run``, without ``--restart``.
    restarts : int
    """
    command = [sys.executable, "-P", "-m", "numpy_dist", "run", *arguments]
    with Signals(to_ranks=False) as signals:
        for count in range(restarts + 1):
            process = subprocess.Popen(
                command,
                env={**os.environ, VARIABLE: str(count)},
                start_new_session=True,  # a Ctrl-C at the terminal comes once, by us
                preexec_fn=processes.end_with_parent,
            )
            signals.attach(process)
            code = process.wait()
            number = lost_by(code)
            if not number or signals.first is not None or count == restarts:
                break
            print(
                f"numpy-dist: the job has lost a rank by signal {number} ({signal.strsignal(number)}) and is started "
                f"again ({count + 1} of {restarts})",
                file=sys.stderr,
                flush=True,
            )
    return 128 - code if code < 0 else code
