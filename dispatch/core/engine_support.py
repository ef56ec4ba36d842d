"""What the engine computes of ufuncs and their reductions, and the reasons why not the rest."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any

import numpy as np

from numpy_dist import engine
from numpy_dist.argument_types import Keywords

_SCALARS = (int, float, complex, np.str_, np.bytes_)  # texts also where they are empty, unlike arrays of empty texts


def why_not_element_wise(ufunc: np.ufunc, inputs: Iterable[Any], kwargs: Keywords) -> str | None:
    """Why the engine cannot compute a ufunc of these inputs; None if it can."""
    if (reason := _why_no_loop(ufunc)) is not None:
        return reason
    for value in inputs:
        if isinstance(value, _SCALARS):
            continue
        if not engine.shardable(value.dtype):
            return f"arrays of dtype {value.dtype} are not distributed"
        if value.dtype.names is not None and not ufunc.types:
            return "its loops for records take no output"  # NumPy refuses `out`, which the engine gives
    if kwargs:
        dtypes = [x.dtype for x in kwargs.get("out") or () if x is not None]
        if kwargs.get("dtype") is not None:
            dtypes.append(np.dtype(kwargs["dtype"]))
        for dtype in dtypes:
            if not engine.shardable(dtype):
                return f"arrays of dtype {dtype} are not distributed"
    return None


@functools.lru_cache(maxsize=1024)
def _why_no_loop(ufunc: np.ufunc) -> str | None:
    """Why the engine cannot compute a ufunc whatever it is given; None if nothing is known against it."""
    if ufunc.signature is not None:
        return "it is a generalised ufunc"
    if not ufunc.nout:
        return "it has no results, and writes into its operands"
    loops = [loop.partition("->")[2] for loop in ufunc.types]
    if loops and all("O" in results for results in loops):  # made of a Python function (``frompyfunc``)
        return "its results are Python objects"
    return None


def why_not_reduced(ufunc: np.ufunc, array: object) -> str | None:
    """Why the engine cannot reduce an array by a ufunc; None if it can."""
    dtype = array.dtype if hasattr(array, "dtype") else np.asarray(array).dtype
    if engine.reducible(ufunc, dtype):
        return None
    if not engine.shardable(dtype):
        return f"arrays of dtype {dtype} are not distributed"
    return "it is not associative: partial results of the ranks cannot be combined"
