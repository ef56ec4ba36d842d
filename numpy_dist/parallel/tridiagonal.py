"""The reduction of a Hermitian matrix, whose columns are dealt out to the ranks, to a real tridiagonal one.

Householder's reflections, one for each column, of which those of a panel are applied together to what is behind it
("Block reduction of matrices to condensed forms for eigenvalue computations", J. Dongarra, D. Sorensen, S. Hammarling,
J. Comput. Appl. Math. 1989). Each reflection needs a product of the matrix and a vector: a rank makes the elements of
its own columns, since it has all of their rows, and ranks send each other these.
"""

from __future__ import annotations

import numpy as np

from numpy_dist.parallel.column_exchange import ColumnExchange
from numpy_dist.parallel.columns import Columns, Panel
from numpy_dist.parallel.factors import Reflections, reflection
from numpy_dist.parallel.gemm import subtract_product

WIDTH = 48  # columns of a panel, at most: more make the work within panels longer, which all ranks do


def reduced(a: Columns) -> tuple[np.ndarray, np.ndarray, Reflections]:
    """The diagonal of the tridiagonal matrix, what stands beside it, and the reflections that have led to it.

    Collective: each panel is sent to all, and for each column a message goes from each rank to each.

    Parameters
    ----------
    a : Columns, (n, n)
        Both triangles, of double precision, of panels of at most `WIDTH` columns; is overwritten.

    Returns
    -------
    diagonal : ndarray of float, (n,)
    beside : ndarray of float, (n - 1,)
        The same on every rank.
    reflections : Reflections
        Their product is the basis in which the matrix is tridiagonal.
    """
    return _Reduction(a).run()


class _Reduction:
    """A matrix of which some panels are tridiagonal already."""

    def __init__(self, a: Columns) -> None:
        from scipy.linalg import get_lapack_funcs

        self._a, self._n, self._kind = a, a.shape[0], a.values.dtype
        (self._larfg,) = get_lapack_funcs(("larfg",), dtype=self._kind)
        self._diagonal, self._beside = np.empty(self._n), np.empty(max(self._n - 1, 0))
        self._exchanged = ColumnExchange(a)
        self._mine = a.indices()

    def run(self) -> tuple[np.ndarray, np.ndarray, Reflections]:
        """As `reduced`."""
        a = self._a
        reflections = Reflections(a, first_row=1)
        for panel in a.panels:
            vectors, others, taus = self._of_panel(panel)
            if a.owns(panel):
                a.part(panel)[panel.start :] = vectors
                reflections.take(panel, taus)
            self._update(panel, vectors, others)
        found = a.comm.bcast((self._diagonal, self._beside))  # rank 0's: others may round
        return *found, reflections

    def _of_panel(self, panel: Panel) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Vectors v of reflections, w such that the matrix is to lose ``v w^H + w v^H``, and factors of reflections.

        All ranks do the same, but for the products.
        """
        a, start, width = self._a, panel.start, panel.width
        columns = np.asfortranarray(self._whole(panel))
        v = np.zeros((self._n - start, width), self._kind, order="F")
        w = np.zeros_like(v)
        taus = np.zeros(width, self._kind)
        for i in range(width):
            column = columns[i:, i]
            if i:
                column -= v[i:, :i] @ w[i, :i].conj()
                column -= w[i:, :i] @ v[i, :i].conj()
            row = start + i
            self._diagonal[row] = column[0].real
            if row == self._n - 1:
                break
            self._beside[row], taus[i] = self._reflection(column[1:], v[i + 1 :, i])
            vector = v[i + 1 :, i]
            place = int(np.searchsorted(self._mine, row + 1))
            product = vector.conj() @ a.values[row + 1 :, place:]
            image = self._exchanged.whole(product.conj(), row + 1)
            if i:
                image -= v[i + 1 :, :i] @ (w[i + 1 :, :i].conj().T @ vector)
                image -= w[i + 1 :, :i] @ (v[i + 1 :, :i].conj().T @ vector)
            image *= taus[i]
            image -= (taus[i] / 2 * np.vdot(image, vector)) * vector
            w[i + 1 :, i] = image
        return v, w, taus

    def _reflection(self, column: np.ndarray, vector: np.ndarray) -> tuple[float, complex]:
        """What a reflection that leaves only the first element makes of it, and its factor; sets its vector."""
        first, vector[1:], tau = reflection(self._larfg, column)
        vector[0] = 1
        return first.real, tau

    def _whole(self, panel: Panel) -> np.ndarray:
        """A panel's rows from its first column on, from its owner."""
        comm, shape = self._a.comm, (self._n - panel.start, panel.width)
        if self._a.owns(panel):
            part = np.ascontiguousarray(self._a.part(panel)[panel.start :])
            comm.transfer([(rank, part) for rank in range(comm.size) if rank != comm.rank], [])
            return part
        part = np.empty(shape, self._kind)
        comm.transfer([], [(panel.owner, part)])
        return part

    def _update(self, panel: Panel, v: np.ndarray, w: np.ndarray) -> None:
        """Apply a panel's reflections to this rank's columns behind it."""
        width, stop = panel.width, panel.stop
        both = np.concatenate([v[width:], w[width:]], axis=1)
        for chunk, which in self._a.chunks([its for its in self._a.own if its.start >= stop]):
            rows = which - panel.start
            subtract_product(chunk[stop:], both, np.concatenate([w[rows], v[rows]], axis=1).conj().T)
