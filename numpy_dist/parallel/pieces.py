"""Pieces of an axis, or of a box, that are treated one after the other, so that what they take meanwhile is bounded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import prod

from numpy_dist.layout.regions import Box
from numpy_dist.parallel.columns import even_bounds

_LEAST = 1 << 15  # elements that are worth no further message


def pieces(extent: int, each: int, most: int) -> list[tuple[int, int]]:
    """Even pieces of `extent` indices, each of which takes `each` elements of memory.

    Those of a piece take `most` elements together, or fewer, or so few that it does not matter.
    """
    width = max(at_most(most) // max(each, 1), 1)
    return even_bounds(extent, max(-(-extent // width), 1))


def at_most(most: int) -> int:
    """How many elements a piece of more than one index takes at most."""
    return max(most, _LEAST)


def counts_of_pieces(extents: Sequence[int], each: int, most: int) -> list[int]:
    """Into how many pieces axes are divided, the first ones first, such that one takes `most` elements or fewer.

    Where `each` is what an index of all axes takes.
    """
    counts, size = [1] * len(extents), each * prod(extents)
    for axis, extent in enumerate(extents):
        if size <= most or extent == 0:
            break
        width = max(most * extent // size, 1)
        counts[axis] = -(-extent // width)
        size = size // extent * width
    return counts


def divided(box: Box, counts: Sequence[int]) -> Iterator[Box]:
    """The pieces of a box whose axes are divided evenly into so many."""
    bounds = [
        [(low + first, low + end) for first, end in even_bounds(high - low, count)]
        for (low, high), count in zip(box, counts, strict=True)
    ]
    return product(*bounds)
