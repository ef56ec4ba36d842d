"""Parts of a cut axis that overlap: each rank gets the interval that it wants, from all who hold some of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy_dist.comm.base import Communicator

Interval = tuple[int, int]


def intervals(
    block: np.ndarray, held: Sequence[Interval], wanted: Sequence[Interval], comm: Communicator
) -> np.ndarray:
    """This rank's wanted interval of a one-dimensional array. At most one message between any two ranks.

    Parameters
    ----------
    block : ndarray, 1-D
        What this rank holds.
    held, wanted : sequence of (int, int)
        For each rank, the half-open interval of indices that it holds (no two ranks the same index), and that it wants.
    """
    me = comm.rank
    low, high = wanted[me]
    made = np.empty(max(0, high - low), block.dtype)
    sends, receives = [], []
    for rank in range(comm.size):
        first, last = max(held[me][0], wanted[rank][0]), min(held[me][1], wanted[rank][1])
        if first < last:
            piece = block[first - held[me][0] : last - held[me][0]]
            if rank == me:
                made[first - low : last - low] = piece
            else:
                sends.append((rank, np.ascontiguousarray(piece)))
        first, last = max(held[rank][0], low), min(held[rank][1], high)
        if first < last and rank != me:
            receives.append((rank, made[first - low : last - low]))
    comm.transfer(sends, receives)
    return made
