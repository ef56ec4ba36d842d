"""Products whose summed axis is cut: what ranks hold along it is multiplied, and the partial products are added up.

A rank computes some of its partial product at a time, such as some columns of a matrix, and sends each owner what it
has for it, while the next of it is multiplied: nobody has the memory of a whole one. Owners add up in rank order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import cycle, pairwise, product
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from numpy_dist.backends.library import compute, on_host
from numpy_dist.layout.layout import Layout
from numpy_dist.layout.regions import Box, box_shape, box_size, box_slices, intersect_boxes
from numpy_dist.parallel.joined_axes import multiply_joined
from numpy_dist.parallel.matmul import ProductSpace, adder
from numpy_dist.parallel.matmul import multiply as multiply_into
from numpy_dist.parallel.pieces import at_most, pieces
from numpy_dist.parallel.product_task import ProductTask
from numpy_dist.parallel.row_gram import gram

if TYPE_CHECKING:
    from numpy_dist.backends.library import Array
    from numpy_dist.comm.base import PendingExchange

    Multiply = Callable[
        [Box, np.ndarray], np.ndarray
    ]  # what a rank has of a box of the product; it may be made in this


class Contraction:
    """One rank's part in sums of partial products.

    Parameters
    ----------
    holders : sequence of bool
        Which ranks have something to multiply.
    result : Layout
        Of the product; each copy gets the same, in the same order.
    task : ProductTask
        Its box of the product, which is also the attribute `out`.
    work : dtype, optional
        In which products are computed and added up; default: that of `out`.
    """

    def __init__(
        self, holders: Sequence[bool], result: Layout, task: ProductTask, work: np.dtype | None = None
    ) -> None:
        self.out, self._comm, self._most, self._empty = task
        self._work = task.out.dtype if work is None else work
        self._holders = [rank for rank, holds in enumerate(holders) if holds]
        self._boxes = [result.box(rank) for rank in range(task.comm.size)]
        self._shape = result.shape
        self._spaces: dict[int, np.ndarray] = {}

    def product(self, columns: Array, rows: Array) -> None:
        """Add up products of this rank's columns of the left operand, (m, its k), and rows of the right one.

        Operands on the host are converted to the dtype of the product, some of the left one at a time.
        """

        def into(left: np.ndarray, right: np.ndarray, out: np.ndarray) -> np.ndarray:
            multiply_into(left, right, out, self._most // 2)
            return out

        def multiply(box: Box, space: np.ndarray) -> np.ndarray:
            left, right = columns[slice(*box[0])], rows[:, slice(*box[1])]
            return on_host(compute("matmul", lambda x, y: into(x, y, space), left, right))

        self._add(self._parts, self._in_turn(self._parts, multiply), None)

    def tensors(self, left: np.ndarray, right: np.ndarray, summed: int) -> None:
        """Add up products of what this rank has of two tensors, summed over so many axes, which are their last ones.

        The axes of the product are those of the left operand and then those of the right one.
        """
        parts, own = self._parts, left.ndim - summed
        heights, widths = ([box_size(box[its]) for box in parts] for its in (slice(own), slice(own, None)))
        added = ProductSpace(self._work, (max(heights), max(widths)), self._most // 4, self._empty)

        def multiply(box: Box, space: np.ndarray) -> np.ndarray:
            one, other = (x[tuple(slice(*its) for its in at)] for x, at in ((left, box[:own]), (right, box[own:])))
            multiply_joined(one, other, summed, space, added)
            return space

        self._add(parts, self._in_turn(parts, multiply), None)

    def sum(self, made: np.ndarray) -> None:
        """Add up this rank's partial product, (m, n), in the dtype of sums; it may be overwritten."""
        self._add(self._parts, lambda box: made[box_slices(box, (0, 0))], None)

    def gram(self, rows: np.ndarray, adjoint: bool) -> None:
        """Add up products of the transpose of this rank's rows, (k of this rank, n), or their adjoint, with themselves.

        Where that takes several pieces, the result is cut between rows only: what lies below its diagonal is computed,
        and sent to where it lies above.
        """
        (n, _), bounds = self._shape, [None if box is None else box[0] for box in self._boxes]
        parts = pieces(n, self._each(1, self._shape), self._most)

        def whole(box: Box, space: np.ndarray) -> np.ndarray:
            return np.conjugate(gram(rows.T)) if adjoint else np.matmul(rows.T, rows, out=space)

        def below(box: Box, space: np.ndarray) -> np.ndarray:
            (first, _), part = box
            left, right = rows[:, first:].T, rows[:, slice(*part)]
            product = np.matmul(left, right.conj() if adjoint else right, out=space)
            return np.conjugate(product, out=product) if adjoint else product

        if len(parts) == 1:
            all_of_it = [((0, n), (0, n))]
            self._add(all_of_it, self._in_turn(all_of_it, whole), None)
            return
        cut = sorted({low for low, _ in parts} | {low for low, _ in filter(None, bounds)} | {n})
        boxes = [((low, n), (low, high)) for low, high in pairwise(cut)]
        self._add(boxes, self._in_turn(boxes, below), adjoint)

    @property
    def _parts(self) -> list[Box]:
        """Boxes of the product that are added up one after the other, each along one axis if that makes them small.

        That is the axis along which they take the least: one that is not cut, if there is one, so that all owners have
        something of each box; of two of them the last.
        """
        shape, bounds = list(self._shape), [[(0, n)] for n in self._shape]
        most, whole = at_most(self._most), set(range(len(shape)))

        def weight(axis: int) -> tuple[bool, int, int]:
            each = self._each(axis, shape)
            return each > most, each * shape[axis], -axis

        while whole and self._needs(shape) > most:
            axis = min(whole, key=weight)
            bounds[axis] = pieces(shape[axis], self._each(axis, shape), self._most)
            shape[axis] = max(high - low for low, high in bounds[axis])
            whole.remove(axis)
        return list(product(*bounds))

    def _each(self, axis: int, shape: Sequence[int]) -> int:
        """What an index of an axis takes in a part of this shape."""
        return self._needs([1 if its == axis else n for its, n in enumerate(shape)])

    def _needs(self, shape: Sequence[int]) -> int:
        """What a part of this shape takes: two products, and what comes from all others."""
        owned = (prod(map(min, shape, box_shape(box))) for box in self._boxes if box is not None)
        return 2 * prod(shape) + self._comm.size * max(owned, default=0)

    def _in_turn(self, parts: Sequence[Box], multiply: Multiply) -> Callable[[Box], np.ndarray]:
        """What multiplies into two pieces of memory in turn: what is in one is sent while the other is filled."""
        count = 2 if self._comm.rank in self._holders else 0
        spaces = cycle([self._empty((max(map(box_size, parts)),), self._work) for _ in range(count)])

        def multiplied(box: Box) -> np.ndarray:
            return multiply(box, next(spaces)[: box_size(box)].reshape(box_shape(box)))

        return multiplied

    def _add(self, parts: Sequence[Box], multiply: Callable[[Box], np.ndarray], mirrored: bool | None) -> None:
        """Boxes of the product, one after the other; `mirrored` also their transposes, or their adjoints."""
        out, comm = self.out, self._comm
        if not self._holders:
            out[...] = 0  # the product of no columns
            return
        holds = comm.rank in self._holders
        following = multiply(parts[0]) if holds else None
        for number, box in enumerate(parts):
            values, pending = self._start(box, following)
            if number + 1 < len(parts):
                following = multiply(parts[number + 1]) if holds else None
            pending.wait()
            own = self._own(comm.rank, box)
            if own is not None:
                total = out[self._within(own)]
                if self._work != out.dtype:
                    sums = values[0]
                else:
                    sums = total
                    total[...] = values[0]
                for part in values[1:]:
                    adder(self._work)(sums, part, out=sums)
                if self._work != out.dtype:
                    total[...] = sums
            if mirrored is not None:
                self._mirror(box[1], mirrored)

    def _own(self, rank: int, box: Box) -> Box | None:
        """What a rank owns of a box of the product."""
        theirs = self._boxes[rank]
        return None if theirs is None else intersect_boxes(theirs, box)

    def _within(self, box: Box) -> tuple[slice, ...]:
        """Where a box of the product lies in this rank's."""
        mine = self._boxes[self._comm.rank]
        assert mine is not None
        return box_slices(box, [low for low, _ in mine])

    def _start(self, box: Box, product: np.ndarray | None) -> tuple[list[np.ndarray], PendingExchange]:
        """Let what all have for this rank's share of a box come, by ascending rank, and send others what is theirs."""
        me, sends, receives, values = self._comm.rank, [], [], []
        own = self._own(me, box)
        for rank in range(self._comm.size):
            theirs = self._own(rank, box)
            if rank != me and theirs is not None and product is not None:
                sends.append((rank, np.ascontiguousarray(product[box_slices(theirs, [low for low, _ in box])])))
            if own is None or rank not in self._holders:
                continue
            if rank == me:
                assert product is not None
                values.append(product[box_slices(own, [low for low, _ in box])])
            else:
                values.append(self._space(rank, box_shape(own)))
                receives.append((rank, values[-1]))
        return values, self._comm.start_transfer(sends, receives)

    def _space(self, rank: int, shape: tuple[int, ...]) -> np.ndarray:
        """Memory for what comes from a rank."""
        size = prod(shape)
        if rank not in self._spaces or self._spaces[rank].size < size:
            self._spaces[rank] = self._empty((size,), self._work)
        return self._spaces[rank][:size].reshape(shape)

    def _mirror(self, columns: tuple[int, int], adjoint: bool) -> None:
        """Send what has been added up in some columns, from the diagonal on, to the owner of the same rows."""
        (low, high), me, out, n = columns, self._comm.rank, self.out, self._shape[0]

        def turned(part: np.ndarray) -> np.ndarray:
            return part.conj().T if adjoint else part.T

        shares = [self._own(rank, ((low, n), columns)) for rank in range(self._comm.size)]
        owner = next(rank for rank, share in enumerate(shares) if share is not None and share[0][0] == low)
        mine = shares[me]
        if me != owner:
            if mine is not None:
                self._comm.transfer([(owner, np.ascontiguousarray(turned(out[self._within(mine)])))], [])
            return
        assert mine is not None
        block = out[self._within(((low, high), columns))]
        np.copyto(block, turned(block.copy()), where=np.triu(np.ones(block.shape, bool), 1))
        if adjoint:
            np.fill_diagonal(block.imag, 0)
        below = ((high, mine[0][1]), columns)
        out[self._within((columns, below[0]))] = turned(out[self._within(below)])
        receives = []
        for rank, share in enumerate(shares):
            if rank != me and share is not None:
                receives.append((rank, np.empty((high - low, share[0][1] - share[0][0]), out.dtype)))
        self._comm.transfer([], receives)
        for rank, part in receives:
            share = shares[rank]
            assert share is not None
            out[self._within((columns, share[0]))] = part
