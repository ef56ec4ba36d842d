"""Runs one rank as a child, and stays when that is killed: `mpiexec` ends a job when it loses one of its own processes.

``python -I -S keeper.py program argument ...``: a script that imports nothing of the package, since the rank must be
another process than this one before it looks at what the launcher has told it.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def keep(command: list[str]) -> int:
    """Run a program; returns its exit code, and never if it was ended by a signal.

    A rank that was killed is left a zombie, by which the launcher learns of the signal, however late it looks.
    """
    libc = ctypes.CDLL(None)
    child = os.fork()
    if not child:
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        os.execv(command[0], command)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    ended = os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    while ended is None or ended.si_code != os.CLD_EXITED:  # whoever ends the job ends this process
        signal.pause()
    return os.WEXITSTATUS(os.waitpid(child, 0)[1])


if __name__ == "__main__":
    os._exit(keep(sys.argv[1:]))
