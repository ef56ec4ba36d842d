"""HDF5, and NetCDF-4, which is HDF5: datasets of any group, read by `h5py`; rank 0 writes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from numpy_dist import engine
from numpy_dist.files.writing import write_on_root
from numpy_dist.formats.source import StoredMetadata, library
from numpy_dist.layout.regions import Box

__all__ = ["Hdf5File", "write"]


class _Dataset:
    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset
        chunks = None if dataset.chunks is None else tuple(map(int, dataset.chunks))
        self.metadata = StoredMetadata(tuple(map(int, dataset.shape)), dataset.dtype, chunks)

    @property
    def attributes(self) -> Mapping[str, Any]:
        return dict(self._dataset.attrs)

    def read(self, box: Box, into: np.ndarray) -> None:
        if not into.size:
            return
        if into.dtype.hasobject or not box:
            into[...] = self._dataset[tuple(slice(lo, hi) for lo, hi in box)]
        else:
            self._dataset.read_direct(into, tuple(slice(lo, hi) for lo, hi in box))


class Hdf5File:
    """An HDF5 file that is open for reading."""

    def __init__(self, path: str) -> None:
        h5py = library("h5py", "HDF5")
        self._file = h5py.File(path, "r")
        self.sources: dict[str, _Dataset] = {}

        def visit(name: str, item: Any) -> None:
            if isinstance(item, h5py.Dataset) and item.shape is not None:
                self.sources[name] = _Dataset(item)

        try:
            self._file.visititems(visit)
        except BaseException:
            self.close()
            raise

    def attributes_of(self, group: str) -> Mapping[str, Any]:
        return dict(self._file[group or "/"].attrs)

    def close(self) -> None:
        self._file.close()


def write(path: str, arrays: Mapping[str, Any]) -> None:
    """Write distributed arrays as datasets (collective): rank 0 writes what it gets piece by piece."""
    given = list(arrays.values())

    def fill(file: Any, read: engine.Read) -> None:
        h5py = library("h5py", "HDF5")
        with h5py.File(file, "w") as opened:
            for number, (name, x) in enumerate(arrays.items()):
                dataset = opened.create_dataset(name, x.shape, x.dtype)
                for key in engine.parts_in_order(x.shape, x.dtype.itemsize):
                    dataset[key if key else ...] = read(number, key)

    write_on_root(path, given, fill)
