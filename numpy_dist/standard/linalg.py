"""The standard's extension for linear algebra."""

from __future__ import annotations

import numpy as np

from numpy_dist.standard.zero_axes import arrays_for_scalars

__all__ = (
    "cholesky cross det diagonal eig eigh eigvals eigvalsh inv matmul matrix_norm matrix_power matrix_rank "
    "matrix_transpose outer pinv qr slogdet solve svd svdvals tensordot trace vecdot vector_norm"
).split()

for _name in __all__:
    globals()[_name] = arrays_for_scalars(getattr(np.linalg, _name))
del _name
