"""Narrow products of a matrix that lies on a mesh: blocks are multiplied as they lie, and partial products added up.

The matrix is never sent. Each rank receives those rows of the narrow operand that its block needs, and owners of the
result what the ranks of a row of the mesh have of it, which they add up in rank order.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from itertools import pairwise

import numpy as np

from numpy_dist.layout.layout import Layout
from numpy_dist.layout.regions import Box, box_empty
from numpy_dist.parallel.matmul import ProductSpace, ProductSum, adder
from numpy_dist.parallel.panels import HeldMatrix, Interval, Panels, missing
from numpy_dist.parallel.product_task import ProductTask

_NONE = (0, 0)


@lru_cache(maxsize=1024)
def words_of_narrow(left: Layout, right: Layout | None, result: Layout) -> int:
    """How many elements `narrow_product` sends, on all ranks together."""
    boxes, n = _boxes(left), result.shape[1]
    count = 0 if right is None else missing(right, [(columns, (0, n) if columns[1] else _NONE) for _, columns in boxes])
    for (low, high), own in zip([rows for rows, _ in boxes], _rows(result), strict=True):
        first, end = _common((low, high), own)
        count += n * (high - low - (end - first))
    return count


def narrow_product(
    left: HeldMatrix,
    right: HeldMatrix,
    result: Layout,
    task: ProductTask,
) -> None:
    """Compute this rank's rows of a product (collective).

    Parameters
    ----------
    left : HeldMatrix
        In blocks, each of which one rank has.
    right : HeldMatrix
        In a layout of any kind; it is converted to the dtype of the result as it is multiplied, and so is the left one.
    result : Layout
        Of the product, which is cut between rows only.
    task : ProductTask
        Its rows of it; a whole partial product is made besides.
    """
    out, comm, most, empty = task
    assert left.layout is not None
    boxes, rank, n = _boxes(left.layout), comm.rank, right.shape[1]
    (low, high), (first, end) = boxes[rank]
    partial = empty((high - low, n), out.dtype)
    panels = Panels(right, 1, [[columns] for _, columns in boxes], comm)
    space = ProductSpace(out.dtype, partial.shape, most // 2, empty)
    for start, stop in pairwise(right.points(1)):
        if start == stop:
            continue
        panel = panels.messages(_for_all((start, stop)), empty(((end - first) * (stop - start),), right.block.dtype))
        comm.transfer(panel.sends, panel.receives)
        total = ProductSum(partial[:, start:stop], space)
        for (top, bottom), rows in panel.parts if partial.size else ():
            total.add_product(left.block[:, top - first : bottom - first], rows)

    owned, sends, receives = _rows(result), [], []
    found: list[tuple[Interval, np.ndarray]] = []
    for other in range(comm.size if n else 0):
        theirs = _common((low, high), owned[other])
        if other != rank and theirs[0] < theirs[1]:
            sends.append((other, partial[theirs[0] - low : theirs[1] - low]))
        mine = _common(boxes[other][0], owned[rank])
        if mine[0] < mine[1]:
            if other == rank:
                values = partial[mine[0] - low : mine[1] - low]
            else:
                values = empty((mine[1] - mine[0], n), out.dtype)
                receives.append((other, values))
            found.append((mine, values))
    comm.transfer(sends, receives)
    begun: set[Interval] = set()
    for mine, values in found:
        total_rows = out[mine[0] - owned[rank][0] : mine[1] - owned[rank][0]]
        if mine in begun:
            adder(out.dtype)(total_rows, values, out=total_rows)
        else:
            total_rows[...] = values
            begun.add(mine)
    if not found:
        out[...] = 0  # the product of no columns


def _boxes(layout: Layout) -> list[Box]:
    """What each rank has of a matrix; what is empty is so along both axes."""
    boxes = [layout.box(rank) for rank in range(layout.size)]
    return [(_NONE, _NONE) if box is None or box_empty(box) else box for box in boxes]


def _rows(layout: Layout) -> list[Interval]:
    """Which rows each rank has."""
    boxes = [layout.box(rank) for rank in range(layout.size)]
    return [_NONE if box is None else box[0] for box in boxes]


def _for_all(panel: Interval) -> Callable[[int], Interval]:
    """The same panel for each rank."""
    return lambda rank: panel


def _common(one: Interval, other: Interval) -> Interval:
    """What lies in both intervals; where that is nothing, an empty one."""
    low, high = max(one[0], other[0]), min(one[1], other[1])
    return (low, high) if low < high else _NONE
