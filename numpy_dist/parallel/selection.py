"""Elements of a distributed array by their place in its order, without sorting it.

Two elements of a regular sample bracket the one that is sought; counting what lies below, at and between them leaves a
small part to look at (Floyd and Rivest, "Expected time bounds for selection", CACM 1975). What is left at last is
gathered, a few elements, and NumPy chooses among them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

FEW = 1 << 14  # elements, of all ranks, that are gathered
SAMPLES = 1 << 10  # of each rank


def select(block: np.ndarray, places: Sequence[int], comm: Any) -> np.ndarray:
    """The elements at some places of the sorted array; NaN is last (collective: a few allgathers for each place).

    Parameters
    ----------
    block : ndarray, shape (n,)
        This rank's elements, perhaps none.
    places : sequence of int
        From 0, below the number of all elements.

    Returns
    -------
    ndarray
        Of the dtype of `block`, the same on every rank.
    """
    absent = np.empty(0, block.dtype)
    if block.dtype.kind in "fmM":
        missing = np.isnan(block)
        if missing.any():
            absent, block = block[missing][:1], block[~missing]
    known = comm.allgather((len(block), absent))
    total = sum(count for count, _ in known)
    nothing = next((found for _, found in known if len(found)), absent)
    return np.array([nothing[0] if place >= total else _find(block, place, comm) for place in places], block.dtype)


def _find(block: np.ndarray, place: int, comm: Any) -> Any:
    """The element at one place, without NaN."""
    while True:
        sample, total = _sample(block, comm)
        if total <= FEW:
            return np.partition(sample, place)[place]
        low, high = _bracket(sample, place, total)
        below, upto = block < low, block <= low
        to_high, through = block < high, block <= high
        mine = [int(np.count_nonzero(part)) for part in (below, upto, to_high, through)]
        ends = [sum(column) for column in zip(*comm.allgather(mine), strict=True)]
        if place < ends[0]:
            block = block[below]
        elif place < ends[1]:
            return low
        elif place < ends[2]:
            block, place = block[to_high & ~upto], place - ends[1]
        elif place < ends[3]:
            return high
        else:
            block, place = block[~through], place - ends[3]


def _sample(block: np.ndarray, comm: Any) -> tuple[np.ndarray, int]:
    """Elements of all ranks, as many from each as are its share, or all if they are few; and how many there are."""
    counts = comm.allgather(len(block))
    total = sum(counts)
    share = len(block) if total <= FEW else -(-SAMPLES * comm.size * len(block) // total)
    picked = block[np.arange(share) * len(block) // max(share, 1)]
    return np.concatenate(comm.allgather_array(picked)), total


def _bracket(sample: np.ndarray, place: int, total: int) -> tuple[Any, Any]:
    """Two elements of a sample between which the element at a place probably lies."""
    sample = np.sort(sample)
    middle, margin = place * len(sample) / total, 1.5 * np.sqrt(len(sample))
    low, high = (int(np.clip(middle + side, 0, len(sample) - 1)) for side in (-margin, margin))
    return sample[low], sample[high]
