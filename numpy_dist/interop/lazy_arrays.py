"""Arrays that xarray and Dask read or compute when they are asked to: each rank asks for its part only."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from numpy_dist.formats.source import StoredMetadata
from numpy_dist.formats.stored import StoredArray
from numpy_dist.layout.regions import Box

if TYPE_CHECKING:
    from numpy_dist.distarray import DistArray
    from numpy_dist.layout.mesh import Mesh

__all__ = ["from_dask", "from_xarray"]


class _Lazy:
    attributes: Mapping[str, Any] = MappingProxyType({})

    def __init__(self, part: Callable[[tuple[slice, ...]], Any], shape: tuple[int, ...], dtype: np.dtype) -> None:
        self._part = part
        self.description = StoredMetadata(shape, dtype)

    def read(self, box: Box, into: np.ndarray) -> None:
        if into.size:
            into[...] = self._part(tuple(slice(lo, hi) for lo, hi in box))


def from_dask(x: Any, split: int | None = None, mesh: Mesh | Sequence[int] | None = None) -> DistArray:
    """The distributed array of a Dask array, of which each rank computes its part (collective, one allgather).

    Parameters
    ----------
    x : dask.array.Array
        The same on every rank, with a known shape.
    split, mesh : optional
        As for `numpy_dist.asarray`.

    Raises
    ------
    ValueError
        If its shape is not known before it is computed.
    Exception
        On every rank, what the first that could not compute its part has met.
    """
    if any(n != n for n in x.shape):
        raise ValueError(f"the shape of the Dask array is not known: {x.shape}; x.compute_chunk_sizes() finds it")
    source = _Lazy(lambda key: x[key].compute(), tuple(map(int, x.shape)), np.dtype(x.dtype))
    return StoredArray("a Dask array", x.name, source).__distarray__(split, mesh)


def from_xarray(x: Any, split: int | None = None, mesh: Mesh | Sequence[int] | None = None) -> Any:
    """The same DataArray or Dataset with distributed arrays in it, of which each rank reads its part.

    What `xarray.open_dataset` or `open_zarr` opens is read, and decoded, when it is asked for; so no rank reads all.
    Coordinates stay as they are, on every rank. Collective, with one allgather for each array.

    Parameters
    ----------
    x : xarray.DataArray or xarray.Dataset
        The same on every rank.
    split, mesh : optional
        As for `numpy_dist.asarray`.

    Returns
    -------
    xarray.DataArray or xarray.Dataset
    """
    if hasattr(x, "data_vars"):
        return x.assign({name: from_xarray(array, split, mesh) for name, array in x.data_vars.items()})
    variable = x.variable
    source = _Lazy(lambda key: variable[key].values, tuple(variable.shape), np.dtype(variable.dtype))
    return x.copy(data=StoredArray("a DataArray", str(x.name), source).__distarray__(split, mesh))
