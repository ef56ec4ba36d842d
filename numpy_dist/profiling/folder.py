"""The folder of a profile: a log of each rank, and what is made of them. Files only, nothing is communicated."""

from __future__ import annotations

import os
import re
import threading
from pathlib import Path

from numpy_dist.profiling.advice import advise
from numpy_dist.profiling.analysis import profiled
from numpy_dist.profiling.log import RankLog, read_log
from numpy_dist.profiling.page import TRACE, page_of
from numpy_dist.profiling.trace import trace_text

PAGE = "profile.html"
_LOG = re.compile(r"rank-(\d+)\.jsonl")
_TAIL = 4096  # bytes in which the last line of a log lies


def log_path(folder: str, rank: int) -> str:
    """Where the log of a rank lies."""
    return os.path.join(folder, f"rank-{rank:05d}.jsonl")


def prepare(folder: str, size: int = 0) -> None:
    """Make a folder for a profile, and remove what an earlier one has left there, but for the logs of `size` ranks."""
    os.makedirs(folder, exist_ok=True)
    for name in os.listdir(folder):
        found = _LOG.fullmatch(name)
        if name in (TRACE, PAGE) or (found is not None and int(found[1]) >= size):
            os.remove(os.path.join(folder, name))


def is_complete(folder: str, size: int) -> bool:
    """Whether all ranks have come to the end of their profile."""
    for rank in range(size):
        try:
            with open(log_path(folder, rank), "rb") as file:
                file.seek(max(0, os.path.getsize(file.fileno()) - _TAIL))
                tail = file.read()
        except OSError:
            return False
        if not tail.endswith(b"\n") or not tail.rstrip().rpartition(b"\n")[2].startswith(b'["end"'):
            return False
    return True


def read_logs(folder: str) -> list[RankLog]:
    """The logs in a folder, of one job, by rank.

    Raises
    ------
    OSError
        If there is none.
    ValueError
        If a file is no log of ours.
    """
    found = []
    for name in sorted(os.listdir(folder)):
        if _LOG.fullmatch(name):
            try:
                log = read_log(Path(folder, name).read_text(encoding="utf-8"))
            except ValueError as error:
                raise ValueError(f"{os.path.join(folder, name)}: {error}") from None
            if log is not None:
                found.append(log)
    if not found:
        raise FileNotFoundError(f"{folder} has no logs of a profile (rank-00000.jsonl)")
    latest = max(found, key=lambda log: log.header.wall)  # others may be left of a job with more ranks, or fewer
    return sorted((log for log in found if log.header.size == latest.header.size), key=lambda log: log.rank)


def write_results(folder: str) -> str:
    """Make the trace and the page of the logs that are there; returns the page's path.

    Raises
    ------
    OSError, ValueError
        As `read_logs` does, and if nothing can be written.
    """
    found = profiled(read_logs(folder))
    _replace(folder, TRACE, trace_text(found))
    return _replace(folder, PAGE, page_of(found, advise(found)))


def write_first_results(folder: str) -> str | None:
    """`write_results`, by the first that asks: ranks that have all ended at once ask at the same time.

    Returns
    -------
    str or None
        None for all others.
    """
    path = os.path.join(folder, PAGE)
    try:
        open(path, "x").close()
    except FileExistsError:
        return None
    try:
        return write_results(folder)
    except BaseException:
        os.remove(path)
        raise


def _replace(folder: str, name: str, text: str) -> str:
    """Write a file as a whole: several ranks may do so at the same time, and write the same."""
    path = os.path.join(folder, name)
    new = f"{path}.{os.getpid()}.{threading.get_ident()}"
    try:
        Path(new).write_text(text, encoding="utf-8")
        os.replace(new, path)
    except OSError:
        Path(new).unlink(missing_ok=True)
        raise
    return path
