"""Where the ranks read and write.

MPICH's `mpiexec` hands open files down to the ranks, so rank 0 gets the terminal itself (it stays a terminal, and
nothing is buffered on the way) and every rank the launcher's stderr. With other launchers, and for ranks on other
machines, output comes by way of `mpiexec`; its own banners are taken out.
"""

from __future__ import annotations

import io
import os
import re
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import IO

from numpy_dist.cli import distant_ranks, roll_call

# What Hydra writes to stdout when a job does not end by itself.
_BANNER = re.compile(
    r"\[mpiexec@|=+$|=   (BAD TERMINATION|PID |EXIT CODE|CLEANING UP|YOU CAN IGNORE|RANK )|YOUR APPLICATION TERMINATED"
    r"|This typically refers to a problem|Please see the FAQ"
)


class RankStream(io.TextIOWrapper):
    """A text stream on a file descriptor that writes the rank's number before each line."""

    def __init__(self, descriptor: int, rank: int) -> None:
        super().__init__(
            io.BufferedWriter(io.FileIO(descriptor, "w", closefd=False)),
            encoding="utf-8",
            errors="backslashreplace",
            line_buffering=True,
        )
        self._prefix = f"[rank {rank}] "
        self._at_line_start = True

    def write(self, text: str) -> int:
        """Write `text`; lines of different ranks do not mix, since a line goes out in one piece."""
        for line in io.StringIO(text):
            if self._at_line_start and not line.startswith(self._prefix):
                super().write(self._prefix)
            super().write(line)
            self._at_line_start = line.endswith("\n")
        return len(text)


def describe_files(descriptors: Sequence[int]) -> str:
    """Files that the launcher hands down: number, device and inode of each."""
    words = []
    for descriptor in descriptors:
        state = os.fstat(descriptor)
        words.append(f"{descriptor}:{state.st_dev}:{state.st_ino}")
    return ",".join(words)


def handed_down(description: str) -> list[int] | None:
    """The descriptors that `describe_files` told of; None on another machine, or where a launcher closed them."""
    found = []
    for word in description.split(","):
        descriptor, device, inode = map(int, word.split(":"))
        try:
            state = os.fstat(descriptor)
        except OSError:
            return None
        if (state.st_dev, state.st_ino) != (device, inode):
            return None
        found.append(descriptor)
    return found


def _adopt(description: str, rank: int, reader: int) -> Callable[..., None]:
    files, known = handed_down(description), os.environ.pop(distant_ranks.VARIABLE, "")
    if rank != (0 if files is None else reader):
        # Where there are several hosts, theirs may be a pipe that nobody ever closes.
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
    if files is None:
        return distant_ranks.connect(known, rank) or _nothing
    standard, others = files[:3], files[3:]
    for target, source in enumerate(standard):
        if rank == reader or target > 0:
            os.dup2(source, target)
    for source in standard:
        os.close(source)
    return roll_call.enter(others[0], rank) if others else _nothing


def _nothing(failed: int | None = None) -> None:
    """Where the launcher is not here to be told."""


def _say_nothing(*arguments: object, **keywords: object) -> None:
    """In place of `warnings.showwarning`."""


def set_output(
    rank: int, size: int, all_output: bool, description: str | None = None, debugged: int = 0
) -> Callable[..., None]:
    """Set this rank's streams: rank 0 prints and warns; every rank's errors bear its number.

    With `all_output` every rank prints and warns. `debugged` is the rank that reads stdin, and prints while it is
    debugged (see `shown`). `description` is what the launcher's `describe_files` gave: stdin, stdout, stderr and the
    socket of its `RollCall`. Returns what is to be called when the rank ends by itself (see `roll_call.enter`).
    """
    if size == 1:
        return _nothing
    leave = _nothing if description is None else _adopt(description, rank, debugged)
    sys.stderr = RankStream(2, rank)
    if all_output:
        sys.stdout = RankStream(1, rank)
    elif rank == 0:
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(line_buffering=True)
    else:
        if rank == debugged:
            global _hidden
            _hidden = os.dup(1)
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)  # for C libraries and child processes as well
        os.close(nowhere)
        warnings.showwarning = _say_nothing
    return leave


_hidden: int | None = None
"""What stdout was of a rank that does not print, but may be debugged."""


def shows_terminal() -> bool:
    """Whether this rank can show its user something at a terminal, within `shown`."""
    try:
        return os.isatty(1 if _hidden is None else _hidden)
    except OSError:  # it is closed
        return False


@contextmanager
def shown() -> Iterator[None]:
    """A block in which what this rank prints is shown, if it is the one to be debugged."""
    if _hidden is None:
        yield
        return
    sys.stdout.flush()
    silent = os.dup(1)
    os.dup2(_hidden, 1)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(silent, 1)
        os.close(silent)


class Filter(threading.Thread):
    """Copies the stdout of `mpiexec` to ours, or another file, without its banners, and keeps those for `deaths`."""

    def __init__(self, source: IO[bytes], target: IO[bytes] | None = None) -> None:
        super().__init__(daemon=True)
        self._source, self._target = source, sys.stdout.buffer if target is None else target
        self._banners: list[str] = []

    def run(self) -> None:
        """Copy until `mpiexec` closes its stdout."""
        blank = b""  # a blank line is the banner's, if one follows it
        for line in self._source:
            text = line.decode(errors="replace").rstrip()
            if _BANNER.match(text):
                self._banners.append(text)
                blank = b""
            elif text:
                self._write(blank + line)
                blank = b""
            elif not self._banners:
                self._write(blank)
                blank = line
        self._write(blank)

    def _write(self, text: bytes) -> None:
        if text:
            self._target.write(text)
            self._target.flush()

    def death(self) -> int | None:
        """The signal that ended a rank, as far as `mpiexec` said that there was one; 0 if it is not clear which.

        When one rank was ended `mpiexec` kills the others, names the lowest one, and tells the signals of all of them
        together (their bits, or-ed).
        """
        text = "\n".join(self._banners)
        pattern = r"PID \d+ .*\n=   EXIT CODE: (\d+)(?=[\s\S]*EXIT STRING: .*\(signal (\d+)\))"
        found = [tuple(map(int, words)) for words in re.findall(pattern, text)]
        return max((number if code in (number, signal.SIGKILL) else 0 for code, number in found), default=None)
