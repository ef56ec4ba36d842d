"""Products of vectors and matrices at hand, as the engine computes them."""

from __future__ import annotations

import functools
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from numpy_dist.argument_types import Function, Keywords
from numpy_dist.distarray.array import DistArray
from numpy_dist.distarray.at_hand.array import AtHand, method_at_hand
from numpy_dist.distarray.at_hand.elements import elements, writeable
from numpy_dist.distarray.at_hand.routes import is_ours
from numpy_dist.engine.data import watch, windows
from numpy_dist.engine.data.watch import capsule as _capsule
from numpy_dist.engine.data.windows import hand_over, near
from numpy_dist.engine.runtime import runtime

if TYPE_CHECKING:
    from numpy_dist.distarray.methods import Out

_ndarray = np.ndarray
_ONE = (1,)  # the shape of one element
_DOT_TELLS = not np.__version__.startswith("2.1.")  # of floating-point events


def product(args: tuple, kwargs: Keywords, name: str = "dot") -> object:
    """`numpy.dot` or `numpy.matmul` of arrays at hand; None for others."""
    if len(args) != 2:
        return None
    if not kwargs:
        return product_of(name, args[0], args[1])
    if kwargs.keys() != {"out"}:
        return None
    if kwargs["out"] is None:
        return product_of(name, *args)
    out: Any = kwargs["out"][0] if type(kwargs["out"]) is tuple else kwargs["out"]
    target, a, b = writeable(out), *(elements(x, type(x)) for x in args)
    if target is None or a is None or b is None or not (a.ndim and b.ndim) or a.dtype is not target.dtype:
        return None
    if not target.ndim or target.shape != a.shape[:-1] + b.shape[1:]:
        return None
    if name == "dot" and not target.flags.c_contiguous:
        return None
    made = product_of(name, *args)
    if type(made) is not AtHand:
        return None
    target[...] = made._real
    return out


def _named(name: str) -> Function:
    """`numpy.matmul`, whose errors are those of another function."""

    def product(a: np.ndarray, b: np.ndarray) -> object:
        try:
            return np.matmul(a, b)
        except FloatingPointError as error:
            raise FloatingPointError(str(error).replace("matmul", name)) from None

    return product


_NAMED: dict[str, Function] = {"matmul": np.matmul, **{name: _named(name) for name in ("dot", "matvec", "vecdot")}}


def _are_stacks(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether a product is of as many matrices as there are on the left, each of which lies in one piece."""
    inner = b.shape[-2] if b.ndim > 1 else -1
    stacked = b.ndim == 2 or (b.ndim == a.ndim and a.shape[:-2] == b.shape[:-2])
    in_pieces = all(x.strides[-2:] == (x.shape[-1] * x.itemsize, x.itemsize) for x in (a, b))
    return stacked and a.shape[-1] == inner and in_pieces


def _vector_product(name: str, a: np.ndarray, b: np.ndarray) -> object:
    """The product of two vectors of 2 elements and more: the method has the bits of `matmul`, in half of its time."""
    state = _capsule()
    known = watch.latest
    if known[0] is not state:
        known = watch.look(state)
    if not known[3] and name != "dot":
        return watch.applied(_NAMED[name], name, (a, b))
    try:
        made = known[2](_ndarray.dot, a, b)
    except BaseException as error:
        if not watch.is_busy(error) and type(error) is not FloatingPointError:
            raise
        return watch.applied(_NAMED[name], name, (a, b))  # whose error says this name
    if watch.met:
        watch.tell(name)
    return made


def _large(x: Any) -> np.ndarray | None:
    """The elements of a large matrix of one process, the other operand of which is small; None for others."""
    if type(x) is not DistArray or x._array.ndim != 2 or runtime().size > 1:
        return None
    return x._real if windows.open_window(x) is not None else None


def multiplied(left: object, right: object) -> object:
    """``left @ right`` of a large matrix and a small operand; None where the engine has to compute it."""
    return product_of("matmul", left, right) if is_ours(np.matmul) else None


def product_of(name: str, left: object, right: object) -> object:
    """``left @ right`` for vectors and matrices at hand, as the engine computes it; None for others."""
    a: np.ndarray | None
    b: np.ndarray | None
    if type(left) is AtHand is type(right) and left._window.readable and right._window.readable:
        a, b = left._real, right._real
        if a.ndim == 1 == b.ndim and len(a) == len(b) > 1 and a.dtype is b.dtype:
            if a.strides[0] > 0 < b.strides[0] and _DOT_TELLS:
                return _vector_product(name, a, b)
    else:
        a, b = elements(left, type(left)), elements(right, type(right))
        if a is None:
            a = None if b is None else _large(left)
        elif b is None:
            b = _large(right)
    if a is None or b is None or a.dtype is not b.dtype or not (a.ndim and b.ndim):
        return None
    if name == "dot" and a.shape == b.shape == _ONE and a.dtype.char in "fd" and _DOT_TELLS:
        return watch.applied(_ndarray.dot, name, (a, b))  # no zero is added to the product of two numbers
    if a.ndim > 2 or b.ndim > 2:
        if name != "matmul" or not _are_stacks(a, b):
            return None
        shape = a.shape[:-1] + b.shape[-1:]
    elif a.shape[-1] != b.shape[0] or (name == "dot" and (not _DOT_TELLS or a.size == b.size == 1)):
        return None
    else:
        shape = a.shape[:-1] + b.shape[1:]
    if prod(shape) * a.itemsize >= windows.limit:
        return None
    made = watch.applied(_NAMED[name], name, (a, b))
    return near(made) if type(made) is _ndarray else made


def vector_product(function: Function, args: tuple, kwargs: Keywords) -> object:
    """`numpy.inner`, `vdot` and `vecdot` of two vectors at hand, as the engine computes them; None for others."""
    if kwargs or len(args) != 2:
        return None
    a, b = (elements(x, type(x)) for x in args)
    if a is None or b is None or a.dtype is not b.dtype or not a.ndim == b.ndim == 1:
        return None
    if a.shape != b.shape or not a.size:
        return None
    if function is np.inner:
        return product_of("dot", *args)
    if a.dtype.kind == "c":
        a = np.conjugate(a)
    if function is np.vdot:
        with np.errstate(all="ignore"):  # as NumPy, which does not look at what it meets
            return np.matmul(np.ascontiguousarray(a), np.ascontiguousarray(b))
    return watch.applied(_NAMED["vecdot"], "vecdot", (a, b))


def matrix_product(args: tuple, kwargs: Keywords) -> object:
    """`numpy.matvec` of a matrix and a vector; None for others."""
    if kwargs or len(args) != 2:
        return None
    a, b = (elements(x, type(x)) for x in args)
    return product_of("matvec", *args) if a is not None and b is not None and a.ndim == 2 and b.ndim == 1 else None


PRODUCTS: dict[np.ufunc, Function] = {
    np.matmul: functools.partial(product, name="matmul"),
    np.vecdot: functools.partial(vector_product, np.vecdot),
}
"""How ufuncs of vectors and matrices are computed at once."""
if hasattr(np, "matvec"):  # since NumPy 2.2
    PRODUCTS[np.matvec] = matrix_product


@method_at_hand
def __matmul__(self: AtHand, other: Any) -> Any:
    made = product_of("matmul", self, other)
    return DistArray.__matmul__(hand_over(self), other) if made is None else made


@method_at_hand
def __rmatmul__(self: AtHand, other: Any) -> Any:
    made = product_of("matmul", other, self)
    return DistArray.__rmatmul__(hand_over(self), other) if made is None else made


@method_at_hand
def dot(self: AtHand, b: ArrayLike, out: Out = None) -> Any:
    """Product with another array (as `numpy.dot`)."""
    made = product_of("dot", self, b) if out is None and is_ours(np.dot) else None
    return DistArray.dot(hand_over(self), b, out) if made is None else made


MATMUL_NAMES = ("__matmul__", "__rmatmul__")
