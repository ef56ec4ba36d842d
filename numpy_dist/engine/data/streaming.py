"""Values that leave the ranks piece by piece: for files, so that nobody needs memory for the whole array."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from numpy_dist.comm.portable import portable_error, restored
from numpy_dist.engine.data.activities import progressed
from numpy_dist.engine.data.gather import gather, note_reads, shard
from numpy_dist.engine.memory.handle import is_sharded, plain, ref_of
from numpy_dist.engine.runtime import runtime
from numpy_dist.errors import DivergenceError, GatherError, RankError
from numpy_dist.ir import structure

if TYPE_CHECKING:
    from numpy_dist.engine.memory.handle import Handle
    from numpy_dist.engine.memory.storage import Storage
    from numpy_dist.layout.regions import Box

PIECE_BYTES = 1 << 24
Read = Callable[[int, tuple], np.ndarray]
ROOT = 0


def parts_in_order(
    shape: Sequence[int], itemsize: int, rows: bool = False, limit: int | None = None
) -> Iterator[tuple]:
    """Basic indices of the parts of an array that follow each other in C order, of at most so many bytes.

    Parameters
    ----------
    shape : sequence of int
    itemsize : int
    rows : bool
        Whether rows stay whole, however long they are.
    limit : int, optional
        Default: 16 MiB.
    """
    limit = PIECE_BYTES if limit is None else limit
    inner = prod(shape[1:]) * itemsize
    if not shape or shape[0] * inner <= limit:
        yield ()
    elif rows or inner <= limit:
        step = max(1, limit // inner)
        for start in range(0, shape[0], step):
            yield (slice(start, start + step),)
    else:
        for i in range(shape[0]):
            for rest in parts_in_order(shape[1:], itemsize, limit=limit):
                yield (i, *rest)


def stream(arrays: Sequence[Handle], write: Callable[[Read], None], everywhere: bool = False) -> None:
    """Run ``write(read)`` on rank 0, where ``read(n, key)`` is ``arrays[n][key]`` as an ndarray (collective).

    The other ranks serve what it asks for: a broadcast of the key, and a gather to rank 0, for each piece. An error in
    `write` is raised on every rank.

    Parameters
    ----------
    arrays : sequence of handle
    write : callable
    everywhere : bool
        Whether every rank runs `write`, alike: each has a file of its own.
    """
    comm = runtime().comm

    def piece(n: int, key: tuple, root: int | None) -> Any:
        view = arrays[n]._view(structure.index, key)
        progressed(view._array.nbytes)
        # Where the array is not sharded, a gather is a copy on every rank.
        return gather(view, root if is_sharded(view) else None)

    if everywhere or comm.size == 1:
        write(lambda n, key: piece(n, key, None))
        return
    failure: Exception | None = None
    lost: Exception | None = None  # the other ranks do not serve, and cannot be told
    if comm.rank == ROOT:

        def read(n: int, key: tuple) -> np.ndarray:
            nonlocal lost
            try:
                comm.bcast((n, key), ROOT)
                return piece(n, key, ROOT)
            except (DivergenceError, RankError) as error:
                lost = error
                raise

        try:
            write(read)
        except Exception as error:
            failure = error
        if lost is not None:  # whatever has come of it: files raise errors of their own as they are closed
            raise lost
        comm.bcast(portable_error(failure), ROOT)
    else:
        while isinstance(asked := comm.bcast(None, ROOT), tuple):
            n, key = asked
            try:
                piece(n, key, ROOT)
            except GatherError:
                continue  # rank 0 has it as well, and tells
        failure = None if asked is None else restored(asked)
    if failure is not None:
        raise failure


class Share(NamedTuple):
    """How the ranks divide an array among them, each element once.

    Attributes
    ----------
    boxes : tuple of (box or None)
        For each rank its part; None where it has none, or another rank has the same.
    block : ndarray
        The elements of this rank's part, on the host, for reading at once.
    """

    boxes: tuple[Box | None, ...]
    block: np.ndarray


class Stamp(NamedTuple):
    """What the elements of an array were: another one after each write; can be compared and hashed.

    Attributes
    ----------
    storage : weakref
    version : tuple of int
        Of the storage.
    view : tuple
        Which elements of the storage.
    """

    storage: weakref.ref[Storage]
    version: tuple[int, int]
    view: tuple[object, ...]


def stamp(x: Handle) -> Stamp | None:
    """The stamp of a sharded array; None where writes to it might go unnoticed. Not collective, and this rank's own."""
    storage: Any = x._storage
    window = None if storage.window is None else storage.window()
    if storage.pinned or storage.walk is not None or (window is not None and window.writeable):
        return None
    view = ref_of(x).view
    return Stamp(weakref.ref(storage), storage.version, (view.offset, view.shape, view.strides, view.dtype.str))


def share(x: Handle, tells: bool = True) -> Share | None:
    """Each rank's part of an array; None, alike on all ranks, where parts are no boxes.

    Collective: executes the program, and tells of floating-point events; not with ``tells=False``, for whoever asks for
    the parts of several arrays, and then calls `tell_events`.
    """
    rt = runtime()
    if not is_sharded(x):
        whole = tuple((0, n) for n in x._array.shape)
        return Share((whole, *(None,) * (rt.size - 1)), plain(x))
    note_reads((x,))
    storage = x._storage
    with rt.comm.signals:
        rt.program.force(storage)  # which may yet move it to another layout
        layout = ref_of(x).view.exact_layout
        if layout is None:
            return None
        first: dict[Box | None, int] = {}
        boxes = tuple(
            box if first.setdefault(box, rank) == rank else None
            for rank, box in enumerate(map(layout.box, range(rt.size)))
        )
        block = shard(x)
        if rt.size > 1 and tells:
            rt.events.tell()
    return Share(boxes, block)


def tell_events() -> None:
    """Tell of the floating-point events of all that was executed (collective, one allgather)."""
    runtime().events.tell()
