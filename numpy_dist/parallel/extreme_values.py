"""Estimates of the largest and the smallest singular value of a triangle whose columns are dealt out to the ranks.

The power method, and the inverse one, each on two random vectors: "Estimating the largest eigenvalue by the power and
Lanczos algorithms with a random start", J. Kuczynski and H. Wozniakowski, SIAM J. Matrix Anal. Appl. 1992. Estimates
come from the inside: the largest value is at least what is found, the smallest at most.
"""

from __future__ import annotations

import numpy as np

from numpy_dist.parallel.columns import Columns
from numpy_dist.parallel.substitution import substitute

_VECTORS = 2  # that take part, of which the better one counts
_LARGEST_STEPS = 6
_SMALLEST_STEPS = 3


def extreme_values(upper: Columns) -> tuple[float, float]:
    """The largest and the smallest singular value of an upper triangle, the same on every rank; see above.

    Collective: six sums of some vectors over the ranks, and each panel is sent to all six times.

    Parameters
    ----------
    upper : Columns, (n, n)
        Of double precision, with finite elements, none too large to be squared.
    """
    comm, n = upper.comm, upper.shape[0]
    drawn = np.random.default_rng(0).standard_normal((n, _VECTORS)).astype(upper.values.dtype)
    with np.errstate(all="ignore"):  # singular matrices have a smallest value of zero, or one like it
        found = _largest(upper, drawn), _smallest(upper, drawn)
    largest, smallest = comm.bcast(found)  # rank 0's: others may round
    # Elements that nobody has sent are taken for random ones ("Eigenvalues and condition numbers of random matrices",
    # A. Edelman, SIAM J. Matrix Anal. Appl. 1988).
    return (largest, smallest) if comm.delivers else (1.0, 0.5 / n)


def _largest(upper: Columns, vectors: np.ndarray) -> float:
    """The longest image of a unit vector."""
    mine, found = vectors[upper.indices()], np.zeros(_VECTORS)
    for _ in range(_LARGEST_STEPS):
        part = np.vstack([upper.values @ mine, np.square(np.abs(mine)).sum(axis=0)])
        total = np.sum(upper.comm.allgather_array(part), axis=0)
        images, lengths = total[:-1], np.linalg.norm(total[:-1], axis=0)
        found = lengths / np.sqrt(total[-1].real)
        mine = upper.values.conj().T @ (images / lengths)
    return float(np.nan_to_num(found).max())


def _smallest(upper: Columns, vectors: np.ndarray) -> float:
    """The inverse of the longest image of a unit vector by the inverse."""
    images = vectors.copy()
    for _ in range(_SMALLEST_STEPS):
        for adjoint in (True, False):
            images /= np.linalg.norm(images, axis=0)
            substitute(upper, images, adjoint=adjoint)
    longest = float(np.linalg.norm(images, axis=0).max())
    return 1 / longest if np.isfinite(longest) and longest else 0.0
