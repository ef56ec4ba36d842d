"""Scans (running sums and the like) along an axis that is cut: each shard by itself, then what came before it.

The totals of the shards are scanned in steps of doubling distance (Hillis and Steele, "Data parallel algorithms", CACM
1986): one slice to one other rank in each of log2(ranks) steps, the same order of operations at every rank.

A shard's own product may overflow, or vanish, where the product of all elements so far does not. So where a rank has
met a floating-point event, results are passed on from rank to rank: NumPy's own order, with its events.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from numpy_dist.argument_types import Keywords
from numpy_dist.backends.library import library_of, on_host
from numpy_dist.layout.layout import Cut, Layout
from numpy_dist.layout.regions import box_empty

if TYPE_CHECKING:
    from numpy_dist.comm.base import Communicator


def column(layout: Layout, rank: int, axis: int) -> list[int]:
    """The ranks that hold a row along an axis of which this rank holds a part, in the order of their parts.

    Those that hold nothing are left out.
    """
    dimension = next(d for d, what in enumerate(layout.dims) if isinstance(what, Cut) and what.axis == axis)
    coordinates = list(layout.mesh.coordinates(rank))
    members = []
    for coordinate in range(layout.mesh.shape[dimension]):
        coordinates[dimension] = coordinate
        other = layout.mesh.rank(coordinates)
        box = layout.box(other)
        if box is not None and not box_empty(box):
            members.append((box[axis][0], other))
    return [other for _, other in sorted(members)]


def accumulate(
    ufunc: np.ufunc,
    block: np.ndarray,
    layout: Layout,
    axis: int,
    dtype: np.dtype,
    comm: Communicator,
    empty: Callable[..., np.ndarray] = np.empty,
) -> np.ndarray:
    """This rank's box of ``ufunc.accumulate(array, axis, dtype)`` for an associative operation.

    Collective where the axis is cut: messages within each column of ranks, and of inexact numbers one allgather.

    Parameters
    ----------
    block : ndarray
        This rank's box of `layout`.
    dtype : dtype
        Of the result.
    comm : Communicator
    empty : callable
        ``empty(shape, dtype)`` makes the result's memory.

    Returns
    -------
    ndarray
        New memory; without elements where `block` has none.
    """
    library = library_of(block)
    scanned = None if library is None else library.accumulate(block, ufunc, axis, dtype)
    if scanned is None:
        block = on_host(block)
    # Ufuncs take no units of time as a dtype: those of the operand are the result's.
    loop = None if dtype.kind in "mM" else dtype
    made: np.ndarray = empty(block.shape, dtype) if scanned is None else scanned
    if layout.cut_of(axis) is None or comm.size == 1:  # all of each row, in NumPy's order and with its events
        return ufunc.accumulate(block, axis, loop, made) if scanned is None and block.size else made
    inexact = dtype.kind in "fc"
    events: list[str] = []
    watch: Keywords = {"all": "call", "call": lambda kind, flag: events.append(kind)} if inexact else {}
    members = column(layout, comm.rank, axis) if block.size else []
    if block.size:
        place = members.index(comm.rank)
        with np.errstate(**watch):
            if scanned is None:
                ufunc.accumulate(block, axis, loop, made)
            before = None
            if len(members) > 1:
                before = _before(ufunc, np.ascontiguousarray(on_host(_slice(made, axis, -1))), members, place, comm)
            if before is not None and scanned is None:
                ufunc(before, made, out=made, dtype=loop)
            elif before is not None:
                assert library is not None
                made = ufunc(library.upload(before), made)
                if inexact and not np.abs(before).max() < np.finfo(dtype).max / 8:
                    events.append("overflow")  # devices tell of none
    lost = any(comm.allgather(bool(events))) if inexact and comm.size > 1 else bool(events)
    if lost and block.size:
        return _passed_on(ufunc, on_host(block), axis, dtype, members, place, comm)
    return made


def _slice(array: np.ndarray, axis: int, index: int) -> np.ndarray:
    """One slice along an axis, which stays with extent 1."""
    key: tuple[slice, ...] = (slice(None),) * axis + (slice(index, None) if index == -1 else slice(index, index + 1),)
    return array[key]


def _before(
    ufunc: np.ufunc, total: np.ndarray, members: list[int], place: int, comm: Communicator
) -> np.ndarray | None:
    """The fold of the totals of all members before this one; None for the first."""
    before: np.ndarray | None = None
    distance = 1
    while distance < len(members):
        sends = [(members[place + distance], total)] if place + distance < len(members) else []
        receives = [(members[place - distance], np.empty_like(total))] if place >= distance else []
        comm.transfer(sends, receives)
        for _, received in receives:
            before = received if before is None else ufunc(received, before)
            total = ufunc(received, total)
        distance *= 2
    return before


def _passed_on(
    ufunc: np.ufunc, block: np.ndarray, axis: int, dtype: np.dtype, members: list[int], place: int, comm: Communicator
) -> np.ndarray:
    """A scan that begins with the last result of the member before this one."""
    if place == 0:
        made = ufunc.accumulate(block, axis, dtype)
    else:
        carried = np.empty(_slice(block, axis, 0).shape, dtype)
        comm.transfer([], [(members[place - 1], carried)])
        longer = np.concatenate([carried, block.astype(dtype)], axis)
        made = np.delete(ufunc.accumulate(longer, axis, dtype), 0, axis)
    if place + 1 < len(members):
        comm.transfer([(members[place + 1], np.ascontiguousarray(_slice(made, axis, -1)))], [])
    return made
