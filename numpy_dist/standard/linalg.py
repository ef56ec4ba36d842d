"""The standard's extension for linear algebra."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from numpy_dist.standard.zero_axes import arrays_for_scalars, as_array

if TYPE_CHECKING:
    from numpy_dist.distarray import DistArray

__all__ = (
    "cholesky cross det diagonal eig eigh eigvals eigvalsh inv matmul matrix_norm matrix_power matrix_rank "
    "matrix_transpose outer pinv qr slogdet solve svd svdvals tensordot trace vecdot vector_norm"
).split()

for _name in __all__:
    globals()[_name] = arrays_for_scalars(getattr(np.linalg, _name))
del _name


def eig(x: DistArray, /) -> tuple[DistArray, DistArray]:
    """Eigenvalues and eigenvectors: complex also where NumPy finds that all are real."""
    found, kind = np.linalg.eig(x), np.result_type(x.dtype, np.complex64)
    return as_array(type(found)(*(part.astype(kind) for part in found)))


def eigvals(x: DistArray, /) -> DistArray:
    """Eigenvalues: complex also where NumPy finds that all are real."""
    return as_array(np.linalg.eigvals(x).astype(np.result_type(x.dtype, np.complex64)))
