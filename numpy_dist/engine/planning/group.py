"""Groups of statements: what must be brought to each, and where its loop runs, whatever memory a rank has."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from numpy_dist.engine.planning.actions import Fetch, Plan, RefreshHalo, Wanted
from numpy_dist.engine.planning.local_planner import LocalPlanner
from numpy_dist.engine.planning.states import States
from numpy_dist.engine.planning.transfers import cached_plan, covers, ghosts, hulls_of
from numpy_dist.ir.statements import Elementwise, Reduction, Ref, Statement
from numpy_dist.layout.alignment import FETCH, HALO, Access, plan_access
from numpy_dist.layout.fetch import halo_reach
from numpy_dist.layout.frames import Cell, Origin, cells, shifted
from numpy_dist.layout.interior import interior_box, narrowed
from numpy_dist.layout.regions import Box, box_empty, box_size

if TYPE_CHECKING:
    from numpy_dist.layout.layout import BoxList, Layout

SMALLEST_INTERIOR = 1 << 16  # elements that are worth a loop of their own while halos travel


class GroupPlan:
    """Communication and computation of one group, for all programs of the same form.

    Parameters
    ----------
    space : Layout or BoxList
        The iteration space.
    positions : list of int
        The statements' positions in the program.
    statements : sequence of Statement
        An example of them.
    origins : sequence of tuple
        Where each statement's own space lies in `space`; ``()`` where it is the same.
    slots : dict
        Slot by the storage's id.
    kept : frozenset of int
        Slots that other groups, or statements still pending, read or write: they must be stored.
    rank : int

    Attributes
    ----------
    fetches : list of Fetch
    halos : list of (RefreshHalo, list of Box)
        One for each storage, and the boxes that this rank reads of it.
    prepared : dict
        What execution keeps of the plans, by `facts`.
    released : tuple of int
        Slots that no later group uses.
    ending : frozenset of int
        Those of them whose memory may be donated.
    number : int
        Among the groups of the schedule.
    follows : bool
        Whether it may run together with the group before it (see `links`).
    """

    def __init__(
        self,
        space: Layout | BoxList,
        positions: list[int],
        statements: Sequence[Statement],
        origins: Sequence[Origin],
        slots: dict[int, int],
        kept: frozenset[int],
        rank: int,
    ) -> None:
        self.space, self.positions, self.origins, self.kept, self.rank = space, positions, origins, kept, rank
        refs = [ref for s in statements for ref in s.refs()]
        self.slots = sorted({slots[id(ref.storage)] for ref in refs})
        self.written = sorted(
            {slots[id(out.storage)] for s in statements if not isinstance(s, Reduction) for out in s.outputs}
        )
        made = {
            slots[id(o.storage)] for s in statements if isinstance(s, Elementwise) and all(s.creates) for o in s.outputs
        }
        self.temporary = sorted(made - kept)  # slots that nothing else has to do with, and have no memory before
        self.ending: frozenset[int] = frozenset()
        self.released: tuple[int, ...] = ()
        self.lasting = [slot for slot in self.slots if slot not in self.temporary]
        self.reductions = [n for n, s in enumerate(statements) if isinstance(s, Reduction)]
        self.results = [slots[id(statements[n].outputs[0].storage)] for n in self.reductions]
        self.fetches: list[Fetch] = []
        self.halos: list[tuple[RefreshHalo, list[Box]]] = []
        self._plan_transfers(statements, slots, rank)
        box = space.box(rank)
        self.box = None if box is None or box_empty(box) else box
        self.interior = None if self.box is None else self._interior(self.box, statements, slots, rank)
        self.cells = [] if self.box is None else self._cells(self.box, statements, rank)
        self.prepared: dict[tuple, Any] = {}
        self.follows = False
        self.number = 0

    def end(self, slots: Sequence[int], later: Iterable[int]) -> None:
        """Take note of slots that no later group uses, and which of them statements still pending do use.

        The memory of others may be donated, but not where messages come to it, or leave from it, while the loop begins.
        """
        travelling = {halo.slot for halo, _ in self.halos} | {fetch.slot for fetch in self.fetches}
        self.released = tuple(slots)
        self.ending = frozenset(slots) - travelling - frozenset(later)

    def _plan_transfers(self, statements: Sequence[Statement], slots: dict[int, int], rank: int) -> None:
        accesses: dict[tuple, tuple[Ref, Access]] = {}
        made: set[tuple] = set()
        for statement, origin in zip(statements, self.origins, strict=True):
            for ref in statement.reads():
                key = slots[id(ref.storage)], ref.view, origin
                if key not in made and key not in accesses:
                    accesses[key] = ref, plan_access(ref.storage.layout, ref.vmap, statement.space)
            if not isinstance(statement, Reduction):
                made.update((slots[id(out.storage)], out.view, origin) for out in statement.outputs)
        halos: dict[int, tuple[Layout, list[Access]]] = {}
        for key, (ref, access) in accesses.items():
            layout = ref.storage.layout
            if access.mode == FETCH or (access.mode == HALO and ref.storage.pinned):
                wanted = _whole_rows(ref, access)
                region = wanted[rank][0] if wanted[rank] else None
                self.fetches.append(Fetch(key[0], key, region, cached_plan(layout, wanted, rank)))
            elif access.mode == HALO:
                halos.setdefault(key[0], (layout, []))[1].append(access)
        for slot, (layout, found) in halos.items():
            wanted = ghosts(layout, tuple(found))
            messages = cached_plan(layout, wanted, rank, halo_reach(layout))
            self.halos.append((RefreshHalo(slot, wanted, messages), hulls_of(found, rank)))

    def _interior(self, box: Box, statements: Sequence[Statement], slots: dict[int, int], rank: int) -> Box | None:
        """What can be computed while halos travel; None if nothing can, or it is not worth it."""
        haloed = {halo.slot for halo, _ in self.halos}
        if not haloed or self.fetches:
            return None
        found = box
        for statement, origin in zip(statements, self.origins, strict=True):
            own = statement.space.box(rank)
            refs = [ref for ref in statement.reads() if slots[id(ref.storage)] in haloed]
            if own is None or box_empty(own) or not refs:
                continue
            lies = [(ref.storage.layout.box(rank), ref.vmap) for ref in refs]
            inner = None if any(lying is None for lying, _ in lies) else interior_box(own, lies)
            if inner is None:
                return None
            left = narrowed(found, shifted(own, origin), shifted(inner, origin))
            if left is None:
                return None
            found = left
        return found if box_size(found) >= SMALLEST_INTERIOR else None

    def _cells(self, box: Box, statements: Sequence[Statement], rank: int) -> list[Cell]:
        """The boxes in which different statements run: one with all of them, unless some have parts of the space."""
        if not any(self.origins):
            return [(box, tuple(range(len(statements))))]
        parts: list[Box | None] = []
        for statement, origin in zip(statements, self.origins, strict=True):
            own = statement.space.box(rank)
            parts.append(None if own is None or box_empty(own) else shifted(own, origin))
        return cells(box, parts)

    def facts(self, storages: Sequence[Any]) -> tuple:
        """What of its storages a plan depends on, as a key. Looked at before every execution, so it is flat."""
        key: list[object] = [storages[slot].wanted for slot in self.temporary]
        for slot in self.lasting:
            s = storages[slot]
            # Deferred results are alive though they are not wanted.
            key += (
                s.low,
                s.extent,
                s.memory is None,
                s.wanted,
                s.deferred or s.reserved,
                s.spare is not None and s.spare[1],
            )
        for halo, _ in self.halos:
            key.append(any([covers(had, halo.wanted) for had in storages[halo.slot].fresh]))
        return tuple(key)

    def plan(self, statements: Sequence[Statement], slots: dict[int, int], states: States) -> Plan:
        """What the rank does for the group. A pure function.

        Parameters
        ----------
        statements : sequence of Statement
            The group's.
        slots : dict of int to int
            By the ids of their storages.
        states : States
            As they are before the group.
        """
        return LocalPlanner(self, statements, slots, states, self.rank).plan()


def _whole_rows(ref: Ref, access: Access) -> Wanted:
    """For each rank what it fetches; merged axes need whole rows to be addressed as one."""
    regions = access.regions
    if ref.vmap.merged:
        cut = ref.storage.layout.cut_axes
        regions = tuple(
            None
            if r is None
            else tuple(
                range(x.start, x.stop) if a in cut or a == 0 else range(n)
                for a, (x, n) in enumerate(zip(r, ref.storage.shape, strict=True))
            )
            for r in regions
        )
    return tuple(() if r is None else (r,) for r in regions)
