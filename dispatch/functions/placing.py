"""Elements by flat positions and choices: `put`, `choose`."""

from __future__ import annotations

from typing import Any

import numpy as np

from numpy_dist import engine
from numpy_dist.dispatch.core.registry import decline, implements
from numpy_dist.dispatch.functions.picking import as_indices, fetch, scatter, within
from numpy_dist.dispatch.patterns.arguments import as_handle, decline_unshardable
from numpy_dist.dispatch.patterns.index_arrays import Picked, first_outside
from numpy_dist.ir.rules import broadcast_shapes


@implements(np.put, kind="parallel")
def put(a: Any, ind: Any, v: Any, mode: Any = "raise") -> None:
    """Collective: values travel to the owners of the elements; the last one for an element stays."""
    if not engine.is_handle(a):
        decline("put into an ndarray")
    decline_unshardable(a)
    ind = as_indices(ind)
    if not engine.may_write(a._array):
        raise ValueError("put: output array is read-only")
    one = np.zeros(1, a.dtype)
    np.put(one, np.zeros(0, ind.dtype if ind.size else np.intp), one, mode)  # NumPy's own errors
    n, count = a.size, int(ind.size)
    if count and not n:
        raise IndexError("cannot replace elements of an empty array")
    values = v if engine.is_handle(v) and engine.shardable(v.dtype) else np.asarray(engine.plain(v), a.dtype)
    if not count or not values.size:
        return
    ind = np.reshape(np.astype(ind, np.intp), -1)
    ind, beyond = within(ind, n, mode), None
    place = first_outside(ind, n)
    if place is not None:  # NumPy writes what comes before it, but where it works on a copy
        beyond = IndexError(f"index {int(ind[place])} is out of bounds for axis 0 with size {n}")
        count = place if a._array.flags.c_contiguous else 0
        ind = ind[:count]
    if count:
        scatter(Picked.flat(a, np.where(ind < 0, ind + n, ind)), repeated(values, count))
    if beyond is not None:
        raise beyond


def repeated(values: Any, count: int) -> Any:
    """So many values: the given ones in C order, again and again (collective where they are sharded and too few)."""
    size = int(values.size)
    if size == 1:
        return np.reshape(values, ())
    if size >= count:
        return np.reshape(values, -1)[:count]
    plain = None if engine.is_handle(values) else values.reshape(-1)
    layout = engine.default_layout((count,), split=0)
    if plain is not None:
        return engine.from_reader(lambda box: plain[np.arange(*box[0]) % size], (count,), plain.dtype, layout)
    positions = engine.from_reader(lambda box: np.arange(*box[0]) % size, (count,), np.intp, layout)
    return fetch(Picked.flat(values, positions))


@implements(np.choose, kind="composed")
def choose(a: Any, choices: Any, out: Any = None, mode: Any = "raise") -> Any:
    """Collective: whether an index is out of range is asked of all ranks."""
    a = a if engine.is_handle(a) else np.asarray(a)
    given = [x if engine.is_handle(x) or isinstance(x, int | float | complex) else np.asarray(x) for x in choices]
    few = [np.zeros((1,) * x.ndim, x.dtype) if hasattr(x, "dtype") else x for x in given]
    dtype = np.choose(np.zeros((1,) * a.ndim, a.dtype), few, mode=mode).dtype  # or NumPy's own errors
    try:
        shape = broadcast_shapes(a.shape, *(np.shape(x) for x in given))
    except ValueError:
        engine.numpy_error(np.choose, (a, [np.zeros(np.shape(x)) for x in given]), {})
    if out is not None and tuple(out.shape) != shape:
        raise TypeError("choose: invalid shape for output array.")
    index = within(np.astype(as_handle(a), np.intp), len(given), mode)
    if np.any((index < 0) | (index >= len(given))):
        raise ValueError("invalid entry in choice array")
    made = engine.empty(shape, dtype, layout=engine.default_layout(shape))
    for number, choice in enumerate(given):
        value = choice if hasattr(choice, "dtype") else np.asarray(choice).astype(dtype, casting="unsafe")
        engine.assign(made, value, where=np.equal(index, number))
    if out is not None:
        engine.assign(out, made)
        return out
    return made if shape else engine.item(made)
