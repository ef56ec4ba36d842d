"""Functions of arrays at hand: NumPy's, where their results have the engine's bits (`distarray.same_bits`)."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from numpy_dist.argument_types import Function, Keywords
from numpy_dist.backends.summation import CHUNK
from numpy_dist.dispatch.core import outcome, registry
from numpy_dist.dispatch.core.operands import rebuild
from numpy_dist.distarray.array import DistArray
from numpy_dist.distarray.at_hand.array import AtHand, method_at_hand, view_at_hand
from numpy_dist.distarray.at_hand.einsum import einsum
from numpy_dist.distarray.at_hand.elements import PASSED, Given, NotAtHand, new_memory, real_of, writeable
from numpy_dist.distarray.at_hand.products import product, vector_product
from numpy_dist.distarray.at_hand.reductions import FOLDS, reduction
from numpy_dist.distarray.at_hand.routes import COMPOSED, ROUTES, WRITERS
from numpy_dist.distarray.at_hand.writers import WRITING
from numpy_dist.distarray.same_bits import EVENTS, NEW, SHORT, TOLD, VIEWS
from numpy_dist.engine.data import watch, windows
from numpy_dist.engine.data.windows import FREE, KINDS, hand_over

if TYPE_CHECKING:
    from numpy_dist.dispatch.core.keys import Key

_ndarray = np.ndarray
_rules = registry.TABLE
_VECTORS = (np.inner, np.vdot)
_PARTS: dict[Function, str] = {np.real: "real", np.imag: "imag"}
_SILENT = frozenset((*VIEWS, *TOLD))  # which compute nothing
_FLATTENING = frozenset((np.ravel, np.reshape))
_SHORT = frozenset(SHORT)
_WRITTEN = ("out", "overwrite_input")
"""Parameters by which a function writes to its arguments: the engine's."""
_MOST_GROWN = 16
"""How many times larger than an argument a result of `outer` is at the most, to be NumPy's."""


def _position_of_written(function: Function) -> int:
    """How many positional arguments a function has before the first that lets it write to its arguments."""
    if function is np.nan_to_num:
        return 1  # `copy`
    return {np.concatenate: 2}.get(function, _position_of(_WRITTEN, function))


def _position_of(wanted: tuple[str, ...], function: Function) -> int:
    """How many positional arguments a function has before the first with one of these names; many if it has none."""
    try:
        names = list(inspect.signature(function).parameters)
    except ValueError:  # some are not Python's, in some versions
        names = []
    return min([names.index(name) for name in wanted if name in names], default=1 << 30)


def _is_of_others(function: Function, values: list[Any], kwargs: Keywords) -> bool:
    """Whether the dtype that a call asks for is none of `KINDS`: NumPy would tell the events of a result in vain."""
    position = _DTYPE_AT[function]
    dtype = values[position] if position < len(values) else kwargs.get("dtype")
    return dtype is not None and np.dtype(dtype).char not in KINDS


def by_numpy(function: Function, args: tuple, kwargs: Keywords, call: Function | None = None) -> object:
    """What NumPy's function makes of elements that are at hand; None where they are not, or it is much.

    `call` is what is called in place of the function: a method that does the same.
    """
    given: Given = []
    if len(args) > _BEFORE_WRITTEN[function]:
        return None
    out = kwargs.get("out")
    if out is not None:
        kwargs = {name: x for name, x in kwargs.items() if name != "out"}
    try:
        values = [x if type(x) in PASSED else real_of(x, given) for x in args]
        if kwargs:
            if kwargs.get("overwrite_input") is not None or function is np.nan_to_num:
                return None
            kwargs = {name: real_of(x, given) for name, x in kwargs.items()}
    except NotAtHand:
        return None
    if function is np.outer and np.size(values[0]) * np.size(values[1]) * _MOST_GROWN >= windows.limit:
        return None
    if _is_of_others(function, values, kwargs):
        return None
    if function in _SHORT and ("where" in kwargs or not all(_is_short(real) for _, real in given)):
        return None
    if function not in _SILENT and any(_descends(real) for _, real in given):
        return None
    if out is not None:
        target = _output(out, given)
        if target is None:
            return None
        kwargs["out"] = target
    name = EVENTS.get(function) if "dtype" not in kwargs else None  # casts are told as such
    call = function if call is None else call
    if name is not None:
        made = watch.watched(call, name, *values, **kwargs)
    elif function in _SILENT:
        made = call(*values, **kwargs)
    else:
        with outcome.Retold():
            made = call(*values, **kwargs)
    if out is not None:
        return out
    if isinstance(made, np.generic):
        return made
    found = _as_result(made, given)
    if (
        function in _FLATTENING
        and type(found) is AtHand
        and made.dtype.kind == "c"
        and found._window is FREE
        and given[0][1].ndim > 1
    ):
        return None  # whose parts would lie in rows
    return found


def _output(out: object, given: Given) -> np.ndarray | None:
    """The elements of an output of the operands' dtype that is none of them, or one as a whole; None for others."""
    target = writeable(out[0] if type(out) is tuple and len(out) == 1 else out)
    if target is None or not target.flags.c_contiguous or target.dtype.char not in KINDS:
        return None
    for x, real in given:
        if real.dtype.kind in "fc" and real.dtype is not target.dtype:
            return None
        if x is not out and np.may_share_memory(real, target):
            return None
    return target


def _is_short(real: np.ndarray) -> bool:
    """Whether the summation tree of elements is one chunk, as NumPy's is."""
    return real.ndim == 1 and len(real) <= CHUNK and real.strides[0] > 0


def _descends(real: np.ndarray) -> bool:
    """Whether NumPy takes another way for products of complex elements (`distarray.at_hand`)."""
    return real.dtype.kind == "c" and min(real.strides, default=0) < 0


def _as_result(made: Any, given: Given) -> object:
    """NumPy's result with arrays at hand in place of ndarrays; None where there is none for one of them."""
    kind = type(made)
    if kind is not _ndarray:
        if kind is not tuple and kind is not list and not hasattr(kind, "_make"):
            return made
        items = [_as_result(item, given) for item in made]
        return None if any(item is None for item in items) else rebuild(kind, items)
    if made.nbytes >= windows.limit or made.dtype.char not in KINDS or not made.flags.writeable:
        return None
    base = made.base
    for x, real in given:
        if made is real:
            return x
        if base is not None and (base is real or base is real.base):
            if type(x) is not AtHand:
                return None
            window = x._window
            if window is FREE:
                window = windows.family(x)
            return None if window is None else view_at_hand(x, made, window)
    return new_memory(made)


def sorting(args: tuple, kwargs: Keywords) -> object:
    """`argsort`, which takes what is equal in its order, as the engine does."""
    if len(args) == 1 and not kwargs and type(args[0]) is AtHand and args[0]._real.ndim == 1:
        kwargs = {"kind": "stable"}
    return by_numpy(np.argsort, args, kwargs)


def _computed_by(function: Function) -> Function:
    """How a function is called: ``(args, kwargs)``; it gives None where the engine has to."""
    if function is np.dot:
        return product
    if function is np.einsum:
        return einsum
    if function in _VECTORS:
        return functools.partial(vector_product, function)
    if function in _PARTS:
        return functools.partial(_part, _PARTS[function])
    if function is np.argsort:
        return sorting
    if function in FOLDS:
        return functools.partial(reduction, function)
    return functools.partial(by_numpy, function)


def _part(name: str, args: tuple, kwargs: Keywords) -> object:
    """`numpy.real` and `numpy.imag` of an array at hand, which are attributes; None for others."""
    return getattr(args[0], name) if len(args) == 1 and type(args[0]) is AtHand and not kwargs else None


@method_at_hand
def __array_function__(self: AtHand, func: Function, types: Iterable[type], args: tuple, kwargs: Keywords) -> object:
    route = ROUTES.get(func)
    if route is None and not registry.loaded:
        registry.load()
        route = ROUTES.get(func)
    if route is not None:
        made = route(args, kwargs)
        if made is not None:
            return made
    elif func in WRITERS and WRITERS[func](args, kwargs):
        return None
    if func in COMPOSED and "out" not in kwargs:
        return DistArray.__array_function__(self, func, types, args, kwargs)
    return DistArray.__array_function__(hand_over(self), func, types, args, kwargs)


# -- who computes what -------------------------------------------------------------------------------------------------

_AT_ONCE: tuple[Function, ...] = (np.dot, np.einsum, *_VECTORS, *_PARTS, *FOLDS, *VIEWS, *TOLD, *NEW, *SHORT)
_HOUSE: dict[Key, Function] = {function: _computed_by(function) for function in _AT_ONCE}
_BEFORE_WRITTEN = {function: _position_of_written(function) for function in _HOUSE}
_DTYPE_AT = {function: _position_of(("dtype",), function) for function in _HOUSE}


_FINDING = frozenset(("composed", "structural"))
"""Kinds of rules whose functions are made of others, and of views."""


def _find_routes() -> None:
    """Sort the functions by who computes them, once all rules of the house are known."""
    for function in list(_rules):
        _route_function(function)


def _route_function(key: Key) -> None:
    """Let a function be computed at once, unless somebody else has rules for it."""
    record = _rules.get(key)
    ours = record is not None and record.rules[0].house
    if ours and key in _HOUSE:
        ROUTES[key] = _HOUSE[key]
    else:
        ROUTES.pop(key, None)
    if ours and key in WRITING:
        WRITERS[key] = WRITING[key]
    else:
        WRITERS.pop(key, None)
    if ours and record is not None and record.kind in _FINDING and not isinstance(key, tuple):
        COMPOSED.add(key)
    else:
        COMPOSED.discard(key)


registry.LOADED.append(_find_routes)
if registry.loaded:
    _find_routes()
registry.CHANGED.append(_route_function)
