"""The axis-local pattern: a function of whole rows along an axis; each rank computes those that it has.

Needs: the axis whole on each rank (a redistribution, if it is cut: `whole_layout`). A rank calls the function with its
block. Nothing else is communicated, but, where the function may warn or raise on some ranks only, one allgather. The
result lies as the block does, with or without the axis. For functions that keep other axes as they are; where dtype or
shape depend on the values there is `stacks.along_axis`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from numpy_dist import engine
from numpy_dist.argument_types import Function
from numpy_dist.comm.portable import first_error, portable_error
from numpy_dist.dispatch.core import outcome
from numpy_dist.dispatch.patterns.arguments import moveaxis
from numpy_dist.dispatch.patterns.blocks import blocks
from numpy_dist.ir import structure
from numpy_dist.layout.layout import Layout

if TYPE_CHECKING:
    from numpy_dist.dispatch.patterns.structural import H

# Rows that are fewer than the ranks, and longer than so many bytes, are not brought to single ranks.
LONG_ROW = 1 << 20
_OF_A_ROW = "All-NaN slice encountered"


def along(
    function: Callable[..., np.ndarray],
    a: engine.Handle,
    axis: int,
    keepdims: bool = False,
    front: int = 0,
    beside: Sequence[engine.Handle] = (),
    agreed: bool = False,
    library: bool = False,
) -> Any:
    """A function of whole rows along an axis, which is made whole on each rank first (a redistribution if it is cut).

    Collective where the axis is cut, or where `agreed`.

    Parameters
    ----------
    function : callable
        Of this rank's block, and of its blocks of the arrays `beside`. It leaves the other axes as they are, and either
        keeps `axis` (`keepdims`, with any extent), or drops it; and it may put `front` new axes before all others.
    beside : sequence of handle
        More arrays of the same shape.
    agreed : bool
        Whether the function may warn or raise on some ranks only: all do then (one more allgather).
    library : bool
        Whether the function also takes arrays of a device (`backends.library.compute`).
    """
    layout = layout_along(a, axis)
    parts = blocks(*((engine.aligned(x, layout), layout) for x in (a, *beside)), library=library)
    block = parts[0]
    if not block.size:  # a row tells what becomes of shape and dtype; of ones, which may be weights
        shape = tuple(n if other == axis else min(n, 1) for other, n in enumerate(a.shape))
        parts = [np.ones(shape, x.dtype) if x.dtype.kind in "biufc" else np.zeros(shape, x.dtype) for x in parts]
    if agreed:
        made = _on_all_ranks(function, parts, bool(block.size), layout.primary(engine.runtime().rank))
    else:
        made = function(*parts)
    lead, extent = made.shape[:front], made.shape[front + axis] if keepdims else 0
    if not block.size:
        others = [extent if i == axis else n for i, n in enumerate(block.shape) if keepdims or i != axis]
        made = np.empty((*lead, *others), made.dtype)
    rest = layout if keepdims else layout.drop_axes([axis])
    if keepdims and extent != a.shape[axis]:
        rest = rest.with_shape([extent if i == axis else n for i, n in enumerate(rest.shape)])
    return engine.from_local(made, rest.insert_axes(range(front), lead) if front else rest, new=True)


def whole_along(x: H, axis: int) -> tuple[H, Layout]:
    """The array, redistributed (recorded) if it is cut along this axis, and its layout."""
    layout = layout_along(x, axis)
    return engine.aligned(x, layout), layout


def layout_along(x: engine.Handle, axis: int) -> Layout:
    """The layout of an array in which an axis is whole: its own, unless that cuts the axis."""
    layout = engine.layout_of(x) if engine.is_sharded(x) else None
    return whole_layout(tuple(x.shape), axis) if layout is None or layout.cut_of(axis) is not None else layout


def whole_layout(shape: tuple[int, ...], axis: int) -> Layout:
    """A layout in which an axis is whole: the longest of the others is cut, or several where none is long enough.

    An array of one axis comes to every rank: callers go from rank to rank with it (`parallel.sequential_pipeline`), or
    divide it in another way.
    """
    others = [other for other in range(len(shape)) if other != axis]
    if not others:
        return engine.runtime().replicated_layout(shape)
    longest = max(others, key=lambda other: shape[other])
    if shape[longest] < engine.runtime().size:
        found = engine.default_layout(tuple(shape[other] for other in others))
        if not found.has_copies:
            return found.insert_axes([axis], [shape[axis]])
    return engine.default_layout(shape, split=longest)


def long_rows(a: engine.Handle, axis: int) -> bool:
    """Whether there are fewer rows than ranks, each too long for one: an algorithm has to divide every single one."""
    others = prod(n for other, n in enumerate(a.shape) if other != axis)
    if not 0 < others < engine.runtime().size or a.shape[axis] * a.dtype.itemsize <= LONG_ROW:
        return False
    layout = engine.layout_of(a) if engine.is_sharded(a) else None
    return layout is None or layout.cut_of(axis) is not None


def row_by_row(function: Function, a: engine.Handle, axis: int, beside: Sequence[engine.Handle] = ()) -> Any:
    """A function of distributed one-dimensional arrays, of one row after the other; what it gives is along `axis`."""
    others = [n for other, n in enumerate(a.shape) if other != axis]
    rows = []
    for index in np.ndindex(*others):
        key = (*index[:axis], slice(None), *index[axis:])
        rows.append(function(*(x._view(structure.index, key) for x in (a, *beside))))
    made = np.stack(rows)
    return moveaxis(np.reshape(made, (*others, *made.shape[1:])), len(others), axis)


def _on_all_ranks(function: Function, parts: list[np.ndarray], counts: bool, primary: bool) -> Any:
    """Call a function on each rank's own; the warnings and the error of any rank are those of all (collective).

    NumPy warns of each row that is all NaN: as often as the ranks that own rows do (`primary`). Of the rest it warns
    once, however many ranks do.
    """
    log: list[tuple[type[Warning], Warning | str]] = []
    made, error = None, None
    with outcome.Recorded(log):
        try:
            made = function(*parts)
        except Exception as problem:  # of whatever kind: it is raised below, on every rank
            error = problem
    if not counts:  # a row of which nobody wants to hear
        log = []
    comm = engine.runtime().comm
    told = comm.allgather((portable_error(error), primary, [(kind, str(message)) for kind, message in log]))
    once = dict.fromkeys(entry for *_, entries in told for entry in entries)
    by_row = [entry for _, owns, entries in told if owns for entry in entries if entry[1] == _OF_A_ROW]
    outcome.warn_again([entry for entry in once if entry[1] != _OF_A_ROW] + by_row)
    found = first_error((raised for raised, *_ in told), comm.rank, error)
    if found is not None:
        raise found[1]
    return made
