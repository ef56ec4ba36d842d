"""Sorting along one cut axis: sample sort.

Samples of all shards give splitters; each rank divides its elements by them, the ranks exchange what belongs to others,
and each rank sorts what it has got (Frazer and McKellar, "Samplesort", JACM 1970). NumPy's sort with vector
instructions is so fast that to sort before the exchange, and to merge after it, would cost more than it saves.

Elements are told apart by (value, rank, position), so that equal ones are divided like any others. Where the samples
mislead and a rank would get more than an eighth above its share, the exact splitters are selected (`selection`), and
all shares are equal: so heavy duplicates, NaN and skew do no harm. (Of complex numbers and strings, which are not
selected, the bound is that of the samples.)
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from numpy_dist.parallel.counts import arriving_and_totals, even_shares
from numpy_dist.parallel.division import PLAIN, Delivery, Division, Workspace, offsets, part_of
from numpy_dist.parallel.packed_order import labels_in_order
from numpy_dist.parallel.selection import select

if TYPE_CHECKING:
    from numpy_dist.comm.base import Communicator

SAMPLES = 1 << 14  # of all ranks; of many ranks so many for each share:
EACH = 1 << 10
MOST_COMPARED = 8  # splitters that all elements are compared with; more are searched by bisection


def sort(
    block: np.ndarray, kind: object, comm: Communicator, space: Workspace = PLAIN, total: int = 0
) -> tuple[np.ndarray, list[int]]:
    """This rank's part of all elements in order (collective: a few allgathers, a message between any two ranks).

    Parameters
    ----------
    block : ndarray, shape (n,)
        This rank's elements, perhaps none.
    kind
        NumPy's.
    space : Workspace
        It makes the result's memory, and that of what is sent.
    total : int
        How many elements there are on all ranks; only plans need it, whose other ranks are not there.

    Returns
    -------
    part : ndarray
    counts : list of int
        How many elements each rank has now.
    """
    if comm.size == 1:
        part, counts = space.empty(len(block), block.dtype), [len(block)]
        part[...] = block
    else:
        division, arriving, counts = _divided(block, comm, total)
        delivery = Delivery(division.counts, arriving, comm, space)
        part, targets = delivery.buffers(block.dtype)
        division.place([part_of(block)], [targets], space.mover)
        delivery.exchange()
        if not comm.delivers:
            _resemble(part, block)
    part.sort(kind=_quickest(block.dtype, kind))
    return part, counts


def _quickest(dtype: np.dtype, kind: object) -> Any:
    """NumPy's kind of sorting that takes the least time for a result that is the same: equal integers are."""
    if dtype.kind not in "biu":
        return kind
    return "stable" if dtype.itemsize <= 2 else None  # it sorts those by digits


def argsort(
    block: np.ndarray, first: int, comm: Communicator, space: Workspace = PLAIN, total: int = 0
) -> tuple[np.ndarray, np.ndarray, list[int]]:
    """As `sort`, with the positions that the elements had; stable.

    Parameters
    ----------
    first : int
        The position of this rank's first element. Ranks hold ascending positions in rank order.

    Returns
    -------
    values, positions, counts
    """
    values, positions, counts = _exchanged(block, first, comm, space, total)
    order = labels_in_order(values, np.arange(len(values)))
    return values[order], positions[order], counts


def positions_in_order(
    block: np.ndarray, first: int, comm: Communicator, space: Workspace = PLAIN, total: int = 0
) -> tuple[np.ndarray, list[int]]:
    """As `argsort`, without the values."""
    values, positions, counts = _exchanged(block, first, comm, space, total)
    return labels_in_order(values, positions, space.empty), counts


def _exchanged(
    block: np.ndarray, first: int, comm: Communicator, space: Workspace, total: int
) -> tuple[np.ndarray, np.ndarray, list[int]]:
    """The elements between two splitters and the positions that they had, ascending."""
    if comm.size == 1:
        return block, np.arange(first, first + len(block)), [len(block)]
    division, arriving, totals = _divided(block, comm, total)
    delivery = Delivery(division.counts, arriving, comm, space)
    values, targets = delivery.buffers(block.dtype)
    firsts = comm.allgather((first, len(block)))
    small = np.uint32 if max(length for _, length in firsts) < 1 << 32 else np.int64
    places, numbers = delivery.buffers(small)  # within the shard that they come from: half the bytes
    division.place([part_of(block), offsets(small)], [targets, numbers], space.mover)
    delivery.exchange()
    if not comm.delivers:  # positions ascend, too
        _resemble(values, block)
        places = np.concatenate([np.arange(n, dtype=small) for n in arriving])
        firsts = [(total * rank // comm.size, 0) for rank in range(comm.size)]
    positions = places.astype(np.int64)
    for (start, _), (lo, hi) in zip(firsts, pairwise(accumulate(arriving, initial=0)), strict=True):
        positions[lo:hi] += start
    return values, positions, totals


def _resemble(part: np.ndarray, block: np.ndarray) -> None:
    """In a plan, take what nobody has sent to be like what this rank has."""
    if len(block):
        part[...] = np.resize(block, len(part))


@dataclass
class _Splitters:
    """Elements at which the shares begin: their values, and of which ranks they are; of ours, where they are."""

    values: np.ndarray
    ranks: list[int]
    places: list[int]

    def owners(self, block: np.ndarray, rank: int) -> Callable[[int, int], np.ndarray]:
        """Tells for elements of this rank's block whose share they are in."""

        # Of the splitters, those in a rank before this one have equal elements of this one behind them. Between the
        # places of this rank's own ones, it is known which of these have: as many as are behind the places.
        own = sorted(place for r, place in zip(self.ranks, self.places, strict=True) if r == rank)
        behind = [
            [(r, p) <= (rank, place) for r, p in zip(self.ranks, self.places, strict=True)] for place in (-1, *own)
        ]

        def owners(start: int, stop: int) -> np.ndarray:
            first, last = bisect_right(own, start), bisect_left(own, stop)
            if first >= last:
                return self._shares(block[start:stop], behind[first])
            ends = [start, *own[first:last], stop]
            return np.concatenate(
                [self._shares(block[p:q], behind[first + k]) for k, (p, q) in enumerate(pairwise(ends))]
            )

        return owners

    def _shares(self, tile: np.ndarray, behind: list[bool]) -> np.ndarray:
        """The shares of some elements; `behind` tells which splitters elements that are equal to them lie behind."""
        if tile.dtype.kind in "biufmM" and len(behind) <= MOST_COMPARED:
            masks = [self._beyond(tile, value, equal) for value, equal in zip(self.values, behind, strict=True)]
            shares: Any = masks[0] if len(masks) == 1 else np.sum(masks, axis=0, dtype=np.uint8)
            return shares
        chosen = np.array(behind)
        upto = np.searchsorted(self.values[chosen], tile, "right")
        return upto + np.searchsorted(self.values[~chosen], tile, "left")

    @staticmethod
    def _beyond(tile: np.ndarray, value: np.generic, equal: bool) -> np.ndarray:
        """Which elements are above a value, NaN being the last one, or equal to it."""
        if value != value:
            return np.isnan(tile) if equal else np.zeros(len(tile), bool)
        return ~(tile < value) if equal else ~(tile <= value)


def _divided(block: np.ndarray, comm: Communicator, total: int) -> tuple[Division, list[int], list[int]]:
    """This rank's elements divided by splitters; how many each rank has for this one, and how many each gets."""
    lengths, splitters = _sampled(block, comm)
    division = Division(splitters.owners(block, comm.rank), len(block), comm.size)
    arriving, totals = arriving_and_totals(division.counts, comm)
    if block.dtype.kind in "biufmM" and (max(totals) - 1) * 8 * comm.size > sum(lengths) * 9:
        splitters = _exact(block, lengths, comm)
        division = Division(splitters.owners(block, comm.rank), len(block), comm.size)
        arriving, totals = arriving_and_totals(division.counts, comm)
    if not comm.delivers:
        arriving, totals = even_shares(division.counts, total, comm)
    return division, arriving, totals


def _sampled(block: np.ndarray, comm: Communicator) -> tuple[list[int], _Splitters]:
    """How many elements the ranks have, and splitters from a regular sample of them."""
    lengths = comm.allgather(len(block))
    total, ranks = sum(lengths), comm.size
    wanted = max(SAMPLES, EACH * ranks)
    shares = [n if total <= wanted else -(-wanted * n // total) for n in lengths]
    places = [np.arange(share) * n // max(share, 1) for share, n in zip(shares, lengths, strict=True)]
    values = np.concatenate(comm.allgather_array(block[places[comm.rank]]))
    owners, where = np.repeat(np.arange(ranks), shares), np.concatenate(places)
    # How many elements a sample stands for: shards may have different sizes.
    weights = np.repeat([n / max(share, 1) for share, n in zip(shares, lengths, strict=True)], shares)
    if not len(values):
        return lengths, _Splitters(np.zeros(ranks - 1, block.dtype), [0] * (ranks - 1), [0] * (ranks - 1))
    chosen = _weighted(values, weights, total * np.arange(1, ranks) / ranks)
    return lengths, _Splitters(values[chosen], owners[chosen].tolist(), where[chosen].tolist())


def _weighted(values: np.ndarray, weights: np.ndarray, wanted: np.ndarray) -> list[int]:
    """Where the values are before which, in a stable order, lie so much weight."""
    order = np.argsort(values)  # not stable, which takes a fifth of the time; equal values are looked at below
    inside = values[order]
    before = np.cumsum(weights[order]) - weights[order]
    groups: dict[int, tuple[np.ndarray, np.ndarray]] = {}
    chosen = []
    for place, weight in zip(np.minimum(np.searchsorted(before, wanted), len(order) - 1), wanted, strict=True):
        low, high = (int(np.searchsorted(inside, inside[place], side)) for side in ("left", "right"))
        if low not in groups:
            alike = np.sort(order[low:high])
            groups[low] = alike, before[low] + np.cumsum(weights[alike]) - weights[alike]
        alike, reached = groups[low]
        chosen.append(int(alike[min(np.searchsorted(reached, weight), len(alike) - 1)]))
    return chosen


def _exact(block: np.ndarray, lengths: list[int], comm: Communicator) -> _Splitters:
    """The splitters between shares of equal size (collective: see `selection`, an all-to-all and an allgather)."""
    total = sum(lengths)
    wanted = [number * total // comm.size for number in range(1, comm.size)]
    values = select(block, wanted, comm)
    mine = []
    for value in values:
        if value != value:
            same = np.isnan(block)
            mine.append((int(np.count_nonzero(~same)), int(np.count_nonzero(same))))
        else:
            mine.append((int(np.count_nonzero(block < value)), int(np.count_nonzero(block == value))))
    told = np.array([*mine, (0, 0)], np.int64)  # one more than there are splitters, so that each rank decides on one
    below, equal = comm.alltoall(told).T
    decided = (0, 0)
    if comm.rank < len(wanted):
        left = wanted[comm.rank] - int(below.sum())  # of the equal elements, so many are in shares before
        reached = np.cumsum(equal)
        owner = int(np.searchsorted(reached, left, "right"))
        decided = owner, left - int(reached[owner] - equal[owner])
    ranks, places = [], []
    for value, (owner, left) in zip(values, comm.allgather(decided), strict=False):
        ranks.append(owner)
        places.append(0)
        if owner == comm.rank:
            same = np.isnan(block) if value != value else block == value
            places[-1] = int(np.flatnonzero(same)[left])
    return _Splitters(values, ranks, places)
