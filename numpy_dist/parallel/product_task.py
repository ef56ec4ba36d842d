"""A rank's task in a product of several ranks: what it computes, and what it may use for that."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy_dist.comm.base import Communicator


class ProductTask(NamedTuple):
    """What all algorithms are given that compute a product piece by piece.

    Attributes
    ----------
    out : ndarray
        This rank's part of the product, in which it is computed.
    comm : Communicator
    most : int
        How many elements of the product a rank may have besides, about; the same on all ranks.
    empty : callable
        ``empty(shape, dtype)`` makes the memory of what is received, and of products that are added.
    """

    out: np.ndarray
    comm: Communicator
    most: int
    empty: Callable[..., np.ndarray] = np.empty
