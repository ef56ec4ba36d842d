"""Pieces of an axis that are treated one after the other, so that what they take meanwhile is bounded."""

from __future__ import annotations

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
