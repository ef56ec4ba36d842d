"""Boolean masks over the leading axes of an array: what each rank selects, and where that lies in the whole selection.

NumPy orders what a mask selects by the C order of the masked axes. If only the first of them is cut, the selections of
the ranks follow one another, and the result is cut where they meet: nothing is moved, and one small allgather of counts
makes the result's layout known to all.
"""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np

from numpy_dist.backends.library import compute
from numpy_dist.layout.layout import Copies, Cut, Layout, Pinned

if TYPE_CHECKING:
    from numpy_dist.comm.base import Communicator


def selects_in_order(layout: Layout, depth: int) -> bool:
    """Whether the ranks' selections by a mask over the first `depth` axes follow one another in rank order."""
    return not any(
        isinstance(what, Pinned) or (isinstance(what, Cut) and 0 < what.axis < depth) for what in layout.dims
    )


def mask_layout(layout: Layout, depth: int) -> Layout:
    """The layout of the mask that has, on each rank, the part that belongs to the rank's box of the array."""
    return layout.drop_axes(range(depth, layout.ndim))


def selection_layout(layout: Layout, depth: int, counts: list[int]) -> Layout:
    """The layout of what a mask selects.

    Parameters
    ----------
    layout : Layout
        Of the array; see `selects_in_order`.
    depth : int
        How many axes the mask has.
    counts : list of int
        How many elements each rank's part of the mask selects.
    """
    dims: list[Cut | Copies | Pinned] = []
    total = None
    for dimension, what in enumerate(layout.dims):
        if not isinstance(what, Cut):
            dims.append(Copies())
        elif what.axis >= depth:
            dims.append(Cut(what.axis - depth + 1, what.points))
        else:
            along = _counts_along(layout, dimension, counts)
            total = sum(along)
            points = tuple(accumulate(along, initial=0))
            dims.append(Cut(0, tuple(total - p for p in points) if what.descends else points))
    rows = counts[0] if total is None else total
    return Layout((rows, *layout.shape[depth:]), layout.mesh, tuple(dims))


def _counts_along(layout: Layout, dimension: int, counts: list[int]) -> list[int]:
    """The counts of the ranks along one mesh dimension, at coordinate 0 of all others."""
    zero = [0] * layout.mesh.ndim
    found = []
    for coordinate in range(layout.mesh.shape[dimension]):
        zero[dimension] = coordinate
        found.append(counts[layout.mesh.rank(zero)])
    return found


def select(block: np.ndarray, mask: np.ndarray, layout: Layout, comm: Communicator) -> tuple[np.ndarray, Layout]:
    """What a mask selects of this rank's block, and the layout of the whole selection (collective: one allgather).

    Parameters
    ----------
    block : ndarray
        This rank's box of `layout`.
    mask : ndarray of bool
        This rank's part of the mask (`mask_layout`).
    """
    chosen = compute("compress", _selected, block, mask)
    return chosen, selection_layout(layout, mask.ndim, comm.allgather(len(chosen)))


def _selected(block: np.ndarray, mask: np.ndarray) -> np.ndarray:
    # Of whole rows that lie one after the other, `compress` takes a fraction of the time of a masked index.
    whole = mask.ndim == 1 and block.flags.c_contiguous
    return np.compress(mask, block, axis=0) if whole else block[mask]


def spread(values: np.ndarray, mask: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """A block of the given shape with this rank's values where its mask is true, and zeros elsewhere."""

    def spread_on_host(values: np.ndarray, mask: np.ndarray) -> np.ndarray:
        block = np.zeros(shape, values.dtype)
        block[mask] = values
        return block

    return compute("spread", spread_on_host, values, mask, shape=shape)
