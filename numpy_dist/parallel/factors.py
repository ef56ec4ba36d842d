"""Factors of one large square matrix whose columns are cut between ranks: LU with partial pivoting, and Cholesky.

Right-looking factorizations by panels ("The design and implementation of the ScaLAPACK LU, QR, and Cholesky
factorization routines", J. Choi et al., Scientific Programming 1996): the rank that holds a panel's columns factors it
by itself, for it has all rows, and sends it to all; each rank then updates its own columns. So besides its own columns
a rank holds one panel and a part of a product. A rank whose columns are done waits; at many ranks that takes up to half
as long again as an even division would, which would have to bring the columns to other ranks first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np

if TYPE_CHECKING:
    from numpy_dist.comm.base import Communicator

T = TypeVar("T")

PANEL = 128  # columns that are factored together
_CHUNK = 512  # columns that are updated together: what bounds the memory of a product


@dataclass(frozen=True)
class Panel:
    """Columns ``start:stop`` of the matrix, which `owner` holds."""

    start: int
    stop: int
    owner: int


def panels(bounds: Sequence[tuple[int, int]], width: int) -> Iterator[Panel]:
    """The columns of all ranks, at most `width` at a time, from left to right.

    Parameters
    ----------
    bounds : sequence of (int, int)
        Which columns each rank holds: the first one, and the one behind the last; each column stands once.
    """
    for (low, high), owner in sorted((its, owner) for owner, its in enumerate(bounds)):
        for start in range(low, high, width):
            yield Panel(start, min(start + width, high), owner)


class Columns:
    """This rank's columns of a square matrix, which a factorization overwrites.

    Parameters
    ----------
    values : ndarray, (n, w)
        Of float or complex dtype, C-contiguous, and of the factorization only.
    bounds : sequence of (int, int)
        As in `panels`.
    comm : Communicator
    width : int
        Of panels.
    """

    def __init__(
        self, values: np.ndarray, bounds: Sequence[tuple[int, int]], comm: Communicator, width: int = PANEL
    ) -> None:
        self.values, self.comm = values, comm
        self.panels = list(panels(bounds, width))
        self.low, self.high = bounds[comm.rank]

    def owns(self, panel: Panel) -> bool:
        """Whether this rank holds a panel."""
        return panel.owner == self.comm.rank

    def part(self, panel: Panel) -> np.ndarray:
        """All rows of a panel of this rank."""
        return self.values[:, panel.start - self.low : panel.stop - self.low]

    def behind(self, panel: Panel) -> np.ndarray:
        """All rows of this rank's columns to the right of a panel."""
        return self.values[:, max(panel.stop - self.low, 0) :]

    def sent(self, panel: Panel, make: Callable[[], T]) -> T:
        """What the owner of a panel makes of it, on every rank (collective: a broadcast)."""
        return self.comm.bcast(make() if self.owns(panel) else None, panel.owner)


def eliminate(columns: Columns, right: np.ndarray | None = None) -> tuple[np.ndarray, int] | None:
    """Gaussian elimination with partial pivoting. Collective: a broadcast for each panel.

    Parameters
    ----------
    columns : Columns
        Gets the upper triangle; below it nothing of use.
    right : ndarray, (n, k), optional
        This rank's columns of right-hand sides, of the same dtype; they become those of the triangular system.

    Returns
    -------
    diagonal : ndarray, (n,)
        Of the triangle, on every rank.
    swaps : int
        How many rows were swapped. None instead of both where a pivot is zero: the matrix is singular.
    """
    from scipy.linalg import get_blas_funcs, get_lapack_funcs

    n, kind = len(columns.values), columns.values.dtype
    (getrf,), (trsm,) = get_lapack_funcs(("getrf",), dtype=kind), get_blas_funcs(("trsm",), dtype=kind)
    diagonal, swaps = np.empty(n, kind), 0
    for panel in columns.panels:
        start, width = panel.start, panel.stop - panel.start

        def factored(panel: Panel = panel) -> tuple[np.ndarray, np.ndarray, int]:
            part = columns.part(panel)[panel.start :]
            lower, pivots, singular = getrf(part)
            part[:] = lower
            return np.ascontiguousarray(lower), pivots, singular

        lower, pivots, singular = columns.sent(panel, factored)
        if singular:
            return None
        diagonal[start : panel.stop] = lower.diagonal()
        swaps += int(np.count_nonzero(pivots != np.arange(len(pivots))))
        moved, sources = _permutation(pivots)
        for block in (columns.behind(panel), right):
            for chunk in _chunks(None if block is None else block[start:]):
                chunk[moved] = chunk[sources]
                chunk[:width] = trsm(1.0, lower[:width], chunk[:width], lower=1, diag=1)
                chunk[width:] -= lower[width:] @ chunk[:width]
    return diagonal, swaps


def substitute(columns: Columns, right: np.ndarray) -> None:
    """Solve the triangular system that `eliminate` has left, in place. Collective: a broadcast for each panel."""
    from scipy.linalg import get_blas_funcs

    (trsm,) = get_blas_funcs(("trsm",), dtype=right.dtype)
    for panel in reversed(columns.panels):
        start, stop = panel.start, panel.stop

        def above(panel: Panel = panel) -> np.ndarray:
            return np.ascontiguousarray(columns.part(panel)[: panel.stop])

        upper = columns.sent(panel, above)
        for chunk in _chunks(right[:stop]):
            chunk[start:] = trsm(1.0, upper[start:], chunk[start:])
            chunk[:start] -= upper[:start] @ chunk[start:]


def cholesky(columns: Columns) -> bool:
    """The lower Cholesky factor in place of the matrix, of which the lower triangle is read.

    Collective: a broadcast for each panel. False where the matrix is not positive definite.
    """
    from scipy.linalg import get_blas_funcs

    (trsm,) = get_blas_funcs(("trsm",), dtype=columns.values.dtype)
    for panel in columns.panels:

        def factored(panel: Panel = panel) -> np.ndarray | None:
            part = columns.part(panel)
            part[: panel.start] = 0
            try:
                corner = np.linalg.cholesky(part[panel.start : panel.stop])
            except np.linalg.LinAlgError:
                return None
            part[panel.start : panel.stop] = corner
            # X such that X @ corner.conj().T is what stands below
            part[panel.stop :] = trsm(1.0, corner, part[panel.stop :], side=1, lower=1, trans_a=2)
            return np.ascontiguousarray(part[panel.start :])

        lower = columns.sent(panel, factored)
        if lower is None:
            return False
        behind = columns.behind(panel)
        first = columns.high - behind.shape[1]  # column of the matrix
        for chunk in _chunks(behind):
            rows, stop = lower[first - panel.start :], first + chunk.shape[1]
            chunk[first:] -= rows @ rows[: stop - first].conj().T  # from its diagonal down
            first = stop
    return True


def _permutation(pivots: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Which rows LAPACK's exchanges change, and from which rows they come."""
    order: dict[int, int] = {}
    for row, other in enumerate(pivots.tolist()):
        if row != other:
            order[row], order[other] = order.get(other, other), order.get(row, row)
    return np.array(list(order), np.intp), np.array(list(order.values()), np.intp)


def _chunks(block: np.ndarray | None) -> Iterator[np.ndarray]:
    for start in range(0, 0 if block is None else block.shape[1], _CHUNK):
        yield block[:, start : start + _CHUNK]  # type: ignore[index]
