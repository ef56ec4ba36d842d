"""States of storages on this rank: all of memory that plans depend on, as values, and how actions change them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from numpy_dist.engine.memory.storage import Storage, geometry
from numpy_dist.engine.planning.actions import (
    Action,
    Allocate,
    Donate,
    DropSpare,
    NewVersion,
    Outdate,
    RefreshHalo,
    Wanted,
    Widen,
)

if TYPE_CHECKING:
    from numpy_dist.ir.views import View

NO_SPARE = False
"""In place of a region: there is no spare allocation."""


class State(NamedTuple):
    """What a rank has of a storage.

    Attributes
    ----------
    low, extent : tuple of int
        The global index of the allocation's first element, and its shape.
    allocated : bool
        Whether there is memory at all.
    wanted : bool
        Whether its values must be stored for a handle.
    reserved : bool
        Whether its memory may not be donated though no handle wants it.
    spare
        The region of the last versioned write, in which a spare allocation differs; `NO_SPARE` if there is none.
    fresh : tuple of Wanted
        Ghost cells that were exchanged since the last write, on all ranks.
    """

    low: tuple[int, ...] = ()
    extent: tuple[int, ...] = ()
    allocated: bool = False
    wanted: bool = True
    reserved: bool = False
    spare: View | bool | None = NO_SPARE
    fresh: tuple[Wanted, ...] = ()


def state_of(storage: Storage) -> State:
    """The state of a storage at this moment."""
    return State(
        storage.low,
        storage.extent,
        storage.memory is not None,
        storage.wanted,
        bool(storage.deferred or storage.reserved),
        NO_SPARE if storage.spare is None else storage.spare[1],
        tuple(storage.fresh),
    )


class States(dict[int, State]):
    """States by slot, changed by actions as performing them changes the storages."""

    def apply(self, action: Action) -> None:
        """Take note of an action."""
        if isinstance(action, Allocate | Widen):
            low, extent = geometry(action.box, action.margin)
            self[action.slot] = self[action.slot]._replace(low=low, extent=extent, allocated=True)
        if isinstance(action, DropSpare | Widen):
            self[action.slot] = self[action.slot]._replace(spare=NO_SPARE)
        if isinstance(action, Donate):
            donor = self[action.donor]
            self[action.slot] = self[action.slot]._replace(low=donor.low, extent=donor.extent, allocated=True)
            self[action.donor] = donor._replace(allocated=False, spare=NO_SPARE)
        if isinstance(action, NewVersion):
            self[action.slot] = self[action.slot]._replace(spare=action.region)
        if isinstance(action, RefreshHalo) and action.messages is not None:
            state = self[action.slot]
            self[action.slot] = state._replace(fresh=(*state.fresh, action.wanted))
        if isinstance(action, Outdate):
            for slot in action.slots:
                self[slot] = self[slot]._replace(fresh=())

    def after(self, actions: Sequence[Action]) -> States:
        """These states changed by actions."""
        changed = States(self)
        for action in actions:
            changed.apply(action)
        return changed
