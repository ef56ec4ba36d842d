"""What a process has printed is read before the process is ended: launchers drop what they have not read by then."""

from __future__ import annotations

import array
import os
import stat
import sys
import time
from collections.abc import Sequence

if sys.platform.startswith("linux"):  # elsewhere only the reading end tells
    import fcntl
    import termios

__all__ = ["unread_bytes", "wait_until_read"]

_PATIENCE = 2.0
_POLL_SECONDS = 0.001


def unread_bytes(descriptor: int) -> int:
    """The bytes in a pipe that nobody has read yet; 0 for what is no pipe, and where the system does not tell."""
    if not sys.platform.startswith("linux"):
        return 0
    count = array.array("i", [0])
    try:
        if not stat.S_ISFIFO(os.fstat(descriptor).st_mode):
            return 0
        fcntl.ioctl(descriptor, termios.FIONREAD, count)
    except OSError:  # it is closed
        return 0
    return count[0]


def wait_until_read(descriptors: Sequence[int] = (1, 2), seconds: float = _PATIENCE) -> bool:
    """Wait until the other end has read all that was written to these pipes; whether it did so in time.

    What `mpiexec` has read from a rank it passes on before it looks at the rank's `MPI_Abort`, or at its end.
    """
    deadline = time.monotonic() + seconds
    while any(map(unread_bytes, descriptors)):
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_SECONDS)
    return True
