"""The stderr of `mpiexec`, without what MPICH's launcher says of its own state when ranks or hosts are lost.

Its helpers on several hosts find each other gone, and tell where in their source that was. Such lines are kept aside:
they are shown where nothing else says how the job has ended.
"""

from __future__ import annotations

import os
import re
import threading
from typing import IO

__all__ = ["Complaints"]

_BEGINNINGS = (b"[proxy:", b"[mpiexec@", b"HYD")
# Two of them that write at the same time may have their beginnings in one line, and the rest in others.
_LINE = re.compile(
    rb"\[(?:proxy:[\d:]+|mpiexec)@[^\]\n]*\] |HYD\w+ \(\S+\.c:\d+\): "
    rb"|(?:assert \(!closed\) failed|callback returned error status|demux engine error waiting for event)$"
)
_PIECE = 1 << 16


class Complaints(threading.Thread):
    """Copies what ranks on other hosts write to their stderr, and keeps lines of the launcher aside.

    Parameters
    ----------
    source : file
        The stderr of `mpiexec`.
    target : file
        Gets everything else as it comes, bars and questions without an end of line, too.

    Attributes
    ----------
    lines : list of bytes
        What was kept aside.
    """

    def __init__(self, source: IO[bytes], target: IO[bytes]) -> None:
        super().__init__(daemon=True)
        self._source, self._target = source, target
        self._at_line_start = True
        self.lines: list[bytes] = []

    def run(self) -> None:
        """Copy until nobody writes any more."""
        rest = b""
        while piece := os.read(self._source.fileno(), _PIECE):
            *lines, rest = (rest + piece).split(b"\n")
            for line in lines:
                self._take(line + b"\n")
            if rest and not self._may_be_kept(rest):
                self._write(rest)
                rest = b""
        if rest:
            self._take(rest)

    def show(self, target: IO[bytes]) -> None:
        """Write the lines that were kept aside."""
        target.writelines(line if line.endswith(b"\n") else line + b"\n" for line in self.lines)
        target.flush()

    def _may_be_kept(self, rest: bytes) -> bool:
        """Whether the beginning of a line may be that of one that is kept aside."""
        return self._at_line_start and any(rest.startswith(word) or word.startswith(rest) for word in _BEGINNINGS)

    def _take(self, line: bytes) -> None:
        if self._at_line_start and _LINE.match(line):
            self.lines.append(line)
        else:
            self._write(line)

    def _write(self, text: bytes) -> None:
        self._target.write(text)
        self._target.flush()
        self._at_line_start = text.endswith(b"\n")
