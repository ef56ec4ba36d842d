"""Equal lines of several ranks once, with the ranks: `numpy-dist run --merge-output`.

Ranks write ``[rank 3] text``. Lines wait until all ranks have written the same, or for some seconds, and each rank's
lines stay in their order.
"""

from __future__ import annotations

import os
import re
import select
import threading
import time
from collections import Counter, deque
from typing import IO

from numpy_dist.comm.divergence.ranks_in_words import ranks_in_words

__all__ = ["LineGroups", "Merger", "patience"]

_LINE = re.compile(rb"\[rank (\d+)\] ")
_LOOK_SECONDS = 0.1
_PIECE = 1 << 16


def patience(ranks: int, cores: int) -> float:
    """Seconds that a line waits for the same one of other ranks: they start one by one where cores are few."""
    return 1.0 + 0.25 * ranks / max(1, cores)


class LineGroups:
    """Lines of ranks that wait to be told.

    Parameters
    ----------
    size : int
        How many ranks there are.
    seconds : float
        How long a line waits for the same one of other ranks.
    """

    def __init__(self, size: int, seconds: float) -> None:
        self._size, self._seconds = size, seconds
        self._queues: dict[int, deque[tuple[bytes, float]]] = {}
        self._counts: dict[int, Counter[bytes]] = {}

    def add(self, rank: int, line: bytes, now: float) -> None:
        """A rank has written a line at this time."""
        self._queues.setdefault(rank, deque()).append((line, now))
        self._counts.setdefault(rank, Counter())[line] += 1

    def take(self, now: float) -> list[bytes]:
        """What is to be told by now; ``inf`` for all that is left."""
        told = []
        while heads := self._heads():
            chosen = next((line for line, ranks in heads.items() if len(ranks) == self._size), None)
            if chosen is None:
                if not any(now - queue[0][1] >= self._seconds for queue in self._queues.values()):
                    break
                chosen = next((line for line, ranks in heads.items() if not self._comes_later(line, ranks)), None)
                chosen = next(iter(heads)) if chosen is None else chosen
            told.append(self._told(chosen, heads[chosen]))
        return told

    def _heads(self) -> dict[bytes, list[int]]:
        """The next line of each rank, that of the lowest rank first, with the ranks that have it."""
        found: dict[bytes, list[int]] = {}
        for rank in sorted(self._queues):
            found.setdefault(self._queues[rank][0][0], []).append(rank)
        return found

    def _comes_later(self, line: bytes, ranks: list[int]) -> bool:
        """Whether another rank has the line behind others: it can be told with these."""
        return any(self._counts[rank][line] for rank in self._queues if rank not in ranks)

    def _told(self, line: bytes, ranks: list[int]) -> bytes:
        for rank in ranks:
            self._queues[rank].popleft()
            self._counts[rank][line] -= 1
            if not self._queues[rank]:
                del self._queues[rank], self._counts[rank]
        word = "rank" if len(ranks) == 1 else "ranks"
        return f"[{word} {ranks_in_words(ranks)}] ".encode() + line


class Merger(threading.Thread):
    """Reads what ranks write to a pipe, and writes equal lines once.

    Parameters
    ----------
    size : int
        How many ranks there are.
    seconds : float
        How long a line waits for the same one of other ranks.
    target : file
        Gets whole lines; what is no rank's as it comes.

    Attributes
    ----------
    for_ranks : file
        What ranks write to.
    """

    def __init__(self, size: int, seconds: float, target: IO[bytes]) -> None:
        super().__init__(daemon=True)
        self._source, written = os.pipe()
        self.for_ranks = os.fdopen(written, "wb")
        self._groups = LineGroups(size, seconds)
        self._target = target
        self._rest = b""
        self._over = False

    def end(self, seconds: float) -> None:
        """Tell what is left, once no rank writes any more; wait for that so long."""
        self._over = True  # a process that a rank has left may hold the pipe
        self.for_ranks.close()
        self.join(seconds)

    def run(self) -> None:
        """Read until nobody can write any more."""
        while True:
            if select.select([self._source], [], [], _LOOK_SECONDS)[0]:
                piece = os.read(self._source, _PIECE)
                if not piece:
                    break
                *lines, self._rest = (self._rest + piece).split(b"\n")
                for line in lines:
                    self._take(line + b"\n")
            elif self._rest and not self._rest.startswith(b"["):  # a bar, or a question
                self._write(self._rest)
                self._rest = b""
            elif self._over:
                break
            for text in self._groups.take(time.monotonic()):
                self._write(text)
        if self._rest:
            self._take(self._rest + b"\n")
        for text in self._groups.take(float("inf")):
            self._write(text)
        os.close(self._source)

    def _write(self, text: bytes) -> None:
        self._target.write(text)
        self._target.flush()

    def _take(self, line: bytes) -> None:
        """A line, which is told when others have told theirs, if it is a rank's."""
        match = _LINE.match(line)
        if match is None:
            self._write(line)
        else:
            self._groups.add(int(match[1]), line[match.end() :], time.monotonic())
