"""Products of matrices that lie in boxes of any mesh: panels of them come from whoever holds them, the result stays.

Each rank makes its box of the product. It needs its rows of the left operand and its columns of the right one, and gets
them by panels along the summed axis: the next one is under way while one is multiplied. That is SUMMA ("SUMMA: scalable
universal matrix multiplication algorithm", R. A. van de Geijn and J. Watts, Concurrency: Practice and Experience 1997),
with the order of Cannon's algorithm: each rank begins at another panel, so that no owner serves a whole row of the mesh
at a time.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from itertools import pairwise
from math import prod
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from numpy_dist.layout.layout import Layout
from numpy_dist.layout.regions import Box, box_empty, box_shape, box_size, box_slices, intersect_boxes
from numpy_dist.parallel.matmul import ProductSpace, ProductSum
from numpy_dist.parallel.pieces import pieces
from numpy_dist.parallel.product_task import ProductTask

if TYPE_CHECKING:
    from numpy_dist.comm.base import Communicator, PendingExchange

Interval = tuple[int, int]
_NONE = (0, 0)


class HeldMatrix(NamedTuple):
    """What a rank has of a matrix: its box of a layout, or all of it where there is none."""

    block: np.ndarray
    layout: Layout | None

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the matrix."""
        return self.block.shape if self.layout is None else self.layout.shape

    def points(self, axis: int) -> tuple[int, ...]:
        """Between which indices an axis is cut, with both ends."""
        cut = None if self.layout is None else self.layout.cut_of(axis)
        return (0, self.shape[axis]) if cut is None else cut.ascending


class Messages(NamedTuple):
    """What comes of a panel, with its indices along the other axis; and what is to be sent and received."""

    parts: list[tuple[Interval, np.ndarray]]
    sends: list[tuple[int, np.ndarray]]
    receives: list[tuple[int, np.ndarray]]


class Panels:
    """One rank's part in bringing panels of a matrix to ranks.

    Parameters
    ----------
    operand : HeldMatrix
    axis : int
        Along which panels follow each other; they lie between the points at which it is cut.
    wanted : sequence of sequences of (int, int)
        Which indices of the other axis each rank needs: intervals that do not overlap.
    comm : Communicator
    """

    def __init__(
        self, operand: HeldMatrix, axis: int, wanted: Sequence[Sequence[Interval]], comm: Communicator
    ) -> None:
        self._operand, self._axis, self._wanted, self._rank = operand, axis, wanted, comm.rank
        self._box: Box | None = None
        self._users: list[int] = []
        layout = operand.layout
        box = None if layout is None else layout.box(comm.rank)
        if layout is None or box is None or box_empty(box):
            return
        self._box = box
        low, high = box[1 - axis]
        for rank in range(comm.size):
            if rank != comm.rank and any(max(first, low) < min(end, high) for first, end in wanted[rank]):
                if not layout.has_copies or layout.holds_for(comm.rank, rank):
                    self._users.append(rank)

    def messages(self, which: Callable[[int], Interval], space: np.ndarray) -> Messages:
        """A panel for each rank.

        Parameters
        ----------
        which : callable
            The indices along the axis of the panel that a rank gets.
        space : ndarray, 1-D
            Where what comes is to lie.
        """
        block, layout = self._operand
        made, taken = Messages([], [], []), 0
        for wanted in self._wanted[self._rank]:
            region = self._region(which(self._rank), wanted)
            if layout is None:
                made.parts.append((wanted, block[box_slices(region, (0, 0))]))
                continue
            for holder, ranges in layout.locate(tuple(range(low, high) for low, high in region), near=self._rank):
                part = tuple((r.start, r.stop) for r in ranges)
                if holder == self._rank:
                    values = self._own(part)
                else:
                    size = box_size(part)
                    values = space[taken : taken + size].reshape(box_shape(part))
                    taken += size
                    made.receives.append((holder, values))
                made.parts.append((part[1 - self._axis], values))
        packed: dict[Box, np.ndarray] = {}
        for rank in self._users:
            assert self._box is not None
            for wanted in self._wanted[rank]:
                theirs = intersect_boxes(self._box, self._region(which(rank), wanted))
                if theirs is not None:
                    if theirs not in packed:
                        packed[theirs] = np.ascontiguousarray(self._own(theirs))
                    made.sends.append((rank, packed[theirs]))
        return made

    def _region(self, panel: Interval, other: Interval) -> Box:
        return (panel, other) if self._axis == 0 else (other, panel)

    def _own(self, part: Box) -> np.ndarray:
        assert self._box is not None
        return self._operand.block[box_slices(part, [low for low, _ in self._box])]


def missing(layout: Layout, wanted: Sequence[Box]) -> int:
    """How many elements have to be sent for each rank to get the box that it wants."""
    count = 0
    for rank, box in enumerate(wanted):
        own = layout.box(rank)
        held = None if own is None else intersect_boxes(own, box)
        count += box_size(box) - (0 if held is None else box_size(held))
    return count


@lru_cache(maxsize=1024)
def words_of_panels(left: Layout | None, right: Layout | None, result: Layout, depth: int) -> int:
    """How many elements `panel_product` sends, on all ranks together."""
    count = 0
    boxes = [result.box(rank) or (_NONE, _NONE) for rank in range(result.size)]
    if left is not None:
        count += missing(left, [(rows if low < high else _NONE, (0, depth)) for rows, (low, high) in boxes])
    if right is not None:
        count += missing(right, [((0, depth), columns if low < high else _NONE) for (low, high), columns in boxes])
    return count


def panel_product(
    left: HeldMatrix,
    right: HeldMatrix,
    result: Layout,
    task: ProductTask,
    work: np.dtype | None = None,
) -> None:
    """Compute this rank's box of a product (collective).

    Parameters
    ----------
    left, right : HeldMatrix
        In layouts of any kind; panels are converted to the dtype of the result as they are multiplied.
    result : Layout
        Of the product; each element belongs to one rank.
    task : ProductTask
        Its box of it.
    work : dtype, optional
        In which products are computed and added up, the first half of the columns of each box before the other one;
        default: that of `out`.
    """
    out, comm, most, empty = task
    boxes = [result.box(rank) or (_NONE, _NONE) for rank in range(comm.size)]
    boxes = [(_NONE, _NONE) if box_empty(box) else box for box in boxes]
    if work is None or work == out.dtype:
        _boxes_of_product(left, right, result, boxes, comm, out, most, empty)
        return
    first = boxes[comm.rank][1][0]
    space = empty((len(out) * -(-out.shape[1] // 2),), work)
    free: list[np.ndarray] = []
    taken: list[np.ndarray] = []

    def reused(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        """Memory that the first half has had, if there is as much."""
        size = prod(shape)
        for number, array in enumerate(free):
            if array.dtype == dtype and array.size >= size:
                return free.pop(number)[:size].reshape(shape)
        taken.append(empty((size,), dtype))
        return taken[-1].reshape(shape)

    for half in (0, 1):
        parts = [_half(box, half) for box in boxes]
        low, high = parts[comm.rank][1]
        made = space[: len(out) * (high - low)].reshape(len(out), high - low)
        free[:] = taken
        _boxes_of_product(left, right, result, parts, comm, made, most // 4, reused)
        out[:, low - first : high - first] = made


def _half(box: Box, half: int) -> Box:
    """The first or the last half of the columns of a box."""
    rows, (first, end) = box
    middle = (first + end + 1) // 2
    return rows, (middle, end) if half else (first, middle)


def _boxes_of_product(
    left: HeldMatrix,
    right: HeldMatrix,
    result: Layout,
    boxes: Sequence[Box],
    comm: Communicator,
    out: np.ndarray,
    most: int,
    empty: Callable[..., np.ndarray],
) -> None:
    """As `panel_product`, of a box on each rank."""
    rows, columns = ([box[axis] for box in boxes] for axis in (0, 1))
    tallest, widest = (max(high - low for low, high in intervals) for intervals in (rows, columns))
    parts = _along_sum(left, right, tallest, widest, out.dtype, most)
    place = beginning_with(parts, starts_along_sum(result, parts, [(right, 0), (left, 1)]))
    panels = [Panels(left, 1, [[its] for its in rows], comm), Panels(right, 0, [[its] for its in columns], comm)]
    (low, high), (first, end) = boxes[comm.rank]
    width = max((high - low for low, high in parts), default=0)
    spaces = [
        [
            empty((extent * width,), operand.block.dtype)
            for extent, operand in ((high - low, left), (end - first, right))
        ]
        for _ in range(min(len(parts), 2))
    ]
    sums: dict[Box, ProductSum] = {}
    space = ProductSpace(out.dtype, (high - low, end - first), most // 2, empty)
    for one, other in panels_in_turn(panels, place, len(parts), spaces, comm):
        for height, of_left in one:
            for across, of_right in other:
                part = (height, across)
                if part not in sums:
                    sums[part] = ProductSum(out[box_slices(part, (low, first))], space)
                sums[part].add_product(of_left, of_right)
    if not parts:
        out[...] = 0  # the product of no columns


def beginning_with(parts: Sequence[Interval], begins: Sequence[int]) -> Callable[[int, int], Interval]:
    """Which of some panels a rank gets in a turn: all in their order, each rank from another one on."""
    return lambda turn, rank: parts[(turn + begins[rank]) % len(parts)]


def panels_in_turn(
    panels: Sequence[Panels],
    place: Callable[[int, int], Interval],
    count: int,
    spaces: Sequence[Sequence[np.ndarray]],
    comm: Communicator,
) -> Iterator[list[list[tuple[Interval, np.ndarray]]]]:
    """What comes of each operand's panels turn by turn, while those of the next turn are under way.

    Parameters
    ----------
    panels : sequence of Panels
    place : callable
        ``place(turn, rank)`` is where along the summed axis the panels lie that a rank gets in a turn; it may be empty.
    count : int
        How many turns there are.
    spaces : sequence of sequences of ndarray
        Where the panels of each operand are to lie, in two turns that take turns.
    comm : Communicator
    """

    def start(turn: int) -> tuple[list[Messages], PendingExchange]:
        """Let the panels of a turn come, and send those that others need in it."""
        found = [of.messages(partial(place, turn), space) for of, space in zip(panels, spaces[turn % 2], strict=True)]
        sends = [message for one in found for message in one.sends]
        receives = [message for one in found for message in one.receives]
        return found, comm.start_transfer(sends, receives)

    following = start(0) if count else None
    for turn in range(count):
        assert following is not None
        found, pending = following
        pending.wait()
        following = start(turn + 1) if turn + 1 < count else None
        yield [one.parts for one in found]


def _along_sum(
    left: HeldMatrix, right: HeldMatrix, rows: int, columns: int, dtype: np.dtype, most: int
) -> list[Interval]:
    """The panels' places along the summed axis, each within one rank's columns and one rank's rows."""
    each = memory_of_panels(left, right, rows, columns, dtype)
    found = []
    for low, high in pairwise(sorted({*left.points(1), *right.points(0)})):
        found += [(low + start, low + stop) for start, stop in pieces(high - low, each, 2 * most // 3)]
    return found


def memory_of_panels(left: HeldMatrix, right: HeldMatrix, rows: int, columns: int, dtype: np.dtype) -> int:
    """How many elements of a dtype an index of the summed axis takes, of so many rows and columns of the product.

    At a time a rank has two panels of each operand, and one that is on its way to others; one may be converted.
    """
    kinds = left.block.dtype, right.block.dtype
    nbytes = 3 * (rows * kinds[0].itemsize + columns * kinds[1].itemsize)
    nbytes += columns * dtype.itemsize if kinds[1] != dtype else 0
    return -(-nbytes // dtype.itemsize)


def starts_along_sum(
    result: Layout, parts: Sequence[Interval], operands: Sequence[tuple[HeldMatrix, int]]
) -> list[int]:
    """With which panel each rank begins: no two with the same one, or ranks of a row or column of the mesh with others.

    It begins where its own rows or columns do if an operand is cut along the summed axis by all ranks. Else it is the
    first panel between two of the points at which that is cut: what several ranks need of an owner in one turn is then
    the same.

    Parameters
    ----------
    result : Layout
        Of the product.
    parts : sequence of (int, int)
        Where panels lie.
    operands : sequence of (HeldMatrix, int)
        Each with its axis that is summed.
    """
    for operand, axis in operands:
        cut = None if operand.layout is None or operand.layout.mesh.ndim > 1 else operand.layout.cut_of(axis)
        if cut is not None and cut.extent == result.size > 1:
            return [bisect_left(parts, (cut.interval(rank)[0], 0)) for rank in range(result.size)]
    cuts = sorted({point for operand, axis in operands for point in operand.points(axis)})
    found = []
    for rank in range(result.size):
        place = sum(
            cuts[-1] * coordinate // extent
            for coordinate, extent in zip(result.mesh.coordinates(rank), result.mesh.shape, strict=True)
        )
        start = cuts[bisect_right(cuts, place % max(cuts[-1], 1)) - 1]
        found.append(bisect_left(parts, (start, 0)))
    return found
