"""Eigenvalues and singular values of one matrix whose columns are dealt out to the ranks.

Spectral divide and conquer by the polar decomposition ("Stable and efficient spectral divide and conquer algorithms for
the symmetric eigenvalue decomposition and the SVD", Y. Nakatsukasa and N. Higham, SIAM J. Sci. Comput. 2013): the
unitary factor of ``A - s I`` tells the eigenvectors of smaller eigenvalues from the others, and in a basis of both the
matrix falls apart into two. Blocks that a rank can hold are left to LAPACK, as many at a time as there are ranks.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from numpy_dist.parallel.column_products import multiply, multiply_adjoint
from numpy_dist.parallel.columns import Columns, even_bounds
from numpy_dist.parallel.factors import Reflections
from numpy_dist.parallel.polar import EPS, norm_bound, unitary_factor

SMALL = 256  # the order of blocks that one rank treats in any case
_ASIDE = 1e-7 / math.e  # times the norm: how far a shift is from numbers that may well be eigenvalues
_NEAREST = 1e-12  # to which a shift may come to an eigenvalue, compared to the norm
_TOLERANCE = 10.0  # times the order and the precision: what is left out of a matrix in two blocks, compared to the norm
_LOST = 1e-6  # singular values that are not one, at most


@dataclass
class _Leaf:
    """A block that one rank treats."""

    matrix: Columns


@dataclass
class _Split:
    """A matrix that is block diagonal in a basis: the first `count` columns belong to `lower`."""

    basis: Columns
    count: int
    lower: _Leaf | _Split
    upper: _Leaf | _Split


def eigh(
    a: Columns,
    vectors: bool = True,
    largest: int = 0,
    bounds: Sequence[tuple[int, int]] | None = None,
    uplo: Literal["L", "U"] = "L",
) -> tuple[np.ndarray, np.ndarray | None]:
    """Eigenvalues and eigenvectors of a Hermitian matrix.

    Collective: the matrix is sent to all, panel by panel, some twenty times for each time that it is divided.

    Parameters
    ----------
    a : Columns
        Of double precision, both triangles, with finite elements, none too large to be squared; is overwritten.
    vectors : bool
        Whether eigenvectors are wanted.
    largest : int, optional
        The order of blocks that one rank treats; by default such that each rank treats about as many elements as it
        has of the matrix, and at least `SMALL`.
    bounds : sequence of (int, int), optional
        Which rows of the matrix of eigenvectors each rank gets; by default they are divided evenly.
    uplo : {"L", "U"}
        Which triangle LAPACK reads, on which signs and phases of eigenvectors may depend.

    Returns
    -------
    values : ndarray, (n,)
        Ascending, the same on every rank.
    rows : ndarray, (r, n)
        This rank's rows of the matrix of eigenvectors; None unless wanted.
    """
    n, comm = a.shape[0], a.comm
    largest = largest or max(SMALL, math.isqrt(n * n // comm.size))
    tree = _divided(a, norm_bound(a), largest)
    leaves = list(_leaves(tree))
    blocks = {number: leaf.matrix.on(number % comm.size) for number, leaf in enumerate(leaves)}
    found = {number: _of_block(block, vectors, uplo) for number, block in blocks.items() if block is not None}
    told: dict[int, np.ndarray | None] = {}
    for part in comm.allgather({number: values for number, (values, _) in found.items()}):
        told |= part
    values = np.concatenate([_converged(told[number]) for number in range(len(leaves))])
    order = np.argsort(values, kind="stable")
    if not vectors:
        return values[order], None
    for number, leaf in enumerate(leaves):
        leaf.matrix.set(found[number][1] if number in found else None, number % comm.size)
    rows = _assembled(tree).rows(bounds or even_bounds(n, comm.size))
    return values[order], rows[:, order]


def _of_block(
    block: np.ndarray, vectors: bool, uplo: Literal["L", "U"]
) -> tuple[np.ndarray | None, np.ndarray | None]:
    """LAPACK's eigenvalues, None where it finds none, and eigenvectors, if they are wanted."""
    try:
        return np.linalg.eigh(block, uplo) if vectors else (np.linalg.eigvalsh(block, uplo), None)
    except np.linalg.LinAlgError:
        return None, None


def _converged(values: np.ndarray | None) -> np.ndarray:
    if values is None:
        raise np.linalg.LinAlgError("Eigenvalues did not converge")  # NumPy's words
    return values


def _leaves(tree: _Leaf | _Split) -> Iterator[_Leaf]:
    if isinstance(tree, _Leaf):
        yield tree
    else:
        yield from _leaves(tree.lower)
        yield from _leaves(tree.upper)


def _assembled(tree: _Leaf | _Split) -> Columns:
    """The eigenvectors of a matrix, once the leaves have those of theirs."""
    if isinstance(tree, _Leaf):
        return tree.matrix
    n, comm, bounds = tree.basis.shape[0], tree.basis.comm, even_bounds(tree.basis.shape[0], tree.basis.comm.size)
    lower = multiply(tree.basis, _assembled(tree.lower), 0, tree.count).rows(bounds)
    upper = multiply(tree.basis, _assembled(tree.upper), tree.count, n).rows(bounds)
    return Columns.dealt(np.concatenate([lower, upper], axis=1), bounds, comm)


def _divided(a: Columns, norm: float, largest: int) -> _Leaf | _Split:
    """A matrix in blocks; `norm` is that of the matrix in which all of them are."""
    n = a.shape[0]
    if n <= largest:
        return _Leaf(a)
    for shift in _shifts(a):
        shifted = a.copy()
        shifted.add_to_diagonal(-shift)
        if norm_bound(shifted) <= EPS * norm:
            break  # a multiple of the identity
        factor, lost = unitary_factor(shifted, _NEAREST)
        if lost > _LOST:
            continue  # the shift is an eigenvalue
        below = _projector(factor)
        count = round(below.trace())
        if 0 < count < n:
            basis = _basis(below, count)
            inner = multiply_adjoint(basis, multiply(a, basis))
            if _below(inner, count) > _TOLERANCE * n * EPS * norm:
                continue
            lower, upper = (_hermitian(inner.block(*its)) for its in ((0, count), (count, n)))
            return _Split(basis, count, _divided(lower, norm, largest), _divided(upper, norm, largest))
    return _Leaf(a)


def _below(inner: Columns, count: int) -> float:
    """The norm of what stands below a block of the first `count` columns. Collective: an allgather."""
    below = inner.values[count:, inner.indices() < count]
    return math.sqrt(sum(inner.comm.allgather(float(np.vdot(below, below).real))))


def _shifts(a: Columns) -> Iterator[float]:
    """Numbers that may have eigenvalues on both sides: of the diagonal's elements, the median and the mean."""
    diagonal, centre = a.diagonal().real, a.copy()
    median, mean = a.comm.bcast((float(np.median(diagonal)), float(diagonal.mean())))  # rank 0's: others may round
    centre.add_to_diagonal(-median)
    aside = _ASIDE * norm_bound(centre)
    for shift in (median, mean):
        yield shift + aside
        yield shift - aside


def _projector(factor: Columns) -> Columns:
    """The orthogonal projector on the eigenvectors to which a unitary factor gives -1."""
    factor = _hermitian(factor)
    factor.values *= -0.5
    factor.add_to_diagonal(0.5)
    return factor


def _basis(projector: Columns, count: int) -> Columns:
    """An orthonormal basis of which the first `count` columns span what a projector leaves.

    From a projection of random numbers, which are the same in each run, and another one of what they span.
    """
    n = projector.shape[0]
    some = Columns((n, count), projector.values.dtype, projector.comm)
    for panel in some.own:
        drawn = np.random.default_rng((n, panel.start)).standard_normal((n, panel.width))
        some.part(panel)[...] = drawn
    for last in (False, True):
        reflections = Reflections(multiply(projector, some))
        reflections.reduce()
        some = reflections.basis(n if last else count)
    return some


def _hermitian(a: Columns) -> Columns:
    """A matrix without what rounding has made of its symmetry."""
    adjoint = a.adjoint()
    a.values += adjoint.values
    a.values *= 0.5
    return a


def svd(
    a: Columns, vectors: bool = True, full: bool = False, largest: int = 0, adjoint: bool = False
) -> tuple[np.ndarray, Columns | None, Columns | None]:
    """Singular values and vectors of a matrix: from the polar decomposition of its QR's triangle.

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
    largest : int
        As of `eigh`.
    adjoint : bool
        Whether it is the adjoint of the matrix that LAPACK would decompose, whose phases are those of the latter.

    Returns
    -------
    values : ndarray, (n,)
        Descending, the same on every rank.
    left : Columns, (m, n) or (m, m)
    right : Columns, (n, n)
        Right singular vectors, not conjugated; both None unless wanted.
    """
    (m, n), comm = a.shape, a.comm
    if m <= (largest or SMALL):
        return _svd_on_one_rank(a, vectors, full, adjoint)
    rows, columns = _by_size(a)
    reflections = Reflections(_permuted(a, rows, columns))
    reflections.reduce()
    triangle = a.like((n, n))
    triangle.values[...] = reflections.upper()
    factor, lost = unitary_factor(triangle.adjoint())
    values, found = eigh(_hermitian(multiply(factor, triangle)), vectors, largest)
    order = np.argsort(-np.abs(values), kind="stable")
    values = values[order]
    if found is None:
        return np.abs(values), None, None
    inner = Columns.dealt(found[:, order], even_bounds(n, comm.size), comm, a.width)
    right = inner.like()
    right.values[columns] = inner.values
    small = multiply_adjoint(factor, inner)
    small.values[:, (values < 0)[small.indices()]] *= -1
    if lost > 100 * n * EPS:
        small = _completed(small)
    basis = reflections.basis(m if full else n)
    made = multiply(basis, small, 0, n)
    left = basis.like()
    held = made.values.shape[1]
    left.values[rows, :held] = made.values
    left.values[rows, held:] = basis.values[:, held:]
    return np.abs(values), left, right


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
    moved = a.like()
    moved.values[...] = a.values[rows]
    return Columns.dealt(moved.rows(bounds)[:, columns], bounds, a.comm, a.width)


def _completed(left: Columns) -> Columns:
    """Orthonormal columns, where the last ones were not: those of a QR whose triangle is the identity otherwise."""
    reflections = Reflections(left)
    reflections.reduce()
    signs = reflections.diagonal().real
    made = reflections.basis(left.shape[0])
    made.values[:, (signs < 0)[made.indices()]] *= -1
    return made
