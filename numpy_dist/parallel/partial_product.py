"""The part of a product that each rank makes of its share of the summed axis, of operands that lie in other ways.

Of both operands a rank gets its share panel by panel, from whoever holds it, and adds up the panels' products: nobody
has the memory of a redistributed operand. The partial products are whole, so this is for small ones; `Contraction` adds
them up.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from numpy_dist.layout.regions import box_slices
from numpy_dist.parallel.matmul import ProductSpace, ProductSum
from numpy_dist.parallel.panels import HeldMatrix, Interval, Panels, memory_of_panels, panels_in_turn
from numpy_dist.parallel.pieces import pieces
from numpy_dist.parallel.product_task import ProductTask

if TYPE_CHECKING:
    from numpy_dist.layout.regions import Box


def partial_product(
    left: HeldMatrix,
    right: HeldMatrix,
    shares: Sequence[Interval],
    task: ProductTask,
) -> None:
    """Multiply this rank's share of the columns of one matrix and of the rows of another one (collective).

    Parameters
    ----------
    left, right : HeldMatrix
        In layouts of any kind; panels are converted to the dtype of the product as they are multiplied.
    shares : sequence of (int, int)
        Which columns of the left operand, and rows of the right one, each rank multiplies.
    task : ProductTask
        Its partial product, which has all rows and columns; that of a share that is empty is zero.
    """
    out, comm, most, empty = task
    (m, n), rank = out.shape, comm.rank
    each = memory_of_panels(left, right, m, n, out.dtype)
    points = sorted({*left.points(1), *right.points(0)})
    turns = [_panels_of(share, points, each, 2 * most // 3) for share in shares]
    width = max((high - low for panels in turns for low, high in panels), default=0)
    count = max(map(len, turns))

    def place(turn: int, rank: int) -> Interval:
        return turns[rank][turn] if turn < len(turns[rank]) else (0, 0)

    panels = [
        Panels(operand, axis, [[(0, extent)]] * comm.size, comm)
        for operand, axis, extent in ((left, 1, m), (right, 0, n))
    ]
    spaces = [
        [empty((m * width,), left.block.dtype), empty((n * width,), right.block.dtype)] for _ in range(min(count, 2))
    ]
    space = ProductSpace(out.dtype, (m, n), most // 3, empty)
    sums: dict[Box, ProductSum] = {}
    for turn, (one, other) in enumerate(panels_in_turn(panels, place, count, spaces, comm)):
        if turn >= len(turns[rank]):
            continue
        for rows, of_left in one:
            for columns, of_right in other:
                if (rows, columns) not in sums:
                    sums[rows, columns] = ProductSum(out[box_slices((rows, columns), (0, 0))], space)
                sums[rows, columns].add_product(of_left, of_right)
    if not sums:
        out[...] = 0


def _panels_of(share: Interval, points: Sequence[int], each: int, most: int) -> list[Interval]:
    """Pieces of a share of the summed axis, each between two of the points at which an operand is cut."""
    low, high = share
    cuts = [low, *(point for point in points if low < point < high), high]
    return [
        (first + start, first + stop)
        for first, end in pairwise(cuts)
        if first < end
        for start, stop in pieces(end - first, each, most)
    ]
