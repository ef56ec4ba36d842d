"""Statistics that leave NaN out."""

from __future__ import annotations

from typing import Any

import numpy as np

from numpy_dist.dispatch.core.registry import implements
from numpy_dist.dispatch.functions.mathematical_sums import reduce
from numpy_dist.dispatch.patterns.arguments import NoValue
from numpy_dist.dispatch.patterns.numpy_source import adopt, warn

adopt(__name__, np.nansum, np.nanprod, np.nanmean, np.nanvar, np.nanstd, np.nanargmin, np.nanargmax)


@implements(np.nanmin, kind="composed")
def nanmin(
    a: Any, axis: Any = None, out: Any = None, keepdims: Any = NoValue, initial: Any = NoValue, where: Any = NoValue
) -> Any:
    return _warned(reduce(np.fmin, a, axis, None, out, keepdims, initial, where))


@implements(np.nanmax, kind="composed")
def nanmax(
    a: Any, axis: Any = None, out: Any = None, keepdims: Any = NoValue, initial: Any = NoValue, where: Any = NoValue
) -> Any:
    return _warned(reduce(np.fmax, a, axis, None, out, keepdims, initial, where))


def _warned(result: Any) -> Any:
    """NumPy's warning, if a NaN is left (collective: it needs the values)."""
    if result.dtype.kind in "fcmM" and np.any(np.isnan(result)):
        warn("All-NaN slice encountered", RuntimeWarning)
    return result
