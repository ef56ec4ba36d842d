"""Calls of ufuncs on arrays at hand."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from numpy_dist.argument_types import Function, Keywords
from numpy_dist.dispatch.core import outcome, registry
from numpy_dist.distarray.array import DistArray
from numpy_dist.distarray.at_hand.array import NUMBERS, AtHand, method_at_hand
from numpy_dist.distarray.at_hand.elements import elements, is_small, writeable
from numpy_dist.distarray.at_hand.operators import REFLECTED
from numpy_dist.distarray.at_hand.products import PRODUCTS
from numpy_dist.distarray.at_hand.routes import ROUTES, is_method_ours, is_ours
from numpy_dist.distarray.at_hand.strides import beside, depends_on_target, prepared_for
from numpy_dist.distarray.at_hand.ufunc_methods import DONE, METHODS
from numpy_dist.distarray.operators import REALS, call_name
from numpy_dist.engine.data import watch, windows
from numpy_dist.engine.data.windows import KINDS, hand_over, near
from numpy_dist.engine.events import floating
from numpy_dist.ir.ops import STRIDE_SENSITIVE

_ndarray = np.ndarray
_rules = registry.TABLE
_RUNNING: dict[tuple[np.ufunc, str], Function] = {
    (np.add, "accumulate"): np.cumsum,
    (np.multiply, "accumulate"): np.cumprod,
    (np.multiply, "reduce"): np.prod,
}
"""Methods of ufuncs that are functions, for vectors."""
_REDUCING = frozenset({"axis", "dtype", "keepdims"})


def _none(args: tuple, kwargs: Keywords) -> None:
    """Nothing is at hand where somebody else has rules for a function."""


@method_at_hand
def __array_ufunc__(self: AtHand, ufunc: np.ufunc, method: str, *inputs: object, **kwargs: object) -> Any:
    if not registry.loaded:
        registry.load()  # lest the array be handed over, for good, where the first function is looked for
    if type(inputs[0]) in NUMBERS and not kwargs and method == "__call__":
        operator_of = REFLECTED.get(ufunc)  # NumPy's scalars do not ask the array's operators
        if operator_of is not None:
            return operator_of(self, inputs[0])
    if method == "__call__" and ufunc not in _rules:
        made = computed(ufunc, inputs, kwargs)
        if made is not None:
            return made
    running = _RUNNING.get((ufunc, method))
    if running is not None and not kwargs and len(inputs) == 1 and type(inputs[0]) is AtHand:
        if inputs[0]._real.ndim == 1 and (made := ROUTES.get(running, _none)(inputs, kwargs)) is not None:
            return made
    if method == "reduce" and len(inputs) == 1 and type(inputs[0]) is AtHand and not kwargs.keys() - _REDUCING:
        return DistArray.__array_ufunc__(self, ufunc, method, *inputs, **kwargs)  # which asks `engine.reduction`
    if method == "__call__" and ufunc in PRODUCTS and is_ours(ufunc):
        made = PRODUCTS[ufunc](inputs, kwargs)
        if made is not None:
            return made
    elif method in METHODS and is_method_ours(ufunc, method):
        made = METHODS[method](ufunc, inputs, kwargs)
        if made is not None:
            return None if made is DONE else made
    return DistArray.__array_ufunc__(hand_over(self), ufunc, method, *inputs, **kwargs)


class _UfuncCall(NamedTuple):
    """How a ufunc is called.

    Attributes
    ----------
    name : str
        In NumPy's messages.
    name_of : callable
        The name by the operands, of which one is a number.
    prepared : callable or None
        What is made of elements before.
    """

    name: str
    name_of: Callable[..., str]
    prepared: Function | None


def _call_of(ufunc: np.ufunc) -> _UfuncCall:
    return _UfuncCall(ufunc.__name__, functools.partial(call_name, ufunc), prepared_for(ufunc))


_CALLS = {
    ufunc: _call_of(ufunc)
    for ufunc in vars(np).values()
    if isinstance(ufunc, np.ufunc) and ufunc.signature is None and ufunc.nin <= 2
}


def computed(ufunc: np.ufunc, inputs: tuple, kwargs: Keywords) -> object:
    """A call of a ufunc without options but `out`, on elements that are at hand; None if they are not."""
    call = _CALLS.get(ufunc)
    if call is None:
        return None
    name, name_of, prepared = call
    out: Any = None
    if kwargs:
        if "out" not in kwargs:
            return _of_dtype(ufunc, inputs, kwargs)
        out = _target(call, kwargs)
        if out is None:
            return None
        if kwargs.get("where", True) is not True:
            mask = _mask(kwargs["where"])
            if mask is None:
                return None
            kwargs = {**kwargs, "where": mask}
    values = []
    for x in inputs:
        kind = type(x)
        if kind is AtHand and x._window.readable:
            x = x._real
        elif kind not in NUMBERS:
            x = elements(x, kind)
            if x is None:
                return None
        values.append(x if prepared is None else prepared(x))
    told: str | Callable[..., str] = name
    if windows.eager and not windows.permits(max((x.nbytes for x in values if type(x) is _ndarray), default=0), name):
        return None
    if len(values) == 2:
        a, b = values
        if type(a) is not type(b):
            told = name_of
        elif type(a) is _ndarray and not (a.ndim == b.ndim == 1 or is_small(a, b)):
            return None
    if out is None:
        made = watch.applied(ufunc, told, tuple(values))
        if type(made) is tuple:
            return tuple(map(near, made)) if type(made[0]) is _ndarray else made
        return near(made) if type(made) is _ndarray else made
    _write_to(ufunc, call, values, {**kwargs, "out": out})
    return kwargs["out"][0]


def _write_to(ufunc: np.ufunc, call: _UfuncCall, values: list[Any], kwargs: Keywords) -> None:
    """Let a ufunc write to ``kwargs["out"]``."""
    out = kwargs["out"]
    if call.prepared is not None:
        values = [beside(x, out) if type(x) is _ndarray else x for x in values]
    alike = len(values) < 2 or type(values[0]) is type(values[1])
    told = call.name if alike else call.name_of(*values)
    if len(kwargs) == 1 and ufunc is not np.maximum and ufunc is not np.minimum:  # which want it by its name
        watch.applied(ufunc, told, (*values, out))
    else:
        watch.watched(ufunc, told, *values, **kwargs)


def _mask(where: object) -> np.ndarray | None:
    """A mask of elements that are at hand; None for others."""
    mask = elements(where, type(where))
    return None if mask is None or mask.dtype.char != "?" or mask.nbytes >= windows.limit else mask


def _of_dtype(ufunc: np.ufunc, inputs: tuple, kwargs: Keywords) -> object:
    """A ufunc of real numbers in a dtype that is asked for; None for others, and where bits depend on strides.

    NumPy tells whether the cast or the operation has met an event; as a part of another function it is the engine's.
    """
    if kwargs.keys() - _CONVERTING or ufunc.__name__ in STRIDE_SENSITIVE or ufunc.nout > 1:
        return None
    if floating.name_told("") != "":
        return None
    values = [x if type(x) in REALS else elements(x, type(x)) for x in inputs]
    arrays = [x for x in values if type(x) is _ndarray]
    if any(x is None for x in values) or any(x.dtype.kind == "c" or x.nbytes >= windows.limit for x in arrays):
        return None
    wanted = kwargs.get("dtype")
    if isinstance(wanted, type) and wanted in REALS:
        wanted = np.dtype(wanted)
    if not isinstance(wanted, np.dtype) or wanted.kind == "c" or wanted.char not in KINDS:
        return None
    if not is_small(arrays[0], arrays[-1]):
        return None
    with outcome.Retold():
        made = ufunc(*values, **kwargs)
    return near(made) if type(made) is _ndarray else made


_CONVERTING = frozenset({"dtype", "casting"})


def _target(call: _UfuncCall, kwargs: Keywords) -> np.ndarray | None:
    """The elements that a call of a ufunc writes to; None where the engine has to."""
    if "out" not in kwargs or kwargs.keys() - _OUT or kwargs.get("casting", "unsafe") not in _CASTINGS:
        return None
    if len(kwargs["out"]) > 1:
        return None
    target = writeable(kwargs["out"][0])
    if target is None or target.dtype.char not in _WRITTEN or target.nbytes >= windows.limit:
        return None
    if call.prepared is not None and depends_on_target(call.name in STRIDE_SENSITIVE, target):
        return None
    if kwargs.get("where", True) is not True and target.dtype.kind == "c":
        return None
    return target


_WRITTEN = frozenset("bBhHiIlLqQfdFD")
_OUT = frozenset({"out", "casting", "where"})
_CASTINGS = frozenset({"unsafe", "same_kind"})
