"""Differences of devices: their libraries' functions, sums and factors, and events that no kernel tells of.

What is not named here has to be NumPy's bit by bit (docs/gpu.md).
"""

from __future__ import annotations

import numpy as np

from numpy_dist.backends.operations import TABLE
from numpy_dist.conformance.case import Tolerance
from numpy_dist.conformance.known_differences.kinds import Arithmetic, Difference

_FUNCTIONS = Tolerance(8, "CUDA's library rounds transcendental functions otherwise")
_SUMS = Tolerance(64, "cuFFT adds in another order")
_FACTORS = Tolerance(256, "the order of terms of cuSOLVER, of cuBLAS and of sums")

_MADE_OF_FUNCTIONS = [
    np.absolute, np.angle, np.geomspace, np.lib.scimath.log10, np.lib.scimath.log2, np.logspace, np.ndarray.__abs__,
    np.ndarray.__ipow__, np.ndarray.__pow__, np.sinc,
]  # fmt: skip
_TRANSFORMS = [getattr(np.fft, name) for name in np.fft.__all__ if "fft" in name and "freq" not in name]
_LINEAR = [np.linalg.eigh, np.linalg.eigvalsh, np.linalg.inv, np.linalg.svd, np.matmul, np.nansum]

ARITHMETIC = Arithmetic(
    tells_events=False,
    rounded={
        **dict.fromkeys([ufunc for ufunc, row in TABLE.items() if row.inexact], _FUNCTIONS),
        **dict.fromkeys(_MADE_OF_FUNCTIONS, _FUNCTIONS),
        **dict.fromkeys(_TRANSFORMS, _SUMS),
        **dict.fromkeys(_LINEAR, _FACTORS),
    },
)

_SIGNS = "which of two eigenvectors or singular vectors that differ in sign, or in phase, is the library's choice"
_ZERO = "which of two zeros it is: of two that are equal, or of a sum that begins with its first term"

DIFFERENCES = (
    *(Difference(f, "values of result[", _SIGNS, by_layout=True) for f in (np.linalg.eigh, np.linalg.svd)),
    *(
        Difference(f, "(0.0) instead of np.float", _ZERO, by_layout=True)
        for f in (np.linalg.inv, np.linalg.qr, np.matmul, np.maximum, np.minimum)
    ),
    Difference(np.matmul, "(-0.0) instead of np.float64(0.0)", _ZERO, by_layout=True),
)
