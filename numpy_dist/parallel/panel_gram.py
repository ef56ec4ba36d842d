"""The product of a matrix in boxes of any mesh and its own transpose or adjoint: half is computed, the result stays.

As in `panel_product`, panels of the matrix come from whoever holds them. Of the product's element and its mirror image
one is computed, and sent to the owner of the other: where a rank's rows and columns are all those of another rank's
columns and rows, as on a square mesh, each computes half of what it owns, the one the first rows and the other the last
columns. What crosses the diagonal is computed by halves, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from math import isqrt, prod
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from numpy_dist.layout.layout import Layout
from numpy_dist.layout.regions import Box, box_shape, box_size, box_slices, intersect_boxes
from numpy_dist.parallel.columns import even_bounds
from numpy_dist.parallel.matmul import ProductSpace, ProductSum, adder
from numpy_dist.parallel.panels import HeldMatrix, Interval, Panels, beginning_with, panels_in_turn, starts_along_sum
from numpy_dist.parallel.pieces import pieces
from numpy_dist.parallel.product_task import ProductTask
from numpy_dist.parallel.row_gram import gram

if TYPE_CHECKING:
    from numpy_dist.comm.base import Communicator

    Turn = Callable[[np.ndarray], np.ndarray]


class Mirrored(NamedTuple):
    """A box that one rank computes, and the rank that owns what is mirrored at the diagonal."""

    source: int
    box: Box
    target: int


class Shares(NamedTuple):
    """What each rank computes of a symmetric matrix, the rows of the operand it needs for that, and what is sent."""

    boxes: list[list[Box]]
    wanted: list[list[Interval]]
    mirrored: list[Mirrored]


@lru_cache(maxsize=1024)
def shares_of(result: Layout, points: tuple[int, ...]) -> Shares:
    """Who computes what of a product with a transpose.

    Parameters
    ----------
    result : Layout
        Of the product; each element belongs to one rank.
    points : tuple of int
        Between which rows the operand is cut: no box that is computed needs those of two ranks as its rows or columns.
    """
    cuts = (result.cut_of(0), result.cut_of(1))
    grid = sorted({*points, 0, result.shape[0]}.union(*(cut.ascending for cut in cuts if cut is not None)))
    steps = list(pairwise(grid))
    made = Shares([[] for _ in range(result.size)], [], [])
    for place, (low, high) in enumerate(steps):
        for first, end in steps[place:]:
            (owner, _), *_ = result.locate((range(low, high), range(first, end)))
            (other, _), *_ = result.locate((range(first, end), range(low, high)))
            if first == low:
                made.boxes[owner].append(((low, high), (low, high)))
                continue
            half = high if owner == other else (low + high + 1) // 2
            for rank, box, target in (
                (owner, ((low, half), (first, end)), other),
                (other, ((first, end), (half, high)), owner),
            ):
                if box_size(box):
                    made.boxes[rank].append(box)
                    made.mirrored.append(Mirrored(rank, box, target))
    made.wanted.extend(_merged({interval for box in boxes for interval in box}) for boxes in made.boxes)
    return made


def _merged(intervals: set[Interval]) -> list[Interval]:
    """The intervals in order, those that meet or overlap as one."""
    found: list[Interval] = []
    for low, high in sorted(intervals):
        if found and low <= found[-1][1]:
            found[-1] = found[-1][0], max(high, found[-1][1])
        else:
            found.append((low, high))
    return found


@lru_cache(maxsize=1024)
def words_of_panel_gram(operand: Layout, result: Layout) -> int:
    """How many elements `panel_gram` sends, on all ranks together."""
    shares, depth = shares_of(result, _points(operand)), (0, operand.shape[1])
    count = sum(box_size(box) for source, box, target in shares.mirrored if source != target)
    for rank, wanted in enumerate(shares.wanted):
        own = operand.box(rank)
        for rows in wanted:
            held = None if own is None else intersect_boxes(own, (rows, depth))
            count += box_size((rows, depth)) - (0 if held is None else box_size(held))
    return count


def _points(operand: Layout) -> tuple[int, ...]:
    cut = operand.cut_of(0)
    return () if cut is None else cut.ascending


def panel_gram(
    operand: HeldMatrix,
    result: Layout,
    task: ProductTask,
    adjoint: bool = False,
) -> None:
    """Compute this rank's box of the product of a matrix and its transpose, or its adjoint (collective).

    Parameters
    ----------
    operand : HeldMatrix
        In boxes, of the dtype of the product.
    result : Layout
        Of the product; each element belongs to one rank.
    task : ProductTask
        Its box of it.
    adjoint : bool
    """
    out, comm, most, empty = task
    assert operand.layout is not None
    shares, rank = shares_of(result, _points(operand.layout)), comm.rank
    needed = max(sum(high - low for low, high in wanted) for wanted in shares.wanted)
    # At a time a rank has two panels, and one that is on its way to others; one may be conjugated.
    each = (4 if adjoint else 3) * needed
    parts = [
        (low + start, low + stop)
        for low, high in pairwise(operand.points(1))
        for start, stop in pieces(high - low, each, 2 * most // 3)
    ]
    width = max((high - low for low, high in parts), default=0)
    parts = [part for part in parts if part[0] < part[1]]
    if not parts or not result.shape[0]:
        out[...] = 0  # the product of no columns
        return

    def turned(part: np.ndarray) -> np.ndarray:
        return part.conj().T if adjoint else part.T

    rounds = _Rounds(shares, rank, comm.size, 2 * needed * width)
    space = empty((max(2 * needed * width, rounds.size),), out.dtype)
    box = result.box(rank)
    own = (0, 0) if box is None else tuple(low for low, _ in box)
    products = ProductSpace(out.dtype, _largest(shares.boxes[rank]), most // 2, empty)
    sums: list[tuple[Box, ProductSum | _GramSum]] = []
    for part in shares.boxes[rank]:
        target = out[box_slices(part, own)]
        sums.append((part, _GramSum(target, products, adjoint) if part[0] == part[1] else ProductSum(target, products)))
    panels = [Panels(operand, 1, shares.wanted, comm)]
    halves = [[space[: needed * width]], [space[needed * width :]]]
    place = beginning_with(parts, starts_along_sum(result, parts, [(operand, 1)]))
    for (found,) in panels_in_turn(panels, place, len(parts), halves, comm):
        for (rows, columns), total in sums:
            left = _rows_of(found, rows)
            if isinstance(total, _GramSum):
                total.add_gram(left)
            else:
                total.add_product(left, turned(_rows_of(found, columns)))
    for _, total in sums:
        total.finish()
    for turns in rounds:
        _mirror(turns, out, own, space, comm, turned)


def _largest(boxes: Sequence[Box]) -> tuple[int, int]:
    """The most rows, and the most columns, of some boxes."""
    shapes = [box_shape(box) for box in boxes]
    return max((rows for rows, _ in shapes), default=0), max((columns for _, columns in shapes), default=0)


def _rows_of(found: Sequence[tuple[Interval, np.ndarray]], rows: Interval) -> np.ndarray:
    """Rows of a panel, all of which one part of it has."""
    low, values = next((low, values) for (low, high), values in found if low <= rows[0] and rows[1] <= high)
    return values[rows[0] - low : rows[1] - low]


class _GramSum:
    """Products of matrices and their own transposes, or adjoints, that are added up.

    Blocks on the diagonal are NumPy's or BLAS's, which compute half of them; of the rest, what lies below is computed.
    """

    def __init__(self, out: np.ndarray, space: ProductSpace, adjoint: bool) -> None:
        self._out, self._space, self._adjoint, self._begun = out, space, adjoint, False
        width = max(isqrt(space.size // (4 if adjoint else 1)), 1)  # BLAS's `herk` makes another block
        self._bounds = even_bounds(len(out), -(-len(out) // width))
        self._below = [ProductSum(out[high:, low:high], space) for low, high in self._bounds]

    def add_gram(self, rows: np.ndarray) -> None:
        """Add the product of a matrix and its transpose, or adjoint."""
        if rows.itemsize not in rows.strides or min(rows.strides) < 0:
            rows = np.ascontiguousarray(rows)  # BLAS takes nothing else
        for (low, high), below in zip(self._bounds, self._below, strict=True):
            held, block = rows[low:high], self._out[low:high, low:high]
            if not self._begun and not self._adjoint:
                np.matmul(held, held.T, out=block)
            elif not self._begun:
                block[...] = gram(held)
            elif self._adjoint:
                np.add(block, gram(held), out=block)
            else:
                product = np.matmul(held, held.T, out=self._space.array(block.shape))
                adder(block.dtype)(block, product, out=block)
            below.add_product(rows[high:], held.conj().T if self._adjoint else held.T)
        self._begun = True

    def finish(self) -> None:
        """Fill in what lies above the diagonal."""
        for low, high in self._bounds:
            below = self._out[high:, low:high].T
            self._out[low:high, high:] = np.conjugate(below) if self._adjoint else below


class _Rounds:
    """What is mirrored, in rounds of messages that are bounded: some columns of each box in each."""

    def __init__(self, shares: Shares, rank: int, size: int, most: int) -> None:
        passed = [0] * size
        for source, box, target in shares.mirrored:
            passed[source] += box_size(box)
            passed[target] += box_size(box)
        self._count = len(pieces(max(passed), 1, most))
        self._mine = [what for what in shares.mirrored if rank in (what.source, what.target)]
        shapes = [box_shape(box) for source, box, target in self._mine if source != target]
        self.size = sum(rows * -(-columns // self._count) for rows, columns in shapes)

    def __iter__(self) -> Iterator[list[Mirrored]]:
        for number in range(self._count):
            turn = []
            for source, (rows, (first, end)), target in self._mine:
                low, high = even_bounds(end - first, self._count)[number]
                if low < high:
                    turn.append(Mirrored(source, (rows, (first + low, first + high)), target))
            yield turn


def _mirror(
    turn: Sequence[Mirrored],
    out: np.ndarray,
    own: Sequence[int],
    space: np.ndarray,
    comm: Communicator,
    turned: Turn,
) -> None:
    """Send what has been computed to the owners of what is mirrored, and put what comes where it belongs."""
    taken = 0
    sends: list[tuple[int, np.ndarray]] = []
    receives: list[tuple[int, np.ndarray]] = []
    places: list[np.ndarray] = []
    for source, box, target in turn:
        image = (box[1], box[0])
        if source == target:
            out[box_slices(image, own)] = turned(out[box_slices(box, own)])
            continue
        values = space[taken : taken + box_size(box)].reshape(box_shape(image))
        taken += prod(values.shape)
        if source == comm.rank:
            values[...] = turned(out[box_slices(box, own)])
            sends.append((target, values))
        else:
            receives.append((source, values))
            places.append(out[box_slices(image, own)])
    comm.transfer(sends, receives)
    for place, (_, values) in zip(places, receives, strict=True):
        place[...] = values
