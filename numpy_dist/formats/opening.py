"""`numpy_dist.open`: a file of any format, found by what is in it."""

from __future__ import annotations

import builtins
import os
from collections.abc import Callable

from numpy_dist import engine
from numpy_dist.files.reading import agreed
from numpy_dist.formats import hdf5, npy, parquet, zarr
from numpy_dist.formats.source import Contents, StoredMetadata
from numpy_dist.formats.stored import StoredArray, StoredArrays

__all__ = ["open"]

# How files of a format begin.
_MAGIC: dict[bytes, Callable[[str], Contents]] = {
    b"\x93NUMPY": npy.NpyFile,
    b"PK\x03\x04": npy.NpzArchive,
    b"PK\x05\x06": npy.NpzArchive,  # an empty one
    b"\x89HDF\r\n\x1a\n": hdf5.Hdf5File,
    b"PAR1": parquet.ParquetFile,
}
_LONGEST = max(map(len, _MAGIC))


def open(path: str | os.PathLike[str]) -> StoredArray | StoredArrays:
    """The arrays in a file, of which nothing is read yet (collective, one allgather).

    Parameters
    ----------
    path : str or path-like
        Of an ``.npy`` or ``.npz`` file, an HDF5 file (NetCDF-4 ones are), a Zarr array or group of version 2 or 3, or a
        Parquet file. The format is found by what is in it, whatever its name.

    Returns
    -------
    StoredArray or StoredArrays
        The array, if a file is one; else all of its arrays by name. Closing the second, or leaving it as a context,
        closes the file.

    Raises
    ------
    OSError, ValueError, ImportError
        On every rank, what the first that cannot open it has met, or that ranks see different files.
    """
    where = os.fspath(path)
    opened: list[Contents] = []

    def look() -> list[tuple[str, StoredMetadata]]:
        opened.append(_format_of(where)(where))
        return [(name, source.metadata) for name, source in opened[0].sources.items()]

    try:
        agreed(engine.runtime().comm, path, look)
    except BaseException:
        for contents in opened:
            contents.close()
        raise
    return _objects(where, opened[0])


def _objects(where: str, contents: Contents) -> StoredArray | StoredArrays:
    arrays = {name: StoredArray(where, name, source) for name, source in contents.sources.items()}
    return arrays[""] if "" in arrays else StoredArrays(where, contents, arrays)


def _format_of(path: str) -> Callable[[str], Contents]:
    """What opens a file.

    Raises
    ------
    OSError, ValueError
    """
    if os.path.isdir(path):
        if zarr.is_zarr(path):
            return zarr.ZarrFolder
        raise ValueError(f"{path} is a folder, and no Zarr array or group")
    with builtins.open(path, "rb") as file:
        begin = file.read(_LONGEST)
    for magic, opener in _MAGIC.items():
        if begin.startswith(magic):
            return opener
    hint = ""
    if begin.startswith(b"CDF"):
        hint = ": it is NetCDF-3, which numpy_dist.from_xarray(xarray.open_dataset(path)) reads"
    raise ValueError(
        f"{path} has none of the formats that numpy_dist.open knows (.npy, .npz, HDF5, Zarr, Parquet){hint}"
    )
