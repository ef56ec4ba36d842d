"""Layouts of pending results follow their consumers. A pure function of the statements' metadata."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import TYPE_CHECKING

from numpy_dist.ir.statements import Elementwise, Ref, Statement
from numpy_dist.layout.layout import Cut, Layout

if TYPE_CHECKING:
    from numpy_dist.layout.layout import BoxList

MOST_CELLS = 16  # by which a cut may move


def propagate_layouts(statements: Sequence[Statement], later: Container[int]) -> None:
    """Move the layouts of results to where they are used, if all uses agree and it is a few cells away.

    ``average = north + south + …; center[:] = average / 4`` gives `average` the layout of `north`, whose cut points are
    one row off those of `center`. Nobody has its values yet, so it may as well be computed where `center` is: one loop
    and no exchange of `average`, instead of two loops and a halo.

    Parameters
    ----------
    statements : sequence of Statement
        What is about to be executed, in program order.
    later : container of int
        Ids of storages that statements still pending refer to: these stay.
    """
    uses: dict[int, list[tuple[Statement, Ref]]] = {}
    for statement in reversed(statements):
        if isinstance(statement, Elementwise) and all(statement.creates):
            space = _common_space(statement, uses, later)
            if space is not None:
                statement.space = space
                for out in statement.outputs:
                    axes = out.storage.axes
                    out.storage.layout = space if axes is None else space.transpose(axes)
        for ref in statement.refs():
            uses.setdefault(id(ref.storage), []).append((statement, ref))


def _common_space(
    statement: Elementwise, uses: dict[int, list[tuple[Statement, Ref]]], later: Container[int]
) -> Layout | None:
    """The iteration space of everything that uses a statement's results, if they may move there."""
    space: Layout | BoxList | None = None
    for out in statement.outputs:
        storage = out.storage
        if not storage.movable or storage.memory is not None or id(storage) in later:
            return None
        for user, ref in uses.get(id(storage), ()):
            if ref in user.outputs or ref.view is not out.view or (space is not None and user.space != space):
                return None
            space = user.space
    if not isinstance(space, Layout) or space == statement.space or not _is_near(statement.space, space):
        return None
    return space


def _is_near(a: Layout | BoxList, b: Layout | BoxList) -> bool:
    """Whether two layouts cut the same axes of the same mesh at nearly the same points."""
    if not (isinstance(a, Layout) and isinstance(b, Layout)) or (a.shape, a.mesh) != (b.shape, b.mesh):
        return False
    for p, q in zip(a.dims, b.dims, strict=True):
        if p == q:
            continue
        if not (isinstance(p, Cut) and isinstance(q, Cut)) or p.axis != q.axis or p.descends != q.descends:
            return False
        if any(abs(x - y) > MOST_CELLS for x, y in zip(p.points, q.points, strict=True)):
            return False
    return True
