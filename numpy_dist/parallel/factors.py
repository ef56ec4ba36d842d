"""Factors of one large matrix whose columns are dealt out to the ranks: LU with partial pivoting, Cholesky, and QR.

Right-looking factorizations by panels ("The design and implementation of the ScaLAPACK LU, QR, and Cholesky
factorization routines", J. Choi et al., Scientific Programming 1996), with a look-ahead of one panel: see
`parallel.columns`. So besides its own columns a rank holds two panels and a part of a product.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from numpy_dist.parallel.columns import Columns, Form, Panel, Values, column_chunks
from numpy_dist.parallel.gemm import subtract_product

# -- Gaussian elimination --------------------------------------------------------------------------------------------


class Elimination(NamedTuple):
    """What every rank knows of a Gaussian elimination.

    Attributes
    ----------
    diagonal : ndarray, (k,)
        Of the upper triangle.
    pivots : ndarray of int64, (k,)
        With which row each row was exchanged, one after the other.
    singular : int
        Which pivot was the first that is zero, counted from one; 0 where none is.
    """

    diagonal: np.ndarray
    pivots: np.ndarray
    singular: int


def eliminate(columns: Columns, right: np.ndarray | None = None) -> Elimination:
    """Gaussian elimination of an (m, n) matrix with partial pivoting. Collective: each panel is sent to all.

    Parameters
    ----------
    columns : Columns
        Gets the upper triangle, and below it multipliers in the rows where they were at first: `exchange_multipliers`.
    right : ndarray, (m, k), optional
        This rank's columns of right-hand sides, of the same dtype; they become those of the triangular system.
    """
    from scipy.linalg import get_blas_funcs, get_lapack_funcs

    (m, _), kind = columns.shape, columns.values.dtype
    (getrf,), (trsm,) = get_lapack_funcs(("getrf",), dtype=kind), get_blas_funcs(("trsm",), dtype=kind)
    diagonal, pivots, singular = np.empty(columns.end, kind), np.empty(columns.end, np.int64), 0

    def factor(panel: Panel) -> Values:
        part = columns.part(panel)[panel.start :]
        lower, exchanged, zero = getrf(part)
        part[:] = lower
        return np.ascontiguousarray(lower), np.append(exchanged, zero).astype(np.int64)

    def forms(panel: Panel) -> list[Form]:
        return [((m - panel.start, panel.width), kind), ((panel.width + 1,), np.dtype(np.int64))]

    def apply(panel: Panel, factors: Values, chunk: np.ndarray, _which: object = None) -> None:
        lower, width = factors[0], panel.width
        moved, sources = exchanges[panel]
        chunk = chunk[panel.start :]
        chunk[moved] = chunk[sources]
        chunk[:width] = trsm(1.0, lower[:width], chunk[:width], lower=1, diag=1)
        subtract_product(chunk[width:], lower[width:], chunk[:width])

    def apply_to_right(panel: Panel, factors: Values) -> None:
        for chunk in column_chunks(right):
            apply(panel, factors, chunk)

    exchanges: dict[Panel, tuple[np.ndarray, np.ndarray]] = {}
    for panel, (lower, found) in columns.factored(factor, forms, apply, apply_to_right):
        *exchanged, zero = found.tolist()
        singular = singular or (panel.start + zero if zero else 0)
        diagonal[panel.start : panel.stop] = lower.diagonal()
        pivots[panel.start : panel.stop] = found[:-1] + panel.start
        exchanges = {panel: _permutation(exchanged)}
    return Elimination(diagonal, pivots, singular)


def exchange_multipliers(columns: Columns, pivots: np.ndarray) -> None:
    """Bring the multipliers that `eliminate` has left to the rows of the lower triangle."""
    for panel in columns.own:
        below = columns.part(panel)[panel.stop :]
        moved, sources = _permutation((pivots[panel.stop :] - panel.stop).tolist())
        below[moved] = below[sources]


def exchanged_rows(pivots: np.ndarray, back: bool = False) -> np.ndarray:
    """The order in which exchanges leave rows, or in which rows are as they were before."""
    order = np.arange(len(pivots))
    moved, sources = _permutation(pivots.tolist())
    order[moved] = sources
    return np.argsort(order) if back else order


def _permutation(pivots: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """Which rows LAPACK's exchanges change, and from which rows they come."""
    order: dict[int, int] = {}
    for row, other in enumerate(pivots):
        if row != other:
            order[row], order[other] = order.get(other, other), order.get(row, row)
    return np.array(list(order), np.intp), np.array(list(order.values()), np.intp)


# -- Cholesky --------------------------------------------------------------------------------------------------------


def cholesky(columns: Columns, right: np.ndarray | None = None) -> int:
    """The lower Cholesky factor in place of a matrix, of which the lower triangle is read.

    Collective: each panel is sent to all. Returns the order of the leading minor that is not positive definite, or 0.

    Parameters
    ----------
    columns : Columns
    right : ndarray, (n, k), optional
        This rank's columns of right-hand sides, which become those of the system of the factor's adjoint.
    """
    from scipy.linalg import get_blas_funcs, get_lapack_funcs

    n, kind = len(columns.values), columns.values.dtype
    (potrf,), (trsm,) = get_lapack_funcs(("potrf",), dtype=kind), get_blas_funcs(("trsm",), dtype=kind)

    def factor(panel: Panel) -> Values:
        part = columns.part(panel)
        part[: panel.start] = 0
        corner, failed = potrf(part[panel.start : panel.stop], lower=1)
        part[panel.start : panel.stop] = corner
        # X such that X @ corner.conj().T is what stands below; nothing of use where all ranks are told of a failure
        part[panel.stop :] = trsm(1.0, corner, part[panel.stop :], side=1, lower=1, trans_a=2)
        return np.ascontiguousarray(part[panel.start :]), np.array([failed and panel.start + failed])

    def forms(panel: Panel) -> list[Form]:
        return [((n - panel.start, panel.width), kind), ((1,), np.dtype(np.int64))]

    def apply(panel: Panel, factors: Values, chunk: np.ndarray, which: np.ndarray) -> None:
        lower = factors[0]
        below = chunk[which[0] :]  # what is left of the lower triangle
        subtract_product(below, lower[which[0] - panel.start :], lower[which - panel.start].conj().T)

    def apply_to_right(panel: Panel, factors: Values) -> None:
        lower, width = factors[0], panel.width
        for chunk in column_chunks(None if right is None else right[panel.start :]):
            chunk[:width] = trsm(1.0, columns.divisor(lower[:width]), chunk[:width], lower=1)
            subtract_product(chunk[width:], lower[width:], chunk[:width])

    swept = columns.factored(factor, forms, apply, apply_to_right)
    return next((int(failed[0]) for _, (_, failed) in swept if failed[0]), 0)


# -- QR --------------------------------------------------------------------------------------------------------------


def reflection(larfg: Callable[..., tuple], column: np.ndarray) -> tuple[Any, np.ndarray, Any]:
    """What LAPACK's `larfg` makes of a column: the first element, the rest of the reflection's vector, its factor."""
    below = column[1:] if len(column) > 1 else np.zeros(1, column.dtype)  # SciPy's wrapper wants one that is not read
    first, rest, tau = larfg(len(column), column[0], below)
    return first, rest[: len(column) - 1], tau


class Reflections:
    """Householder's QR of a matrix up to column `end`, in place; see `reduce`.

    Each panel's reflections are one product, ``I - V T V^H`` ("A storage-efficient WY representation for products of
    Householder transformations", R. Schreiber and C. Van Loan, SIAM J. Sci. Stat. Comput. 1989). Signs are LAPACK's:
    the diagonal of the triangle is real.

    Parameters
    ----------
    columns : Columns
        Gets the triangle, and below it the vectors of the reflections.
    stacked : bool
        Whether the last rows of the matrix, as many as columns, are a diagonal matrix: then the zeros that no
        reflection changes are left out.
    first_row : int
        In which row the vector of the first column's reflection begins.

    Attributes
    ----------
    taus : dict of int to ndarray
        By the start of this rank's panels, LAPACK's factors of their reflections.
    """

    def __init__(self, columns: Columns, stacked: bool = False, first_row: int = 0) -> None:
        self.columns, self._first_row = columns, first_row
        self.taus: dict[int, np.ndarray] = {}
        self._triangles: dict[int, np.ndarray] = {}
        self._stacked = stacked

    def reduce(self) -> None:
        """Factor the matrix. Collective: each panel is sent to all."""
        for _ in self.columns.factored(self._factor, self._forms, self._apply_adjoint):
            pass

    def upper(self) -> np.ndarray:
        """This rank's columns of the triangle, (end, w)."""
        rows = np.arange(self.columns.end)[:, None]
        return np.where(rows <= self.columns.indices(), self.columns.values[: self.columns.end], 0)

    def diagonal(self) -> np.ndarray:
        """The triangle's diagonal, on every rank. Collective: an allgather."""
        return self.columns.diagonal()[: self.columns.end]

    def basis(self, ncolumns: int) -> Columns:
        """The first columns of the orthogonal factor. Collective: each panel is sent to all."""
        made = self.columns.like((self.columns.shape[0], ncolumns))
        made.add_to_diagonal(1)
        for panel, factors in self._sent():
            for chunk, _ in made.chunks([its for its in made.own if its.stop > panel.start]):
                self._apply(panel, factors[0], factors[1], chunk)
        return made

    def multiply(self, matrix: Columns) -> None:
        """Multiply the orthogonal factor by a matrix, in place. Collective: each panel is sent to all."""
        for panel, factors in self._sent():
            for chunk in column_chunks(matrix.values):
                self._apply(panel, factors[0], factors[1], chunk)

    def take(self, panel: Panel, taus: np.ndarray) -> None:
        """Take the reflections of a panel of this rank, whose vectors are in place already."""
        self.taus[panel.start] = taus
        self._triangles[panel.start] = triangle_of(self._kept_vectors(panel), taus)

    def _sent(self) -> Iterator[tuple[Panel, Values]]:
        """The reflections of all panels, the last one first."""
        panels = [panel for panel in self.columns.panels if panel.stop <= self.columns.end]
        return self.columns.sent(panels[::-1], self._kept, self._forms)

    def _rows(self, panel: Panel) -> slice:
        """The rows that a panel's reflections change."""
        m, n = self.columns.shape
        first = min(panel.start + self._first_row, m)
        return slice(first, m - n + panel.stop if self._stacked else m)

    def _forms(self, panel: Panel) -> list[Form]:
        width, kind, rows = panel.width, self.columns.values.dtype, self._rows(panel)
        return [((rows.stop - rows.start, width), kind), ((width, width), kind)]

    def _factor(self, panel: Panel) -> Values:
        from scipy.linalg import get_lapack_funcs

        part = self.columns.part(panel)[self._rows(panel)]
        (geqrf,) = get_lapack_funcs(("geqrf",), dtype=part.dtype)
        part[:], self.taus[panel.start], _, _ = geqrf(part)
        vectors = vectors_of(part)
        self._triangles[panel.start] = triangle_of(vectors, self.taus[panel.start])
        return vectors, self._triangles[panel.start]

    def _kept(self, panel: Panel) -> Values:
        return self._kept_vectors(panel), self._triangles[panel.start]

    def _kept_vectors(self, panel: Panel) -> np.ndarray:
        return vectors_of(self.columns.part(panel)[self._rows(panel)])

    def _apply_adjoint(self, panel: Panel, factors: Values, chunk: np.ndarray, _which: np.ndarray) -> None:
        self._apply(panel, factors[0], factors[1].conj().T, chunk)

    def _apply(self, panel: Panel, vectors: np.ndarray, triangle: np.ndarray, chunk: np.ndarray) -> None:
        """``chunk -= V T (V^H chunk)``."""
        chunk = chunk[self._rows(panel)]
        subtract_product(chunk, vectors, triangle @ (vectors.conj().T @ chunk))


def vectors_of(packed: np.ndarray) -> np.ndarray:
    """The vectors of reflections, of which LAPACK leaves out the ones on the diagonal."""
    vectors = np.tril(packed, -1)
    np.fill_diagonal(vectors, 1)
    return np.ascontiguousarray(vectors)


def triangle_of(vectors: np.ndarray, tau: np.ndarray) -> np.ndarray:
    """T such that the product of reflections is ``I - V T V^H``."""
    inner = vectors.conj().T @ vectors
    made = np.zeros_like(inner)
    for j, factor in enumerate(tau):
        made[j, j] = factor
        made[:j, j] = -factor * (made[:j, :j] @ inner[:j, j])
    return made
