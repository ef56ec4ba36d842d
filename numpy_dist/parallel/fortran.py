"""Routines of the BLAS and LAPACK that SciPy is linked to, by the addresses that it publishes for other libraries.

For what `scipy.linalg.get_blas_funcs` and `get_lapack_funcs` do not give: routines that they leave out, and matrices
whose rows do not lie one behind the other, which they copy.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import lru_cache

import numpy as np

ARGUMENTS = {  # of each routine, how many, and how many are integers
    "dgbbrd": (18, 10),
    "zgbbrd": (19, 10),
    "dbdsqr": (15, 8),
    "sgemm": (13, 6),
    "dgemm": (13, 6),
    "cgemm": (13, 6),
    "zgemm": (13, 6),
}
_name_of = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", ctypes.pythonapi))
_address_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


@lru_cache
def has_routine(name: str) -> bool:
    """Whether SciPy publishes a routine whose integers have 32 bits."""
    capsule = _capsule(name)
    return capsule is not None and _name_of(capsule).count(b" int *") == ARGUMENTS[name][1]


def call(name: str, *arguments: bytes | int | np.ndarray) -> None:
    """Call a routine that SciPy publishes (`has_routine`).

    Parameters
    ----------
    name : str
    *arguments : bytes, int or ndarray
        Letters, integers, and the first elements of arrays; numbers of other types are arrays, too.
    """
    _routine(name)(*(_pointer(x) for x in arguments))


def _capsule(name: str) -> object:
    from scipy.linalg import cython_blas, cython_lapack

    module = cython_blas if name.endswith("gemm") else cython_lapack
    return getattr(module, "__pyx_capi__", {}).get(name)


def _pointer(x: bytes | int | np.ndarray) -> object:
    """To what Fortran's argument is."""
    if isinstance(x, int):
        return ctypes.byref(ctypes.c_int(x))
    return x.ctypes.data if isinstance(x, np.ndarray) else x


@lru_cache
def _routine(name: str) -> Callable[..., None]:
    capsule = _capsule(name)
    made: Callable[..., None] = ctypes.CFUNCTYPE(None, *(ctypes.c_void_p,) * ARGUMENTS[name][0])(
        _address_of(capsule, _name_of(capsule))
    )
    return made
