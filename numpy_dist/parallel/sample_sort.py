"""Sorting along one cut axis: sorting by regular sampling.

Each rank sorts its shard; regular samples of all shards give the splitters, the pieces between them are exchanged, and
each rank sorts what it gets (Shi and Schaeffer, "Parallel sorting by regular sampling", Journal of Parallel and
Distributed Computing 14, 1992). Elements are told apart by (value, rank, position), so that equal ones are divided like
any others: no rank ends with more than its share and ``size / SAMPLES`` elements, whatever the values.
"""

from __future__ import annotations

from itertools import accumulate, pairwise
from typing import Any

import numpy as np

SAMPLES = 64  # of each rank, for each rank


def sort(block: np.ndarray, kind: Any, comm: Any) -> tuple[np.ndarray, list[int]]:
    """This rank's part of all elements in order (collective: two allgathers, a message between any two ranks).

    Parameters
    ----------
    block : ndarray, shape (n,)
        This rank's elements, perhaps none.
    kind
        NumPy's.

    Returns
    -------
    part : ndarray
    counts : list of int
        How many elements each rank has now.
    """
    mine = np.sort(block, kind=kind)
    if comm.size == 1:
        return mine, [len(mine)]
    (part,), counts = _exchanged([mine], mine, comm)
    return np.sort(part, kind=kind), counts


def argsort(block: np.ndarray, first: int, comm: Any) -> tuple[np.ndarray, np.ndarray, list[int]]:
    """As `sort`, with the positions that the elements had; stable.

    Parameters
    ----------
    first : int
        The position of this rank's first element. Ranks hold ascending positions in rank order.

    Returns
    -------
    values, positions, counts
    """
    order = np.argsort(block, kind="stable")
    values, positions = block[order], order + first
    if comm.size == 1:
        return values, positions, [len(values)]
    (values, positions), counts = _exchanged([values, positions], values, comm)
    order = np.argsort(values, kind="stable")  # pieces came in rank order: equal values stay in that of their positions
    return values[order], positions[order], counts


def _exchanged(arrays: list[np.ndarray], keys: np.ndarray, comm: Any) -> tuple[list[np.ndarray], list[int]]:
    """Send each rank its piece of sorted keys and of what goes along with them; and how many elements each gets."""
    ends = _partition(keys, comm)
    table = comm.allgather([stop - start for start, stop in pairwise(ends)])
    counts = [sum(row[rank] for row in table) for rank in range(comm.size)]
    me = comm.rank
    made = []
    sends, receives = [], []
    for array in arrays:
        target = np.empty(counts[me], array.dtype)
        starts = list(accumulate((row[me] for row in table), initial=0))
        for rank in range(comm.size):
            piece, place = array[ends[rank] : ends[rank + 1]], target[starts[rank] : starts[rank + 1]]
            if rank == me:
                place[...] = piece
                continue
            if len(piece):
                sends.append((rank, np.ascontiguousarray(piece)))
            if len(place):
                receives.append((rank, place))
        made.append(target)
    comm.exchange(sends, receives)
    return made, counts


def _partition(keys: np.ndarray, comm: Any) -> list[int]:
    """Where this rank's sorted keys are cut: one position for each splitter, between 0 and the end."""
    wanted = min(len(keys), SAMPLES * comm.size)
    places = (np.arange(wanted) * len(keys)) // max(wanted, 1)
    samples = comm.allgather((keys[places], places, len(keys)))
    values = np.concatenate([found for found, _, _ in samples])
    ranks = np.repeat(np.arange(comm.size), [len(found) for found, _, _ in samples])
    where = np.concatenate([found for _, found, _ in samples])
    # How many elements a sample stands for: shards may have different sizes.
    weights = np.concatenate([np.full(len(found), total / max(len(found), 1)) for found, _, total in samples])
    order = np.argsort(values, kind="stable")  # by rank and position where values are equal
    before = np.cumsum(weights[order]) - weights[order]
    total = sum(length for _, _, length in samples)
    cuts = [0]
    for number in range(1, comm.size):
        index = int(np.searchsorted(before, total * number / comm.size))
        if index >= len(order):
            cuts.append(len(keys))
            continue
        chosen = order[index]
        if comm.rank == ranks[chosen]:
            cut = int(where[chosen])
        else:
            side: Any = "right" if comm.rank < ranks[chosen] else "left"
            cut = int(np.searchsorted(keys, values[chosen], side))
        cuts.append(cut)
    return [*cuts, len(keys)]
