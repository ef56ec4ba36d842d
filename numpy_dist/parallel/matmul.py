"""Products of matrices whose shards are panels: nobody ever holds a whole operand that is cut.

`ring` keeps the rows of the left operand where they are and passes the panels of the right one around the ranks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from numpy_dist.backends.library import compute
from numpy_dist.layout.layout import Layout
from numpy_dist.parallel.pieces import pieces
from numpy_dist.parallel.product_task import ProductTask

if TYPE_CHECKING:
    from numpy_dist.backends.library import Array


def adder(dtype: np.dtype) -> np.ufunc:
    """What adds up products: truth values are or-ed."""
    return np.logical_or if dtype == np.bool_ else np.add


def ring(
    rows: np.ndarray,
    panel: np.ndarray,
    layout: Layout,
    task: ProductTask,
    contiguous: bool = False,
    work: np.dtype | None = None,
    tallest: int = 0,
) -> None:
    """Compute this rank's rows of a product (collective).

    Parameters
    ----------
    rows : ndarray, (r, k)
        This rank's rows of the left operand, whole.
    panel : ndarray
        This rank's rows of the right operand, or its columns. What is multiplied of both is converted to the dtype of
        the product.
    layout : Layout
        Of the right operand, which is cut along one axis only.
    task : ProductTask
        Its rows of it, whole.
    contiguous : bool
        Whether the panels of all ranks are in C order.
    work : dtype, optional
        In which products are computed and added up; default: that of `out`.
    tallest : int
        The most rows that a rank has, where that is another dtype.

    Notes
    -----
    Some columns of all panels go around, and then the next ones. Each step multiplies what is at hand while the next
    panel arrives: every rank sends to its lower neighbour what it has received from its upper one. Products with rows
    of the right operand are added up; those with columns, which are sent as rows, lie beside each other.
    """
    out, comm, most, empty = task
    size, rank = comm.size, comm.rank
    of_rows = layout.cut_of(0) is not None
    bounds = [_interval(layout, other, 0 if of_rows else 1) for other in range(size)]
    longest = max(high - low for low, high in bounds)
    depth, extent = (longest, layout.shape[1]) if of_rows else (layout.shape[0], longest)
    panels = min(size - 1, 2)  # that take turns
    work = out.dtype if work is None else work
    as_it_is = panel.dtype == work  # else one is converted besides
    each = (panels + 1 if as_it_is else panels + 2) * depth + (tallest if work != out.dtype else 0)
    parts = pieces(extent, each, most // 2 if of_rows else most)
    # Whole ones need no copy of this rank's.
    whole = of_rows and contiguous and as_it_is and 3 * panels * depth * extent <= 4 * most
    if whole:
        parts = [(0, extent)]
    widest = max(high - low for low, high in parts)
    space = [empty((depth * widest,), panel.dtype) for _ in range(panels)]
    products = ProductSpace(work, (len(out), widest), most // (4 if whole else 2), empty)
    made = empty((len(out) * widest,), work) if work != out.dtype else None  # what is converted when it is complete

    def target(columns: slice) -> np.ndarray:
        """Where some columns are computed."""
        width = columns.stop - columns.start
        return out[:, columns] if made is None else made[: len(out) * width].reshape(len(out), width)

    low, high = bounds[rank]
    panel = panel.reshape((high - low, layout.shape[1]) if of_rows else (layout.shape[0], high - low))
    for start, stop in parts:
        total = ProductSum(target(slice(start, stop)), products) if of_rows else None

        def columns_of(owner: int, start: int = start, stop: int = stop) -> slice:
            low, high = bounds[owner]
            return slice(min(low + start, high), min(low + stop, high))

        if of_rows:
            held = np.ascontiguousarray(panel[:, start:stop])
        else:
            held = np.ascontiguousarray(panel[:, start:stop].T)
        for step in range(size):
            owner = (rank + step) % size
            following, pending = held, None
            if step + 1 < size:
                low, high = bounds[(owner + 1) % size]
                columns = columns_of((owner + 1) % size)
                shape = (high - low, stop - start) if of_rows else (columns.stop - columns.start, depth)
                following = space[step % panels][: shape[0] * shape[1]].reshape(shape)
                sends = [((rank - 1) % size, held)] if held.size else []
                pending = comm.start_transfer(sends, [((rank + 1) % size, following)] if following.size else [])
            if total is None:
                found = target(columns_of(owner))
                multiply(rows, held.T, found, most // 2)
                if made is not None:
                    out[:, columns_of(owner)] = found
            elif held.size:
                total.add_product(rows[:, slice(*bounds[owner])], held)
            if pending is not None:
                pending.wait()
            held = following
        if total is not None:
            total.finish()
            if made is not None:
                out[:, start:stop] = target(slice(start, stop))


def ring_on_device(rows: Array, panel: Array, layout: Layout, device: Any) -> Array:
    """This rank's rows of a product of operands that lie on a device, as `ring` of rows whose panels are whole.

    Parameters
    ----------
    rows, panel : array of the device
    layout : Layout
        Of the right operand, which is cut along its first axis only.
    device : engine.Device
        What sends arrays of the device, and makes them.
    """
    size, rank = device.size, device.rank
    columns = panel.shape[1]
    total = _SumOnDevice(panel.dtype)
    extents = [high - low for low, high in (_interval(layout, other) for other in range(size))]
    for step in range(size):
        owner = (rank + step) % size
        following = panel
        pending = None
        if step + 1 < size:
            following = device.empty((extents[(owner + 1) % size], columns), panel.dtype)
            sends = [((rank - 1) % size, panel)] if panel.size else []
            pending = device.start_transfer(sends, [((rank + 1) % size, following)] if following.size else [])
        low, high = _interval(layout, owner)
        if low < high and len(rows) and columns:
            total.add_product(rows[:, low:high], panel)
        if pending is not None:
            pending.wait()
        panel = following
    return np.zeros((len(rows), columns), panel.dtype) if total.value is None else total.value


class ProductSpace:
    """Memory for some rows of products that are added, at most `most` elements, taken when it is asked for."""

    def __init__(
        self, dtype: np.dtype, shape: tuple[int, int], most: int, empty: Callable[..., np.ndarray] = np.empty
    ) -> None:
        self.most = most
        self.height = _tallest(pieces(shape[0], shape[1], most))
        self.size = self.height * shape[1]
        self._dtype, self._empty = dtype, empty

    @cached_property
    def _elements(self) -> np.ndarray:
        return self._empty((self.size,), self._dtype)

    def array(self, shape: tuple[int, int]) -> np.ndarray:
        """Some of it, as an array."""
        return self._elements[: shape[0] * shape[1]].reshape(shape)


class ProductSum:
    """Products of matrices that are added up in `out`."""

    def __init__(self, out: np.ndarray, space: ProductSpace) -> None:
        self._out, self._space, self._begun = out, space, False

    def add_product(self, left: np.ndarray, right: np.ndarray) -> None:
        """Add one, of operands that are converted to the dtype of `out`."""
        out = self._out
        if not out.size:
            return
        if not self._begun:
            multiply(left, right, out, self._space.most)
            self._begun = True
            return
        height, right = self._space.height, right.astype(out.dtype, copy=False)
        if left.dtype != out.dtype:
            height = min(height, _tallest(pieces(len(out), out.shape[1] + left.shape[1], self._space.most)))
        for low in range(0, len(out), height):
            part = left[low : low + height].astype(out.dtype, copy=False)
            product = np.matmul(part, right, out=self._space.array((len(part), out.shape[1])))
            total = out[low : low + height]
            adder(out.dtype)(total, product, out=total)

    def finish(self) -> None:
        """Of no products the sum is zero."""
        if not self._begun:
            self._out[...] = 0


def _tallest(intervals: Sequence[tuple[int, int]]) -> int:
    return max(high - low for low, high in intervals)


def multiply(left: np.ndarray, right: np.ndarray, out: np.ndarray, most: int) -> None:
    """``left @ right`` in the dtype of `out`, for which some rows of the left operand at a time are converted.

    They have `most` elements, about. The right operand is converted as a whole if the left one is, too.
    """
    if left.dtype == right.dtype == out.dtype:
        np.matmul(left, right, out=out)
        return
    if left.dtype == out.dtype:
        left, right, out = right.T, left.T, out.T
    right = right.astype(out.dtype, copy=False)
    for low, high in pieces(len(left), left.shape[1], most):
        np.matmul(left[low:high].astype(out.dtype, copy=False), right, out=out[low:high])


class _SumOnDevice:
    """Products of matrices, added up, that are the library's of a device, or the host's where that declines."""

    def __init__(self, dtype: np.dtype) -> None:
        self.value: Any = None
        self._dtype = dtype

    def add_product(self, left: Array, right: Array) -> None:
        product = compute("matmul", np.matmul, left, right)
        fresh = type(self.value) is not type(product)  # nothing has been added up yet
        self.value = product if fresh else adder(self._dtype)(self.value, product, out=self.value)


def _interval(layout: Layout, rank: int, axis: int = 0) -> tuple[int, int]:
    box = layout.box(rank)
    return (0, 0) if box is None else box[axis]
