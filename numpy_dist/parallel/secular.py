"""The secular equation: eigenvalues and eigenvectors of a diagonal matrix to which one of rank one is added.

``diag(d) + rho * outer(z, z)`` has one eigenvalue between two elements of d each, a root of ``1 / rho + sum(z**2 / (d -
x))``. Roots are found by rational interpolation with fixed weights ("Solving secular equations stably and efficiently",
R.-C. Li, LAPACK Working Note 89, 1993), many at a time, each as the distance from the nearer one of its neighbours in
d, which keeps all digits. Eigenvectors are those of the vector z that has exactly these roots, so that they are
orthogonal ("A stable and efficient algorithm for the rank-one modification of the symmetric eigenproblem", M. Gu and
S. Eisenstat, SIAM J. Matrix Anal. Appl. 1994).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

EPS = float(np.finfo(float).eps) / 2
_STEPS = 100  # at most; bisection alone would need half of them
_ELEMENTS = 1 << 16  # that are treated together, so that they stay in a cache


@dataclass
class Roots:
    """Some roots of a secular equation, in order.

    Attributes
    ----------
    origins : ndarray of int, (r,)
        Of which element of d each root is a neighbour.
    offsets : ndarray, (r,)
        How far from it.
    """

    origins: np.ndarray
    offsets: np.ndarray

    def distances(self, d: np.ndarray, some: slice) -> np.ndarray:
        """All of d minus some of the roots, (roots, d)."""
        made = d - d[self.origins[some], None]
        made -= self.offsets[some, None]
        return made

    def values(self, d: np.ndarray) -> np.ndarray:
        """The roots themselves, rounded."""
        return d[self.origins] + self.offsets


def roots(d: np.ndarray, z: np.ndarray, rho: float, first: int, stop: int) -> Roots:
    """The roots number `first` to `stop`.

    Parameters
    ----------
    d : ndarray, (k,)
        Ascending, with differences that are not negligible.
    z : ndarray, (k,)
        No element is negligible.
    rho : float
        Positive.
    """
    found = [_roots(d, z, rho, some) for some in _chunks(first, stop, len(d))]
    if not found:
        return nothing(0)
    return Roots(np.concatenate([one.origins for one in found]), np.concatenate([one.offsets for one in found]))


def nothing(count: int) -> Roots:
    """What stands for roots that nobody has found."""
    return Roots(np.zeros(count, np.intp), np.zeros(count))


def _chunks(first: int, stop: int, length: int) -> Iterator[np.ndarray]:
    step = max(_ELEMENTS // max(length, 1), 8)
    for low in range(first, stop, step):
        yield np.arange(low, min(low + step, stop))


def _roots(d: np.ndarray, z: np.ndarray, rho: float, which: np.ndarray) -> Roots:
    k, sizes = len(d), np.abs(z)
    if k == 1:
        return Roots(np.zeros(len(which), np.intp), np.full(len(which), rho * float(z[0]) ** 2))
    # The two poles that are nearest to a root; the last root lies beyond both of them.
    left = np.minimum(which, k - 2)
    last = which == k - 1
    width = np.where(last, rho * float(z @ z), d[left + 1] - d[left])
    middle = (z / (d - d[which, None] - (width / 2)[:, None])) @ z + 1 / rho
    low_half = (middle >= 0) | last
    origins = np.where(low_half, which, left + 1)
    low = np.where(last & (middle < 0), width / 2, np.where(low_half, 0, -width / 2))
    high = np.where(last & (middle < 0), width, np.where(low_half, width / 2, 0))
    offsets, active = (low + high) / 2, np.arange(len(which))
    for _ in range(_STEPS):
        at, origin = offsets[active], d[origins[active]]
        distances = d - origin[:, None]
        distances -= at[:, None]
        terms = z / distances
        value = terms @ z + 1 / rho
        slope = np.einsum("ij,ij->i", terms, terms)
        error = 8 * (np.abs(terms) @ sizes) + 1 / rho + np.abs(at) * slope
        low[active] = np.where(value < 0, at, low[active])
        high[active] = np.where(value < 0, high[active], at)
        going = (np.abs(value) > EPS * error) & (high[active] - low[active] > EPS * np.abs(at))
        if not going.any():
            break
        active, rows = active[going], np.flatnonzero(going)
        near = left[active]
        before, after = distances[rows, near], distances[rows, near + 1]
        step = _step(
            value[going], slope[going], before, after, terms[rows, near], terms[rows, near + 1],
            low_half[active], last[active],
        )  # fmt: skip
        new = at[going] + step
        inside = (new > low[active]) & (new < high[active])  # False of NaN
        offsets[active] = np.where(inside, new, (low[active] + high[active]) / 2)
    return Roots(origins, offsets)


def _step(
    value: np.ndarray,
    slope: np.ndarray,
    before: np.ndarray,
    after: np.ndarray,
    term_before: np.ndarray,
    term_after: np.ndarray,
    low_half: np.ndarray,
    last: np.ndarray,
) -> np.ndarray:
    """To the root of a function with the same two poles, value and slope, and the weight of the nearer pole."""
    with np.errstate(all="ignore"):  # what is no number is replaced by bisection
        gap = after - before
        constant = np.where(
            low_half, value - after * slope + gap * term_before**2, value - before * slope - gap * term_after**2
        )
        of_last = value - before * (slope - term_after**2) - after * term_after**2
        c = np.where(last, np.abs(of_last), constant)
        a = (before + after) * value - before * after * slope
        b = before * after * value
        root = np.sqrt(np.abs(a * a - 4 * b * c))
        inner = np.where(a <= 0, (a - root) / (2 * c), 2 * b / (a + root))
        outer = np.where(a >= 0, (a + root) / (2 * c), 2 * b / (a - root))
        step = np.where(last, outer, inner)
        return np.where(value * step >= 0, -value / slope, step)


def products(d: np.ndarray, found: Roots, first: int) -> np.ndarray:
    """Of each element of d, the product of what some roots, from number `first` on, contribute to its weight.

    The product of all of them is ``rho * z**2``, of the z that has exactly these roots.
    """
    made = np.ones(len(d))
    for which in _chunks(0, len(found.offsets), len(d)):
        some = slice(which[0], which[-1] + 1)
        numbers = first + which
        between = d - d[numbers, None]
        between[np.arange(len(which)), numbers] = -1
        made *= np.prod(found.distances(d, some) / between, axis=0)
    return made


def weights(parts: list[np.ndarray], z: np.ndarray) -> np.ndarray:
    """The z that has exactly the roots of which these are the products, but for a factor; signs are those of `z`."""
    made = np.ones(len(z))
    for part in parts:
        made *= part
    return np.copysign(np.sqrt(np.abs(made)), z)


def vectors(d: np.ndarray, z: np.ndarray, found: Roots, some: slice) -> np.ndarray:
    """Normalized eigenvectors of some of the roots, (k, roots); `z` is that of `weights`."""
    made = found.distances(d, some)
    np.divide(z, made, out=made)
    made /= np.sqrt(np.einsum("ij,ij->i", made, made))[:, None]
    return made.T
