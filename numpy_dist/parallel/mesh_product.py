"""Products on a mesh: what a rank receives falls with the square root of the number of ranks.

Operands lie in rows, as arrays do by default, and so does the result. In between a rank computes one block of it, that
of its place in a mesh: the ranks of a mesh row hold the rows of that block between them, so that they send each other
columns of the left operand; rows of the right operand come from their owner, only those columns that the block needs.
That is SUMMA ("SUMMA: scalable universal matrix multiplication algorithm", R. A. van de Geijn and J. Watts,
Concurrency: Practice and Experience 1997), but each rank begins with rows of its own, as in Cannon's algorithm, so that
no two need the same owner at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import numpy as np

from numpy_dist.backends.library import compute
from numpy_dist.layout.mesh import Mesh
from numpy_dist.parallel.columns import even_bounds
from numpy_dist.parallel.matmul import adder

if TYPE_CHECKING:
    from numpy_dist.comm.base import Communicator, PendingExchange

_LEAST = 256  # columns of the left operand that are multiplied at a time, at least, where there are as many

Bounds = Sequence[tuple[int, int]]


@lru_cache(maxsize=1024)
def best_mesh(m: int, k: int, n: int, size: int) -> tuple[Mesh, int]:
    """The mesh on which an (m, k) by (k, n) product moves the fewest elements, and how many, of all ranks together."""
    meshes = [Mesh((size // columns, columns)) for columns in range(1, size + 1) if size % columns == 0]
    return min(((mesh, _moved(m, k, n, mesh)) for mesh in meshes), key=lambda found: found[1])


def _moved(m: int, k: int, n: int, mesh: Mesh) -> int:
    """How many elements move: those of mates in the mesh row, rows of others, and the result's."""
    _, columns = mesh.shape
    return (columns - 1) * m * k + (mesh.size - 1) * k * n // columns + (columns - 1) * m * n // columns


@dataclass
class _Step:
    """What a rank multiplies at a time: rows of the right operand that some ranks hold, and columns of the left one."""

    left: np.ndarray
    right: np.ndarray
    pending: PendingExchange


class MeshProduct:
    """One rank's part in a product of two matrices whose rows are cut between all ranks.

    Parameters
    ----------
    rows : ndarray, (r, k)
        This rank's rows of the left operand.
    panel : ndarray, (k of this rank, n)
        This rank's rows of the right operand.
    left_bounds, right_bounds : sequence of (int, int)
        Which rows of each operand each rank holds; those of consecutive ranks are beside each other.
    mesh : Mesh
        Of two dimensions.
    comm : Communicator
    dtype : dtype, optional
        Of the result, to which parts of both are converted; default: that of the right operand.
    """

    def __init__(
        self,
        rows: np.ndarray,
        panel: np.ndarray,
        left_bounds: Bounds,
        right_bounds: Bounds,
        mesh: Mesh,
        comm: Communicator,
        dtype: np.dtype | None = None,
    ) -> None:
        self._dtype = panel.dtype if dtype is None else dtype
        self._rows, self._panel, self._comm = rows, panel, comm
        self._left_bounds, self._right_bounds, self._mesh = left_bounds, right_bounds, mesh
        self._row, self._column = mesh.coordinates(comm.rank)
        self._mates = [mesh.rank((self._row, column)) for column in range(mesh.shape[1])]
        held = [left_bounds[rank] for rank in self._mates if left_bounds[rank][1] > left_bounds[rank][0]]
        self._first = min((low for low, _ in held), default=0)
        self._end = max((high for _, high in held), default=0)
        self._cuts = even_bounds(panel.shape[1], mesh.shape[1])

    def result(self) -> np.ndarray:
        """This rank's rows of the product, (r, n). Collective: see `step_count`, and one message to each mate."""
        low, high = self._cuts[self._column]
        add = adder(self._dtype)
        made = np.zeros((self._end - self._first, high - low), self._dtype)
        begun, following = False, self._start(0)
        for number in range(self.step_count):
            step = following
            step.pending.wait()
            if number + 1 < self.step_count:
                following = self._start(number + 1)
            if step.left.shape[1] and made.size:
                left, right = (x.astype(self._dtype, copy=False) for x in (step.left, step.right))
                product = compute("matmul", np.matmul, left, right)
                made = add(made, product, out=made) if begun else product
                begun = True
        return self._in_rows(made)

    @property
    def step_count(self) -> int:
        """How many steps there are; in each a rank has a message to each mate, and one to each that needs its rows."""
        return self._mesh.shape[0] * len(range(0, self._mesh.shape[1], self._together))

    @cached_property  # of all ranks' bounds, and asked for with each pair of ranks
    def _together(self) -> int:
        """How many ranks' rows are multiplied at a time."""
        width = max((high - low for low, high in self._right_bounds), default=0)
        return max(min(_LEAST // max(width, 1), self._mesh.shape[1]), 1)

    def _places(self, number: int) -> tuple[int, range]:
        """How many mesh rows further, and how many columns further, the owners are of what is multiplied in a step."""
        turn, part = divmod(number, self.step_count // self._mesh.shape[0])
        return turn, range(part * self._together, min((part + 1) * self._together, self._mesh.shape[1]))

    def _owners(self, number: int, row: int, column: int) -> list[int]:
        """Whose rows the rank at this place of the mesh multiplies in a step."""
        (height, width), (turn, places) = self._mesh.shape, self._places(number)
        return [self._mesh.rank(((row + turn) % height, (column + place) % width)) for place in places]

    def _users(self, number: int) -> list[int]:
        """Which ranks multiply this rank's rows in a step."""
        (height, width), (turn, places) = self._mesh.shape, self._places(number)
        return [self._mesh.rank(((self._row - turn) % height, (self._column - place) % width)) for place in places]

    def _start(self, number: int) -> _Step:
        """Let what a step needs come, and send what others need in it."""
        me, kind = self._comm.rank, self._rows.dtype
        owners = self._owners(number, self._row, self._column)
        widths = [self._right_bounds[owner][1] - self._right_bounds[owner][0] for owner in owners]
        low, high = self._cuts[self._column]
        sends, receives = [], []

        # Columns of the left operand: those of mates come as they lie, in rows of the block.
        left = np.empty((self._end - self._first, sum(widths)), kind)
        for mate in self._mates:
            first, end = self._left_bounds[mate]
            place = left[first - self._first : end - self._first]
            if mate == me:
                place[...] = self._columns(owners)
                continue
            receives.append((mate, place))
            sends.append((mate, self._columns(self._owners(number, *self._mesh.coordinates(mate)))))

        # Rows of the right operand: those columns that the other's block needs.
        right, done = np.empty((sum(widths), high - low), self._panel.dtype), 0
        for owner, width in zip(owners, widths, strict=True):
            place = right[done : done + width]
            done += width
            if owner == me:
                place[...] = self._panel[:, low:high]
            else:
                receives.append((owner, place))
        for other in self._users(number):
            if other != me:
                start, stop = self._cuts[self._mesh.coordinates(other)[1]]
                sends.append((other, np.ascontiguousarray(self._panel[:, start:stop])))
        pending = self._comm.start_transfer(
            [message for message in sends if message[1].size], [message for message in receives if message[1].size]
        )
        return _Step(left, right, pending)

    def _columns(self, owners: Sequence[int]) -> np.ndarray:
        """This rank's rows of the left operand, in the columns that belong to rows of some ranks."""
        parts = [self._rows[:, slice(*self._right_bounds[owner])] for owner in owners]
        return np.ascontiguousarray(np.concatenate(parts, axis=1))  # of columns in Fortran's order the like is made

    def _in_rows(self, block: np.ndarray) -> np.ndarray:
        """This rank's rows of the result, of the blocks of all mates."""
        first, end = self._left_bounds[self._comm.rank]
        made = np.empty((end - first, self._panel.shape[1]), block.dtype)
        parts, sends = {}, []
        for mate in self._mates:
            low, high = self._left_bounds[mate]
            part = np.ascontiguousarray(block[low - self._first : high - self._first])
            if mate == self._comm.rank:
                parts[mate] = part
                continue
            sends.append((mate, part))
            cut = self._cuts[self._mesh.coordinates(mate)[1]]
            parts[mate] = np.empty((len(made), cut[1] - cut[0]), block.dtype)
        receives = [(mate, part) for mate, part in parts.items() if mate != self._comm.rank]
        self._comm.transfer([m for m in sends if m[1].size], [m for m in receives if m[1].size])
        for mate, part in parts.items():
            made[:, slice(*self._cuts[self._mesh.coordinates(mate)[1]])] = part
        return made
