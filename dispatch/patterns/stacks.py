"""The stack pattern: NumPy's own function on elements, lines or matrices, of which whole ones lie on one rank.

What a function works on (an element, a line along an axis, a matrix) is called an *item*; the items lie in a *stack*,
the leading axes, which is divided between the ranks.

Needs: items that are not cut (a redistribution); operands are broadcast and aligned. A rank calls the function once
with all of its items. One allgather of errors, warnings and dtypes, so that results may depend on values (the width of
texts, real or complex numbers). The result is divided as the stack is. A single matrix has other ways:
`patterns.matrices`.

The only rank of a job has all items: it calls the function on them where they lie, if they are few.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from numpy_dist import engine
from numpy_dist.argument_types import Function
from numpy_dist.comm.portable import portable_error, restored
from numpy_dist.dispatch.core import outcome
from numpy_dist.dispatch.core.operands import rebuild
from numpy_dist.dispatch.core.registry import decline
from numpy_dist.dispatch.patterns.arguments import as_handle, moveaxis
from numpy_dist.dispatch.patterns.blocks import blocks
from numpy_dist.engine import events_reported
from numpy_dist.ir import structure
from numpy_dist.ir.meta_arrays import as_strided
from numpy_dist.ir.rules import broadcast_shapes, copy_axes, memory_axes
from numpy_dist.layout.layout import Copies, Cut, Layout, Pinned

if TYPE_CHECKING:
    from numpy_dist.comm.portable import PortableError

Shape = tuple[int, ...]
Items = TypeVar("Items", engine.Handle, np.ndarray)

_IN_CACHE = 1 << 22
"""Bytes that NumPy reads as fast as they come, however they lie; more are brought into the order of items before."""


@dataclass
class Told:
    """What a rank tells the others about its items."""

    error: Exception | PortableError | None = None
    warnings: list[tuple[type[Warning], Warning | str]] = field(default_factory=list)
    kind: type | None = None  # of several results
    results: list[tuple[np.dtype, Shape]] | None = None  # dtype and the shape of an item; None without items
    wrote: bool = False  # into its items


def on_stacks(
    function: Function,
    operands: Sequence[object],
    items: Sequence[int] | int = 0,
    *,
    name: str,
    order: str = "K",
    axis: int = -1,
    first: list[np.dtype] | None = None,
    library: bool = False,
    wrote: list[bool] | None = None,
) -> Any:
    """``function(*operands)`` for a function that treats all items of a stack alike.

    Collective: items that are cut are brought to one rank each, and one allgather tells errors, warnings and dtypes.

    Parameters
    ----------
    function : callable
        It gets ndarrays whose leading axes are this rank's part of the stack, and returns an array or several of them
        with the same leading axes.
    operands : sequence
        Arrays, whose leading axes are broadcast against each other.
    items : int or sequence of int
        How many trailing axes of each operand make an item.
    name : str
        What NumPy calls it in floating-point warnings.
    order : {"K", "C"}
        Whether the stack of the results has the memory order of that of the operands.
    axis : int
        Where in the results the last axis is to be.
    first : list of dtype, optional
        If the first item decides the dtype, not all items together: `function` appends that of this rank's first.
    library : bool
        Whether `function` also takes arrays of a device (`backends.library.compute`).
    wrote : list of bool, optional
        `function` appends True if it would write into its items; then this says whether it would on any rank.

    Raises
    ------
    Declined
        If there is a single item, which cannot be divided between the ranks.
    """
    depths = [items] * len(operands) if isinstance(items, int) else list(items)
    handles = _handles(operands)
    try:
        stack = broadcast_shapes(*(x.shape[: x.ndim - depth] for x, depth in zip(handles, depths, strict=True)))
    except ValueError:
        engine.numpy_error(function, handles)
    if not stack and not any(depths):
        return engine.wrap(function(*(engine.gather(x) for x in handles)))
    if not stack:
        decline("a single item cannot be divided between the ranks")
    axes = None
    if order == "K":
        described = [_stack_of(engine.metadata(x), depth) for x, depth in zip(handles, depths, strict=True)]
        axes = memory_axes(described, stack)
    here = _of_only_rank(handles)
    if here is None:
        return _in_order(function, handles, depths, stack, axes, name, axis, first, library, wrote)
    return _each(
        _in_order(function, here, depths, stack, axes, name, axis, first, library, wrote),
        lambda x: engine.from_only_rank(x, None if axes is None else (*axes, *range(len(axes), x.ndim))),
    )


def _in_order(
    function: Function,
    arrays: Sequence[Items],
    depths: list[int],
    stack: Shape,
    axes: tuple[int, ...] | None,
    name: str,
    axis: int,
    first: list[np.dtype] | None,
    library: bool,
    wrote: list[bool] | None,
) -> Any:
    """The results of a stack whose axes are brought into this order meanwhile; ndarrays, if these are given."""
    if axes is None:
        return _run(function, arrays, depths, stack, name, axis, first, library, wrote)
    arrays = [_permuted(x, axes, depth) for x, depth in zip(arrays, depths, strict=True)]
    found = _run(function, arrays, depths, tuple(stack[a] for a in axes), name, axis, first, library, wrote)
    back = np.argsort(axes).tolist()

    def in_place(x: Items) -> object:
        x = _permuted(x, back, x.ndim - len(stack))
        return engine.as_made(x) if engine.is_handle(x) else x

    return _each(found, in_place)


def _handles(operands: Sequence[object]) -> list[engine.Handle]:
    handles: list[engine.Handle] = [as_handle(x) for x in operands]
    for x in handles:
        if not engine.shardable(x.dtype):
            decline(f"arrays of dtype {x.dtype} are not distributed")
    return handles


def along_axis(function: Function, a: object, axis: int, *, name: str, order: str = "K", library: bool = False) -> Any:
    """As `on_stacks`, of the lines of one array along an axis: `function` gets and returns them as the last axis.

    With ``order="K"`` the result has the operand's memory order.
    """
    (handle,) = _handles([a])
    if handle.ndim == 1:
        decline("a single item cannot be divided between the ranks")
    axes = copy_axes("K", engine.metadata(handle)) if order == "K" else None
    here = _of_only_rank([handle], large=library)  # whose results lie in memory that becomes the array's
    if here is None:
        return _lines(function, handle, axis, axes, name, library)
    return _each(_lines(function, here[0], axis, axes, name, library), lambda x: engine.from_only_rank(x, axes))


def _lines(function: Function, a: Any, axis: int, axes: tuple[int, ...] | None, name: str, library: bool) -> Any:
    """The results for the lines along an axis of an array whose axes are brought into this order meanwhile."""
    place = axis if axes is None else axes.index(axis)
    a = a if axes is None else _permuted(a, axes, 0)
    if engine.is_sharded(a):  # lines that are cut are brought together in the order of axes in which they lie
        moved = moveaxis(a, place, -1)
        layout = _share(_division([moved], [1], tuple(moved.shape[:-1])), tuple(moved.shape), 1)
        order = [*range(place), a.ndim - 1, *range(place, a.ndim - 1)]
        a = engine.aligned(a, layout.transpose(order))
    a = moveaxis(a, place, -1)
    found = _run(function, [a], [1], tuple(a.shape[:-1]), name, -1 if place == a.ndim - 1 else place, None, library)
    return found if axes is None else _each(found, lambda x: _permuted(x, np.argsort(axes).tolist(), 0))


def _of_only_rank(handles: Sequence[engine.Handle], large: bool = False) -> list[np.ndarray] | None:
    """The operands where they lie, if there is one rank, which has them on its host; `large` ones, too, if wanted."""
    rt = engine.runtime()
    if rt.size > 1 or not rt.backend.memory.on_host:
        return None
    if not large and sum(engine.metadata(x).nbytes for x in handles) > _IN_CACHE:
        return None
    engine.force(*(x for x in handles if not engine.is_at_hand(x)))  # all, before the memory of any is looked at
    if rt.computes:
        found = [engine.in_memory(x) for x in handles]
        return None if any(x is None for x in found) else found  # type: ignore[return-value]
    if any(engine.is_sharded(x) and engine.layout_of(x) is None for x in handles):
        return None
    return [engine.shard(x) for x in handles]  # a plan: what it takes as if there were values


def _stack_of(array: np.ndarray, depth: int) -> np.ndarray:
    """An array with the shape and strides of the stack; its values must not be read."""
    count = array.ndim - depth
    return as_strided(array, array.shape[:count], array.strides[:count], writeable=False)


def _item(x: engine.Handle, depth: int, count: int) -> np.ndarray:
    """An item of zeros, in a stack of one."""
    return np.zeros((*(1,) * count, *x.shape[x.ndim - depth :]), x.dtype)


def _permuted(x: Items, axes: Sequence[int], depth: int) -> Items:
    """A view whose stack has its axes in this order (it gets as many as there are)."""
    new = (None,) * (len(axes) - (x.ndim - depth))
    order = (*axes, *range(len(axes), len(axes) + depth))
    if isinstance(x, np.ndarray):
        return x[new].transpose(order)
    return x._view(structure.index, new)._view(np.ndarray.transpose, order)


def _each(found: Any, function: Callable[[Any], object]) -> object:
    if isinstance(found, engine.Handle | np.ndarray):
        return function(found)
    return rebuild(type(found), [function(x) for x in found])


def _run(
    function: Function,
    handles: Sequence[Any],
    depths: list[int],
    stack: Shape,
    name: str,
    axis: int,
    first: list[np.dtype] | None,
    library: bool,
    wrote: list[bool] | None = None,
) -> object:
    if isinstance(handles[0], np.ndarray):
        return _run_on_only_rank(function, handles, len(stack), name, axis, first)
    layout = _division(handles, depths, stack)
    layouts = [_share(layout, tuple(x.shape), depth) for x, depth in zip(handles, depths, strict=True)]
    pairs = [(engine.aligned(x, its), its) for x, its in zip(handles, layouts, strict=True)]
    held = blocks(*pairs, library=library)
    holders = layout.holders()
    if not holders:  # no items at all: every rank hears what NumPy says to that
        held = [np.empty(x.shape, x.dtype) for x in handles]
    mine = not holders or engine.runtime().rank in holders
    told, results = _computed(function, held if mine else None, len(stack), name)
    if not mine and not engine.runtime().computes:  # all others are taken to tell what this rank tells
        items = [_item(x, depth, len(stack)) for x, depth in zip(handles, depths, strict=True)]
        told, _ = _computed(function, items, len(stack), name)
    if first and told.results:
        told.results = [(first[-1], told.results[0][1])]
    told.wrote = bool(wrote)
    comm = engine.runtime().comm
    everyone = comm.allgather(told) if comm.size > 1 else [told]
    if wrote is not None:
        wrote[:] = [any(each.wrote for each in everyone)]
    _raise_and_warn(everyone, holders or range(1))
    if first is not None and holders:
        _follow_first(everyone, layout)
    return _assembled(everyone, results if holders else [], layout, axis)


def _run_on_only_rank(
    function: Function,
    arrays: Sequence[np.ndarray],
    depth: int,
    name: str,
    axis: int,
    first: list[np.dtype] | None,
) -> object:
    told, results = _computed(function, list(arrays), depth, name)
    _raise_and_warn([told], [0])
    if first:
        results = [results[0].astype(first[-1], copy=False)]
    if axis != -1:
        results = [moveaxis(x, -1, axis) for x in results]
    return results[0] if told.kind is None else rebuild(told.kind, results)


def _division(handles: Sequence[engine.Handle], depths: list[int], stack: Shape) -> Layout:
    """How the stack is divided: as the largest operand lies, if its items are whole and all ranks have some."""
    largest = max(zip(handles, depths, strict=True), key=lambda entry: (engine.is_sharded(entry[0]), entry[0].size))
    x, depth = largest
    count = x.ndim - depth
    layout = engine.layout_of(x) if engine.is_sharded(x) and tuple(x.shape[:count]) == stack else None
    if (
        layout is not None
        and all(a < count for a in layout.cut_axes)
        and not any(isinstance(what, Pinned) for what in layout.dims)
    ):
        return _of_stack(layout, count) if depth else layout
    layout = engine.default_layout(stack)
    # Ranks with copies would compute the same items.
    return engine.default_layout(stack, split=int(np.argmax(stack))) if layout.has_copies else layout


@lru_cache(maxsize=1024)
def _of_stack(layout: Layout, ndim: int) -> Layout:
    """The layout of the leading axes."""
    return layout.drop_axes(range(ndim, layout.ndim))


@lru_cache(maxsize=1024)
def _share(layout: Layout, shape: Shape, depth: int) -> Layout:
    """The layout of an operand, or of a result, of a stack that is divided so."""
    lead = layout.ndim - (len(shape) - depth)
    dims = tuple(
        (Cut(d.axis - lead, d.points) if d.axis >= lead and shape[d.axis - lead] == layout.shape[d.axis] else Copies())
        if isinstance(d, Cut)
        else d
        for d in layout.dims
    )
    return Layout(shape, layout.mesh, dims)


def _computed(
    function: Function, held: list[np.ndarray] | None, depth: int, name: str
) -> tuple[Told, list[np.ndarray]]:
    """What this rank's items give, if it has any, and what there is to tell."""
    told, made = Told(), None
    with events_reported(name), outcome.Recorded(told.warnings):  # all ranks enter: its end may be collective
        try:
            made = None if held is None else function(*held)
        except Exception as error:  # whatever NumPy raises, every rank raises
            told.error = portable_error(error)
    if made is None:
        return told, []
    several = isinstance(made, tuple | list)
    results = [x if engine.lies_on_device(x) else np.asarray(x) for x in (made if several else (made,))]
    told.kind = type(made) if several else None
    told.results = [(x.dtype, x.shape[depth:]) for x in results]
    return told, results


def _raise_and_warn(everyone: list[Told], ranks: Iterable[int]) -> None:
    log: dict[tuple[type[Warning], str], tuple[type[Warning], Warning | str]] = {}
    for rank in ranks:
        for category, message in everyone[rank].warnings:
            log.setdefault((category, str(message)), (category, message))
        error = everyone[rank].error
        if error is not None:
            outcome.warn_again(list(log.values()))
            raise restored(error)
    outcome.warn_again(list(log.values()))


def _follow_first(everyone: list[Told], layout: Layout) -> None:
    """Let the rank of the first item tell the dtypes and shapes for all."""
    boxes = {rank: layout.box(rank) for rank in layout.holders()}
    leader = next(rank for rank, box in boxes.items() if box is not None and not any(low for low, _ in box))
    results = everyone[leader].results or []
    for rank in boxes:
        for (_, shape), (_, wanted) in zip(everyone[rank].results or [], results, strict=True):
            if shape != wanted:
                raise ValueError(f"could not broadcast input array from shape {shape} into shape {wanted}")
        everyone[rank].results = results


def _common_dtype(dtypes: list[np.dtype]) -> np.dtype:
    """NumPy's common dtype, in the byte order that all have; records have one for each field."""
    if all(dtype == dtypes[0] for dtype in dtypes):
        return dtypes[0]
    kind = np.result_type(*dtypes)
    return kind if any(dtype.isnative for dtype in dtypes) else kind.newbyteorder()


def _assembled(everyone: list[Told], results: list[np.ndarray], layout: Layout, axis: int) -> object:
    """The results as arrays of ours: widths of strings, real or complex may follow from all items together."""
    reports = [told for told in everyone if told.results is not None]
    columns = zip(*(told.results or () for told in reports), strict=True)
    kinds = [_common_dtype([dtype for dtype, _ in column]) for column in columns]
    made = []
    for number, kind in enumerate(kinds):
        item = (reports[0].results or [])[number][1]
        shape = (*layout.shape, *item)
        if not kind.itemsize:  # strings without characters take no memory that could be cut
            made.append(engine.replicated(np.zeros(shape, [("f", kind)])["f"]))
            continue
        its = _share(layout, shape, len(item))
        box = its.box(engine.runtime().rank)
        if results:
            block = results[number] if results[number].dtype == kind else results[number].astype(kind)
        else:
            block = np.empty(() if box is None else tuple(hi - lo for lo, hi in box), kind)
        if axis != -1:
            block = moveaxis(block, -1, axis) if box is not None else block
            order = list(range(len(shape) - 1))
            order.insert(axis, len(shape) - 1)
            its = its.transpose(order)
        made.append(engine.from_local(block, its, new=True))
    if reports[0].kind is None:
        return made[0]
    return rebuild(reports[0].kind, made)
