"""The sort pattern: a single line that is cut between the ranks, in order, by one key or by several.

Needs: ascending parts. A rank sorts its part; a sample sort exchanges elements (with the positions that they had), and
the ranks tell each other how many they have then. The result is cut where these counts meet. (Lines that are whole on a
rank are sorted by NumPy: `axis_local`.)
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from numpy_dist import engine
from numpy_dist.argument_types import Keywords
from numpy_dist.dispatch.patterns.blocks import blocks, row_layout
from numpy_dist.layout.layout import Cut, Layout
from numpy_dist.parallel import key_sort, on_device, sample_sort
from numpy_dist.parallel.division import PLAIN, Workspace

if TYPE_CHECKING:
    from numpy_dist.dispatch.patterns.structural import H


def sort_line(a: H, options: Keywords) -> H:
    """The elements of a one-dimensional array in order (collective)."""
    if "descending" in options:
        return _descending(a, sorted_only=True)
    device = _device(a, options)
    if device is not None:
        layout = row_layout(a)
        part, counts = on_device.sort(blocks((engine.aligned(a, layout), layout), library=True)[0], device)
        return engine.from_local(part, cut_at(counts, layout), new=True)
    with engine.Scratch() as scratch:
        part, counts, layout = sorted_part(a, options, scratch)
        return engine.from_local(part, cut_at(counts, layout))


def _device(a: engine.Handle | np.ndarray, options: Keywords) -> engine.Device | None:
    """What sorts the elements of an array where they lie; None where the host does (complex numbers, own orders)."""
    ours = a.dtype.kind != "c" and not {"descending", "order"} & options.keys()
    return engine.device(a.dtype) if ours else None


def sorted_part(
    a: engine.Handle | np.ndarray, options: Keywords | None = None, space: Workspace = PLAIN
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
    layout = row_layout(a)
    (block,) = blocks((engine.aligned(a, layout), layout))
    comm = engine.runtime().comm
    if a.dtype.kind == "V":
        (part,), counts = shares(*key_sort.sort([block], _by_fields(a.dtype, options.get("order")), comm), layout)
    else:
        part, counts = sample_sort.sort(block, _kind(options), comm, space, layout.shape[0])
        (part,), counts = shares([part], counts, layout)
    return part, counts, layout


def _kind(options: Keywords) -> object:
    """NumPy's kind of sorting, as it was asked for by one of two names."""
    return "stable" if options.get("stable") else options.get("kind")


def argsort_line(a: H, options: Keywords) -> H:
    if "descending" in options:
        return _descending(a)
    if a.dtype.kind == "V":
        return ordered(a, options.get("order"))[1]
    layout, device = row_layout(a), _device(a, options)
    (block,) = blocks((engine.aligned(a, layout), layout), library=device is not None)
    first = first_position(layout)
    if device is not None:
        positions, counts = on_device.positions_in_order(block, first, device)
        return engine.from_local(positions, cut_at(counts, layout), new=True)
    with engine.Scratch() as scratch:
        positions, counts = sample_sort.positions_in_order(
            block, first, engine.runtime().comm, scratch, layout.shape[0]
        )
        (positions,), counts = shares([positions], counts, layout)
        return engine.from_local(positions, cut_at(counts, layout))


def ordered(a: engine.Handle | np.ndarray, order: str | Sequence[str] | None = None) -> tuple[Any, Any]:
    """The elements of a one-dimensional array in order and the positions that they had, stable (collective)."""
    device = _device(a, {} if order is None else {"order": order})
    if device is not None:
        layout = row_layout(a)
        (block,) = blocks((engine.aligned(a, layout), layout), library=True)
        values, positions, counts = on_device.argsort(block, first_position(layout), device)
    else:
        values, positions, counts, layout = ordered_parts(a, order)
    result = cut_at(counts, layout)
    return engine.from_local(values, result), engine.from_local(positions, result)


def ordered_parts(
    a: engine.Handle | np.ndarray, order: str | Sequence[str] | None = None
) -> tuple[np.ndarray, np.ndarray, list[int], Layout]:
    """As `sorted_part`, stable; after the elements the positions that they had."""
    layout = row_layout(a)
    (block,) = blocks((engine.aligned(a, layout), layout))
    comm = engine.runtime().comm
    first = first_position(layout)
    if a.dtype.kind == "V":
        positions = np.arange(first, first + len(block))
        found = key_sort.sort([block, positions], _by_fields(a.dtype, order), comm)
        (values, positions), counts = shares(*found, layout)
    else:
        *parts, counts = sample_sort.argsort(block, first, comm, total=layout.shape[0])
        (values, positions), counts = shares(parts, counts, layout)
    return values, positions, counts, layout


def _descending(a: Any, sorted_only: bool = False) -> Any:
    """Elements, or positions, from the largest to the smallest, those that are no numbers last, stable (collective)."""
    values, positions = ordered(a[::-1])
    found = values[::-1] if sorted_only else (a.size - 1 - positions)[::-1]
    count = int(np.count_nonzero(np.isnan(a))) if a.dtype.kind in "fmM" else 0
    return np.concatenate([found[count:], found[:count]]) if count else engine.copy(found)


def _by_fields(dtype: np.dtype, order: str | Sequence[str] | None) -> key_sort.Columns:
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


def first_position(layout: Layout) -> int:
    """The position of this rank's first row."""
    box = layout.box(engine.runtime().rank)
    assert box is not None
    return box[0][0]


def cut_at(counts: list[int], layout: Layout) -> Layout:
    """The layout in which the ranks have so many rows."""
    return Layout((sum(counts), *layout.shape[1:]), layout.mesh, (Cut(0, tuple(accumulate(counts, initial=0))),))


def shares(parts: list[Any], counts: list[int], layout: Layout) -> tuple[list[Any], list[int]]:
    """This rank's parts of what is sorted, and how many elements each rank has.

    Where nothing is computed they are even shares: what other ranks are taken to have may add up to another number of
    elements than there are.
    """
    if engine.runtime().computes:
        return parts, counts
    points = [layout.shape[0] * rank // len(counts) for rank in range(len(counts) + 1)]
    counts = [hi - lo for lo, hi in pairwise(points)]
    own = counts[engine.runtime().rank]
    return [np.resize(part, (own, *part.shape[1:])) if len(part) != own else part for part in parts], counts


def lexsort_line(*columns: engine.Handle) -> engine.Handle:
    layout = row_layout(columns[0])
    parts = blocks(*((engine.aligned(key, layout), layout) for key in columns))
    first = first_position(layout)
    arrays = [*parts, np.arange(first, first + len(parts[0]))]
    sorted_rows = key_sort.sort(arrays, lambda rows: rows[: len(columns)], engine.runtime().comm)
    found, counts = shares(*sorted_rows, layout)
    return engine.from_local(found[-1], cut_at(counts, layout))
