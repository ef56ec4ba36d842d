"""A limit on a call that cannot be interrupted (starting MPI while other ranks never do)."""

from __future__ import annotations

import os
import select
import signal
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from types import TracebackType

from numpy_dist.comm.shared_memory import unlink_segments, unlink_topologies
from numpy_dist.comm.supervision.pipes import wait_until_read

__all__ = ["LastResort"]


class LastResort:
    """A context manager: if its block takes longer than `seconds`, `text` is printed and the process is killed.

    MPI starts with Python's lock held, so that neither signal handlers nor threads of this process can help: a forked
    child watches. The launcher ends the job when one of its processes is killed; `tell` is called with the process
    before, for a launcher that is to know why.
    """

    def __init__(self, seconds: float, text: str, tell: Callable[[int], None] = lambda pid: None) -> None:
        self._seconds = seconds
        self._text = text
        self._tell = tell
        self._child = 0
        self._pipe = -1

    @staticmethod
    def none() -> AbstractContextManager[None]:
        """No limit."""
        return nullcontext()

    def __enter__(self) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        reading, self._pipe = os.pipe()
        self._child = os.fork()
        if self._child:
            os.close(reading)
            return
        # Only system calls from here on: other threads may have held locks at the fork.
        os.close(self._pipe)
        ended, _, _ = select.select([reading], [], [], self._seconds)
        if not ended:
            os.write(2, self._text.encode(errors="replace"))
            wait_until_read((2,))
            unlink_segments(Path(f"/proc/{os.getppid()}/maps"))
            unlink_topologies()
            self._tell(os.getppid())
            os.kill(os.getppid(), signal.SIGKILL)
        os._exit(0)

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._pipe)
        os.waitpid(self._child, 0)
