"""Linear algebra: products of tensors whose axes cannot be joined to make matrices, since they are cut inside."""

from __future__ import annotations

import functools
from itertools import pairwise
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from numpy_dist import engine
from numpy_dist.dispatch.core.registry import decline, implements
from numpy_dist.dispatch.patterns.arguments import as_handle
from numpy_dist.dispatch.patterns.blocks import blocks
from numpy_dist.engine import events_reported
from numpy_dist.layout.layout import Cut, Layout, Pinned
from numpy_dist.layout.regions import box_shape
from numpy_dist.parallel.contraction import Contraction
from numpy_dist.parallel.panels import missing
from numpy_dist.parallel.pieces import at_most
from numpy_dist.parallel.product_task import ProductTask
from numpy_dist.parallel.tensor_product import HeldTensor, tensor_product
from numpy_dist.settings import config

if TYPE_CHECKING:
    from numpy_dist.distarray import DistArray

_SHARE = 4  # as for matrices: what a rank has of operands and result is so many times what it has besides


class _Axes(NamedTuple):
    """How many axes belong to the stack, to each operand alone, and to the sum."""

    stack: int
    left: int
    right: int
    summed: int


@implements(np.tensordot, kind="composed")
def tensordot(a: object, b: object, axes: object = 2) -> object:
    x: Any = as_handle(a)
    y: Any = as_handle(b)
    one, other = _summed_axes(axes, x.ndim, y.ndim)
    if not one or any(x.shape[i] != y.shape[j] for i, j in zip(one, other, strict=True)):
        decline("arguments that are NumPy's")
    dtype = np.dot(np.zeros((1, 1), x.dtype), np.zeros((1, 1), y.dtype)).dtype
    x, y = (np.transpose(of, [i for i in range(of.ndim) if i not in its] + its) for of, its in ((x, one), (y, other)))
    made = tensors(x, y, 0, len(one), dtype, "dot")
    if made is None:
        decline("tensors of which matrices are made")
    return made


def _summed_axes(axes: object, ndim: int, other: int) -> tuple[list[int], list[int]]:
    """Over which axes of two arrays NumPy's `tensordot` sums; nothing where it may see an error."""
    if isinstance(axes, int | np.integer):
        count = int(axes)
        chosen: Any = (range(ndim - count, ndim), range(count))
    else:
        chosen = axes if isinstance(axes, tuple | list) and len(axes) == 2 else ((), ())
    found = []
    for its, n in zip(chosen, (ndim, other), strict=True):
        listed = [its] if isinstance(its, int | np.integer) else list(its)
        if any(not isinstance(i, int | np.integer) or not -n <= i < n for i in listed):
            return [], []
        found.append([int(i) % n for i in listed])
    if len(found[0]) != len(found[1]) or any(len(set(its)) < len(its) for its in found):
        return [], []
    return found[0], found[1]


def tensors(a: Any, b: Any, stack: int, summed: int, dtype: np.dtype, name: str) -> Any:
    """The product of tensors of several ranks, or None where that of matrices that are made of them needs no copies.

    Parameters
    ----------
    a, b : DistArray
        With the axes of the stack, which are broadcast against each other, then those that they do not share, then the
        summed ones.
    stack, summed : int
        How many axes these are.
    dtype : dtype
        Of the product, whose axes are those of the stack, of `a` and of `b`.
    name : str
        What NumPy calls the product in its warnings.
    """
    size = engine.runtime().size
    if size == 1 or dtype.kind not in "biufc" or dtype == np.float16 or engine.device(dtype) is not None:
        return None
    if not all(np.can_cast(x.dtype, dtype, "safe") for x in (a, b)):
        return None
    layouts = [engine.layout_of(x) if engine.is_sharded(x) else None for x in (a, b)]
    for x, layout in zip((a, b), layouts, strict=True):
        if engine.is_sharded(x) and (layout is None or layout.size != size or _is_pinned(layout)):
            return None
    axes = _Axes(stack, a.ndim - stack - summed, b.ndim - stack - summed, summed)
    if a.size + b.size <= at_most(0) * size or all(
        _joins(x, layout, axes) for x, layout in zip((a, b), layouts, strict=True)
    ):
        return None
    a, b = _in_memory_order(a, b, summed)
    layouts = [engine.layout_of(x) if engine.is_sharded(x) else None for x in (a, b)]
    shape = (*np.broadcast_shapes(a.shape[:stack], b.shape[:stack]), *a.shape[stack : a.ndim - summed])
    shape += b.shape[stack : b.ndim - summed]
    if not shape or not prod(shape):
        return None
    of_sum = layout_of_sum(shape, dtype)
    plan = _plan(layouts[0], layouts[1], tuple(a.shape), tuple(b.shape), of_sum, axes, known_of_ranks())
    if plan is None:
        return None
    of_left, of_right, result = plan
    if of_left is not None and of_right is not None:
        return _by_shares(a, b, (of_left, of_right), result, axes, dtype, name)
    return _by_panels(a, b, layouts, result, axes, dtype, name)


def _by_shares(
    a: object, b: object, layouts: tuple[Layout, Layout], result: Layout, axes: _Axes, dtype: np.dtype, name: str
) -> DistArray:
    """Both operands are cut along one summed axis, at the same points; partial products are added up."""
    left, right = blocks(*((engine.aligned(x, its), its) for x, its in zip((a, b), layouts, strict=True)))
    (cut,) = (what for what in layouts[0].dims if isinstance(what, Cut))
    holders = [low != high for low, high in pairwise(cut.points)]
    most = 2 * _most(a, b, result, dtype) // 3  # besides, what is multiplied is joined
    with engine.Scratch() as scratch, events_reported(name):
        box = result.box(engine.runtime().rank)
        out = scratch.empty((0,) * result.ndim if box is None else box_shape(box), dtype)
        with engine.Scratch() as passing:
            task = ProductTask(out, engine.runtime().comm, most, passing.empty)
            Contraction(holders, result, task).tensors(left, right, axes.summed)
        return engine.from_local(out, result)


def _by_panels(
    a: Any, b: Any, layouts: list[Layout | None], result: Layout, axes: _Axes, dtype: np.dtype, name: str
) -> DistArray:
    """The result stays, panels of both operands come from where they lie."""
    held = iter(blocks(*((x, its) for x, its in zip((a, b), layouts, strict=True) if its is not None)))
    left, right = (
        HeldTensor(engine.plain(x) if layout is None else next(held), layout, axes.stack, axes.summed)
        for x, layout in zip((a, b), layouts, strict=True)
    )
    runtime = engine.runtime()
    box, most = result.box(runtime.rank), _most(a, b, result, dtype)
    with engine.Scratch() as scratch, events_reported(name):
        out = scratch.empty((0,) * result.ndim if box is None else box_shape(box), dtype)
        with engine.Scratch() as passing:
            tensor_product(left, right, result, ProductTask(out, runtime.comm, most, passing.empty))
        return engine.from_local(out, result)


def _most(a: Any, b: Any, result: Layout, dtype: np.dtype) -> int:
    """How many elements of the product a rank may have besides its shares of operands and product, about."""
    nbytes = a.nbytes + b.nbytes + result.nelements * dtype.itemsize
    return int(nbytes // (_SHARE * engine.runtime().size * dtype.itemsize))


def layout_of_sum(shape: tuple[int, ...], dtype: np.dtype, halved: bool = False) -> Layout:
    """The layout of a sum of partial products: all ranks have a small one, and what is `halved` is cut between rows."""
    large = engine.default_shard(prod(shape) * dtype.itemsize) and prod(shape) > 1
    if not large:
        return engine.runtime().replicated_layout(shape)
    return engine.default_layout(shape, split=0) if halved else engine.default_layout(shape)


def _in_memory_order(a: Any, b: Any, summed: int) -> tuple[object, object]:
    """Operands whose summed axes follow each other as they do in the memory of the larger one: nothing is copied."""
    strides = engine.metadata(a if a.size >= b.size else b).strides[-summed:] if summed else ()
    order = sorted(range(summed), key=lambda axis: -abs(strides[axis]))
    return tuple(
        np.transpose(x, [*range(x.ndim - summed), *(x.ndim - summed + axis for axis in order)]) for x in (a, b)
    )  # type: ignore[return-value]


def _is_pinned(layout: Layout) -> bool:
    return any(isinstance(what, Pinned) for what in layout.dims)


def _joins(x: Any, layout: Layout | None, axes: _Axes) -> bool:
    """Whether an operand's axes are joined without a copy, such that what each rank has stays a box."""
    if layout is None:
        return True
    strides, shape, ends = engine.metadata(x).strides, x.shape, x.ndim - axes.summed
    if axes.stack:
        return all(axis < axes.stack for axis in layout.cut_axes)
    for group in (range(ends), range(ends, x.ndim)):
        its = [axis for axis in group if shape[axis] > 1]
        if any(strides[i] != strides[j] * shape[j] for i, j in pairwise(its)):
            return False
        if any(axis in its[1:] for axis in layout.cut_axes):
            return False
    return True


def known_of_ranks() -> tuple[object, ...]:
    """What default layouts depend on besides shapes."""
    runtime = engine.runtime()
    return runtime.size, runtime.weights, runtime.comm.nodes, config.MIN_SHARD_BYTES == 0


@functools.lru_cache(maxsize=1024)
def _plan(
    left: Layout | None,
    right: Layout | None,
    of_left: tuple[int, ...],
    of_right: tuple[int, ...],
    of_sum: Layout,
    axes: _Axes,
    ranks: tuple[object, ...],
) -> tuple[Layout | None, Layout | None, Layout] | None:
    """The layouts of operands that are multiplied where a summed axis is cut, or none, and that of the product.

    That of partial products that are added up is `of_sum`; `ranks` is what default layouts depend on. None where no
    layout divides the product, and no operands are cut along a summed axis.
    """
    size, shape = engine.runtime().size, of_sum.shape
    found: list[tuple[int, tuple[Layout | None, Layout | None, Layout]]] = []
    for result in _results(left, right, shape, axes):
        words, ends = 0, axes.stack + axes.left
        boxes = [result.box(rank) or ((0, 0),) * len(shape) for rank in range(size)]
        for layout, its, part in ((left, of_left, slice(axes.stack, ends)), (right, of_right, slice(ends, None))):
            if layout is not None:
                words += missing(
                    layout,
                    [
                        (
                            *((0, 1) if n == 1 else where for where, n in zip(box[: axes.stack], its, strict=False)),
                            *box[part],
                            *((0, n) for n in its[len(its) - axes.summed :]),
                        )
                        for box in boxes
                    ],
                )
        found.append((words, (None, None, result)))
    for one, other in _cut_alike(left, right, of_left, of_right, axes):
        words = sum(prod(its.shape) for its, lies in ((one, left), (other, right)) if lies is not None and its != lies)
        found.append((words + prod(shape) * (size - 1), (one, other, of_sum)))
    return min(found, key=lambda entry: entry[0])[1] if found else None


def _cut_alike(
    left: Layout | None, right: Layout | None, of_left: tuple[int, ...], of_right: tuple[int, ...], axes: _Axes
) -> list[tuple[Layout, Layout]]:
    """Layouts in which both operands are cut along one summed axis: as one of them lies, if it does."""
    if axes.stack or left is None or right is None:
        return []
    found = []
    for of_the_left, (layout, own, others, shape) in enumerate(
        ((right, axes.right, axes.left, of_left), (left, axes.left, axes.right, of_right))
    ):
        if layout.mesh.ndim > 1 or len(layout.cut_axes) != 1 or layout.cut_axes[0] < own:
            continue
        (cut,) = layout.dims
        assert isinstance(cut, Cut)
        other = Layout(shape, layout.mesh, (Cut(cut.axis - own + others, cut.points),))
        # The other one is redistributed, unless it takes too much memory a second time.
        if other == (right if of_the_left else left) or prod(other.shape) * 4 <= prod(layout.shape):
            found.append((layout, other) if of_the_left else (other, layout))
    return found


def _results(left: Layout | None, right: Layout | None, shape: tuple[int, ...], axes: _Axes) -> list[Layout]:
    """Layouts in which ranks may have the product: as the operands are cut, along one axis, or by default."""
    size, found = engine.runtime().size, []
    ends = axes.stack + axes.left
    own = [range(axes.stack, ends), range(ends, len(shape))]
    for layout, mine, others in ((left, own[0], own[1]), (right, own[1], own[0])):
        made = None if layout is None else _on_mesh_of(layout, shape, axes.stack, mine, others)
        if made is not None:
            found.append(made)
    found += [engine.default_layout(shape, split=axis) for axis, n in enumerate(shape) if n >= size]
    found.append(engine.default_layout(shape))
    return [layout for layout in found if not layout.has_copies and layout.size == size]


def _on_mesh_of(layout: Layout, shape: tuple[int, ...], stack: int, mine: range, others: range) -> Layout | None:
    """The layout of the product on the mesh of an operand: what cuts its summed axes cuts the other's own ones."""
    dims: list[Cut] = []
    for extent, what in zip(layout.mesh.shape, layout.dims, strict=True):
        if not isinstance(what, Cut):
            return None
        axis = what.axis if what.axis < stack else what.axis - stack + mine.start
        if axis >= mine.stop or axis >= stack and axis not in mine or shape[axis] != layout.shape[what.axis]:
            free = [other for other in others if shape[other] >= extent and other not in [cut.axis for cut in dims]]
            if not free:
                return None
            axis = max(free, key=lambda other: shape[other])
            dims.append(Cut(axis, tuple(shape[axis] * c // extent for c in range(extent + 1))))
        else:
            dims.append(Cut(axis, what.points))
    return Layout(shape, layout.mesh, tuple(dims)) if len({cut.axis for cut in dims}) == len(dims) else None
