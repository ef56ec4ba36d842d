"""Whether this NumPy adds floats in the order that kernels know (in `sums`, which imports Numba: not imported here)."""

from __future__ import annotations

from functools import lru_cache

import numpy as np


@lru_cache(maxsize=8)
def adds_pairwise(dtype: np.dtype) -> bool:
    """Whether `numpy.add.reduce` of contiguous elements has the order of `pairwise_sum`, tried on a few lengths."""
    rng = np.random.default_rng(1)
    for n in (7, 130, 300):
        x = (rng.standard_normal(n) * 10.0 ** rng.integers(-9, 9, n)).astype(dtype)
        if pairwise_sum(x) != np.add.reduce(x):
            return False
    return True


@lru_cache(maxsize=8)
def start_of_few(dtype: np.dtype) -> np.floating:
    """What NumPy adds fewer than eight elements to, before this is added to the initial value: 0 or -0."""
    minus = dtype.type(-0.0)
    return np.add.reduce(np.array([minus]), initial=minus)


def pairwise_sum(x: np.ndarray) -> np.floating:
    """The sum of a one-dimensional array in NumPy's order."""
    n = len(x)
    if n < 8:
        total = start_of_few(x.dtype)
        for element in x:
            total += element
        return total
    if n > 128:
        half = n // 2 // 8 * 8
        return pairwise_sum(x[:half]) + pairwise_sum(x[half:])
    r = x[:8].copy()
    for start in range(8, n // 8 * 8, 8):
        r += x[start : start + 8]
    total = ((r[0] + r[1]) + (r[2] + r[3])) + ((r[4] + r[5]) + (r[6] + r[7]))
    for element in x[n // 8 * 8 :]:
        total += element
    return total
