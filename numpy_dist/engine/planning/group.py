"""Groups: statements that run as one loop, who sends what for it, and where on a rank it runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from numpy_dist.engine.planning.actions import Fetch, RefreshHalo, Wanted
from numpy_dist.engine.planning.transfers import cached_plan, covers, fetched_regions, ghosts, hulls_of
from numpy_dist.ir.statements import Elementwise, Reduction, Ref, Statement
from numpy_dist.layout.alignment import FETCH, HALO, Access, plan_access
from numpy_dist.layout.fetch import halo_reach
from numpy_dist.layout.frames import Cell, cells, shifted
from numpy_dist.layout.interior import interior_box, narrowed
from numpy_dist.layout.regions import Box, box_empty, box_size

if TYPE_CHECKING:
    from numpy_dist.engine.planning.fuse import FusedStatements
    from numpy_dist.layout.layout import Layout

SMALLEST_INTERIOR = 1 << 16  # elements that are worth a loop of their own while halos travel


class Group:
    """Statements that run as one loop, as all programs of a form have them, whatever memory a rank has.

    Parameters
    ----------
    number : int
        Among the groups of the schedule.
    fused : FusedStatements
        Statements of such a program, as an example.
    positions : list of int
        Their positions in the program.
    slots : dict of int to int
        By the ids of their storages.
    kept : frozenset of int
        Slots that other groups, or statements still pending, read or write: they must be stored.
    rank : int

    Attributes
    ----------
    space : Layout or BoxList
        The iteration space.
    origins : list of tuple
        Where each statement's own space lies in `space`; ``()`` where it is the same.
    slots : list of int
        Of all storages that it reads and writes.
    written : list of int
        Of those that its element-wise statements write.
    temporary, lasting : list of int
        Of those that no other group has to do with, and that have no memory before; of the others.
    reductions, results : list of int
        The numbers of its reductions, and the slots of what they make.
    fetches : list of Fetch
    halos : list of (RefreshHalo, list of Box)
        One for each storage, and the boxes that this rank reads of it.
    box, interior : Box or None
        This rank's part of the space, and what of it can be computed while halos travel.
    cells : list of Cell
        The boxes in which different statements run.
    released : tuple of int
        Slots that no later group uses.
    ending : frozenset of int
        Those of them whose memory may be donated.
    follows : bool
        Whether it may run together with the group before it (see `links`).
    """

    def __init__(
        self,
        number: int,
        fused: FusedStatements,
        positions: list[int],
        slots: dict[int, int],
        kept: frozenset[int],
        rank: int,
    ) -> None:
        self.number, self.positions, self.kept, self.rank = number, positions, kept, rank
        self.space, self.origins, statements = fused.space, fused.origins, fused.statements
        self.slots = sorted({slots[id(ref.storage)] for s in statements for ref in s.refs()})
        self.written = sorted(
            {slots[id(out.storage)] for s in statements if not isinstance(s, Reduction) for out in s.outputs}
        )
        made = {
            slots[id(o.storage)] for s in statements if isinstance(s, Elementwise) and all(s.creates) for o in s.outputs
        }
        self.temporary = sorted(made - kept)
        self.lasting = [slot for slot in self.slots if slot not in self.temporary]
        self.reductions = [n for n, s in enumerate(statements) if isinstance(s, Reduction)]
        self.results = [slots[id(statements[n].outputs[0].storage)] for n in self.reductions]
        self.fetches: list[Fetch] = []
        self.halos: list[tuple[RefreshHalo, list[Box]]] = []
        self._plan_transfers(statements, slots)
        box = self.space.box(rank)
        self.box = None if box is None or box_empty(box) else box
        self.interior = None if self.box is None else self._interior(self.box, statements, slots)
        self.cells = [] if self.box is None else self._cells(self.box, statements)
        self.released: tuple[int, ...] = ()
        self.ending: frozenset[int] = frozenset()
        self.follows = False

    def end(self, slots: Iterable[int], later: Iterable[int]) -> None:
        """Take note of slots that no later group uses, and which of them statements still pending do use.

        The memory of others may be donated, but not where messages come to it, or leave from it, while the loop begins.
        """
        travelling = {halo.slot for halo, _ in self.halos} | {fetch.slot for fetch in self.fetches}
        self.released = tuple(slots)
        self.ending = frozenset(slots) - travelling - frozenset(later)

    def _plan_transfers(self, statements: Sequence[Statement], slots: dict[int, int]) -> None:
        """Note what of each view is fetched, or kept as a halo, alike on every rank."""
        rank = self.rank
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
                wanted: Wanted = fetched_regions(access)
                region = wanted[rank][0] if wanted[rank] else None
                self.fetches.append(Fetch(key[0], key, region, cached_plan(layout, wanted, rank)))
            elif access.mode == HALO:
                halos.setdefault(key[0], (layout, []))[1].append(access)
        for slot, (layout, found) in halos.items():
            wanted = ghosts(layout, tuple(found))
            messages = cached_plan(layout, wanted, rank, halo_reach(layout))
            self.halos.append((RefreshHalo(slot, wanted, messages), hulls_of(found, rank)))

    def _interior(self, box: Box, statements: Sequence[Statement], slots: dict[int, int]) -> Box | None:
        """What can be computed while halos travel; None if nothing can, or it is not worth it."""
        haloed = {halo.slot for halo, _ in self.halos}
        if not haloed or self.fetches:
            return None
        found = box
        for statement, origin in zip(statements, self.origins, strict=True):
            own = statement.space.box(self.rank)
            refs = [ref for ref in statement.reads() if slots[id(ref.storage)] in haloed]
            if own is None or box_empty(own) or not refs:
                continue
            lies = [(ref.storage.layout.box(self.rank), ref.vmap) for ref in refs]
            inner = None if any(lying is None for lying, _ in lies) else interior_box(own, lies)
            if inner is None:
                return None
            left = narrowed(found, shifted(own, origin), shifted(inner, origin))
            if left is None:
                return None
            found = left
        return found if box_size(found) >= SMALLEST_INTERIOR else None

    def _cells(self, box: Box, statements: Sequence[Statement]) -> list[Cell]:
        """The boxes in which different statements run: one with all of them, unless some have parts of the space."""
        if not any(self.origins):
            return [(box, tuple(range(len(statements))))]
        parts: list[Box | None] = []
        for statement, origin in zip(statements, self.origins, strict=True):
            own = statement.space.box(self.rank)
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
