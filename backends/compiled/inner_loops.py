"""NumPy's own inner loops, found in its ufunc objects: kernels call them on scratch memory, bitwise as NumPy does.

The head of ``PyUFuncObject`` is public C API; `find` checks that what it reads there is what Python sees, and finds
nothing where it is not.
"""

from __future__ import annotations

import ctypes
from functools import lru_cache
from typing import NamedTuple

import numpy as np


class _UFuncObject(ctypes.Structure):
    _fields_ = [
        ("refcount", ctypes.c_ssize_t),
        ("type", ctypes.c_void_p),
        ("nin", ctypes.c_int),
        ("nout", ctypes.c_int),
        ("nargs", ctypes.c_int),
        ("identity", ctypes.c_int),
        ("functions", ctypes.POINTER(ctypes.c_void_p)),
        ("data", ctypes.POINTER(ctypes.c_void_p)),
        ("ntypes", ctypes.c_int),
        ("reserved", ctypes.c_int),
        ("name", ctypes.c_char_p),
        ("types", ctypes.POINTER(ctypes.c_char)),
    ]


class InnerLoop(NamedTuple):
    """A C function ``(char **args, npy_intp *dimensions, npy_intp *steps, void *data)``, and its data."""

    function: int
    data: int


@lru_cache(maxsize=1024)
def find(ufunc: np.ufunc, dtypes: tuple[np.dtype, ...]) -> InnerLoop | None:
    """The loop of a ufunc for exactly these dtypes of inputs and outputs; None where NumPy has none in its table."""
    head = _UFuncObject.from_address(id(ufunc))
    seen = (head.nin, head.nout, head.nargs, head.ntypes)
    if seen != (ufunc.nin, ufunc.nout, ufunc.nargs, ufunc.ntypes) or head.name.decode() != ufunc.__name__:
        return None
    if ufunc.signature is not None or not head.functions:
        return None
    wanted = [dtype.num for dtype in dtypes]
    for number in range(head.ntypes):
        row = number * head.nargs
        if [head.types[row + k][0] for k in range(head.nargs)] == wanted:
            function = head.functions[number]
            data = head.data[number] if head.data else None
            return None if function is None else InnerLoop(function, data or 0)
    return None
