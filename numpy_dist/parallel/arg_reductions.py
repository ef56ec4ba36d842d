"""Positions of extremes (argmin, argmax): found in each shard, then chosen among the shards.

NumPy's own function chooses both times, over candidates in ascending position, so that its rules hold for every dtype:
the first NaN or NaT wins, and of equal elements the first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from numpy_dist.layout.layout import Layout
from numpy_dist.layout.regions import Box, box_empty, box_shape, box_slices
from numpy_dist.parallel.combine import partial_results

if TYPE_CHECKING:
    from numpy_dist.comm.base import Communicator

Choose = Callable[..., np.ndarray]  # np.argmin or np.argmax


def arg_reduce_all(choose: Choose, block: np.ndarray, layout: Layout, comm: Communicator) -> int:
    """The position of the extreme of all elements in C order (collective: one allgather).

    Parameters
    ----------
    block : ndarray
        This rank's box of `layout` (ignored where the rank is no primary owner).
    """
    box = layout.box(comm.rank)
    candidate = np.empty((0,), block.dtype)
    position = 0
    if box is not None and layout.primary(comm.rank) and block.size:
        # The C order of a box is the C order of the whole array, restricted to it.
        within = np.unravel_index(choose(block), block.shape)
        candidate = np.asarray(block[within]).reshape(1)
        for index, (low, _), extent in zip(within, box, layout.shape, strict=True):
            position = position * extent + int(index) + low
    found = comm.allgather((candidate, position))
    ordered = sorted(((where, values) for values, where in found if len(values)), key=lambda entry: entry[0])
    return ordered[int(choose(np.concatenate([values for _, values in ordered])))][0]


def arg_reduce_axis(
    choose: Choose, block: np.ndarray, layout: Layout, axis: int, result: Layout, comm: Communicator
) -> np.ndarray:
    """Positions of the extremes along one axis: this rank's box of the result (collective where the axis is cut).

    Parameters
    ----------
    block : ndarray
        This rank's box of `layout`.
    result : Layout
        How the positions are divided.

    Returns
    -------
    ndarray of intp
        Without elements where this rank holds nothing of the result.
    """
    if layout.cut_of(axis) is None and result == layout.drop_axes([axis]):
        return np.empty(0, np.intp) if layout.box(comm.rank) is None else choose(block, axis=axis)
    boxes = [_candidates_box(layout, rank, axis) for rank in range(comm.size)]
    mine = boxes[comm.rank]
    if mine is None:
        positions, values = np.empty(0, np.intp), np.empty(0, block.dtype)
    else:
        where = choose(block, axis=axis, keepdims=True)
        values = np.take_along_axis(block, where, axis).squeeze(axis)
        positions = (where + _low(layout, comm.rank, axis)).squeeze(axis)
    found = partial_results([values, positions], boxes, result, comm)
    own = result.box(comm.rank)
    if own is None:
        return np.empty(0, np.intp)
    merged = np.empty(box_shape(own), np.intp)
    groups: dict[Box, list[tuple[int, list[np.ndarray]]]] = {}
    for rank, box, arrays in found:
        groups.setdefault(box, []).append((_low(layout, rank, axis), arrays))
    for box, group in groups.items():
        group.sort(key=lambda entry: entry[0])
        best = choose(np.stack([arrays[0] for _, arrays in group]), axis=0)
        every = np.stack([arrays[1] for _, arrays in group])
        merged[box_slices(box, [low for low, _ in own])] = np.take_along_axis(every, best[None], 0)[0]
    return merged


def _candidates_box(layout: Layout, rank: int, axis: int) -> Box | None:
    """For which box of the result a rank has candidates; None without any."""
    box = layout.box(rank)
    if box is None or box_empty(box) or not layout.primary(rank):
        return None
    return box[:axis] + box[axis + 1 :]


def _low(layout: Layout, rank: int, axis: int) -> int:
    box = layout.box(rank)
    return 0 if box is None else box[axis][0]
