"""Sorting on all threads of a rank: each gets the elements between two splitters, and sorts them.

As in `sample_sort`, with threads in the place of ranks: each divides a part of the elements, which keep their order,
and they are written where their share begins. Equal elements are all in one share. So the result is the same for any
number of threads, and NumPy's, stable where that is asked for. (Zeros of both signs are equal and look different: where
there are some, their order is what NumPy makes of the whole, and NumPy is asked.)
"""

from __future__ import annotations

from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from numpy_dist.comm.supervision.signals import Postponed
from numpy_dist.parallel.division import PLAIN, Division, Workspace, part_of
from numpy_dist.parallel.splitters import Splitters
from numpy_dist.parallel.threads import on_each_thread

FEW = 1 << 18
"""Elements that are not worth a thread."""
EACH = 1 << 9  # samples for each thread
MOST = 1 << 6  # threads
_RUNS = ("s", "m")  # how the names of kinds begin that are quick where elements are in order already


def sort(values: np.ndarray, kind: Any, threads: int, space: Workspace = PLAIN) -> np.ndarray:
    """The elements of an array of one axis in order, in memory of their own.

    Parameters
    ----------
    values : ndarray, shape (n,)
    kind
        NumPy's.
    threads : int
        How many may take part.
    space : Workspace
        It makes the result's memory.
    """
    made = space.empty(len(values), values.dtype)
    threads = min(threads, len(values) // FEW, MOST)
    splitters = _splitters(values, kind, threads) if threads > 1 and _is_shared(values.dtype, kind) else None
    if splitters is None or not _sorted_shares(values, kind, splitters, made, space):
        made[...] = values
        made.sort(kind=kind)
    return made


def _is_shared(dtype: np.dtype, kind: Any) -> bool:
    """Whether the shares in order are all elements in NumPy's order, and take longer to sort than to divide."""
    if dtype.kind in "biu":
        return dtype.itemsize > 2  # others are counted
    return dtype.kind in "fmMSU" or (dtype.kind == "c" and _is_stable(kind))


def _is_stable(kind: Any) -> bool:
    return isinstance(kind, str) and kind[:1].lower() in _RUNS


def _splitters(values: np.ndarray, kind: Any, threads: int) -> Splitters | None:
    """What divides elements into as many shares; None where one of them would have too many."""
    count = threads * EACH
    picked = values[np.arange(count) * len(values) // count]
    sample = np.sort(picked, kind="stable")
    if _is_stable(kind) and (np.array_equal(picked, sample) or np.array_equal(picked[::-1], sample)):
        return None  # NumPy merges what is in order
    if _differ_in_zeros(sample, kind):
        return None
    points = sample[EACH::EACH]
    shares = np.diff([0, *np.searchsorted(sample, points), count])
    return None if shares.max() * 2 > 3 * EACH else Splitters(points, [-1] * len(points), [0] * len(points))


def _differ_in_zeros(ordered: np.ndarray, kind: Any) -> bool:
    """Whether elements in order have zeros of both signs, where their order is not that which they had."""
    if ordered.dtype.kind != "f" or _is_stable(kind):
        return False
    zero = ordered.dtype.type(0)
    signs = np.signbit(ordered[np.searchsorted(ordered, zero) : np.searchsorted(ordered, zero, "right")])
    return bool(signs.any() and not signs.all())


def _sorted_shares(values: np.ndarray, kind: Any, splitters: Splitters, made: np.ndarray, space: Workspace) -> bool:
    """Fill `made` share by share; False where NumPy would order equal elements in another way."""
    threads = len(splitters.values) + 1
    points = [len(values) * k // threads for k in range(threads + 1)]
    parts = [values[low:high] for low, high in pairwise(points)]
    divisions: dict[int, Division] = {}

    def divide(k: int) -> None:
        divisions[k] = Division(splitters.owners(parts[k], 0), len(parts[k]), threads)

    with Postponed():  # the threads have the memory until all have ended
        on_each_thread(divide, threads)
        table = [divisions[k].counts for k in range(threads)]
        ends = list(accumulate((counts[share] for share in range(threads) for counts in table), initial=0))
        places = [made[low:high] for low, high in pairwise(ends)]  # of each share those of all parts
        mover = space.mover
        if mover is not None and mover.moving(places[::threads], len(values)) is None:
            mover = None

        def place(k: int) -> None:
            divisions[k].place([part_of(parts[k])], [places[k::threads]], mover)

        on_each_thread(place, threads)
        differ = [False] * threads

        def sort_share(share: int) -> None:
            own = made[ends[share * threads] : ends[(share + 1) * threads]]
            own.sort(kind=kind)
            differ[share] = _differ_in_zeros(own, kind)

        on_each_thread(sort_share, threads)
    return not any(differ)
