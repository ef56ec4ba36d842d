"""Loop tiling across groups (chains): loops over the same rows are run together, a block of rows at a time.

``p = np.exp(x - x.max(axis=1, keepdims=True)); p / p.sum(axis=1, keepdims=True)`` is three loops, for a row must have
been read to its end before its maximum is known. Run one after the other, each of them fetches all of its operands
from memory. Run together, some rows through all three and then the next ones, they find these in a cache.

Which groups may form a chain is a function of the statements (`chains_of`). Whether they are run as one depends on
which kernels there are, on this rank alone: in a chain nothing is sent.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from numpy_dist.engine.planning.combination import partial_boxes
from numpy_dist.engine.planning.group import Group
from numpy_dist.ir.statements import Reduction, Ref, Statement
from numpy_dist.layout.regions import Box, box_empty

MOST = 6  # groups: what they make for each other exists all at once

Rows = tuple[int, int, int]
"""Where the rows of a view lie in its storage: along which axis, at which step, and the first one."""


class Link(NamedTuple):
    """How a group that may be a part of a chain touches storages.

    Attributes
    ----------
    rows : (int, int)
        Its rows on this rank.
    touched : dict
        By slot where the rows of each view lie; None among them for views of which a row needs others, too.
    written : set of int
        Slots.
    """

    rows: tuple[int, int]
    touched: dict[int, set[Rows | None]]
    written: set[int]


class ChainPlan(NamedTuple):
    """Groups that may run as one chain.

    Attributes
    ----------
    first, end : int
        Their numbers: ``range(first, end)``.
    aligned : frozenset of int
        Slots of which a row of any group needs and makes its own row only.
    """

    first: int
    end: int
    aligned: frozenset[int]


def chains_of(links: Sequence[Link | None]) -> Iterator[ChainPlan]:
    """The longest chains of two and more groups. A pure function.

    Parameters
    ----------
    links : sequence of Link or None
        One for each group of a program; None for those that run by themselves.
    """
    first = 0
    while first < len(links):
        link, end = links[first], first + 1
        if link is not None:
            touched = {slot: set(rows) for slot, rows in link.touched.items()}
            written = set(link.written)
            while end < min(len(links), first + MOST) and (other := links[end]) is not None and other.rows == link.rows:
                if not _follows(touched, written, other):
                    break
                for slot, rows in other.touched.items():
                    touched.setdefault(slot, set()).update(rows)
                written |= other.written
                end += 1
            if end - first > 1:
                yield ChainPlan(first, end, frozenset(slot for slot, rows in touched.items() if _is_aligned(rows)))
        first = end


def _is_aligned(rows: set[Rows | None]) -> bool:
    return len(rows) == 1 and None not in rows


def _follows(touched: dict[int, set[Rows | None]], written: set[int], other: Link) -> bool:
    """Whether a group can take its rows after those before it have done with the same ones."""
    return all(
        _is_aligned(touched[slot] | rows)
        for slot, rows in other.touched.items()
        if slot in touched and (slot in written or slot in other.written)
    )


def link_of(group: Group, statements: Sequence[Statement], slots: dict[int, int]) -> Link | None:
    """A group as a part of a chain; None if it has to be run by itself. A pure function.

    Parameters
    ----------
    statements : sequence of Statement
        The group's.
    slots : dict of int to int
        By the ids of storages.
    """
    box = group.box
    if not box or group.halos or group.fetches or len(group.cells) > 1 or any(map(any, group.origins)):
        return None
    if not all(_is_local(s) for s in statements if isinstance(s, Reduction)):
        return None
    touched: dict[int, set[Rows | None]] = {}
    written: set[int] = set()
    for statement in statements:
        for ref in statement.reads():
            touched.setdefault(slots[id(ref.storage)], set()).add(_rows(ref))
        for ref in statement.outputs:
            rows = (0, 1, 0) if isinstance(statement, Reduction) else _rows(ref)
            touched.setdefault(slots[id(ref.storage)], set()).add(rows)
            written.add(slots[id(ref.storage)])
    return Link(box[0], touched, written)


def _is_local(statement: Reduction) -> bool:
    """Whether a reduction's partial results are the results, row by row, on every rank."""
    storage = statement.outputs[0].storage
    if 0 in statement.axes or statement.initial is not None or storage.axes is not None:
        return False
    layout = storage.layout
    if storage.dtype != statement.dtype or (layout.size > 1 and layout.is_replicated):
        return False
    boxes = partial_boxes(statement.space, statement.axes, statement.keepdims, layout.size, None)
    return all(_same(box, layout.box(rank)) for rank, box in enumerate(boxes))


def _same(a: Box | None, b: Box | None) -> bool:
    """Whether two boxes are one, or nothing is in either."""
    return a == b or ((a is None or box_empty(a)) and (b is None or box_empty(b)))


def _rows(ref: Ref) -> Rows | None:
    """Where the rows of a view lie; None if a row of the view is not a part of one row of the storage."""
    vmap = ref.vmap
    if vmap.merged or len(vmap.shape) < 1 or vmap.shape[0] < 2:
        return None
    axes = [axis for axis, step in enumerate(vmap.steps[0]) if step]
    if len(axes) != 1 or axes[0] == len(vmap.axes_shape) - 1:
        return None
    (axis,) = axes
    if any(row[axis] for row in vmap.steps[1:]):
        return None
    return axis, vmap.steps[0][axis], vmap.offset[axis]
