"""Values that each rank has for positions anywhere in an array, brought to the ranks that own these positions."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np


def deliver(positions: np.ndarray, values: np.ndarray, points: tuple[int, ...], comm: Any) -> np.ndarray:
    """This rank's part of an array whose elements the ranks have in any order.

    Collective: one allgather of counts, and up to two messages between any two ranks.

    Parameters
    ----------
    positions, values : ndarray, shape (n,)
        What this rank has. All ranks' positions together are those of the array, each once.
    points : tuple of int
        Where the array is cut, ascending: rank ``r`` owns ``points[r]`` to ``points[r + 1]``.

    Returns
    -------
    ndarray
    """
    me, low = comm.rank, points[comm.rank]
    made = np.empty(points[me + 1] - low, values.dtype)
    owners = np.searchsorted(points, positions, "right") - 1
    order = np.argsort(owners, kind="stable")
    ends = np.searchsorted(owners[order], np.arange(comm.size + 1))
    positions, values = positions[order], values[order]
    table = comm.allgather([int(stop - start) for start, stop in pairwise(ends)])
    sends, receives, arriving = [], [], []
    for rank in range(comm.size):
        piece = slice(ends[rank], ends[rank + 1])
        if rank == me:
            made[positions[piece] - low] = values[piece]
            continue
        if table[me][rank]:
            sends += [(rank, np.ascontiguousarray(positions[piece])), (rank, np.ascontiguousarray(values[piece]))]
        if table[rank][me]:
            arriving.append((np.empty(table[rank][me], positions.dtype), np.empty(table[rank][me], values.dtype)))
            receives += [(rank, buffer) for buffer in arriving[-1]]
    comm.exchange(sends, receives)
    for where, what in arriving:
        made[where - low] = what
    return made
