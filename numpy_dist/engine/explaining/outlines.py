"""Outlines: storages as metadata, and statements on them: a program can be planned, and nothing is touched."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from math import prod
from typing import Any

from numpy_dist.engine.memory.storage import Storage
from numpy_dist.engine.planning.states import NO_SPARE, state_of
from numpy_dist.ir.statements import Ref, Statement


class Outline:
    """A storage without its memory: what plans are made of, free to change, and a name.

    Attributes
    ----------
    state : State
        What this rank has of it.
    """

    def __init__(self, storage: Storage) -> None:
        self.shape, self.dtype, self.layout, self.axes = storage.shape, storage.dtype, storage.layout, storage.axes
        self.nbytes, self.pinned = storage.nbytes, storage.pinned
        self.movable, self.moved = storage.movable, storage.moved
        self.state = state_of(storage)
        self.name = ""

    @property
    def memory(self) -> int | None:
        """Bytes of the allocation; None if there is none."""
        return prod(self.state.extent) * self.dtype.itemsize if self.state.allocated else None

    # What `Group.facts` looks at.
    low = property(lambda self: self.state.low)
    extent = property(lambda self: self.state.extent)
    wanted = property(lambda self: self.state.wanted)
    deferred = reserved = property(lambda self: self.state.reserved)
    spare = property(lambda self: None if self.state.spare is NO_SPARE else (None, self.state.spare))
    fresh = property(lambda self: self.state.fresh)


def on_outlines(statements: Iterable[Statement], outlines: dict[int, Outline]) -> list[Statement]:
    """The same statements on outlines, which are given by the ids of their storages."""

    def outlined(x: object) -> Any:
        return Ref(outlines[id(x.storage)], x.array, x.view) if type(x) is Ref else x

    made = []
    for statement in statements:
        same = copy.copy(statement)
        same.inputs, same.outputs = tuple(map(outlined, statement.inputs)), tuple(map(outlined, statement.outputs))
        same.where = outlined(statement.where)
        made.append(same)
    return made
