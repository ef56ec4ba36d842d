"""Sorting, selection and indexing of shards that lie on devices: the device's library, and messages between devices.

What other modules here do with tiles that stay in a cache is done with whole shards: sorting by regular sampling (see
`key_sort`), and rows that are asked for at their owners (see `picking`). Only counts, samples and splitters come to the
host. Functions get a `Device`: a communicator whose messages are arrays of the device (`engine.device`).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from numpy_dist.parallel.counts import arriving_and_totals
from numpy_dist.parallel.key_sort import ends_of

Array = Any  # of a device
Device = Any  # of `engine.device`: a library, and a communicator whose messages are arrays


def sort(block: Array, device: Device) -> tuple[Array, list[int]]:
    """As `sample_sort.sort`, of numbers that are not complex."""
    values = device.library.sort(block, 0) if block.size else block
    if device.size == 1:
        return values, [len(values)]
    pieces, counts = _swapped(values, _ends(values, device), device)
    joined = device.library.concatenate(pieces)
    return device.library.sort(joined, 0) if joined.size else joined, counts


def positions_in_order(block: Array, first: int, device: Device) -> tuple[Array, list[int]]:
    """As `sample_sort.positions_in_order`, of numbers that are not complex."""
    if device.size == 1 and block.size:
        return device.library.argsort(block, 0), [len(block)]
    _, positions, counts = argsort(block, first, device)
    return positions, counts


def argsort(block: Array, first: int, device: Device) -> tuple[Array, Array, list[int]]:
    """As `sample_sort.argsort`, of numbers that are not complex."""
    values, positions = _in_order(block, device)
    if device.size == 1:
        return values, positions, [len(values)]
    positions = positions + first
    ends = _ends(values, device)
    parts, counts = _swapped(values, ends, device)
    places, _ = _swapped(positions, ends, device)
    # Pieces come in rank order: of equal elements the positions ascend.
    values, order = _in_order(device.library.concatenate(parts), device)
    return values, device.library.take(device.library.concatenate(places), order), counts


def _in_order(block: Array, device: Device) -> tuple[Array, Array]:
    """Elements in order, and the positions that they had; stable."""
    if not block.size:
        return block, device.empty(0, np.intp)
    order = device.library.argsort(block, 0)
    return device.library.take(block, order), order


def _ends(values: Array, device: Device) -> list[int]:
    """Where sorted elements are cut between the shares of the ranks (see `key_sort`)."""
    library = device.library

    def sample(places: np.ndarray) -> list[np.ndarray]:
        return [library.download(library.take(values, library.upload(places)))]

    def place(wanted: Sequence[np.ndarray], side: str) -> int:
        return int(library.download(library.searchsorted(values, library.upload(wanted[0]), side))[0])

    return ends_of(len(values), values.dtype.itemsize, sample, place, device)


def _swapped(rows: Array, ends: Sequence[int], device: Device) -> tuple[list[Array], list[int]]:
    """What all ranks have for this one, if ``rows[ends[r]:ends[r + 1]]`` are for rank ``r``; and how many each gets."""
    me = device.rank
    arriving, totals = arriving_and_totals([stop - start for start, stop in pairwise(ends)], device)
    pieces, sends, receives = [], [], []
    for rank, count in enumerate(arriving):
        piece = rows[ends[rank] : ends[rank + 1]]
        if rank == me:
            pieces.append(piece)
            continue
        pieces.append(device.empty((count, *rows.shape[1:]), rows.dtype))
        if piece.size:
            sends.append((rank, piece))
        if pieces[-1].size:
            receives.append((rank, pieces[-1]))
    device.transfer(sends, receives)
    return pieces, totals


# -- rows by positions ------------------------------------------------------------------------------------------------


def pick(block: Array, points: tuple[int, ...], wanted: Array, device: Device) -> Array:
    """As `picking.pick`: each position goes to its owner, and the row comes back."""
    library = device.library
    if device.size == 1:
        return library.take(block, wanted)
    order, ends = _by_owner(wanted, points, device)
    asked, _ = _swapped(library.take(wanted, order), ends, device)
    answers = library.take(block, library.concatenate(asked) - points[device.rank])
    starts = np.concatenate([[0], np.cumsum([len(piece) for piece in asked])]).tolist()
    came, _ = _swapped(answers, starts, device)
    found = device.empty((len(wanted), *block.shape[1:]), block.dtype)
    library.place(found, order, library.concatenate(came))
    return found


def route(points: tuple[int, ...], positions: Array, values: Array, device: Device) -> tuple[Array, Array]:
    """As `picking.route`."""
    if device.size == 1:
        return positions, values
    library = device.library
    order, ends = _by_owner(positions, points, device)
    where, _ = _swapped(library.take(positions, order), ends, device)
    what, _ = _swapped(library.take(values, order), ends, device)
    return library.concatenate(where), library.concatenate(what)


def _by_owner(positions: Array, points: tuple[int, ...], device: Device) -> tuple[Array, list[int]]:
    """As `picking.by_owner`."""
    library = device.library
    owners = library.searchsorted(library.upload(np.array(points[1:-1], np.intp)), positions, "right")
    ranked, order = _in_order(owners, device)
    numbers = library.upload(np.arange(device.size + 1))
    return order, library.download(library.searchsorted(ranked, numbers, "left")).tolist()


# -- elements by their place in the order -----------------------------------------------------------------------------


class Ordered:
    """A shard in order, or a part of it: what `selection` asks of elements."""

    def __init__(self, values: Array, device: Device) -> None:
        self._values, self._device = values, device

    @classmethod
    def of(cls, block: Array, device: Device) -> Ordered:
        """A shard's elements that are no NaN come first."""
        return cls(device.library.sort(block, 0) if block.size else block, device)

    def __len__(self) -> int:
        return len(self._values)

    def picked(self, places: np.ndarray) -> np.ndarray:
        """Some elements, on the host."""
        library = self._device.library
        return library.download(library.take(self._values, library.upload(places.astype(np.intp))))

    def numbers(self) -> Ordered:
        """Those that are no NaN."""
        values = self._values
        return Ordered(values[: self._device.library.count(values == values)], self._device)

    def ends(self) -> list[tuple[np.generic, np.generic]]:
        """The least and the greatest element, NaN if there is one."""
        return [tuple(self.picked(np.array([0, len(self) - 1])))] if len(self) else []  # type: ignore[list-item]

    def swept(self, edges: list[np.generic], wanted: set[int]) -> tuple[list[int], dict[int, Ordered]]:
        """As `selection.Unordered.swept`."""
        library, values = self._device.library, self._values
        sought = library.upload(np.array(edges, values.dtype))
        lows, highs = (library.download(library.searchsorted(values, sought, s)) for s in ("left", "right"))
        counts = np.stack([lows, highs], axis=1).ravel().tolist()
        bounds = [0, *counts, len(self)]
        return counts, {k: Ordered(values[bounds[2 * k] : bounds[2 * k + 1]], self._device) for k in wanted}
