"""Methods of arrays at hand that do what a function does which is computed at once."""

from __future__ import annotations

import functools
from typing import Any, cast

import numpy as np

from numpy_dist.argument_types import Function
from numpy_dist.dispatch.core import registry
from numpy_dist.distarray.array import DistArray
from numpy_dist.distarray.at_hand.array import AtHand, method_at_hand, view_at_hand
from numpy_dist.distarray.at_hand.functions import by_numpy, sorting
from numpy_dist.distarray.at_hand.indexing import assign
from numpy_dist.distarray.at_hand.routes import ROUTES
from numpy_dist.engine.data import windows
from numpy_dist.engine.data.windows import FREE, hand_over

_METHODS: dict[str, Function] = {
    "astype": np.astype,
    "flatten": np.ravel,
    "prod": np.prod,
    "trace": np.trace,
    "argpartition": np.argpartition,
    **{name: getattr(np, name) for name in ("argmax", "argmin", "argsort", "clip", "cumprod", "cumsum")},
    **{name: getattr(np, name) for name in ("nonzero", "ravel", "reshape", "round", "searchsorted", "squeeze")},
    **{name: getattr(np, name) for name in ("swapaxes", "take", "transpose")},
}
"""Methods of ndarray, and the functions whose rules they follow."""
_SHAPING = frozenset(("ravel", "reshape", "squeeze", "swapaxes", "transpose"))
_ARE_EXTENTS = frozenset([int]).issuperset


def _method(name: str, function: Function) -> Function:
    """A method of ndarray that does what a function does which is computed at once."""
    general, call = getattr(DistArray, name), getattr(np.ndarray, name)
    stable = function is np.argsort

    @functools.wraps(general, updated=())
    def method(self: AtHand, *args: object, **kwargs: object) -> object:
        if not registry.loaded:
            registry.load()
        if function in ROUTES:
            if stable:
                made = sorting((self, *args), kwargs)
            else:
                made = by_numpy(function, (self, *args), kwargs, call)
            if made is not None:
                return made
        return general(hand_over(self), *args, **kwargs)

    return method


def _shaping(name: str, function: Function) -> Function:
    """A method whose result is a view where it can be, and that takes integers."""
    general, call = _method(name, function), getattr(np.ndarray, name)

    @functools.wraps(general, updated=())
    def method(self: AtHand, *args: object, **kwargs: object) -> object:
        window, real = self._window, self._real
        if kwargs or not window.readable or real.dtype.kind == "c" or function not in ROUTES:
            return general(self, *args, **kwargs)
        if not _ARE_EXTENTS(map(type, args)) and not (len(args) == 1 and type(args[0]) is tuple):
            return general(self, *args, **kwargs)
        made, whole = call(real, *args), real if real.base is None else real.base
        if made is real or (made.base is not whole and made.base is not real):
            return general(self, *args, **kwargs)  # new memory
        if window is FREE:
            window = windows.family(self)  # type: ignore[assignment]
        return general(self, *args, **kwargs) if window is None else view_at_hand(self, made, window)

    return method


def _composed_method(name: str, function: Function) -> Function:
    """A method that the house composes of other functions, each of which may be at once."""
    general = getattr(DistArray, name)

    @functools.wraps(general, updated=())
    def method(self: AtHand, *args: object, **kwargs: object) -> object:
        if kwargs.keys() - {"axis", "keepdims", "ddof"} or len(args) > 1:
            return general(hand_over(self), *args, **kwargs)
        return self.__array_function__(function, (AtHand,), (self, *args), kwargs)

    return method


@method_at_hand
def sort(self: AtHand, axis: object = -1, kind: object = None, order: object = None, *, stable: object = None) -> None:
    """Sort in place (as ndarray.sort)."""
    if order is None and type(axis) is int and (route := ROUTES.get(np.sort)) is not None:
        made = route((self,), {"axis": axis, "kind": kind, "stable": stable})
        if made is not None and assign(self, Ellipsis, made):
            return
    cast(Any, DistArray).sort(hand_over(self), axis, kind, order, stable=stable)


@method_at_hand
def partition(self: AtHand, kth: object, axis: Any = -1, kind: str = "introselect", order: object = None) -> None:
    """Put elements in place around those of a rank (as ndarray.partition)."""
    if order is None and type(axis) is int and (route := ROUTES.get(np.partition)) is not None:
        made = route((self, kth), {"axis": axis, "kind": kind})
        if made is not None and assign(self, Ellipsis, made):
            return
    cast(Any, DistArray).partition(hand_over(self), kth, axis, kind, order)


for _name, _function in _METHODS.items():
    setattr(AtHand, _name, (_shaping if _name in _SHAPING else _method)(_name, _function))
for _name in ("std", "var"):
    setattr(AtHand, _name, _composed_method(_name, getattr(np, _name)))
