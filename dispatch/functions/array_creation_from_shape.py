"""Array creation routines from a shape or value: each rank makes its own shard of a large array, with NumPy's bits."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, SupportsIndex, TypeVar

import numpy as np
from numpy.typing import DTypeLike

from numpy_dist import engine
from numpy_dist.dispatch.core.outcome import Recorded, warn_again
from numpy_dist.dispatch.core.registry import implements
from numpy_dist.dispatch.patterns.creation import (
    OURS,
    Shape,
    as_shape,
    axes_in_order,
    chosen_layout,
    elsewhere,
    is_replicated,
    permuted,
)
from numpy_dist.ir.array_type import ndarray
from numpy_dist.layout.layout import Layout

if TYPE_CHECKING:
    from numpy import _OrderCF, _OrderKACF
    from numpy._typing import _SupportsArrayFunc

    from numpy_dist.distarray.array import DistArray
    from numpy_dist.layout.mesh import Mesh

Creation = TypeVar("Creation", bound=Callable[..., Any])

# -- filled with one value -------------------------------------------------------------------------------------------


def _filled(
    function: Callable[..., np.ndarray],
    shape: object,
    dtype: DTypeLike | None,
    order: _OrderCF,
    device: Literal["cpu"] | None,
    split: int | None,
    mesh: Mesh | Sequence[int] | None,
) -> DistArray:
    log: list[tuple[type[Warning], Warning | str]] = []
    with Recorded(log):
        sample = function((), dtype=dtype, order=order, device=device)
    shape = as_shape(shape)
    layout = chosen_layout(shape, split, mesh)
    if is_replicated(shape, sample.dtype, layout):
        function = _alike(function, sample.dtype)
        return engine.replicated(function(shape, dtype=dtype, order=order))  # which warns itself
    if not math.prod(shape):  # nothing is cast but the value itself
        log.clear()
        with Recorded(log):
            function((0,), dtype=dtype, order=order, device=device)
    warn_again(log)
    return _fill(function, sample, shape, layout, axes_in_order(None, order, len(shape)))


def _alike(function: Callable[..., np.ndarray], dtype: np.dtype) -> Any:
    """What makes a small array that is the same on every rank, also where its values mean nothing."""
    if engine.runtime().size == 1 or dtype.hasobject:
        return function
    return {np.empty: np.zeros, np.empty_like: np.zeros_like}.get(function, function)


def _fill(
    function: Callable[..., np.ndarray],
    sample: np.ndarray,
    shape: Shape,
    layout: Layout | None,
    axes: Sequence[int] | None,
) -> DistArray:
    """A sharded array with the value of `sample` everywhere, or with none."""

    def make(shape: Shape, layout: Layout | None) -> engine.Handle:
        if function in (np.empty, np.empty_like):
            return engine.empty(shape, sample.dtype, layout=layout)
        return engine.full(shape, sample[()], sample.dtype, layout=layout)

    return permuted(make, shape, layout, axes)


@implements(np.empty, varies=OURS, replicated=True)
def empty(
    shape: SupportsIndex | Sequence[SupportsIndex],
    dtype: DTypeLike | None = None,
    order: _OrderCF = "C",
    *,
    device: Literal["cpu"] | None = None,
    like: _SupportsArrayFunc | None = None,
    split: int | None = None,
    mesh: Mesh | Sequence[int] | None = None,
) -> Any:
    """New array whose values mean nothing, as `numpy.empty`.

    Parameters
    ----------
    split : int, optional
        Cut this axis, for all ranks. By default the layout has the smallest halos, and small arrays are not cut.
    mesh : tuple of int, optional
        Extents of the mesh of ranks, whose dimensions cut the leading axes in order.
    """
    if elsewhere(like):
        return np.empty(shape, dtype, order, device=device, like=like)
    return _filled(np.empty, shape, dtype, order, device, split, mesh)


@implements(np.zeros, varies=OURS, replicated=True)
def zeros(
    shape: SupportsIndex | Sequence[SupportsIndex],
    dtype: DTypeLike | None = None,
    order: _OrderCF = "C",
    *,
    device: Literal["cpu"] | None = None,
    like: _SupportsArrayFunc | None = None,
    split: int | None = None,
    mesh: Mesh | Sequence[int] | None = None,
) -> Any:
    """New array of zeros, as `numpy.zeros`; `split` and `mesh` as in `empty`."""
    if elsewhere(like):
        return np.zeros(shape, dtype, order, device=device, like=like)
    return _filled(np.zeros, shape, dtype, order, device, split, mesh)


@implements(np.ones, varies=OURS, replicated=True)
def ones(
    shape: SupportsIndex | Sequence[SupportsIndex],
    dtype: DTypeLike | None = None,
    order: _OrderCF = "C",
    *,
    device: Literal["cpu"] | None = None,
    like: _SupportsArrayFunc | None = None,
    split: int | None = None,
    mesh: Mesh | Sequence[int] | None = None,
) -> DistArray | np.ndarray:
    """New array of ones, as `numpy.ones`; `split` and `mesh` as in `empty`."""
    if elsewhere(like):
        return np.ones(shape, dtype, order, device=device, like=like)
    return _filled(np.ones, shape, dtype, order, device, split, mesh)


@implements(np.full, varies=OURS, replicated=True)
def full(
    shape: SupportsIndex | Sequence[SupportsIndex],
    fill_value: object,
    dtype: DTypeLike | None = None,
    order: _OrderCF = "C",
    *,
    device: Literal["cpu"] | None = None,
    like: _SupportsArrayFunc | None = None,
    split: int | None = None,
    mesh: Mesh | Sequence[int] | None = None,
) -> Any:
    """New array with a value, or values that are broadcast, as `numpy.full`; `split` and `mesh` as in `empty`."""
    if elsewhere(like):
        return np.full(shape, fill_value, dtype, order, device=device, like=like)
    if not engine.is_handle(fill_value):
        fill_value = fill_value if isinstance(fill_value, int | float | complex) else np.asarray(fill_value)
    if dtype is None:
        dtype = np.asarray(fill_value).dtype if not engine.is_handle(fill_value) else fill_value.dtype
    if np.ndim(fill_value):
        made = empty(shape, dtype, order, device=device, split=split, mesh=mesh)
        engine.assign(made, fill_value)
        return made
    value = fill_value[()] if engine.is_handle(fill_value) else fill_value

    def function(
        shape: tuple[int, ...], dtype: DTypeLike | None, order: _OrderCF, device: Literal["cpu"] | None = None
    ) -> np.ndarray:
        return np.full(shape, value, dtype, order, device=device)

    return _filled(function, shape, dtype, order, device, split, mesh)


# -- like another array ----------------------------------------------------------------------------------------------


def _like(
    function: Callable[..., np.ndarray],
    prototype: object,
    dtype: DTypeLike | None,
    order: _OrderKACF,
    shape: SupportsIndex | Sequence[SupportsIndex] | None,
    device: Literal["cpu"] | None,
    split: int | None,
    mesh: Mesh | Sequence[int] | None,
) -> DistArray:
    """`function` takes a NumPy array like which its result is, and the options of `numpy.empty_like`."""
    if not engine.is_handle(prototype):
        prototype = np.asarray(prototype)
    like = prototype._array if engine.is_handle(prototype) else prototype
    log: list[tuple[type[Warning], Warning | str]] = []
    with Recorded(log):
        sample = function(np.zeros((), like.dtype), dtype=dtype, order=order, shape=None, device=device)
    found = like.shape if shape is None else as_shape(shape)
    layout = chosen_layout(found, split, mesh)
    if layout is None and shape is None and engine.is_sharded(prototype):
        layout = _followed(engine.layout_of(prototype), math.prod(found) * sample.dtype.itemsize)
    if is_replicated(found, sample.dtype, layout):
        function = _alike(function, sample.dtype)
        return engine.replicated(function(like, dtype=dtype, order=order, shape=shape))  # which warns itself
    if not math.prod(found):  # nothing is cast but the value itself
        log.clear()
        with Recorded(log):
            function(np.zeros(0, like.dtype), dtype=dtype, order=order, shape=None, device=device)
    warn_again(log)
    axes = axes_in_order(like, order, len(found))
    return _fill(np.empty if function is np.empty_like else function, sample, found, layout, axes)


def _asks_prototypes(function: Callable[..., object]) -> Callable[[Creation], Creation]:
    """Have arrays of other libraries, which override NumPy's functions, make what is like them, as `function` would."""

    def decorate(ours: Creation) -> Creation:
        @functools.wraps(ours)
        def like(*args: object, **kwargs: object) -> Any:
            prototype = args[0] if args else kwargs.get("a")
            if hasattr(type(prototype), "__array_function__") and not isinstance(prototype, ndarray):
                return function(*args, **kwargs)
            return ours(*args, **kwargs)

        return like  # type: ignore[return-value]

    return decorate


def _followed(layout: Layout | None, nbytes: int) -> Layout | None:
    """The layout of an array's results, unless it would leave most of the ranks without work."""
    if layout is None or not engine.default_shard(nbytes):
        return layout
    holders = sum(box is not None and all(lo < hi for lo, hi in box) for box in map(layout.box, range(layout.size)))
    return layout if 2 * holders >= layout.size else None


@implements(np.empty_like, varies=(*OURS, "device"), replicated=True)
@_asks_prototypes(np.empty_like)
def empty_like(
    prototype: object,
    /,
    dtype: DTypeLike | None = None,
    order: _OrderKACF = "K",
    subok: bool = True,
    shape: SupportsIndex | Sequence[SupportsIndex] | None = None,
    *,
    device: Literal["cpu"] | None = None,
    split: int | None = None,
    mesh: Mesh | Sequence[int] | None = None,
) -> DistArray:
    """New array with another's shape, dtype and layout, as `numpy.empty_like`; `split` and `mesh` as in `empty`."""
    return _like(np.empty_like, prototype, dtype, order, shape, device, split, mesh)


@implements(np.zeros_like, varies=OURS, replicated=True)
@_asks_prototypes(np.zeros_like)
def zeros_like(
    a: object,
    dtype: DTypeLike | None = None,
    order: _OrderKACF = "K",
    subok: bool = True,
    shape: SupportsIndex | Sequence[SupportsIndex] | None = None,
    *,
    device: Literal["cpu"] | None = None,
    split: int | None = None,
    mesh: Mesh | Sequence[int] | None = None,
) -> DistArray:
    """New array of zeros like another, as `numpy.zeros_like`; `split` and `mesh` as in `empty`."""
    return _like(np.zeros_like, a, dtype, order, shape, device, split, mesh)


@implements(np.ones_like, varies=OURS, replicated=True)
@_asks_prototypes(np.ones_like)
def ones_like(
    a: object,
    dtype: DTypeLike | None = None,
    order: _OrderKACF = "K",
    subok: bool = True,
    shape: SupportsIndex | Sequence[SupportsIndex] | None = None,
    *,
    device: Literal["cpu"] | None = None,
    split: int | None = None,
    mesh: Mesh | Sequence[int] | None = None,
) -> DistArray:
    """New array of ones like another, as `numpy.ones_like`; `split` and `mesh` as in `empty`."""
    return _like(np.ones_like, a, dtype, order, shape, device, split, mesh)


@implements(np.full_like, varies=OURS, replicated=True)
@_asks_prototypes(np.full_like)
def full_like(
    a: object,
    fill_value: Any,
    dtype: DTypeLike | None = None,
    order: _OrderKACF = "K",
    subok: bool = True,
    shape: SupportsIndex | Sequence[SupportsIndex] | None = None,
    *,
    device: Literal["cpu"] | None = None,
    split: int | None = None,
    mesh: Mesh | Sequence[int] | None = None,
) -> DistArray:
    """New array with a given value, and the shape, dtype and layout of another, as `numpy.full_like`."""
    if np.ndim(fill_value):
        made = _like(np.empty_like, a, dtype, order, shape, device, split, mesh)
        engine.assign(made, fill_value if engine.is_handle(fill_value) else np.asarray(fill_value))
        return made
    value = fill_value[()] if engine.is_handle(fill_value) else fill_value

    def function(like: np.ndarray, **options: Any) -> np.ndarray:
        return np.full_like(like, value, **options)

    return _like(function, a, dtype, order, shape, device, split, mesh)
