"""Logic functions: truth over axes, comparison, and types of values."""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING

import numpy as np

from numpy_dist import engine
from numpy_dist.argument_types import Axes
from numpy_dist.dispatch.core.registry import implements
from numpy_dist.dispatch.patterns.arguments import NoValue
from numpy_dist.dispatch.patterns.numpy_source import adopt
from numpy_dist.dispatch.patterns.reduce import reduce
from numpy_dist.ir.rules import broadcast_shapes

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from numpy_dist.distarray import DistArray

adopt(__name__, np.isclose, np.allclose, np.array_equal, np.isneginf, np.isposinf)


@implements(np.array_equiv, kind="composed")
def array_equiv(a1: ArrayLike, a2: ArrayLike) -> bool:
    a1, a2 = (x if engine.is_handle(x) else np.asarray(x) for x in (a1, a2))
    try:
        broadcast_shapes(a1.shape, a2.shape)
    except ValueError:
        return False
    return builtins.bool(np.all(a1 == a2))  # the operator also compares what has no loop: it is not equal


def _constant(x: DistArray, value: bool, order: str = "C") -> DistArray | np.bool_:
    return engine.full(x.shape, value, np.dtype(bool), order, engine.layout_of(x)) if x.ndim else np.bool_(value)


@implements(np.iscomplex, kind="composed")
def iscomplex(x: DistArray) -> object:
    return np.not_equal(np.imag(x), 0) if x.dtype.kind == "c" else _constant(x, False)


@implements(np.isreal, kind="composed")
def isreal(x: DistArray) -> object:
    if x.dtype.kind in "cO":
        return np.equal(np.imag(x), 0)
    # The imaginary part of a date or of a text is none that equals 0.
    return _constant(x, bool(np.isreal(np.zeros((), x.dtype))), "F" if x.flags.fnc else "C")


@implements(np.iscomplexobj, kind="native")
def iscomplexobj(x: DistArray) -> bool:
    return issubclass(x.dtype.type, np.complexfloating)


@implements(np.isrealobj, kind="native")
def isrealobj(x: DistArray) -> bool:
    return not issubclass(x.dtype.type, np.complexfloating)


@implements(np.any, kind="native")
def any(
    a: object, axis: Axes = None, out: object = None, keepdims: object = NoValue, *, where: object = NoValue
) -> object:
    return reduce(np.logical_or, a, axis, bool, out, keepdims, NoValue, where)


@implements(np.all, kind="native")
def all(
    a: object, axis: Axes = None, out: object = None, keepdims: object = NoValue, *, where: object = NoValue
) -> object:
    return reduce(np.logical_and, a, axis, bool, out, keepdims, NoValue, where)
