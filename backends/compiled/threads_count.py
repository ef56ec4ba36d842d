"""How many threads a rank may use, and on which cpus."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path

__all__ = ["cpu_quota", "cpus", "own_quota", "spare_cpus", "thread_count"]


def thread_count(setting: int, sharing: int = 1, environment: Mapping[str, str] = os.environ) -> int:
    """The number of threads of a rank.

    Parameters
    ----------
    setting : int
        The setting `NUM_THREADS`; 0 where the user has not chosen.
    sharing : int, optional
        How many ranks of this machine may run on the same cpus: 1 where the launcher has bound each to its own.
    environment : mapping, optional
        Where `OMP_NUM_THREADS` is looked up, by which launchers and users say the same to other libraries.

    Returns
    -------
    int
        At least 1. What the user chose is not bounded by what there is.
    """
    if setting > 0:
        return setting
    # OpenMP has a list here, one number for each level of nesting.
    text = environment.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    if text.isdecimal() and int(text) > 0:
        return int(text)
    count = len(cpus())
    quota = own_quota()
    if quota is not None:
        count = min(count, max(1, int(quota)))
    return max(1, count // max(1, sharing))


def cpus() -> list[int]:
    """The cpus that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def spare_cpus(count: int) -> list[int | None]:
    """A cpu for each of `count` workers, but not the one that this thread is running on; None where there are too few.

    Workers on the same cpu would wait for each other, so those that are too many are left to the system.
    """
    if not hasattr(os, "sched_setaffinity"):
        return [None] * count
    here = _current_cpu()
    spare: list[int | None] = [cpu for cpu in cpus() if cpu != here]
    return [*spare, *[None] * count][:count] if here is not None else [None] * count


def _current_cpu() -> int | None:
    """The cpu that this thread is running on; None where the system does not say."""
    try:
        cpu = ctypes.CDLL(None).sched_getcpu()
    except AttributeError:
        return None
    return cpu if cpu >= 0 else None


@cache  # each simulated rank asks
def own_quota() -> float | None:
    """How many cpus this process may use, as its control groups have it at first."""
    return cpu_quota()


def cpu_quota(root: Path = Path("/sys/fs/cgroup"), membership: Path = Path("/proc/self/cgroup")) -> float | None:
    """How many cpus the process' control groups let it use; None where there is no limit, or no control groups."""
    limits = []
    for line in _lines(membership):
        _, controllers, path = line.split(":", 2)
        if not controllers:
            limits += [_quota_v2(folder) for folder in _ancestors(root, path)]
        elif "cpu" in controllers.split(","):
            limits += [_quota_v1(folder) for folder in _ancestors(root / controllers, path)]
            limits += [_quota_v1(folder) for folder in _ancestors(root / "cpu", path)]
    return min((limit for limit in limits if limit is not None), default=None)


def _ancestors(root: Path, path: str) -> list[Path]:
    """The folders of a control group and of those around it: each may have a limit.

    In a container the root is the container's own group, and the path may name a folder that is not to be seen.
    """
    group = root / path.strip("/")
    return [group, *(parent for parent in group.parents if parent.is_relative_to(root))]


def _quota_v2(folder: Path) -> float | None:
    words = " ".join(_lines(folder / "cpu.max")).split()
    if len(words) != 2 or not all(word.isdecimal() for word in words) or words[1] == "0":
        return None
    return int(words[0]) / int(words[1])


def _quota_v1(folder: Path) -> float | None:
    words = [" ".join(_lines(folder / f"cpu.cfs_{name}_us")).strip() for name in ("quota", "period")]
    if not all(word.isdecimal() for word in words) or words[1] == "0":  # a quota of -1 is none
        return None
    return int(words[0]) / int(words[1])


def _lines(path: Path) -> list[str]:
    """The lines of a small system file; none where it cannot be read."""
    try:
        return path.read_text().splitlines()
    except OSError:
        return []
