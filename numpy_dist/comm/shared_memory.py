"""Names of shared memory: none is left where a job is killed or aborted."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["unlink_segments"]

# MPICH removes the name of its segment only as it finalises, and so never where a rank aborts or is killed.
_PREFIX = "/dev/shm/mpich_shm_"


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
