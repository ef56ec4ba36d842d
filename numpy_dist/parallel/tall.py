"""Tall matrices that are cut between rows: each rank's rows are reduced to a triangle, and the triangles go together.

The first step of "Communication-optimal parallel and sequential QR and LU factorizations" (J. Demmel, L. Grigori,
M. Hoemmen, J. Langou, SIAM J. Sci. Comput. 2012): orthogonal transformations of its own rows on each rank keep singular
values and least-squares solutions, with the rounding errors of a Householder QR of the whole.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from numpy_dist.backends.library import compute, on_host
from numpy_dist.comm.supervision.signals import Postponed
from numpy_dist.parallel.threads import run_together

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy_dist.comm.base import Communicator


_BLOCK = 1 << 13  # elements that a cache holds
_UNSHARED = 1 << 13  # elements that BLAS leaves to the thread that calls it; of more, its threads have parts
_PIECE = 1 << 17  # elements of the blocks that one call reduces
_ZERO = 16 * float(np.finfo(float).eps)


class _ReducedRows:
    """Rows as an orthogonal factor and a triangle of each block, and of what is left over.

    Attributes
    ----------
    triangles : ndarray, (k, n)
        One above the other.
    """

    def __init__(self, rows: np.ndarray, threads: int) -> None:
        n, self._threads = rows.shape[1], threads
        count, height = _blocks(rows.shape)
        self._blocks, end = (count, height, n), count * height
        self._basis = np.empty(rows.shape, rows.dtype)
        blocks, factors = (x[:end].reshape(self._blocks) for x in (rows, self._basis))
        corners = np.empty((count, n, n), rows.dtype)

        def reduce(some: slice) -> None:
            factors[some], corners[some] = np.linalg.qr(blocks[some])

        _of_pieces(reduce, count, height * n, threads)
        self._rest, last = np.linalg.qr(rows[end:])
        self.triangles = np.concatenate([corners.reshape(count * n, n), last])

    def first_rows(self, inner: np.ndarray) -> np.ndarray:
        """As many of `rotated` as there are columns, or fewer."""
        n = self._blocks[2]
        block = self._basis if self._blocks[0] else self._rest
        return block[:n] @ inner[: block.shape[1]]

    def rotated(self, inner: np.ndarray) -> np.ndarray:
        """The factors' product with rows of an orthogonal factor of the triangles, in the factors' memory."""
        count, height, n = self._blocks
        factors, turns = self._basis[: count * height].reshape(self._blocks), inner[: count * n].reshape(count, n, n)

        def turn(some: slice) -> None:
            factors[some] = factors[some] @ turns[some]

        _of_pieces(turn, count, height * n, self._threads)
        np.matmul(self._rest, inner[count * n :], out=self._basis[count * height :])
        return self._basis


def _qr(rows: np.ndarray, threads: int) -> tuple[np.ndarray, np.ndarray]:
    """The reduced QR of one rank's rows, but for signs: block by block, and then of the triangles, as between ranks."""
    if not _blocks(rows.shape)[0]:
        return np.linalg.qr(rows)
    reduced = _ReducedRows(rows, threads)
    inner, triangle = _qr(reduced.triangles, threads)
    return reduced.rotated(inner), triangle


def _triangle(*parts: np.ndarray, threads: int) -> np.ndarray:
    """The triangle alone, of columns that lie in several arrays."""
    m, n = len(parts[0]), sum(part.shape[1] for part in parts)
    count, height = _blocks((m, n))
    if not count:
        return _upper(np.concatenate(parts, axis=1))
    end = count * height
    corners = np.empty_like(parts[0], shape=(count, n, n))

    def reduce(some: slice) -> None:
        blocks = [part[:end].reshape(count, height, -1)[some] for part in parts]
        corners[some] = _upper(np.concatenate(blocks, axis=2))

    _of_pieces(reduce, count, height * n, threads)
    last = _upper(np.concatenate([part[end:] for part in parts], axis=1))
    return _triangle(np.concatenate([corners.reshape(count * n, n), last]), threads=threads)


def _upper(matrices: np.ndarray) -> np.ndarray:
    """LAPACK's triangles alone."""
    found: np.ndarray = np.linalg.qr(matrices, "r")  # type: ignore[assignment]
    return found


def has_blocks(shape: tuple[int, ...]) -> bool:
    """Whether rows of this shape are reduced block by block; LAPACK reduces others as a whole."""
    return _blocks(shape)[0] > 0


def _blocks(shape: tuple[int, ...]) -> tuple[int, int]:
    """How many blocks of how many rows there are, which a rest may follow."""
    m, n = shape
    height = max(16 * n, _BLOCK // max(n, 1))
    return m // height if m >= 2 * height else 0, height


def _of_pieces(reduce: Callable[[slice], None], count: int, size: int, threads: int) -> None:
    """Call a function of some blocks, each of so many elements, until it had all; on several threads."""
    if not count:
        return
    step = max(_PIECE // size, 1)
    pieces = [slice(first, min(first + step, count)) for first in range(0, count, step)]

    def compute(mine: list[slice]) -> None:
        with np.errstate(all="ignore"):  # LAPACK tells nothing of NaN, so neither do products with its factors
            for some in mine:
                reduce(some)

    threads = min(threads, len(pieces)) if size <= _UNSHARED else 1
    with Postponed():  # the threads have the memory until all have ended
        run_together([partial(compute, pieces[k::threads]) for k in range(threads)])


def triangles(rows: np.ndarray, comm: Communicator, threads: int) -> np.ndarray:
    """A small matrix with the singular values of the whole one. Collective: one allgather of triangles.

    Parameters
    ----------
    rows : ndarray, (r, n)
        This rank's rows, in double precision.
    threads : int
        How many reduce them. The result is the same for any number.

    Returns
    -------
    ndarray, (at most ranks times n, n)
        The same on every rank.
    """
    triangle = compute("linalg", partial(_triangle, threads=threads), rows, name="qr", args=("r",))
    return np.concatenate(comm.allgather(on_host(triangle)))


def factors(rows: np.ndarray, first: int, comm: Communicator, threads: int) -> tuple[np.ndarray, np.ndarray]:
    """The reduced QR of the whole matrix, with LAPACK's signs.

    Collective: triangles go to rank 0, and come back from there. It alone factors them, since ranks that are not alike
    may find other bases for columns that depend on each other.

    Parameters
    ----------
    rows : ndarray, (r, n)
        This rank's rows, in double precision.
    first : int
        Which row of the matrix is the first of them.
    threads : int
        How many reduce them. The result is the same for any number.

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
    reduced = _ReducedRows(rows, threads)
    inner, triangle = _qr(reduced.triangles, threads)
    parts, pieces, whole, signs = comm.gather(triangle), None, None, None
    if parts is not None:
        outer, whole = np.linalg.qr(np.concatenate(parts))
        pieces = np.split(outer, np.cumsum([len(part) for part in parts])[:-1])
    inner = inner @ comm.scatter(pieces)
    below_zero = first == 0 and len(rows) > 0 and bool(np.signbit(rows[0, 0].real))
    tops = comm.gather(
        (first, reduced.first_rows(inner)[: max(n - first, 0)], _reduced_columns(rows, first), below_zero)
    )
    if tops is not None:
        top = np.zeros((n, n), inner.dtype)
        for where, part, _, _ in tops:
            top[where : where + len(part)] = part
        assert whole is not None
        signs = _signs(top, whole, min(count for _, _, count, _ in tops), any(sign for *_, sign in tops))
    signs, triangle = comm.bcast((signs, whole))
    basis, triangle = reduced.rotated(inner * signs), np.triu(signs[:, None] * triangle)
    if basis.dtype.kind == "f" and n and triangle[0, 0]:
        zeros = rows[:, 0] == 0
        basis[zeros, 0] = rows[zeros, 0] / triangle[0, 0]  # with the signs of LAPACK's quotients
    own = np.arange(first, min(first + len(rows), n))
    basis[own - first, own] += 0.0  # LAPACK subtracts there, which gives no negative zero
    return basis, triangle


def _reduced_columns(rows: np.ndarray, first: int) -> int:
    """How many of the first columns have zeros below the diagonal, and a number on it, in these rows of a matrix."""
    for j in range(rows.shape[1]):
        below = rows[max(j + 1 - first, 0) :, j]
        diagonal = rows[j - first, j] if 0 <= j - first < len(rows) else 1.0
        if below[:64].any() or below.any() or not diagonal.real or diagonal.imag:
            return j
    return rows.shape[1]


def _signs(top: np.ndarray, triangle: np.ndarray, reduced: int, below_zero: bool) -> np.ndarray:
    """Those that LAPACK gives to columns of which these are the first rows, and all are orthonormal.

    Columns with nothing below the diagonal, `reduced` at the front, stay as they are. A pivot whose real part is 0 but
    for rounding is one that is 0 for LAPACK, as where a matrix of integers begins with 0: then the triangle's diagonal
    is negative, or positive where the matrix begins with a negative zero (`below_zero`).
    """
    top, signs = top.copy(), np.ones(len(top))
    for j in range(len(top)):
        if j < reduced:
            signs[j] = 1.0 if top[j, j].real > 0 else -1.0
            continue
        is_zero = abs(top[j, j].real) <= _ZERO
        decides = triangle[j, j] if is_zero else top[j, j]
        signs[j] = -1.0 if decides.real >= 0 else 1.0
        if is_zero and j == 0 and below_zero:
            signs[j] = -signs[j]
        pivot = top[j, j] - signs[j]
        top[j + 1 :, j] /= pivot
        top[j + 1 :, j + 1 :] -= np.outer(top[j + 1 :, j], top[j, j + 1 :])
    return signs


def reduced_system(
    rows: np.ndarray, right: np.ndarray, comm: Communicator, threads: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A small system with the least-squares solutions of the whole one. Collective, as `triangles`.

    Parameters
    ----------
    rows : ndarray, (r, n)
    right : ndarray, (r, k)
        This rank's right-hand sides.
    threads : int
        How many reduce them. The result is the same for any number.

    Returns
    -------
    matrix, right : ndarray
    rest : ndarray, (k,)
        The sums of squares that no solution can change; the small system has the other part of the residuals.
    """
    n, triangle = rows.shape[1], _triangle(on_host(rows), on_host(right), threads=threads)
    rest = np.square(np.abs(triangle[n:, n:])).sum(axis=0)
    parts = comm.allgather((triangle[:n, :n], triangle[:n, n:], rest))
    return (
        np.concatenate([part[0] for part in parts]),
        np.concatenate([part[1] for part in parts]),
        np.sum([part[2] for part in parts], axis=0),
    )
