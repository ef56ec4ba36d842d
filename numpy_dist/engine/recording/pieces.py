"""Pieces of an array for each rank, wherever they lie: what parallel code of others asks for besides its own shard."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from numpy_dist.engine.data.ingest import from_global
from numpy_dist.engine.executing.transfer import start_fetch
from numpy_dist.engine.memory.handle import is_sharded
from numpy_dist.engine.recording.copies import copy
from numpy_dist.engine.runtime import runtime
from numpy_dist.layout.layout import Layout
from numpy_dist.layout.regions import Region

if TYPE_CHECKING:
    from numpy_dist.backends.memory import Array

Intervals = tuple[tuple[int, int], ...]


def intervals_of(indices: np.ndarray) -> Intervals:
    """The maximal runs of consecutive integers among some indices, ascending."""
    if indices.size == 0:
        return ()
    found = np.unique(indices)
    ends = np.flatnonzero(np.diff(found) != 1)
    starts = found[np.concatenate([[0], ends + 1])]
    stops = found[np.concatenate([ends, [found.size - 1]])] + 1
    return tuple(zip(starts.tolist(), stops.tolist(), strict=True))


def pieces(x: object, layout: Layout, wanted: Sequence[Sequence[Intervals]]) -> np.ndarray:
    """The part of an array with some indices along each axis, other ones on each rank. Collective.

    Parameters
    ----------
    x : handle or ndarray
    layout : Layout
        How it is cut while this is read.
    wanted : sequence
        For each rank and each axis disjoint ascending intervals of indices, the same on every rank.

    Returns
    -------
    ndarray
        On the host, dense, along each axis the indices of this rank's intervals one after the other.
    """
    rt = runtime()
    if not is_sharded(x):
        x = from_global(np.asarray(getattr(x, "_array", x)), layout, compared=True)
    whole = x
    if whole._storage.layout != layout or whole._array.strides != whole._storage.meta_array().strides:  # type: ignore[attr-defined]
        whole = copy(x, layout=layout, order="C")
    storage = whole._storage  # type: ignore[attr-defined]
    rt.program.force(storage)
    regions = tuple(
        tuple(tuple(range(lo, hi) for lo, hi in chosen) for chosen in product(*axes)) for axes in wanted
    )
    mine = wanted[rt.rank]
    shape = tuple(sum(hi - lo for lo, hi in axis) for axis in mine)
    made = storage.pool.attempt(storage.pool.memory.empty, shape, storage.dtype)

    def part(region: Region) -> Array:
        key: list[slice] = []
        for axis, r in zip(mine, region, strict=True):
            start = 0
            for lo, hi in axis:
                if lo <= r.start < hi:
                    start += r.start - lo
                    break
                start += hi - lo
            key.append(slice(start, start + len(r)))
        return made[(*key, ...)]

    rt.counters.fetches += 1
    start_fetch(rt, storage, regions, part)()
    return storage.pool.memory.download(made)
