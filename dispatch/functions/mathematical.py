"""Mathematical functions that are made of ufuncs and slices."""

from __future__ import annotations

import functools
import operator
from typing import Any

import numpy as np
from numpy._core import umath
from numpy.lib.array_utils import normalize_axis_index

from numpy_dist import engine
from numpy_dist.dispatch.core.operands import as_operand
from numpy_dist.dispatch.core.registry import implements
from numpy_dist.dispatch.patterns.arguments import NoValue, as_handle, blocks
from numpy_dist.dispatch.patterns.numpy_source import adopt, numpy_source
from numpy_dist.dispatch.patterns.stacks import on_stacks
from numpy_dist.ir.rules import memory_axes

# The ufunc has no public name.
_clip: Any = vars(umath)["clip"]

adopt(
    __name__,
    np.angle,
    np.diff,
    np.fix,
    np.gradient,
    np.apply_over_axes,
    np.emath.arccos,
    np.emath.arcsin,
    np.emath.arctanh,
    np.emath.log,
    np.emath.log10,
    np.emath.log2,
    np.emath.logn,
    np.emath.power,
    np.emath.sqrt,
    np.polyadd,
    np.polyder,
    np.polyint,
    np.polysub,
    np.polyval,
    np.select,
    np.nan_to_num,
    np.sinc,
    np.trapezoid,
)

adopt(__name__, np.real_if_close, kind="structural")


_cross = numpy_source(np.cross)


@implements(np.cross, kind="composed")
def cross(a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None) -> Any:
    a, b = as_handle(a), as_handle(b)
    if a.ndim == b.ndim == 1 and all(k in (-1, 0, None) for k in (axisa, axisb, axis)):
        # As a row: NumPy's source asks for 0-d arrays in a way (`out=...`) that those who override it are not told.
        return _cross(a[None], b[None])[0]
    return _cross(a, b, axisa, axisb, axisc, axis)


@implements(np.clip, kind="native")
def clip(
    a: Any,
    a_min: Any = NoValue,
    a_max: Any = NoValue,
    out: Any = None,
    *,
    min: Any = NoValue,
    max: Any = NoValue,
    **kwargs: Any,
) -> Any:
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


def _bounds(a_min: Any, a_max: Any, low: Any, high: Any) -> tuple[Any, Any]:
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
def round(a: Any, decimals: Any = 0, out: Any = None) -> Any:
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
    factor = 10.0 ** abs(decimals)
    if out is None and a.dtype.kind in "iu":
        work = unscale(np.rint(scale(a, factor)), factor)
        return np.astype(work, a.dtype)
    if out is None:
        out = engine.empty(a.shape, a.dtype, "F" if a.flags.fnc else "C", layout=engine.layout_of(a))
    scale(a, factor, out=out)
    np.rint(out, out=out)
    return unscale(out, factor, out=out)


def _round_complex(a: Any, decimals: int, out: Any) -> Any:
    result = engine.copy(a) if out is None else out
    for part in (np.real, np.imag):
        round(part(a), decimals, out=part(result))
    return result


@implements(np.piecewise, kind="composed")
def piecewise(x: Any, condlist: Any, funclist: Any, *args: Any, **kw: Any) -> Any:
    """The functions are called on every rank, with distributed arrays of the elements that are theirs."""
    x = as_handle(x)
    is_list = not np.isscalar(condlist) and (
        engine.is_handle(condlist[0]) or isinstance(condlist[0], list | np.ndarray) or x.ndim == 0
    )
    conditions = [np.astype(as_handle(as_operand(each)), bool) for each in (condlist if is_list else [condlist])]
    if len(conditions) == len(funclist) - 1:
        conditions.append(np.logical_not(functools.reduce(np.logical_or, conditions)))
    elif len(conditions) != len(funclist):
        np.piecewise(np.zeros(1), [np.ones(1, bool)] * len(conditions), funclist)  # NumPy's error
    result = np.zeros_like(x)
    for condition, function in zip(conditions, funclist, strict=True):
        if not callable(function):
            result[condition] = function
            continue
        values = x[condition]
        if values.size > 0:
            result[condition] = function(values, *args, **kw)
    return result


@implements(np.apply_along_axis, kind="axis-local")
def apply_along_axis(func1d: Any, axis: Any, arr: Any, *args: Any, **kwargs: Any) -> Any:
    """The function is called on each rank for the lines that it holds, with ndarrays."""
    arr = as_handle(arr)
    axis = normalize_axis_index(axis, arr.ndim)
    lines = np.moveaxis(arr, axis, -1)
    if 0 in lines.shape[:-1]:
        np.apply_along_axis(func1d, axis, np.empty(arr.shape))  # NumPy's error

    first: list[np.dtype] = []

    def local(block: np.ndarray) -> np.ndarray:
        made = [np.asarray(func1d(block[index], *args, **kwargs)) for index in np.ndindex(block.shape[:-1])]
        found = np.empty((len(made), *made[0].shape), np.result_type(*made))
        for index, each in enumerate(made):
            found[index] = each
        first.append(made[0].dtype)
        return found.reshape(block.shape[:-1] + made[0].shape)

    found = on_stacks(local, [lines], 1, name="apply_along_axis", order="C", first=first)
    depth = found.ndim - lines.ndim + 1
    places = list(range(lines.ndim - 1, found.ndim))
    return np.moveaxis(found, places, list(range(axis, axis + depth)))


@implements(np.ediff1d, kind="composed")
def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    ary = np.ravel(as_handle(ary))
    pieces = []
    for name, ends in (("to_begin", to_begin), ("to_end", to_end)):
        if ends is None:
            continue
        ends = np.ravel(as_handle(ends))
        if not np.can_cast(ends.dtype, ary.dtype, casting="same_kind"):
            raise TypeError(f"dtype of `{name}` must be compatible with input `ary` under the `same_kind` rule.")
        pieces.append((name, ends))
    if not pieces:
        return np.subtract(ary[1:], ary[:-1])
    inner = np.subtract(ary[1:], ary[:-1], np.empty_like(ary[1:]))  # as NumPy, whose output has this dtype
    parts = [e for n, e in pieces if n == "to_begin"] + [inner] + [e for n, e in pieces if n == "to_end"]
    return np.concatenate(parts, dtype=ary.dtype)


@implements(np.i0, kind="native")
def i0(x: Any) -> Any:
    """NumPy's function on each shard (executes what it needs; nothing is communicated)."""
    x = as_handle(x)
    np.i0(np.zeros(0, x.dtype))  # NumPy's errors
    if x.dtype.kind != "f":
        x = np.astype(x, float)  # texts that are no numbers are every rank's error
    if x.ndim == 0:
        return engine.replicated(np.asarray(np.i0(engine.item(x))))
    order = memory_axes([x._array], tuple(x.shape)) or tuple(range(x.ndim))
    x = x.transpose(order)
    layout = engine.layout_of(x)
    if layout is None:
        layout = engine.default_layout(tuple(x.shape))
        x = engine.aligned(x, layout)
    (block,) = blocks((x, layout))
    return engine.from_local(np.i0(np.ascontiguousarray(block)), layout).transpose(np.argsort(order).tolist())
