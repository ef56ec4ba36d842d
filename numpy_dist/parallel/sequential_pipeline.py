"""Work that goes on from rank to rank, for operations whose order matters: NumPy's own order, and nothing in parallel.

What one rank has come to is handed to the next that holds a part. An error of one rank does not keep the others
waiting: they are handed something all the same, and all raise it in the end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy_dist.comm.base import Communicator


def carried(
    work: Callable[[np.ndarray | None], np.ndarray], members: Sequence[int], like: np.ndarray, comm: Communicator
) -> tuple[np.ndarray | None, Exception | None]:
    """Call ``work(before)`` on one member after the other, with what it has returned on the one before.

    Collective: one message from each member to the next. Every rank must call `comm.portable.agree` afterwards.

    Parameters
    ----------
    work : callable
        It gets None on the first member, and returns an array like `like`, which is handed on.
    members : sequence of int
        The ranks, in order.
    like : ndarray
        Of the shape and dtype of what is handed on.

    Returns
    -------
    ndarray or None, Exception or None
        What `work` has returned on this rank, and what it has raised.
    """
    if comm.rank not in members:
        return None, None
    place = members.index(comm.rank)
    before, made, error = None, None, None
    if place:
        before = np.empty(like.shape, like.dtype)
        comm.transfer([], [(members[place - 1], before)])
    try:
        made = work(before)
    except Exception as raised:
        error = raised
    if place + 1 < len(members):
        onward = np.zeros(like.shape, like.dtype) if made is None else np.ascontiguousarray(made)
        comm.transfer([(members[place + 1], onward)], [])
    return made, error


def accumulate(
    ufunc: np.ufunc, block: np.ndarray, axis: int, points: tuple[int, ...], kind: np.dtype, comm: Communicator
) -> tuple[np.ndarray, Exception | None]:
    """This rank's part of ``ufunc.accumulate`` along an axis that is cut at `points`, and what it has raised.

    Collective as `carried` is; every rank must call `agree` afterwards.
    """
    members = [r for r in range(comm.size) if points[r] < points[r + 1] and block.size]
    made = np.empty(block.shape, kind)
    dtype = None if kind.kind in "mM" else kind
    last = (slice(None),) * axis + (slice(-1, None),)

    def work(before: np.ndarray | None) -> np.ndarray:
        if before is None:
            made[...] = ufunc.accumulate(block, axis, dtype)
        else:
            longer = np.concatenate([before, block.astype(kind)], axis)
            made[...] = np.delete(ufunc.accumulate(longer, axis, dtype), 0, axis)
        return made[last]

    like = np.empty((*block.shape[:axis], 1, *block.shape[axis + 1 :]), kind)
    return made, carried(work, members, like, comm)[1]
