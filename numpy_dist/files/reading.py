"""Input of distributed arrays from files: each rank reads its part, straight into its memory, after all have looked.

What ranks see of a file may differ from machine to machine: it may be gone on one, or shorter. So they tell each other
before they read, and whether they could read.
"""

from __future__ import annotations

import hashlib
import os
import pickle
from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from numpy_dist import engine
from numpy_dist.comm.portable import agree, first_error, portable_error
from numpy_dist.files.npy import ArrayInFile, Path
from numpy_dist.files.pieces import read_box
from numpy_dist.files.replacement import named_as
from numpy_dist.layout.regions import Box

if TYPE_CHECKING:
    from numpy_dist.comm.base import Communicator

__all__ = ["Reader", "agreed"]

Found = TypeVar("Found")
MOST_TOLD = 1024
"""Bytes of what a rank finds, up to which it tells all others; of more they compare digests first."""


def agreed(comm: Communicator, path: Path, look: Callable[[], Found]) -> Found:
    """What all ranks find where they look into a file (collective, one allgather, of small things).

    Of what is large, as the groups of rows of a long table, ranks tell a digest: else each would get it once a rank.

    Raises
    ------
    ValueError
        On every rank, if they find different things, saying which.
    Exception
        On every rank, what the first that cannot look has met.
    """
    found, failure = None, None
    try:
        found = look()
    except Exception as error:
        failure = error
    name = os.fsdecode(path)
    if failure is not None and name not in str(failure):
        failure.add_note(f"in {name}")
    if comm.size == 1:
        if failure is not None:
            raise failure
        return found  # type: ignore[return-value]
    payload = pickle.dumps(found, protocol=5)
    digest = hashlib.blake2b(payload, digest_size=16).digest()
    told = comm.allgather((portable_error(failure), found if len(payload) <= MOST_TOLD else digest))
    first = first_error((problem for problem, _ in told), comm.rank, failure)
    if first is not None:
        rank, problem = first
        if any(other is None for other, _ in told):
            problem.add_note(f"rank {rank} has met this; other ranks have not, and may see another file of this name")
        raise problem
    seen: list[object] = [other for _, other in told]
    if any(other != seen[0] for other in seen) and any(isinstance(other, bytes) for other in seen):
        seen = comm.allgather(found)  # what is the same may have been pickled in other ways
    for rank, other in enumerate(seen):
        if other != seen[0]:
            raise ValueError(
                f"{os.fspath(path)} is not the same for all ranks: rank 0 sees {seen[0]}, rank {rank} {other}"
            )
    return found  # type: ignore[return-value]


class Reader:
    """What reads the parts of an array in a file.

    Parameters
    ----------
    path : str or path-like
    array : ArrayInFile

    Attributes
    ----------
    array : ArrayInFile
    dtype : dtype
    failure : Exception or None
        What this rank has met in `fill`.

    Raises
    ------
    ValueError
        If the file has too few elements, as `numpy.load` says it.
    """

    failure: Exception | None

    def __init__(self, path: Path, array: ArrayInFile) -> None:
        self._path, self.array = path, array
        self.dtype, self.failure = array.dtype, None
        if array.there < prod(array.shape):
            raise _too_short(path, array)

    def read(self, box: Box, block: np.ndarray) -> None:
        """Read a box of the elements, of the shape in which they are in C order.

        Raises
        ------
        OSError, ValueError
        """
        try:
            descriptor = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                if hasattr(os, "posix_fadvise"):
                    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_SEQUENTIAL)
                name = os.path.basename(os.fsdecode(self._path))
                with engine.activity(f"reading {name}", block.nbytes, stepwise=True):
                    read_box(descriptor, self.array.offset, self.array.order, box, block)
            finally:
                os.close(descriptor)
        except EOFError:
            raise _too_short(self._path, self.array) from None
        except OSError as error:
            raise named_as(error, self._path) from error

    def fill(self, box: Box, block: np.ndarray) -> None:
        """As `read`; errors are told by `finish`."""
        try:
            self.read(box, block)
        except Exception as error:
            self.failure = error

    def finish(self, comm: Communicator) -> None:
        """Raise on every rank what one of them has met as it read (collective)."""
        if self.failure is not None and comm.size > 1:
            self.failure.add_note(f"rank {comm.rank} has met this")
        agree(self.failure, comm)


def _too_short(path: Path, array: ArrayInFile) -> ValueError:
    wanted, there = prod(array.shape), max(array.there, 0)
    if there >= wanted:
        return ValueError(f"{os.fspath(path)} has become shorter while it was read")
    return ValueError(
        f"Failed to read all data for array. Expected {array.shape} = {wanted} elements, could only read {there} "
        f"elements. (file seems not fully written?): {os.fspath(path)}"
    )
