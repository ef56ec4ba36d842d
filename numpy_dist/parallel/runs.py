"""Runs of equal rows in sorted, distributed data: where they begin, and how long they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy_dist.comm.base import Communicator


def first_of_each(
    block: np.ndarray, differ: Callable[[np.ndarray, np.ndarray], np.ndarray], comm: Communicator
) -> np.ndarray:
    """Whether each of this rank's rows is another than the one before it (collective: one allgather of a row).

    Parameters
    ----------
    block : ndarray
        This rank's rows, perhaps none; the ranks' rows follow one another.
    differ : callable
        Of two arrays of as many rows: whether they differ, row by row.
    """
    ends = comm.allgather_array(block[-1:])
    before = next((row for row in reversed(ends[: comm.rank]) if len(row)), None)
    first = np.ones(len(block), bool)
    first[1:] = differ(block[1:], block[:-1])
    if before is not None and len(block):
        first[:1] = differ(block[:1], before)
    return first


def lengths(first: np.ndarray, counts: list[int], comm: Communicator) -> tuple[np.ndarray, list[int]]:
    """The lengths of the runs that begin on this rank, and how many begin on each (collective: one small allgather).

    Parameters
    ----------
    first : ndarray of bool
        See `first_of_each`.
    counts : list of int
        How many rows each rank has.
    """
    starts = np.flatnonzero(first) + sum(counts[: comm.rank])
    told = comm.allgather((len(starts), int(starts[0]) if len(starts) else None))
    following = next((start for _, start in told[comm.rank + 1 :] if start is not None), sum(counts))
    return np.diff(np.append(starts, following)), [number for number, _ in told]
