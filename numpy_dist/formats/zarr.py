"""Zarr, versions 2 and 3: a folder of chunks, read and written by all ranks with `zarr`.

Chunks of a new array are cut so that the ranks' parts consist of whole ones, where that leaves chunks large enough;
then each rank writes its own. Otherwise one rank after the other gets a slab of whole chunks, and writes that.
"""

from __future__ import annotations

import errno
import functools
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from numpy_dist import engine
from numpy_dist.comm.portable import agree, on_root
from numpy_dist.files.folders import FolderReplacement, name_beside
from numpy_dist.files.writing import on_every_rank
from numpy_dist.formats.source import StoredMetadata, library
from numpy_dist.ir import structure
from numpy_dist.layout.regions import Box

if TYPE_CHECKING:
    from numpy_dist.comm.base import Communicator


__all__ = ["ZarrFolder", "chunks_of", "is_zarr", "write"]

_CHUNK = 1 << 23  # bytes of a chunk
_PIECE = 1 << 24  # bytes that are read at once, where chunks are not larger
_LEAST = 1 << 16  # bytes of a chunk that is worth a file


class _ZarrArray:
    def __init__(self, array: Any) -> None:
        self._stored = array
        self.metadata = StoredMetadata(tuple(array.shape), np.dtype(array.dtype), tuple(array.chunks))

    @property
    def attributes(self) -> Mapping[str, object]:
        return dict(self._stored.attrs)

    def read(self, box: Box, into: np.ndarray) -> None:
        if not into.size:
            return
        chunks = getattr(self._stored, "shards", None) or self._stored.chunks
        for piece in _whole_chunks(box, chunks, into.itemsize):  # zarr makes an array of what it reads
            within: Any = *(slice(a - lo, b - lo) for (lo, _), (a, b) in zip(box, piece, strict=True)), ...
            into[within] = self._stored[tuple(slice(lo, hi) for lo, hi in piece)]


def _whole_chunks(box: Box, chunks: Sequence[int], itemsize: int) -> Iterator[Box]:
    """Boxes that make up a box, of some megabytes each if chunks are smaller; chunks are cut where the box is only."""
    if prod(hi - lo for lo, hi in box) * itemsize > _PIECE:
        for axis, ((lo, hi), chunk) in enumerate(zip(box, chunks, strict=True)):
            middle = (lo + hi) // 2 // chunk * chunk
            middle = middle if middle > lo else middle + chunk
            if middle < hi:
                for part in ((lo, middle), (middle, hi)):
                    yield from _whole_chunks((*box[:axis], part, *box[axis + 1 :]), chunks, itemsize)
                return
    yield box


class ZarrFolder:
    """A Zarr array or group that is open for reading."""

    def __init__(self, path: str) -> None:
        zarr = library("zarr", "Zarr")
        self._root = zarr.open(path, mode="r")
        if isinstance(self._root, zarr.Array):
            self.sources = {"": _ZarrArray(self._root)}
        else:
            members = self._root.members(max_depth=None)
            found = {name: item for name, item in members if isinstance(item, zarr.Array)}
            self.sources = {name: _ZarrArray(found[name]) for name in sorted(found)}

    def attributes_of(self, group: str) -> Mapping[str, object]:
        return dict((self._root[group] if group else self._root).attrs)

    def close(self) -> None:
        """Nothing is open between two reads."""


def write(path: str, arrays: Mapping[str, engine.Handle]) -> None:
    """Write distributed arrays as a Zarr array (of the name ``""``) or group, of version 3 (collective)."""
    comm = engine.runtime().comm
    zarr: Any = None
    failure: Exception | None = None
    try:
        zarr = library("zarr", "Zarr")
    except ImportError as error:  # which other machines may have
        failure = error
    agree(failure, comm)
    made: list[FolderReplacement] = []

    def begin() -> str:
        if os.path.isdir(path) and os.listdir(path) and not is_zarr(path):
            raise FileExistsError(errno.EEXIST, "the folder is no Zarr store, and is not overwritten", path)
        if comm.unwritten is not None:
            return name_beside(path, "0" * 16)
        made.append(FolderReplacement(path))
        if "" not in arrays:
            zarr.create_group(made[0].where)
        return made[0].where

    def end() -> None:
        for replacement in made:
            replacement.commit()
            replacement.discard()

    comm.signals.install()
    with comm.signals:
        try:
            where = on_root(begin, comm)
            seen = all(comm.allgather(comm.unwritten is not None or os.path.isdir(where)))
            for name, x in arrays.items():
                _write(zarr, comm, path, where, name, x, range(comm.size if seen else 1))
            on_root(end, comm)
        finally:
            for replacement in made:
                replacement.discard()


def is_zarr(path: str) -> bool:
    """Whether a folder is a Zarr array or group."""
    return any(os.path.exists(os.path.join(path, name)) for name in ("zarr.json", ".zarray", ".zgroup"))


def _write(zarr: Any, comm: Communicator, path: str, where: str, name: str, x: engine.Handle, writers: range) -> None:
    """Write an array into the folder `where`; all ranks are `writers`, or rank 0 alone."""
    share = engine.share(x)
    boxes = None if share is None else [box for box in share.boxes if box is not None]
    chunks, aligned = chunks_of(x.shape, x.dtype.itemsize, boxes)

    def create() -> None:
        if comm.unwritten is not None:
            return
        if name:
            zarr.open_group(where, mode="r+").create_array(name, shape=x.shape, chunks=chunks or "auto", dtype=x.dtype)
        else:
            zarr.create_array(where, shape=x.shape, chunks=chunks or "auto", dtype=x.dtype)

    def put(key: object, values: np.ndarray) -> None:
        if comm.unwritten is not None:  # as if nothing could be compressed
            comm.unwritten(values.nbytes)
            return
        zarr.open_array(os.path.join(where, name), mode="r+")[key] = values

    on_root(create, comm)
    if share is not None and aligned and len(writers) == comm.size:
        box = share.boxes[comm.rank]
        has = box is not None and share.block.size
        on_every_rank(comm, path, functools.partial(put, _key(box or ()), share.block) if has else None)
        return
    for number, slab in enumerate(_slabs(x.shape, chunks)):
        writer = writers[number % len(writers)]
        piece = engine.gather(x._view(structure.index, _key(slab)), writer)
        on_every_rank(comm, path, functools.partial(put, _key(slab), piece) if comm.rank == writer else None)


def _key(box: Box) -> Any:
    return tuple(slice(lo, hi) for lo, hi in box) if box else ...


def chunks_of(shape: Sequence[int], itemsize: int, boxes: Sequence[Box] | None) -> tuple[tuple[int, ...], bool]:
    """The shape of the chunks of a new array, and whether each of the boxes consists of whole ones.

    Parameters
    ----------
    shape : sequence of int
    itemsize : int
        Bytes of an element.
    boxes : sequence of box or None
        The parts of the ranks.
    """
    if not all(shape):
        return tuple(max(n, 1) for n in shape), boxes is not None
    if boxes is not None:
        cuts = [
            math.gcd(*(edge for box in boxes for edge in box[axis] if edge < n)) or n for axis, n in enumerate(shape)
        ]
        chunks = _smaller(cuts, itemsize, exact=True)
        if math.prod(chunks) * itemsize >= _LEAST or chunks == tuple(shape):
            return chunks, True
    return _smaller(shape, itemsize, exact=False), False


def _smaller(shape: Sequence[int], itemsize: int, exact: bool) -> tuple[int, ...]:
    """A shape of at most some megabytes, whose leading axes are cut first: to divisors, if they must be exact."""
    chunks = list(shape)
    for axis, n in enumerate(shape):
        inner = math.prod(chunks[axis + 1 :]) * itemsize
        wanted = max(1, _CHUNK // inner)
        if n <= wanted:
            break
        chunks[axis] = next(k for k in range(wanted, 0, -1) if not n % k) if exact else wanted
        if inner <= _CHUNK:
            break
    return tuple(chunks)


def _slabs(shape: Sequence[int], chunks: Sequence[int]) -> Iterator[Box]:
    """Boxes of whole chunks, one after the other."""
    if not shape:
        yield ()
        return
    for lo in range(0, shape[0], chunks[0]):
        for rest in _slabs(shape[1:], chunks[1:]):
            yield ((lo, min(lo + chunks[0], shape[0])), *rest)
