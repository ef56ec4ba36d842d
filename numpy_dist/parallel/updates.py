"""Updates of elements anywhere in an array, brought to the ranks that own them, in the order of the whole sequence.

Rank after rank has a consecutive part of the sequence. The owners get the updates ordered by sender, each sender's in
its own order, so that whoever applies them one after the other does what one rank would have done.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from numpy_dist.parallel.counts import arriving
from numpy_dist.parallel.picking import by_owner

if TYPE_CHECKING:
    from numpy_dist.comm.base import Communicator


def route(
    points: tuple[int, ...], positions: np.ndarray, values: list[np.ndarray], comm: Communicator
) -> tuple[np.ndarray, list[np.ndarray], list[int]]:
    """The updates of this rank's elements.

    Collective: one exchange of counts, and a few messages between any two ranks that have updates for one another.

    Parameters
    ----------
    points : tuple of int
        Where the array is cut, ascending: rank ``r`` owns ``points[r]`` to ``points[r + 1]``.
    positions : ndarray of int, shape (n,)
    values : list of ndarray, shapes (n, ...)
        What belongs to the positions.

    Returns
    -------
    positions, values
        Those within this rank's part (positions as they were given), in the order of the whole sequence.
    counts : list of int
        How many of them come from each rank.
    """
    order, ends = by_owner(positions, points)
    outgoing = [array[order] for array in (positions, *values)]
    given = [int(stop - start) for start, stop in pairwise(ends)]
    counts = arriving(given, comm)
    me = comm.rank
    arrived: list[list[np.ndarray]] = [[] for _ in outgoing]
    sends, receives = [], []
    for rank in range(comm.size):
        part, count = slice(ends[rank], ends[rank + 1]), counts[rank]
        if rank == me:
            for parts, array in zip(arrived, outgoing, strict=True):
                parts.append(array[part])
            continue
        if given[rank]:
            sends += [(rank, np.ascontiguousarray(array[part])) for array in outgoing]
        if count:
            for parts, array in zip(arrived, outgoing, strict=True):
                parts.append(np.empty((count, *array.shape[1:]), array.dtype))
                receives.append((rank, parts[-1]))
    comm.transfer(sends, receives)
    joined = [np.concatenate(parts) for parts in arrived]
    return joined[0], joined[1:], counts
