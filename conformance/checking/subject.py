"""What a case is run on: NumPy's arguments, and the same ones as distributed arrays in random layouts."""

from __future__ import annotations

import os
import random
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from numpy_dist.argument_types import Arguments, Function, Keywords
from numpy_dist.conformance.adapter import current
from numpy_dist.conformance.arguments import VIEWS, Array, TemporaryFile, pick
from numpy_dist.conformance.case import Case
from numpy_dist.dispatch.core.keys import name_of

# How often an argument that the case gives whole lies in its base in these ways.
_PRESENTATIONS = {"whole": 8, "strided": 2, "fortran": 2, "window": 2, "pinned": 2, "column": 2}
# NumPy's own results depend on negative strides for some functions: these only where the case is about views.
_BACKWARDS = {"flipped": 2, "backwards": 2}


@dataclass
class OperandPair:
    """One array argument on both sides: a base and a view of it."""

    theirs_base: np.ndarray
    theirs: np.ndarray
    ours_base: Any
    ours: Any
    how: str


@dataclass
class Subject:
    """All arguments of one run of a case.

    Attributes
    ----------
    operands : list of OperandPair
    theirs, ours : tuple
        Positional and keyword arguments of each side.
    files : list of tuple of str
        Paths for files that each side writes.
    """

    seed: str
    operands: list[OperandPair] = field(default_factory=list)
    theirs: tuple[Arguments, Keywords] = ((), {})
    ours: tuple[Arguments, Keywords] = ((), {})
    files: list[tuple[str, str]] = field(default_factory=list)

    @property
    def layouts(self) -> str:
        """How the arguments lie, for messages."""
        return "; ".join(operand.how for operand in self.operands)

    @property
    def has_replicated(self) -> bool:
        """Whether any distributed argument is replicated."""
        return any(current().is_array(x.ours) and not current().is_sharded(x.ours) for x in self.operands)

    @property
    def sharded(self) -> bool:
        """Whether any argument is sharded."""
        return any(current().is_sharded(operand.ours) for operand in self.operands)


def build(case: Case, seed: str) -> Subject:
    """The arguments of a case in layouts that follow from `seed` (alike on every rank)."""
    # Not of the case's text: it may hold addresses, which differ between ranks.
    generator = random.Random(f"{name_of(case.function)}/{case.number}/{seed}")
    subject = Subject(seed)
    made: dict[int, OperandPair] = {}

    def pair(value: object) -> tuple[object, object]:
        if isinstance(value, Array):
            if id(value) not in made:
                made[id(value)] = _operand(value, f"{case.number}/{len(made)}", generator)
                subject.operands.append(made[id(value)])
            return made[id(value)].theirs, made[id(value)].ours
        if isinstance(value, TemporaryFile):
            subject.files.append(_paths(value))
            return subject.files[-1]
        if isinstance(value, list | tuple) and any(True for _ in arrays_in(value)):
            pairs = [pair(item) for item in value]
            return type(value)(p[0] for p in pairs), type(value)(p[1] for p in pairs)
        return value, value

    args = [pair(value) for value in case.args]
    kwargs = {name: pair(value) for name, value in case.kwargs.items()}
    subject.theirs = tuple(p[0] for p in args), {name: p[0] for name, p in kwargs.items()}
    subject.ours = tuple(p[1] for p in args), {name: p[1] for name, p in kwargs.items()}
    return subject


def arrays_in(value: object) -> Iterator[Array | TemporaryFile]:
    """The arguments to be built in nested lists and tuples."""
    if isinstance(value, Array | TemporaryFile):
        yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from arrays_in(item)


def _operand(array: Array, salt: str, generator: random.Random) -> OperandPair:
    values = array.make(salt)
    enlarge, view = VIEWS[array.view]
    how = array.view
    if array.view == "whole" and array.distributed:
        how = pick(generator, _PRESENTATIONS if values.dtype.kind in "fc" else _PRESENTATIONS | _BACKWARDS)
        enlarge, view = VIEWS[how]
    if array.distributed and not current().views:
        how, (enlarge, view) = "whole", VIEWS["whole"]
    base = np.array(enlarge(values), order="C")
    if not array.distributed:
        mine = base.copy()
        return OperandPair(base, view(base), mine, view(mine), "an ndarray")
    ours, where = current().distribute(base, generator)
    return OperandPair(base, view(base), ours, view(ours), f"{how} of {where}")


def _paths(file: TemporaryFile) -> tuple[str, str]:
    """Two paths that do not exist yet (collective): NumPy's, of each rank, and ours, the same one on every rank."""
    comm = current().comm
    folder = comm.bcast(tempfile.mkdtemp(prefix="numpy_dist-conformance-") if comm.rank == 0 else None)
    return os.path.join(folder, f"theirs{comm.rank}{file.suffix}"), os.path.join(folder, f"ours{file.suffix}")


def target(case: Case) -> Function:
    """What is called."""
    return case.via if case.via is not None else case.function
