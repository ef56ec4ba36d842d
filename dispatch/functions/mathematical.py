"""Mathematical functions of elements and sequences: rounding, complex numbers, clipping, interpolation, convolution."""

from __future__ import annotations

import math
import operator
import sys
from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np
from numpy._core import umath

from numpy_dist import engine
from numpy_dist.dispatch.core.registry import Outlook, implements
from numpy_dist.dispatch.patterns.arguments import NoValue, as_handle, astype
from numpy_dist.dispatch.patterns.blocks import blocks, exact_layout, map_elements, row_layout
from numpy_dist.dispatch.patterns.convolution import checked_sequences, sliding_sums
from numpy_dist.dispatch.patterns.numpy_source import adopt
from numpy_dist.dispatch.patterns.replicate import known, most_known, outlook_of_known
from numpy_dist.dispatch.patterns.search import FEW
from numpy_dist.dispatch.patterns.structural import view_or_self
from numpy_dist.ir import structure
from numpy_dist.ir.rules import memory_axes
from numpy_dist.parallel.request_reply import ask

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from numpy_dist.distarray import DistArray

# The ufunc has no public name.
_clip: np.ufunc = vars(umath)["clip"]

adopt(
    __name__,
    np.angle,
    np.fix,
    np.emath.arccos,
    np.emath.arcsin,
    np.emath.arctanh,
    np.emath.log,
    np.emath.log10,
    np.emath.log2,
    np.emath.logn,
    np.emath.power,
    np.emath.sqrt,
    np.nan_to_num,
    np.sinc,
    np.unwrap,
)

adopt(__name__, np.real_if_close, kind="structural")


@implements(np.clip, kind="native")
def clip(
    a: Any,
    a_min: object = NoValue,
    a_max: object = NoValue,
    out: Any = None,
    *,
    min: object = NoValue,
    max: object = NoValue,
    **kwargs: Any,
) -> object:
    low, high = _bounds(a_min, a_max, min, max)
    a = as_handle(a)
    if a.dtype.kind in "iu":
        # Bounds that the dtype cannot exceed are none (NEP 50 would refuse them).
        limits = np.iinfo(a.dtype)
        low = None if type(low) is int and low <= limits.min else low
        high = None if type(high) is int and high >= limits.max else high
    if low is None and high is None:
        return np.positive(a, out=out, **kwargs)
    if low is None:
        return np.minimum(a, high, out=out, **kwargs)
    if high is None:
        return np.maximum(a, low, out=out, **kwargs)
    return _clip(a, low, high, out=out, **kwargs)


def _bounds(a_min: object, a_max: object, low: object, high: object) -> tuple[Any, Any]:
    """The two spellings of the bounds, told apart and checked as NumPy does."""
    if a_min is NoValue and a_max is NoValue:
        return None if low is NoValue else low, None if high is NoValue else high
    if a_min is NoValue:
        raise TypeError("clip() missing 1 required positional argument: 'a_min'")
    if a_max is NoValue:
        raise TypeError("clip() missing 1 required positional argument: 'a_max'")
    if low is not NoValue or high is not NoValue:
        raise ValueError("Passing `min` or `max` keyword argument when `a_min` and `a_max` are provided is forbidden.")
    return a_min, a_max


_integers = np.zeros(1, int)
# Before NumPy 2.4 an array of integers is returned itself.
_RETURNS_INTEGERS = np.round(_integers) is _integers


@implements(np.round, np.around, kind="composed")
def round(a: Any, decimals: SupportsIndex = 0, out: Any = None) -> object:
    a = as_handle(a)
    decimals = operator.index(decimals)
    if a.ndim == 0 and out is None:
        return np.round(engine.item(a), decimals)
    if a.dtype.kind == "c":
        return _round_complex(a, decimals, out)
    if decimals >= 0 and a.dtype.kind in "iu":
        if out is None:
            return a if _RETURNS_INTEGERS else engine.copy(a)
        np.copyto(out, a, casting="unsafe")
        return out
    if decimals == 0:
        return np.rint(a, out=out)
    # As NumPy's C code: scale, round to integers, scale back; integers in double precision.
    scale, unscale = (np.multiply, np.true_divide) if decimals > 0 else (np.true_divide, np.multiply)
    factor = 10.0 ** abs(decimals) if abs(decimals) <= sys.float_info.max_10_exp else math.inf
    if out is None and a.dtype.kind in "iu":
        work = unscale(np.rint(scale(a, factor)), factor)
        return astype(work, a.dtype)
    if out is None:
        out = engine.empty(a.shape, a.dtype, "F" if a.flags.fnc else "C", layout=engine.layout_of(a))
    scale(a, factor, out=out)
    np.rint(out, out=out)
    return unscale(out, factor, out=out)


def _round_complex(a: DistArray, decimals: int, out: DistArray | np.ndarray | None) -> DistArray | np.ndarray:
    if out is None:
        result = engine.copy(a)
        for part in (np.real, np.imag):
            round(part(result), decimals, out=part(result))
        return result
    if out.size != a.size:
        raise ValueError("invalid output shape")
    out.real = round(np.real(a), decimals)  # assigned, as in NumPy's C code: without axes of one, and to any precision
    out.imag = round(np.imag(a), decimals)
    return out


@implements(np.i0, kind="native")
def i0(x: Any) -> DistArray:
    """NumPy's function on each shard; collective where events are to be told at once."""
    x = as_handle(x)
    np.i0(np.zeros(0, x.dtype))  # NumPy's errors
    if x.dtype.kind != "f":
        x = astype(x, float)  # texts that are no numbers are every rank's error
    if x.ndim == 0:
        return engine.replicated(np.asarray(np.i0(engine.item(x))))
    order = memory_axes([x._array], tuple(x.shape)) or tuple(range(x.ndim))
    x = x.transpose(order)
    layout = engine.layout_of(x)
    if layout is None:
        layout = engine.default_layout(tuple(x.shape))
        x = engine.aligned(x, layout)
    (block,) = blocks((x, layout))
    with engine.events_reported("divide", names={"overflow": "exp"}):
        made = np.i0(np.ascontiguousarray(block))
    return engine.from_local(made, layout).transpose(np.argsort(order).tolist())


@implements(np.convolve, kind="parallel")
def convolve(a: Any, v: Any, mode: object = "full") -> DistArray:
    """Collective: each rank gets as many neighbouring elements as the shorter one has. No Fourier transforms."""
    a, v = checked_sequences(np.convolve, a, v, mode)
    return sliding_sums(*((a, v) if a.size >= v.size else (v, a)), np.convolve, mode)


def _outlook_of_points(
    x: object, xp: object, fp: object, left: object = None, right: object = None, period: object = None
) -> Outlook:
    return outlook_of_known(xp, fp)


def _few_sought(x: object, *rest: object, **options: object) -> bool:
    return np.size(x) < FEW  # type: ignore[arg-type]


@implements(np.interp, kind="parallel", outlook=_outlook_of_points, alone=_few_sought)
def interp(
    x: Any,
    xp: ArrayLike,
    fp: ArrayLike,
    left: complex | None = None,
    right: complex | None = None,
    period: float | None = None,
) -> object:
    """Collective where the points are sharded: all ranks get them, or what is sought goes to them if they are many."""
    if any(engine.is_sharded(each) and each.nbytes > most_known() for each in (xp, fp)):
        return _interp_routed(as_handle(x), as_handle(xp), as_handle(fp), left, right, period)
    points, values = (known(each, np.interp, "points of the function", chosen=True) for each in (xp, fp))
    x = x if engine.is_handle(x) else np.asanyarray(x)
    np.interp(np.zeros(0, x.dtype), points, values, left, right, period)  # NumPy's errors and warnings
    x, points = (each.real if each.dtype.kind == "c" else each for each in (x, points))
    if not engine.is_handle(x):
        return engine.wrap(np.interp(x, points, values, left, right, period))
    return map_elements(lambda block: np.interp(block, points, values, left, right, period), x)


def _interp_routed(
    x: DistArray, xp: Any, fp: Any, left: complex | None, right: complex | None, period: float | None
) -> DistArray:
    """Each element goes to the rank that has the points on both sides of it, where NumPy interpolates."""
    if xp.ndim != 1 or xp.shape != fp.shape or not xp.size:
        engine.numpy_error(np.interp, (x, xp, fp, left, right, period))
    kind = np.interp(np.zeros(0), np.zeros(1), np.zeros(1, fp.dtype), left, right, period).dtype  # NumPy's errors
    x, xp, fp = astype(x, float), astype(xp, float), astype(fp, kind)
    if period is not None:  # as NumPy's source
        period, left, right = abs(period), None, None
        x, xp = x % period, xp % period
        order = np.argsort(xp)
        xp, fp = xp[order], fp[order]
        xp = np.concatenate((xp[-1:] - period, xp, xp[:1] + period))
        fp = np.concatenate((fp[-1:], fp, fp[:1]))
    layout = row_layout(xp)
    points, values = blocks((engine.aligned(xp, layout), layout), (engine.aligned(fp, layout), layout))
    comm = engine.runtime().comm
    firsts = comm.allgather((points[0], values[0]) if points.size else None)
    following = [pair for pair in firsts[comm.rank + 1 :] if pair is not None][:1]
    points = np.concatenate([points, [first for first, _ in following]])
    values = np.concatenate([values, [first for _, first in following]]).astype(kind, copy=False)
    holders = np.array([rank for rank, pair in enumerate(firsts) if pair is not None])
    starts = np.array([pair[0] for pair in firsts if pair is not None])

    def answer(sought: np.ndarray) -> np.ndarray:
        return np.interp(sought, points, values, left, right) if sought.size else np.empty(0, kind)

    its = exact_layout(x)
    (block,) = blocks((engine.aligned(x, its), its))
    owners = holders[np.maximum(np.searchsorted(starts, block.reshape(-1), "right") - 1, 0)]
    return engine.from_local(ask(block.reshape(-1), owners, answer, kind, comm).reshape(block.shape), its)


@implements(np.real, kind="structural")
def real(val: DistArray) -> DistArray:
    return view_or_self(val, structure.attribute, "real")


@implements(np.imag, kind="structural")
def imag(val: DistArray) -> DistArray:
    return val.imag
