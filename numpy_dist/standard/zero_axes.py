"""Arrays of no axes in place of NumPy's scalars."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from numpy_dist import engine
from numpy_dist.argument_types import Function
from numpy_dist.dispatch.core.operands import rebuild


def as_array(result: Any) -> Any:
    """A result with arrays of ours for NumPy's scalars and arrays."""
    if isinstance(result, np.generic | np.ndarray):
        return engine.replicated(np.asarray(result))
    if type(result) in (list, tuple) or hasattr(type(result), "_make"):
        return rebuild(type(result), [as_array(item) for item in result])
    return result


def arrays_for_scalars(function: Function) -> Function:
    """A function of NumPy's whose results are arrays, also those without axes."""

    @functools.wraps(function, assigned=("__name__", "__doc__"), updated=())
    def call(*args: object, **kwargs: object) -> object:
        return as_array(function(*args, **kwargs))

    return call
