"""The reduce pattern for products: regrouped, or in NumPy's order where one may leave the range of numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from numpy_dist import engine
from numpy_dist.argument_types import Axes
from numpy_dist.dispatch.patterns.arguments import NoValue, given
from numpy_dist.dispatch.patterns.reduce import in_order
from numpy_dist.ir.rules import reduction_dtype
from numpy_dist.parallel.ordered import is_numpys
from numpy_dist.parallel.products import power_range

# Of so many factors it is not worth a pass to find that they are all near one.
MANY = 1 << 12


def product(
    array: object,
    axis: Axes = 0,
    dtype: DTypeLike | None = None,
    out: object = None,
    keepdims: object = False,
    initial: object = NoValue,
    where: Any = True,
) -> object:
    """`np.multiply.reduce`: partial products are folded as sums are, of inexact numbers where no grouping can matter.

    That is so where no factor is so large or small that as many as are multiplied could over- or underflow: one pass
    for the extremes tells (collective, as is all of this for inexact numbers). Else, and in one process, the order is
    NumPy's (`reduce.in_order`), and so are the result and its floating-point events.
    """
    target = out[0] if isinstance(out, tuple) else out
    options = given(initial=initial)
    if _goes_in_order(array, axis, dtype, target, initial, where):
        return in_order(np.multiply, array, axis, dtype, target, keepdims, options, where)
    return engine.reduction(np.multiply, array, axis, dtype, target, keepdims, where=where, **options)


def _goes_in_order(a: Any, axis: Any, dtype: DTypeLike | None, out: Any, initial: Any, where: ArrayLike) -> bool:
    """Whether inexact numbers keep NumPy's order: where they could over- or underflow in another, and in one process.

    False where NumPy refuses.
    """
    if not (engine.is_sharded(a) or engine.is_sharded(where)) or not a.size:
        return False
    try:
        if out is not None and dtype is None:  # the target takes part in the choice of the loop
            kind = reduction_dtype(np.multiply, a.dtype, out.dtype)
        else:
            kind = np.multiply.reduce(np.ones(1, a.dtype), dtype=dtype, keepdims=True).dtype
        axes = range(a.ndim) if axis is None else np.lib.array_utils.normalize_axis_tuple(axis, a.ndim)
        first = 1.0 if initial in (NoValue, None) else complex(initial)
        np.broadcast_shapes(a.shape, np.shape(where))
    except (TypeError, ValueError):
        return False
    if kind.kind not in "fc" or a.dtype.kind not in "biufc":
        return False
    if kind.kind == "c" and np.geterr()["under"] != "ignore":
        return True  # a component may vanish where the number does not
    count = math.prod(a.shape[i] for i in axes)
    if first == 1 and count <= 1:
        return False
    if count > MANY or a.ndim == 0:
        return True
    rt = engine.runtime()
    if rt.size == 1 and engine.has_ndarrays(rt) and is_numpys(np.multiply, kind):
        return True  # NumPy's product takes less than the pass
    parts = (a.real, a.imag) if a.dtype.kind == "c" else (a,)
    # What a complex number's absolute value is more than its larger component, at most.
    more = kind.kind == "c"
    limit = 13 if kind == np.float16 else power_range(kind)
    return count * (_powers(parts, kind, where) + more) + _power(abs(first)) > limit


def _powers(parts: tuple[Any, ...], kind: np.dtype, where: ArrayLike) -> float:
    """The largest n so that a factor that is not zero may be as large as 2**n or as small as 2**-n."""
    real = np.empty(0, kind).real.dtype
    parts = tuple(np.abs(part if part.dtype.kind == "f" else engine.copy(part, dtype=real)) for part in parts)
    size = parts[0] if len(parts) == 1 else np.maximum(*parts)
    chosen = size != 0 if where is True else np.logical_and(size != 0, where)
    # Exact in any grouping, and the same on every rank.
    most = engine.reduction(np.maximum, size, None, keepdims=True, initial=1, where=chosen)
    least = engine.item(engine.reduction(np.minimum, size, None, keepdims=True, initial=1, where=chosen))
    return max(_power(engine.item(most)), _power(least))


def _power(size: float | np.floating) -> float:
    """The n for a positive number."""
    if not np.isfinite(size):
        return math.inf
    return 0.0 if size in (0, 1) else float(abs(np.frexp(size)[1] - 1) + 1)
