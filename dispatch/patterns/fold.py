"""The fold pattern: arrays that the ranks make of their own elements are added up where the result lies.

Needs: any layout; of copies one rank's counts. A rank computes a whole result of its elements. One message from each
rank to each owner of the result, which adds in the order of the ranks. The result has the default layout, or every
rank has it if it is small. What authors write with `numpy_dist.reduction` combines with any function, and the same on
all ranks.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from numpy_dist import engine
from numpy_dist.dispatch.core.registry import decline
from numpy_dist.dispatch.patterns.blocks import blocks
from numpy_dist.layout.layout import Layout
from numpy_dist.parallel.combine import fold


def own_blocks(layout: Layout, x: engine.Handle, weights: engine.Handle | None) -> tuple[list[Any], list[bool]]:
    """This rank's elements and their weights, none of copies that another rank counts; and which ranks have any."""
    if any(each is not None and not engine.shardable(each.dtype) for each in (x, weights)):
        decline("weights that are Python objects")
    arrays = [(engine.aligned(each, layout), layout) for each in (x, weights) if each is not None]
    found = [block.reshape(-1) for block in blocks(*arrays)]
    owner = [layout.primary(rank) for rank in range(layout.size)]
    if not owner[engine.runtime().rank]:
        found = [block[:0] for block in found]
    return (found if weights is not None else [*found, None]), owner


def folded(part: np.ndarray, layout: Layout, owner: list[bool]) -> Any:
    """The sum of the parts of all owners."""
    runtime = engine.runtime()
    large = engine.default_shard(part.nbytes)
    result = engine.default_layout(part.shape) if large else runtime.replicated_layout(part.shape)
    return engine.from_local(fold(np.add, part, owner, result, runtime.comm), result)
