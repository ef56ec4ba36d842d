"""What every rank gets to know of what each has of its own columns: see `parallel.columns`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from numpy_dist.parallel.columns import Columns, Form, Panel, Values, even_bounds

_DIRECT = 8  # ranks, at most, of which each sends to each


class ColumnExchange:
    """Messages between the ranks that hold the columns of a matrix.

    Parameters
    ----------
    columns : Columns
    """

    def __init__(self, columns: Columns) -> None:
        self._comm, self._kind = columns.comm, columns.values.dtype
        self._extent = columns.shape[1]
        self._of_rank = [columns.indices_of(rank) for rank in range(columns.comm.size)]
        self._others = [rank for rank in range(columns.comm.size) if rank != columns.comm.rank]

    def whole(self, mine: np.ndarray, first: int) -> np.ndarray:
        """All elements, or rows, from number `first` on, of which each rank has those of its columns.

        Collective: a message from each rank to each, or an allgather.
        """
        rest = mine.shape[1:]
        made = np.empty((self._extent - first, *rest), self._kind)
        wanted = [which[np.searchsorted(which, first) :] - first for which in self._of_rank]
        parts = self._from_each(mine, [(len(its), *rest) for its in wanted])
        for which, part in zip(wanted, parts, strict=True):
            made[which] = part
        return made

    def _from_each(self, mine: np.ndarray, shapes: list[tuple[int, ...]]) -> list[np.ndarray]:
        comm = self._comm
        if comm.size > _DIRECT:
            return comm.allgather_array(mine)
        mine = np.ascontiguousarray(mine)
        parts = [mine if rank == comm.rank else np.empty(shape, self._kind) for rank, shape in enumerate(shapes)]
        comm.transfer(
            [(rank, mine) for rank in self._others if mine.size],
            [(rank, parts[rank]) for rank in self._others if parts[rank].size],
        )
        return parts

    def total(self, mine: np.ndarray) -> np.ndarray:
        """The sum of a matrix of each rank, the same on every rank.

        Collective: two messages from each rank to each, or one and an allgather. Each rank adds up some rows.
        """
        comm, bounds = self._comm, even_bounds(len(mine), self._comm.size)
        mine = np.ascontiguousarray(mine)
        low, high = bounds[comm.rank]
        theirs = {rank: np.empty((high - low, *mine.shape[1:]), self._kind) for rank in self._others}
        sends = [(rank, mine[slice(*bounds[rank])]) for rank in self._others]
        comm.transfer([m for m in sends if m[1].size], [m for m in theirs.items() if m[1].size])
        theirs[comm.rank] = mine[low:high]
        some = np.sum([theirs[rank] for rank in range(comm.size)], axis=0)
        return np.concatenate(self._from_each(some, [(stop - start, *mine.shape[1:]) for start, stop in bounds]))

    def from_owner(self, panel: Panel, made: Values | None, forms: Sequence[Form]) -> Values:
        """What the owner of a panel has made of it, on every rank; of others `made` is None.

        Collective: a message from the owner to each rank.
        """
        if made is not None:
            self._comm.transfer([(rank, part) for rank in self._others for part in made if part.size], [])
            return made
        parts = [np.empty(shape, kind) for shape, kind in forms]
        self._comm.transfer([], [(panel.owner, part) for part in parts if part.size])
        return parts
