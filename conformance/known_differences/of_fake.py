"""Differences of the memory that stands for a device in tests: products are the device library's."""

from __future__ import annotations

import numpy as np

from numpy_dist.conformance.known_differences.kinds import Difference

_PRODUCTS = [np.dot, np.inner, np.matmul, np.tensordot, np.vecdot, np.linalg.matmul, np.linalg.norm, np.linalg.vecdot]
_PRODUCTS += [getattr(np, name) for name in ("matvec", "vecmat") if hasattr(np, name)]  # since NumPy 2.2
_SILENT = "a device's library does not say which floating-point events its products meet"

DIFFERENCES = tuple(Difference(function, "warnings are []", _SILENT, by_layout=True) for function in _PRODUCTS)
