"""The processes of a job: found, signalled and ended together, so that none outlives it.

On Linux the launcher makes itself the foster parent of every process that its children leave behind, whatever session
they have moved to; elsewhere only the launcher's own children are known. What compiles kernels is left alone: it ends
soon by itself, and with a scheduler's job.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from collections.abc import Iterable
from pathlib import Path

from numpy_dist.backends import jobs

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
    """Parent and name of every live process (zombies are not alive, and what compiles is passed over)."""
    states = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            before, _, after = (folder / "stat").read_text().rpartition(")")
        except OSError:  # it has ended meanwhile
            continue
        state, parent = after.split()[:2]
        name = before.partition("(")[2]
        if state != "Z" and name != jobs.NAME:
            states[int(folder.name)] = (int(parent), name)
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


def ending_by_themselves(pid: int) -> list[int]:
    """The ranks below the `mpiexec` of process `pid` that handle both SIGTERM and SIGUSR1: they save, and end."""
    return [rank for rank in ranks_below(pid) if all(n in handled(rank) for n in (signal.SIGTERM, signal.SIGUSR1))]


def handled(pid: int) -> set[int]:
    """The signals for which a process has handlers."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:  # it has ended meanwhile
        return set()
    mask = next((int(line.split()[1], 16) for line in lines if line.startswith("SigCgt:")), 0)
    return {number for number in range(1, 65) if mask >> (number - 1) & 1}


def send(pids: Iterable[int], number: int) -> None:
    """Send the signal `number` to the processes; those that have ended are passed over."""
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue


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
