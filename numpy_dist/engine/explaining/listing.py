"""Listings: the array program as text, as it is executed or as it is pending."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from dataclasses import fields
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from numpy_dist.engine.events.notation import bytes_text
from numpy_dist.engine.executing.prepared import PreparedPlans
from numpy_dist.engine.explaining.forecast import COUNTS, Forecast, forecast, is_contracted
from numpy_dist.engine.explaining.listed_group import group_lines
from numpy_dist.engine.explaining.outlines import Outline, on_outlines
from numpy_dist.engine.memory.storage import Storage
from numpy_dist.engine.planning.group import Group
from numpy_dist.engine.runtime import runtime
from numpy_dist.engine.scheduling.counters import EngineCounters
from numpy_dist.engine.scheduling.schedule import Description, find_schedule
from numpy_dist.ir.statements import Elementwise, Statement

if TYPE_CHECKING:
    from numpy_dist.engine.runtime import Runtime

_ENGINE = tuple(field.name for field in fields(EngineCounters))
_WORDS = {
    "statements": "statements recorded",
    "loops": "loops",
    "reads": "buffers read",
    "writes": "buffers written",
    "contracted": "results contracted",
    "stored_temporaries": "temporaries stored",
    "versions": "new versions",
    "carried": "of these with cells carried over",
    "fetches": "fetches",
    "halos": "halos exchanged",
    "gathers": "gathers",
    "gathered_bytes": "bytes gathered",
    "messages": "messages sent",
    "bytes": "bytes sent",
    "collectives": "collectives",
}


def explain_program() -> Listing:
    """The array program as readable pseudo-code: which loops, what they read, write and keep, and what is sent.

    ``print(explain_program())`` shows the program that is pending: what would run now if somebody asked for all of its
    values. Nothing is executed or communicated, and nothing changes in what happens later. Not collective: one rank may
    ask alone.

    ``with explain_program() as listing:`` has a listing of what is executed in the block. What is pending is executed
    when the block begins and when it ends; both are collective, as every execution is: all ranks enter the block.

    Returns
    -------
    Listing
        Its string is the text; `counts` are the totals.

    Examples
    --------
    >>> import numpy_dist as np
    >>> x = np.linspace(0.0, 1.0, 100_000)
    >>> with np.explain_program() as listing:
    ...     y = np.sqrt(x) + 1
    >>> print(listing.counts["loops"], listing.counts["contracted"])
    1 1
    """
    return Listing()


class Listing:
    """A program as text; made by `explain_program`. The same words on every rank, save for what is local.

    Attributes
    ----------
    counts : dict of str to int
        Totals on this rank: those of `engine.counters`, and messages and bytes sent, and collectives. For a pending
        program they are what its execution would add.
    """

    def __init__(self) -> None:
        self._runtime = runtime()
        self._names = Names()
        self._groups: list[_Listed] = []
        self._by_text: dict[tuple[str, ...], _Listed] = {}
        self._before: dict[str, int] | None = None
        self._done = False
        self._present: tuple[_Listed, Forecast] | None = None
        self.counts = dict.fromkeys(COUNTS, 0)
        self._list_pending()

    # -- the pending program ----------------------------------------------------------------------------------------

    def _list_pending(self) -> None:
        rt = self._runtime
        parts = rt.program.parts()
        storages: dict[int, Storage] = {}
        for statements, _ in parts:
            for statement in statements:
                for ref in statement.refs():
                    storages.setdefault(id(ref.storage), ref.storage)
        outlines = {number: Outline(storage) for number, storage in storages.items()}
        originals = {id(outline): storages[number] for number, outline in outlines.items()}
        for statements, later in parts:
            used = {id(outlines[number]) for number in later if number in outlines}
            self._list_part(on_outlines(statements, outlines), used, originals)
        self.counts["statements"] = len(rt.program.pending)

    def _list_part(self, statements: list[Statement], later: set[int], originals: dict[int, Storage]) -> None:
        """List a program on outlines, whose storages are given by their ids."""
        rt = self._runtime
        description = Description(statements)
        schedule, by_slot = find_schedule(rt, statements, description, later, keep=False), description.storages
        for slot, layout in schedule.layouts:
            by_slot[slot].layout = layout
        for plans in schedule.plans:
            its = [statements[position] for position in plans.group.positions]
            self._name(plans.group, its, by_slot, lambda slot: originals[id(by_slot[slot])])
            listed, found = self._list(plans, its, by_slot)
            for name, count in found.counts.items():
                self.counts[name] += count
            listed.tier = _tier(rt, plans, found)

    # -- an executed program ----------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        if self._before is not None:
            raise RuntimeError("a listing lists one block")
        rt = self._runtime
        rt.program.run()
        self._names, self._groups, self._by_text = Names(), [], {}
        self._before = self._counted()
        rt.listings.append(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        rt, before = self._runtime, self._before
        assert before is not None
        try:
            if error is None:  # else other ranks may not come here
                rt.program.run()
        finally:
            rt.listings.remove(self)
            self._done = True
            self.counts = {name: count - before[name] for name, count in self._counted().items()}

    def _counted(self) -> dict[str, int]:
        rt = self._runtime
        return {name: getattr(rt.counters if name in _ENGINE else rt.comm.counters, name) for name in COUNTS}

    def before(self, plans: PreparedPlans, statements: list[Statement], storages: Sequence[Storage]) -> None:
        """Take note of a group that is going to be executed."""
        group = plans.group
        outlines = [Outline(storages[slot]) if slot in group.slots else None for slot in range(len(storages))]
        by_id: dict[int, Any] = {id(storages[slot]): outlines[slot] for slot in group.slots}
        its = on_outlines(statements, by_id)
        self._name(group, its, outlines, storages.__getitem__)
        self._present = self._list(plans, its, outlines)

    def after(self, plans: PreparedPlans) -> None:
        """Take note of how it was executed."""
        assert self._present is not None
        listed, found = self._present
        listed.tier, self._present = _tier(self._runtime, plans, found), None

    # -- both -------------------------------------------------------------------------------------------------------

    def _name(
        self,
        group: Group,
        statements: list[Statement],
        outlines: Sequence[object],
        original: Callable[[int], Storage],
    ) -> None:
        """Name the buffers of a group, but for what is contracted, in the order in which statements mention them."""
        slots = {id(outlines[slot]): slot for slot in group.slots}
        passed: set[int] = set()
        for statement in statements:
            if isinstance(statement, Elementwise):
                made = [out.storage for out, new in zip(statement.outputs, statement.creates, strict=True) if new]
                passed.update(id(s) for s in made if is_contracted(group, slots[id(s)], s.wanted))
            for ref in statement.refs():
                outline = ref.storage
                if not outline.name and id(outline) not in passed:
                    outline.name = self._names.of(original(slots[id(outline)]), outline)

    def _list(
        self, plans: PreparedPlans, statements: list[Statement], outlines: list[Any]
    ) -> tuple[_Listed, Forecast]:
        group = plans.group
        found = forecast(self._runtime, plans, statements, outlines)
        lines = group_lines(group, statements, outlines, found)
        named = [outlines[slot] for slot in group.slots if outlines[slot].name]
        for outline in named:
            self._names.seen(outline, self._runtime.rank)
        listed = self._by_text.get(lines)
        if listed is None:
            listed = self._by_text[lines] = _Listed(lines, {outline.name for outline in named})
            self._groups.append(listed)
        listed.times += 1
        return listed, found

    def __str__(self) -> str:
        rt = self._runtime
        state = "pending" if self._before is None else "executed" if self._done else "executed so far"
        counts = self.counts
        if state == "executed so far" and self._before is not None:
            counts = {name: count - self._before[name] for name, count in self._counted().items()}
        lines = [f"Array program, {state}, on rank {rt.rank} of {rt.size}"]
        used = {name for listed in self._groups for name in listed.names}
        buffers = self._names.lines(used)
        if buffers:
            lines += ["", "buffers:", *buffers]
        for number, listed in enumerate(self._groups, 1):
            times = "" if listed.times == 1 else f", {listed.times} times"
            lines += ["", f"loop {number}{times}:", *listed.lines, f"  by        {listed.tier}"]
        lines += ["", "totals on this rank:"]
        lines += [f"  {counts[name]:>12,}  {words}" for name, words in _WORDS.items()]
        return "\n".join(lines)

    __repr__ = __str__


class _Listed:
    """A group as text, and how often it was executed."""

    def __init__(self, lines: tuple[str, ...], names: set[str]) -> None:
        self.lines, self.names, self.times, self.tier = lines, names, 0, ""


def _tier(rt: Runtime, plans: PreparedPlans, found: Forecast) -> str:
    """By what a group's loop is run."""
    if plans.group.box is None:
        return "nothing: this rank has no part of it"
    kept = plans.get(found.facts)
    if kept is None or not kept.parts:
        return rt.backend.tier({})
    return "; ".join(dict.fromkeys(rt.backend.tier(part.memo) for part in kept.parts))


class Names:
    """Names of buffers: b0, b1, … in the order in which they are met; those of buffers that are gone are used again."""

    def __init__(self) -> None:
        self._known: list[tuple[weakref.ref[Storage], tuple]] = []  # a weak reference, and what the buffer is like
        self._texts: list[str] = []

    def of(self, storage: Storage, outline: Outline) -> str:
        """The name of a storage."""
        like = outline.shape, outline.dtype, outline.layout, outline.axes
        for number, (ref, _) in enumerate(self._known):
            if ref() is storage:
                return f"b{number}"
        for number, (ref, other) in enumerate(self._known):
            if ref() is None and other == like:
                self._known[number] = weakref.ref(storage), like
                return f"b{number}"
        self._known.append((weakref.ref(storage), like))
        self._texts.append("")
        return f"b{len(self._known) - 1}"

    def seen(self, outline: Outline, rank: int) -> None:
        """Take note of what a buffer is like after a group."""
        self._texts[int(outline.name[1:])] = buffer_text(outline, rank)

    def lines(self, used: set[str]) -> list[str]:
        """A line for each buffer that is used."""
        return [f"  {f'b{number}':<4}{text}" for number, text in enumerate(self._texts) if f"b{number}" in used]


def buffer_text(outline: Outline, rank: int) -> str:
    """Shape, dtype, layout and margins of a buffer."""
    layout = outline.layout
    order = ""
    if outline.axes is not None:  # as the user sees the axes
        layout = layout.transpose(sorted(range(len(outline.axes)), key=outline.axes.__getitem__))
        order = f", axes {outline.axes} from outermost to innermost in memory"
    own = outline.layout.box(rank)
    if own is None:
        here = "nothing here"
    else:
        box = own if outline.axes is None else [own[outline.axes.index(a)] for a in range(len(own))]
        here = f"here [{', '.join(f'{lo}:{hi}' for lo, hi in box)}]"
    if own is not None and outline.memory is not None and own:
        sides = [(lo - low, low + n - hi) for (lo, hi), low, n in zip(own, outline.low, outline.extent, strict=True)]
        sides = sides if outline.axes is None else [sides[outline.axes.index(a)] for a in range(len(own))]
        if any(map(any, sides)):
            here += f" with margins {', '.join(f'{a}+{b}' for a, b in sides)}"
    return f"{outline.dtype} {layout.describe()}; {here}, {bytes_text(outline.memory or 0)}{order}"
