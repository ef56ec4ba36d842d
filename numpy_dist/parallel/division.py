"""A rank's elements divided among the ranks: in one sweep that counts and one that moves them, a tile at a time.

In a tile that stays in the cache, NumPy's own steps take a fifth of the time that they take on whole arrays. A backend
with a `mover` takes half of that again: NumPy has no function that puts elements into several arrays at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Protocol

import numpy as np

from numpy_dist.backends.base import Mover

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from numpy_dist.comm.base import Communicator

ELEMENTS = 1 << 15  # of a tile


class Workspace(Protocol):
    """Where an algorithm has its memory from, and what moves elements for it (see `engine.data.scratch`)."""

    @property
    def mover(self) -> Mover | None:
        """What is faster than NumPy, if there is anything."""

    def empty(self, shape: int | tuple[int, ...], dtype: DTypeLike = float) -> np.ndarray:
        """As `numpy.empty`."""


class Plain:
    """NumPy's memory and functions."""

    mover = None

    def empty(self, shape: int | tuple[int, ...], dtype: DTypeLike = float) -> np.ndarray:
        """As `numpy.empty`."""
        return np.empty(shape, dtype)


PLAIN = Plain()


class Division:
    """Which of the ranks each of `length` elements belongs to, and how many belong to each.

    Parameters
    ----------
    owners : callable
        ``owners(start, stop)`` tells the ranks of some elements, as an array of integers or, of two ranks, booleans.
    length, ranks : int

    Attributes
    ----------
    counts : list of int
    """

    def __init__(self, owners: Callable[[int, int], np.ndarray], length: int, ranks: int) -> None:
        self.ranks = ranks
        step = max(ELEMENTS, 64 * ranks)
        self._tiles = [(start, min(start + step, length)) for start in range(0, length, step)]
        self._owners = owners
        self._kept: list[np.ndarray] = []
        counts = np.zeros(ranks, np.intp)
        for start, stop in self._tiles:
            found = owners(start, stop)
            if found.dtype == bool:
                high = int(np.count_nonzero(found))
                counts[0] += len(found) - high
                if ranks > 1:
                    counts[1] += high
            else:
                self._kept.append(found.astype(np.uint8 if ranks <= 1 << 8 else np.uint16, copy=False))
                counts += np.bincount(found, minlength=ranks)
        self.counts: list[int] = counts.tolist()

    def place(
        self,
        sources: Sequence[Callable[[int, int], np.ndarray]],
        targets: Sequence[Sequence[np.ndarray]],
        mover: Mover | None = None,
    ) -> None:
        """Move what goes along with the elements to their ranks' targets, in order.

        Parameters
        ----------
        sources : sequence of callable
            ``source(start, stop)`` returns what goes along with these elements.
        targets : sequence
            For each source an array for each rank, as long as `counts` tells.
        mover : Mover, optional
            What may be faster than NumPy.
        """
        moves = [self._moving(mover, into) for into in targets]
        filled = [0] * self.ranks
        for number, (start, stop) in enumerate(self._tiles):
            ranks = self._ranks(number, start, stop)
            pieces = [] if all(moves) else self._indices(ranks)
            for source, into, move in zip(sources, targets, moves, strict=True):
                tile = source(start, stop)
                if move is not None:
                    move(ranks, np.ascontiguousarray(tile))
                    continue
                for rank, indices in pieces:
                    place = into[rank][filled[rank] : filled[rank] + len(indices)]
                    tile.take(indices, 0, place, "clip")
            for rank, indices in pieces:
                filled[rank] += len(indices)

    def place_back(self, answers: np.ndarray, target: np.ndarray, mover: Mover | None = None) -> None:
        """Put what came back for the elements, those of each rank in order and the ranks one after the other, in place.

        Parameters
        ----------
        answers, target : ndarray, shape (n, ...)
        """
        ends = list(accumulate(self.counts, initial=0))
        move = self._moving(mover, [answers[lo:hi] for lo, hi in pairwise(ends)], back=True)
        filled = ends[:-1]
        for number, (start, stop) in enumerate(self._tiles):
            ranks = self._ranks(number, start, stop)
            if move is not None:
                move(ranks, target[start:stop])
                continue
            for rank, indices in self._indices(ranks):
                target[start:stop][indices] = answers[filled[rank] : filled[rank] + len(indices)]
                filled[rank] += len(indices)

    def _moving(
        self, mover: Mover | None, places: Sequence[np.ndarray], back: bool = False
    ) -> Callable[..., None] | None:
        return None if mover is None or self.ranks > 1 << 8 else mover.moving(places, sum(self.counts), back)

    def _ranks(self, number: int, start: int, stop: int) -> np.ndarray:
        """The ranks that the elements of a tile belong to: small integers or, of two ranks, booleans."""
        return self._kept[number] if self._kept else self._owners(start, stop)

    def _indices(self, ranks: np.ndarray) -> list[tuple[int, np.ndarray]]:
        """For each rank that has elements in a tile, which ones."""
        if ranks.dtype == bool:
            return [(rank, mask.nonzero()[0]) for rank, mask in enumerate((~ranks, ranks))]
        order = np.argsort(ranks, kind="stable")  # small integers, which NumPy sorts by counting
        ends = np.cumsum(np.bincount(ranks, minlength=self.ranks)).tolist()
        starts = [0, *ends[:-1]]
        return [(r, order[lo:hi]) for r, (lo, hi) in enumerate(zip(starts, ends, strict=True)) if hi > lo]


def part_of(array: np.ndarray) -> Callable[[int, int], np.ndarray]:
    """A source that is an array."""
    return lambda start, stop: array[start:stop]


def offsets(dtype: DTypeLike) -> Callable[[int, int], np.ndarray]:
    """The source of the elements' own numbers."""
    return lambda start, stop: np.arange(start, stop, dtype=dtype)


class Delivery:
    """Buffers for what the ranks exchange; what stays is placed in the result at once.

    Parameters
    ----------
    counts : list of int
        How many elements this rank has for each rank.
    arriving : list of int
        How many elements each rank has for this one.
    comm : Communicator
    space : Workspace

    Attributes
    ----------
    arriving : list of int
        As above.
    """

    def __init__(self, counts: list[int], arriving: list[int], comm: Communicator, space: Workspace) -> None:
        self._counts, self.arriving, self._comm, self._space = counts, arriving, comm, space
        self._sends: list[tuple[int, np.ndarray]] = []
        self._receives: list[tuple[int, np.ndarray]] = []

    def buffers(self, dtype: DTypeLike, rest: tuple[int, ...] = ()) -> tuple[np.ndarray, list[np.ndarray]]:
        """Memory for what arrives here, in rank order; and an array for each rank, to be filled before `exchange`."""
        me = self._comm.rank
        result = self._space.empty((sum(self.arriving), *rest), dtype)
        outgoing = self._space.empty((sum(self._counts) - self._counts[me], *rest), dtype)
        targets, sent, received = [], 0, 0
        for rank, (out, into) in enumerate(zip(self._counts, self.arriving, strict=True)):
            place = result[received : received + into]
            received += into
            if rank == me:
                targets.append(place)
                continue
            targets.append(outgoing[sent : sent + out])
            sent += out
            if out:
                self._sends.append((rank, targets[rank]))
            if into:
                self._receives.append((rank, place))
        return result, targets

    def send_also(self, messages: Sequence[tuple[int, np.ndarray]]) -> None:
        """Send other arrays, each to a rank, after those for the same rank that were made before."""
        self._sends += messages

    def receive_also(self, messages: Sequence[tuple[int, np.ndarray]]) -> None:
        """Receive from ranks into other arrays."""
        self._receives += messages

    def exchange(self) -> None:
        """Send what the targets hold, and receive into the results: one message for each of them and other rank."""
        self._comm.transfer(self._sends, self._receives)
        self._sends, self._receives = [], []
