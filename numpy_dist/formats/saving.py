"""`numpy_dist.save`: as `numpy.save`, and arrays in files of other formats, which the file's name says."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import IO, Any

import numpy as np

from numpy_dist.dispatch.functions.array_creation_from_data import ingest
from numpy_dist.formats import hdf5, parquet, zarr

__all__ = ["save"]

Write = Callable[[str, Mapping[str, Any]], None]


def _write_npz(path: str, arrays: Mapping[str, Any]) -> None:
    np.savez(path, **arrays)


# By the end of a file's name, what writes several arrays.
_WRITERS: dict[str, Write] = {
    ".npz": _write_npz,
    ".h5": hdf5.write,
    ".hdf5": hdf5.write,
    ".zarr": zarr.write,
    ".parquet": parquet.write,
}


def save(file: str | os.PathLike[str] | IO[bytes], arr: Any, allow_pickle: bool = True) -> None:
    """Save an array, or several by name; the file is complete, or as it was before (collective).

    Parameters
    ----------
    file : str, path-like or file object
        A name that ends in ``.h5``, ``.hdf5``, ``.zarr``, ``.parquet``, or, for several arrays, ``.npz``, says the
        format; otherwise this is `numpy.save`. Rank 0's counts.
    arr : array_like or mapping of str to array_like
        One array can be an ``.npy`` file or a Zarr array; in the others, arrays have names.
    allow_pickle : bool
        As for `numpy.save`.

    Raises
    ------
    ValueError
        If the format cannot hold what is given.
    OSError
        On every rank, what the first that could not write has met.
    """
    if not isinstance(file, str | os.PathLike):
        np.save(file, arr, allow_pickle=allow_pickle)
        return
    path = os.fspath(file)
    suffix = os.path.splitext(path.rstrip("/"))[1].lower()
    several = isinstance(arr, Mapping)
    if suffix not in _WRITERS or (suffix == ".npz" and not several):
        np.save(file, arr, allow_pickle=allow_pickle)
        return
    if not several and suffix != ".zarr":
        raise ValueError(f"arrays in a file {suffix} have names: save({path!r}, {{'x': x}})")
    arrays = arr if several else {"": arr}
    if several and not all(isinstance(name, str) and name.strip("/") for name in arrays):
        raise ValueError(f"names of arrays are texts that are not empty; these are {list(arrays)}")
    _WRITERS[suffix](path, {name: ingest(value, None, None, None, None, None) for name, value in arrays.items()})
