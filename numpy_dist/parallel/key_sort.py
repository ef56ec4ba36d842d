"""Sorting rows by one or several keys along a cut axis: sorting by regular sampling.

As `sample_sort` (Shi and Schaeffer, 1992), for what has more than one array to an element: keys that are compared one
after the other, and whatever travels with them. Rows are told apart by (keys, rank, position): the sort is stable, and
no rank ends with more than its share and ``size / samples`` rows, whatever the keys (`samples` is 64, less for rows of
more than a kilobyte or so).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

import numpy as np

from numpy_dist.parallel.counts import arriving_and_totals

if TYPE_CHECKING:
    from numpy_dist.comm.base import Communicator

SAMPLES = 64  # of each rank, for each rank
_SAMPLE_BYTES = 1 << 22  # of all ranks, about
_PROBES = 256  # rows that a search looks at in one step

Columns = Callable[[Sequence[np.ndarray]], Sequence[np.ndarray]]


def sort(arrays: Sequence[np.ndarray], columns: Columns, comm: Communicator) -> tuple[list[np.ndarray], list[int]]:
    """This rank's part of all rows in order; stable.

    Collective: two allgathers, and a message for each array between any two ranks.

    Parameters
    ----------
    arrays : sequence of ndarray
        This rank's rows (their first axis), perhaps none. Ranks hold ascending positions in rank order.
    columns : callable
        Makes the keys of such arrays: one-dimensional views, the last of which counts most (as for `numpy.lexsort`).

    Returns
    -------
    arrays : list of ndarray
    counts : list of int
        How many rows each rank has now.
    """
    order = np.lexsort(tuple(columns(arrays)))
    arrays = [array[order] for array in arrays]
    if comm.size == 1:
        return arrays, [len(order)]
    arrays, counts = _exchanged(arrays, _ends(columns(arrays), len(order), comm), comm)
    order = np.lexsort(tuple(columns(arrays)))  # pieces came in rank order: equal rows stay in that of their positions
    return [array[order] for array in arrays], counts


def _exchanged(arrays: list[np.ndarray], ends: list[int], comm: Communicator) -> tuple[list[np.ndarray], list[int]]:
    """Send each rank its piece of sorted rows; and how many each gets."""
    here, counts = arriving_and_totals([stop - start for start, stop in pairwise(ends)], comm)
    me = comm.rank
    starts = list(accumulate(here, initial=0))
    made, sends, receives = [], [], []
    for array in arrays:
        target = np.empty((counts[me], *array.shape[1:]), array.dtype)
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
    comm.transfer(sends, receives)
    return made, counts


def _ends(keys: Sequence[np.ndarray], count: int, comm: Communicator) -> list[int]:
    """Where this rank's sorted rows are cut: 0, one position for each splitter, and the end."""

    def sample(places: np.ndarray) -> list[np.ndarray]:
        return [np.array(key[places]) for key in keys]

    return ends_of(count, sum(key.itemsize for key in keys), sample, lambda row, side: _place(keys, row, side), comm)


def ends_of(
    count: int,
    width: int,
    sample: Callable[[np.ndarray], list[np.ndarray]],
    place: Callable[[Sequence[np.ndarray], str], int],
    comm: Communicator,
) -> list[int]:
    """Where a rank's sorted rows are cut: 0, one position for each splitter, and the end (collective: one allgather).

    Parameters
    ----------
    count, width : int
        Of rows, and of the bytes of their keys.
    sample : callable
        The keys of the rows at some places.
    place : callable
        ``place(keys, side)`` tells how many rows lie before one that is wanted, or ("right") are not after it.
    """
    width = max(width, 1)
    wanted = min(count, max(min(SAMPLES, _SAMPLE_BYTES // (width * comm.size**2)), 1) * comm.size)
    places = (np.arange(wanted) * count) // max(wanted, 1)
    samples = comm.allgather((sample(places), places, count))
    sizes = [len(found) for _, found, _ in samples]
    values = [np.concatenate(parts) for parts in zip(*(found for found, _, _ in samples), strict=True)]
    ranks, where = np.repeat(np.arange(comm.size), sizes), np.concatenate([found for _, found, _ in samples])
    # How many rows a sample stands for: shards may have different sizes.
    weights = np.repeat([total / max(len(found), 1) for _, found, total in samples], sizes)
    order = np.lexsort(tuple(values))  # stable: by rank and position where keys are equal
    before = np.cumsum(weights[order]) - weights[order]
    total = sum(length for _, _, length in samples)
    ends = [0]
    for number in range(1, comm.size):
        index = int(np.searchsorted(before, total * number / comm.size))
        if index >= len(order):
            ends.append(count)
            continue
        chosen = order[index]
        if comm.rank == ranks[chosen]:
            ends.append(int(where[chosen]))
        else:
            side = "right" if comm.rank < ranks[chosen] else "left"
            ends.append(place([value[chosen : chosen + 1] for value in values], side))
    return [*ends, count]


def _place(keys: Sequence[np.ndarray], wanted: Sequence[np.ndarray], side: str) -> int:
    """How many of the sorted rows lie before one that is wanted (or, "right", are not after it).

    A few rows are looked at in each step, so that keys that are strided views are not copied.
    """
    low, high = 0, len(keys[0])
    while low < high:
        step = min(high - low, _PROBES)
        places = low + np.arange(step) * (high - low) // step
        first, last = 0, step
        for key, value in zip(reversed(keys), reversed(wanted), strict=True):
            part = key[places[first:last]]
            left, right = (int(np.searchsorted(part, value, each)[0]) for each in ("left", "right"))
            first, last = first + left, first + right
        index = last if side == "right" else first
        if step == high - low:
            return low + index
        low, high = int(places[index - 1]) + 1 if index else low, int(places[index]) if index < step else high
    return low
