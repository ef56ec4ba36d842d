"""Counting values, and in equal bins, in tiles that stay in a cache."""

from __future__ import annotations

import numpy as np

TILE = 8192
_NUMBERS = 1 << 15  # a tile of what `occurrences` counts


def can_count(block: np.ndarray, edges: np.ndarray) -> bool:
    """Whether `count` knows elements of this dtype and these edges."""
    with np.errstate(over="ignore"):
        size = edges[-1] - edges[0]
    return block.dtype == edges.dtype == np.float64 and bool(np.isfinite(size)) and size > 0


def count(block: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """How many elements lie in each bin, as `numpy.histogram` counts them, whose formula this is.

    Parameters
    ----------
    block : ndarray of float64, shape (n,)
        All between the first and the last edge.
    edges : ndarray of float64, shape (bins + 1,)
        At equal distances.

    Returns
    -------
    ndarray of intp, shape (bins,)
    """
    bins = len(edges) - 1
    first, size, above = edges[0], edges[-1] - edges[0], edges[1:]
    scaled, nearest = np.empty(TILE), np.empty(TILE)
    places, wrong = np.empty(TILE, np.intp), np.empty(TILE, bool)
    counts = np.zeros(bins, np.intp)
    for start in range(0, len(block), TILE):
        tile = block[start : start + TILE]
        x, near, p, w = scaled[: len(tile)], nearest[: len(tile)], places[: len(tile)], wrong[: len(tile)]
        np.subtract(tile, first, out=x)
        np.divide(x, size, out=x)
        np.multiply(x, bins, out=x)
        np.copyto(p, x, casting="unsafe")
        np.minimum(p, bins - 1, out=p)
        # Rounding may have led to a neighbour. The last bin has its upper edge, the others have not.
        np.less(tile, edges.take(p, out=near, mode="clip"), out=w)
        np.subtract(p, w, out=p)
        np.greater_equal(tile, above.take(p, out=near, mode="clip"), out=w)
        np.add(p, w, out=p)
        np.minimum(p, bins - 1, out=p)
        counts += np.bincount(p, minlength=bins)
    return counts


def occurrences(values: np.ndarray, weights: np.ndarray | None, most: int) -> tuple[np.ndarray | None, int, bool]:
    """How often each number occurs, or the sums of its weights, as `numpy.bincount` has them, in one sweep.

    Parameters
    ----------
    values : ndarray of bool or integers, shape (n,)
    weights : ndarray or None
    most : int
        No more counts than these are made.

    Returns
    -------
    counts : ndarray or None
        One for each number up to the largest; None if that is `most` or above, or one is negative.
    high : int
        The largest, -1 if there is none.
    negative : bool
        Whether one is negative; then `high` says nothing.
    """
    counts, high = np.zeros(0, np.intp if weights is None else float), -1
    for start in range(0, len(values), _NUMBERS):
        tile = values[start : start + _NUMBERS].astype(np.intp, copy=False)
        top = int(tile.view(np.uintp).max())  # a negative number is the largest of all
        if top > np.iinfo(np.intp).max:
            return None, high, True
        high = max(high, top)
        if high >= most:
            continue
        if high >= len(counts):
            longer = np.zeros(min(max(high + 1, 2 * len(counts)), most), counts.dtype)
            longer[: len(counts)] = counts
            counts = longer
        added = 1 if weights is None else weights[start : start + _NUMBERS].astype(float, copy=False)
        with np.errstate(all="ignore"):  # as NumPy's loop, which tells no floating-point events
            np.add.at(counts, tile, added)
    return (counts[: high + 1] if high < most else None), high, False
