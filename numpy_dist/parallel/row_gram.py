"""The product of a matrix and its own transpose, of which each pair of ranks computes what both need only once.

It is symmetric: a rank multiplies its rows with those of the ranks that come after it, half way round, and sends each
of them the transpose of what has come of it. Where two ranks are opposite each other, each takes half of the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy_dist.comm.base import Communicator, PendingExchange


def row_gram(rows: np.ndarray, bounds: Sequence[tuple[int, int]], comm: Communicator) -> np.ndarray:
    """This rank's rows of the product of a matrix and its transpose.

    Collective: rows of half of the other ranks come, one rank's at a time, and as many blocks of the result.

    Parameters
    ----------
    rows : ndarray, (r, k)
        This rank's rows of the matrix.
    bounds : sequence of (int, int)
        Which rows each rank holds: the first one, and the one behind the last.
    """
    size, rank = comm.size, comm.rank
    counts = [high - low for low, high in bounds]

    def pair(first: int, step: int) -> tuple[slice, slice]:
        """Which rows of a rank it multiplies with which rows of the rank that comes so many after it."""
        second = (first + step) % size
        all_of_both = slice(0, counts[first]), slice(0, counts[second])
        if 2 * step < size:
            return all_of_both
        half = -(-counts[min(first, second)] // 2)
        return (slice(0, half), all_of_both[1]) if first < second else (all_of_both[0], slice(half, counts[second]))

    def start(step: int) -> tuple[np.ndarray, PendingExchange]:
        """Let the other's rows come, and send those that another needs."""
        met, wanted = pair(rank, step)[1], pair((rank - step) % size, step)[1]
        panel, part = np.empty((met.stop - met.start, rows.shape[1]), rows.dtype), rows[wanted]
        return panel, comm.start_transfer(
            [((rank - step) % size, part)] if part.size else [], [((rank + step) % size, panel)] if panel.size else []
        )

    rows = np.ascontiguousarray(rows)
    made = np.empty((len(rows), max(high for _, high in bounds)), rows.dtype)
    following = start(1) if size > 1 else None
    made[:, slice(*bounds[rank])] = np.matmul(rows, rows.T)  # of which NumPy computes half
    for step in range(1, size // 2 + 1):
        assert following is not None
        panel, pending = following
        pending.wait()
        following = start(step + 1) if step < size // 2 else None
        after, before = (rank + step) % size, (rank - step) % size
        taken, met = pair(rank, step)
        block = np.matmul(rows[taken], panel.T)
        made[taken, bounds[after][0] + met.start : bounds[after][0] + met.stop] = block
        taken, met = pair(before, step)
        back = np.empty((met.stop - met.start, taken.stop - taken.start), rows.dtype)
        comm.transfer(
            [(after, np.ascontiguousarray(block.T))] if block.size else [], [(before, back)] if back.size else []
        )
        made[met, bounds[before][0] + taken.start : bounds[before][0] + taken.stop] = back
    return made
