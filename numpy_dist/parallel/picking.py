"""Rows of a distributed array by their positions: asked for at their owners, who send them back.

A rank that wants so many rows that asking would move as much as all of them gets all, and picks for itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

import numpy as np

from numpy_dist.parallel.counts import arriving
from numpy_dist.parallel.division import ELEMENTS, PLAIN, Delivery, Division, Workspace, part_of

if TYPE_CHECKING:
    from numpy_dist.backends.base import Mover
    from numpy_dist.comm.base import Communicator

# A rank gets all rows where those of others are at most so many times as many as it wants. Its memory stays below three
# times what it holds, wants and gets: small rows may be moved more often than large ones.
TIMES_SMALL, TIMES = 3, 1
SMALL = 16  # bytes
MOST_COMPARED = 16  # cuts that positions are compared with; more are searched by bisection
MANY = 1 << 18  # positions that are worth being sorted by parts of the rows
PART_BYTES = 1 << 20  # of rows: about what a core's own cache holds
MOST_PARTS = 1 << 6  # a kernel that writes to more places at a time gets slow


def pick(
    block: np.ndarray, points: tuple[int, ...], wanted: np.ndarray, comm: Communicator, space: Workspace = PLAIN
) -> np.ndarray:
    """The rows at some positions.

    Collective: one exchange of counts; between any two ranks up to two messages, or one with all rows of a rank.

    Parameters
    ----------
    block : ndarray
        This rank's rows.
    points : tuple of int
        Where the first axis is cut, ascending: rank ``r`` owns ``points[r]`` to ``points[r + 1]``.
    wanted : ndarray of int, shape (n,)
        Positions within the array, 0 and up.
    space : Workspace
        It makes the result's memory, and that of what is sent.

    Returns
    -------
    ndarray, shape (n, ...)
    """
    me, total = comm.rank, points[-1]
    rest = block.shape[1:]
    if comm.size == 1:
        return np.take(block, wanted, axis=0, out=space.empty((len(wanted), *rest), block.dtype), mode="clip")
    times = TIMES_SMALL if int(np.prod(rest)) * block.itemsize <= SMALL else TIMES
    takes_all = 0 < total - (points[me + 1] - points[me]) <= times * len(wanted)
    routes = Routes(points, wanted[:0] if takes_all else wanted, block.itemsize if block.ndim == 1 else 0, space)
    told = arriving([2 * count + takes_all for count in routes.counts], comm)
    eager = {rank for rank, number in enumerate(told) if number % 2 and rank != me}
    asking = Delivery(routes.counts, [number // 2 for number in told], comm, space)
    requests, targets = asking.buffers(np.uint32 if total < 1 << 32 else np.int64)
    routes.place([lambda start, stop: wanted[start:stop].astype(requests.dtype)], [targets])
    found = space.empty((len(wanted), *rest), block.dtype)
    block = np.ascontiguousarray(block)
    asking.send_also([(rank, block) for rank in eager if len(block)])
    if takes_all:
        rows = space.empty((total, *rest), block.dtype)
        parts = [rows[lo:hi] for lo, hi in pairwise(points)]
        asking.receive_also([(rank, part) for rank, part in enumerate(parts) if len(part) and rank != me])
        parts[me][...] = block
    asking.exchange()
    if takes_all and not (space.mover and space.mover.rows(rows, 0, wanted, found, back=True)):
        np.take(rows, wanted, axis=0, out=found, mode="clip")
    answering = Delivery(asking.arriving, routes.counts, comm, space)
    answers, replies = answering.buffers(block.dtype, rest)
    lows = np.concatenate([[0], np.cumsum(asking.arriving)]).tolist()
    for rank, (lo, hi) in enumerate(pairwise(lows)):
        _rows_at(block, requests[lo:hi], points[me], replies[rank], space.mover)
    answering.exchange()
    routes.place_back(answers, found)
    return found


def _rows_at(block: np.ndarray, positions: np.ndarray, low: int, into: np.ndarray, mover: Mover | None) -> None:
    """The rows at positions counted from `low`."""
    if mover is not None and mover.rows(block, low, positions, into, back=True):
        return
    for start in range(0, len(positions), ELEMENTS):
        part = slice(start, start + ELEMENTS)
        np.take(block, positions[part].astype(np.intp) - low, axis=0, out=into[part], mode="clip")


class Routes:
    """The way of a rank's positions to their owners, and back.

    Many positions are sorted by parts of the owners' rows that fit into a cache: in any order the owners would wait for
    memory at each. Those of one part stay in their order. (Radix partitioning; Manegold, Boncz and Kersten, "Optimizing
    main-memory join on modern hardware", TKDE 2002.)

    Parameters
    ----------
    points : tuple of int
        See `pick`.
    positions : ndarray of int, shape (n,)
    itemsize : int
        Bytes of a row, if each is one element; else 0.
    space : Workspace

    Attributes
    ----------
    counts : list of int
        How many positions are for each rank.
    """

    def __init__(self, points: tuple[int, ...], positions: np.ndarray, itemsize: int, space: Workspace) -> None:
        ranks, self._mover = len(points) - 1, space.mover
        owners = owners_of(positions, points)
        shift = self._shift(points, len(positions), itemsize)
        self._firsts = list(range(ranks + 1))  # of each rank's parts
        if shift is not None:
            self._firsts = [(point >> shift) + rank for rank, point in enumerate(points)]

            def parts(start: int, stop: int) -> np.ndarray:
                return (positions[start:stop] >> shift).astype(np.uint8) + owners(start, stop)

            self._division = Division(parts, len(positions), self._firsts[-1])
        else:
            self._division = Division(owners, len(positions), ranks)
        self.counts = [sum(self._division.counts[lo:hi]) for lo, hi in pairwise(self._firsts)]

    def _shift(self, points: tuple[int, ...], count: int, itemsize: int) -> int | None:
        """By how many bits positions are shifted to tell the parts; None if parts are not worth it."""
        mover, rows = self._mover, points[-1]
        if mover is None or count < MANY or itemsize not in (1, 2, 4, 8) or len(points) > MOST_PARTS:
            return None
        shift = max((PART_BYTES // itemsize).bit_length() - 1, ((rows - 1) // MOST_PARTS).bit_length())
        sizes = {4 if rows < 1 << 32 else 8, itemsize}
        ready = all([mover.moving([np.empty(0, f"u{size}")] * 3, count) for size in sizes])  # all are asked for
        return shift if ready and rows >> shift else None

    def place(
        self, sources: Sequence[Callable[[int, int], np.ndarray]], targets: Sequence[Sequence[np.ndarray]]
    ) -> None:
        """As `Division.place`: `targets` has, for each source, an array for each rank."""
        self._division.place(sources, [self._by_part(into) for into in targets], self._mover)

    def place_back(self, answers: np.ndarray, target: np.ndarray) -> None:
        """As `Division.place_back`."""
        self._division.place_back(answers, target, self._mover)

    def _by_part(self, targets: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The targets of the ranks, divided between their parts."""
        found: list[np.ndarray] = []
        for target, first, last in zip(targets, self._firsts, self._firsts[1:], strict=False):
            ends = accumulate(self._division.counts[first:last], initial=0)
            found += [target[lo:hi] for lo, hi in pairwise(ends)]
        return found


def owners_of(positions: np.ndarray, points: tuple[int, ...]) -> Callable[[int, int], np.ndarray]:
    """Tells for some of the positions the ranks that own them (see `pick`)."""
    inner = points[1:-1]

    def owners(start: int, stop: int) -> np.ndarray:
        tile = positions[start:stop]
        if len(inner) == 1:
            return tile >= inner[0]
        if len(inner) > MOST_COMPARED:
            return np.searchsorted(inner, tile, "right")
        found = np.zeros(len(tile), np.uint8)
        for point in inner:
            found += tile >= point
        return found

    return owners


def by_owner(positions: np.ndarray, points: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """An order in which positions are by their owners, stable; and where each owner's begin and, last, end."""
    owners = np.searchsorted(points, positions, "right") - 1
    small = owners.astype(np.uint16 if len(points) < 1 << 16 else np.intp)  # sorted by counting, as NumPy does it
    order = np.argsort(small, kind="stable")
    return order, np.searchsorted(small[order], np.arange(len(points)))


def from_zero(index: np.ndarray, n: int) -> tuple[np.ndarray | None, bool]:
    """Indices along an axis of extent `n` as positions, in one sweep; None where one is out of bounds.

    Returns
    -------
    positions : ndarray of intp or None
        `index` itself where it has no negative ones.
    changed : bool
        Whether it is another array.
    """
    flat = index.reshape(-1)
    lows, highs = [0], [-1]
    for start in range(0, len(flat), ELEMENTS):
        tile = flat[start : start + ELEMENTS]
        lows.append(int(tile.min()))
        highs.append(int(tile.max()))
    if min(lows) < -n or max(highs) >= n:
        return None, False
    if min(lows) == 0:
        return index.astype(np.intp, copy=False), index.dtype != np.intp
    made = index.astype(np.intp)
    np.add(made, n, out=made, where=made < 0)
    return made, True


def route(
    points: tuple[int, ...], positions: np.ndarray, values: np.ndarray, comm: Communicator, space: Workspace = PLAIN
) -> tuple[np.ndarray, np.ndarray]:
    """Values for rows at some positions, brought to the owners.

    Collective: one exchange of counts, and up to two messages between any two ranks.

    Parameters
    ----------
    positions, values : ndarray, shapes (n,) and (n, ...)
        The ranks' values follow one another in rank order.

    Returns
    -------
    positions, values : ndarray
        What is for this rank: for any row, in the order of the ranks' values.
    """
    routes = Routes(points, positions, values.itemsize if values.ndim == 1 else 0, space)
    delivery = Delivery(routes.counts, arriving(routes.counts, comm), comm, space)
    small = np.dtype(np.uint32 if points[-1] < 1 << 32 else np.int64)
    where, places = delivery.buffers(small)
    what, rows = delivery.buffers(values.dtype, values.shape[1:])
    routes.place([lambda start, stop: positions[start:stop].astype(small), part_of(values)], [places, rows])
    delivery.exchange()
    return where, what


def store(
    block: np.ndarray, low: int, positions: np.ndarray, values: np.ndarray | bool, space: Workspace = PLAIN
) -> None:
    """Write values to the rows at positions, counted from `low`; of several for one row the last one stays."""
    if not isinstance(values, bool) and space.mover and space.mover.rows(block, low, positions, values):
        return
    for start in range(0, len(positions), ELEMENTS):
        part = slice(start, start + ELEMENTS)
        places = positions[part].astype(np.intp) - low
        block[places] = values if isinstance(values, bool) else values[part]


def put(
    block: np.ndarray, points: tuple[int, ...], positions: np.ndarray, values: np.ndarray, comm: Communicator
) -> tuple[np.ndarray, np.ndarray]:
    """As `route` and `store`, into new memory.

    Parameters
    ----------
    block : ndarray
        This rank's rows: its shape and dtype matter, not its values.

    Returns
    -------
    new : ndarray
        Like `block`.
    chosen : ndarray of bool
        Which rows of it have got a value.
    """
    where, what = route(points, positions, values, comm)
    new, chosen = np.zeros(block.shape, values.dtype), np.zeros(len(block), bool)
    if comm.delivers:  # else positions are what nobody has sent
        store(new, points[comm.rank], where, what)
        store(chosen, points[comm.rank], where, True)
    return new, chosen
