"""What divides elements into shares that follow each other in the elements' order: values between the shares."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

MOST_COMPARED = 1 << 6  # splitters that all elements are compared with; more are searched by bisection


@dataclass
class Splitters:
    """Elements at which the shares begin.

    Attributes
    ----------
    values : ndarray
        Ascending.
    ranks : list of int
        Of which ranks they are; an element is behind those of ranks before its own that are equal to it.
    places : list of int
        Of this rank's own ones, where they are in its block.
    """

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
            masks = (self._beyond(tile, value, equal) for value, equal in zip(self.values, behind, strict=True))
            first = next(masks)
            if len(behind) == 1:
                return first
            shares = first.view(np.uint8)
            for mask in masks:
                shares += mask.view(np.uint8)
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
