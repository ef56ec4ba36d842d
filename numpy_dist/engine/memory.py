"""The memory budget: what a rank may take for a gathered array."""

from __future__ import annotations

from typing import Any

from numpy_dist.engine.memory_limits import Limits
from numpy_dist.errors import GatherError
from numpy_dist.settings import config


def budget(runtime: Any) -> int:
    """Bytes that one gathered array may take: ``MEMORY_BUDGET``, or half of the available ones over the local ranks.

    What is available is what control groups (of containers, of batch systems) leave of the machine's memory. The
    automatic budget is the minimum over the ranks; the first call is collective.
    """
    given = config.MEMORY_BUDGET
    if given:
        return given
    found = getattr(runtime, "_budget", None)
    if found is None:
        mine = Limits().room().available // 2 // max(1, runtime.comm.node_size)
        found = runtime._budget = min(runtime.comm.allgather(mine)) if runtime.size > 1 else mine
    return found


def check_budget(runtime: Any, nbytes: int, what: str) -> None:
    """Refuse what does not fit, on every rank alike.

    Raises
    ------
    GatherError
    """
    limit = budget(runtime)
    if nbytes > limit:
        raise GatherError(
            f"{what} needs {nbytes} bytes on one rank, but the memory budget is {limit} bytes; "
            "set NUMPY_DIST_MEMORY_BUDGET or keep the work on shards"
        )
