"""Array creation routines for numerical ranges and grids: each rank computes the values at its own indices."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, SupportsIndex, TypeVar

import numpy as np
from numpy._core._multiarray_umath import _array_converter  # type: ignore[import-not-found]
from numpy.typing import DTypeLike

from numpy_dist import engine
from numpy_dist.argument_types import Function
from numpy_dist.dispatch.core.registry import implements
from numpy_dist.dispatch.patterns.arguments import NoValue, as_handle
from numpy_dist.dispatch.patterns.creation import (
    OURS,
    as_shape,
    chosen_layout,
    elsewhere,
    from_parts,
    from_steps,
    is_replicated,
)
from numpy_dist.dispatch.patterns.numpy_source import numpy_source
from numpy_dist.dispatch.patterns.replicate import everywhere
from numpy_dist.ir.rules import broadcast_shapes
from numpy_dist.layout.layout import Cut, Layout
from numpy_dist.layout.regions import Box

if TYPE_CHECKING:
    from numpy._typing import _SupportsArrayFunc
    from numpy.typing import ArrayLike

    from numpy_dist.distarray.array import DistArray
    from numpy_dist.layout.mesh import Mesh

T = TypeVar("T")
_MOST_EXACT = 1 << 53  # integers up to which floats are exact
_NUMBERS = (int, float, complex, np.integer, np.floating, np.complexfloating)


# -- evenly spaced values --------------------------------------------------------------------------------------------


def _length(start: complex | np.number, stop: complex | np.number, step: complex | np.number) -> int | None:
    """The length of an arange, as NumPy computes it; None where NumPy would raise or warn."""
    span = stop - start
    try:
        count = span / step
    except (ZeroDivisionError, OverflowError):
        return None
    if isinstance(count, complex | np.complexfloating):
        count = min(count.real, count.imag)
    if not math.isfinite(count) or (count == 0 and span != 0):
        return None
    return max(math.ceil(count), 0)


def _evenly(first: np.ndarray) -> Callable[[Box], np.ndarray]:
    """The parts of an arange with these two first values: ``first + i * difference``, as in NumPy's C loops."""
    dtype = first.dtype
    kind = np.dtype(np.float32) if dtype == np.float16 else dtype
    real = np.zeros(0, kind).real.dtype
    with np.errstate(all="ignore"):
        start, step = first.astype(kind)[0], np.subtract(*first.astype(kind)[::-1])

    def part(box: Box) -> np.ndarray:
        ((low, high),) = box
        index = np.arange(low, high).astype(real)
        with np.errstate(all="ignore"):
            if dtype.kind == "c":
                values = np.empty(high - low, dtype)
                values.real = start.real + index * step.real
                values.imag = start.imag + index * step.imag
            else:
                values = (start + index * step).astype(dtype, copy=False)
        given = first[low : min(high, 2)]
        values[: len(given)] = given
        return values

    return part


@implements(np.arange, varies=(*OURS, "start_or_stop", "start", "stop", "step"), replicated=True)
def arange(
    start_or_stop: object = NoValue,
    /,
    stop: object = None,
    step: Any = None,
    *,
    start: Any = None,
    dtype: DTypeLike | None = None,
    device: Literal["cpu"] | None = None,
    like: _SupportsArrayFunc | None = None,
    split: int | None = None,
    mesh: Mesh | Sequence[int] | None = None,
) -> Any:
    """Evenly spaced values in a half-open interval, as `numpy.arange`.

    Parameters
    ----------
    split : int, optional
        Cut this axis, for all ranks. By default the layout has the smallest halos, and small arrays are not cut.
    mesh : tuple of int, optional
        Extents of the mesh of ranks, whose dimensions cut the leading axes in order.
    """
    start_or_stop, start, stop, step = map(_plain, (start_or_stop, start, stop, step))
    # What was left out is left out for NumPy, too: it does not like to add a 1 to dates.
    positional = () if start_or_stop is NoValue else (start_or_stop,)
    named = {"start": start, "stop": stop, "step": step, "dtype": dtype, "device": device}
    named = {name: value for name, value in named.items() if value is not None}
    if elsewhere(like):
        return np.arange(*positional, **named, like=like)
    bounds = (*positional, *(x for x in (start, stop) if x is not None))
    if len(bounds) == 1 and start is None:
        bounds = (0, *bounds)
    if len(bounds) != 2 or start is not None and stop is None:
        return np.arange(*positional, **named)  # NumPy's error
    start, end, step = *bounds, 1 if step is None else step
    length = _length(start, end, step) if all(map(_is_number, (start, end, step))) else None
    if length is not None:
        kind = np.arange(*(type(x)(1) for x in (start, end, step)), dtype=dtype, device=device).dtype
        layout = chosen_layout((length,), split, mesh)
        if kind.kind in "iufc" and not is_replicated((length,), kind, layout):
            first = np.empty(2, kind)
            first[0], first[1] = start, start + step
            if kind == np.float64 and 2 <= length <= _MOST_EXACT:
                with np.errstate(all="ignore"):
                    difference = first[1] - first[0]
                given = dict(enumerate(first.tolist()))
                return from_steps(float(first[0]), float(difference), given, length, layout, (start, step))
            return from_parts(_evenly(first), (length,), kind, layout, made_of=(start, step))
    values = np.arange(*positional, **named)
    return engine.from_global(values, chosen_layout(values.shape, split, mesh), compared=True)


def _is_number(value: object) -> bool:
    # To NumPy, spans of time are integers.
    return isinstance(value, _NUMBERS) and not isinstance(value, np.timedelta64)


def _plain(value: object) -> object:
    return value.item() if engine.is_handle(value) and value.ndim == 0 else value


@implements(np.linspace, varies=(*OURS, "device"), replicated=True)
def linspace(
    start: Any,
    stop: Any,
    num: SupportsIndex = 50,
    endpoint: object = True,
    retstep: bool = False,
    dtype: DTypeLike | None = None,
    axis: int = 0,
    *,
    device: Literal["cpu"] | None = None,
    split: int | None = None,
    mesh: Mesh | Sequence[int] | None = None,
) -> Any:
    """Evenly spaced values in an interval, as `numpy.linspace`; `split` and `mesh` as in `arange`."""
    start, stop = map(_number, (start, stop))
    if any(engine.is_sharded(x) for x in (start, stop)):
        made = _numpys_linspace(start, stop, num, endpoint, retstep, dtype, axis, device=device)
        return (_moved(made[0], split, mesh), made[1]) if retstep else _moved(made, split, mesh)
    if np.ndim(start) or np.ndim(stop):
        return _everywhere(np.linspace, start, stop, num, endpoint, retstep, dtype, axis, split=split, mesh=mesh)
    start, stop = map(engine.plain, (start, stop))
    count = operator.index(num)
    # NumPy's result of two elements, and its step with `num`, tell the dtype, the last value and the errors.
    sample, step = np.linspace(start, stop, 2, retstep=True, dtype=dtype, axis=axis, device=device)
    layout = chosen_layout((count,), split, mesh)
    if count < 2 or is_replicated((count,), sample.dtype, layout):
        return _everywhere(np.linspace, start, stop, num, endpoint, retstep, dtype, axis, split=split, mesh=mesh)
    with np.errstate(all="ignore"):
        inner = np.linspace(start, stop, 2).dtype  # what NumPy computes in
    # Python's numbers stay weak beside NumPy's.
    first, last = (x if isinstance(x, int | float | complex) else np.asanyarray(x) for x in (start, stop))
    divisor = count - 1 if endpoint else count
    # The two elements have met all that there is to meet, on every rank, but for steps that underflow.
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        delta = np.subtract(last, first, dtype=type(inner))
        step = delta / divisor

    @np.errstate(all="ignore")
    def part(box: Box) -> np.ndarray:
        ((low, high),) = box
        values = np.arange(low, high).astype(inner)
        # Steps that underflow are treated as in NumPy's function (numpy issue 5437).
        values = values / divisor * delta if step == 0 else values * step
        values += first
        if endpoint and high == count:
            values[-1:] = last
        if np.issubdtype(sample.dtype, np.integer):
            np.floor(values, out=values)
        return values.astype(sample.dtype, copy=False)

    made_of = (first, last, endpoint)
    calm = inner == sample.dtype == np.float64 and _is_calm(first, last, step)
    if calm and count <= _MOST_EXACT:
        given = {count - 1: float(last)} if endpoint else {}  # type: ignore[arg-type]
        made = from_steps(float(first), float(step), given, count, layout, made_of)  # type: ignore[arg-type]
    else:
        made = from_parts(part, (count,), sample.dtype, layout, made_of=made_of)
    return (made, step) if retstep else made


def _is_calm(first: Any, last: Any, step: Any) -> bool:
    """Whether values from `first` to `last` come without floating-point events: they neither overflow nor underflow."""
    limits = np.finfo(np.float64)
    return bool(max(abs(float(first)), abs(float(last))) < limits.max / 4 and abs(step) > limits.tiny)


@implements(np.logspace, varies=OURS, replicated=True)
def logspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: SupportsIndex = 50,
    endpoint: object = True,
    base: ArrayLike = 10.0,
    dtype: DTypeLike | None = None,
    axis: int = 0,
    *,
    split: int | None = None,
    mesh: Mesh | Sequence[int] | None = None,
) -> object:
    """Values that are evenly spaced on a logarithmic scale, as `numpy.logspace`; `split` and `mesh` as in `arange`."""
    start, stop, base = map(_number, (start, stop, base))
    if any(engine.is_sharded(x) for x in (start, stop, base)):
        return _moved(_numpys_logspace(start, stop, num, endpoint, base, dtype, axis), split, mesh)
    if any(np.ndim(x) for x in (start, stop, base)):
        return _everywhere(np.logspace, start, stop, num, endpoint, base, dtype, axis, split=split, mesh=mesh)
    exponents = linspace(start, stop, num, endpoint, axis=axis, split=split, mesh=mesh)
    values = np.power(base, exponents)
    return values if dtype is None else values.astype(dtype, copy=False)


@implements(np.geomspace, varies=OURS, replicated=True)
def geomspace(
    start: object,
    stop: object,
    num: SupportsIndex = 50,
    endpoint: object = True,
    dtype: DTypeLike | None = None,
    axis: int = 0,
    *,
    split: int | None = None,
    mesh: Mesh | Sequence[int] | None = None,
) -> DistArray:
    """Values in geometric progression, as `numpy.geomspace`; `split` and `mesh` as in `arange`.

    Between numbers, every rank computes them all and keeps its part.
    """
    start, stop = map(_number, (start, stop))
    if any(engine.is_sharded(x) for x in (start, stop)):
        return _moved(_numpys_geomspace(start, stop, num, endpoint, dtype, axis), split, mesh)
    return _everywhere(np.geomspace, start, stop, num, endpoint, dtype, axis, split=split, mesh=mesh)


def _everywhere(function: Function, *args: object, split: int | None, mesh: Mesh | Sequence[int] | None) -> Any:
    """What every rank computes whole with plain NumPy, and keeps its part of."""
    args = tuple(everywhere(x, function, "NumPy computes it on every rank") if engine.is_handle(x) else x for x in args)
    made = function(*args)
    values, rest = made if isinstance(made, tuple) else (made, None)
    result = engine.from_global(np.asarray(values), chosen_layout(np.shape(values), split, mesh), compared=True)
    if rest is None:
        return result
    return result, engine.from_global(rest) if isinstance(rest, np.ndarray) else rest


class _LinspaceConverter:
    """What NumPy's private ``_array_converter`` is to its linspace, without converting arrays of ours."""

    def __init__(self, *given: object) -> None:
        self._given = given

    def as_arrays(self) -> tuple[engine.Handle | np.ndarray, ...]:
        return tuple(x if engine.is_handle(x) else np.asanyarray(x) for x in self._given)

    def result_type(self, ensure_inexact: bool = False) -> np.dtype:
        stand_ins = (np.empty(0, x.dtype) if engine.is_handle(x) else x for x in self._given)
        return _array_converter(*stand_ins).result_type(ensure_inexact=ensure_inexact)

    def wrap(self, made: object) -> object:
        return made


_numpys_linspace = numpy_source(np.linspace, _array_converter=_LinspaceConverter)
_numpys_logspace = numpy_source(np.logspace)
_numpys_geomspace = numpy_source(np.geomspace)


def _number(x: Any) -> ArrayLike:
    """The value of an array without axes, which every rank needs."""
    return engine.item(x) if engine.is_sharded(x) and x.ndim == 0 else x


def _moved(made: DistArray, split: int | None, mesh: Mesh | Sequence[int] | None) -> DistArray:
    """An array in the layout that the user asked for, if they did."""
    layout = chosen_layout(made.shape, split, mesh)
    return made if layout is None else engine.copy(made, layout=layout)


# -- grids -----------------------------------------------------------------------------------------------------------


def indices(
    dimensions: Iterable[SupportsIndex],
    dtype: DTypeLike | None = int,
    sparse: bool = False,
    *,
    split: int | None = None,
    mesh: Mesh | Sequence[int] | None = None,
) -> DistArray | tuple[DistArray, ...]:
    """The indices of a grid, as `numpy.indices`; `split` and `mesh` (of the whole result) as in `arange`."""
    shape = as_shape(tuple(dimensions))
    kind = np.dtype(dtype)
    if sparse:
        ranges = (arange(n, dtype=kind) for n in shape)
        return tuple(r.reshape((1,) * i + (-1,) + (1,) * (len(shape) - i - 1)) for i, r in enumerate(ranges))

    def part(box: Box) -> np.ndarray:
        (low, high), *rest = box
        values = np.empty(tuple(hi - lo for lo, hi in box), kind)
        for i in range(low, high):
            start, stop = rest[i]
            values[i - low] = np.arange(start, stop, dtype=kind).reshape((-1,) + (1,) * (len(shape) - i - 1))
        return values

    whole = (len(shape), *shape)
    layout = chosen_layout(whole, split, mesh)
    if layout is None and shape and not is_replicated(whole, kind, None):
        # Each of the index arrays is cut over all ranks.
        layout = _behind(shape)
    return from_parts(part, whole, kind, layout)


def _behind(shape: tuple[int, ...]) -> Layout:
    """The default layout of `shape`, for an array with one more axis in front, which is whole on every rank."""
    inner = engine.runtime().default_layout(shape)
    dims = tuple(Cut(d.axis + 1, d.points) if isinstance(d, Cut) else d for d in inner.dims)
    return Layout((len(shape), *shape), inner.mesh, dims)


@implements(np.fromfunction, replicated=True)
def fromfunction(
    function: Callable[..., T],
    shape: Sequence[int],
    *,
    dtype: DTypeLike | None = float,
    like: _SupportsArrayFunc | None = None,
    **kwargs: object,
) -> T:
    """The values of a function of the indices, as `numpy.fromfunction`.

    `function` is called once on every rank, with distributed arrays of the indices.
    """
    if elsewhere(like):
        return np.fromfunction(function, shape, dtype=dtype, like=like, **kwargs)
    return function(*indices(shape, dtype=dtype), **kwargs)


class MeshGrid:
    """`numpy.mgrid` with distributed arrays: ``mgrid[0:5, 0:2:9j]``."""

    def __getitem__(self, key: slice | Sequence[slice]) -> DistArray:
        axes = np.ogrid[key]
        if not isinstance(axes, tuple | list):
            return engine.from_global(axes)
        whole = (len(axes), *broadcast_shapes(*(a.shape for a in axes)))

        def part(box: Box) -> np.ndarray:
            (low, high), *rest = box
            values = np.empty(tuple(hi - lo for lo, hi in box), axes[0].dtype)
            for i in range(low, high):
                cut = tuple(
                    slice(lo, hi) if n > 1 else slice(None) for (lo, hi), n in zip(rest, axes[i].shape, strict=True)
                )
                values[i - low] = axes[i][cut]
            return values

        return from_parts(part, whole, axes[0].dtype, made_of=tuple((a.flat[0], a.flat[-1]) for a in axes if a.size))


mgrid = MeshGrid()


@functools.cache
def _container_of_grids() -> type:
    """What this NumPy puts views of open grids into: a list before 2.5."""
    return type(np.meshgrid(copy=False, sparse=True))


@implements(np.meshgrid, kind="structural")
def meshgrid(
    *xi: object, copy: bool = True, sparse: bool = False, indexing: str = "xy"
) -> tuple[DistArray | np.ndarray, ...] | list[DistArray | np.ndarray]:
    if indexing not in ("xy", "ij"):
        raise ValueError("Valid values for `indexing` are 'xy' and 'ij'.")
    ndim = len(xi)
    output: list[DistArray | np.ndarray] = []
    for i, x in enumerate(xi):
        # With "xy" the first two axes change places.
        axis = 1 - i if indexing == "xy" and ndim > 1 and i < 2 else i
        output.append(np.reshape(as_handle(x), (1,) * axis + (-1,) + (1,) * (ndim - axis - 1)))
    if not copy:
        return _container_of_grids()(output) if sparse else np.broadcast_arrays(*output)
    shape = broadcast_shapes(*(x.shape for x in output))
    # Views of `broadcast_arrays` warn whoever asks whether they are writeable: not the way to make copies.
    return tuple(engine.copy(x if sparse else np.broadcast_to(x, shape), order="C") for x in output)
