"""Products of matrices that are added to a matrix in place, which NumPy stores first and adds then."""

from __future__ import annotations

import numpy as np

from numpy_dist.parallel import fortran

_ROUTINES = {"f": "sgemm", "d": "dgemm", "F": "cgemm", "D": "zgemm"}


def add_product(into: np.ndarray, left: np.ndarray, right: np.ndarray) -> None:
    """``into += left @ right``.

    Parameters
    ----------
    into : ndarray, (m, n)
        Has no memory in common with the others.
    left : ndarray, (m, k)
    right : ndarray, (k, n)
    """
    if not _in_place(into, left, right, 1):
        into += left @ right


def subtract_product(into: np.ndarray, left: np.ndarray, right: np.ndarray) -> None:
    """``into -= left @ right``, as `add_product`."""
    if not _in_place(into, left, right, -1):
        into -= left @ right


def _in_place(into: np.ndarray, left: np.ndarray, right: np.ndarray, factor: int) -> bool:
    """Whether the BLAS could add the product, times a factor."""
    kind = into.dtype
    name = _ROUTINES.get(kind.char)
    if name is None or not left.dtype == right.dtype == kind or not fortran.has_routine(name):
        return False
    (m, n), k = into.shape, left.shape[1]
    if not m * n * k:
        return True
    own, first, second = (_order(x) for x in (into, left, right))
    if own is None or own[0] != b"N" or first is None or second is None:
        return False
    # What lies row by row is the transpose of Fortran's: right^T left^T is added to it.
    one, times = np.ones(1, kind), np.full(1, factor, kind)
    fortran.call(name, second[0], first[0], n, m, k, times, right, second[1], left, first[1], one, into, own[1])
    return True


def _order(x: np.ndarray) -> tuple[bytes, int] | None:
    """Whether a matrix's rows ("N") or columns ("T") lie in memory as Fortran's columns do, and how far apart."""
    (rows, columns), (down, right), size = x.shape, x.strides, x.itemsize
    if (right == size or columns == 1) and _apart(down, rows, columns, size):
        return b"N", max(down // size, columns)
    if (down == size or rows == 1) and _apart(right, columns, rows, size):
        return b"T", max(right // size, rows)
    return None


def _apart(step: int, count: int, length: int, size: int) -> bool:
    """Whether lines of elements, a step of bytes apart, are apart indeed; of a single one any step is."""
    return count == 1 or (step % size == 0 and step >= length * size)
