"""The search pattern: what is sought goes to the rank that has its place in a sorted sequence, and answers come back.

Needs: the sorted sequence in ascending parts; any layout of what is sought. One allgather of the parts' ends, then a
request and a reply between ranks. The result lies as what was sought does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import DTypeLike

from numpy_dist import engine
from numpy_dist.dispatch.patterns.blocks import blocks, exact_layout, row_layout
from numpy_dist.dispatch.patterns.threads import over_ranges
from numpy_dist.parallel.request_reply import ask

FEW = 1000
"""Values that one process looks up by NumPy alone: more are looked up by all its threads."""
_EACH = 1 << 13  # values that are not worth a thread


def looked_up(held: np.ndarray, sought: np.ndarray, side: Literal["left", "right"]) -> np.ndarray:
    """`numpy.searchsorted`, on all threads of the rank."""
    made = np.empty(sought.shape, np.intp)

    def look_up(low: int, high: int) -> None:
        made[low:high] = np.searchsorted(held, sought[low:high], side)

    over_ranges(look_up, len(sought), _EACH)
    return made


def routed(
    ordered: engine.Handle | np.ndarray,
    sought: engine.Handle | np.ndarray,
    side: Literal["left", "right"],
    answer: Callable[[np.ndarray, np.ndarray, int], np.ndarray],
    dtype: DTypeLike,
) -> Any:
    """``answer(sought, held, low)`` of the rank that holds, from index `low`, where in order each sought value belongs.

    A rank gets as many values as belong to its part.
    """
    layout, its = row_layout(ordered), exact_layout(sought)
    held, block = blocks((engine.aligned(ordered, layout), layout), (engine.aligned(sought, its), its))
    comm = engine.runtime().comm
    box = layout.box(comm.rank)
    ends = comm.allgather(held[-1] if held.size else None)
    holders = np.array([rank for rank, end in enumerate(ends) if end is not None], int)
    if not holders.size:
        return engine.from_local(np.zeros(block.shape, dtype), its)
    places = np.searchsorted(np.array([end for end in ends if end is not None]), block.reshape(-1), side)
    owners = holders[np.minimum(places, holders.size - 1)]
    found = ask(block.reshape(-1), owners, lambda q: answer(q, held, 0 if box is None else box[0][0]), dtype, comm)
    return engine.from_local(found.reshape(block.shape), its)
