"""Tall matrices that are cut between rows: each rank's rows are reduced to a triangle, and the triangles go together.

The first step of "Communication-optimal parallel and sequential QR and LU factorizations" (J. Demmel, L. Grigori,
M. Hoemmen, J. Langou, SIAM J. Sci. Comput. 2012): orthogonal transformations of its own rows on each rank keep singular
values and least-squares solutions, with the rounding errors of a Householder QR of the whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from numpy_dist.backends.library import compute, on_host

if TYPE_CHECKING:
    from numpy_dist.comm.base import Communicator


_BLOCK = 1 << 16  # elements that a cache holds, and LAPACK goes through again and again
_ZERO = 16 * float(np.finfo(float).eps)


def _qr(rows: np.ndarray, comm: Communicator) -> tuple[np.ndarray, np.ndarray]:
    """The reduced QR of one rank's rows, but for signs: block by block, and then of the triangles, as between ranks."""
    n, (count, height) = rows.shape[1], _blocks(rows, comm)
    if count < 2:
        return np.linalg.qr(rows)
    end = count * height
    basis, triangle = np.linalg.qr(rows[:end].reshape(count, height, n))
    rest, last = np.linalg.qr(rows[end:])
    inner, whole = _qr(np.concatenate([triangle.reshape(count * n, n), last]), comm)
    made = np.empty_like(rows)
    np.matmul(basis, inner[: count * n].reshape(count, n, n), out=made[:end].reshape(count, height, n))
    np.matmul(rest, inner[count * n :], out=made[end:])
    return made, whole


def _triangle(rows: np.ndarray, comm: Communicator) -> np.ndarray:
    """The triangle of `_qr` alone."""
    n, (count, height) = rows.shape[1], _blocks(rows, comm)
    if count < 2:
        return _upper(rows)
    end = count * height
    inner = _upper(rows[:end].reshape(count, height, n)).reshape(count * n, n)
    return _triangle(np.concatenate([inner, _upper(rows[end:])]), comm)


def _upper(matrices: np.ndarray) -> np.ndarray:
    """LAPACK's triangles alone."""
    found: np.ndarray = np.linalg.qr(matrices, "r")  # type: ignore[assignment]
    return found


def _blocks(rows: np.ndarray, comm: Communicator) -> tuple[int, int]:
    """How many blocks of how many rows there are, which a rest may follow.

    None on a single rank: there BLAS has several threads, which wait for each other in each call.
    """
    m, n = rows.shape
    height = max(8 * n, _BLOCK // max(n, 1))
    return 0 if comm.size == 1 else m // height, height


def triangles(rows: np.ndarray, comm: Communicator) -> np.ndarray:
    """A small matrix with the singular values of the whole one. Collective: one allgather of triangles.

    Parameters
    ----------
    rows : ndarray, (r, n)
        This rank's rows, in double precision.

    Returns
    -------
    ndarray, (at most ranks times n, n)
        The same on every rank.
    """
    triangle = compute("linalg", lambda rows: _triangle(rows, comm), rows, name="qr", args=("r",))
    return np.concatenate(comm.allgather(on_host(triangle)))


def factors(rows: np.ndarray, first: int, comm: Communicator) -> tuple[np.ndarray, np.ndarray]:
    """The reduced QR of the whole matrix, with LAPACK's signs.

    Collective: triangles go to rank 0, and come back from there. It alone factors them, since ranks that are not alike
    may find other bases for columns that depend on each other.

    Parameters
    ----------
    rows : ndarray, (r, n)
        This rank's rows, in double precision.
    first : int
        Which row of the matrix is the first of them.

    Returns
    -------
    basis : ndarray, (r, n)
        This rank's rows of the orthogonal factor.
    triangle : ndarray, (n, n)
        The same on every rank.

    Notes
    -----
    LAPACK's signs follow from an elimination without pivoting in the first rows of any orthogonal factor, as in
    "Reconstructing Householder vectors from tall-skinny QR" (G. Ballard et al., J. Parallel Distrib. Comput. 2015).
    """
    rows, n = on_host(rows), rows.shape[1]
    local, triangle = _qr(rows, comm)
    parts, pieces, whole, signs = comm.gather(triangle), None, None, None
    if parts is not None:
        inner, whole = np.linalg.qr(np.concatenate(parts))
        pieces = np.split(inner, np.cumsum([len(part) for part in parts])[:-1])
    basis = local @ comm.scatter(pieces)
    tops = comm.gather((first, basis[: max(n - first, 0)]))
    if tops is not None:
        top = np.zeros((n, n), basis.dtype)
        for where, part in tops:
            top[where : where + len(part)] = part
        assert whole is not None
        signs = _signs(top, whole)
    signs, triangle = comm.bcast((signs, whole))
    basis, triangle = basis * signs, np.triu(signs[:, None] * triangle)
    if basis.dtype.kind == "f" and n and triangle[0, 0]:
        zeros = rows[:, 0] == 0
        basis[zeros, 0] = rows[zeros, 0] / triangle[0, 0]  # with the signs of LAPACK's quotients
    own = np.arange(first, min(first + len(rows), n))
    basis[own - first, own] += 0.0  # LAPACK subtracts there, which gives no negative zero
    return basis, triangle


def _signs(top: np.ndarray, triangle: np.ndarray) -> np.ndarray:
    """Those that LAPACK gives to columns of which these are the first rows, and all are orthonormal.

    A pivot that is 0 but for rounding is one that is 0 for LAPACK, as where a matrix of integers begins with 0: then
    the triangle's diagonal is negative.
    """
    top, signs = top.copy(), np.ones(len(top))
    for j in range(len(top)):
        decides = top[j, j] if abs(top[j, j]) > _ZERO else triangle[j, j]
        signs[j] = -1.0 if decides.real >= 0 else 1.0
        pivot = top[j, j] - signs[j]
        top[j + 1 :, j] /= pivot
        top[j + 1 :, j + 1 :] -= np.outer(top[j + 1 :, j], top[j, j + 1 :])
    return signs


def reduced_system(
    rows: np.ndarray, right: np.ndarray, comm: Communicator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A small system with the least-squares solutions of the whole one. Collective, as `triangles`.

    Parameters
    ----------
    rows : ndarray, (r, n)
    right : ndarray, (r, k)
        This rank's right-hand sides.

    Returns
    -------
    matrix, right : ndarray
    rest : ndarray, (k,)
        The sums of squares that no solution can change; the small system has the other part of the residuals.
    """
    rows, right = on_host(rows), on_host(right)
    basis, triangle = _qr(rows, comm)
    projected = basis.conj().T @ right
    rest = np.square(np.abs(right - basis @ projected)).sum(axis=0)
    parts = comm.allgather((triangle, projected, rest))
    return (
        np.concatenate([part[0] for part in parts]),
        np.concatenate([part[1] for part in parts]),
        np.sum([part[2] for part in parts], axis=0),
    )
