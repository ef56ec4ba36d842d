"""Fusion: which statements become one loop. A pure function of the statements' metadata."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from numpy_dist.ir.statements import Reduction, Ref, Statement
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
    inner : set of int
        Ids of storages that are read or written by other groups of the same run, or twice: these cannot be contracted.
    """

    space: Any
    statements: list[Statement] = field(default_factory=list)
    shared: set[int] = field(default_factory=set)


@dataclass
class _Touch:
    group: int
    ref: Ref
    key: tuple
    writes: bool
    late: bool  # its value exists only after the loop (a reduction's result)


def fuse(statements: Sequence[Statement]) -> list[Group]:
    """Divide statements into loops, each statement as early as its dependences and its iteration space allow.

    A statement joins a group of its iteration space unless it needs, at another offset, what that group (or a later
    one) writes, or would overwrite such a thing. Reading before an overlapping write within one group is allowed: the
    loop then writes a new version.
    """
    groups: list[Group] = []
    touched: dict[int, list[_Touch]] = {}
    for statement in statements:
        late = isinstance(statement, Reduction)
        touches = [_Touch(-1, ref, ref.key, False, False) for ref in statement.reads()]
        touches += [_Touch(-1, ref, ref.key, True, late) for ref in statement.outputs]
        place = _place(statement, touches, touched, groups)
        if place == len(groups):
            groups.append(Group(statement.space))
        groups[place].statements.append(statement)
        for touch in touches:
            touch.group = place
            touched.setdefault(id(touch.ref.storage), []).append(touch)
    for history in touched.values():
        used = {touch.group for touch in history}
        if len(used) > 1:
            for number in used:
                groups[number].shared.add(id(history[0].ref.storage))
    return groups


def _place(statement: Statement, touches: list[_Touch], touched: dict[int, list[_Touch]], groups: list[Group]) -> int:
    """The first group that may hold a statement, or a new one."""
    first = 0
    for touch in touches:
        for earlier in reversed(touched.get(id(touch.ref.storage), ())):
            if earlier.group < first or not (touch.writes or earlier.writes):
                continue
            together = _may_join(earlier, touch)
            if together is None:
                continue
            same = together and groups[earlier.group].space == statement.space
            first = max(first, earlier.group if same else earlier.group + 1)
    for number in range(first, len(groups)):
        if groups[number].space == statement.space and len(groups[number].statements) < MOST_IN_A_LOOP:
            return number
    return len(groups)


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
