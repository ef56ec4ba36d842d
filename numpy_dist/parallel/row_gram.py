"""The product of a matrix and its own transpose or adjoint, of which what is there twice is computed once.

It is symmetric, or Hermitian: a rank multiplies its rows with those of the ranks that come after it, half way round,
and sends each of them the transpose or the adjoint of what has come of it. Where two ranks are opposite each other,
each takes half of the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy_dist.comm.base import Communicator, PendingExchange


_BLOCK = 256  # columns whose other half is filled in at a time


def gram(rows: np.ndarray) -> np.ndarray:
    """The product of a complex matrix and its adjoint, by BLAS's `herk`, which computes half of it."""
    from scipy.linalg import get_blas_funcs

    (herk,) = get_blas_funcs(("herk",), dtype=rows.dtype)
    # BLAS has columns beside each other; what it makes of the transpose is the transpose of what is wanted.
    transposed = not rows.flags.f_contiguous
    made = herk(1.0, rows.T, trans=2) if transposed else herk(1.0, rows)
    for low in range(0, len(made), _BLOCK):
        high = low + _BLOCK
        block = made[low:high, low:high]
        block[...] = np.triu(block) + np.triu(block, 1).conj().T
        made[high:, low:high] = made[low:high, high:].conj().T
    return made.T if transposed else made


def row_gram(
    rows: np.ndarray, bounds: Sequence[tuple[int, int]], comm: Communicator, adjoint: bool = False
) -> np.ndarray:
    """This rank's rows of the product of a matrix and its transpose, or its adjoint.

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

    def turned(part: np.ndarray) -> np.ndarray:
        return part.conj().T if adjoint else part.T

    rows = np.ascontiguousarray(rows)
    made = np.empty((len(rows), max(high for _, high in bounds)), rows.dtype)
    following = start(1) if size > 1 else None
    made[:, slice(*bounds[rank])] = gram(rows) if adjoint else np.matmul(rows, rows.T)  # NumPy's, too, is half of it
    for step in range(1, size // 2 + 1):
        assert following is not None
        panel, pending = following
        pending.wait()
        following = start(step + 1) if step < size // 2 else None
        after, before = (rank + step) % size, (rank - step) % size
        taken, met = pair(rank, step)
        block = np.matmul(rows[taken], turned(panel))
        made[taken, bounds[after][0] + met.start : bounds[after][0] + met.stop] = block
        taken, met = pair(before, step)
        back = np.empty((met.stop - met.start, taken.stop - taken.start), rows.dtype)
        comm.transfer(
            [(after, np.ascontiguousarray(turned(block)))] if block.size else [], [(before, back)] if back.size else []
        )
        made[met, bounds[before][0] + taken.start : bounds[before][0] + taken.stop] = back
    return made
