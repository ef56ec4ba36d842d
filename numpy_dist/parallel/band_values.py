"""Eigenvalues and singular values of a band matrix, which LAPACK finds on one rank.

SciPy has no function for singular values: LAPACK's routines are called by their addresses (`parallel.fortran`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from numpy_dist.comm.portable import on_root
from numpy_dist.parallel import fortran

if TYPE_CHECKING:
    from numpy_dist.comm.base import Communicator

_ROUTINES = "dgbbrd", "zgbbrd", "dbdsqr"


def eigenvalues(band: np.ndarray, comm: Communicator) -> np.ndarray:
    """Those of a Hermitian band matrix in LAPACK's lower form, ascending, on every rank.

    Collective: a broadcast of what rank 0 finds of its matrix.
    """
    from scipy.linalg import eigvals_banded

    return on_root(lambda: eigvals_banded(band, lower=True, overwrite_a_band=True, check_finite=False), comm)


def singular_values(band: np.ndarray, comm: Communicator) -> np.ndarray:
    """Those of an upper band matrix in LAPACK's form, descending, on every rank. Collective, as `eigenvalues`."""

    def found() -> np.ndarray:
        diagonal, beside = _bidiagonal(band)
        n = len(diagonal)
        nothing, work = np.zeros(1), np.empty(4 * n)
        if _call("dbdsqr", b"U", n, 0, 0, 0, diagonal, beside, nothing, 1, nothing, 1, nothing, 1, work):
            raise np.linalg.LinAlgError("SVD did not converge")  # NumPy's words
        return diagonal

    return on_root(found, comm)


def has_singular_values(comm: Communicator) -> bool:
    """Whether rank 0 can call SciPy's LAPACK, whose integers have 32 bits. Collective: a broadcast."""
    return bool(comm.bcast(all(fortran.has_routine(name) for name in _ROUTINES)))


def _bidiagonal(band: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The diagonal and what stands above it of a bidiagonal matrix with the singular values of a band matrix."""
    kind, (height, n) = band.dtype, band.shape
    diagonal, beside = np.empty(n), np.empty(max(n - 1, 1))
    band, nothing = np.array(band, order="F"), np.zeros(1, kind)
    work = [np.empty(n, kind), np.empty(n)] if kind.kind == "c" else [np.empty(2 * n)]
    name = "zgbbrd" if kind.kind == "c" else "dgbbrd"
    failed = _call(
        name, b"N", n, n, 0, 0, height - 1, band, height, diagonal, beside, nothing, 1, nothing, 1, nothing, 1, *work
    )
    assert not failed, f"{name}: argument {-failed}"
    return diagonal, beside


def _call(name: str, *arguments: bytes | int | np.ndarray) -> int:
    """Call one of LAPACK's routines, whose last argument tells of failures."""
    failed = np.zeros(1, np.intc)
    fortran.call(name, *arguments, failed)
    return int(failed[0])
