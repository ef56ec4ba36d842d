"""HDF5, and NetCDF-4, which is HDF5: datasets of any group, read by `h5py`; elements are written by all ranks."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator, Mapping
from typing import IO, Any

import numpy as np

from numpy_dist import engine
from numpy_dist.comm.portable import on_root
from numpy_dist.files.replacement import named_as
from numpy_dist.files.writing import count_pieces, write_file, write_parts
from numpy_dist.formats.source import StoredMetadata, library
from numpy_dist.layout.regions import Box

__all__ = ["Hdf5File", "write"]

_AS_IN_MEMORY = frozenset("biufcS")  # kinds of dtypes whose elements a dataset has as memory does
_HEADERS = 2048  # bytes before the elements of a file's first dataset


class _Dataset:
    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset
        chunks = None if dataset.chunks is None else tuple(map(int, dataset.chunks))
        self.metadata = StoredMetadata(tuple(map(int, dataset.shape)), dataset.dtype, chunks)

    @property
    def attributes(self) -> Mapping[str, object]:
        return dict(self._dataset.attrs)

    def read(self, box: Box, into: np.ndarray) -> None:
        if not into.size:
            return
        if into.dtype.hasobject or not box:
            into[...] = self._dataset[tuple(slice(lo, hi) for lo, hi in box)]
        else:
            self._dataset.read_direct(into, tuple(slice(lo, hi) for lo, hi in box))


def _datasets(h5py: Any, group: Any, prefix: str, within: list[object]) -> Iterator[tuple[str, object]]:
    """The datasets of a group and below, by all their names: links are followed, but not those that lead nowhere.

    `within` are the groups above, which a link may lead back to.
    """
    for name in group:
        try:
            item = group[name]
        except (KeyError, OSError):
            if isinstance(group.get(name, getlink=True), h5py.HardLink):
                raise
            continue
        if isinstance(item, h5py.Dataset) and item.shape is not None:
            yield prefix + name, item
        elif isinstance(item, h5py.Group) and item not in [*within, group]:
            yield from _datasets(h5py, item, f"{prefix}{name}/", [*within, group])


class Hdf5File:
    """An HDF5 file that is open for reading."""

    def __init__(self, path: str) -> None:
        h5py = library("h5py", "HDF5")
        self._file = h5py.File(path, "r")
        try:
            self.sources = {name: _Dataset(dataset) for name, dataset in sorted(_datasets(h5py, self._file, "", []))}
        except BaseException:
            self.close()
            raise

    def attributes_of(self, group: str) -> Mapping[str, object]:
        return dict(self._file[group or "/"].attrs)

    def close(self) -> None:
        self._file.close()


def write(path: str, arrays: Mapping[str, engine.Handle]) -> None:
    """Write distributed arrays as datasets (collective).

    Rank 0 makes the file with room for all by `h5py`, which tells where the elements of each array are to lie; then
    each rank writes its part there. What is stored otherwise than it lies in memory is written by rank 0 alone, which
    gets it piece by piece; so is everything where not all ranks see rank 0's file.
    """
    comm = engine.runtime().comm

    def by_all(descriptor: int) -> None:
        def make() -> dict[str, int]:
            h5py = library("h5py", "HDF5")
            try:
                with _opened(descriptor) as file, h5py.File(file, "w") as made:
                    return _with_room(h5py, made, arrays)
            except OSError as error:
                raise named_as(error, path) from error

        places = on_root(make if comm.unwritten is None else functools.partial(_expected_places, arrays), comm)
        for name, place in places.items():
            write_parts(comm, descriptor, place, arrays[name], path)
        others = {name: x for name, x in arrays.items() if name not in places and engine.is_sharded(x) and x.size}
        if not others:
            return

        def fill(read: engine.Read) -> None:
            if comm.unwritten is not None:
                count_pieces(comm.unwritten, list(others.values()), read)
                return
            h5py = library("h5py", "HDF5")
            with _opened(descriptor) as file, h5py.File(file, "r+") as made:
                for number, (name, x) in enumerate(others.items()):
                    _put(made[name], number, x, read)

        engine.stream(list(others.values()), fill)

    def on_rank_0(file: IO[bytes], read: engine.Read) -> None:  # of a file that not all see, or cannot replace
        h5py = library("h5py", "HDF5")
        with h5py.File(file, "w") as made:
            for number, (name, x) in enumerate(arrays.items()):
                _put(made.create_dataset(name, x.shape, x.dtype), number, x, read)

    write_file(comm, path, b"", 0, by_all, list(arrays.values()), on_rank_0)


def _expected_places(arrays: Mapping[str, engine.Handle]) -> dict[str, int]:
    """Where the elements of arrays would lie in a file that nobody makes, much as `h5py` has it."""
    places: dict[str, int] = {}
    place = _HEADERS
    for name, x in arrays.items():
        if engine.is_sharded(x) and x.dtype.kind in _AS_IN_MEMORY and x.size:
            places[name] = place
            place += x._array.nbytes
    return places


def _opened(descriptor: int) -> IO[bytes]:
    return os.fdopen(os.dup(descriptor), "r+b")


def _with_room(h5py: Any, made: Any, arrays: Mapping[str, engine.Handle]) -> dict[str, int]:
    """Make the datasets of a file, with the values that every rank has, and room for the elements of the others.

    Returns
    -------
    dict of str to int
        Where the elements of an array begin, if they are stored as they lie in memory.
    """
    places: dict[str, int] = {}
    for name, x in arrays.items():
        how = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        how.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
        how.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
        dataset = made.create_dataset(name, x.shape, x.dtype, dcpl=how)
        if not engine.is_sharded(x):
            dataset[...] = engine.plain(x)
            continue
        place = dataset.id.get_offset()
        fits = dataset.dtype == x.dtype and dataset.id.get_storage_size() == x._array.nbytes
        if x.dtype.kind in _AS_IN_MEMORY and place is not None and fits and x.size:
            places[name] = place
    return places


def _put(dataset: Any, number: int, x: engine.Handle | np.ndarray, read: engine.Read) -> None:
    """Fill a dataset with the values of the array of a number, piece by piece."""
    for key in engine.parts_in_order(x.shape, x.dtype.itemsize):
        dataset[key if key else ...] = read(number, key)
