"""A matrix whose columns are dealt out to the ranks: panels of columns, one to each rank in turn.

This is the block-cyclic distribution of ScaLAPACK ("Parallel numerical linear algebra on distributed memory computers",
J. Dongarra and D. Walker, SIAM Review 1995) along one axis. A rank that has a panel has all its rows, so it factors it
by itself and sends the factors to all; what is left of the matrix is divided evenly between the ranks to the end.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy_dist.comm.base import Communicator

PANEL = 128  # columns that are factored together, at most
_LEAST = 16  # and at least, where the matrix has as many
_TURNS = 4  # times that each rank is dealt a panel, at least, where panels are not at their smallest
_CHUNK = 256  # columns that are updated together: what bounds the memory of a product
_ROUNDS = 4  # in which a large matrix is sent from each rank to each, at most: what bounds the memory of messages
_ROUND = 1 << 20  # bytes of a rank's that are one round's, at least

Form = tuple[tuple[int, ...], np.dtype]
Values = Sequence[np.ndarray]


@dataclass(frozen=True)
class Panel:
    """Columns ``start:stop`` of the matrix: those of `owner` from its own column number `place` on."""

    start: int
    stop: int
    owner: int
    place: int

    @property
    def width(self) -> int:
        """The number of columns."""
        return self.stop - self.start


def even_bounds(n: int, size: int) -> list[tuple[int, int]]:
    """The first of `n` rows that each rank has, and the one behind its last, divided evenly."""
    return [(n * rank // size, n * (rank + 1) // size) for rank in range(size)]


def width_of(n: int, size: int) -> int:
    """How many columns of `n` are dealt out at a time to `size` ranks."""
    return min(max(-(-n // (_TURNS * size)), _LEAST), PANEL)


def deal(n: int, size: int, width: int, end: int) -> list[Panel]:
    """The panels of `n` columns, from left to right; one ends at column `end`."""
    panels: list[Panel] = []
    held = [0] * size
    for low, high in ((0, end), (end, n)):
        for start in range(low, high, width):
            owner = len(panels) % size
            panels.append(Panel(start, min(start + width, high), owner, held[owner]))
            held[owner] += panels[-1].width
    return panels


class Columns:
    """This rank's columns of a matrix.

    Parameters
    ----------
    shape : (int, int)
        Of the matrix, m rows and n columns.
    dtype : dtype
    comm : Communicator
    width : int, optional
        Of panels; by default `width_of`.
    end : int, optional
        Where a panel ends, such as behind those that are factored; by default the smaller extent.

    Attributes
    ----------
    values : ndarray, (m, w)
        C-contiguous, at first zeros.
    panels : list of Panel
    """

    def __init__(
        self, shape: tuple[int, int], dtype: np.dtype, comm: Communicator, width: int = 0, end: int | None = None
    ) -> None:
        self.shape, self.comm = shape, comm
        self.width = width or width_of(shape[1], comm.size)
        self.end = min(shape) if end is None else end
        self.panels = deal(shape[1], comm.size, self.width, self.end)
        self.own = [panel for panel in self.panels if panel.owner == comm.rank]
        self.values = np.zeros((shape[0], sum(panel.width for panel in self.own)), dtype)

    def owns(self, panel: Panel) -> bool:
        """Whether this rank holds a panel."""
        return panel.owner == self.comm.rank

    def part(self, panel: Panel) -> np.ndarray:
        """All rows of a panel of this rank."""
        return self.values[:, panel.place : panel.place + panel.width]

    def indices(self) -> np.ndarray:
        """Which columns of the matrix this rank has."""
        return self.indices_of(self.comm.rank)

    def indices_of(self, rank: int) -> np.ndarray:
        """Which columns of the matrix a rank has."""
        theirs = [np.arange(panel.start, panel.stop) for panel in self.panels if panel.owner == rank]
        return np.concatenate(theirs or [np.arange(0)])

    def add_to_diagonal(self, value: complex, row: int = 0) -> None:
        """Add a value on the diagonal that begins in the first column of a row."""
        rows = self.indices() + row
        inside = rows < self.shape[0]
        self.values[rows[inside], np.flatnonzero(inside)] += value

    def diagonal(self) -> np.ndarray:
        """The matrix's diagonal, on every rank. Collective: an allgather."""
        columns = self.indices()
        inside = columns < self.shape[0]
        made = np.empty(min(self.shape), self.values.dtype)
        mine = columns[inside], self.values[columns[inside], np.flatnonzero(inside)]
        for which, values in self.comm.allgather(mine):
            made[which] = values
        return made

    def trace(self) -> float:
        """The sum of the diagonal's real parts, on every rank. Collective: an allgather."""
        return float(self.diagonal().real.sum())

    def copy(self) -> Columns:
        """The same matrix, in memory of its own."""
        made = self.like()
        made.values[...] = self.values
        return made

    def some_rows(self, low: int, high: int) -> Columns:
        """Some rows of the matrix, in the same memory."""
        made = copy.copy(self)
        made.shape, made.values = (high - low, self.shape[1]), self.values[low:high]
        return made

    def release(self) -> None:
        """Give up the memory, where somebody else still has the object."""
        self.values = self.values[:, :0].copy()

    def divisor(self, triangle: np.ndarray) -> np.ndarray:
        """A panel's triangle, by which is divided; the identity where its owner has sent none (`comm.counting`)."""
        return triangle if self.comm.delivers else np.eye(len(triangle), dtype=triangle.dtype)

    def like(self, shape: tuple[int, int] | None = None) -> Columns:
        """Zeros in as many columns, or in more or fewer, of the same panels as far as there are some."""
        shape = shape or self.shape
        return Columns(shape, self.values.dtype, self.comm, self.width, min(self.end, shape[1]))

    # -- rows and columns --------------------------------------------------------------------------------------------

    @classmethod
    def dealt(cls, rows: np.ndarray, bounds: Sequence[tuple[int, int]], comm: Communicator, width: int = 0) -> Columns:
        """The columns of a matrix that is cut between rows. Collective: a message from each rank to each.

        Parameters
        ----------
        rows : ndarray, (r, n)
            This rank's.
        bounds : sequence of (int, int)
            Which rows each rank holds: the first one, and the one behind the last; each row stands once.
        """
        columns = cls((max(high for _, high in bounds), rows.shape[1]), rows.dtype, comm, width)
        mine = bounds[comm.rank]
        columns.values[slice(*mine)] = rows[:, columns.indices()]
        others = [rank for rank in range(comm.size) if rank != comm.rank]
        for pieces in columns._in_rounds(bounds):
            # Rows of this rank's columns lie beside each other, where they are received.
            receives = [(rank, columns.values[slice(*pieces[rank])]) for rank in others]
            some = rows[slice(*(at - mine[0] for at in pieces[comm.rank]))]
            sends = [(rank, some.take(columns.indices_of(rank), axis=1)) for rank in others]
            comm.transfer([m for m in sends if m[1].size], [m for m in receives if m[1].size])
        return columns

    def _in_rounds(self, bounds: Sequence[tuple[int, int]]) -> list[list[tuple[int, int]]]:
        """Each rank's part of something, some of it at a time."""
        nbytes = self.shape[0] * self.shape[1] * self.values.itemsize // self.comm.size
        count = max(min(nbytes // _ROUND, _ROUNDS), 1)
        return [
            [(low + (high - low) * i // count, low + (high - low) * (i + 1) // count) for low, high in bounds]
            for i in range(count)
        ]

    def rows(self, bounds: Sequence[tuple[int, int]]) -> np.ndarray:
        """This rank's rows of the matrix, (r, n). Collective: a message from each rank to each."""
        comm, mine = self.comm, bounds[self.comm.rank]
        made = np.empty((mine[1] - mine[0], self.shape[1]), self.values.dtype)
        held = [sum(panel.width for panel in self.panels if panel.owner == rank) for rank in range(comm.size)]
        others = [rank for rank in range(comm.size) if rank != comm.rank]
        for pieces in self._in_rounds(bounds):
            low, high = pieces[comm.rank]
            parts = {rank: np.empty((high - low, held[rank]), made.dtype) for rank in others}
            sends = [(rank, np.ascontiguousarray(self.values[slice(*pieces[rank])])) for rank in others]
            receives = [(rank, part) for rank, part in parts.items() if part.size]
            comm.transfer([(rank, part) for rank, part in sends if part.size], receives)
            parts[comm.rank] = self.values[low:high]
            some = made[low - mine[0] : high - mine[0]]
            for panel in self.panels:
                some[:, panel.start : panel.stop] = parts[panel.owner][:, panel.place : panel.place + panel.width]
        return made

    def block(self, low: int, high: int) -> Columns:
        """The columns of a square block on the diagonal. Collective: two messages from each rank to each."""
        bounds = even_bounds(self.shape[0], self.comm.size)
        rows, first = self.rows(bounds), bounds[self.comm.rank][0]
        within = [(min(max(a, low), high), min(max(b, low), high)) for a, b in bounds]
        mine = slice(*(at - first for at in within[self.comm.rank]))
        return Columns.dealt(rows[mine, low:high], [(a - low, b - low) for a, b in within], self.comm)

    def on(self, root: int) -> np.ndarray | None:
        """The whole matrix on one rank, None on the others. Collective: a message from each rank to that one."""
        comm = self.comm
        if comm.rank != root:
            comm.transfer([(root, self.values)] if self.values.size else [], [])
            return None
        made, held = np.empty(self.shape, self.values.dtype), [self.indices_of(rank) for rank in range(comm.size)]
        parts = [np.empty((self.shape[0], len(which)), made.dtype) for which in held]
        parts[root] = self.values
        comm.transfer([], [(rank, part) for rank, part in enumerate(parts) if rank != root and part.size])
        for which, part in zip(held, parts, strict=True):
            made[:, which] = part
        return made

    def set(self, matrix: np.ndarray | None, root: int) -> None:
        """Take the matrix from one rank that has it. Collective: a message from that rank to each."""
        comm = self.comm
        if matrix is None:
            comm.transfer([], [(root, self.values)] if self.values.size else [])
            return
        parts = [np.ascontiguousarray(matrix[:, self.indices_of(rank)]) for rank in range(comm.size)]
        comm.transfer([(rank, part) for rank, part in enumerate(parts) if rank != root and part.size], [])
        self.values[...] = parts[root]

    def adjoint(self) -> Columns:
        """The columns of the conjugate transpose. Collective: a message from each rank to each."""
        comm, made = self.comm, Columns(self.shape[::-1], self.values.dtype, self.comm, self.width, self.end)
        held = [self.indices_of(rank) for rank in range(comm.size)]
        wanted = [made.indices_of(rank) for rank in range(comm.size)]
        for pieces in self._in_rounds([(0, len(which)) for which in held]):
            targets = [which[slice(*piece)] for which, piece in zip(held, pieces, strict=True)]
            sends, receives = [], []
            mine = self.values[:, slice(*pieces[comm.rank])]
            for rank, target in enumerate(targets):
                part = np.ascontiguousarray(mine[wanted[rank]].conj().T)  # (some of this rank's columns, theirs)
                if rank == comm.rank:
                    made.values[target] = part
                    continue
                if part.size:
                    sends.append((rank, part))
                if len(target) * len(wanted[comm.rank]):
                    receives.append((rank, np.empty((len(target), len(wanted[comm.rank])), made.values.dtype)))
            comm.transfer(sends, receives)
            for rank, part in receives:
                made.values[targets[rank]] = part
        return made

    def add_adjoint(self) -> None:
        """Add the conjugate transpose of a square matrix to it. Collective: a message from each rank to each."""
        comm, held = self.comm, [self.indices_of(rank) for rank in range(self.comm.size)]
        mine = held[comm.rank]
        self.values[mine] += self.values[mine].conj().T
        for pieces in self._in_rounds([(0, len(which)) for which in held]):
            # Of each pair of ranks, what stands in some columns of the second one, and in the same rows of the first.
            blocks, sends, receives = {}, [], []
            for rank in range(comm.size):
                some = slice(*pieces[max(rank, comm.rank)])
                rows, columns = (held[rank][some], slice(None)) if rank > comm.rank else (held[rank], some)
                block = self.values[rows, columns]
                if rank == comm.rank or not block.size:
                    continue
                blocks[rank] = rows, columns
                sends.append((rank, np.ascontiguousarray(block)))
                receives.append((rank, np.empty(block.shape[::-1], block.dtype)))
            comm.transfer(sends, receives)
            for rank, part in receives:
                rows, columns = blocks[rank]
                self.values[rows, columns] += part.conj().T

    # -- panels on every rank ----------------------------------------------------------------------------------------

    def sent(
        self, panels: Sequence[Panel], make: Callable[[Panel], Values], forms: Callable[[Panel], Sequence[Form]]
    ) -> Iterator[tuple[Panel, Values]]:
        """What the owner of each panel makes of it, on every rank; the next one is under way meanwhile.

        Collective: a message from the owner of each panel to each rank.

        Parameters
        ----------
        panels : sequence of Panel
        make : callable
            Contiguous arrays, for the owner of a panel.
        forms : callable
            Their shapes and dtypes, for all others.
        """
        coming = [_PanelOnTheWay(self, panels[0], make, forms)] if panels else []
        for panel, following in zip_longest(panels, panels[1:]):
            found = coming.pop().values()
            if following is not None:
                coming.append(_PanelOnTheWay(self, following, make, forms))
            yield panel, found

    def factored(
        self,
        make: Callable[[Panel], Values],
        forms: Callable[[Panel], Sequence[Form]],
        apply: Callable[[Panel, Values, np.ndarray, np.ndarray], None],
        also: Callable[[Panel, Values], None] | None = None,
    ) -> Iterator[tuple[Panel, Values]]:
        """The factors of each panel up to column `end`, on every rank, before they are applied to what is behind.

        A panel is updated before all others, and factored and sent while these are updated with the one before
        ("look-ahead"). Collective, as `sent`.

        Parameters
        ----------
        make, forms
            As in `sent`.
        apply : callable
            Updates some columns, all rows of them; the last argument tells which columns of the matrix they are.
        also : callable, optional
            What else is to be done with a panel's factors.
        """
        panels = [panel for panel in self.panels if panel.stop <= self.end]
        coming = _PanelOnTheWay(self, panels[0], make, forms) if panels else None
        for panel, following in zip_longest(panels, panels[1:]):
            assert coming is not None
            factors = coming.values()
            yield panel, factors
            behind = [its for its in self.own if its.start >= panel.stop]
            if following is not None:
                if self.owns(following):
                    apply(panel, factors, self.part(behind.pop(0)), np.arange(following.start, following.stop))
                coming = _PanelOnTheWay(self, following, make, forms)
            for chunk, which in self.chunks(behind):
                apply(panel, factors, chunk, which)
                coming.drive()
            if also is not None:
                also(panel, factors)

    def chunks(self, panels: Sequence[Panel]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Some of this rank's columns at a time, of panels that stand beside each other, and which they are."""
        step = max(_CHUNK // self.width, 1)
        for number in range(0, len(panels), step):
            some = panels[number : number + step]
            which = np.concatenate([np.arange(panel.start, panel.stop) for panel in some])
            yield self.values[:, some[0].place : some[-1].place + some[-1].width], which


class _PanelOnTheWay:
    """What the owner of a panel makes of it, on its way to all."""

    def __init__(
        self,
        columns: Columns,
        panel: Panel,
        make: Callable[[Panel], Values],
        forms: Callable[[Panel], Sequence[Form]],
    ) -> None:
        comm = columns.comm
        if columns.owns(panel):
            self._values = make(panel)
            others = [rank for rank in range(comm.size) if rank != comm.rank]
            messages = [(rank, value) for rank in others for value in self._values]
            self._pending = comm.start_transfer(messages, [])
        else:
            self._values = [np.empty(shape, dtype) for shape, dtype in forms(panel)]
            self._pending = comm.start_transfer([], [(panel.owner, value) for value in self._values])

    def drive(self) -> None:
        """Let it go on; to be called between pieces of work."""
        self._pending.done()

    def values(self) -> Values:
        """The arrays, once they are here."""
        self._pending.wait()
        return self._values


def column_chunks(block: np.ndarray | None) -> Iterator[np.ndarray]:
    """Some columns of a block at a time, which bounds the memory of a product; of None, nothing."""
    for start in range(0, 0 if block is None else block.shape[1], _CHUNK):
        yield block[:, start : start + _CHUNK]  # type: ignore[index]
