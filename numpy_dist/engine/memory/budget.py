"""The memory budget: what a rank may take for a gathered array, or get by a redistribution."""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING

from numpy_dist.engine.memory.limits import Limits
from numpy_dist.errors import GatherError
from numpy_dist.layout.layout import Layout
from numpy_dist.layout.regions import box_shape
from numpy_dist.settings import config

if TYPE_CHECKING:
    from numpy_dist.backends.memory import Room
    from numpy_dist.engine.memory.rank import Rank


def budget(runtime: Rank) -> int:
    """Bytes that one gathered array may take: ``MEMORY_BUDGET``, or half of the available ones over the local ranks.

    What is available is what control groups (of containers, of batch systems) leave of the machine's memory. The
    budget is the minimum over the ranks, each of which may have its own setting: the first call is collective, and the
    first one after the setting was changed, which is to be done on all ranks or on none.
    """
    given = config.MEMORY_BUDGET
    known: dict[int, int] = runtime.budgets
    found = known.get(given)
    if found is None:
        memory = runtime.backend.memory  # a plan's tells of the memory of a machine that is not here
        room = (memory.room if memory.on_host else None) or Limits().room
        found = _least(runtime, given or _share(runtime, room()))
        if len(known) >= _MOST_BUDGETS:
            known.clear()
        known[given] = found
    return found


def share_of_memory(runtime: Rank) -> int:
    """Half of what is available where shards lie, over the local ranks; the least of any rank. Collective."""
    room = runtime.backend.memory.room or Limits().room
    return _least(runtime, _share(runtime, room()))


def _share(runtime: Rank, room: Room) -> int:
    """Half of what is available, over the local ranks."""
    return room.available // 2 // max(1, runtime.comm.node_size)


def _least(runtime: Rank, nbytes: int) -> int:
    """The minimum over the ranks."""
    if runtime.size == 1:
        return nbytes
    return int(min(runtime.comm.allgather(float(nbytes))))  # a message of one length, whatever the number


_MOST_BUDGETS = 64
_SMALL = 1 << 26  # bytes of a share for which nobody asks what the budget is, which may be collective


def check_shares(runtime: Rank, layout: Layout, itemsize: int, what: str) -> None:
    """Refuse a redistribution that would bring a rank more than the budget, on every rank alike.

    Raises
    ------
    GatherError
    """
    if runtime.size == 1:
        return
    largest = _largest_box(layout) * itemsize
    if config.MEMORY_BUDGET or largest > _SMALL:
        check_budget(runtime, largest, what)


@lru_cache(maxsize=1024)
def _largest_box(layout: Layout) -> int:
    """Elements of the largest share."""
    return max(prod(box_shape(box)) for rank in range(layout.size) if (box := layout.box(rank)) is not None)


def check_budget(runtime: Rank, nbytes: int, what: str) -> None:
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
