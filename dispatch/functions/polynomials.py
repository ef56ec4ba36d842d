"""Polynomials of few coefficients, evaluated at points which may be many."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.polynomial import polynomial

from numpy_dist.dispatch.core.registry import declare, decline, implements
from numpy_dist.dispatch.patterns.arguments import as_handle
from numpy_dist.dispatch.patterns.numpy_source import adopt
from numpy_dist.dispatch.patterns.replicate import few

if TYPE_CHECKING:
    from numpy_dist.distarray import DistArray

adopt(__name__, np.polyadd, np.polyder, np.polyint, np.polysub, np.polyval)
declare(np.polydiv, kind="gathered", reason="each coefficient follows from the one before", source=__name__)
declare(np.poly, np.roots, kind="gathered", reason="it needs the eigenvalues of a single matrix", source=__name__)


def _inverse(matrix: object) -> DistArray:
    """Of the few rows and columns that the coefficients have."""
    return as_handle(np.linalg.inv(few(matrix)))


adopt(__name__, np.polyfit, inv=_inverse)


@implements(np.polymul, kind="composed")
def polymul(a1: object, a2: object) -> object:
    if isinstance(a1, np.poly1d) or isinstance(a2, np.poly1d):
        decline("polynomials as objects")
    return np.convolve(_trimmed(a1), _trimmed(a2))


def _trimmed(coefficients: object) -> DistArray | np.ndarray:
    """Coefficients without leading zeros, as `numpy.poly1d` has them."""
    found = np.atleast_1d(as_handle(coefficients))
    if found.ndim > 1:
        raise ValueError("Polynomial must be 1d only.")
    found = np.trim_zeros(found, trim="f")
    return found if found.size else as_handle(np.zeros(1, found.dtype))


def _polyval(x: DistArray, c: object, tensor: bool = True) -> DistArray:
    """As `numpy.polynomial.polynomial.polyval`, which no array can override by itself."""
    c = np.atleast_1d(as_handle(c))
    c = c + 0.0 if c.dtype.kind in "biu" else c
    c = np.reshape(c, c.shape + (1,) * x.ndim) if tensor else c
    value = c[-1] + x * 0
    for k in range(2, len(c) + 1):
        value = c[-k] + value * x
    return value


def polyval2d(x: object, y: object, c: object) -> DistArray:
    first, second = as_handle(x), as_handle(y)
    if first.shape != second.shape:
        raise ValueError("x, y are incompatible")
    return _polyval(second, _polyval(first, c), tensor=False)


def polygrid2d(x: object, y: object, c: object) -> DistArray:
    return _polyval(as_handle(y), _polyval(as_handle(x), c))


for _function in (polyval2d, polygrid2d):
    _numpys = getattr(polynomial, _function.__name__)
    if hasattr(_numpys, "__wrapped__"):  # NumPy lets us override it
        implements(_numpys, kind="composed")(_function)
