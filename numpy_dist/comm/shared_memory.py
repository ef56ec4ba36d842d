"""Files of MPICH's: none is left where a job is killed or aborted."""

from __future__ import annotations

import os
import time
from pathlib import Path

__all__ = ["unlink_segments", "unlink_topologies"]

# MPICH removes the name of its segment only as it finalises, and so never where a rank aborts or is killed.
_PREFIX = "/dev/shm/mpich_shm_"
# Its launcher describes the machine to the ranks in a file, always in this folder, and forgets it where one aborts.
_TOPOLOGIES = Path("/tmp"), "hydra_hwloc_xmlfile_*"
_TOLERANCE = 1.0  # seconds by which clocks and file systems differ


def unlink_segments(maps: Path = Path("/proc/self/maps"), prefix: str = _PREFIX) -> list[str]:
    """Remove the names of the segments that MPI has mapped into this process; the memory stays as long as it is used.

    To be called once all ranks have started MPI: nobody has to find a segment by its name any more.

    Returns
    -------
    list of str
        The names that were removed; other ranks of this machine may have been quicker.
    """
    try:
        lines = maps.read_text().splitlines()
    except OSError:  # no Linux
        return []
    removed = []
    for name in {line[line.index("/") :] for line in lines if "/" in line}:
        if name.startswith(prefix) and not name.endswith(" (deleted)"):
            try:
                os.unlink(name)
            except OSError:  # another rank of this machine has removed it
                continue
            removed.append(name)
    return removed


def unlink_topologies(folder: Path = _TOPOLOGIES[0]) -> list[str]:
    """Remove the launcher's description of this machine; to be called once all ranks have started MPI.

    Its name is not known, but it is younger than this process. That of another job may be among them: the ranks of that
    one then look at the machine themselves.

    Returns
    -------
    list of str
        The names that were removed.
    """
    begun = _start_of_process()
    removed = []
    if begun is None:
        return []
    for path in folder.glob(_TOPOLOGIES[1]):
        try:
            state = path.stat()
            if state.st_uid == os.getuid() and state.st_mtime >= begun - _TOLERANCE:
                path.unlink()
                removed.append(str(path))
        except OSError:  # its launcher has removed it
            continue
    return removed


def _start_of_process() -> float | None:
    """When this process was started, by the clock of files; None where the system does not tell."""
    try:
        ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
    except OSError:  # no Linux
        return None
    return time.time() - (time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK"))
