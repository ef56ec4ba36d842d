"""Methods of ufuncs on arrays at hand: running values, all pairs, updates by index, segments."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from numpy_dist.argument_types import Keywords
from numpy_dist.dispatch.core import outcome
from numpy_dist.distarray.at_hand.array import AtHand
from numpy_dist.distarray.at_hand.elements import Given, NotAtHand, real_of, writeable
from numpy_dist.distarray.at_hand.indexing import key_of
from numpy_dist.engine.data import watch
from numpy_dist.engine.data.windows import KINDS, near
from numpy_dist.parallel.ordered import is_numpys

_ndarray = np.ndarray
DONE = object()
"""What is given by a method that writes, and returns None."""
_ORDERED = (np.maximum, np.minimum, np.fmax, np.fmin)
"""Ufuncs whose running values are the same whoever compares first."""


def _accumulate(ufunc: np.ufunc, inputs: tuple, kwargs: Keywords) -> object:
    """Running extremes of a vector."""
    if ufunc not in _ORDERED or kwargs or len(inputs) != 1 or type(inputs[0]) is not AtHand:
        return None
    x = inputs[0]
    if not x._window.readable or x._real.ndim != 1 or x._real.dtype.kind == "c":
        return None
    return near(watch.applied(ufunc.accumulate, "accumulate", (x._real,)))


def _outer(ufunc: np.ufunc, inputs: tuple, kwargs: Keywords) -> object:
    """A ufunc of all pairs of elements: by broadcasting."""
    if kwargs or len(inputs) != 2 or type(inputs[0]) is not AtHand or type(inputs[1]) is not AtHand:
        return None
    a, b = inputs
    return ufunc(a[(..., *(None,) * b._real.ndim)], b)


def _at(ufunc: np.ufunc, inputs: tuple, kwargs: Keywords) -> object:
    """Elements that are updated by index, in the order of the index."""
    if kwargs or len(inputs) not in (2, 3):
        return None
    target, key = writeable(inputs[0]), key_of(inputs[1])
    given: Given = []
    try:
        values = [real_of(x, given) for x in inputs[2:]]
    except NotAtHand:
        return None
    if target is None or key is None or target.dtype.char not in KINDS:
        return None
    arrays = [x for x in (*values, *(key if type(key) is tuple else (key,))) if type(x) is _ndarray]
    if any(np.may_share_memory(x, target) for x in arrays):
        return None
    with outcome.Retold():
        ufunc.at(target, key, *values)
    return DONE


def _reduceat(ufunc: np.ufunc, inputs: tuple, kwargs: Keywords) -> object:
    """Segments that are reduced."""
    if kwargs or len(inputs) not in (2, 3) or type(inputs[0]) is not AtHand or ufunc.nout > 1:
        return None
    try:
        values = [real_of(x, []) for x in inputs]
    except NotAtHand:
        return None
    if not is_numpys(ufunc, values[0].dtype):
        return None
    with outcome.Retold():
        return near(ufunc.reduceat(*values))


METHODS: dict[str, Callable[[np.ufunc, tuple, Keywords], object]] = {
    "accumulate": _accumulate,
    "outer": _outer,
    "at": _at,
    "reduceat": _reduceat,
}
"""How methods of ufuncs are computed at once: ``method(ufunc, inputs, kwargs)`` gives None where the engine has to."""
