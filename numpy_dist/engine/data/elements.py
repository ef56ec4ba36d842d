"""Reading one element after the other: what lies beside an element is fetched with it once a loop is seen."""

from __future__ import annotations

import numpy as np

from numpy_dist.engine.data.gather import agreed, assemble, item
from numpy_dist.engine.memory.handle import is_sharded, sharded
from numpy_dist.engine.memory.storage import Storage
from numpy_dist.engine.runtime import Runtime, runtime
from numpy_dist.ir import structure
from numpy_dist.ir.meta_arrays import offset_of

BLOCK_BYTES = 1 << 16
WORTH = 8  # elements of a block that a loop must need
READS = 4  # of one array, without a write in between, before blocks are fetched


class ReadAhead:
    """What was read of a storage, element by element, since it was last written.

    It belongs to the storage, so that what happens follows from the program alone, on every rank.

    Attributes
    ----------
    version : tuple
        The storage's, when this was read.
    reads : int
        How many elements were read so.
    last : int
        Position, in the storage, of the element that was read last.
    start : int
        Position, in the storage, of the first of `values`.
    values : ndarray
        Elements that were fetched, in C order.
    """

    __slots__ = ("last", "reads", "start", "values", "version")

    def __init__(self, version: tuple[int, int], dtype: np.dtype) -> None:
        self.version, self.reads, self.last = version, 0, 0
        self.start, self.values = 0, np.empty(0, dtype)


def element(x: object) -> tuple[np.generic, int]:
    """The only element of a view as a NumPy scalar, and how many of its array were read like this.

    Collective where the element is not among those that were fetched before.
    """
    if not is_sharded(x) or x._array.dtype != x._storage.dtype or x._storage.pinned:
        return item(x), 0
    storage: Storage = x._storage
    ahead = storage.ahead
    if ahead is None or ahead.version != storage.version:
        ahead = storage.ahead = ReadAhead(storage.version, storage.dtype)
    ahead.reads += 1
    position = offset_of(x._array) // storage.dtype.itemsize
    last, ahead.last = ahead.last, position
    if not 0 <= position - ahead.start < len(ahead.values):
        near = abs(position - last) * storage.dtype.itemsize <= BLOCK_BYTES // WORTH
        if ahead.reads <= READS or not near or not storage.shape or runtime().size == 1:
            return item(x), ahead.reads
        _fetch(runtime(), storage, ahead, position, position >= last)
    return agreed(ahead.values[position - ahead.start]), ahead.reads


def _fetch(rt: Runtime, storage: Storage, ahead: ReadAhead, position: int, onward: bool) -> None:
    """Fetch the elements around a position: a box, so that no more is sent than is wanted."""
    shape = storage.shape
    axis, inner = len(shape) - 1, 1
    while axis > 0 and inner * shape[axis] * storage.dtype.itemsize <= BLOCK_BYTES:
        inner *= shape[axis]
        axis -= 1
    length = max(1, BLOCK_BYTES // (inner * storage.dtype.itemsize))
    index = [int(i) for i in np.unravel_index(position, shape)]
    # Loops that go backwards get what lies before.
    low = index[axis] if onward else max(0, index[axis] - length + 1)
    key: tuple[slice, ...] = (*(slice(i, i + 1) for i in index[:axis]), slice(low, low + length))
    view = sharded(storage, structure.view(storage.meta_array(), structure.index, key))
    rt.program.force(storage)
    values = assemble(rt, storage, view._array, range(rt.size))
    assert values is not None
    ahead.values = values.reshape(-1)
    ahead.start = int(np.ravel_multi_index([*index[:axis], low, *(0,) * (len(shape) - axis - 1)], shape))
