"""`ufunc.reduceat` along an axis that is cut: parts of segments on the ranks that hold them, joined in rank order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from numpy_dist.parallel import ordered
from numpy_dist.parallel.counts import arriving
from numpy_dist.parallel.updates import route

if TYPE_CHECKING:
    from numpy_dist.comm.base import Communicator


def share_out(
    starts: np.ndarray, stops: np.ndarray, first: int, points: tuple[int, ...], comm: Communicator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The segments of which this rank holds a part: their numbers, ascending, starts and stops.

    Collective: one exchange of counts and up to one message between any two ranks. A rank gets three integers for
    each segment that meets its part, so that many segments that each go over many ranks (descending indices) are many
    on each; they take as many reductions.

    Parameters
    ----------
    starts, stops : ndarray of int
        The segments that this rank tells of; rank after rank has consecutive ones, none of them empty.
    first : int
        Number of this rank's first one.
    points : tuple of int
        Where the axis is cut.
    """
    numbers = np.arange(first, first + len(starts))
    told = []
    for low, high in zip(points[:-1], points[1:], strict=True):
        here = (starts < high) & (stops > low) if low < high else np.zeros(len(starts), bool)
        told.append(np.stack([numbers[here], starts[here], stops[here]]))
    counts = arriving([part.shape[1] for part in told], comm)
    me = comm.rank
    arrived = [told[me] if r == me else np.empty((3, counts[r]), numbers.dtype) for r in range(comm.size)]
    comm.transfer(
        [(r, np.ascontiguousarray(part)) for r, part in enumerate(told) if r != me and part.shape[1]],
        [(r, part) for r, part in enumerate(arrived) if r != me and part.shape[1]],
    )
    joined = np.concatenate(arrived, axis=1)
    return joined[0], joined[1], joined[2]


def reduce_segments(
    ufunc: np.ufunc,
    rows: np.ndarray,
    points: tuple[int, ...],
    segments: tuple[np.ndarray, np.ndarray, np.ndarray],
    result_points: tuple[int, ...],
    kind: np.dtype,
    associative: bool,
    comm: Communicator,
) -> tuple[np.ndarray, Exception | None]:
    """This rank's part of the results, one for each segment, and what it has met.

    Collective: partial results are sent to the owners, who join them in rank order; where the operation is not (taken
    as) associative each rank goes on with what the one before has come to. Then every rank must call
    `comm.portable.agree`.

    Parameters
    ----------
    rows : ndarray, shape (k, n)
        This rank's part of the array.
    segments : tuple of ndarray
        As `share_out` gives them.
    result_points : tuple of int
        How the results are divided.

    Returns
    -------
    ndarray, shape (k, m)
    """
    numbers, starts, stops = segments
    low, high = points[comm.rank], points[comm.rank + 1]
    begins, ends = np.maximum(starts, low) - low, np.minimum(stops, high) - low
    error: Exception | None = None
    parts = np.zeros((len(rows), len(numbers)), kind)
    if associative:
        try:
            parts = _local(ufunc, rows, begins, ends, kind)
        except Exception as raised:
            error = raised
        done = np.ones(len(numbers), bool)
    else:
        error = _one_after_the_other(ufunc, rows, points, (starts, begins, ends, stops), parts, comm)
        done = stops <= high
    where, (values,), counts = route(result_points, numbers[done], [np.ascontiguousarray(parts.T[done])], comm)
    return _joined(ufunc, where - result_points[comm.rank], values, counts, result_points, comm.rank).T, error


def _local(ufunc: np.ufunc, rows: np.ndarray, begins: np.ndarray, ends: np.ndarray, kind: np.dtype) -> np.ndarray:
    """Each part ``[begin, end)`` of the rows reduced."""
    n = rows.shape[-1]
    made = np.empty((len(rows), len(begins)), kind)
    if not made.size:
        return made
    inner = ends < n
    for place in np.flatnonzero(~inner):
        made[:, place] = ordered.reduceat(ufunc, rows[:, begins[place] :], np.zeros(1, np.intp), kind)[:, 0]
    begins, ends = begins[inner], ends[inner]
    if len(begins):
        if (ends[:-1] == begins[1:]).all():  # they follow one another
            made[:, inner] = ordered.reduceat(ufunc, rows[:, : ends[-1]], begins, kind)
        else:
            made[:, inner] = _one_by_one(ufunc, rows, begins, ends, kind)
    return made


def _one_by_one(ufunc: np.ufunc, rows: np.ndarray, begins: np.ndarray, ends: np.ndarray, kind: np.dtype) -> np.ndarray:
    """Parts in any order, brought side by side: what lies between them must not be reduced, for it might warn.

    In batches of about as many elements as the rows have, as parts may overlap.
    """
    lengths = ends - begins
    batches = np.cumsum(lengths) // (rows.shape[-1] + 1)
    made = np.empty((len(rows), len(begins)), kind)
    for batch in np.split(np.arange(len(begins)), np.flatnonzero(np.diff(batches)) + 1):
        starts = np.cumsum(lengths[batch]) - lengths[batch]
        where = np.repeat(begins[batch] - starts, lengths[batch]) + np.arange(lengths[batch].sum())
        made[:, batch] = ordered.reduceat(ufunc, rows[:, where], starts, kind)
    return made


def _one_after_the_other(
    ufunc: np.ufunc, rows: np.ndarray, points: tuple[int, ...], limits: tuple[np.ndarray, ...], parts: np.ndarray,
    comm: Communicator,
) -> Exception | None:  # fmt: skip
    """Reduce what this rank holds of each segment into `parts`, on top of what the ranks before have come to."""
    starts, begins, ends, stops = limits
    low, high = points[comm.rank], points[comm.rank + 1]
    before, beyond = starts < low, stops > high
    members = [r for r in range(comm.size) if points[r] < points[r + 1]]
    if comm.rank not in members:
        return None
    place, kind = members.index(comm.rank), parts.dtype
    came, error = np.empty((len(rows), int(before.sum())), kind), None
    try:  # before it waits
        parts[:, ~before] = _local(ufunc, rows, begins[~before], ends[~before], kind)
    except Exception as raised:
        error = raised
    if place and came.size:
        comm.transfer([], [(members[place - 1], came)])
    try:
        for number, segment in enumerate(np.flatnonzero(before) if len(rows) else ()):
            piece = rows[:, begins[segment] : ends[segment]].astype(kind)
            longer = np.concatenate([came[:, number : number + 1], piece], axis=1)
            parts[:, segment] = ordered.reduceat(ufunc, longer, np.zeros(1, np.intp), kind)[:, 0]
    except Exception as raised:
        error = error or raised
    onward = np.ascontiguousarray(parts[:, beyond])
    if place + 1 < len(members) and onward.size:
        comm.transfer([(members[place + 1], onward)], [])
    return error


def _joined(
    ufunc: np.ufunc, where: np.ndarray, values: np.ndarray, counts: list[int], points: tuple[int, ...], rank: int
) -> np.ndarray:
    """Partial results by their numbers, those of one number folded in the order of their senders."""
    made = np.zeros((points[rank + 1] - points[rank], *values.shape[1:]), values.dtype)
    have = np.zeros(len(made), bool)
    start = 0
    for count in counts:
        here, new = where[start : start + count], values[start : start + count]
        again = have[here]
        made[here[~again]] = new[~again]
        if again.any():
            made[here[again]] = ufunc(made[here[again]], new[again])
        have[here] = True
        start += count
    return made
