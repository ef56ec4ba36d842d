"""Array manipulation routines that change the kind of array: flags and memory order."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import DTypeLike

from numpy_dist.dispatch.core.registry import implements
from numpy_dist.dispatch.functions.array_creation_from_data import array, ingest
from numpy_dist.dispatch.patterns.creation import elsewhere

if TYPE_CHECKING:
    from numpy import _OrderCF
    from numpy._core._asarray import _Requirements
    from numpy._typing import _SupportsArrayFunc


@implements(np.asfortranarray, replicated=True)
def asfortranarray(a: object, dtype: DTypeLike | None = None, *, like: _SupportsArrayFunc | None = None) -> object:
    """A distributed array in Fortran order with at least one axis, as `numpy.asfortranarray`."""
    if elsewhere(like):
        return np.asfortranarray(a, dtype, like=like)
    return array(a, dtype, copy=None, order="F", ndmin=1)


@implements(np.require, replicated=True)
def require(
    a: object,
    dtype: DTypeLike | None = None,
    requirements: _Requirements | Iterable[_Requirements] | None = None,
    *,
    like: _SupportsArrayFunc | None = None,
) -> object:
    """A distributed array with flags as asked for, as `numpy.require`."""
    if elsewhere(like):
        return np.require(a, dtype, requirements, like=like)
    np.require(0, None, requirements)  # NumPy's errors
    names = {str(r)[0].upper() for r in ([requirements] if isinstance(requirements, str) else requirements or ())}
    order: _OrderCF = "F" if "F" in names else "C" if "C" in names else None
    made = ingest(a, dtype, order, None, None, None)
    return made if all(made.flags[name] for name in names & {"A", "O", "W"}) else made.copy(order=order or "A")
