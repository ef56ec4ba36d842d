"""The least and the greatest element in one sweep."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy_dist.comm.base import Communicator

TILE = 1 << 18  # bytes that are looked at twice while they are in the cache


def extremes_of_tiles(block: np.ndarray) -> list[tuple[np.generic, np.generic]]:
    """The least and the greatest element of each tile of a one-dimensional array, NaN if there is one."""
    step = max(TILE // block.itemsize, 1)
    tiles = [block[start : start + step] for start in range(0, len(block), step)]
    return [(tile.min(), tile.max()) for tile in tiles]


def extremes(block: np.ndarray, comm: Communicator) -> tuple[np.generic, np.generic] | None:
    """As `extremes_of`, of a one-dimensional array."""
    return extremes_of(extremes_of_tiles(block), comm)


def extremes_of(pairs: list[tuple[np.generic, np.generic]], comm: Communicator) -> tuple[np.generic, np.generic] | None:
    """The least and the greatest of all ranks' elements, NaN if there is one; None if there are none.

    Collective: one allgather.

    Parameters
    ----------
    pairs : list
        The least and the greatest of this rank's elements, or of parts of them; perhaps none.
    """
    found = [pair for pair in comm.allgather(_folded(pairs)) if pair is not None]
    return _folded(found)


def _folded(pairs: list[tuple[np.generic, np.generic]]) -> tuple[np.generic, np.generic] | None:
    if not pairs:
        return None
    low, high = zip(*pairs, strict=True)
    return np.minimum.reduce(low), np.maximum.reduce(high)
