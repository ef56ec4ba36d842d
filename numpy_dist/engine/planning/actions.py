"""Actions: what one rank does to execute a group of statements, as plain data.

A `Plan` is a list of actions, made by pure functions (`local_planner`). It is performed (`engine.executing`), told in
words and counted (`engine.explaining`), and checked (`grammar`): all of them read the same list. Storages are meant by
their slots in the program, statements by their numbers in the group.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, overload

import numpy as np

from numpy_dist.engine.memory.views import AllocationView, allocation_view
from numpy_dist.layout.fetch import FetchPlan
from numpy_dist.layout.regions import Box, Region
from numpy_dist.layout.views import ViewMap

if TYPE_CHECKING:
    from numpy_dist.ir.views import View

Wanted = Sequence[tuple[Region, ...]]
"""For each rank the regions of a storage that it is to have."""

A = TypeVar("A")
B = TypeVar("B")

Margin = tuple[tuple[int, int], ...]
"""For each axis how many indices an allocation has below and above the box that its rank owns."""

# What an operand lies in: a storage's memory, what was its memory before a new version was made for this loop, what was
# fetched, and arrays of the loop's own (results that are copied afterwards).
MEMORY, OLD, FETCHED, ASIDE = range(4)


class Operand(NamedTuple):
    """One array of a loop.

    Attributes
    ----------
    over : int
        One of the above.
    which
        The storage's slot, or the key of what was fetched.
    itemsize, low, extent, steps, vmap, dtype
        See `memory.views.allocation_view`.
    """

    over: int
    which: Any
    itemsize: int
    low: tuple[int, ...]
    extent: tuple[int, ...]
    steps: tuple[int, ...] | None
    vmap: ViewMap
    dtype: np.dtype

    def view(self, box: Box) -> AllocationView:
        """A box of it, as an array over what it lies in."""
        return allocation_view(self.itemsize, self.low, self.extent, self.steps, self.vmap, box, self.dtype)


class Body(NamedTuple):
    """What a loop consists of in one cell of its iteration space.

    Attributes
    ----------
    box : Box
        The cell.
    numbers : tuple of int
        The statements that run there.
    operands : tuple of Operand
    steps : tuple
        For each of these statements its inputs, outputs and mask: numbers of operands, temporaries (`Temp`), and None
        for scalars.
    filled, copies : tuple of (int, int)
        Targets and sources: operands that are copied before the loop (for masked writes), and after all loops.
    """

    box: Box
    numbers: tuple[int, ...]
    operands: tuple[Operand, ...]
    steps: tuple[tuple, ...]
    filled: tuple[tuple[int, int], ...]
    copies: tuple[tuple[int, int], ...]


class Allocate(NamedTuple):
    """Memory for this rank's box of a storage and margins around it, not initialised."""

    slot: int
    box: Box
    margin: Margin | None = None


class Widen(NamedTuple):
    """An allocation with wider margins in place of the one that there is; what that holds moves along."""

    slot: int
    box: Box
    margin: Margin


class Fetch(NamedTuple):
    """A region brought into an array of its own; `key` names it, and `region` is None where this rank only sends."""

    slot: int
    key: tuple
    region: Region | None
    messages: FetchPlan


class RefreshHalo(NamedTuple):
    """Ghost cells brought from their owners; `messages` is None where they are fresh."""

    slot: int
    wanted: Wanted
    messages: FetchPlan | None


class NewVersion(NamedTuple):
    """Another allocation for what a loop both overwrites and reads at other places; the old one can still be read.

    `region` is the view that is written, None for several. Cells outside it are carried over by a copy, unless the
    storage has a spare allocation that differs in this region only.
    """

    slot: int
    region: View | None
    carries: bool


class Donate(NamedTuple):
    """A result gets the memory of a storage that nobody needs any more (buffer donation)."""

    slot: int
    donor: int


class DropSpare(NamedTuple):
    """The spare allocation of a storage goes: what it holds will be out of date."""

    slot: int


class Launch(NamedTuple):
    """Bodies of the loop, each in a box; in any order, or at the same time."""

    parts: tuple[tuple[int, Box], ...]


class Wait(NamedTuple):
    """All that was asked for has come."""


class Fold(NamedTuple):
    """Partial results of reductions from all boxes, put together for the rank."""


class CopyBack(NamedTuple):
    """What loops have written to arrays of their own, copied to these storages."""

    slots: tuple[int, ...]


class Outdate(NamedTuple):
    """Ghost cells of these storages are out of date, on every rank."""

    slots: tuple[int, ...]


class Combine(NamedTuple):
    """Partial results of a reduction, brought together and folded in rank order by the owners of the result.

    Attributes
    ----------
    number : int
        The statement.
    slot : int
        Of the result.
    dtype : dtype
        Of partial results.
    boxes : tuple of (Box or None)
        The part of the result to which each rank contributes.
    everywhere : bool
        Every rank gets the partial results of all, in one collective.
    sends, receives : tuple of (int, Box)
        Else: ranks, and what they get of this one, and this one of them (itself among them).
    """

    number: int
    slot: int
    dtype: np.dtype
    boxes: tuple[Box | None, ...]
    everywhere: bool
    sends: tuple[tuple[int, Box], ...]
    receives: tuple[tuple[int, Box], ...]


class Release(NamedTuple):
    """Storages that the program does not use any more: their memory goes, unless somebody else holds them."""

    slots: tuple[int, ...]


Action = (
    Allocate
    | Widen
    | Fetch
    | RefreshHalo
    | NewVersion
    | Donate
    | DropSpare
    | Launch
    | Wait
    | Fold
    | CopyBack
    | Outdate
    | Combine
    | Release
)


class Plan(NamedTuple):
    """What a rank does for a group while its storages lie as they did when it was planned.

    Attributes
    ----------
    actions : tuple of Action
    bodies : tuple of Body
        One for each cell of this rank's part of the iteration space.
    updates : tuple of int
        Slots that are written where their values lie, and also read: a loop that was left half-way cannot be run again.
    reads, writes, contracted, stored_temporaries : int
        Storages that the loop reads and writes, each once; results that are never stored; results that are stored
        though no handle refers to them.
    """

    actions: tuple[Action, ...]
    bodies: tuple[Body, ...] = ()
    updates: tuple[int, ...] = ()
    reads: int = 0
    writes: int = 0
    contracted: int = 0
    stored_temporaries: int = 0

    @overload
    def of(self, kind: type[A], /) -> list[A]: ...
    @overload
    def of(self, kind: type[A], other: type[B], /) -> list[A | B]: ...
    def of(self, *kinds: type) -> Sequence[object]:
        """The actions of one or two kinds, in their order."""
        return [action for action in self.actions if isinstance(action, kinds)]

    @property
    def overwrites(self) -> bool:
        """Whether the loop overwrites what it reads."""
        return bool(self.updates or self.of(Donate))

    def __str__(self) -> str:
        return "\n".join(map(str, self.actions))


def counts(plan: Plan) -> dict[str, int]:
    """What performing a plan adds to the engine's counters."""
    versions, halos = plan.of(NewVersion), plan.of(RefreshHalo)
    return {
        "loops": int(bool(plan.of(Launch))),
        "reads": plan.reads,
        "writes": plan.writes,
        "contracted": plan.contracted,
        "stored_temporaries": plan.stored_temporaries,
        "versions": len(versions),
        "carried": sum(action.carries for action in versions),
        "fetches": len(plan.of(Fetch)),
        "halos": sum(action.messages is not None for action in halos),
    }
