"""Products of matrices whose shards are panels: nobody ever holds a whole operand that is cut.

`ring` keeps the rows of the left operand where they are and passes the row panels of the right one around the ranks;
`contracted` multiplies what the ranks hold along the summed axis and adds the partial products.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from numpy_dist.backends.library import compute, on_host
from numpy_dist.layout.layout import Layout
from numpy_dist.parallel.combine import fold
from numpy_dist.parallel.row_gram import gram

if TYPE_CHECKING:
    from numpy_dist.backends.library import Array
    from numpy_dist.comm.base import Communicator


def adder(dtype: np.dtype) -> np.ufunc:
    """What adds up products: truth values are or-ed."""
    return np.logical_or if dtype == np.bool_ else np.add


def ring(
    rows: np.ndarray, panel: np.ndarray, layout: Layout, comm: Any, empty: Callable[..., Array] = np.empty
) -> np.ndarray:
    """This rank's rows of a product.

    Parameters
    ----------
    rows : ndarray, (r, k)
        This rank's rows of the left operand, whole.
    panel : ndarray, (k of this rank, n)
        This rank's rows of the right operand.
    layout : Layout
        Of the right operand, which is cut along its first axis only.
    comm : Communicator
        Of a device (`engine.device`), where the operands lie there.
    empty : callable
        ``empty(shape, dtype)`` makes the memory of panels, and of the result on the host.

    Returns
    -------
    ndarray, (r, n)

    Notes
    -----
    Each step multiplies the panel at hand while the next one arrives, so that besides its own shards a rank holds two
    panels. Every rank sends to its lower neighbour what it has received from its upper one.
    """
    size, rank = comm.size, comm.rank
    columns = panel.shape[1]
    on_the_host = type(panel) is np.ndarray
    total: _Sum | _SumOnDevice = (_Sum if on_the_host else _SumOnDevice)((len(rows), columns), panel.dtype, empty)
    panel = np.ascontiguousarray(panel) if on_the_host else panel
    extents = [high - low for low, high in (_interval(layout, other) for other in range(size))]
    # On the host two panels take turns; a device's library frees them.
    space = [empty((max(extents), columns), panel.dtype) for _ in range(min(size - 1, 2) if on_the_host else 0)]
    for step in range(size):
        owner = (rank + step) % size
        following = panel
        pending = None
        if step + 1 < size:
            extent = extents[(owner + 1) % size]
            following = space[step % len(space)][:extent] if space else empty((extent, columns), panel.dtype)
            sends = [((rank - 1) % size, panel)] if panel.size else []
            pending = comm.start_transfer(sends, [((rank + 1) % size, following)] if following.size else [])
        low, high = _interval(layout, owner)
        if low < high and len(rows) and columns:
            total.add_product(rows[:, low:high], panel)
        if pending is not None:
            pending.wait()
        panel = following
    return np.zeros((len(rows), columns), panel.dtype) if total.value is None else total.value


class _Sum:
    """Products of matrices, added up in memory of which `empty` makes what is needed: fresh pages cost more."""

    def __init__(self, shape: tuple[int, int], dtype: np.dtype, empty: Callable[..., np.ndarray]) -> None:
        self.value: np.ndarray | None = None
        self._shape, self._dtype, self._empty = shape, dtype, empty
        self._product: np.ndarray | None = None

    def add_product(self, left: np.ndarray, right: np.ndarray) -> None:
        if self.value is None:
            self.value = np.matmul(left, right, out=self._empty(self._shape, self._dtype))
            return
        height = -(-len(left) // 2)  # which bounds the memory of a product
        if self._product is None:
            self._product = self._empty((height, self._shape[1]), self._dtype)
        for low in range(0, len(left), height):
            part = self.value[low : low + height]
            product = np.matmul(left[low : low + height], right, out=self._product[: len(part)])
            adder(self._dtype)(part, product, out=part)


class _SumOnDevice:
    """The same, where products are the library's of a device, or the host's where that declines."""

    def __init__(self, shape: tuple[int, int], dtype: np.dtype, empty: Callable[..., Array]) -> None:
        self.value: Any = None
        self._dtype = dtype

    def add_product(self, left: Array, right: Array) -> None:
        product = compute("matmul", np.matmul, left, right)
        fresh = type(self.value) is not type(product)  # nothing has been added up yet
        self.value = product if fresh else adder(self._dtype)(self.value, product, out=self.value)


def _interval(layout: Layout, rank: int) -> tuple[int, int]:
    box = layout.box(rank)
    return (0, 0) if box is None else box[0]


def contracted(columns: np.ndarray, rows: np.ndarray, cut: Layout, result: Layout, comm: Communicator) -> np.ndarray:
    """This rank's part of a product whose summed axis is cut (collective).

    Parameters
    ----------
    columns : ndarray, (m, k of this rank)
        This rank's columns of the left operand.
    rows : ndarray, (k of this rank, n)
        The same rows of the right operand.
    cut : Layout
        Of the right operand, which is cut along its first axis only.
    result : Layout
        Of the product.
    """
    return _added(on_host(compute("matmul", np.matmul, columns, rows)), cut, result, comm)


def contracted_gram(rows: np.ndarray, cut: Layout, result: Layout, comm: Communicator) -> np.ndarray:
    """As `contracted`, of a complex matrix whose adjoint is the left operand: half of it is computed."""
    return _added(np.conjugate(gram(rows.T)), cut, result, comm)


def _added(part: np.ndarray, cut: Layout, result: Layout, comm: Communicator) -> np.ndarray:
    """This rank's part of the sum of what all ranks have."""
    holders = []
    for rank in range(comm.size):
        low, high = _interval(cut, rank)
        holders.append(high > low)
    if not any(holders):
        holders[0] = True  # nothing to add up: the product of no columns is zero
    return fold(adder(part.dtype), part, holders, result, comm)
