"""The exponential of a matrix that ranks share, and of stacks of matrices: `scipy.linalg.expm`."""

from __future__ import annotations

from math import ceil, comb, factorial, log2
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.linalg

from numpy_dist import engine
from numpy_dist.backends.library import on_host
from numpy_dist.dispatch.core.registry import decline
from numpy_dist.dispatch.patterns import matrices
from numpy_dist.dispatch.patterns.arguments import as_handle

if TYPE_CHECKING:
    from numpy_dist.distarray import DistArray

# Up to which norm a diagonal Padé approximant of this degree has a backward error below a double's rounding.
_LIMITS = {3: 1.495585217958292e-2, 5: 2.53939833006323e-1, 7: 9.504178996162932e-1, 9: 2.097847961257068, 13: 4.25}


def expm(A: DistArray) -> object:
    A = as_handle(A)
    if A.dtype.char in "?gG":
        decline(f"matrices of dtype {A.dtype}")

    def local(parts: object) -> object:
        return scipy.linalg.expm(on_host(parts))

    return matrices.of_stacks(local, scipy.linalg.expm, [A], [2], single=_exponential)


@np.errstate(all="ignore")  # as SciPy's, which is written in C
def _exponential(a: Any) -> object:
    """The exponential of one large matrix. Collective: four to six products, a system, and a product a squaring.

    Scaling and squaring with the degrees and bounds of A. H. Al-Mohy and N. J. Higham, "A new scaling and squaring
    algorithm for the matrix exponential", SIAM J. Matrix Anal. Appl. 31 (2009); the norms of powers are those of the
    fourth and the sixth, not estimates of higher ones.
    """
    least = min(len(a), 3)
    kind = scipy.linalg.expm(np.zeros((least, least), a.dtype)).dtype  # of one element it may be half precision
    a = engine.copy(a, dtype=np.result_type(kind, np.double))
    eye = np.eye(len(a), dtype=a.dtype, like=a)
    two = a @ a
    four = two @ two
    six = two @ four
    size = max(_norm(four) ** (1 / 4), _norm(six) ** (1 / 6))
    if not np.isfinite(size):
        return np.full_like(a, np.nan, dtype=kind)
    for degree in (3, 5, 7, 9):
        if size <= _LIMITS[degree] and not _more_halvings(a, degree):
            powers = [eye, two, four, six]
            if degree == 9:
                powers.append(four @ four)
            c = _coefficients(degree)
            odd = a @ sum(c[2 * k + 1] * powers[k] for k in range(degree // 2 + 1))
            even = sum(c[2 * k] * powers[k] for k in range(degree // 2 + 1))
            return engine.copy(np.linalg.solve(even - odd, even + odd), dtype=kind)
    halvings = max(ceil(log2(size / _LIMITS[13])), 0) if size else 0
    halvings += _more_halvings(a * 0.5**halvings, 13)
    scale = 0.5**halvings
    a, two, four, six = a * scale, two * scale**2, four * scale**4, six * scale**6
    c = _coefficients(13)
    odd = a @ (six @ (c[13] * six + c[11] * four + c[9] * two) + c[7] * six + c[5] * four + c[3] * two + c[1] * eye)
    even = six @ (c[12] * six + c[10] * four + c[8] * two) + c[6] * six + c[4] * four + c[2] * two + c[0] * eye
    made = np.linalg.solve(even - odd, even + odd)
    for _ in range(halvings):
        made = made @ made
    return engine.copy(made, dtype=kind)


def _norm(a: DistArray) -> float:
    return float(np.abs(a).sum(axis=0).max())


def _coefficients(degree: int) -> list[float]:
    """Those of the numerator of a diagonal Padé approximant of the exponential, from the lowest on."""
    return [float(factorial(2 * degree - k) // (factorial(degree - k) * factorial(k))) for k in range(degree + 1)]


def _more_halvings(a: DistArray, degree: int) -> int:
    """How often a matrix is to be halved further, such that the first term of the backward error is rounding."""
    norm = _norm(a)
    if not norm:
        return 0
    sizes, power = np.abs(a), np.ones(len(a))
    for _ in range(2 * degree + 1):
        power = power @ sizes
    error = float(power.max()) / norm / (comb(2 * degree, degree) * factorial(2 * degree + 1))
    return max(ceil(log2(error * 2.0**53) / (2 * degree)), 0) if error else 0
