"""Factors of one large matrix whose columns are dealt out to the ranks: LU with partial pivoting, Cholesky, and QR.

Right-looking factorizations by panels ("The design and implementation of the ScaLAPACK LU, QR, and Cholesky
factorization routines", J. Choi et al., Scientific Programming 1996), with a look-ahead of one panel: see
`parallel.columns`. So besides its own columns a rank holds two panels and a part of a product.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from numpy_dist.parallel.columns import Columns, Form, Panel, Values

_CHUNK = 512  # right-hand sides that are treated together: what bounds the memory of a product


# -- Gaussian elimination --------------------------------------------------------------------------------------------


def eliminate(columns: Columns, right: np.ndarray | None = None) -> tuple[np.ndarray, int] | None:
    """Gaussian elimination of a square matrix with partial pivoting. Collective: each panel is sent to all.

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

    def factor(panel: Panel) -> Values:
        part = columns.part(panel)[panel.start :]
        lower, pivots, singular = getrf(part)
        part[:] = lower
        return np.ascontiguousarray(lower), np.append(pivots, singular).astype(np.int64)

    def forms(panel: Panel) -> list[Form]:
        return [((n - panel.start, panel.width), kind), ((panel.width + 1,), np.dtype(np.int64))]

    def apply(panel: Panel, factors: Values, chunk: np.ndarray, _which: object = None) -> None:
        lower, width = factors[0], panel.width
        moved, sources = exchanges[panel]
        chunk = chunk[panel.start :]
        chunk[moved] = chunk[sources]
        chunk[:width] = trsm(1.0, lower[:width], chunk[:width], lower=1, diag=1)
        chunk[width:] -= lower[width:] @ chunk[:width]

    def apply_to_right(panel: Panel, factors: Values) -> None:
        for chunk in _chunks(right):
            apply(panel, factors, chunk)

    exchanges: dict[Panel, tuple[np.ndarray, np.ndarray]] = {}
    for panel, (lower, pivots) in columns.factored(factor, forms, apply, apply_to_right):
        if pivots[-1]:
            return None
        diagonal[panel.start : panel.stop] = lower.diagonal()
        swaps += int(np.count_nonzero(pivots[:-1] != np.arange(panel.width)))
        exchanges = {panel: _permutation(pivots[:-1])}
    return diagonal, swaps


def substitute(columns: Columns, right: np.ndarray) -> None:
    """Solve the triangular system that `eliminate` has left, in place. Collective: each panel is sent to all."""
    from scipy.linalg import get_blas_funcs

    (trsm,) = get_blas_funcs(("trsm",), dtype=right.dtype)

    def above(panel: Panel) -> Values:
        return (np.ascontiguousarray(columns.part(panel)[: panel.stop]),)

    def forms(panel: Panel) -> list[Form]:
        return [((panel.stop, panel.width), right.dtype)]

    for panel, (upper,) in columns.sent(columns.panels[::-1], above, forms):
        start = panel.start
        for chunk in _chunks(right[: panel.stop]):
            chunk[start:] = trsm(1.0, upper[start:], chunk[start:])
            chunk[:start] -= upper[:start] @ chunk[start:]


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


# -- Cholesky --------------------------------------------------------------------------------------------------------


def cholesky(columns: Columns, right: np.ndarray | None = None) -> bool:
    """The lower Cholesky factor in place of a matrix, of which the lower triangle is read.

    Collective: each panel is sent to all. False where the matrix is not positive definite.

    Parameters
    ----------
    columns : Columns
    right : ndarray, (n, k), optional
        This rank's columns of right-hand sides, which become those of the system of the factor's adjoint.
    """
    from scipy.linalg import get_blas_funcs

    n, kind = len(columns.values), columns.values.dtype
    (trsm,) = get_blas_funcs(("trsm",), dtype=kind)

    def factor(panel: Panel) -> Values:
        part = columns.part(panel)
        part[: panel.start] = 0
        try:
            corner, failed = np.linalg.cholesky(part[panel.start : panel.stop]), False
        except np.linalg.LinAlgError:  # all ranks are told, with a message of the size that they expect
            corner, failed = np.eye(panel.width, dtype=kind), True
        part[panel.start : panel.stop] = corner
        # X such that X @ corner.conj().T is what stands below
        part[panel.stop :] = trsm(1.0, corner, part[panel.stop :], side=1, lower=1, trans_a=2)
        return np.ascontiguousarray(part[panel.start :]), np.array([failed])

    def forms(panel: Panel) -> list[Form]:
        return [((n - panel.start, panel.width), kind), ((1,), np.dtype(bool))]

    def apply(panel: Panel, factors: Values, chunk: np.ndarray, which: np.ndarray) -> None:
        lower = factors[0]
        chunk[which[0] :] -= lower[which[0] - panel.start :] @ lower[which - panel.start].conj().T  # below the diagonal

    def apply_to_right(panel: Panel, factors: Values) -> None:
        lower, width = factors[0], panel.width
        for chunk in _chunks(None if right is None else right[panel.start :]):
            chunk[:width] = trsm(1.0, lower[:width], chunk[:width], lower=1)
            chunk[width:] -= lower[width:] @ chunk[:width]

    return not any(failed[0] for _, (_, failed) in columns.factored(factor, forms, apply, apply_to_right))


def substitute_adjoint(columns: Columns, right: np.ndarray) -> None:
    """Solve the system of the adjoint of a Cholesky factor, in place. Collective: each panel is sent to all."""
    from scipy.linalg import get_blas_funcs

    n, kind = len(columns.values), columns.values.dtype
    (trsm,) = get_blas_funcs(("trsm",), dtype=kind)

    def below(panel: Panel) -> Values:
        return (np.ascontiguousarray(columns.part(panel)[panel.start :]),)

    def forms(panel: Panel) -> list[Form]:
        return [((n - panel.start, panel.width), kind)]

    for panel, (lower,) in columns.sent(columns.panels[::-1], below, forms):
        width = panel.width
        for chunk in _chunks(right[panel.start :]):
            chunk[:width] -= lower[width:].conj().T @ chunk[width:]
            chunk[:width] = trsm(1.0, lower[:width], chunk[:width], lower=1, trans_a=2)


# -- QR --------------------------------------------------------------------------------------------------------------


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

    Attributes
    ----------
    taus : dict of int to ndarray
        By the start of this rank's panels, LAPACK's factors of their reflections.
    """

    def __init__(self, columns: Columns, stacked: bool = False) -> None:
        self.columns = columns
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
        panels = [panel for panel in self.columns.panels if panel.stop <= self.columns.end]
        for panel, factors in self.columns.sent(panels[::-1], self._kept, self._forms):
            for chunk, _ in made.chunks([its for its in made.own if its.stop > panel.start]):
                self._apply(panel, factors[0], factors[1], chunk)
        return made

    def _rows(self, panel: Panel) -> slice:
        """The rows that a panel's reflections change."""
        m, n = self.columns.shape
        return slice(panel.start, m - n + panel.stop if self._stacked else m)

    def _forms(self, panel: Panel) -> list[Form]:
        width, kind, rows = panel.width, self.columns.values.dtype, self._rows(panel)
        return [((rows.stop - rows.start, width), kind), ((width, width), kind)]

    def _factor(self, panel: Panel) -> Values:
        from scipy.linalg import get_lapack_funcs

        part = self.columns.part(panel)[self._rows(panel)]
        (geqrf,) = get_lapack_funcs(("geqrf",), dtype=part.dtype)
        part[:], self.taus[panel.start], _, _ = geqrf(part)
        vectors = _vectors(part)
        self._triangles[panel.start] = _triangle(vectors, self.taus[panel.start])
        return vectors, self._triangles[panel.start]

    def _kept(self, panel: Panel) -> Values:
        return _vectors(self.columns.part(panel)[self._rows(panel)]), self._triangles[panel.start]

    def _apply_adjoint(self, panel: Panel, factors: Values, chunk: np.ndarray, _which: np.ndarray) -> None:
        self._apply(panel, factors[0], factors[1].conj().T, chunk)

    def _apply(self, panel: Panel, vectors: np.ndarray, triangle: np.ndarray, chunk: np.ndarray) -> None:
        """``chunk -= V T (V^H chunk)``."""
        chunk = chunk[self._rows(panel)]
        chunk -= vectors @ (triangle @ (vectors.conj().T @ chunk))


def _vectors(packed: np.ndarray) -> np.ndarray:
    """The vectors of reflections, of which LAPACK leaves out the ones on the diagonal."""
    vectors = np.tril(packed, -1)
    np.fill_diagonal(vectors, 1)
    return np.ascontiguousarray(vectors)


def _triangle(vectors: np.ndarray, tau: np.ndarray) -> np.ndarray:
    """T such that the product of the reflections is ``I - V T V^H``."""
    inner = vectors.conj().T @ vectors
    made = np.zeros_like(inner)
    for j, factor in enumerate(tau):
        made[j, j] = factor
        made[:j, j] = -factor * (made[:j, :j] @ inner[:j, j])
    return made


# -- products --------------------------------------------------------------------------------------------------------


def multiply(left: Columns, right: Columns, low: int = 0, high: int | None = None) -> Columns:
    """The product of some columns of a matrix, between ends of panels, and another matrix.

    Collective: each panel of the left one is sent to all.
    """
    made = right.like((left.shape[0], right.shape[1]))
    high = left.shape[1] if high is None else high
    panels = [panel for panel in left.panels if low <= panel.start < high]
    for panel, (part,) in left.sent(panels, *_as_they_are(left)):
        rows = right.values[panel.start - low : panel.stop - low]
        for into, of in zip(_chunks(made.values), _chunks(rows), strict=True):
            into += part @ of
    return made


def multiply_adjoint(left: Columns, right: Columns) -> Columns:
    """The product of the adjoint of a matrix and another matrix. Collective, as `multiply`."""
    made = right.like((left.shape[1], right.shape[1]))
    for panel, (part,) in left.sent(left.panels, *_as_they_are(left)):
        for into, of in zip(_chunks(made.values[panel.start : panel.stop]), _chunks(right.values), strict=True):
            into[...] = part.conj().T @ of
    return made


def gram(x: Columns) -> Columns:
    """The product of the adjoint of a matrix and itself: of it, what lies below the diagonal, and some of the rest.

    Collective, as `multiply`.
    """
    made = x.like((x.shape[1], x.shape[1]))
    for panel, (part,) in x.sent(x.panels, *_as_they_are(x)):
        before = [its for its in x.own if its.start < panel.stop]
        rows = made.values[panel.start : panel.stop]
        for chunk, which in x.chunks(before):
            rows[:, : len(which)] = part.conj().T @ chunk
            rows = rows[:, len(which) :]
    return made


def _as_they_are(matrix: Columns) -> tuple[Callable[[Panel], Values], Callable[[Panel], list[Form]]]:
    """How whole panels are sent."""
    form = matrix.values.dtype
    return (
        lambda panel: (np.ascontiguousarray(matrix.part(panel)),),
        lambda panel: [((matrix.shape[0], panel.width), form)],
    )
