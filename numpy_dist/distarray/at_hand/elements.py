"""What is at hand of operands and arguments: their elements as ndarrays, for reading, and for writing."""

from __future__ import annotations

from functools import lru_cache
from math import prod
from types import EllipsisType
from typing import Any

import numpy as np

from numpy_dist.distarray.array import DistArray
from numpy_dist.distarray.at_hand.array import NUMBERS, AtHand, view_at_hand
from numpy_dist.engine.data import walks, windows
from numpy_dist.engine.data.windows import KINDS, near
from numpy_dist.engine.runtime import runtime

_ndarray = np.ndarray

Given = list[tuple[DistArray | np.ndarray, np.ndarray]]
"""Arrays among the arguments of a call, and their elements."""


def elements(x: Any, kind: type) -> np.ndarray | None:
    """The elements of an operand as an ndarray; None where they are not at hand, or NumPy's work is not the engine's.

    Parameters
    ----------
    x
        The operand.
    kind : type
        Its type.
    """
    if kind is AtHand:
        return x._real if x._window.readable else None
    if kind is DistArray:
        if x._storage is None:
            found = x._array
        elif x._window.readable or (x._array.nbytes < windows.limit and windows.open_window(x) is not None):
            found = x._real
        else:
            return None
    elif kind is _ndarray:
        found = x
    else:
        return None
    return found if found.dtype.char in KINDS else None


def brought(x: Any, kind: type, window: windows.Window) -> Any:
    """What is written through a window to the copy of a walk: a small array of the engine's comes to every rank."""
    walk = window.walk
    if kind is not DistArray or walk is None or not (window.readable and walk.is_worth_it) or x._storage is None:
        return x
    if x._window.readable or x._array.nbytes >= windows.limit or windows.open_window(x) is not None:
        return x
    return walks.brought(runtime(), walk, x) if window.readable and x._array.dtype.char in KINDS else x


@lru_cache(maxsize=1024)
def _size_of_both(one: tuple[int, ...], other: tuple[int, ...]) -> int:
    """Elements of what two shapes are broadcast to; 0 where that cannot be."""
    try:
        return prod(np.broadcast_shapes(one, other))
    except ValueError:
        return 0


def is_small(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether what two arrays are broadcast to is small; errors of shapes are NumPy's to tell."""
    nbytes = a.nbytes if a.shape == b.shape else _size_of_both(a.shape, b.shape) * max(a.itemsize, b.itemsize)
    return nbytes < windows.usual or windows.permits(nbytes)


def writeable(x: Any) -> np.ndarray | None:
    """The elements of an output as an ndarray that NumPy may write now; None where that is the engine's."""
    kind = type(x)
    if kind is AtHand:
        window = x._window
        if window.readable and (window.writeable or windows.may_be_written(window)):
            return x._real
    elif kind is DistArray and x._storage is None and x._array.flags.writeable:
        return x._array
    return None


PASSED = frozenset(
    {
        *NUMBERS,
        type(None),
        type(np._NoValue),
        str,
        slice,
        type,
        bytes,
        EllipsisType,
        np.dtype,
        *map(type, map(np.dtype, KINDS)),
    }
)
"""Types of arguments, besides arrays, that functions get as they are."""


class NotAtHand(Exception):
    """An argument that is not at hand: the engine's."""


def real_of(x: Any, given: Given) -> Any:
    """An argument with ndarrays in place of arrays, which are listed in `given`; raises `NotAtHand` for others."""
    kind = type(x)
    if kind in PASSED:
        return x
    if kind is AtHand or kind is DistArray or kind is _ndarray:
        found = elements(x, kind)
        if found is None or found.nbytes >= windows.limit:
            raise NotAtHand
        given.append((x, found))
        return found
    if kind is list or kind is tuple:
        return kind([real_of(item, given) for item in x])
    raise NotAtHand


def new_memory(made: np.ndarray) -> AtHand | None:
    """The array at hand of a new ndarray, which NumPy may have made as a view of all of another new one."""
    base = made.base
    if base is None:
        return near(made)
    if type(base) is not _ndarray or base.base is not None or base.nbytes != made.nbytes:
        return None
    whole = near(base)
    window = windows.family(whole)
    return None if window is None else view_at_hand(whole, made, window)
