"""Eigenvalues and eigenvectors of a symmetric tridiagonal matrix, whose eigenvectors are cut between rows.

Divide and conquer ("A divide and conquer method for the symmetric tridiagonal eigenproblem", J. J. M. Cuppen, Numer.
Math. 1981): a matrix is that of two halves and one of rank one, which the secular equation joins (`parallel.secular`).
A rank has its rows of the eigenvectors of each part, which it multiplies by those of the joined matrix; all it needs of
others is the first and the last row of a part, and the roots that they have found ("A parallel divide and conquer
algorithm for the symmetric eigenvalue problem on distributed memory architectures", F. Tisseur and J. Dongarra, SIAM J.
Sci. Comput. 1999). Parts, and what is negligible, are LAPACK's (`dlaed0`, `dlaed2`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from numpy_dist.parallel import secular
from numpy_dist.parallel.columns import even_bounds

if TYPE_CHECKING:
    from numpy_dist.comm.base import Communicator

SMALLEST = 25  # the order of parts that are not divided, at most
_CHUNK = 256  # eigenvectors that are made together
_NEGLIGIBLE = 8.0  # times the precision and the largest element


class _Range(NamedTuple):
    """Rows of the matrix that are a part."""

    first: int
    stop: int

    @property
    def middle(self) -> int:
        """The first row of the second half."""
        return self.first + (self.stop - self.first) // 2

    @property
    def halves(self) -> tuple[_Range, _Range]:
        """Both parts of which it is made."""
        return _Range(self.first, self.middle), _Range(self.middle, self.stop)


@dataclass
class _Part:
    """The eigenvalues of a part, ascending, and of its eigenvectors the first row, the last one, and this rank's."""

    values: np.ndarray
    top: np.ndarray
    bottom: np.ndarray
    rows: np.ndarray


@dataclass
class _Joint:
    """Two parts and a matrix of rank one, without what is negligible.

    Attributes
    ----------
    d, z, rho
        Of the secular equation.
    kept, left_out : ndarray of int
        Which of the eigenvectors of both parts, one after the other, take part in it, and which do not.
    values : ndarray
        Eigenvalues of those that do not.
    rotations : list of (int, int, float, float)
        What is done to pairs of eigenvectors first.
    in_left, in_right : ndarray of bool
        Which eigenvectors are not zero in the rows of the left part, and of the right one.
    """

    d: np.ndarray
    z: np.ndarray
    rho: float
    kept: np.ndarray
    left_out: np.ndarray
    values: np.ndarray
    rotations: list[tuple[int, int, float, float]]
    in_left: np.ndarray
    in_right: np.ndarray


def eigen(
    diagonal: np.ndarray, beside: np.ndarray, bounds: Sequence[tuple[int, int]], comm: Communicator
) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues and eigenvectors of a symmetric tridiagonal matrix.

    Collective: two allgathers of a few vectors for each time that parts are joined which several ranks hold.

    Parameters
    ----------
    diagonal : ndarray, (n,)
    beside : ndarray, (n - 1,)
        Both the same on every rank, finite, and none too large to be squared.
    bounds : sequence of (int, int)
        Which rows of the eigenvectors each rank gets.

    Returns
    -------
    values : ndarray, (n,)
        Ascending, the same on every rank.
    rows : ndarray, (r, n)
        This rank's rows of the matrix of eigenvectors, Fortran-contiguous.
    """
    return _Solver(diagonal, beside, bounds, comm).solve()


def _nothing(its: _Range) -> _Part:
    """What stands for a part of another rank where that is only counted, and does not tell (`comm.counting`)."""
    zeros = np.zeros(its.stop - its.first)
    return _Part(zeros, zeros, zeros, np.zeros((len(zeros), len(zeros)), order="F"))


class _Solver:
    """The parts of a matrix, level by level: those of one rank first, and then those that several ranks hold."""

    def __init__(
        self, diagonal: np.ndarray, beside: np.ndarray, bounds: Sequence[tuple[int, int]], comm: Communicator
    ) -> None:
        self._beside, self._bounds, self._comm = beside, bounds, comm
        self._mine = bounds[comm.rank]
        self._levels = [[_Range(0, len(diagonal))]]
        self._diagonal = diagonal.copy()
        while max(its.stop - its.first for its in self._levels[-1]) > SMALLEST:
            for its in self._levels[-1]:
                self._diagonal[its.middle - 1 : its.middle + 1] -= abs(beside[its.middle - 1])
            self._levels.append([half for its in self._levels[-1] for half in its.halves])
        self._parts: dict[_Range, _Part] = {}

    def solve(self) -> tuple[np.ndarray, np.ndarray]:
        """As `eigen`."""
        for its in self._levels[-1]:
            if self._comm.rank == self._members(its)[0]:
                self._parts[its] = self._smallest(its)
        for level in self._levels[-2::-1]:
            for its in level:
                if self._members(its) == [self._comm.rank]:
                    self._join_alone(its)
        self._share()
        for level in self._levels[-2::-1]:
            together = [its for its in level if len(self._members(its)) > 1]
            if together:
                self._join(together, last=len(level) == 1)
        whole = self._parts[self._levels[0][0]]
        return whole.values, whole.rows

    # -- whose is what -----------------------------------------------------------------------------------------------

    def _members(self, its: _Range) -> list[int]:
        """The ranks that have rows of a part."""
        return [rank for rank, (low, high) in enumerate(self._bounds) if max(low, its.first) < min(high, its.stop)]

    def _held(self, its: _Range) -> tuple[int, int]:
        """The first of a part's rows that this rank has, counted from the part's first, and the one behind the last."""
        low, high = max(self._mine[0], its.first), min(self._mine[1], its.stop)
        return (low - its.first, high - its.first) if low < high else (0, 0)

    # -- parts -------------------------------------------------------------------------------------------------------

    def _smallest(self, its: _Range) -> _Part:
        """What LAPACK finds, all rows of it."""
        beside = self._beside[its.first : its.stop - 1]
        matrix = np.diag(self._diagonal[its.first : its.stop]) + np.diag(beside, -1)
        values, vectors = np.linalg.eigh(matrix)
        return _Part(values, vectors[0], vectors[-1], np.asfortranarray(vectors))

    def _share(self) -> None:
        """Tell all ranks of the largest parts that are a rank's alone, and of the smallest that are not."""
        together = [its for level in self._levels[:-1] for its in level if len(self._members(its)) > 1]
        wanted = {half for its in together for half in its.halves} or {self._levels[0][0]}
        told = {}
        for its in wanted & self._parts.keys():
            part = self._parts[its]
            rows = part.rows if len(self._members(its)) > 1 else part.rows[:0]
            told[its] = _Part(part.values, part.top, part.bottom, rows)
        found = self._comm.allgather(told)
        for its in wanted:
            members = self._members(its)
            if members == [self._comm.rank] or its in together:
                continue
            part = found[members[0]].get(its) or _nothing(its)
            part.rows = part.rows[slice(*self._held(its))]
            self._parts[its] = part

    def _join_alone(self, its: _Range) -> None:
        """A part whose rows are all this rank's."""
        joint = self._joint(its)
        found = secular.roots(joint.d, joint.z, joint.rho, 0, len(joint.d))
        z = secular.weights([secular.products(joint.d, found, 0)], joint.z)
        made = self._joined(its, joint, found, z)
        made.top, made.bottom = made.rows[0].copy(), made.rows[-1].copy()
        self._parts[its] = made

    def _join(self, together: list[_Range], last: bool) -> None:
        """The parts of one level that several ranks hold: each of these finds some of the roots."""
        rank = self._comm.rank
        joints = {its: self._joint(its) for its in together}
        mine: dict[_Range, tuple[secular.Roots, np.ndarray]] = {}
        for its, joint in joints.items():
            members = self._members(its)
            if rank in members:
                share = even_bounds(len(joint.d), len(members))[members.index(rank)]
                found = secular.roots(joint.d, joint.z, joint.rho, *share)
                mine[its] = found, secular.products(joint.d, found, share[0])
        told = self._comm.allgather(mine)
        for its, joint in joints.items():
            members = self._members(its)
            shares = even_bounds(len(joint.d), len(members))
            parts = [
                told[member].get(its) or (secular.nothing(high - low), np.ones(len(joint.d)))
                for member, (low, high) in zip(members, shares, strict=True)
            ]
            roots = secular.Roots(
                np.concatenate([found.origins for found, _ in parts]),
                np.concatenate([found.offsets for found, _ in parts]),
            )
            z = secular.weights([product for _, product in parts], joint.z)
            self._parts[its] = self._joined(its, joint, roots, z)
        if not last:
            self._share_edges(together)

    def _share_edges(self, together: list[_Range]) -> None:
        """Tell all ranks of the first and the last row of each part."""
        edges: dict[tuple[_Range, bool], np.ndarray] = {}
        for its in together:
            members, rows = self._members(its), self._parts[its].rows
            if self._comm.rank == members[0]:
                edges[its, False] = rows[0].copy()
            if self._comm.rank == members[-1]:
                edges[its, True] = rows[-1].copy()
        for found in self._comm.allgather(edges):
            for (its, at_end), row in found.items():
                if at_end:
                    self._parts[its].bottom = row
                else:
                    self._parts[its].top = row

    def _joint(self, its: _Range) -> _Joint:
        """How a part is made of its halves."""
        left, right = (self._parts[half] for half in its.halves)
        z = np.concatenate([left.bottom, right.top])
        return _without_negligible(
            np.concatenate([left.values, right.values]), z, float(self._beside[its.middle - 1]), len(left.values)
        )

    def _joined(self, its: _Range, joint: _Joint, roots: secular.Roots, z: np.ndarray) -> _Part:
        """A part of its halves, which are dropped; its edges are not known yet."""
        left, right = (self._parts.pop(half) for half in its.halves)
        values = np.concatenate([roots.values(joint.d), joint.values])
        order = np.argsort(values, kind="stable")
        places = np.empty_like(order)
        places[order] = np.arange(len(order))
        upper, n1 = len(left.rows), len(left.values)
        rows = np.zeros((upper + len(right.rows), len(values)), order="F")
        rows[:upper, :n1], rows[upper:, n1:] = left.rows, right.rows
        del left, right
        k, shape, halves = len(joint.d), rows.shape, []
        if len(rows):
            for i, j, c, s in joint.rotations:
                first = rows[:, i].copy()
                rows[:, i] = c * first + s * rows[:, j]
                rows[:, j] = c * rows[:, j] - s * first
            for some, there in ((slice(0, upper), joint.in_left), (slice(upper, None), joint.in_right)):
                taking = np.flatnonzero(there[joint.kept])
                halves.append((some, taking, np.asfortranarray(rows[some][:, joint.kept[taking]])))
        unchanged = rows[:, joint.left_out]
        del rows  # before there is memory for what is made of it
        made = np.empty(shape, order="F")
        if len(made):
            made[:, places[k:]] = unchanged
            for low in range(0, k, _CHUNK):
                which = slice(low, min(low + _CHUNK, k))
                vectors = secular.vectors(joint.d, z, roots, which)
                for some, taking, part in halves:
                    if len(part):
                        made[some, places[which]] = part @ vectors[taking]
        return _Part(values[order], np.zeros(len(order)), np.zeros(len(order)), made)


def _ascending(values: np.ndarray, limit: float) -> list[int]:
    """The order of values, where those that differ by rounding only stay as they stand.

    Of two parts with the same eigenvalues it is the first one's that comes first, as in LAPACK where they are equal to
    the last digit.
    """
    order = np.argsort(values, kind="stable").tolist()
    first = 0
    for stop in range(1, len(order) + 1):
        if stop == len(order) or values[order[stop]] - values[order[first]] > limit:
            order[first:stop] = sorted(order[first:stop])
            first = stop
    return order


def _without_negligible(values: np.ndarray, z: np.ndarray, beside: float, n1: int) -> _Joint:
    """What is left of two parts where eigenvalues that the other part does not change are set aside."""
    n = len(values)
    z = z / math.sqrt(2.0)
    if beside < 0:
        z[n1:] *= -1
    rho = abs(2 * beside)
    in_left, in_right = np.arange(n) < n1, np.arange(n) >= n1
    d, weights = values.tolist(), z.tolist()
    most = float(np.abs(z).max())
    limit = _NEGLIGIBLE * secular.EPS * max(float(np.abs(values).max()), most)
    order = _ascending(values, limit)
    kept: list[int] = []
    left_out: list[int] = []
    rotations: list[tuple[int, int, float, float]] = []
    before = -1
    for j in order:
        if rho * abs(weights[j]) <= limit:
            left_out.append(j)
            continue
        if before >= 0:
            s, c = weights[before], weights[j]
            size = math.sqrt(c * c + s * s)
            c, s = c / size, -s / size
            if abs((d[j] - d[before]) * c * s) <= limit:
                weights[j], weights[before] = size, 0.0
                rotations.append((before, j, c, s))
                in_left[[before, j]] = in_left[before] | in_left[j]
                in_right[[before, j]] = in_right[before] | in_right[j]
                d[before], d[j] = d[before] * c * c + d[j] * s * s, d[before] * s * s + d[j] * c * c
                left_out.append(before)
            else:
                kept.append(before)
        before = j
    if before >= 0:
        kept.append(before)
    found = np.array(d)
    return _Joint(
        found[kept], np.array(weights)[kept], rho, np.array(kept, np.intp), np.array(left_out, np.intp),
        found[left_out], rotations, in_left, in_right,
    )  # fmt: skip
