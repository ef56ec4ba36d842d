"""What the methods of Generator and RandomState have in common: arguments, errors, `out=`, and what is not split."""

from __future__ import annotations

import inspect
import operator
from math import prod
from typing import Any

import numpy as np

from numpy_dist import engine
from numpy_dist.argument_types import Arguments, Function, Keywords
from numpy_dist.dispatch.core import operands, policy
from numpy_dist.ir import structure
from numpy_dist.random import share
from numpy_dist.random.draws import Draw, Front

#: Methods whose samples follow each other one by one, so that a call may be made in pieces; scalar parameters provided.
SEQUENTIAL = frozenset(
    "beta binomial chisquare exponential f gamma geometric gumbel hypergeometric laplace logistic lognormal logseries "
    "negative_binomial noncentral_chisquare noncentral_f normal pareto poisson power rayleigh standard_cauchy "
    "standard_exponential standard_gamma standard_t tomaxint triangular uniform vonmises wald weibull zipf".split()
)


# Nobody sees the numbers of these.
_SCRATCH: dict[type, Front] = {
    np.random.Generator: np.random.Generator(np.random.PCG64(0)),
    np.random.RandomState: np.random.RandomState(0),
}


def check(front: Front, name: str, *args: object, **kwargs: object) -> Any:
    """Let NumPy check the arguments: make one sample with another generator. Raises NumPy's own errors."""
    return getattr(_SCRATCH[type(front)], name)(*args, **kwargs)


def shape_of(size: Any) -> tuple[int, ...] | None:
    """The shape that `size` means; None where it means a scalar, or nothing (NumPy will say so)."""
    try:
        shape = (operator.index(size),) if hasattr(size, "__index__") else tuple(map(operator.index, size))
    except TypeError:
        return None
    # NumPy has the words for what is negative, or too large to be counted in bytes.
    return shape if min(shape, default=0) >= 0 and prod(shape) < 1 << 59 and len(shape) <= 64 else None


def scalar(value: object) -> Any:
    """A parameter that is a number; of our arrays, those without axes. Collective for these."""
    return engine.item(value) if engine.is_handle(value) and value._array.ndim == 0 else value


def is_scalar(*values: Any) -> bool:
    """Whether all parameters are numbers."""
    return all(not engine.is_handle(value) and np.ndim(value) == 0 for value in values)


def made_into(draw: Draw, front: Front, size: Any, out: engine.Handle) -> engine.Handle:
    """Fill `out`, an array of ours, with samples in its memory order, and return it. NumPy's rules for `out` hold."""
    array = out._array
    # `flags.farray` is true of arrays that are not contiguous at all (NumPy 2.4).
    flags, in_order = array.flags, array.flags.c_contiguous
    fits = flags.aligned and engine.may_write(array) and (in_order or flags.f_contiguous)
    assert draw.into is not None
    # NumPy looks at these things in this order. It is shown small arrays that fail in the same way.
    if not fits:
        draw.into(_SCRATCH[type(front)], np.empty(4, array.dtype)[::2])
    if array.dtype != draw.dtype:
        draw.into(_SCRATCH[type(front)], np.empty(1, array.dtype))
    if size is not None:
        try:
            wanted = tuple(size)
        except TypeError:
            wanted = (size,)
        if wanted != array.shape:
            raise ValueError("size must match out.shape when used together")
    target = out if in_order else out._view(np.ndarray.transpose)
    engine.assign(target, share.make(draw, front, target._array.shape))
    return out


def everywhere(front: Front, name: str, args: Arguments, kwargs: Keywords) -> object:
    """Call a method of NumPy's generator on every rank, with the same numbers everywhere; each rank keeps its part.

    Collective if an argument is a sharded array, which is gathered (by the rules of ``FALLBACK`` and
    ``MEMORY_BUDGET``).
    """
    target = kwargs.get("x" if name == "shuffle" else "out")
    handles = operands.find_handles(args, kwargs)
    # What `out` was does not matter.
    unread: object = target if "out" in kwargs and sum(value is target for value in kwargs.values()) == 1 else None
    sharded = [x for x in handles if engine.is_sharded(x) and x is not unread]
    if sharded:
        policy.permit(
            f"numpy_dist.random.{type(front).__name__}.{name}",
            "NumPy's sequence depends on all elements of its arguments, in order",
            sum(x._array.nbytes for x in sharded),
            action="draw on every rank",
        )
    inside = {id(x): structure.like(x._array) if x is unread else engine.gather(x) for x in handles}
    result = getattr(front, name)(*operands.substitute(args, inside), **operands.substitute(kwargs, inside))
    if engine.is_handle(target):
        engine.assign(target, inside[id(target)])
        return target if result is inside[id(target)] else result
    return share.array_of(front, result) if isinstance(result, np.ndarray) and result is not target else result


def _in_turn(front: Front, name: str, size: object, kwargs: Keywords) -> object:
    """As `everywhere`, where only `size` says how many samples there are: a rank has its part and few more."""
    shape = shape_of(size)
    # No sample is larger than a double.
    if shape is None or share.is_small(shape, np.float64) or not is_scalar(*kwargs.values()):
        return everywhere(front, name, (), {**kwargs, "size": size})
    dtype = check(front, name, **kwargs, size=1).dtype
    draw = Draw(dtype, type(front), lambda plain, n: getattr(plain, name)(**kwargs, size=n), unit="wide")
    return share.make(draw, front, shape, split_it=False)


def delegating(kind: type, name: str) -> Function:
    """A method that hands a call to the NumPy generator that an object wraps.

    Parameters
    ----------
    kind : type
        ``numpy.random.Generator`` or ``numpy.random.RandomState``.
    name : str
    """
    original = getattr(kind, name)
    signature = inspect.signature(original)

    def method(self: Front, *args: object, **kwargs: object) -> object:
        try:
            given = signature.bind(self, *args, **kwargs).arguments
        except TypeError:
            return getattr(self._plain, name)(*args, **kwargs)
        del given["self"]
        size = given.get("size")
        if size is None or name not in SEQUENTIAL or given.get("out") is not None:
            return everywhere(self._plain, name, (), given)
        del given["size"]
        return _in_turn(self._plain, name, size, given)

    method.__name__ = name
    method.__qualname__ = f"{kind.__name__}.{name}"
    method.__doc__ = (
        f"NumPy's `{name}`: its own numbers, drawn by every rank, which keeps its part (in the time of one rank).\n\n"
        f"See `numpy.random.{kind.__name__}.{name}`. Collective where an argument is a sharded array.\n"
    )
    method.__signature__ = signature  # type: ignore[attr-defined]
    return method
