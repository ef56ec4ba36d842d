"""What this machine gives to the process: cores and memory, as limited by affinity and control groups."""

from __future__ import annotations

import os
from pathlib import Path

_CGROUP = Path("/sys/fs/cgroup")


def _words(path: Path) -> list[str]:
    """The words of a small system file; none where it cannot be read."""
    try:
        return path.read_text().split()
    except OSError:
        return []


def cores() -> int:
    """Cores that this process may use: its CPU affinity, and the quota of its control group where there is one."""
    if hasattr(os, "sched_getaffinity"):
        count = len(os.sched_getaffinity(0))
    else:
        count = os.cpu_count() or 1
    quota = _words(_CGROUP / "cpu.max")
    if len(quota) == 2 and quota[0].isdigit():
        count = min(count, -(-int(quota[0]) // int(quota[1])))
    return max(1, count)


def memory() -> tuple[int | None, int | None]:
    """Bytes of memory, total and available; None where the system does not say."""
    fields = {}
    words = _words(Path("/proc/meminfo"))
    for name, value in zip(words, words[1:], strict=False):
        if name in ("MemTotal:", "MemAvailable:"):
            fields[name] = int(value) * 1024
    total, available = fields.get("MemTotal:"), fields.get("MemAvailable:")
    limit, used = _words(_CGROUP / "memory.max"), _words(_CGROUP / "memory.current")
    if limit and used and limit[0].isdigit() and total is not None and available is not None:
        total = min(total, int(limit[0]))
        available = min(available, max(0, int(limit[0]) - int(used[0])))
    return total, available


def free_bytes(folder: str) -> int | None:
    """Free bytes of the file system that `folder` lies on; None where there is none."""
    try:
        state = os.statvfs(folder)
    except OSError:
        return None
    return state.f_bavail * state.f_frsize
