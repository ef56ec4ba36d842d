"""Reductions of arrays at hand, with the bits of the engine's summation tree (`engine.data.totals`)."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from numpy_dist.argument_types import Function, Keywords
from numpy_dist.distarray.array import DistArray
from numpy_dist.distarray.at_hand.array import AtHand
from numpy_dist.distarray.at_hand.elements import writeable
from numpy_dist.distarray.at_hand.routes import is_ours
from numpy_dist.engine.data import windows
from numpy_dist.engine.data.folds import mean_of
from numpy_dist.engine.data.totals import reduced
from numpy_dist.engine.data.windows import hand_over, near

_ndarray = np.ndarray
FOLDS: dict[Function, np.ufunc] = {
    np.sum: np.add,
    np.mean: np.add,
    np.max: np.maximum,
    np.amax: np.maximum,
    np.min: np.minimum,
    np.amin: np.minimum,
    np.any: np.logical_or,
    np.all: np.logical_and,
}
"""Functions that reduce, and by which ufunc."""


_OF_SAME_DTYPE = frozenset((np.sum, np.mean, np.max, np.amax, np.min, np.amin))
"""Those whose results have the dtype of the elements, where these are floats."""


def _folded(
    function: Function,
    x: AtHand,
    axis: Any = None,
    *,
    keepdims: object = False,
    initial: object = np._NoValue,
    **others: object,
) -> object:
    """An array at hand that is reduced, as the summation tree has it (`backends.summation`); None for other calls."""
    real = x._real
    if others or type(keepdims) is not bool or not x._window.readable or not real.size or not is_ours(function):
        return None
    if function is np.mean and real.dtype.char not in "fdFD":
        return None
    if windows.eager and not windows.permits(real.nbytes):
        return None
    made = reduced(FOLDS[function], real, axis, keepdims)
    if made is None:
        return None
    if function is np.mean:
        made = mean_of(made, real.size)
    if initial is not np._NoValue:
        if type(made) is _ndarray or not made or function not in _EXTREMES or type(initial) not in (int, float):
            return None  # of zeros of both signs it depends which is met first
        made = _EXTREMES[function](made, made.dtype.type(initial))
    if type(made) is _ndarray:
        return near(made)
    windows.asked_for(real.nbytes)
    return made


_EXTREMES = {function: ufunc for function, ufunc in FOLDS.items() if ufunc in (np.maximum, np.minimum)}


def _folding(name: str, function: Function) -> Function:
    general = getattr(DistArray, name)

    @functools.wraps(general, updated=())
    def method(self: AtHand, *args: object, **kwargs: object) -> object:
        made = None if len(args) > 1 else _folded(function, self, *args, **kwargs)
        return general(hand_over(self), *args, **kwargs) if made is None else made

    return method


def reduction(function: Function, args: tuple, kwargs: Keywords) -> object:
    """`sum`, `max` and the like of an array at hand, along an axis or all; None for others."""
    if not 0 < len(args) <= 2 or type(args[0]) is not AtHand:
        return None
    if kwargs.get("out") is None:
        return _folded(function, *args, **kwargs)
    target = writeable(kwargs["out"])
    if target is None or function not in _OF_SAME_DTYPE or target.dtype is not args[0]._real.dtype:
        return None
    if target.dtype.char not in "fdlLFD":  # of others, sums have another one
        return None
    made = _folded(function, *args, **{name: x for name, x in kwargs.items() if name != "out"})
    values = made._real if type(made) is AtHand else np.asarray(made)
    if made is None or values.shape != target.shape or values.dtype is not target.dtype:
        return None
    target[...] = values
    return kwargs["out"]


for _name in ("sum", "mean", "max", "min", "any", "all"):
    setattr(AtHand, _name, _folding(_name, getattr(np, _name)))
