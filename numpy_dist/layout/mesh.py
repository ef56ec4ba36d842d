"""The mesh: a Cartesian grid of ranks, numbered in row-major order."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod


@dataclass(frozen=True)
class Mesh:
    """A Cartesian grid of ranks.

    Parameters
    ----------
    shape : tuple of int
        Extent of each mesh dimension, each at least 1. Ranks are numbered in row-major order.
    """

    shape: tuple[int, ...]

    def __post_init__(self) -> None:
        try:
            shape = tuple(map(operator.index, self.shape))
        except TypeError:
            raise TypeError(f"mesh shape must be a tuple of integers, not {self.shape!r}") from None
        if not shape or any(extent < 1 for extent in shape):
            raise ValueError(f"mesh shape must hold one or more extents of at least 1, not {self.shape!r}")
        object.__setattr__(self, "shape", shape)

    @property
    def size(self) -> int:
        """Number of ranks."""
        return prod(self.shape)

    @property
    def ndim(self) -> int:
        """Number of mesh dimensions."""
        return len(self.shape)

    def coordinates(self, rank: int) -> tuple[int, ...]:
        """The mesh coordinates of a rank."""
        if not 0 <= rank < self.size:
            raise ValueError(f"rank {rank} is not in a mesh of {self.size} ranks")
        coordinates = []
        for extent in reversed(self.shape):
            rank, coordinate = divmod(rank, extent)
            coordinates.append(coordinate)
        return tuple(reversed(coordinates))

    def rank(self, coordinates: Sequence[int]) -> int:
        """The rank at the given mesh coordinates."""
        if len(coordinates) != len(self.shape):
            raise ValueError(f"a mesh of shape {self.shape} has {len(self.shape)} coordinates, not {len(coordinates)}")
        rank = 0
        for coordinate, extent in zip(coordinates, self.shape, strict=True):
            if not 0 <= coordinate < extent:
                raise ValueError(f"coordinates {tuple(coordinates)} are not in a mesh of shape {self.shape}")
            rank = rank * extent + coordinate
        return rank
