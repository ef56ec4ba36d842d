"""Assertions of `numpy.testing` that compare arguments by Python's operators, given ndarrays for distributed arrays.

The others make ndarrays of their arguments themselves. Each distributed array is gathered, with the warning.
"""

from __future__ import annotations

from types import ModuleType

import numpy as np

from numpy_dist.argument_types import Function
from numpy_dist.importing import put_before


def take_over(testing: ModuleType) -> None:
    """Stand before functions of `numpy.testing`."""
    for name in ("assert_equal", "assert_almost_equal"):
        put_before(testing, name, _with_ndarrays)


def _with_ndarrays(own: Function, *args: object, **kwargs: object) -> object:
    __tracebackhide__ = True
    return own(*map(_ndarrays, args), **{name: _ndarrays(value) for name, value in kwargs.items()})


def _ndarrays(x: object) -> object:
    """What is compared, in containers that NumPy looks into, too."""
    from numpy_dist import engine

    if engine.is_handle(x):
        return np.asarray(x)
    if type(x) is list:
        return [_ndarrays(item) for item in x]
    if type(x) is tuple:
        return tuple(_ndarrays(item) for item in x)
    if type(x) is dict:
        return {key: _ndarrays(value) for key, value in x.items()}
    return x
