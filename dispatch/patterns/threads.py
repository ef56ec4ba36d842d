"""The threads of a rank, for functions of NumPy's that are computed on parts of a block.

NumPy lets go of the interpreter while it computes, so plain threads do. Each has the caller's context, hence its error
state; warnings would come from lines of the threads: functions that give some are recorded around the call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import copy_context
from functools import partial
from itertools import product
from math import prod
from typing import TypeVar

import numpy as np

from numpy_dist import engine
from numpy_dist.comm.supervision.signals import Postponed
from numpy_dist.parallel.threads import run_together

T = TypeVar("T")

FEW = 1 << 15
"""Elements that are not worth a thread."""
_PIECE = 1 << 20  # bytes that a cache holds
_CACHE_LINE = 64  # bytes


def threads_of_rank() -> int:
    """How many threads the rank has."""
    return getattr(engine.runtime().backend, "threads", 1)


def over_ranges(function: Callable[[int, int], T], length: int, few: int = FEW) -> list[T]:
    """What a function gives for the ranges of so many elements, one on each thread of the rank.

    Parameters
    ----------
    function : callable
        ``function(low, high)``.
    length : int
    few : int
        Elements that are not worth a thread.
    """
    threads = min(threads_of_rank(), length // few)
    if threads < 2:
        return [function(0, length)]
    points = [length * k // threads for k in range(threads + 1)]
    found: dict[int, T] = {}

    def compute(number: int) -> None:
        found[number] = function(points[number], points[number + 1])

    with Postponed():  # the threads have the memory until all have ended
        run_together([partial(copy_context().run, compute, number) for number in range(threads)])
    return [found[number] for number in range(threads)]


def in_parts(
    function: Callable[[np.ndarray], object], block: np.ndarray, axis: int | None = None, empty: Callable = np.empty
) -> np.ndarray:
    """``function(block)``, computed on all threads of the rank.

    Parameters
    ----------
    function : callable
        Of any part of the block that has `axis` whole; it returns an array of the same extents, but of `axis`, and of
        one dtype whatever the values.
    axis : int, optional
        From the first one.
    empty : callable
        As `numpy.empty`: makes the result.
    """
    count = _threads_for(block)
    others = [other for other in range(block.ndim) if other != axis]
    cut = max(others, key=lambda other: (block.shape[other], -other), default=0)
    if count < 2 or not others or block.shape[cut] < count:
        return np.asarray(function(block))
    points = [block.shape[cut] * k // count for k in range(count + 1)]
    parts = [(slice(None),) * cut + (slice(low, high),) for low, high in zip(points, points[1:], strict=False)]
    sample = np.asarray(function(block[(slice(None),) * cut + (slice(0, 1),)]))
    shape = [sample.shape[other] if other == axis else n for other, n in enumerate(block.shape)]
    made = empty(tuple(shape), sample.dtype)

    def compute(part: tuple[slice, ...]) -> None:
        made[part] = function(block[part])

    with Postponed():  # the threads have the memory until all have ended
        run_together([partial(copy_context().run, compute, part) for part in parts])
    return made


def into_pieces(
    function: Callable[[np.ndarray, np.ndarray], object], block: np.ndarray, axis: int, made: np.ndarray
) -> None:
    """Have a function of lines fill `made`, piece by piece, on all threads of the rank.

    Parameters
    ----------
    function : callable
        Of some lines along `axis` of the block and the same ones of `made`, which it writes.
    block, made : ndarray
        In C order, of the same extents but along `axis`. They may be the same memory.

    Notes
    -----
    A piece is what a cache holds. Lines that lie across the memory are brought together there: read one by one they
    would be in the way of each other, since addresses a power of two apart share few places of a cache.
    """
    if not block.size or not made.size:
        made[...] = 0
        return
    across = prod(block.shape[axis + 1 :]) > 1
    nbytes = max(block.shape[axis], made.shape[axis]) * max(block.itemsize, made.itemsize)
    lines, count = block.size // block.shape[axis], max(_threads_for(block), 1)
    most = max(_PIECE // nbytes, _CACHE_LINE // made.itemsize if across else 1)
    pieces = _pieces(block.shape, axis, max(min(most, -(-lines // count)), 1))

    def compute(mine: Sequence[tuple[slice, ...]]) -> None:
        if not across:
            for piece in mine:
                function(block[piece], made[piece])
            return
        read, written = (np.empty(x[pieces[0]].size, x.dtype) for x in (block, made))  # none is larger
        for piece in mine:
            lines, results = block[piece], made[piece]
            here, there = read[: lines.size].reshape(lines.shape), written[: results.size].reshape(results.shape)
            here[...] = lines
            function(here, there)
            results[...] = there

    count = min(count, len(pieces))
    points = [len(pieces) * k // count for k in range(count + 1)]
    shares = [pieces[low:high] for low, high in zip(points, points[1:], strict=False)]
    with Postponed():  # the threads have the memory until all have ended
        run_together([partial(copy_context().run, compute, mine) for mine in shares])


def _threads_for(block: np.ndarray) -> int:
    """How many threads a block is worth; 0 where it is not worth one."""
    return min(threads_of_rank(), block.size // FEW)


def _pieces(shape: tuple[int, ...], axis: int, most: int) -> list[tuple[slice, ...]]:
    """Boxes of at most so many whole lines along an axis, as long as may be in memory."""
    ranges: list[list[slice]] = []
    for other in reversed(range(len(shape))):
        extent = shape[other] if other == axis else min(shape[other], max(most, 1))
        most = most if other == axis else most // extent
        if other == axis:  # whole, where results are longer, too
            ranges.insert(0, [slice(None)])
        else:
            ranges.insert(0, [slice(low, min(low + extent, shape[other])) for low in range(0, shape[other], extent)])
    return list(product(*ranges))
