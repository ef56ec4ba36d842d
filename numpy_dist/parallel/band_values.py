"""Eigenvalues and singular values of a band matrix, which LAPACK finds on one rank.

SciPy has no function for singular values: LAPACK's routines are those of `scipy.linalg.cython_lapack`, whose addresses
it publishes for others.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from numpy_dist.comm.portable import on_root

if TYPE_CHECKING:
    from numpy_dist.comm.base import Communicator

_ARGUMENTS = {"dgbbrd": (18, 10), "zgbbrd": (19, 10), "dbdsqr": (15, 8)}  # how many, and how many are integers
_name_of = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", ctypes.pythonapi))
_address_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


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
    from scipy.linalg import cython_lapack

    capsules = getattr(cython_lapack, "__pyx_capi__", {})
    here = all(
        name in capsules and _name_of(capsules[name]).count(b" int *") == integers
        for name, (_, integers) in _ARGUMENTS.items()
    )
    return bool(comm.bcast(here))


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
    made = [_pointer(x) for x in (*arguments, 0)]
    _routine(name)(*made)
    return made[-1].contents.value


def _pointer(x: bytes | int | np.ndarray) -> Any:
    """To what Fortran's argument is."""
    if isinstance(x, int):
        return ctypes.pointer(ctypes.c_int(x))
    return x.ctypes.data if isinstance(x, np.ndarray) else x


@lru_cache
def _routine(name: str) -> Callable[..., None]:
    from scipy.linalg import cython_lapack

    capsule, (count, _) = cython_lapack.__pyx_capi__[name], _ARGUMENTS[name]
    made: Callable[..., None] = ctypes.CFUNCTYPE(None, *(ctypes.c_void_p,) * count)(
        _address_of(capsule, _name_of(capsule))
    )
    return made
