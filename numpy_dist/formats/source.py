"""Sources: what a format tells of an array in a file, and how a box of its elements is read."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np

from numpy_dist.formats.dealing import RowStream
from numpy_dist.layout.regions import Box

__all__ = ["Contents", "Source", "StoredMetadata", "StreamSource", "library"]


class StoredMetadata(NamedTuple):
    """What all ranks must see alike of an array in a file.

    Attributes
    ----------
    shape : tuple of int
    dtype : dtype
    chunks : tuple of int or None
        The shape of the pieces in which it is stored.
    fortran : bool
        Whether its elements are in Fortran order.
    stream : RowStream or None
        Of an array whose pieces can only be decoded from their beginning, by one rank for all.
    """

    shape: tuple[int, ...]
    dtype: np.dtype
    chunks: tuple[int, ...] | None = None
    fortran: bool = False
    stream: RowStream | None = None

    def __str__(self) -> str:
        return f"an array of shape {self.shape}, {self.dtype}"


class Source(Protocol):
    """An array in a file that this rank has opened. Nothing of it is collective."""

    @property
    def metadata(self) -> StoredMetadata:
        """Shape, dtype and how it is stored."""

    @property
    def attributes(self) -> Mapping[str, object]:
        """What the file says of the array in words and numbers."""

    def read(self, box: Box, into: np.ndarray) -> None:
        """Read the elements of a box.

        Parameters
        ----------
        box : box
            Its axes reversed, if the elements are in Fortran order.
        into : ndarray
            C-contiguous, of the shape of the box.
        """


class StreamSource(Source, Protocol):
    """An array whose metadata tell of a stream."""

    def decode(self, piece: int) -> Iterator[np.ndarray]:
        """The rows of a piece, in batches of any length."""


class Contents(Protocol):
    """A file that this rank has opened."""

    @property
    def sources(self) -> Mapping[str, Source]:
        """Its arrays by name; of a file that is one array, it has no name: ``""``."""

    def attributes_of(self, group: str) -> Mapping[str, object]:
        """What the file says of a group of arrays; of itself: ``""``."""

    def close(self) -> None:
        """Close the file."""


def library(module: str, what: str) -> Any:
    """The module that reads and writes a format.

    Raises
    ------
    ImportError
        If it is not there, saying how to get it.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        text = f"{what} needs {module.partition('.')[0]}: pip install 'numpy_dist[io]' brings it"
        raise ImportError(text, name=module) from error
