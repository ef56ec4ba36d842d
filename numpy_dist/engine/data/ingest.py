"""How data come in: from arrays that every rank has, from one rank, from local blocks and from readers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np

from numpy_dist.engine.data.scratch import Scratch, pool_block
from numpy_dist.engine.memory.handle import ref_of, replicated, sharded
from numpy_dist.engine.memory.storage import Storage
from numpy_dist.engine.runtime import runtime
from numpy_dist.ir import structure
from numpy_dist.ir.rules import memory_axes
from numpy_dist.ir.samples import sample_of
from numpy_dist.ir.statements import Ref
from numpy_dist.layout.layout import BoxList, Copies, Cut, Layout
from numpy_dist.layout.regions import Box
from numpy_dist.settings import config

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from numpy_dist.backends.memory import Array
    from numpy_dist.engine.memory.handle import Handle


def shardable(dtype: np.dtype) -> bool:
    """Whether values of a dtype can lie in plain memory, at places of their own.

    Objects and variable-width strings cannot, nor values without a byte, such as strings of no characters.
    """
    return not dtype.hasobject and dtype.char != "T" and dtype.itemsize > 0


def default_shard(nbytes: int) -> bool:
    """Whether a new array of so many global bytes is sharded."""
    return nbytes >= config.MIN_SHARD_BYTES


def make_storage(shape: Sequence[int], dtype: np.dtype, layout: Layout, axes: tuple[int, ...] | None = None) -> Any:
    """A new storage, and the handle of the whole of it.

    Parameters
    ----------
    shape : tuple of int
    layout : Layout
        Of the array with its axes as the user sees them.
    axes : tuple of int or None
        The axes from outermost to innermost in memory; None for C order.
    """
    shape = tuple(shape)
    pool = runtime().pool
    if axes is None:
        storage = Storage(shape, dtype, layout, pool)
        return sharded(storage, storage.meta_array())
    storage = Storage(tuple(shape[a] for a in axes), dtype, layout.transpose(axes), pool)
    storage.axes = axes
    inverse = sorted(range(len(axes)), key=axes.__getitem__)
    return sharded(storage, structure.view(storage.meta_array(), np.ndarray.transpose, inverse))


def came_in(storage: Storage, made_of: bytes = b"", in_order: bool = True) -> None:
    """Note that no statement makes an array (see `comm.divergence.journal`, and `Program.came_in`)."""
    rt = runtime()
    rt.program.drop_unwanted()
    if in_order or rt.size == 1:  # else some ranks may have made none
        rt.program.came_in(storage.nbytes)
    checks = rt.comm.checks
    if checks is not None:
        checks.journal.came_in(storage, made_of, in_order)


def _fill(
    handle: Any,
    block_of: Callable[[Box], np.ndarray],
    axes: tuple[int, ...] | None,
    made_of: bytes = b"",
    in_order: bool = True,
) -> Handle:
    storage = handle._storage
    came_in(storage, made_of, in_order)
    box = storage.layout.box(runtime().rank)
    if box is not None:
        storage.allocate(box)
        user_box = box if axes is None else tuple(box[i] for i in sorted(range(len(axes)), key=axes.__getitem__))
        with _recorded():
            if leaves_out(storage.memory.size):
                return handle
            block = block_of(user_box)
        memory, block = storage.pool.memory, block if axes is None else block.transpose(axes)
        (memory.upload if isinstance(block, np.ndarray) else memory.copy)(storage.array(), block)
    return handle


MOST_UNCOMPUTED = 1 << 24
"""Bytes of a rank's part up to which values come in where nothing is computed; so small indices are right there."""


def leaves_out(nbytes: int) -> bool:
    """Whether a part of so many bytes keeps whatever is in memory: some programs that are counted do not fit here."""
    return nbytes > MOST_UNCOMPUTED and not runtime().computes


def _recorded() -> AbstractContextManager[None]:
    """A block in which this rank makes its part of an array, for a profile."""
    recorder = runtime().recorder
    return nullcontext() if recorder is None else recorder.function("making an array")


def cut_out(array: Any, box: Box) -> np.ndarray:
    return np.asarray(array[(*(slice(lo, hi) for lo, hi in box), ...)] if box else array[()])


def from_global(array: np.ndarray, layout: Layout | None = None, compared: bool = False) -> Any:
    """A handle of an ndarray that every rank has; each rank copies its part. Not collective.

    Parameters
    ----------
    array : ndarray
    layout : Layout, optional
        Default: the default layout, or replicated if the array is smaller than ``MIN_SHARD_BYTES``.
    compared : bool
        Whether some of its elements are compared where ranks meet, as of what a function is given: a rank whose array
        is another one has not only its own part to answer for.
    """
    if not shardable(array.dtype) or (layout is None and (array.ndim == 0 or not default_shard(array.nbytes))):
        return replicated(np.asarray(array).copy("K"))
    if layout is None:
        layout = runtime().default_layout(array.shape)
    axes = memory_axes([array], array.shape)
    sample = sample_of(array) if compared and runtime().comm.checks is not None else b""
    return _fill(make_storage(array.shape, array.dtype, layout, axes), lambda box: cut_out(array, box), axes, sample)


def from_only_rank(array: np.ndarray, axes: tuple[int, ...] | None = None) -> Handle:
    """A handle of an ndarray that the only rank has made, with its `axes` from outermost to innermost in memory.

    None for C order. Memory of a `Scratch` is taken over where it is in this order; other memory is copied.
    """
    ordered = array if axes is None else array.transpose(axes)
    if array.ndim == 0 or not shardable(array.dtype) or not default_shard(array.nbytes):
        ordered = ordered.copy("C")
        return replicated(ordered if axes is None else ordered.transpose(np.argsort(axes)))
    handle = make_storage(array.shape, array.dtype, runtime().default_layout(array.shape), axes)
    memory = pool_block(ordered)
    if memory is None:
        return _fill(handle, lambda box: array, axes, in_order=False)
    storage = handle._storage
    came_in(storage, in_order=False)
    memory.scratch.release(memory)
    storage.adopt(storage.layout.box(0), memory)
    return handle


def from_reader(
    reader: Callable[[Box], np.ndarray],
    shape: Sequence[int],
    dtype: DTypeLike | None,
    layout: Layout | None = None,
    made_of: bytes = b"",
) -> Any:
    """A handle of data that are read: ``reader(box)`` is called once on each rank, for its box. Not collective.

    `made_of` is what the reader depends on; other values on other ranks are found where these meet.
    """
    shape, dtype = tuple(shape), np.dtype(dtype)
    nbytes = dtype.itemsize * int(np.prod(shape, dtype=object))
    if not shardable(dtype) or (layout is None and (not shape or not default_shard(nbytes))):
        return replicated(np.array(reader(tuple((0, n) for n in shape)), dtype))
    return _fill(make_storage(shape, dtype, layout or runtime().default_layout(shape)), reader, None, made_of)


def from_filler(
    fill: Callable[[Box, np.ndarray], None],
    shape: Sequence[int],
    dtype: DTypeLike,
    layout: Layout | None = None,
    made_of: bytes = b"",
) -> Handle:
    """A handle of data that are written where they lie: ``fill(box, block)`` fills a C-contiguous block on each rank.

    Not collective; `made_of` as in `from_reader`.
    """
    shape, dtype = tuple(shape), np.dtype(dtype)
    handle = make_storage(shape, dtype, layout or runtime().default_layout(shape))
    storage = handle._storage
    came_in(storage, made_of)
    box = storage.layout.box(runtime().rank)
    if box is not None:
        storage.allocate(box)
        memory = storage.pool.memory
        with _recorded():
            if leaves_out(storage.memory.size):
                return handle
            if memory.on_host:
                fill(box, storage.array())
            else:
                block = np.empty(storage.extent, dtype)
                fill(box, block)
                memory.upload(storage.array(), block)
    return handle


def from_numpys(array: np.ndarray) -> Handle:
    """A handle of an array that NumPy has just made on the only rank, and that nobody else sees: its memory is ours."""
    axes = memory_axes([array], array.shape)
    with Scratch() as scratch:
        if axes is None:
            return from_only_rank(scratch.given(array))
        return from_only_rank(scratch.given(array.transpose(axes)).transpose(np.argsort(axes)), axes)


def from_local(block: Array, layout: Layout, new: bool = False) -> Any:
    """A handle of blocks that the ranks have: this rank's box of `layout`. Not collective.

    The block is copied, unless it is all of an array that a `Scratch` has made, or an array of a device that is `new`,
    which nobody else has: then its memory is taken over.
    The order of such arrays is not compared between ranks: some may have made one when all of them decline a way.
    """
    handle = make_storage(layout.shape, block.dtype, layout)
    box = layout.box(runtime().rank)
    if box is not None and tuple(hi - lo for lo, hi in box) != block.shape:
        raise ValueError(f"this rank's box of the layout is {box}, but the block has shape {block.shape}")
    if new and not isinstance(block, np.ndarray):
        memory = runtime().backend.memory.taken_over(block)
    else:
        memory = pool_block(block)
    if box is None or memory is None:
        return _fill(handle, lambda box: block, None, in_order=False)
    if isinstance(block, np.ndarray):
        memory.scratch.release(memory)
    came_in(handle._storage, in_order=False)
    handle._storage.adopt(box, memory)
    return handle


def from_root(array: np.ndarray | None, root: int = 0, layout: Layout | None = None) -> Any:
    """A handle of an ndarray that only `root` has. Collective: a broadcast of the metadata, a message to each rank."""
    comm = runtime().comm
    shape, dtype = comm.bcast(None if array is None else (array.shape, array.dtype), root)
    nbytes = dtype.itemsize * int(np.prod(shape, dtype=object))
    if not shardable(dtype) or (layout is None and (not shape or not default_shard(nbytes))):
        return replicated(np.array(comm.bcast(array, root), copy=True))
    layout = layout or runtime().default_layout(shape)
    if comm.size == 1:
        return from_global(array, layout)  # type: ignore[arg-type]
    handle = make_storage(shape, dtype, layout)
    own = layout.box(comm.rank)
    if array is not None:
        boxes = [layout.box(rank) for rank in range(comm.size)]
        comm.transfer(
            [(r, np.ascontiguousarray(cut_out(array, b))) for r, b in enumerate(boxes) if b is not None and r != root],
            [],
        )
        return _fill(handle, lambda box: cut_out(array, box), None)
    came_in(handle._storage)
    if own is not None:
        storage = handle._storage
        storage.allocate(own)
        memory, array = storage.pool.memory, storage.array()
        message = memory.message(array.nbytes)
        comm.transfer([], [(root, message)])
        memory.unpack([message], [[array]], dtype)
    return handle


def operand(array: np.ndarray, shape: tuple[int, ...], space: Layout | BoxList) -> Ref:
    """An ndarray operand of a statement over `space`: each rank copies the part that it will read."""
    lead = len(shape) - array.ndim
    if isinstance(space, Layout):
        dims = tuple(
            (
                Cut(d.axis - lead, d.points)
                if d.axis >= lead and array.shape[d.axis - lead] == shape[d.axis]
                else Copies()
            )
            if isinstance(d, Cut)
            else d
            for d in space.dims
        )
        layout = Layout(array.shape, space.mesh, dims)
    else:
        layout = runtime().replicated_layout(array.shape)
    sample = b"" if runtime().comm.checks is None else sample_of(array)
    handle = make_storage(array.shape, array.dtype, layout)
    _fill(handle, lambda box: cut_out(array, box), None, sample, in_order=False)  # its statement is compared
    return broadcast(ref_of(handle), shape)


def broadcast(ref: Ref, shape: tuple[int, ...]) -> Ref:
    """The same view with the statement's shape."""
    if ref.array.shape == shape:
        return ref
    return Ref(ref.storage, structure.view(ref.array, np.broadcast_to, shape))
