"""Deferred materialisation: operands of a reduction that are computed for it, and stored only if somebody asks later.

In ``float(((x - y) ** 2).sum())`` the squares are still on the caller's stack when their sum is wanted, so that their
handle is alive: nobody can tell it from one that is kept. They are not stored all the same. The statements that make
them stay behind, and are executed, on this rank alone, before anything else is, if somebody still wants their results
by then. Where that has happened, results are stored at once from then on.

All this depends on who holds what on this rank, so it may decide about memory only. Nothing here may touch what layouts
and messages are made from; `planning.layout_propagation` moves none of these results, which are read whole and at hand.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import TYPE_CHECKING
from weakref import WeakSet

from numpy_dist.engine.events import floating
from numpy_dist.engine.events.filters import Filters
from numpy_dist.engine.memory.storage import Storage
from numpy_dist.engine.scheduling.lost import propagate
from numpy_dist.ir.statements import Elementwise, Reduction, Statement
from numpy_dist.layout.alignment import DIRECT, plan_access

if TYPE_CHECKING:
    from numpy_dist.engine.events.sites import CallSite

MOST = 16  # statements that are computed a second time if need be

_QUIET = floating.ErrorState({"divide": "ignore", "over": "ignore", "under": "ignore", "invalid": "ignore"}, Filters(0))


def deferrable(statements: Sequence[Statement]) -> list[int]:
    """The statement that makes what the last one reduces, and those of whose results only it has need.

    Positions, ascending; none if they could not be executed once more: they must read what this rank has at hand, and
    nothing that is overwritten later on. Of the storages' state only that matters which schedules depend on, and
    whether those that the program makes are alive.
    """
    last = statements[-1]
    if not isinstance(last, Reduction):
        return []
    source = last.inputs[0].storage
    makers: dict[int, tuple[int, Elementwise]] = {}
    written: dict[int, int] = {}  # the last write of each storage
    for position, statement in enumerate(statements):
        for out in statement.outputs:
            written[id(out.storage)] = position
            if isinstance(statement, Elementwise) and all(statement.creates):
                makers[id(out.storage)] = position, statement
    chosen: set[int] = set()
    waiting = [source]
    while waiting:
        storage = waiting.pop()
        position, maker = makers.get(id(storage), (-1, None))
        if maker is None or position in chosen or (storage is not source and storage.alive):
            continue
        if len(chosen) == MOST or not _repeatable(maker, position, written):
            return []
        chosen.add(position)
        waiting += [ref.storage for ref in maker.reads()]
    return sorted(chosen)


def _repeatable(maker: Elementwise, position: int, written: dict[int, int]) -> bool:
    if any(written[id(out.storage)] != position for out in maker.outputs):
        return False
    return all(
        written.get(id(ref.storage), -1) < position
        and not ref.storage.pinned
        and plan_access(ref.storage.layout, ref.vmap, maker.space).mode == DIRECT
        for ref in maker.reads()
    )


class Deferred:
    """The statements that stay behind.

    Attributes
    ----------
    statements : list of Statement
        In program order; the last one makes what was reduced.
    """

    def __init__(self) -> None:
        self.statements: list[Statement] = []
        self._kept: WeakSet[CallSite] = WeakSet()  # call sites whose results were wanted after all

    def defer(self, found: list[Statement]) -> None:
        """Mark what need not be stored (see `deferrable`) in the program that is about to be executed."""
        self._keep([] if found and found[-1].site in self._kept else found)
        for statement in self.statements:
            for out in statement.outputs:
                out.storage.deferred = True

    def forget_stored(self) -> None:
        """The program was executed: what was stored for other reasons is done with."""
        if self.statements:
            self.recover(())

    def propagate(self) -> list[Storage]:
        """Have done with what reads lost values; returns storages whose values are lost, too."""
        kept, lost = propagate(self.statements)
        if lost:
            self._keep(kept)
        return lost

    def leave_out(self, serials: Container[int]) -> None:
        """Have done with the statements of these serials."""
        self._keep([statement for statement in self.statements if statement.serial not in serials])

    def recover(self, pending: Sequence[Statement]) -> None:
        """Have done with statements whose results are stored or lost, or that are pending themselves."""
        others = {id(statement) for statement in pending}
        kept = []
        for statement in self.statements:
            made = [out.storage for out in statement.outputs]
            for storage in made:
                storage.deferred = False
            if id(statement) not in others and any(storage.memory is None and not storage.lost for storage in made):
                kept.append(statement)
        self._keep(kept)

    def makes(self, storage: Storage) -> bool:
        """Whether a storage's values are still to be computed."""
        return any(out.storage is storage for statement in self.statements for out in statement.outputs)

    def wanted(self, *used: Container[int]) -> list[Statement]:
        """The statements whose results somebody wants (see `needed`), which are about to be executed."""
        needed = self.needed(*used)
        for statement in needed:
            statement.errstate = _QUIET  # events were noted the first time
            self._kept.add(statement.site)
        return needed

    def drop_unwanted(self, *used: Container[int]) -> None:
        """Have done with statements whose results nobody wants (see `needed`)."""
        self._keep(self.needed(*used))

    def clear(self) -> None:
        """What was wanted is stored: no statement stays."""
        self._keep([])

    def _keep(self, statements: list[Statement]) -> None:
        """Have done with all other statements: what they read may be overwritten."""
        for statement in self.statements:
            for ref in statement.reads():
                ref.storage.reserved = False
        self.statements = statements
        for statement in statements:
            for ref in statement.reads():
                ref.storage.reserved = True

    def needed(self, *used: Container[int]) -> list[Statement]:
        """The statements whose results somebody wants: a handle, or statements that use storages with these ids."""
        needed: list[Statement] = []
        wanted: set[int] = set()
        for statement in reversed(self.statements):
            made = [out.storage for out in statement.outputs]
            if any(s.alive or id(s) in wanted or any(id(s) in ids for ids in used) for s in made):
                wanted.update(id(ref.storage) for ref in statement.reads())
                needed.append(statement)
        return needed[::-1]
