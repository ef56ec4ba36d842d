"""The polar decomposition of a square matrix whose columns are dealt out to the ranks.

QDWH, the dynamically weighted Halley iteration ("Optimizing Halley's iteration for computing the matrix polar
decomposition", Y. Nakatsukasa, Z. Bai, F. Gygi, SIAM J. Matrix Anal. Appl. 2010): six steps of QR, Cholesky factors and
products take all singular values to one, whatever they are.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from numpy_dist.parallel.column_products import gram, multiply
from numpy_dist.parallel.columns import Columns
from numpy_dist.parallel.factors import Reflections, cholesky
from numpy_dist.parallel.substitution import substitute

EPS = float(np.finfo(np.double).eps)
_ILL = 100.0  # weights beyond which a step takes QR: Cholesky factors would lose as many digits
_STEPS = 10  # at most
_MORE_STEPS = 40  # at most, each of which makes small singular values three times as large


def unitary_factor(x: Columns, largest: float = math.inf, smallest: float = 0.0) -> tuple[Columns, float]:
    """The unitary factor of a square matrix. Collective: some ten times the matrix is sent to all, panel by panel.

    Parameters
    ----------
    x : Columns
        Of double precision, with finite elements, none too large to be squared; is overwritten.
    largest, smallest : float
        Guesses of the largest and the smallest singular value. Good ones save steps; where the smallest one was too
        large, more follow.

    Returns
    -------
    factor : Columns
    lost : float
        How many singular values were too small to become one: the factor is not unitary then.
    """
    norm = min(norm_bound(x), largest)
    if norm:
        x.values /= norm
        smallest /= norm
    for a, b, c in _weights(max(smallest, EPS)):
        x = _by_qr(x, a, b, c) if c > _ILL else _by_cholesky(x, a, b, c)
    lost = _lost(x)
    if lost and smallest > EPS:
        for _ in range(_MORE_STEPS):
            before, x = lost, _by_cholesky(x, 3, 1, 3)
            lost = _lost(x)
            if not before:  # one step more than that: what is left of an error is its third power
                break
    return x, lost


def _lost(x: Columns) -> float:
    """The order less the sum of squares of the singular values; zero if rounding can be the cause.

    Collective: an allgather.
    """
    n, squares = x.shape[0], sum(x.comm.allgather(float(np.vdot(x.values, x.values).real)))
    return n - squares if abs(n - squares) > n * n * EPS and x.comm.delivers else 0.0


def norm_bound(x: Columns) -> float:
    """A bound on the largest singular value, at most the square root of the order too large. Collective."""
    sizes = np.abs(x.values)
    rows = np.sum(x.comm.allgather_array(sizes.sum(axis=1)), axis=0)
    squares = sum(x.comm.allgather(float(np.vdot(sizes, sizes))))
    columns = max(x.comm.allgather(float(sizes.sum(axis=0).max(initial=0))))
    return min(math.sqrt(squares), math.sqrt(float(rows.max(initial=0)) * columns))


def _weights(least: float) -> Iterator[tuple[float, float, float]]:
    """Of each step, for singular values from `least` to one."""
    for _ in range(_STEPS):
        if abs(1 - least) <= 5 * EPS:
            return
        square = least * least
        d = (4 * (1 - square) / square**2) ** (1 / 3)
        root = math.sqrt(1 + d)
        a = root + math.sqrt(max(2 - d + 2 * (2 - square) / (square * root), 0))
        b = (a - 1) ** 2 / 4
        c = a + b - 1
        yield a, b, c
        least = min(least * (a + b * square) / (1 + c * square), 1.0)


def _by_qr(x: Columns, a: float, b: float, c: float) -> Columns:
    n = x.shape[0]
    stacked = Columns((2 * n, n), x.values.dtype, x.comm, x.width, n)  # large rows first, for the sake of small ones
    np.multiply(x.values, math.sqrt(c), out=stacked.values[:n])
    stacked.add_to_diagonal(1, n)
    reflections = Reflections(stacked, stacked=True)
    reflections.reduce()
    basis = reflections.basis(n)
    del stacked, reflections
    upper, lower = basis.some_rows(0, n), basis.some_rows(n, 2 * n)
    made = multiply(upper, lower.adjoint())
    del basis, upper, lower
    made.values *= (a - b / c) / math.sqrt(c)
    x.values *= b / c
    made.values += x.values
    x.release()
    return made


def _by_cholesky(x: Columns, a: float, b: float, c: float) -> Columns:
    """The step of the adjoint, whose adjoint it returns."""
    inner = gram(x)
    inner.values *= c
    inner.add_to_diagonal(1)
    made = x.adjoint()
    cholesky(inner, made.values)
    substitute(inner, made.values, lower=True, adjoint=True)
    del inner
    made.values *= a - b / c
    made = made.adjoint()
    x.values *= b / c
    made.values += x.values
    x.release()
    return made
