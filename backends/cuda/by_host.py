"""Loops that have no kernel: computed on the host, by the interpreter, between a download and an upload."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

import numpy as np

from numpy_dist.backends.base import Loop, ReduceStep, Step
from numpy_dist.backends.interpreter import Interpreter
from numpy_dist.backends.memory import Memory

if TYPE_CHECKING:
    from numpy_dist.backends.memory import Array


def interpret(loop: Loop, memory: Memory, array_type: type[Array]) -> None:
    """Execute a loop over arrays of a memory on the host; what it reports is reported before this returns."""
    if 0 in loop.shape:
        return
    copies: dict[Hashable, np.ndarray] = {}  # by the elements: one that is read, and written later on, is one

    def here(x: Any) -> Any:
        if not isinstance(x, array_type):
            return x
        key = memory.address(x), x.strides, x.dtype
        if key not in copies:
            copies[key] = np.array(memory.download(x), order="K")
        return copies[key]

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
    Interpreter().run(Loop(loop.shape, steps, loop.report, loop.watched))
    for x, copy in written:
        memory.upload(x, copy)
