"""Questions to the ranks that own the answers: values go where they are decided upon, and what was found comes back."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from numpy_dist.parallel.counts import arriving

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from numpy_dist.comm.base import Communicator


def ask(
    values: np.ndarray,
    owners: np.ndarray,
    answer: Callable[[np.ndarray], np.ndarray],
    dtype: DTypeLike,
    comm: Communicator,
) -> np.ndarray:
    """What the owners answer to this rank's values, in their order.

    Collective: one exchange of counts, and two messages between any two ranks that have to do with each other.

    Parameters
    ----------
    values, owners : ndarray, shape (n,)
        This rank's values, and the rank that each is for.
    answer : callable
        Called once on each rank with all values that are for it; it returns one answer for each.
    dtype : dtype
        Of the answers.
    """
    me = comm.rank
    order = np.argsort(owners, kind="stable")
    sent = values[order]
    ends = np.searchsorted(owners[order], np.arange(comm.size + 1))
    asked = [int(stop - start) for start, stop in pairwise(ends)]
    pieces = [slice(start, stop) for start, stop in pairwise(ends)]
    counts = arriving(asked, comm)
    places = [slice(stop - count, stop) for count, stop in zip(counts, np.cumsum(counts), strict=True)]
    questions = np.empty(sum(counts), values.dtype)
    others = [rank for rank in range(comm.size) if rank != me]
    comm.transfer(
        [(rank, sent[pieces[rank]]) for rank in others if asked[rank]],
        [(rank, questions[places[rank]]) for rank in others if counts[rank]],
    )
    questions[places[me]] = sent[pieces[me]]
    answers = np.ascontiguousarray(answer(questions), dtype)
    found = np.empty(len(values), dtype)
    comm.transfer(
        [(rank, answers[places[rank]]) for rank in others if counts[rank]],
        [(rank, found[pieces[rank]]) for rank in others if asked[rank]],
    )
    found[pieces[me]] = answers[places[me]]
    result = np.empty_like(found)
    result[order] = found
    return result
