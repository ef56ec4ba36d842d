"""NumPy's own formats as sources: ``.npy`` and ``.npz`` files."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from numpy_dist.files.npy import array_of_npy
from numpy_dist.files.npz import member_reader
from numpy_dist.files.reading import Reader
from numpy_dist.formats.source import StoredMetadata
from numpy_dist.layout.regions import Box

__all__ = ["NpzArchive", "NpyFile"]

_NOTHING: Mapping[str, object] = MappingProxyType({})


class _NpyArray:
    attributes = _NOTHING

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self.metadata = StoredMetadata(reader.array.shape, reader.dtype, None, reader.array.fortran)

    def read(self, box: Box, into: np.ndarray) -> None:
        self._reader.read(box, into)


class NpyFile:
    """An ``.npy`` file."""

    def __init__(self, path: str) -> None:
        found = array_of_npy(path)
        if found is None:
            with open(path, "rb") as file:
                version = np.lib.format.read_magic(file)
            if version > (2, 0):
                np.load(path)  # NumPy refuses what it does not know
                raise ValueError(f"{path} has version {version} of the format: numpy_dist.load(path) reads it")
            raise ValueError(f"{path} holds Python objects: numpy_dist.load(path, allow_pickle=True) reads it")
        self.sources = {"": _NpyArray(Reader(path, found))}

    def attributes_of(self, group: str) -> Mapping[str, object]:
        return _NOTHING

    def close(self) -> None:
        """Nothing is open between two reads."""


class NpzArchive:
    """An ``.npz`` file; arrays of Python objects in it are left out."""

    def __init__(self, path: str) -> None:
        self._archive = zipfile.ZipFile(path)
        try:
            readers = {
                name.removesuffix(".npy"): member_reader(path, self._archive, name)
                for name in self._archive.namelist()
                if name.endswith(".npy")
            }
        except BaseException:
            self.close()
            raise
        self.sources = {name: _NpyArray(reader) for name, reader in readers.items() if reader is not None}

    def attributes_of(self, group: str) -> Mapping[str, object]:
        return _NOTHING

    def close(self) -> None:
        self._archive.close()
