"""The reduction of a matrix, whose columns are dealt out to the ranks, to a band with the same spectrum.

The first of two stages, in which products of matrices do all work on the matrix: for eigenvalues as in "A framework for
symmetric band reduction" (C. Bischof, B. Lang, X. Sun, ACM Trans. Math. Softw. 2000), for singular values as in
"Efficient parallel reduction to bidiagonal form" (B. Grosser, B. Lang, Parallel Computing 1999). The second stage, of
a few diagonals, is a rank's (`parallel.band_values`). Vectors would have to go through both, so they are found in
another way (`parallel.spectra`).
"""

from __future__ import annotations

import numpy as np

from numpy_dist.parallel.column_exchange import ColumnExchange
from numpy_dist.parallel.columns import Columns, Form, Panel, column_chunks
from numpy_dist.parallel.factors import triangle_of, vectors_of
from numpy_dist.parallel.gemm import subtract_product

WIDTH = 32  # diagonals beside the main one, at most: the work of the second stage grows with them


def hermitian_band(a: Columns) -> np.ndarray:
    """The lower half of a Hermitian band matrix with the eigenvalues of a Hermitian matrix.

    Collective: for each panel a message from its owner to each rank, and one from each to each.

    Parameters
    ----------
    a : Columns, (n, n)
        Both triangles, of panels of at most `WIDTH` columns; is overwritten.

    Returns
    -------
    ndarray, (w + 1, n)
        Each row a diagonal, from the main one on: LAPACK's lower form. Ranks may round differently.
    """
    n, exchange, mine = a.shape[0], ColumnExchange(a), a.indices()
    band = np.zeros((a.width + 1, n), a.values.dtype)
    for panel in a.panels:
        packed, triangle = _reflected(a, exchange, panel, panel.start, panel.stop)
        for column in range(panel.width):
            there = packed[column : min(column + a.width + 1, len(packed)), column]
            band[: len(there), panel.start + column] = there
        if panel.stop == n:
            break
        v = vectors_of(packed[panel.width :, : len(triangle)])
        place = int(np.searchsorted(mine, panel.stop))
        own, rows = a.values[panel.stop :, place:], mine[place:] - panel.stop
        y = exchange.whole((v.conj().T @ own).conj().T, panel.stop) @ triangle  # A V T, since A is Hermitian
        y -= v @ (triangle.conj().T @ (v.conj().T @ y) / 2)
        left = np.concatenate([v, y], axis=1)
        right = np.concatenate([y[rows], v[rows]], axis=1).conj().T
        for chunk, of in zip(column_chunks(own), column_chunks(right), strict=True):
            subtract_product(chunk, left, of)
    return band


def upper_band(a: Columns) -> np.ndarray:
    """An upper band matrix with the singular values of a matrix.

    Collective: for each panel a message from its owner to each rank, and three from each to each.

    Parameters
    ----------
    a : Columns, (m, n)
        With m >= n, of panels of at most `WIDTH` columns; is overwritten.

    Returns
    -------
    ndarray, (w + 1, n)
        Each row a diagonal, the main one last: LAPACK's form of band matrices. Ranks may round differently.
    """
    n, exchange, mine = a.shape[1], ColumnExchange(a), a.indices()
    band = np.zeros((a.width + 1, n), a.values.dtype)

    def note(block: np.ndarray, row: int, column: int) -> None:
        rows, columns = np.mgrid[row : row + block.shape[0], column : column + block.shape[1]]
        there = a.width + rows - columns
        inside = (there >= 0) & (there <= a.width)
        band[there[inside], columns[inside]] = block[inside]

    for panel in a.panels:
        start, stop = panel.start, panel.stop
        packed, triangle = _reflected(a, exchange, panel, start, start)
        note(packed[: panel.width], start, start)
        if stop == n:
            break
        place = int(np.searchsorted(mine, stop))
        v, own = vectors_of(packed), a.values[start:, place:]
        for chunk in column_chunks(own):
            subtract_product(chunk, v, triangle.conj().T @ (v.conj().T @ chunk))
        packed, triangle = _factored(exchange.whole(a.values[start:stop, place:].conj().T, stop))
        note(np.triu(packed[: panel.width]).conj().T, start, stop)
        v, own = vectors_of(packed[:, : len(triangle)]), a.values[stop:, place:]
        right = v[mine[place:] - stop].conj().T
        y = exchange.total(own @ right.conj().T) @ triangle
        for chunk, of in zip(column_chunks(own), column_chunks(right), strict=True):
            subtract_product(chunk, y, of)
    return band


def _factored(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """LAPACK's QR of a matrix, triangle and vectors in one, and T of the product of reflections."""
    from scipy.linalg import get_lapack_funcs

    if not matrix.size:
        return matrix, np.zeros((0, 0), matrix.dtype)
    (geqrf,) = get_lapack_funcs(("geqrf",), dtype=matrix.dtype)
    packed, tau, _, _ = geqrf(matrix)
    return packed, triangle_of(vectors_of(packed[:, : len(tau)]), tau)


def _reflected(
    a: Columns, exchange: ColumnExchange, panel: Panel, first: int, below: int
) -> tuple[np.ndarray, np.ndarray]:
    """A panel from row `first` on, of which its owner has factored what stands from row `below` on; and T of that."""
    kind, count = a.values.dtype, min(a.shape[0] - below, panel.width)
    made = None
    if a.owns(panel):
        packed = np.ascontiguousarray(a.part(panel)[first:])
        packed[below - first :], triangle = _factored(packed[below - first :])
        made = packed, triangle
    forms: list[Form] = [((a.shape[0] - first, panel.width), kind), ((count, count), kind)]
    packed, triangle = exchange.from_owner(panel, made, forms)
    return packed, triangle
