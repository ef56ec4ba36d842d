"""Elements of a distributed array by their place in its order, without sorting it.

Two elements of a regular sample bracket each one that is sought; one sweep counts what lies below and at them, and
keeps the small part that lies between (Floyd and Rivest, "Expected time bounds for selection", CACM 1975). All places
are brought closer in the same rounds. What is left at last is gathered, a few elements, and NumPy chooses among them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from numpy_dist.parallel.counts import summed
from numpy_dist.parallel.extremes import TILE, extremes_of, extremes_of_tiles

if TYPE_CHECKING:
    from numpy_dist.comm.base import Communicator
    from numpy_dist.parallel.on_device import Ordered

FEW = 1 << 14  # elements, of all ranks, that are gathered
SAMPLES = 1 << 14  # of all ranks; and of each of many ranks at least
LEAST = 1 << 8
MOST_EDGES = 16  # that elements are compared with in one sweep


@dataclass
class _Region:
    """Elements among which some places are sought, counted from the least of them.

    Attributes
    ----------
    places : dict of int to int
        Places in the region, by those in the array.
    edges : list
        Elements, ascending, that divide the region: interval ``k`` is below edge ``k``, and above the one before.
    likely : set of int
        Intervals where the places probably are.
    """

    block: Any
    places: dict[int, int]
    total: int = 0
    edges: list[np.generic] = field(default_factory=list)
    likely: set[int] = field(default_factory=set)


class Unordered:
    """A shard's elements, or some of them, as they lie on the host."""

    def __init__(self, values: np.ndarray) -> None:
        self._values = values

    def __len__(self) -> int:
        return len(self._values)

    def picked(self, places: np.ndarray) -> np.ndarray:
        """Some elements."""
        return self._values[places]

    def numbers(self) -> Unordered:
        """Those that are no NaN."""
        return Unordered(self._values[~np.isnan(self._values)])

    def ends(self) -> list[tuple[np.generic, np.generic]]:
        """The least and the greatest element of each tile, NaN if there is one."""
        return extremes_of_tiles(self._values)

    def swept(self, edges: list[np.generic], wanted: set[int]) -> tuple[list[int], dict[int, Unordered]]:
        """How many elements are below each edge and how many up to it, in turn; and those in some of the intervals."""
        counts, kept = _sweep(self._values, edges, wanted)
        return counts, {k: Unordered(values) for k, values in kept.items()}


def select(block: np.ndarray, places: Sequence[int], comm: Communicator) -> np.ndarray:
    """As `select_of`, of a rank's elements on the host, an array of one axis."""
    return select_of(Unordered(block), places, block.dtype, comm)


def select_of(block: Unordered | Ordered, places: Sequence[int], dtype: np.dtype, comm: Communicator) -> np.ndarray:
    """The elements at some places of the sorted array; NaN is last.

    Collective: three allgathers in each of a few rounds, whose number does not depend on that of the places.

    Parameters
    ----------
    block : Unordered or on_device.Ordered
        This rank's elements, perhaps none.
    places : sequence of int
        From 0, below the number of all elements.
    dtype : dtype
        Of the elements.

    Returns
    -------
    ndarray
        The same on every rank.
    """
    found: dict[int, np.generic] = {}
    ends = extremes_of(block.ends(), comm)
    if ends is None:
        return np.empty(0, dtype)
    if dtype.kind in "fmM" and np.isnan(ends[1]):
        block = block.numbers()
        total = sum(comm.allgather(len(block)))
        found = {place: ends[1] for place in places if place >= total}
    elif 0 in places:
        found[0] = ends[0]
    regions = [_Region(block, {place: place for place in places if place not in found})]
    while regions := [region for region in regions if region.places]:
        regions = _round(regions, found, comm)
    return np.array([found[place] for place in places], dtype)


def _round(regions: list[_Region], found: dict[int, np.generic], comm: Communicator) -> list[_Region]:
    """Find the places of regions with few elements; smaller regions for those of the others."""
    _look(regions, found, comm)
    regions = [region for region in regions if region.edges]
    swept = [region.block.swept(region.edges, region.likely) for region in regions]
    sums = summed([number for numbers, _ in swept for number in numbers], comm)
    smaller, start = [], 0
    for region, (numbers, kept) in zip(regions, swept, strict=True):
        below = sums[start : start + len(numbers)]
        start += len(numbers)
        by_interval: dict[int, dict[int, int]] = {}
        for place, inner in region.places.items():
            step = int(np.searchsorted(below, inner, "right"))  # even: in an interval; odd: at an edge
            if step % 2:
                found[place] = region.edges[step // 2]
            else:
                by_interval.setdefault(step // 2, {})[place] = inner - (below[step - 1] if step else 0)
        missed = by_interval.keys() - region.likely
        if missed:
            kept |= region.block.swept(region.edges, missed)[1]
        smaller += [_Region(kept[k], inside) for k, inside in by_interval.items()]
    return smaller


def _look(regions: list[_Region], found: dict[int, np.generic], comm: Communicator) -> None:
    """Gather regions with few elements and samples of the others, from which come their edges."""
    sizes = comm.allgather([len(region.block) for region in regions])
    picked, table = [], []
    for index, region in enumerate(regions):
        row = [each[index] for each in sizes]
        region.total = sum(row)
        wanted = max(SAMPLES, LEAST * comm.size)
        shares = [n if region.total <= FEW else -(-wanted * n // region.total) for n in row]
        table.append(shares)
        picked.append(region.block.picked(np.arange(shares[comm.rank]) * row[comm.rank] // max(shares[comm.rank], 1)))
    parts = comm.allgather_array(np.concatenate(picked))
    for index, region in enumerate(regions):
        starts = [sum(shares[rank] for shares in table[:index]) for rank in range(comm.size)]
        pieces = [part[lo : lo + n] for part, lo, n in zip(parts, starts, table[index], strict=True)]
        sample = np.sort(np.concatenate(pieces))
        if region.total <= FEW:
            found.update({place: sample[inner] for place, inner in region.places.items()})
        else:
            _divide(region, sample)


def _divide(region: _Region, sample: np.ndarray) -> None:
    """Choose edges: two elements of a sample between which each place probably lies; a few of them for many places."""
    middles = np.array(sorted(region.places.values())) * (len(sample) / region.total)
    margin = 1.5 * np.sqrt(len(sample))
    lows, highs = (sample[np.clip(middles + side, 0, len(sample) - 1).astype(np.intp)] for side in (-margin, margin))
    edges = np.unique(np.concatenate([lows, highs]))
    if len(edges) > MOST_EDGES:
        edges = edges[np.linspace(0, len(edges) - 1, MOST_EDGES).astype(np.intp)]
    region.edges = list(edges)
    firsts, lasts = np.searchsorted(edges, lows, "right"), np.searchsorted(edges, highs, "left")
    region.likely = {k for first, last in zip(firsts, lasts, strict=True) for k in range(first, last + 1)}


def _sweep(block: np.ndarray, edges: list[np.generic], wanted: set[int]) -> tuple[list[int], dict[int, np.ndarray]]:
    """How many elements are below each edge and how many up to it, in turn; and what is in some of the intervals."""
    step = max(TILE // block.itemsize, 1)
    counts = np.zeros(2 * len(edges), np.intp)
    kept: dict[int, list[np.ndarray]] = {k: [block[:0]] for k in wanted}
    for start in range(0, len(block), step):
        tile = block[start : start + step]
        upto = np.zeros(len(tile), bool)
        for k, edge in enumerate(edges):
            below = tile < edge
            counts[2 * k] += np.count_nonzero(below)
            if k in kept:
                kept[k].append(tile.compress(below > upto))
            upto = tile <= edge
            counts[2 * k + 1] += np.count_nonzero(upto)
        if len(edges) in kept:
            kept[len(edges)].append(tile.compress(~upto))
    return counts.tolist(), {k: np.concatenate(pieces) for k, pieces in kept.items()}
