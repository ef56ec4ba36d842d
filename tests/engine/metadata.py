"""Storages and statements without memory, made by hand: what the planner's functions are given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from numpy_dist.engine.memory.pool import Pool
from numpy_dist.engine.memory.storage import Storage
from numpy_dist.engine.planning.fuse import fuse
from numpy_dist.engine.planning.group import Group
from numpy_dist.engine.planning.states import State, States
from numpy_dist.ir.ops import Op
from numpy_dist.ir.statements import Elementwise, Reduction, Ref, Statement
from numpy_dist.layout.layout import Cut, Layout
from numpy_dist.layout.mesh import Mesh

OP = Op("tested", 1, 1, lambda *arguments: None)
RANKS, N = 2, 20
POOL = Pool()


def rows(n: int = N, *more: int, at: int | None = None) -> Layout:
    """The layout of an array that two ranks divide, in the middle if nothing is said."""
    return Layout((n, *more), Mesh((RANKS,)), (Cut(0, (0, n // 2 if at is None else at, n)),))


def storage(layout: Layout | None = None, dtype: str = "f8") -> Storage:
    """An array of which nothing is stored yet."""
    layout = rows() if layout is None else layout
    return Storage(layout.shape, np.dtype(dtype), layout, POOL)


def ref(of: Storage, index: Any = ..., dtype: str | None = None) -> Ref:
    """A view of an array."""
    array = of.meta_array()[index]
    return Ref(of, array if dtype is None else array.view(dtype))


def elementwise(out: Ref, *inputs: Ref, creates: bool = False, where: Ref | None = None) -> Elementwise:
    """A statement on views that write and read; its space is that of the output."""
    return Elementwise(OP, inputs, (out,), (creates,), where, {}, out.view.write_space)


def reduction(out: Ref, source: Ref, axes: tuple[int, ...] = (0,)) -> Reduction:
    """A reduction over the first axis, if nothing is said."""
    return Reduction(OP, source, out, None, axes, source.array.dtype, None, source.view.write_space, False)


def numbered(*statements: Statement) -> list[Statement]:
    """Statements as a program has them."""
    for serial, statement in enumerate(statements):
        statement.serial = serial
    return list(statements)


def loops(*statements: Statement) -> list[list[int]]:
    """The numbers of the statements that run as one loop, for each loop."""
    return [[statement.serial for statement in group.statements] for group in fuse(numbered(*statements))]


def slots_of(statements: Sequence[Statement]) -> tuple[dict[int, int], list[Storage]]:
    """Slots by the ids of storages, and the storages."""
    storages = list({id(ref.storage): ref.storage for s in statements for ref in s.refs()}.values())
    return {id(storage): slot for slot, storage in enumerate(storages)}, storages


class OneGroup:
    """A single group of statements, as a rank has it. What the statements do not make is stored, as layouts say.

    Parameters
    ----------
    *statements : Statement
    rank : int
    kept : iterable of Storage
        Those that other groups have to do with.
    """

    def __init__(self, *statements: Statement, rank: int = 0, kept: Sequence[Storage] = ()) -> None:
        self.statements = numbered(*statements)
        (fused,) = fuse(self.statements)
        self.slots, self.storages = slots_of(self.statements)
        others = frozenset(self.slots[id(storage)] for storage in kept)
        self.group = Group(0, fused, list(range(len(statements))), self.slots, others, rank)
        self.states = States({slot: State() for slot in range(len(self.storages))})
        made = {id(o.storage) for s in statements if isinstance(s, Elementwise) and all(s.creates) for o in s.outputs}
        for slot, of in enumerate(self.storages):
            if id(of) not in made:
                self.store(slot, of, rank)

    def store(self, slot: int, of: Storage, rank: int) -> None:
        """Have memory for a storage's box."""
        box = of.layout.box(rank)
        assert box is not None
        low, extent = tuple(lo for lo, _ in box), tuple(hi - lo for lo, hi in box)
        self.states[slot] = State(low, extent, allocated=True)

    def slot(self, of: Storage) -> int:
        return self.slots[id(of)]
