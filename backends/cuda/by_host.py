"""Loops that have no kernel: computed on the host, by the interpreter, between a download and an upload."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from numpy_dist.backends.base import Loop, ReduceStep, Step
from numpy_dist.backends.interpreter import Interpreter
from numpy_dist.backends.memory import Memory
from numpy_dist.ir.ops import COPY

if TYPE_CHECKING:
    from numpy_dist.backends.memory import Array


def interpret(loop: Loop, memory: Memory, array_type: type[Array]) -> None:
    """Execute a loop over arrays of a memory on the host; what it reports is reported before this returns.

    What only copies elements, of whatever dtype, stays in the memory.
    """
    if 0 in loop.shape:
        return
    moved = [_copied(s, array_type) for s in loop.steps]
    if None not in moved:
        for target, source in filter(None, moved):
            memory.copy(target, source)
        return
    copies: dict[Hashable, np.ndarray] = {}  # by the elements: one that is read, and written later on, is one

    def key_of(x: Any) -> Hashable:
        return memory.address(x), x.strides, x.dtype

    def here(x: object) -> Any:
        if not isinstance(x, array_type):
            return x
        key = key_of(x)
        if key not in copies:
            fresh = key in overwritten
            copies[key] = np.empty(x.shape, x.dtype) if fresh else np.array(memory.download(x), order="K")
        return copies[key]

    overwritten = _overwritten(loop, array_type, key_of)
    steps: list[Step | ReduceStep] = []
    written: list[tuple[Array, np.ndarray]] = []
    for s in loop.steps:
        if isinstance(s, Step):
            outputs = tuple(map(here, s.outputs))
            written += [(x, copy) for x, copy in zip(s.outputs, outputs, strict=True) if x is not copy]
            steps.append(Step(s.op, tuple(map(here, s.inputs)), outputs, here(s.where), s.options, s.label))
        else:
            partial = here(s.partial)
            written.append((s.partial, partial))
            steps.append(ReduceStep(s.op, here(s.source), partial, s.axes, here(s.where), s.label))
    try:
        Interpreter().run(Loop(loop.shape, steps, loop.report, loop.watched))
    except BaseException:  # what came before it has been written; of the rest there is nothing to upload
        _upload([(x, copy) for x, copy in written if key_of(x) not in overwritten], memory)
        raise
    _upload(written, memory)


def _upload(written: Sequence[tuple[Array, np.ndarray]], memory: Memory) -> None:
    for x, copy in written:
        memory.upload(x, copy)


def _copied(s: Step | ReduceStep, array_type: type[Array]) -> tuple[Array, Array] | None:
    """Target and source, if a step copies an array of the memory to another one of its dtype, and does nothing else."""
    if not isinstance(s, Step) or s.op is not COPY or s.where is not None:
        return None
    (source,), (target,) = s.inputs, s.outputs
    both = isinstance(source, array_type) and isinstance(target, array_type) and source.dtype == target.dtype
    return (target, source) if both else None


def _overwritten(loop: Loop, array_type: type[Array], key_of: Callable[[object], Hashable]) -> set[Hashable]:
    """The elements that a loop writes, all of them, and does not read: their old values are not needed.

    Those of texts are: functions of these may raise half-way, and what is not written yet stays.
    """
    found: set[Hashable] = set()
    read: set[Hashable] = set()
    for s in loop.steps:
        inputs = s.inputs if isinstance(s, Step) else (s.source,)
        read |= {key_of(x) for x in (*inputs, s.where) if isinstance(x, array_type)}
        outputs = [x for x in (s.outputs if isinstance(s, Step) else (s.partial,)) if isinstance(x, array_type)]
        (found if s.where is None and all(x.dtype.kind in "?biufcmM" for x in outputs) else read).update(
            key_of(x) for x in outputs
        )
    return found - read
