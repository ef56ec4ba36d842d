"""Functions of scalars as ufuncs, compiled by Numba for the dtypes that they meet."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np


def compiled(function: Callable[..., object]) -> Callable[..., object]:
    """A Numba ufunc of a Python function of scalars; it compiles when it meets new dtypes."""
    import numba

    return numba.vectorize(function)


def compiles(ufunc: Callable[..., object], dtypes: tuple[np.dtype, ...]) -> str | None:
    """Why Numba cannot compile for arguments of these dtypes; None if it can (and has)."""
    import numba

    try:
        ufunc(*(np.empty(0, dtype) for dtype in dtypes))
    except (numba.core.errors.NumbaError, TypeError, NotImplementedError) as error:
        return str(error).strip().splitlines()[0]
    return None
