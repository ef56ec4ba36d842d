"""Products of tensors that lie in boxes of any mesh, summed over several axes, which are never joined between ranks.

Where axes of tensors are joined, such that they become matrices, what a rank has is no box any more unless the first
one is cut. Here boxes stay boxes: each rank gets what it needs of both operands by panels, as `parallel.panels` brings
them for matrices. Only the parts that are multiplied are joined, on each rank by itself (`parallel.joined_axes`).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise, product
from math import prod
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from numpy_dist.layout.layout import Layout
from numpy_dist.layout.regions import Box, box_empty, box_shape, box_size, box_slices, intersect_boxes, region_of
from numpy_dist.parallel.joined_axes import as_shape, for_blas
from numpy_dist.parallel.matmul import adder
from numpy_dist.parallel.pieces import at_most, counts_of_pieces, divided
from numpy_dist.parallel.product_task import ProductTask

if TYPE_CHECKING:
    from numpy_dist.comm.base import PendingExchange


class HeldTensor(NamedTuple):
    """What a rank has of an operand, whose axes are those of the stack, its own ones and then the summed ones.

    Attributes
    ----------
    block : ndarray
        This rank's box of the layout, or all where there is none.
    layout : Layout or None
    stack, summed : int
        How many axes these are.
    """

    block: np.ndarray
    layout: Layout | None
    stack: int
    summed: int

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the tensor."""
        return self.block.shape if self.layout is None else self.layout.shape

    @property
    def own(self) -> int:
        """How many axes are those of this operand alone."""
        return len(self.shape) - self.stack - self.summed

    def points(self, axis: int) -> tuple[int, ...]:
        """Between which indices an axis is cut, with both ends."""
        cut = None if self.layout is None else self.layout.cut_of(axis)
        return (0, self.shape[axis]) if cut is None else cut.ascending

    def region(self, stack: Box, own: Box, summed: Box) -> Box:
        """The box with these indices along the result's stack, which an operand may have only once."""
        once = tuple(
            (0, min(1, high - low)) if n == 1 else (low, high)
            for n, (low, high) in zip(self.shape, stack, strict=False)
        )
        return (*once, *own, *summed)

    def parts(self, box: Box) -> tuple[Box, Box, Box]:
        """A box as that of the stack, of the own axes and of the summed ones."""
        end = self.stack + self.own
        return box[: self.stack], box[self.stack : end], box[end:]


Turn = tuple[Box, Box]
"""Which items of the stack, and which indices of the summed axes, are multiplied in a turn."""


class _Arrived(NamedTuple):
    """What comes of a panel, each part with its box; and what is to be sent and received."""

    parts: list[tuple[Box, np.ndarray]]
    sends: list[tuple[int, np.ndarray]]
    receives: list[tuple[int, np.ndarray]]


def tensor_product(
    left: HeldTensor,
    right: HeldTensor,
    result: Layout,
    task: ProductTask,
) -> None:
    """Compute this rank's box of a product (collective).

    Parameters
    ----------
    left, right : HeldTensor
        Panels are converted to the dtype of the product as they are multiplied.
    result : Layout
        Of the product, whose axes are those of the stack, of the left operand and of the right one; each element
        belongs to one rank.
    task : ProductTask
        Its box of it.
    """
    out, comm, most, empty = task
    nothing = ((0, 0),) * result.ndim
    boxes = [result.box(rank) or nothing for rank in range(comm.size)]
    turns = _turns(left, right, boxes, out.dtype, most)
    ends = left.stack + left.own
    wanted = [[box[left.stack : ends] for box in boxes], [box[ends:] for box in boxes]]
    spaces = [
        [
            empty((_largest(operand, wanted[side], turns),), operand.block.dtype)
            for side, operand in enumerate((left, right))
        ]
        for _ in range(min(len(turns[0]), 2))
    ]

    def start(turn: int) -> tuple[list[_Arrived], PendingExchange]:
        """Let the panels of a turn come, and send those that others need in it."""
        found = [
            _panel(operand, own, [its[turn] for its in turns], comm.rank, space)
            for operand, own, space in zip((left, right), wanted, spaces[turn % 2], strict=True)
        ]
        sends = [message for one in found for message in one.sends]
        receives = [message for one in found for message in one.receives]
        return found, comm.start_transfer(sends, receives)

    total = _Total(out, [low for low, _ in boxes[comm.rank]], left.stack, left.own, most // 2)
    count = len(turns[0])
    following = start(0) if count else None
    for turn in range(count):
        assert following is not None
        found, pending = following
        pending.wait()
        following = start(turn + 1) if turn + 1 < count else None
        for one, of_left in found[0].parts:
            for other, of_right in found[1].parts:
                total.add(left, one, of_left, right, other, of_right, turns[comm.rank][turn][0])
    if not count:
        out[...] = 0  # the product of no columns


def _turns(left: HeldTensor, right: HeldTensor, boxes: Sequence[Box], dtype: np.dtype, most: int) -> list[list[Turn]]:
    """What each rank multiplies, one turn after the other: as many turns on all ranks, which begin at other places.

    Panels lie between the points at which summed axes are cut. Whole items come together as long as there is room.
    """
    stack, (rows, columns) = left.stack, (left.stack, left.stack + left.own)
    largest = tuple(max(box[axis][1] - box[axis][0] for box in boxes) for axis in range(stack))
    tallest = max(box_size(box[rows:columns]) for box in boxes)
    widest = max(box_size(box[columns:]) for box in boxes)
    kinds = left.block.dtype, right.block.dtype
    nbytes = (
        3 * (tallest * kinds[0].itemsize + widest * kinds[1].itemsize)
        + ((tallest if kinds[0] != dtype else 0) + (widest if kinds[1] != dtype else 0)) * dtype.itemsize
    )
    each = -(-nbytes // dtype.itemsize)
    found: list[list[Turn]] = [[] for _ in boxes]
    grid = [
        pairwise(sorted({*left.points(stack + left.own + axis), *right.points(stack + right.own + axis)}))
        for axis in range(left.summed)
    ]
    cells = [cell for cell in product(*grid) if not box_empty(cell)]
    longest = [max((cell[axis][1] - cell[axis][0] for cell in cells), default=0) for axis in range(left.summed)]
    # The stack is divided alike for all cells: what is added up has the same places then.
    counts = counts_of_pieces((*largest, *longest), each, at_most(2 * most // 3))[:stack]
    together = prod(-(-extent // count) for extent, count in zip(largest, counts, strict=True))
    for cell in cells:
        parts = list(divided(cell, counts_of_pieces(box_shape(cell), each * together, at_most(2 * most // 3))))
        for rank, box in enumerate(boxes):
            found[rank] += product(divided(box[:stack], counts), parts)
    return [
        its[len(its) * rank // len(boxes) :] + its[: len(its) * rank // len(boxes)] for rank, its in enumerate(found)
    ]


def _largest(operand: HeldTensor, wanted: Sequence[Box], turns: Sequence[Sequence[Turn]]) -> int:
    """How many elements of an operand a panel has at most."""
    return max(
        (
            box_size(operand.region(stack, own, summed))
            for own, its in zip(wanted, turns, strict=True)
            for stack, summed in its
        ),
        default=0,
    )


def _panel(operand: HeldTensor, wanted: Sequence[Box], turns: Sequence[Turn], me: int, space: np.ndarray) -> _Arrived:
    """What ranks send each other of an operand in a turn; what comes lies in `space`."""
    block, layout, *_ = operand
    regions = [operand.region(stack, own, summed) for own, (stack, summed) in zip(wanted, turns, strict=True)]
    made, taken = _Arrived([], [], []), 0
    if layout is None:
        if not box_empty(regions[me]):
            made.parts.append((regions[me], block[box_slices(regions[me], (0,) * block.ndim)]))
        return made
    if not box_empty(regions[me]):
        for holder, ranges in layout.locate(region_of(regions[me]), near=me):
            part = tuple((r.start, r.stop) for r in ranges)
            if holder == me:
                values = _own(operand, part, me)
            else:
                values = space[taken : taken + box_size(part)].reshape(box_shape(part))
                taken += values.size
                made.receives.append((holder, values))
            made.parts.append((part, values))
    mine = layout.box(me)
    if mine is None or box_empty(mine):
        return made
    packed: dict[Box, np.ndarray] = {}
    for rank, region in enumerate(regions):
        if rank == me or box_empty(region) or layout.has_copies and not layout.holds_for(me, rank):
            continue
        theirs = intersect_boxes(mine, region)
        if theirs is not None:
            if theirs not in packed:
                packed[theirs] = np.ascontiguousarray(_own(operand, theirs, me))
            made.sends.append((rank, packed[theirs]))
    return made


def _own(operand: HeldTensor, part: Box, me: int) -> np.ndarray:
    assert operand.layout is not None
    box = operand.layout.box(me)
    assert box is not None
    return operand.block[box_slices(part, [low for low, _ in box])]


class _Total:
    """Products of parts, added up in a rank's box of the result."""

    def __init__(self, out: np.ndarray, low: Sequence[int], stack: int, rows: int, most: int) -> None:
        self._out, self._low, self._stack, self._rows = out, low, stack, rows
        self._most = at_most(most)
        self._begun: set[Box] = set()
        self._space: np.ndarray | None = None

    def add(
        self,
        left: HeldTensor,
        one: Box,
        of_left: np.ndarray,
        right: HeldTensor,
        other: Box,
        of_right: np.ndarray,
        items: Box,
    ) -> None:
        """Add the product of parts of both operands, with their boxes, for some items of the stack."""
        (stack, rows, _), (another, columns, _) = left.parts(one), right.parts(other)
        both = tuple(
            intersect_boxes((its if n > 1 else all_of_them,), (theirs if m > 1 else all_of_them,))
            for its, n, theirs, m, all_of_them in zip(
                stack, left.shape[: left.stack], another, right.shape[: right.stack], items, strict=True
            )
        )
        if any(its is None for its in both):
            return
        common = tuple(its[0] for its in both if its is not None)
        place: Box = (*common, *rows, *columns)
        total = self._out[box_slices(place, self._low)]
        matrices = []
        for operand, values, its in ((left, of_left, stack), (right, of_right, another)):
            key = tuple(
                slice(None) if n == 1 else slice(low - first, high - first)
                for (low, high), (first, _), n in zip(common, its, operand.shape, strict=False)
            )
            values = values[key]
            ends = operand.stack + operand.own
            joined = values.reshape(*values.shape[: operand.stack], prod(values.shape[operand.stack : ends]), -1)
            matrices.append(for_blas(joined.astype(total.dtype, copy=False)))
        self._multiply(matrices[0], matrices[1].swapaxes(-1, -2), total, place not in self._begun)
        self._begun.add(place)

    def _multiply(self, left: np.ndarray, right: np.ndarray, total: np.ndarray, first: bool) -> None:
        """Add a product, or begin with it; some items, or rows of the first axis, at a time where it is added."""
        shape = (*total.shape[: self._stack], left.shape[-2], right.shape[-1])
        if first:
            with_memory = as_shape(total, shape)
            if with_memory is not None:
                np.matmul(left, right, out=with_memory)
                return
        axes = self._stack + (1 if self._rows else 0)
        extents = total.shape[:axes]
        counts = counts_of_pieces(extents, total.size // max(prod(extents), 1), self._most)
        inner = shape[self._stack] // max(extents[-1], 1) if self._rows else 0  # rows of an index of the first axis
        for part in divided(tuple((0, n) for n in extents), counts):
            piece = total[box_slices(part, (0,) * axes)]
            rows = slice(part[-1][0] * inner, part[-1][1] * inner) if self._rows else slice(None)
            items = part[: self._stack]
            found = self._product(_of_items(left, items)[..., rows, :], _of_items(right, items), piece.size)
            found = found.reshape(piece.shape)
            if first:
                piece[...] = found
            else:
                adder(total.dtype)(piece, found, out=piece)

    def _product(self, left: np.ndarray, right: np.ndarray, size: int) -> np.ndarray:
        """A product in memory that the next one gets, too."""
        if self._space is None or self._space.size < size:
            self._space = np.empty(size, self._out.dtype)
        stack = np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
        made = self._space[:size].reshape(*stack, left.shape[-2], right.shape[-1])
        return np.matmul(left, right, out=made)


def _of_items(matrices: np.ndarray, items: Box) -> np.ndarray:
    """Some items of a stack, which may have them only once."""
    return matrices[
        tuple(
            slice(None) if n == 1 else slice(low, high) for n, (low, high) in zip(matrices.shape, items, strict=False)
        )
    ]
