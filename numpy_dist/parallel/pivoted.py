"""QR with column pivoting of a matrix whose columns are dealt out to the ranks.

Householder's reflections, each of the column that is longest from the row on that is reached ("Linear least squares
solutions by Householder transformations", P. Businger and G. Golub, Numer. Math. 1965), in the blocks of LAPACK's
`geqp3` ("A BLAS-3 version of the QR factorization with column pivoting", G. Quintana-Orti, X. Sun and C. Bischof, SIAM
J. Sci. Comput. 1998). Lengths are downdated, and computed anew once they have lost their digits ("On the failure of
rank-revealing QR factorization software", Z. Drmac and Z. Bujanovic, ACM Trans. Math. Softw. 2008). So the permutation
is LAPACK's, but where rounding decides which of two columns is longer.

A rank has all rows of its columns, and they stay with it until all are factored. For each column the ranks tell each
other which is their longest one, and the owner of the longest of all sends its reflection to all.
"""

from __future__ import annotations

import numpy as np

from numpy_dist.parallel.columns import Columns, Values, column_chunks
from numpy_dist.parallel.factors import Reflections, reflection
from numpy_dist.parallel.gemm import subtract_product

_BLOCK = 32  # reflections that are applied together, at most


def pivoted(columns: Columns) -> tuple[Reflections, np.ndarray]:
    """The reflections that factor a matrix of permuted columns, and which column of it comes at each place.

    Collective: for each column an allgather of a few numbers, and a message from its owner to each rank; in the end a
    message from each rank to each.

    Parameters
    ----------
    columns : Columns
        Is overwritten, and given up.
    """
    return _PivotedReduction(columns).run()


class _PivotedReduction:
    """A matrix of which some columns are factored.

    Of this rank's columns those that are not factored stand first.
    """

    def __init__(self, columns: Columns) -> None:
        from scipy.linalg import get_lapack_funcs

        self._columns, self._comm, self._values = columns, columns.comm, columns.values
        (self._larfg,) = get_lapack_funcs(("larfg",), dtype=self._values.dtype)
        self._end, n = min(columns.shape), columns.shape[1]
        self._which, self._left = columns.indices(), self._values.shape[1]
        self._lengths = _lengths_of(self._values)
        self._known = self._lengths.copy()  # when they were computed, not downdated
        self._stale = np.zeros(self._left, bool)
        self._order, self._place = np.arange(n), np.arange(n)  # which column stands where, as LAPACK exchanges them
        self._owner = np.empty(n, np.intp)
        for rank in range(self._comm.size):
            self._owner[columns.indices_of(rank)] = rank
        self._taus = np.zeros(self._end, self._values.dtype)

    def run(self) -> tuple[Reflections, np.ndarray]:
        """As `pivoted`."""
        done = 0
        with np.errstate(all="ignore"):  # LAPACK tells of nothing
            while done < self._end:
                done += self._reduce_block(done)
        made = self._in_order()
        reflections = Reflections(made)
        for panel in made.own:
            if panel.stop <= made.end:
                reflections.take(panel, self._taus[panel.start : panel.stop])
        return reflections, self._order

    def _reduce_block(self, start: int) -> int:
        """Factor some columns, up to the first one that needs lengths anew; returns how many."""
        values, kind = self._values, self._values.dtype
        width = min(_BLOCK, self._end - start)
        vectors = np.zeros((len(values) - start, width), kind)
        factors = np.zeros((width, self._left), kind)  # what the block does to a column: ``-= vectors @ factors``
        for i in range(width):
            row = start + i
            found = self._longest(row)
            if found is None:
                width = i
                break
            vector = vectors[i:, i]
            vector[:], self._taus[row] = self._sent(found, row, vectors[i:, :i], factors[:i])
            factors, rest, adjoint = factors[:, : self._left], values[row:, : self._left], vector.conj()
            factors[i] = adjoint @ rest - (adjoint @ vectors[i:, :i]) @ factors[:i]
            factors[i] *= self._taus[row].conj()
            rest[0] -= vectors[i, : i + 1] @ factors[: i + 1]
            self._downdate(rest[0])
        below, which = values[start + width :, : self._left], np.flatnonzero(self._stale)
        done = 0
        for chunk in column_chunks(below):
            subtract_product(chunk, vectors[width:, :width], factors[:width, done : done + chunk.shape[1]])
            done += chunk.shape[1]
        for them in np.array_split(which, -(-len(which) // _BLOCK) or 1):
            self._lengths[them] = self._known[them] = _lengths_of(below[:, them])
        self._stale[:] = False
        return width

    def _longest(self, row: int) -> int | None:
        """Which column is the longest one, the first of several; None where some rank needs lengths anew.

        Collective: an allgather of a few numbers.
        """
        lengths = np.where(np.isnan(self._lengths), np.inf, self._lengths)
        mine: tuple[float, int] = (-1.0, 0)
        if self._left:
            longest = lengths.max()
            mine = (float(longest), -int(self._place[self._which[: self._left][lengths == longest]].min()))
        found = self._comm.allgather((bool(self._stale.any()), mine))
        if any(stale for stale, _ in found):
            return None
        place = row
        if self._comm.delivers:  # else columns are taken as they stand
            place = -max(candidate for _, candidate in found)[1]
        column, other = int(self._order[place]), int(self._order[row])
        self._order[[row, place]] = column, other
        self._place[[column, other]] = row, place
        return column

    def _sent(self, column: int, row: int, vectors: np.ndarray, factors: np.ndarray) -> Values:
        """The vector and the factor of a column's reflection, from its owner.

        There it is behind those that are not factored, afterwards.
        """
        comm, owner = self._comm, int(self._owner[column])
        message = np.empty(len(self._values) - row + 1, self._values.dtype)
        if owner != comm.rank:
            comm.transfer([], [(owner, message)])
            return message[:-1], message[-1]
        self._left = last = self._left - 1
        place = int(np.flatnonzero(self._which[: last + 1] == column)[0])
        for x in (self._which, factors.T, self._values.T):
            x[[place, last]] = x[[last, place]]
        for name in ("_lengths", "_known", "_stale"):
            its = getattr(self, name)
            its[place] = its[last]
            setattr(self, name, its[:last])
        found = self._values[row:, last]
        found -= vectors @ factors[:, last]
        found[0], found[1:], tau = reflection(self._larfg, found)
        message[:-1], message[0], message[-1] = found, 1, tau
        comm.transfer([(rank, message) for rank in range(comm.size) if rank != comm.rank], [])
        return message[:-1], message[-1]

    def _downdate(self, row: np.ndarray) -> None:
        """Take a row from the lengths of columns."""
        lengths, known = self._lengths, self._known
        ratio = np.abs(row) / np.where(lengths > 0, lengths, 1)
        kept = np.maximum((1 + ratio) * (1 - ratio), 0)
        self._stale[:] = (lengths > 0) & (kept * (lengths / np.where(known > 0, known, 1)) ** 2 <= _LOST)
        lengths *= np.where(self._stale, 1, np.sqrt(kept))

    def _in_order(self) -> Columns:
        """The columns in their new order. Collective: a message from each rank to each."""
        columns, comm = self._columns, self._comm
        made = columns.like()
        local = np.zeros(columns.shape[1], np.intp)
        local[self._which] = np.arange(len(self._which))
        wanted = [self._order[made.indices_of(rank)] for rank in range(comm.size)]
        here = [np.flatnonzero(self._owner[wanted[comm.rank]] == rank) for rank in range(comm.size)]
        given = [local[which[self._owner[which] == comm.rank]] for which in wanted]
        m, count = columns.shape[0], 4
        for low, high in [(m * i // count, m * (i + 1) // count) for i in range(count)]:
            sends, receives = [], []
            for rank in range(comm.size):
                part = self._values[low:high].take(given[rank], axis=1)
                if rank == comm.rank:
                    made.values[low:high, here[rank]] = part
                    continue
                if part.size:
                    sends.append((rank, part))
                if (high - low) * len(here[rank]):
                    receives.append((rank, np.empty((high - low, len(here[rank])), part.dtype)))
            comm.transfer(sends, receives)
            for rank, part in receives:
                made.values[low:high, here[rank]] = part
        columns.release()
        return made


_LOST = np.finfo(float).eps ** 0.5  # what is left of a length's square where it is computed anew


def _lengths_of(values: np.ndarray) -> np.ndarray:
    """The lengths of columns, whose squares may overflow."""
    made = [np.zeros(0)]
    for chunk in column_chunks(values):
        sizes = np.abs(chunk)
        largest = sizes.max(axis=0, initial=0)
        sizes /= np.where((largest > 0) & np.isfinite(largest), largest, 1)
        scale = np.where(np.isfinite(largest), np.where(largest > 0, largest, 0), largest)
        made.append(scale * np.sqrt(np.square(sizes).sum(axis=0)))
    return np.concatenate(made)
