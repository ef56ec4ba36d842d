"""A group as text: its loop in pseudo-code, and what is read, written, kept and sent for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from numpy_dist.engine.events.notation import bytes_text, index_name, indices, site_text, value_text, view_text
from numpy_dist.engine.explaining.forecast import Forecast, is_contracted, messages, partial_messages
from numpy_dist.engine.planning.actions import Combine, CopyBack, Donate, Fetch, NewVersion, RefreshHalo
from numpy_dist.engine.planning.group import Group
from numpy_dist.engine.planning.local_planner import cell_key
from numpy_dist.ir.statements import Reduction, Ref, Statement
from numpy_dist.layout.frames import Origin, shifted
from numpy_dist.layout.regions import Box

if TYPE_CHECKING:
    from numpy_dist.engine.explaining.outlines import Outline

_WIDEST = 60  # columns of code before the comments


def group_lines(
    group: Group, statements: Sequence[Statement], outlines: Sequence[Outline], found: Forecast
) -> tuple[str, ...]:
    """Everything about a group but the tier that runs it.

    Parameters
    ----------
    statements : sequence of Statement
        The group's, on outlines that have names.
    """
    code = _Code(group, outlines, found)
    for statement, origin in zip(statements, group.origins, strict=True):
        code.add(statement, origin)
    width = min(_WIDEST, max(len(text) for text, _ in code.lines))
    lines = [f"  {_header(group)}"]
    lines += [f"      {text:<{width}}  # {site}" for text, site in code.lines]
    lines += [f"  then {text}" for text in code.afterwards]
    lines += [f"  {word:<10}{text}" for word, text in _facts(group, outlines, found, code)]
    return tuple(lines)


def _header(group: Group) -> str:
    whole = " x ".join(map(str, group.space.shape)) or "1"
    if group.box is None:
        return f"(nothing of {whole} on this rank)"
    if not group.box:
        return "once:"
    return f"for {_ranges(group.box)} (of {whole}):"


def _ranges(box: Box) -> str:
    return ", ".join(f"{index_name(axis)} in {lo}:{hi}" for axis, (lo, hi) in enumerate(box))


class _Code:
    """The lines of a loop.

    Attributes
    ----------
    lines : list of (str, str)
        Code, and where it was recorded.
    afterwards : list of str
        What is copied after the loop.
    contracted, temporaries : list of str
        Results that are not stored; buffers that are stored though nobody can ask for them.
    read : dict
        Texts of the views that are read, by slot and view.
    """

    def __init__(self, group: Group, outlines: Sequence[Outline], found: Forecast) -> None:
        self._group = group
        self._slots = {id(outlines[slot]): slot for slot in group.slots}
        self._versions = {action.slot for action in found.plan.of(NewVersion)}
        self._aside = {slot for action in found.plan.of(CopyBack) for slot in action.slots}
        self._present: dict[tuple, str] = {}
        self._asides = 0
        self.read: dict[tuple, str] = {}
        self.lines: list[tuple[str, str]] = []
        self.afterwards: list[str] = []
        self.contracted: list[str] = []
        self.temporaries: list[str] = []

    def add(self, statement: Statement, origin: Origin) -> None:
        """Append a statement."""
        value = value_text(statement, lambda ref: self._value(ref, origin))
        if isinstance(statement, Reduction):
            (out,) = statement.outputs
            kept = [axis for axis in range(len(statement.space.shape)) if axis not in statement.axes]
            places = indices(kept)
            if statement.keepdims:
                axes = range(len(statement.space.shape))
                places = ", ".join("0" if axis in statement.axes else index_name(axis) for axis in axes)
            target = f"{out.storage.name}[{places or '()'}]"
        else:
            pairs = zip(statement.outputs, statement.creates, strict=True)  # type: ignore[attr-defined]
            target = ", ".join([self._target(out, origin, new) for out, new in pairs])
            if statement.where is not None:
                value += f" where {self._value(statement.where, origin)}"
        if origin:
            value += f" for {_ranges(shifted(tuple((0, n) for n in statement.space.shape), origin))}"
        self.lines.append((f"{target} = {value}", site_text(statement)))

    def _key(self, ref: Ref, origin: Origin) -> tuple:
        return cell_key(self._slots[id(ref.storage)], ref, origin)

    def _value(self, ref: Ref, origin: Origin) -> str:
        """What a view holds at present."""
        key = self._key(ref, origin)
        found = self._present.get(key)
        if found is None:
            found = view_text(ref.storage.name, ref, origin)
            self.read[key[0], ref.view] = found
        return found

    def _target(self, out: Ref, origin: Origin, creates: bool) -> str:
        key = slot, *_ = self._key(out, origin)
        if key in self._present:
            return self._present[key]
        name = out.storage.name
        if creates and is_contracted(self._group, slot, out.storage.wanted):
            text = f"t{len(self.contracted)}"
            self.contracted.append(text)
        elif slot in self._aside:
            text = f"a{self._asides}[{indices(range(out.array.ndim)) or '()'}]"
            self._asides += 1
            self.afterwards.append(f"{view_text(name, out, origin)} = {text}")
        else:
            text = view_text(name + "'" * (slot in self._versions), out, origin)
            if creates and not out.storage.wanted:
                self.temporaries.append(name)
        self._present[key] = text
        return text


def _facts(group: Group, outlines: Sequence[Outline], found: Forecast, code: _Code) -> list[tuple[str, str]]:
    def by_name(sizes: dict[int, int]) -> str:
        return ", ".join(f"{outlines[slot].name} {bytes_text(size)}" for slot, size in sorted(sizes.items()))

    facts = []
    if group.follows:
        facts.append(("follows", "the loop before, some rows through both and then the next, where they have kernels"))
    if found.reads:
        facts.append(("reads", by_name(found.reads)))
    if found.writes:
        facts.append(("writes", by_name(found.writes)))
    if code.contracted:
        last = "" if len(code.contracted) == 1 else f" to {code.contracted[-1]}"
        facts.append(("contracts", f"{code.contracted[0]}{last}: never stored"))
    if code.temporaries:
        names = ", ".join(code.temporaries)
        facts.append(("stores", f"{names}: nobody holds it any more, but other statements use it"))
    for donation in found.plan.of(Donate):
        name, donor = outlines[donation.slot].name, outlines[donation.donor].name
        facts.append(("takes", f"{name} takes the memory of {donor} over"))
    for version in found.plan.of(NewVersion):
        name, nbytes = outlines[version.slot].name, outlines[version.slot].memory if version.carries else 0
        how = f"{bytes_text(nbytes)} copied, to carry over cells that are not written" if nbytes else "nothing copied"
        facts.append(("versions", f"{name}' takes the place of {name}; {how}"))
    for transfer in found.plan.of(Fetch, RefreshHalo):
        name = outlines[transfer.slot].name
        if isinstance(transfer, Fetch):
            name = code.read.get((transfer.slot, transfer.key[1]), name)
        word = "fetch" if isinstance(transfer, Fetch) else "halo"
        if transfer.messages is None:
            facts.append((word, f"of {name}: fresh, nothing is sent"))
        else:
            facts.append((word, f"of {name}: {_messages(*messages(transfer, outlines[transfer.slot]))}"))
    if group.interior is not None:
        facts.append(("overlaps", "the interior is computed while halos travel, then the edges"))
    if len(group.cells) > 1:
        facts.append(("divides", f"into {len(group.cells)} boxes, in each of which other statements run"))
    for action in found.plan.of(Combine):
        name = outlines[action.slot].name
        if len(action.boxes) == 1:
            continue
        if action.everywhere:
            facts.append(("combines", f"{name}: every rank folds the partial results of all (one collective)"))
        else:
            both = partial_messages(action, found.rank)
            facts.append(("combines", f"{name}: its owners fold; {_messages(*both)}"))
    return facts


def _messages(sends: list[tuple[int, int]], receives: list[tuple[int, int]]) -> str:
    def listed(messages: list[tuple[int, int]], word: str) -> str:
        if not messages:
            return ""
        shown = [f"{bytes_text(nbytes)} {word} rank {rank}" for rank, nbytes in messages]
        if len(shown) > 8:
            total = bytes_text(sum(nbytes for _, nbytes in messages))
            return f"{total} {word} {len(messages)} ranks, {messages[0][0]} to {messages[-1][0]}"
        return ", ".join(shown)

    sent, received = listed(sends, "to"), listed(receives, "from")
    parts = [f"sends {sent}" if sent else "sends nothing", f"receives {received}" if received else "receives nothing"]
    return "; ".join(parts)
