"""Gathering: a whole view on one rank or on all; counted, and refused where it would not fit."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from numpy_dist.comm.divergence.checks import UNLIKE
from numpy_dist.engine.data.activities import activity
from numpy_dist.engine.data.ingest import came_in
from numpy_dist.engine.executing.transfer import Fetched, fetch_array, fetch_on_all
from numpy_dist.engine.memory.budget import check_budget
from numpy_dist.engine.memory.handle import Handle, is_sharded, plain, ref_of
from numpy_dist.engine.memory.storage import Storage
from numpy_dist.engine.memory.views import allocation_view
from numpy_dist.engine.runtime import Runtime, runtime
from numpy_dist.errors import CommunicationRefused
from numpy_dist.ir.meta_arrays import offset_of
from numpy_dist.ir.views import view_of
from numpy_dist.layout.regions import full_box, region_of, region_size
from numpy_dist.layout.views import addressable_region, storage_region

if TYPE_CHECKING:
    from numpy_dist.backends.memory import Array, Memory
    from numpy_dist.engine.memory.handle import ShardedHandle
    from numpy_dist.layout.regions import Region

T = TypeVar("T")


FEW = 4096
"""Elements that nobody is told of, unless there is a profile: fewer are there before anybody could look."""


def gather(x: object, root: int | None = None, large: Callable[[int, int | None], None] | None = None) -> Any:
    """The values of `x` as an ndarray. Collective for sharded arrays: executes the program and gathers.

    Parameters
    ----------
    x : handle
    root : int, optional
        Gather to this rank only; others get None.
    large : callable, optional
        Is told the bytes of a sharded array of several ranks that has not `FEW` elements, and the root.

    Raises
    ------
    GatherError
        On every rank alike, when the array is larger than ``MEMORY_BUDGET``.
    """
    if not is_sharded(x):
        return plain(x).copy("K")
    rt = runtime()
    rt.comm.signals.install()
    with rt.comm.signals:
        return _gather(rt, x, root, large)


def _gather(
    rt: Runtime, x: ShardedHandle, root: int | None, large: Callable[[int, int | None], None] | None = None
) -> np.ndarray | None:
    array = x._array
    rt.program.force(x._storage)
    told = False
    if array.size > 1 and rt.size > 1:
        told = array.size >= FEW
        if rt.comm.refuse_gathers:
            raise CommunicationRefused(f"a gather of an array of shape {array.shape}, {array.dtype}, was refused")
        nbytes = max(array.nbytes, region_size(_fetched(x._storage, array)) * x._storage.dtype.itemsize)
        check_budget(rt, nbytes, f"gathering an array of shape {array.shape}, {array.dtype}")
        rt.pool.relieve(nbytes)
        rt.counters.gathers += 1
        rt.counters.gathered_bytes += array.nbytes
    roots = range(rt.size) if root is None else (root,)
    if told:
        result = _assemble_and_tell(rt, x._storage, array, roots)
        if large is not None:
            large(array.nbytes, root)
    else:
        result = _assemble_few(rt, x._storage, array, roots)
    if rt.size > 1:
        rt.events.tell()
    return result


def _assemble_and_tell(rt: Runtime, storage: Storage, array: np.ndarray, roots: Sequence[int]) -> np.ndarray | None:
    """`assemble`, of which progress bars and profiles are told."""
    recorder = rt.recorder
    begun = 0 if recorder is None else recorder.now
    with activity("gathering", array.nbytes):
        result = assemble(rt, storage, array, roots)
    if recorder is not None:
        recorder.gathered(begun, array.nbytes, None if len(roots) == rt.size else roots[0])
    return result


def _fetched(storage: Storage, array: np.ndarray) -> Region:
    """The part of a storage that is brought to whoever gathers a view of it."""
    vmap = view_of(storage.layout, storage.dtype.itemsize, array).vmap
    if vmap is None:
        return region_of(full_box(storage.shape))
    return addressable_region(vmap, storage_region(vmap, full_box(array.shape)))


def assemble(rt: Runtime, storage: Storage, array: np.ndarray, roots: Sequence[int]) -> np.ndarray | None:
    """The elements of a view, a meta array, on some ranks; None on the others. Collective: one fetch."""
    if array.size == 0:
        return np.empty(array.shape, array.dtype) if rt.rank in roots else None
    memory = storage.memory
    if rt.comm.checks is not None:
        view = view_of(storage.layout, storage.dtype.itemsize, array)
        rt.comm.checks.reads(view, storage, "gather", "" if len(roots) > 1 else f"root {roots[0]}")
    if rt.size == 1 and memory is not None and rt.computes and rt.backend.memory.on_host:
        if storage.extent == storage.shape:  # all of it is here, without margins
            own = np.ndarray(array.shape, array.dtype, memory, offset_of(array), array.strides)
            return rt.pool.attempt(lambda: np.array(own, copy=True, order="K"))
    region = _fetched(storage, array)
    whole = all(len(r) == n for r, n in zip(region, storage.shape, strict=True))
    if rt.size == 1 and storage.memory is not None and whole:
        source, low = storage.part(region), storage.low
        if not any(low):
            return _read(storage, array, source)
    if len(roots) == rt.size > 1:
        fetched: Fetched | None = fetch_on_all(rt, storage, region)
    else:
        wanted = tuple((region,) if rank in roots else () for rank in range(rt.size))
        fetched, finish = fetch_array(rt, storage, wanted)
        finish()
    if fetched is None:
        return None
    if whole:
        return _read(storage, array, fetched.array)
    vmap = view_of(storage.layout, storage.dtype.itemsize, array).vmap
    assert vmap is not None  # else the region is the whole
    block = rt.backend.memory.download(fetched.block)
    low, steps = tuple(r.start for r in region), tuple(r.step for r in region)
    box = full_box(array.shape)
    found = allocation_view(storage.dtype.itemsize, low, fetched.array.shape, steps, vmap, box, array.dtype)
    return rt.pool.attempt(lambda: np.array(found.over(block), copy=True, order="K"))


def _read(storage: Storage, array: np.ndarray, source: Array) -> np.ndarray:
    """Apply a meta array's offset and strides to the real, whole array."""
    memory = np.ascontiguousarray(storage.pool.memory.download(source)).reshape(-1).view(np.uint8)
    view = np.ndarray(array.shape, array.dtype, buffer=memory, offset=offset_of(array), strides=array.strides)
    return storage.pool.attempt(lambda: np.array(view, copy=True, order="K"))


_assemble_few = assemble
"""How few elements, or those that one process has anyway, are gathered: nobody asks whether there is a profile."""
_recorded = 0  # runtimes that have a recorder
_counting = threading.Lock()


def have_recorder(rt: Runtime, recorder: object) -> object:
    """Have a recorder told of what a rank does (`profiling.recorder`), or nobody; returns who was told until now."""
    global _assemble_few, _recorded
    with _counting:
        before, rt.recorder = rt.recorder, recorder
        _recorded += (recorder is not None) - (before is not None)
        _assemble_few = _assemble_and_tell if _recorded else assemble
    return before


def note_reads(arrays: Iterable[object]) -> None:
    """Note which views all ranks are about to read, other than by statements: they are compared where ranks meet."""
    checks = runtime().comm.checks
    if checks is not None:
        for x in arrays:
            if is_sharded(x):
                checks.reads(ref_of(x).view, x._storage)


def item(x: object) -> Any:
    """The only element of `x` as a NumPy scalar. Collective for sharded arrays."""
    return agreed(_item(x))


def agreed(value: T) -> T:
    """A scalar that is given to Python: rank 0's, and collective, where ranks may compute different numbers."""
    if not UNLIKE:
        return value
    comm = runtime().comm
    return comm.bcast(value) if comm in UNLIKE else value


def _item(x: object) -> object:
    if not is_sharded(x):
        return plain(x).reshape(())[()]
    rt = runtime()
    with rt.comm.signals:
        rt.program.force(x._storage)
        storage = x._storage
        whole = storage.layout.is_replicated and storage.layout.nelements == 1
        if whole and x._array.size == 1 and x._array.dtype == storage.dtype:
            rt.events.tell_before_value()
            return rt.backend.memory.download(storage.array()).reshape(())[()]
        values = _gather(rt, x, None)
        assert values is not None
        return values.reshape(())[()]


def local(x: object) -> Array:
    """This rank's part of `x` as a view of the rank's own memory, which stays where it is from now on.

    An ndarray, or what the backend's memory consists of: on a device an array of the device.

    Collective: every rank must ask, since it executes the program, and from now on statements that touch this memory
    execute at once. Ranks that hold nothing get an array with no elements.

    Raises
    ------
    ValueError
        If the view's elements are owned by no box of this rank (redistribute it first).
    """
    if not is_sharded(x):
        return plain(x)
    note_reads((x,))
    checks = runtime().comm.checks
    if checks is not None:
        checks.called(())
    block = _shard(x)
    rt = runtime()
    rt.program.run_deferred()  # what has still to read these values
    _end_walk(x._storage)
    x._storage.pinned = rt.handed_out = True
    return block


def shard(x: object) -> np.ndarray:
    """The values of `local` on the host, for reading at once: the memory may move when the program goes on."""
    return runtime().backend.memory.download(_shard(x)) if is_sharded(x) else plain(x)


def shard_for_library(x: Handle) -> Array:
    """As `shard`, but where it lies, if the library of all ranks takes this dtype: then an array of that memory."""
    rt = runtime()
    memory, library = rt.backend.memory, rt.library
    if library is None or not library.takes(x._array.dtype):
        return shard(x)
    if is_sharded(x):
        return _for_library(_shard(x), memory)
    block = memory.empty(x._array.shape, x._array.dtype)
    memory.upload(block, plain(x))
    return block


def corner(x: object, extent: int) -> np.ndarray | None:
    """The first elements along each axis of this rank's part of `x`, at most `extent`; None where it has none.

    Not collective: nothing is executed. So it is None, too, where something is pending that writes the array.
    """
    if not is_sharded(x):
        array = plain(x)
        return array[(slice(extent),) * array.ndim]
    rt, storage = runtime(), x._storage
    there = storage.memory is not None and not storage.lost and storage.walk is None
    if not there or not rt.program.is_settled(storage) or rt.program.is_deferred(storage):
        return None
    view = view_of(storage.layout, storage.dtype.itemsize, x._array)
    box = None if view.exact_layout is None else view.exact_layout.box(rt.rank)
    if box is None or view.vmap is None:
        return None
    low = tuple((lo, min(hi, lo + extent)) for lo, hi in box)
    return np.array(rt.backend.memory.download(storage.view(view.vmap, low, x._array.dtype)))


def _for_library(block: Array, memory: Memory) -> Array:
    """An array of a device as its library can work on it: itself, or a copy."""
    if memory.is_aligned(block):
        return block
    made = memory.empty(block.shape, block.dtype)
    memory.copy(made, block)
    return made


def lies_on_device(block: object) -> bool:
    """Whether a block is an array of a device."""
    memory = runtime().backend.memory
    return not memory.on_host and memory.holds(block)


@contextmanager
def writing(x: Any, library: bool = False) -> Iterator[Array]:
    """An array on the host (or, for a `library`, where it is), into which this rank's part of `x` is to be written.

    All of it has to be.

    `x` is a whole array of which nothing is pending. Its own memory where that is on the host.
    """
    block, memory = _shard(x), runtime().backend.memory
    _end_walk(x._storage)
    if not x._storage.origin:
        came_in(x._storage)
    if memory.on_host or library and memory.is_aligned(block):
        yield block
    elif library:
        values = memory.empty(block.shape, block.dtype)
        yield values
        memory.copy(block, values)
    else:
        values = np.empty(block.shape, block.dtype)
        yield values
        memory.upload(block, values)


@contextmanager
def rewriting(x: ShardedHandle, library: bool = False) -> Iterator[Array]:
    """This rank's part of `x` on the host (or, for a `library`, where it is), some elements of which are to be written.

    Collective in effect: first the whole pending program is executed, whose statements may read the old values.
    """
    rt = runtime()
    rt.program.run()
    rt.program.run_deferred()
    block, memory = _shard(x), rt.backend.memory
    storage = x._storage
    _end_walk(storage)
    storage.fresh = ()  # what other ranks have of it is out of date
    storage.rewritten += 1
    storage.drop_spare()
    if memory.on_host:
        yield block
    elif library:
        values = _for_library(block, memory)
        yield values
        if not memory.is_aligned(block):
            memory.copy(block, values)
    else:
        values = memory.download(block)
        yield values
        memory.upload(block, values)


def _end_walk(storage: Storage) -> None:
    """Let nobody work on copies of what is about to be written otherwise."""
    if storage.walk is not None:
        storage.walk.end(storage)


def _shard(x: ShardedHandle) -> Array:
    rt = runtime()
    storage, array = x._storage, x._array
    rt.program.force(storage)
    view = view_of(storage.layout, storage.dtype.itemsize, array)
    layout, vmap = view.exact_layout, view.vmap
    if layout is None or vmap is None:
        raise ValueError(
            f"the elements of this view of shape {array.shape} are not owned in boxes; redistribute it first"
        )
    box = layout.box(rt.rank)
    if box is None:
        return rt.backend.memory.empty(tuple(0 for _ in array.shape) or (0,), array.dtype)
    if storage.memory is None:
        own = storage.layout.box(rt.rank)
        assert own is not None
        storage.allocate(own)
    return storage.view(vmap, box, array.dtype)
