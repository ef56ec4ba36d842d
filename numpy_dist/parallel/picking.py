"""Rows of a distributed array by their positions: asked for at their owners, who send them back."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np


def pick(block: np.ndarray, points: tuple[int, ...], wanted: np.ndarray, comm: Any) -> np.ndarray:
    """The rows at some positions.

    Collective: one allgather of counts, and up to two messages each way between any two ranks. Where more rows are
    wanted than there are, each is asked for once.

    Parameters
    ----------
    block : ndarray
        This rank's rows.
    points : tuple of int
        Where the first axis is cut, ascending: rank ``r`` owns ``points[r]`` to ``points[r + 1]``.
    wanted : ndarray of int, shape (n,)
        Positions within the array, 0 and up.

    Returns
    -------
    ndarray, shape (n, ...)
    """
    if len(wanted) > points[-1]:
        different, places = np.unique(wanted, return_inverse=True)
        return pick_each(block, points, different, comm)[places]
    return pick_each(block, points, wanted, comm)


def pick_each(block: np.ndarray, points: tuple[int, ...], wanted: np.ndarray, comm: Any) -> np.ndarray:
    """As `pick`; each position is asked for as often as it is wanted."""
    order, ends = by_owner(wanted, points)
    asked = wanted[order]
    table = comm.allgather([int(stop - start) for start, stop in pairwise(ends)])
    me, low = comm.rank, points[comm.rank]
    requests = {r: np.empty(row[me], wanted.dtype) for r, row in enumerate(table) if row[me] and r != me}
    ours = {r: slice(ends[r], ends[r + 1]) for r in range(comm.size) if table[me][r] and r != me}
    comm.exchange([(r, np.ascontiguousarray(asked[part])) for r, part in ours.items()], list(requests.items()))
    found = np.empty((len(wanted), *block.shape[1:]), block.dtype)
    answers = {r: np.empty((table[me][r], *block.shape[1:]), block.dtype) for r in ours}
    sends = [(r, np.ascontiguousarray(block[positions - low])) for r, positions in requests.items()]
    comm.exchange(sends, list(answers.items()))
    mine = slice(ends[me], ends[me + 1])
    found[order[mine]] = block[asked[mine] - low]
    for r, part in ours.items():
        found[order[part]] = answers[r]
    return found


def by_owner(positions: np.ndarray, points: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """An order in which positions are by their owners, stable; and where each owner's begin and, last, end."""
    owners = np.searchsorted(points, positions, "right") - 1
    small = owners.astype(np.uint16 if len(points) < 1 << 16 else np.intp)  # sorted by counting, as NumPy does it
    order = np.argsort(small, kind="stable")
    return order, np.searchsorted(small[order], np.arange(len(points)))


def put(
    block: np.ndarray, points: tuple[int, ...], positions: np.ndarray, values: np.ndarray, comm: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Values for rows at some positions, brought to the owners; of several for one row the last one stays.

    Collective: one allgather of counts, and up to two messages between any two ranks.

    Parameters
    ----------
    block : ndarray
        This rank's rows: its shape and dtype matter, not its values.
    positions, values : ndarray, shapes (n,) and (n, ...)
        The ranks' values follow one another in rank order.

    Returns
    -------
    new : ndarray
        Like `block`.
    chosen : ndarray of bool
        Which rows of it have got a value.
    """
    order, ends = by_owner(positions, points)
    positions, values = positions[order], values[order]
    table = comm.allgather([int(stop - start) for start, stop in pairwise(ends)])
    me, low = comm.rank, points[comm.rank]
    parts: dict[int, tuple[np.ndarray, np.ndarray]] = {}
    sends, receives = [], []
    for r in range(comm.size):
        piece = slice(ends[r], ends[r + 1])
        if r == me:
            parts[r] = positions[piece], values[piece]
            continue
        if table[me][r]:
            sends += [(r, np.ascontiguousarray(positions[piece])), (r, np.ascontiguousarray(values[piece]))]
        if table[r][me]:
            count = table[r][me]
            parts[r] = np.empty(count, positions.dtype), np.empty((count, *values.shape[1:]), values.dtype)
            receives += [(r, buffer) for buffer in parts[r]]
    comm.exchange(sends, receives)
    new, chosen = np.zeros(block.shape, values.dtype), np.zeros(len(block), bool)
    for r in sorted(parts):
        where, what = parts[r]
        new[where - low] = what
        chosen[where - low] = True
    return new, chosen
