"""The folder in which compiled kernels are kept."""

from __future__ import annotations

from numpy_dist.cli.doctor.facts import CacheFacts
from numpy_dist.cli.doctor.finding import SystemFinding, bad, doubtful, good
from numpy_dist.cli.doctor.words import size

_ANOTHER = "set NUMPY_DIST_CACHE_DIR to a folder that only you can write"
ROOM = 1 << 20  # bytes that some kernels take


def folder(facts: CacheFacts) -> list[SystemFinding]:
    """Whether kernels can be kept there, and are trusted."""
    name = "cache folder"
    if facts.untrusted:
        seen = f"{facts.folder}: {facts.problem}; kernels from there might be anybody's code, and are not loaded"
        return [bad(name, seen, f"chmod go-w {facts.folder}, or {_ANOTHER}")]
    if facts.problem is not None:
        return [bad(name, f"{facts.folder}: {facts.problem}; each process compiles its kernels anew", _ANOTHER)]
    return [good(name, f"{facts.folder}, {size(facts.used)} of {size(facts.limit)}")]


def space(facts: CacheFacts) -> list[SystemFinding]:
    """Whether there is room for as many kernels as may be kept."""
    name = "cache space"
    if facts.problem is not None:
        return []  # `folder` says why
    if facts.free is None:
        return [good(name, "the file system does not tell")]
    seen, left = f"{size(facts.free)} free", max(0, facts.limit - facts.used)
    mend = f"remove files from the file system of {facts.folder}, or set NUMPY_DIST_CACHE_DIR to another one"
    if facts.free < ROOM:
        return [bad(name, seen, mend)]
    if facts.free < left:
        mend += f", or NUMPY_DIST_CACHE_SIZE={(facts.used + facts.free // 2) >> 20}MiB"
        return [doubtful(name, f"{seen}, and kernels may take {size(left)} more", mend)]
    return [good(name, seen)]
