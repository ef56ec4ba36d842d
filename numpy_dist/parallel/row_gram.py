"""The product of a matrix and its own transpose or adjoint, of which what is there twice is computed once.

It is symmetric, or Hermitian: a rank multiplies its rows with those of the ranks that come after it, half way round,
and sends each of them the transpose or the adjoint of what has come of it. Where two ranks are opposite each other,
each takes half of the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from numpy_dist.parallel.pieces import pieces

if TYPE_CHECKING:
    from numpy_dist.comm.base import Communicator, PendingExchange


_BLOCK = 64  # columns whose other half is filled in at a time


def gram(rows: np.ndarray) -> np.ndarray:
    """The product of a complex matrix and its adjoint, by BLAS's `herk`, which computes half of it."""
    from scipy.linalg import get_blas_funcs

    if not rows.size:  # which BLAS does not take
        return np.zeros((len(rows), len(rows)), rows.dtype)
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
    rows: np.ndarray,
    bounds: Sequence[tuple[int, int]],
    comm: Communicator,
    out: np.ndarray,
    most: int,
    adjoint: bool = False,
) -> None:
    """Compute this rank's rows of the product of a matrix and its transpose, or its adjoint.

    Collective: rows of half of the other ranks come, some at a time, and what others make of them is sent back.

    Parameters
    ----------
    rows : ndarray, (r, k)
        This rank's rows of the matrix.
    bounds : sequence of (int, int)
        Which rows each rank holds: the first one, and the one behind the last.
    out : ndarray, (r, number of rows of all ranks)
        Where they go.
    most : int
        How many elements a rank may have besides, about; the same on all ranks.
    """
    size, rank, depth = comm.size, comm.rank, rows.shape[1]
    counts = [high - low for low, high in bounds]
    longest = max(counts)

    def pair(first: int, step: int) -> tuple[slice, slice]:
        """Which rows of a rank it multiplies with which rows of the rank that comes so many after it."""
        second = (first + step) % size
        all_of_both = slice(0, counts[first]), slice(0, counts[second])
        if 2 * step < size:
            return all_of_both
        half = -(-counts[min(first, second)] // 2)
        return (slice(0, half), all_of_both[1]) if first < second else (all_of_both[0], slice(half, counts[second]))

    # Two panels come, or one goes that has been copied; a block has come of one, and its transpose goes.
    parts = pieces(longest, 2 * (depth + longest), most)
    turns = [(step, part) for step in range(1, size // 2 + 1) for part in parts]

    def met(first: int, turn: int) -> tuple[slice, slice]:
        """As `pair`, of those rows of the other rank that are multiplied in a turn."""
        step, (low, high) = turns[turn]
        taken, whole = pair(first, step)
        start = min(whole.start + low, whole.stop)
        return taken, slice(start, min(whole.start + high, whole.stop))

    def start(turn: int) -> tuple[np.ndarray, PendingExchange]:
        """Let the other's rows come, and send those that another needs."""
        step, _ = turns[turn]
        mine, wanted = met(rank, turn)[1], met((rank - step) % size, turn)[1]
        panel, part = np.empty((mine.stop - mine.start, depth), rows.dtype), np.ascontiguousarray(rows[wanted])
        return panel, comm.start_transfer(
            [((rank - step) % size, part)] if part.size else [], [((rank + step) % size, panel)] if panel.size else []
        )

    def turned(part: np.ndarray) -> np.ndarray:
        return part.conj().T if adjoint else part.T

    following = start(0) if turns else None
    own = out[:, slice(*bounds[rank])]
    if adjoint:
        for low, high in pieces(len(rows), 2 * depth + 3 * len(rows), most):
            held, rest = rows[low:high], own[high:, low:high]
            own[low:high, low:high] = gram(held)
            np.matmul(rows[high:], held.conj().T, out=rest)
            np.conjugate(rest.T, out=own[low:high, high:])
    else:
        np.matmul(rows, rows.T, out=own)  # NumPy's, too, is half of it
    for turn, (step, _) in enumerate(turns):
        assert following is not None
        panel, pending = following
        pending.wait()
        following = start(turn + 1) if turn + 1 < len(turns) else None
        after, before = (rank + step) % size, (rank - step) % size
        taken, others = met(rank, turn)
        block = np.matmul(rows[taken], turned(panel))
        del panel
        out[taken, bounds[after][0] + others.start : bounds[after][0] + others.stop] = block
        taken, others = met(before, turn)
        back = np.empty((others.stop - others.start, taken.stop - taken.start), rows.dtype)
        comm.transfer(
            [(after, np.ascontiguousarray(turned(block)))] if block.size else [], [(before, back)] if back.size else []
        )
        out[others, bounds[before][0] + taken.start : bounds[before][0] + taken.stop] = back
