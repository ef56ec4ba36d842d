"""What memory there is for this process: that of the machine, less where its control groups allow less."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

# Of limit and usage, and what memory.stat calls file pages that the kernel takes back before it refuses memory.
_V2 = "memory.max", "memory.current", "inactive_file"
_V1 = "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"


@dataclass(frozen=True)
class AvailableMemory:
    """Bytes that there are in all, and that can still be had without swapping."""

    total: int
    available: int


class Limits:
    """The limits of this process; which groups it is in is looked up once.

    Parameters
    ----------
    meminfo, root, membership : Path
        Where Linux tells of memory, and of control groups of both versions.
    """

    def __init__(
        self,
        meminfo: Path = Path("/proc/meminfo"),
        root: Path = Path("/sys/fs/cgroup"),
        membership: Path = Path("/proc/self/cgroup"),
    ) -> None:
        self._meminfo = meminfo
        self._groups: list[tuple[Path, Path, Path, str]] = []
        for line in _lines(membership):
            _, controllers, path = line.split(":", 2)
            if not controllers:
                self._add(root, path, _V2)
            elif "memory" in controllers.split(","):
                for folder in {controllers, "memory"}:
                    self._add(root / folder, path, _V1)

    def _add(self, root: Path, path: str, names: tuple[str, str, str]) -> None:
        """Note a group and those around it: each may have a limit.

        In a container the root is the container's own group, and the path may name a folder that is not to be seen.
        """
        group = root / path.strip("/")
        for folder in [group, *(parent for parent in group.parents if parent.is_relative_to(root))]:
            if (folder / names[0]).exists():
                self._groups.append((folder / names[0], folder / names[1], folder / "memory.stat", names[2]))

    def room(self) -> AvailableMemory:
        """How much memory there is now."""
        machine, available = self._machine()
        total = machine
        for limit_file, usage_file, stat_file, reclaimable in self._groups:
            limit, usage = _number(limit_file), _number(usage_file)
            if limit is None or limit >= machine:  # "max"; in version 1 no limit is a very large number
                continue
            total = min(total, limit)
            if usage is not None:
                back = _fields(stat_file).get(reclaimable, 0)
                available = min(available, max(0, limit - usage + min(back, usage)))
        return AvailableMemory(total, min(total, available))

    def _machine(self) -> tuple[int, int]:
        fields = _fields(self._meminfo)
        total = fields.get("MemTotal:", 0) * 1024
        if not total:
            total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        return total, fields["MemAvailable:"] * 1024 if "MemAvailable:" in fields else total


def _lines(path: Path) -> list[str]:
    """The lines of a small system file; none where it cannot be read."""
    try:
        return path.read_text().splitlines()
    except OSError:
        return []


def _number(path: Path) -> int | None:
    text = "".join(_lines(path)).strip()
    return int(text) if text.isdecimal() else None


def _fields(path: Path) -> dict[str, int]:
    """The numbers of a file of lines that are a name and a number."""
    pairs = [line.split() for line in _lines(path)]
    return {words[0]: int(words[1]) for words in pairs if len(words) > 1 and words[1].isdecimal()}
