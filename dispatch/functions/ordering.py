"""Sorting: values, the positions that they had, by one key or by several; partitions."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from numpy_dist import engine
from numpy_dist.backends.library import compute
from numpy_dist.dispatch.core.registry import decline, implements
from numpy_dist.dispatch.patterns.arguments import NoValue, as_handle, blocks, everywhere, metadata
from numpy_dist.dispatch.patterns.axis_local import along, long_rows, row_by_row
from numpy_dist.dispatch.patterns.numpy_source import adopt
from numpy_dist.ir.rules import copy_axes
from numpy_dist.layout.layout import Cut, Layout
from numpy_dist.parallel import key_sort, on_device, sample_sort
from numpy_dist.parallel.division import PLAIN, Workspace

if hasattr(np, "msort"):
    adopt(__name__, np.msort)


@implements(np.sort, kind="parallel", varies=("descending",))
def sort(
    a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None, descending: Any = NoValue
) -> Any:
    """Collective where the axis is cut: a redistribution, or the exchange of a sample sort for a single axis."""
    options = _options(kind, order, stable, descending)
    a, axis = _arguments(np.sort, a, axis, options)
    if a.ndim == 1:
        return _sorted(a, options)
    memory = copy_axes("K", a._array)
    if memory is None:
        return _sorted_rows(a, axis, options)
    # The result has, as in NumPy, the operand's memory order.
    rows = _sorted_rows(a.transpose(memory), memory.index(axis), options)
    return engine.as_made(rows.transpose(np.argsort(memory).tolist()))


def _sorted_rows(a: Any, axis: int, options: dict[str, Any]) -> Any:
    if long_rows(a, axis):
        return row_by_row(lambda row: _sorted(row, options), a, axis)
    values_only = not {"descending", "order"} & options.keys()  # then all ways of sorting give the same

    def sort_rows(block: Any) -> Any:
        return compute("sort", lambda rows: np.sort(rows, axis, **options), block, axis=axis)

    return along(sort_rows, a, axis, keepdims=True, library=values_only)


def _sorted(a: Any, options: dict[str, Any]) -> Any:
    """The elements of a one-dimensional array in order (collective)."""
    if "descending" in options:
        return _descending(a, sorted_only=True)
    device = _device(a, options)
    if device is not None:
        layout = ascending_layout(a)
        part, counts = on_device.sort(blocks((engine.aligned(a, layout), layout), library=True)[0], device)
        return engine.from_local(part, cut_at(counts, layout))
    with engine.Scratch() as scratch:
        part, counts, layout = sorted_part(a, options, scratch)
        return engine.from_local(part, cut_at(counts, layout))


def _device(a: Any, options: dict[str, Any]) -> Any:
    """What sorts the elements of an array where they lie; None where the host does (complex numbers, own orders)."""
    ours = a.dtype.kind != "c" and not {"descending", "order"} & options.keys()
    return engine.device(a.dtype) if ours else None


def sorted_part(
    a: Any, options: dict[str, Any] | None = None, space: Workspace = PLAIN
) -> tuple[np.ndarray, list[int], Layout]:
    """This rank's part of the elements of a one-dimensional array in order (collective).

    Returns
    -------
    part : ndarray
    counts : list of int
        How many elements each rank has.
    layout : Layout
        That of the elements before: the ranks are in the same order.
    """
    options = options or {}
    layout = ascending_layout(a)
    (block,) = blocks((engine.aligned(a, layout), layout))
    comm = engine.runtime().comm
    if a.dtype.kind == "V":
        (part,), counts = key_sort.sort([block], _by_fields(a.dtype, options.get("order")), comm)
    else:
        part, counts = sample_sort.sort(block, options.get("kind"), comm, space)
    return part, counts, layout


@implements(np.argsort, kind="parallel", varies=("descending",))
def argsort(
    a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None, descending: Any = NoValue
) -> Any:
    """As `sort`. Always stable along a single axis."""
    options = _options(kind, order, stable, descending)
    a, axis = _arguments(np.argsort, a, axis, options)
    if a.ndim == 1:
        return _positions(a, options)
    if long_rows(a, axis):
        return row_by_row(lambda row: _positions(row, options), a, axis)

    def sort_rows(block: Any) -> Any:
        return compute("argsort", lambda rows: np.argsort(rows, axis, **options), block, axis=axis)

    return along(sort_rows, a, axis, keepdims=True, library=not {"descending", "order"} & options.keys())


def _positions(a: Any, options: dict[str, Any]) -> Any:
    if "descending" in options:
        return _descending(a)
    if a.dtype.kind == "V":
        return ordered(a, options.get("order"))[1]
    layout, device = ascending_layout(a), _device(a, options)
    (block,) = blocks((engine.aligned(a, layout), layout), library=device is not None)
    first = first_position(layout)
    if device is not None:
        _, positions, counts = on_device.argsort(block, first, device)
        return engine.from_local(positions, cut_at(counts, layout))
    with engine.Scratch() as scratch:
        positions, counts = sample_sort.positions_in_order(block, first, engine.runtime().comm, scratch)
        return engine.from_local(positions, cut_at(counts, layout))


def ordered(a: Any, order: Any = None) -> tuple[Any, Any]:
    """The elements of a one-dimensional array in order and the positions that they had, stable (collective)."""
    device = _device(a, {} if order is None else {"order": order})
    if device is not None:
        layout = ascending_layout(a)
        (block,) = blocks((engine.aligned(a, layout), layout), library=True)
        values, positions, counts = on_device.argsort(block, first_position(layout), device)
    else:
        values, positions, counts, layout = ordered_parts(a, order)
    result = cut_at(counts, layout)
    return engine.from_local(values, result), engine.from_local(positions, result)


def ordered_parts(a: Any, order: Any = None) -> tuple[np.ndarray, np.ndarray, list[int], Layout]:
    """As `sorted_part`, stable; after the elements the positions that they had."""
    layout = ascending_layout(a)
    (block,) = blocks((engine.aligned(a, layout), layout))
    comm = engine.runtime().comm
    first = first_position(layout)
    if a.dtype.kind == "V":
        positions = np.arange(first, first + len(block))
        (values, positions), counts = key_sort.sort([block, positions], _by_fields(a.dtype, order), comm)
    else:
        values, positions, counts = sample_sort.argsort(block, first, comm)
    return values, positions, counts, layout


def _descending(a: Any, sorted_only: bool = False) -> Any:
    """Elements, or positions, from the largest to the smallest, those that are no numbers last, stable (collective)."""
    values, positions = ordered(a[::-1])
    found = values[::-1] if sorted_only else (a.size - 1 - positions)[::-1]
    count = int(np.count_nonzero(np.isnan(a))) if a.dtype.kind in "fmM" else 0
    return np.concatenate([found[count:], found[:count]]) if count else engine.copy(found)


def _by_fields(dtype: np.dtype, order: Any) -> key_sort.Columns:
    """The key of structured arrays: themselves, with the fields of `order` before the others."""
    if order is None or dtype.names is None:
        return lambda arrays: arrays[:1]
    first = [order] if isinstance(order, str) else list(order)
    names = [*first, *(name for name in dtype.names if name not in first)]
    fields: Any = dtype.fields
    kind = np.dtype(
        {
            "names": names,
            "formats": [fields[name][0] for name in names],
            "offsets": [fields[name][1] for name in names],
            "itemsize": dtype.itemsize,
        }
    )
    return lambda arrays: [arrays[0].view(kind)]


def _options(kind: Any, order: Any, stable: Any, descending: Any) -> dict[str, Any]:
    """The options that were given."""
    found = {"kind": kind, "order": order, "stable": stable}
    if descending is not NoValue and descending:  # since NumPy 2.5
        found["descending"] = True
    return {name: value for name, value in found.items() if value is not None}


def _arguments(function: Any, a: Any, axis: Any, options: dict[str, Any]) -> tuple[Any, int]:
    """The array and the axis; NumPy's errors for what does not fit."""
    a = as_handle(a)
    function(np.zeros(tuple(min(n, 1) for n in a.shape), a.dtype), axis, **options)
    if not engine.shardable(a.dtype):
        decline(f"sorting of dtype {a.dtype}")
    if "descending" in options and a.dtype.kind in "cV":
        decline(f"sorting of dtype {a.dtype} in descending order")
    if axis is None or a.ndim == 0:
        a, axis = np.ravel(a), 0
    return a, normalize_axis_index(axis, a.ndim)


def ascending_layout(a: Any) -> Layout:
    """The layout of an array whose ranks hold ascending parts of the first axis: its own, or the default one."""
    found = engine.layout_of(a) if engine.is_sharded(a) else None
    if found is not None and found.mesh.ndim == 1 and isinstance(found.dims[0], Cut):
        if found.dims[0].axis == 0 and not found.dims[0].descends:
            return found
    return engine.default_layout(tuple(a.shape), split=0)


def first_position(layout: Layout) -> int:
    """The position of this rank's first row."""
    box = layout.box(engine.runtime().rank)
    assert box is not None
    return box[0][0]


def cut_at(counts: list[int], layout: Layout) -> Layout:
    """The layout in which the ranks have so many rows."""
    return Layout((sum(counts), *layout.shape[1:]), layout.mesh, (Cut(0, tuple(accumulate(counts, initial=0))),))


@implements(np.lexsort, kind="parallel")
def lexsort(keys: Any, axis: int = -1) -> Any:
    """Collective where the axis is cut: a redistribution, or one sample sort by all keys for a single axis."""
    # An array is not iterated over: its rows are views.
    columns = [as_handle(key) for key in ([keys[row] for row in range(len(keys))] if engine.is_handle(keys) else keys)]
    few = tuple(np.zeros(tuple(min(n, 2) for n in key.shape), key.dtype) for key in columns)
    np.lexsort(few, axis)  # NumPy's errors
    if len({tuple(key.shape) for key in columns}) > 1:
        raise ValueError("all keys need to be the same shape")
    if not all(engine.shardable(key.dtype) for key in columns):
        decline("keys that are Python objects or of variable width")
    if not columns[0].ndim:
        return np.lexsort(few)
    axis = normalize_axis_index(axis, columns[0].ndim)
    if columns[0].ndim == 1:
        return _by_keys(*columns)
    first, *beside = columns
    if long_rows(first, axis):
        return row_by_row(_by_keys, first, axis, beside)
    return along(lambda *parts: np.lexsort(parts, axis), first, axis, keepdims=True, beside=beside)


def _by_keys(*columns: Any) -> Any:
    layout = ascending_layout(columns[0])
    parts = blocks(*((engine.aligned(key, layout), layout) for key in columns))
    first = first_position(layout)
    arrays = [*parts, np.arange(first, first + len(parts[0]))]
    found, counts = key_sort.sort(arrays, lambda rows: rows[: len(columns)], engine.runtime().comm)
    return engine.from_local(found[-1], cut_at(counts, layout))


@implements(np.sort_complex, kind="composed")
def sort_complex(a: Any) -> Any:
    """As `sort`."""
    found = np.sort(as_handle(a))
    return np.astype(found, np.sort_complex(np.zeros(0, found.dtype)).dtype, copy=False)


@implements(np.partition, kind="composed")
def partition(a: Any, kth: Any, axis: Any = -1, kind: str = "introselect", order: Any = None) -> Any:
    """A sorted array is one that is partitioned, at any place."""
    _check_places(np.partition, a, kth, axis, kind, order)
    return np.sort(a, axis=axis, order=order)


@implements(np.argpartition, kind="composed")
def argpartition(a: Any, kth: Any, axis: Any = -1, kind: str = "introselect", order: Any = None) -> Any:
    """As `partition`."""
    _check_places(np.argpartition, a, kth, axis, kind, order)
    return np.argsort(a, axis=axis, order=order)


def _check_places(function: Any, a: Any, kth: Any, axis: Any, kind: str, order: Any) -> None:
    """NumPy's errors, which depend on the shape and the places."""
    places = everywhere(kth, function, "every rank looks at the places") if engine.is_handle(kth) else np.asarray(kth)
    if axis is None or not a.ndim and function is np.argpartition:
        shape: tuple[int, ...] = (a.size,)
    else:
        normalize_axis_index(axis, a.ndim)
        shape = tuple(n if i == axis % a.ndim else min(n, 1) for i, n in enumerate(a.shape))
    few = np.zeros((1,) * len(shape), metadata(a).dtype)
    function(few, np.zeros(places.shape, places.dtype), axis or 0, kind, order)
    if not a.size:  # NumPy looks at no place
        return
    length = shape[0 if len(shape) == 1 or axis is None else axis]
    for place in places.ravel():
        if not -length <= place < length:
            raise ValueError(f"kth(={place + length if place < 0 else place}) out of bounds ({length})")
