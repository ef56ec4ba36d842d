"""Matrices of small whole numbers, of which every product is exact."""

from __future__ import annotations

import numpy as np


def matrix_of(kind: str, m: int, k: int) -> np.ndarray:
    """The same one for the same dtype and shape."""
    rng = np.random.default_rng((m, k))
    made = rng.integers(-3, 4, (m, k)) + (1j * rng.integers(-3, 4, (m, k)) if kind in "FD" else 0)
    return made.astype(kind)
