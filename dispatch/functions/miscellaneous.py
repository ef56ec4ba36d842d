"""Miscellaneous routines: whether arrays share memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from numpy_dist import engine
from numpy_dist.dispatch.core.registry import implements
from numpy_dist.ir import structure


def _shares(function: Callable[..., bool], a: Any, b: Any, max_work: int) -> bool:
    """Arrays of different storages share no memory; within one, the meta arrays' addresses tell."""
    storages = [x._storage if engine.is_handle(x) else None for x in (a, b)]
    if storages[0] is not storages[1]:
        return False
    if storages[0] is not None:
        return structure.shares_memory(a._array, b._array, max_work, function is np.shares_memory)
    return function(engine.plain(a), engine.plain(b), max_work=max_work)


@implements(np.may_share_memory, kind="native")
def may_share_memory(a: object, b: object, /, max_work: int = 0) -> bool:
    return _shares(np.may_share_memory, a, b, max_work)


@implements(np.shares_memory, kind="native")
def shares_memory(a: object, b: object, /, max_work: int = -1) -> bool:
    return _shares(np.shares_memory, a, b, max_work)
