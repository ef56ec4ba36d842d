"""The processes of a job: found, signalled and ended together, so that none outlives it.

On Linux the launcher makes itself the foster parent of every process that its children leave behind, whatever session
they have moved to; elsewhere only the launcher's own children are known.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Iterable
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_PROXIES = ("hydra_pmi_proxy", "hydra_bstrap_pr", "orted", "prted")


# Loaded here: between fork and exec, where other threads may have held locks, only system calls are safe.
_libc = ctypes.CDLL(None) if sys.platform.startswith("linux") else None


def _prctl(option: int, value: int) -> None:
    if _libc is not None:
        _libc.prctl(option, value, 0, 0, 0)


def adopt_orphans() -> None:
    """Make this process the parent of descendants whose own parent has ended."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def end_with_parent() -> None:
    """Have this process killed when its parent dies; called in the child, before it becomes `mpiexec`.

    Its helpers notice, and end the ranks, even those that ignore signals.
    """
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _states() -> dict[int, tuple[int, str]]:
    """Parent and name of every live process (zombies are not alive)."""
    states = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            before, _, after = (folder / "stat").read_text().rpartition(")")
        except OSError:  # it has ended meanwhile
            continue
        state, parent = after.split()[:2]
        if state != "Z":
            states[int(folder.name)] = (int(parent), before.partition("(")[2])
    return states


def descendants(pid: int) -> dict[int, str]:
    """The live processes below `pid` with their names, parents first."""
    states = _states()
    children: dict[int, list[int]] = {}
    for child, (parent, _) in states.items():
        children.setdefault(parent, []).append(child)
    found = list(children.get(pid, ()))
    for child in found:  # the list grows while it is read
        found += children.get(child, ())
    return {child: states[child][1] for child in found}


def ranks_below(pid: int) -> list[int]:
    """The live processes below the `mpiexec` of process `pid`, without its own helpers."""
    return [child for child, name in descendants(pid).items() if name not in _PROXIES]


def rank_of(pid: int) -> int | None:
    """The rank of a live process, as its launcher told it; None where it is none of this user's, or no rank."""
    try:
        words = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return None
    for word in words:
        name, _, value = word.partition(b"=")
        if name in (b"PMI_RANK", b"OMPI_COMM_WORLD_RANK"):
            return int(value)
    return None


def send(pids: Iterable[int], number: int) -> None:
    """Send the signal `number` to the processes; those that have ended are passed over."""
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue


class Ends:
    """Takes note of when processes end, in a thread; where the system does not tell, of none.

    Attributes
    ----------
    times : dict
        By process, in the order in which they ended (`time.monotonic`).
    """

    def __init__(self) -> None:
        self.times: dict[int, float] = {}
        # It tells of processes in the order in which they ended, also when this thread comes late.
        self._poll = select.epoll() if hasattr(os, "pidfd_open") and hasattr(select, "epoll") else None
        self._watched: dict[int, int] = {}  # by descriptor
        self._thread = threading.Thread(target=self._wait, daemon=True)

    def watch(self, pid: int) -> None:
        """Take note of the end of this process, too."""
        if self._poll is None or pid in self._watched.values():
            return
        try:
            descriptor = os.pidfd_open(pid)
        except OSError:  # it has ended already, or the system is too old
            return
        self._watched[descriptor] = pid
        self._poll.register(descriptor, select.EPOLLIN)
        if not self._thread.is_alive():
            self._thread.start()

    def before(self, pid: int, seconds: float) -> int:
        """The process that was the first to end in this time before `pid` did; `pid` itself if there is none."""
        end = self.times.get(pid)
        if end is None:
            return pid
        return next((other for other, at in self.times.items() if end - seconds <= at <= end), pid)

    def _wait(self) -> None:
        assert self._poll is not None
        while True:
            for descriptor, _ in self._poll.poll(0.05):
                self.times[self._watched[descriptor]] = time.monotonic()
                self._poll.unregister(descriptor)
                os.close(descriptor)


def _reap() -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return


def end_all(patience: float = 1.0) -> None:
    """End every process below this one: politely, then after `patience` seconds by force."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        deadline = time.monotonic() + patience
        send(descendants(os.getpid()), number)
        while time.monotonic() < deadline:
            _reap()
            if not descendants(os.getpid()):
                return
            time.sleep(0.01)
