"""Partial results that several ranks have for the same elements, brought to the ranks that own the results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from numpy_dist.layout.layout import Layout
from numpy_dist.layout.regions import Box, box_shape, box_slices, full_box, intersect_boxes

if TYPE_CHECKING:
    from numpy_dist.comm.base import Communicator


def partial_results(
    parts: Sequence[np.ndarray], boxes: Sequence[Box | None], layout: Layout, comm: Communicator
) -> list[tuple[int, Box, list[np.ndarray]]]:
    """Send each rank the partial results for what it owns.

    Parameters
    ----------
    parts : sequence of ndarray
        This rank's partial results for its box: one array or several of the box's shape (values and positions, say).
    boxes : sequence of Box or None
        For which box of the result each rank has partial results.
    layout : Layout
        Of the result; where it has copies, each copy gets the same, in the same order.
    comm : Communicator

    Returns
    -------
    list of (rank, box, arrays)
        By ascending rank: what came from it, for which part of this rank's own box.
    """
    rank = comm.rank
    mine, own = boxes[rank], layout.box(rank)
    sends, receives, found = [], [], []
    for other in range(comm.size):
        theirs = layout.box(other)
        common = None if mine is None or theirs is None else intersect_boxes(mine, theirs)
        if common is not None and mine is not None:
            where = box_slices(common, [lo for lo, _ in mine])
            pieces = [np.ascontiguousarray(part[where]) for part in parts]
            if other == rank:
                found.append((rank, common, pieces))
            else:
                sends += [(other, piece) for piece in pieces]
        from_other = boxes[other]
        common = None if other == rank or own is None or from_other is None else intersect_boxes(own, from_other)
        if common is not None:
            buffers = [np.empty(box_shape(common), part.dtype) for part in parts]
            receives += [(other, buffer) for buffer in buffers]
            found.append((other, common, buffers))
    comm.transfer(sends, receives)
    return sorted(found, key=lambda entry: entry[0])


def fold(ufunc: np.ufunc, part: np.ndarray, holders: Sequence[bool], layout: Layout, comm: Communicator) -> np.ndarray:
    """This rank's box of the fold of whole partial results over the ranks that have one, in rank order.

    Parameters
    ----------
    ufunc : numpy.ufunc
        What two partial results are combined with.
    part : ndarray
        This rank's partial result for all of the result (only its dtype matters where the rank has none).
    holders : sequence of bool
        Which ranks have one; at least one has.
    layout : Layout
        Of the result.

    Returns
    -------
    ndarray
        Without elements where this rank holds nothing of the result.
    """
    whole = full_box(layout.shape)
    found = partial_results([part], [whole if has else None for has in holders], layout, comm)
    if not found:
        own = layout.box(comm.rank)
        return np.empty(0 if own is None else box_shape(own), part.dtype)
    result = np.array(found[0][2][0])
    for _, _, (values,) in found[1:]:
        ufunc(result, values, out=result)
    return result
