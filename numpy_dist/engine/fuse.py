"""Fusion: which statements become one loop. A pure function of the statements' metadata."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from numpy_dist.ir.statements import Elementwise, Reduction, Ref, Statement
from numpy_dist.layout.views import storage_region

MOST_IN_A_LOOP = 64


@dataclass
class Group:
    """Statements that share an iteration space and run as one loop.

    Attributes
    ----------
    space : Layout or BoxList
    statements : list of Statement
        In program order.
    shared : set of int
        Ids of storages that other groups of the same run read or write, too: these cannot be contracted.
    """

    space: Any
    statements: list[Statement] = field(default_factory=list)
    shared: set[int] = field(default_factory=set)


@dataclass
class _Touch:
    """One view that a statement reads or writes."""

    place: list[int]  # its statement's group so far, shared with `_Placed`: a cycle would keep storages alive
    serial: int
    ref: Ref
    key: tuple
    writes: bool
    late: bool  # its value exists only after the loop (a reduction's result)


@dataclass
class _Placed:
    """A statement, its group so far, and what it touches."""

    statement: Statement
    place: list[int]
    touches: list[_Touch]

    @property
    def group(self) -> int:
        return self.place[0]


def fuse(statements: Sequence[Statement]) -> list[Group]:
    """Divide statements into loops.

    A statement joins the first group of its iteration space that its dependences allow: it must not need, at another
    offset, what that group (or a later one) writes, nor overwrite such a thing. Reading before an overlapping write
    within one group is allowed: the loop then writes a new version. Afterwards statements whose results are used in a
    later group only sink into it, so that these need not be stored.
    """
    spaces: list[Any] = []
    counts: list[int] = []
    history: dict[int, list[_Touch]] = {}
    placed = [_place(statement, history, spaces, counts) for statement in statements]
    for item in reversed(placed):
        _sink(item, history, spaces, counts)
    groups = [Group(space) for space in spaces]
    for item in placed:
        groups[item.group].statements.append(item.statement)
    for touches in history.values():
        used = {touch.place[0] for touch in touches}
        if len(used) > 1:
            for number in used:
                groups[number].shared.add(id(touches[0].ref.storage))
    return [group for group in groups if group.statements]


def _place(statement: Statement, history: dict[int, list[_Touch]], spaces: list[Any], counts: list[int]) -> _Placed:
    """Put a statement into the first group that may hold it, or a new one."""
    late, place, serial = isinstance(statement, Reduction), [0], statement.serial
    touches = [_Touch(place, serial, ref, ref.key, False, False) for ref in statement.reads()]
    touches += [_Touch(place, serial, ref, ref.key, True, late) for ref in statement.outputs]
    first = 0
    for touch in touches:
        for earlier in reversed(history.get(id(touch.ref.storage), ())):
            group = earlier.place[0]
            if group < first or not (touch.writes or earlier.writes):
                continue
            together = _may_join(earlier, touch)
            if together is not None:
                first = max(first, group if together and spaces[group] == statement.space else group + 1)
    for touch in touches:
        history.setdefault(id(touch.ref.storage), []).append(touch)
    for number in range(first, len(spaces)):
        if spaces[number] == statement.space and counts[number] < MOST_IN_A_LOOP:
            place[0] = number
            break
    else:
        place[0] = len(spaces)
        spaces.append(statement.space)
        counts.append(0)
    counts[place[0]] += 1
    return _Placed(statement, place, touches)


def _sink(item: _Placed, history: dict[int, list[_Touch]], spaces: list[Any], counts: list[int]) -> None:
    """Move a statement that makes new storages to the first group that uses them, unless its inputs change before."""
    statement = item.statement
    if not isinstance(statement, Elementwise) or not all(statement.creates):
        return
    own, serial = item.place, statement.serial
    users = [t.place[0] for o in item.touches if o.writes for t in history[id(o.ref.storage)] if t.place is not own]
    target = min(users, default=item.group)
    if target <= item.group or spaces[target] != statement.space or counts[target] >= MOST_IN_A_LOOP:
        return
    for touch in item.touches:
        for other in history[id(touch.ref.storage)]:
            if other.serial <= serial or not (touch.writes or other.writes):
                continue
            together = _may_join(touch, other)
            if together is None:
                continue
            group = other.place[0]
            if target > (group if together and spaces[group] == statement.space else group - 1):
                return
    counts[item.group] -= 1
    counts[target] += 1
    own[0] = target


def _may_join(earlier: _Touch, later: _Touch) -> bool | None:
    """Whether two touches of a storage may be in one loop (True), in order only (False), or are independent (None)."""
    if earlier.key == later.key:
        return not (earlier.late or later.late)
    if disjoint(earlier.ref, later.ref):
        return None
    if earlier.writes:
        return False
    return not later.late


def disjoint(a: Ref, b: Ref) -> bool:
    """Whether two views of one storage certainly share no cell (their hulls do not meet)."""
    boxes = []
    for ref in (a, b):
        vmap = ref.vmap
        if 0 in vmap.shape:
            return True
        boxes.append(storage_region(vmap, tuple((0, n) for n in vmap.shape)))
    return any(p.stop <= q.start or q.stop <= p.start for p, q in zip(*boxes, strict=True))
