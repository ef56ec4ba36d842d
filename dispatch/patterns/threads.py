"""The threads of a rank, for functions of NumPy's that are computed on parts of a block.

NumPy lets go of the interpreter while it computes, so plain threads do. Each has the caller's context, hence its error
state; warnings would come from lines of the threads: functions that give some are recorded around the call.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextvars import copy_context
from typing import Any

import numpy as np

from numpy_dist import engine

FEW = 1 << 15
"""Elements that are not worth a thread."""

_pools: dict[tuple[int, int], ThreadPoolExecutor] = {}


def in_parts(
    function: Callable[[np.ndarray], Any], block: np.ndarray, axis: int | None = None, empty: Callable = np.empty
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
    count = min(getattr(engine.runtime().backend, "threads", 1), block.size // FEW)
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

    pool = _pool(count - 1)
    running = [pool.submit(copy_context().run, compute, part) for part in parts[1:]]
    try:
        compute(parts[0])
    finally:
        _wait(running)
    for each in running:
        each.result()
    return made


def _wait(running: Collection[Future]) -> None:
    """Wait for threads, to which the memory belongs; what a signal raises meanwhile is raised when they have ended."""
    raised: BaseException | None = None
    while any(not each.done() for each in running):
        try:
            wait(running)
        except BaseException as error:
            raised = error
    if raised is not None:
        raise raised


def _pool(count: int) -> ThreadPoolExecutor:
    """Threads of this process, which a fork does not have."""
    key = os.getpid(), count
    if key not in _pools:
        _pools.clear()
        _pools[key] = ThreadPoolExecutor(count, "numpy_dist")
    return _pools[key]
