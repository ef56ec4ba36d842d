"""The threads of a rank, for functions of NumPy's that are computed on parts of a block.

NumPy lets go of the interpreter while it computes, so plain threads do. Each has the caller's context, hence its error
state; warnings would come from lines of the threads: functions that give some are recorded around the call.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import copy_context
from functools import partial

import numpy as np

from numpy_dist import engine
from numpy_dist.comm.supervision.signals import Postponed
from numpy_dist.parallel.threads import run_together

FEW = 1 << 15
"""Elements that are not worth a thread."""


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

    with Postponed():  # the threads have the memory until all have ended
        run_together([partial(copy_context().run, compute, part) for part in parts])
    return made
