"""Numbers that ranks tell each other before they exchange elements, without a table of all pairs of ranks.

Of few ranks the whole table is gathered, which is one collective. Of many it would be the largest thing that a rank
has: there each rank gets the numbers that are meant for it, and the sums are shared in a second collective.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy_dist.comm.base import Communicator

FEW = 32  # ranks whose table is gathered


def arriving(counts: Sequence[int], comm: Communicator) -> list[int]:
    """How many elements each rank has for this one. Collective: one allgather or all-to-all.

    Parameters
    ----------
    counts : sequence of int
        How many this rank has for each rank.
    comm : Communicator
    """
    if comm.size <= FEW:
        return [row[comm.rank] for row in comm.allgather(list(counts))]
    return comm.alltoall(np.array(counts, np.int64)).tolist()


def arriving_and_totals(counts: Sequence[int], comm: Communicator) -> tuple[list[int], list[int]]:
    """As `arriving`, and how many elements each rank gets. Collective: of many ranks, with an allgather besides."""
    if comm.size <= FEW:
        table = comm.allgather(list(counts))
        return [row[comm.rank] for row in table], [sum(column) for column in zip(*table, strict=True)]
    found = arriving(counts, comm)
    return found, comm.allgather(sum(found))


def even_shares(counts: Sequence[int], total: int, comm: Communicator) -> tuple[list[int], list[int]]:
    """As `arriving_and_totals`, in a plan, whose other ranks are not there: all get even shares of so many elements.

    What they are taken to have, as much as this one, may add up to another number of elements than there are.
    """
    points = [total * rank // comm.size for rank in range(comm.size + 1)]
    totals = [hi - lo for lo, hi in pairwise(points)]
    others, left = comm.size - 1, max(0, totals[comm.rank] - counts[comm.rank])  # what comes: the rest stays here
    found = [left * (number + 1) // others - left * number // others for number in range(others)]
    found.insert(comm.rank, counts[comm.rank])
    return found, totals


def summed(numbers: Sequence[int], comm: Communicator) -> list[int]:
    """The sums over all ranks of numbers of which each has as many. Collective: one sum, or allgather."""
    if comm.size <= FEW:
        return [sum(column) for column in zip(*comm.allgather(list(numbers)), strict=True)]
    return comm.allsum(np.array(numbers, np.int64)).tolist()
