"""Rows of a distributed array by their positions: asked for at their owners, who send them back.

A rank that wants so many rows that asking would move as much as all of them gets all, and picks for itself.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from numpy_dist.parallel.division import ELEMENTS, Delivery, Division, part_of

# A rank gets all rows where those of others are at most so many times as many as it wants. Its memory stays below three
# times what it holds, wants and gets: small rows may be moved more often than large ones.
TIMES_SMALL, TIMES = 3, 1
SMALL = 16  # bytes
MOST_COMPARED = 16  # cuts that positions are compared with; more are searched by bisection

Empty = Callable[..., np.ndarray]


def pick(
    block: np.ndarray, points: tuple[int, ...], wanted: np.ndarray, comm: Any, empty: Empty = np.empty
) -> np.ndarray:
    """The rows at some positions.

    Collective: one allgather of counts; between any two ranks up to two messages, or one with all rows of a rank.

    Parameters
    ----------
    block : ndarray
        This rank's rows.
    points : tuple of int
        Where the first axis is cut, ascending: rank ``r`` owns ``points[r]`` to ``points[r + 1]``.
    wanted : ndarray of int, shape (n,)
        Positions within the array, 0 and up.
    empty : callable
        ``empty(shape, dtype)`` makes the result's memory, and that of what is sent.

    Returns
    -------
    ndarray, shape (n, ...)
    """
    me, total = comm.rank, points[-1]
    rest = block.shape[1:]
    if comm.size == 1:
        return np.take(block, wanted, axis=0, out=empty((len(wanted), *rest), block.dtype), mode="clip")
    times = TIMES_SMALL if int(np.prod(rest)) * block.itemsize <= SMALL else TIMES
    takes_all = 0 < total - (points[me + 1] - points[me]) <= times * len(wanted)
    division = Division(owners_of(wanted, points), 0 if takes_all else len(wanted), comm.size)
    told = comm.allgather((takes_all, division.counts))
    table = [counts for _, counts in told]
    eager = {rank for rank, (takes, _) in enumerate(told) if takes and rank != me}
    asking = Delivery(table, comm, empty)
    requests, targets = asking.buffers(np.uint32 if total < 1 << 32 else np.int64)
    division.place([lambda start, stop: wanted[start:stop].astype(requests.dtype)], [targets])
    found = empty((len(wanted), *rest), block.dtype)
    block = np.ascontiguousarray(block)
    asking.send_also([(rank, block) for rank in eager if len(block)])
    if takes_all:
        rows = empty((total, *rest), block.dtype)
        parts = [rows[lo:hi] for lo, hi in pairwise(points)]
        asking.receive_also([(rank, part) for rank, part in enumerate(parts) if len(part) and rank != me])
        parts[me][...] = block
    asking.exchange()
    if takes_all:
        np.take(rows, wanted, axis=0, out=found, mode="clip")
    answering = Delivery([list(column) for column in zip(*table, strict=True)], comm, empty)
    answers, replies = answering.buffers(block.dtype, rest)
    lows = np.concatenate([[0], np.cumsum(asking.arriving)]).tolist()
    for rank, (lo, hi) in enumerate(pairwise(lows)):
        _rows_at(block, requests[lo:hi], points[me], replies[rank])
    answering.exchange()
    division.place_back(answers, found)
    return found


def _rows_at(block: np.ndarray, positions: np.ndarray, low: int, into: np.ndarray) -> None:
    """The rows at positions counted from `low`."""
    for start in range(0, len(positions), ELEMENTS):
        part = slice(start, start + ELEMENTS)
        np.take(block, positions[part].astype(np.intp) - low, axis=0, out=into[part], mode="clip")


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
    points: tuple[int, ...], positions: np.ndarray, values: np.ndarray, comm: Any, empty: Empty = np.empty
) -> tuple[np.ndarray, np.ndarray]:
    """Values for rows at some positions, brought to the owners.

    Collective: one allgather of counts, and up to two messages between any two ranks.

    Parameters
    ----------
    positions, values : ndarray, shapes (n,) and (n, ...)
        The ranks' values follow one another in rank order.

    Returns
    -------
    positions, values : ndarray
        What is for this rank, in order.
    """
    division = Division(owners_of(positions, points), len(positions), comm.size)
    delivery = Delivery(comm.allgather(division.counts), comm, empty)
    small = np.dtype(np.uint32 if points[-1] < 1 << 32 else np.int64)
    where, places = delivery.buffers(small)
    what, rows = delivery.buffers(values.dtype, values.shape[1:])
    division.place([lambda start, stop: positions[start:stop].astype(small), part_of(values)], [places, rows])
    delivery.exchange()
    return where, what


def store(block: np.ndarray, low: int, positions: np.ndarray, values: np.ndarray | bool) -> None:
    """Write values to the rows at positions, counted from `low`; of several for one row the last one stays."""
    for start in range(0, len(positions), ELEMENTS):
        part = slice(start, start + ELEMENTS)
        places = positions[part].astype(np.intp) - low
        block[places] = values if isinstance(values, bool) else values[part]


def put(
    block: np.ndarray, points: tuple[int, ...], positions: np.ndarray, values: np.ndarray, comm: Any
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
    store(new, points[comm.rank], where, what)
    store(chosen, points[comm.rank], where, True)
    return new, chosen
