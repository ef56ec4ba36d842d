"""Fusion: which statements become one loop. A pure function of the statements' metadata."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import gcd
from typing import TYPE_CHECKING

from numpy_dist.ir.statements import Elementwise, Reduction, Ref, Statement
from numpy_dist.layout.frames import Frame, Origin, count_cells, framed
from numpy_dist.layout.regions import Box
from numpy_dist.layout.views import storage_region

if TYPE_CHECKING:
    from numpy_dist.layout.layout import BoxList, Layout

MOST_IN_A_LOOP = 64
MOST_CELLS = 27  # a loop may be divided into: each has a kernel of its own


@dataclass
class FusedStatements:
    """Statements of one program that share an iteration space and run as one loop.

    Attributes
    ----------
    space : Layout or BoxList
    statements : list of Statement
        In program order.
    origins : list of tuple
        For each statement where its own space lies in `space`; ``()`` where it is the same.
    shared : set of int
        Ids of storages that other groups of the same run read or write, too: these cannot be contracted.
    """

    space: Layout | BoxList
    statements: list[Statement] = field(default_factory=list)
    origins: list[Origin] = field(default_factory=list)
    shared: set[int] = field(default_factory=set)


class _Place:
    """Where a statement is put: the number of its group, and its origin there."""

    __slots__ = ("group", "origin")

    def __init__(self) -> None:
        self.group, self.origin = 0, Origin()


@dataclass
class _Touch:
    """One view that a statement reads or writes."""

    place: _Place  # its statement's, shared with `_Placed`: a cycle would keep storages alive
    serial: int
    ref: Ref
    writes: bool
    late: bool  # its value exists only after the loop (a reduction's result)


@dataclass
class _Placed:
    """A statement, its place so far, and what it touches."""

    statement: Statement
    place: _Place
    touches: list[_Touch]


@dataclass
class _Space:
    """A group's iteration space, how many statements it has, and the parts of the space that some are confined to."""

    space: Layout | BoxList
    count: int = 0
    boxes: set[Box] = field(default_factory=set)


def fuse(statements: Sequence[Statement]) -> list[FusedStatements]:
    """Divide statements into loops.

    A statement joins the first group of its iteration space that its dependences allow: it must not need, at another
    offset, what that group (or a later one) writes, nor overwrite such a thing. Reading before an overlapping write
    within one group is allowed: the loop then writes a new version. Afterwards statements whose results are used in a
    later group only sink into it, so that these need not be stored.
    """
    spaces: list[_Space] = []
    history: dict[int, list[_Touch]] = {}
    placed = [_place(statement, history, spaces) for statement in statements]
    for item in reversed(placed):
        _sink(item, history, spaces)
    groups = [FusedStatements(space.space) for space in spaces]
    for item in placed:
        group = groups[item.place.group]
        group.statements.append(item.statement)
        group.origins.append(item.place.origin)
    for touches in history.values():
        used = {touch.place.group for touch in touches}
        if len(used) > 1:
            for number in used:
                groups[number].shared.add(id(touches[0].ref.storage))
    found = [group for group in groups if group.statements]
    for group in found:
        _confine(group)
    return found


def _confine(group: FusedStatements) -> None:
    """Where all statements turned out to run in the same part of the space, that part is the space."""
    space = group.statements[0].space
    if any(group.origins) and all(s.space == space for s in group.statements) and len(set(group.origins)) == 1:
        group.space, group.origins = space, [()] * len(group.statements)


def _place(statement: Statement, history: dict[int, list[_Touch]], spaces: list[_Space]) -> _Placed:
    """Put a statement into the first group that may hold it, or a new one."""
    late, place, serial = isinstance(statement, Reduction), _Place(), statement.serial
    touches = [_Touch(place, serial, ref, False, False) for ref in statement.reads()]
    touches += [_Touch(place, serial, ref, True, late) for ref in statement.outputs]
    frame, first = _frame(statement), 0
    for touch in touches:
        for earlier in reversed(history.get(id(touch.ref.storage), ())):
            group = earlier.place.group
            if group < first or not (touch.writes or earlier.writes):
                continue
            origin = _origin_in(spaces[group], statement, frame)
            together = _may_join(earlier, touch, origin or ())
            if together is not None:
                first = max(first, group if together and origin is not None else group + 1)
    used = {t.place.group for out in statement.outputs for t in history.get(id(out.storage), ())}
    for touch in touches:
        history.setdefault(id(touch.ref.storage), []).append(touch)
    for number in range(first, len(spaces)):
        origin = _origin_in(spaces[number], statement, frame)
        # Only where it has to do with what is there already: more cells are more kernels.
        if origin is not None and spaces[number].count < MOST_IN_A_LOOP and (not origin or number in used):
            place.group, place.origin = number, origin
            break
    else:
        # What made the array may sink into the new group, whose space is then the array's.
        if frame is not None and any(spaces[number].space == frame.space for number in used):
            place.origin = frame.origin
        place.group = len(spaces)
        spaces.append(_Space(frame.space if frame is not None and place.origin else statement.space))
    space = spaces[place.group]
    space.count += 1
    if place.origin:
        space.boxes.add(_confines(statement, place.origin))
    return _Placed(statement, place, touches)


def _frame(statement: Statement) -> Frame | None:
    """The frame of a statement that writes to parts of arrays, if it has one."""
    if not isinstance(statement, Elementwise) or any(statement.creates):
        return None
    views = {out.view for out in statement.outputs}
    frames = {view.frame if view.exact_layout == statement.space else None for view in views}
    return frames.pop() if len(frames) == 1 else None


def _origin_in(space: _Space, statement: Statement, frame: Frame | None) -> Origin | None:
    """Where a statement's space lies in that of a group; None where it does not, or makes too many cells."""
    if space.space == statement.space:
        return ()
    if frame is None or frame.space != space.space:
        return None
    whole = tuple((0, n) for n in frame.space.shape)
    if count_cells([whole, *space.boxes, _confines(statement, frame.origin)]) > MOST_CELLS:
        return None
    return frame.origin


def _confines(statement: Statement, origin: Origin) -> Box:
    return tuple((o, o + n) for o, n in zip(origin, statement.space.shape, strict=True))


def _sink(item: _Placed, history: dict[int, list[_Touch]], spaces: list[_Space]) -> None:
    """Move a statement that makes new storages to the first group that uses them, unless its inputs change before."""
    statement = item.statement
    if not isinstance(statement, Elementwise) or not all(statement.creates):
        return
    own, serial = item.place, statement.serial
    users = [t.place.group for o in item.touches if o.writes for t in history[id(o.ref.storage)] if t.place is not own]
    target = min(users, default=own.group)
    if target <= own.group or spaces[target].space != statement.space or spaces[target].count >= MOST_IN_A_LOOP:
        return
    for touch in item.touches:
        for other in history[id(touch.ref.storage)]:
            if other.serial <= serial or not (touch.writes or other.writes):
                continue
            together = _may_join(touch, other, other.place.origin)
            if together is None:
                continue
            group = other.place.group
            if target > (group if together and spaces[group].space == statement.space else group - 1):
                return
    spaces[own.group].count -= 1
    spaces[target].count += 1
    own.group = target


def _may_join(earlier: _Touch, later: _Touch, origin: Origin) -> bool | None:
    """Whether two touches of a storage may be in one loop (True), in order only (False), or are independent (None).

    `origin` is the later one's in that loop.
    """
    if _same_cells(earlier.ref, earlier.place.origin, later.ref, origin):
        return not (earlier.late or later.late)
    if disjoint(earlier.ref, later.ref):
        return None
    if earlier.writes:
        return False
    return not later.late


def _same_cells(a: Ref, origin: Origin, b: Ref, other: Origin) -> bool:
    """Whether two views of one storage have the same cell at each index of the loop."""
    if not origin and not other:
        return a.view is b.view
    if a.view.dtype != b.view.dtype:
        return False
    p, q = framed(a.vmap, origin), framed(b.vmap, other)
    return (p.offset, p.steps, p.groups) == (q.offset, q.steps, q.groups)


def disjoint(a: Ref, b: Ref) -> bool:
    """Whether two views of one storage share no cell: along an axis their hulls or their steps do not meet."""
    boxes = []
    for ref in (a, b):
        vmap = ref.vmap
        if 0 in vmap.shape:
            return True
        boxes.append(storage_region(vmap, tuple((0, n) for n in vmap.shape)))
    return any(_apart(p, q) for p, q in zip(*boxes, strict=True))


def _apart(p: range, q: range) -> bool:
    """Whether two ranges certainly have no number in common."""
    return p.stop <= q.start or q.stop <= p.start or (p.start - q.start) % gcd(p.step, q.step) != 0
