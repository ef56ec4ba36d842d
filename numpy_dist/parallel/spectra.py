"""Eigenvalues and singular values of one matrix whose columns are dealt out to the ranks.

Values alone are those of a band matrix to which reflections reduce the matrix (`parallel.band`). For eigenvectors a
Hermitian matrix is made tridiagonal by reflections (`parallel.tridiagonal`), the tridiagonal one is decomposed by
divide and conquer (`parallel.cuppen`), and its eigenvectors are multiplied by the reflections. Singular vectors are
those of the Hermitian factor of the polar decomposition (`parallel.polar`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Literal

import numpy as np

from numpy_dist.parallel import band, band_values, cuppen, tridiagonal
from numpy_dist.parallel.column_products import multiply, multiply_adjoint
from numpy_dist.parallel.columns import Columns, even_bounds, width_of
from numpy_dist.parallel.extreme_values import extreme_values
from numpy_dist.parallel.factors import Reflections
from numpy_dist.parallel.phases import phases_of
from numpy_dist.parallel.polar import unitary_factor

SMALL = 256  # the order of matrices that one rank treats


def eigh(
    a: Columns,
    vectors: bool = True,
    bounds: Sequence[tuple[int, int]] | None = None,
    uplo: Literal["L", "U"] = "L",
) -> tuple[np.ndarray, np.ndarray | None]:
    """Eigenvalues and eigenvectors of a Hermitian matrix.

    Collective: the matrix is sent to all, panel by panel, once, and once more if eigenvectors are wanted. For each
    column a message goes from each rank to each; without eigenvectors, for each panel.

    Parameters
    ----------
    a : Columns
        Of double precision, both triangles, with finite elements, none too large to be squared; is overwritten.
    vectors : bool
        Whether eigenvectors are wanted.
    bounds : sequence of (int, int), optional
        Which rows of the matrix of eigenvectors each rank gets; by default they are divided evenly.
    uplo : {"L", "U"}
        Which triangle LAPACK reads where the order is at most `SMALL`: it decides phases, which are those of
        `parallel.phases` otherwise.

    Returns
    -------
    values : ndarray, (n,)
        Ascending, the same on every rank.
    rows : ndarray, (r, n)
        This rank's rows of the matrix of eigenvectors; None unless wanted.
    """
    n, comm, even = a.shape[0], a.comm, even_bounds(a.shape[0], a.comm.size)
    if n <= SMALL:
        return _eigh_on_one_rank(a, vectors, bounds or even, uplo)
    a = _in_panels(a, _width(vectors))
    if not vectors:
        return band_values.eigenvalues(band.hermitian_band(a), comm), None
    diagonal, beside, reflections = tridiagonal.reduced(a)
    values, rows = cuppen.eigen(diagonal, beside, even, comm)
    basis = Columns.dealt(rows.astype(a.values.dtype, copy=False), even, comm, a.width)
    del rows
    reflections.multiply(basis)
    a.release()
    basis.values *= phases_of(basis.values)
    return values, basis.rows(bounds or even)


def panel_width(n: int, size: int, vectors: bool) -> int:
    """The width of panels of a matrix with so many columns for which `eigh` or `svd` need not deal it anew."""
    return min(width_of(n, size), _width(vectors))


def _width(vectors: bool) -> int:
    """Of panels, at most."""
    return tridiagonal.WIDTH if vectors else band.WIDTH


def _in_panels(a: Columns, width: int) -> Columns:
    """The matrix in panels of at most this many columns. Collective."""
    if a.width <= width:
        return a
    bounds = even_bounds(a.shape[0], a.comm.size)
    rows = a.rows(bounds)
    a.release()
    return Columns.dealt(rows, bounds, a.comm, width)


def _eigh_on_one_rank(
    a: Columns, vectors: bool, bounds: Sequence[tuple[int, int]], uplo: Literal["L", "U"]
) -> tuple[np.ndarray, np.ndarray | None]:
    """What LAPACK finds on rank 0."""
    whole, found, basis = a.on(0), None, None
    if whole is not None:
        with contextlib.suppress(np.linalg.LinAlgError):  # which all ranks raise
            if vectors:
                found, basis = np.linalg.eigh(whole, uplo)
            else:
                found = np.linalg.eigvalsh(whole, uplo)
    values = a.comm.bcast(found)
    if values is None:
        raise np.linalg.LinAlgError("Eigenvalues did not converge")  # NumPy's words
    if not vectors:
        return values, None
    a.set(basis, 0)
    return values, a.rows(bounds)


def _hermitian(a: Columns) -> Columns:
    """A matrix without what rounding has made of its symmetry."""
    a.add_adjoint()
    a.values *= 0.5
    return a


def svd(
    a: Columns, vectors: bool = True, full: bool = False, adjoint: bool = False
) -> tuple[np.ndarray, Columns | None, Columns | None]:
    """Singular values of a matrix, by two stages, or its vectors, from the polar decomposition of its QR's triangle.

    Large rows and columns go first, and it is the triangle's adjoint that is decomposed: the iteration keeps all digits
    of the triangle's graded rows, but not of any matrix whose columns depend on each other.

    Collective, as `eigh`.

    Parameters
    ----------
    a : Columns, (m, n)
        Of double precision, with m >= n; else as of `eigh`.
    vectors : bool
        Whether singular vectors are wanted.
    full : bool
        Whether m left ones are wanted, and not n.
    adjoint : bool
        Whether it is the adjoint of the matrix that LAPACK would decompose: phases are those of the latter's vectors
        (`parallel.phases`; LAPACK's where m is at most `SMALL`).

    Returns
    -------
    values : ndarray, (n,)
        Descending, the same on every rank.
    left : Columns, (m, n) or (m, m)
    right : Columns, (n, n)
        Right singular vectors, not conjugated; both None unless wanted.
    """
    (m, n), comm = a.shape, a.comm
    if m <= SMALL:
        return _svd_on_one_rank(a, vectors, full, adjoint)
    if not vectors and band_values.has_singular_values(comm):
        return _singular_values(a), None, None
    rows, columns = _by_size(a)
    reflections = Reflections(_permuted(a, rows, columns))
    reflections.reduce()
    triangle = _triangle(reflections)
    largest, smallest = extreme_values(triangle)
    adjoint_triangle = triangle.adjoint()
    triangle.release()
    factor, lost = unitary_factor(adjoint_triangle, 1.1 * largest, smallest / 4)
    del adjoint_triangle
    values, found = eigh(_hermitian(multiply(factor, _triangle(reflections))), vectors)
    order = np.argsort(-np.abs(values), kind="stable")
    values = values[order]
    if found is None:
        return np.abs(values), None, None
    found = found[:, order]
    inner = Columns.dealt(found, even_bounds(n, comm.size), comm, a.width)
    del found
    small = multiply_adjoint(factor, inner)
    factor.release()
    small.values[:, (values < 0)[small.indices()]] *= -1
    if lost:
        small = _completed(small)
    inner.values = _in_places(inner.values, columns)
    basis = reflections.basis(m if full else n)
    reflections.columns.release()
    made = multiply(basis, small, 0, n)
    held = made.values.shape[1]
    basis.values[:, :held] = made.values
    del made, small
    basis.values = _in_places(basis.values, rows)
    phases = phases_of(basis.values[:, :held] if adjoint else inner.values)
    basis.values[:, :held] *= phases
    inner.values *= phases
    return np.abs(values), basis, inner


def _singular_values(a: Columns) -> np.ndarray:
    """Those of a matrix by two stages; where it is high, of its QR's triangle."""
    if 3 * a.shape[0] > 5 * a.shape[1]:
        reflections = Reflections(a)
        reflections.reduce()
        a = _triangle(reflections)
        reflections.columns.release()
    return band_values.singular_values(band.upper_band(_in_panels(a, _width(False))), a.comm)


def _triangle(reflections: Reflections) -> Columns:
    """That of a QR."""
    made = reflections.columns.like((reflections.columns.end, reflections.columns.shape[1]))
    made.values[...] = reflections.upper()
    return made


def _in_places(values: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Rows in the places where they are to be."""
    made = np.empty_like(values)
    made[places] = values
    return made


def _svd_on_one_rank(
    a: Columns, vectors: bool, full: bool, adjoint: bool
) -> tuple[np.ndarray, Columns | None, Columns | None]:
    """What LAPACK finds on rank 0."""
    (m, n), whole = a.shape, a.on(0)
    left = right = found = None
    if whole is not None:
        whole = whole.conj().T if adjoint else whole
        with contextlib.suppress(np.linalg.LinAlgError):  # which all ranks raise
            if vectors:
                left, found, right = np.linalg.svd(whole, full_matrices=full)
                left, right = (right.conj().T, left) if adjoint else (left, right.conj().T)
            else:
                found = np.linalg.svd(whole, compute_uv=False)
    values = a.comm.bcast(found)
    if values is None:
        raise np.linalg.LinAlgError("SVD did not converge")  # NumPy's words
    if not vectors:
        return values, None, None
    of_left, of_right = a.like((m, m if full else n)), a.like((n, n))
    of_left.set(left, 0)
    of_right.set(right, 0)
    return values, of_left, of_right


def _by_size(a: Columns) -> tuple[np.ndarray, np.ndarray]:
    """Rows by their largest elements, and columns by their norms, largest first. Collective: two allgathers."""
    sizes, comm = np.abs(a.values), a.comm
    rows = np.max(comm.allgather_array(sizes.max(axis=1, initial=0)), axis=0)
    columns = np.empty(a.shape[1])
    for which, norms in comm.allgather((a.indices(), np.square(sizes).sum(axis=0))):
        columns[which] = norms
    return np.argsort(-rows, kind="stable"), np.argsort(-columns, kind="stable")


def _permuted(a: Columns, rows: np.ndarray, columns: np.ndarray) -> Columns:
    bounds = even_bounds(a.shape[0], a.comm.size)
    a.values = a.values[rows]
    moved = a.rows(bounds)
    a.release()
    return Columns.dealt(moved[:, columns], bounds, a.comm, a.width)


def _completed(left: Columns) -> Columns:
    """Orthonormal columns, where the last ones were not: those of a QR whose triangle is the identity otherwise."""
    reflections = Reflections(left)
    reflections.reduce()
    signs = reflections.diagonal().real
    made = reflections.basis(left.shape[0])
    made.values[:, (signs < 0)[made.indices()]] *= -1
    return made
