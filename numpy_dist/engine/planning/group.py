"""The plan of one group: what it must be brought, and how its loop is run on this rank."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from numpy_dist.engine.memory.storage import Storage
from numpy_dist.engine.planning.combine import combine
from numpy_dist.engine.planning.local_plan import LocalPlan
from numpy_dist.engine.planning.local_planner import LocalPlanner
from numpy_dist.engine.planning.part import Present
from numpy_dist.engine.planning.transfer import Fetched, Wanted, fetch_array, start_halo
from numpy_dist.ir.statements import Elementwise, Reduction, Ref, Statement
from numpy_dist.layout.alignment import FETCH, HALO, Access, is_empty, plan_access
from numpy_dist.layout.frames import Cell, Origin, cells, shifted
from numpy_dist.layout.interior import interior_box, narrowed
from numpy_dist.layout.regions import Box, box_size

_MOST_LOCAL = 16
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
    locals : dict
        The local plans by `geometry`.
    number : int
        Among the groups of the schedule.
    follows : bool
        Whether it may run together with the group before it (see `links`).
    """

    def __init__(
        self,
        space: Any,
        positions: list[int],
        statements: Sequence[Statement],
        origins: Sequence[Origin],
        slots: dict[int, int],
        kept: frozenset[int],
        rank: int,
    ) -> None:
        self.space, self.positions, self.origins, self.kept = space, positions, origins, kept
        refs = [ref for s in statements for ref in (*s.reads(), *s.outputs)]
        self.slots = sorted({slots[id(ref.storage)] for ref in refs})
        self.written = sorted(
            {slots[id(out.storage)] for s in statements if not isinstance(s, Reduction) for out in s.outputs}
        )
        made = {
            slots[id(o.storage)] for s in statements if isinstance(s, Elementwise) and all(s.creates) for o in s.outputs
        }
        self.temporary = sorted(made - kept)  # slots that nothing else has to do with, and have no memory before
        self.ending: frozenset[int] = frozenset()
        self.lasting = [slot for slot in self.slots if slot not in self.temporary]
        self.reductions = [n for n, s in enumerate(statements) if isinstance(s, Reduction)]
        self.results = [slots[id(statements[n].outputs[0].storage)] for n in self.reductions]
        self.fetches: list[tuple[tuple, int, Wanted]] = []  # (slot, view and origin; slot; regions)
        self.halos: list[tuple[int, tuple[Access, ...]]] = []
        self._plan_transfers(statements, slots)
        box = space.box(rank)
        self.box = None if box is None or is_empty(box) else box
        self.interior = None if self.box is None else self._interior(self.box, statements, slots, rank)
        self.cells = [] if self.box is None else self._cells(self.box, statements, rank)
        self.locals: dict[tuple, LocalPlan] = {}
        self.follows = False
        self.number = 0

    def end(self, slots: Iterable[int]) -> None:
        """Take note of slots that nothing uses after this group: their memory may be taken over.

        Not of those that messages come to, or leave from, while the loop begins.
        """
        travelling = {slot for slot, _ in self.halos} | {slot for _, slot, _ in self.fetches}
        self.ending = frozenset(slots) - travelling

    def _plan_transfers(self, statements: Sequence[Statement], slots: dict[int, int]) -> None:
        accesses: dict[tuple, tuple[Ref, Access]] = {}
        made: set[tuple] = set()
        for statement, origin in zip(statements, self.origins, strict=True):
            for ref in statement.reads():
                key = slots[id(ref.storage)], ref.view, origin
                if key not in made and key not in accesses:
                    accesses[key] = ref, plan_access(ref.storage.layout, ref.vmap, statement.space)
            if not isinstance(statement, Reduction):
                made.update((slots[id(out.storage)], out.view, origin) for out in statement.outputs)
        halos: dict[int, list[Access]] = {}
        for key, (ref, access) in accesses.items():
            if access.mode == FETCH or (access.mode == HALO and ref.storage.pinned):
                self.fetches.append((key, key[0], _whole_rows(ref, access)))
            elif access.mode == HALO:
                halos.setdefault(key[0], []).append(access)
        self.halos = [(slot, tuple(its)) for slot, its in halos.items()]

    def _interior(self, box: Box, statements: Sequence[Statement], slots: dict[int, int], rank: int) -> Box | None:
        """What can be computed while halos travel; None if nothing can, or it is not worth it."""
        haloed = {slot for slot, _ in self.halos}
        if not haloed or self.fetches:
            return None
        found = box
        for statement, origin in zip(statements, self.origins, strict=True):
            own = statement.space.box(rank)
            refs = [ref for ref in statement.reads() if slots[id(ref.storage)] in haloed]
            if own is None or is_empty(own) or not refs:
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
            parts.append(None if own is None or is_empty(own) else shifted(own, origin))
        return cells(box, parts)

    def planner(
        self, rank: int, statements: Sequence[Statement], storages: Sequence[Any], fetched: Any
    ) -> LocalPlanner:
        """What plans the loop of this rank, which has a part in it."""
        return LocalPlanner(
            self.cells, self.origins, self.slots, self.kept, self.ending, rank, statements, storages, fetched
        )

    def run(self, runtime: Any, statements: list[Statement], storages: list[Storage]) -> None:
        """Execute the group: all messages are posted before any is waited for, and the interior computed meanwhile."""
        fetched: dict[tuple, Fetched] = {}
        waits: list[Callable[[], None]] = []
        if self.halos or self.fetches:
            waits = self._bring(runtime, storages, fetched)
        partials: Sequence[np.ndarray | None] = [None] * len(self.reductions)
        if self.box is None:
            for wait in waits:
                wait()
        else:
            plan = self.locals.get(self.geometry(storages)) or self._plan(runtime, statements, storages, fetched)
            plan.prepare(runtime, storages, self.number)
            partials = plan.compute(Present(runtime, statements, storages, fetched), waits)
        self.soil(storages)
        self.finish(runtime, statements, partials)

    def soil(self, storages: list[Storage]) -> None:
        """Forget the halos of what the group writes."""
        for slot in self.written:
            if storages[slot].fresh:
                storages[slot].fresh = ()

    def finish(self, runtime: Any, statements: Sequence[Statement], partials: Sequence[np.ndarray | None]) -> None:
        """Put the partial results of reductions together."""
        for number, partial in zip(self.reductions, partials, strict=True):
            statement = statements[number]
            assert isinstance(statement, Reduction)
            combine(runtime, statement, partial)

    def prepare_results(self, runtime: Any, storages: list[Storage]) -> None:
        """Have memory for the results of reductions whose partial results are the results (see `links`)."""
        for slot in self.results:
            box = storages[slot].layout.box(runtime.rank)
            assert box is not None
            storages[slot].allocate(box)

    def _bring(self, runtime: Any, storages: list[Storage], fetched: dict[tuple, Fetched]) -> list[Callable[[], None]]:
        """Ask for everything that has to be brought; returns what waits for it."""
        waits: list[Callable[[], None]] = []
        for key, slot, wanted in self.fetches:
            found, finish = fetch_array(runtime, storages[slot], wanted)
            waits.append(finish)
            if found is not None:
                fetched[key] = found
        for slot, accesses in self.halos:
            started = start_halo(runtime, storages[slot], accesses)
            if started is not None:
                waits.append(started)
        return waits

    def geometry(self, storages: list[Storage]) -> tuple:
        """What a local plan depends on of the storages."""
        key: list[Any] = [storages[slot].wanted for slot in self.temporary]
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
        return tuple(key)

    def _plan(
        self, runtime: Any, statements: list[Statement], storages: list[Storage], fetched: dict[tuple, Fetched]
    ) -> LocalPlan:
        """Plan the loop for the present geometry of the storages, and for what is still wanted of them."""
        key = self.geometry(storages)
        if len(self.locals) >= _MOST_LOCAL:
            del self.locals[next(iter(self.locals))]
        plan = self.planner(runtime.rank, statements, storages, fetched).plan()
        plan.divide(self.interior, statements)
        self.locals[key] = plan
        return plan


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
