"""Arrays of xarray and Dask, which read or compute when they are asked to: each rank asks for its part only."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Hashable, Mapping, Sequence
from itertools import pairwise, product
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from numpy_dist import engine
from numpy_dist.creation import asarray
from numpy_dist.formats.source import StoredMetadata
from numpy_dist.formats.stored import StoredArray
from numpy_dist.layout.regions import Box

if TYPE_CHECKING:
    from numpy_dist.distarray import DistArray
    from numpy_dist.layout.mesh import Mesh

__all__ = ["from_dask", "from_xarray", "to_dask", "to_xarray"]


class _Lazy:
    attributes: Mapping[str, object] = MappingProxyType({})

    def __init__(self, part: Callable[[tuple[slice, ...]], object], shape: tuple[int, ...], dtype: np.dtype) -> None:
        self._part = part
        self.metadata = StoredMetadata(shape, dtype)

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


def to_dask(x: DistArray) -> Any:
    """The Dask array whose chunks are the parts of the ranks, which stay where they are (collective).

    A rank can compute what its own part is enough for; of others it is told whose they are. ``x.gather()`` is all of
    the array on every rank.

    Parameters
    ----------
    x : DistArray
        Its values of now: later writes to it are not seen.

    Returns
    -------
    dask.array.Array
    """
    dask_array = importlib.import_module("dask.array")
    if not engine.is_sharded(x):  # every rank has it
        return dask_array.from_array(np.array(engine.plain(x)))
    if not x.size:
        return dask_array.from_array(np.empty(x.shape, x.dtype))
    share = engine.share(x) or engine.share(engine.copy(x))
    assert share is not None  # a copy has a layout
    owners = {box: rank for rank, box in enumerate(share.boxes) if box is not None}
    edges = [sorted({0, n, *(edge for box in owners for edge in box[axis])}) for axis, n in enumerate(x.shape)]
    name = f"numpy_dist-{os.urandom(8).hex()}"
    mine = np.array(share.block, order="C")
    graph: dict[tuple[object, ...], object] = {}
    spans = [list(pairwise(points)) for points in edges]
    for index, box in zip(product(*(range(len(span)) for span in spans)), product(*spans), strict=True):
        rank = owners[box]
        graph[(name, *index)] = mine if rank == engine.runtime().rank else (_of_another_rank, rank, box)
    chunks = tuple(tuple(hi - lo for lo, hi in span) for span in spans)
    return dask_array.Array(graph, name, chunks, dtype=x.dtype)


def _of_another_rank(rank: int, box: Box) -> None:
    raise ValueError(f"the elements {box} are on rank {rank}: each rank computes its own, or uses x.gather()")


def from_xarray(x: Any, split: int | None = None, mesh: Mesh | Sequence[int] | None = None) -> Any:
    """The same DataArray or Dataset with distributed arrays in it, of which each rank reads its part.

    What `xarray.open_dataset` or `open_zarr` opens is read, and decoded, when it is asked for; so no rank reads all.
    Coordinates stay as they are, on every rank. Collective, with one allgather for each array.

    Parameters
    ----------
    x : xarray.DataArray or xarray.Dataset
        The same on every rank. Distributed arrays in it stay, or are divided as `split` and `mesh` say.
    split, mesh : optional
        As for `numpy_dist.asarray`.

    Returns
    -------
    xarray.DataArray or xarray.Dataset
    """
    if hasattr(x, "data_vars"):
        return x.assign({name: from_xarray(array, split, mesh) for name, array in x.data_vars.items()})
    variable = x.variable
    held = getattr(variable, "_data", None)  # its public name reads what is in a file
    if engine.is_handle(held):
        return x.copy(data=asarray(held, split=split, mesh=mesh))
    source = _Lazy(lambda key: variable[key].values, tuple(variable.shape), np.dtype(variable.dtype))
    return x.copy(data=StoredArray("a DataArray", str(x.name), source).__distarray__(split, mesh))


def to_xarray(
    x: DistArray,
    dims: Sequence[Hashable] | None = None,
    coords: Mapping[object, object] | None = None,
    name: Hashable | None = None,
    attrs: Mapping[object, object] | None = None,
) -> Any:
    """The DataArray whose values are a distributed array, which stays where it is. Not collective.

    Parameters
    ----------
    x : DistArray
        Not copied: the DataArray sees later writes to it.
    dims, coords, name, attrs : optional
        As for `xarray.DataArray`.

    Returns
    -------
    xarray.DataArray
        Its ``data`` is `x`.
    """
    return importlib.import_module("xarray").DataArray(x, coords=coords, dims=dims, name=name, attrs=attrs)
