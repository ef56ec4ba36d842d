"""The reference backend: fused loops over cache-sized tiles, each operation of a tile done by NumPy's own ufunc."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np

from numpy_dist.backends.axes import in_memory_order
from numpy_dist.backends.base import Loop, Step, Temp
from numpy_dist.backends.memory import HOST
from numpy_dist.backends.tile_steps import TileSteps, is_special

# Elements of a tile. It depends on nothing but the local shape, so that sums are formed alike in every tier.
TILE_ELEMENTS = 65536
_KEPT_SLOTS = 16  # of temporaries; a tile's is half a megabyte


class Interpreter:
    """Executes loops tile by tile."""

    name = "numpy"
    memory = HOST

    def __init__(self) -> None:
        self._slots: dict[int, np.ndarray] = {}  # scratch memory, while no loop uses it

    def run(self, loop: Loop) -> None:
        """Execute a loop (see `backends.base.Loop`)."""
        if 0 in loop.shape:
            return
        step = loop.steps[0]
        if len(loop.steps) == 1 and type(step) is Step and not is_special(step) and not _is_dead(step):
            with _watching(loop, [step.label]):
                step.op.apply(list(step.inputs), step.outputs, step.where, step.options)
            return
        turned = in_memory_order(loop)
        slots, self._slots = self._slots, {}  # a loop that is run within this one has others
        steps = loop.memo.get("tile steps")
        if steps is None or not steps.begin(turned.steps, turned.shape, slots):
            steps = TileSteps(turned.steps, turned.shape)
            steps.begin(turned.steps, turned.shape, slots)
            if steps.lasting:
                loop.memo["tile steps"] = steps
        try:
            with _watching(loop, steps.current):
                for where in tiles(turned.shape):
                    steps.run(where, (*(s.stop - s.start for s in where), *turned.shape[len(where) :]))
                steps.finish()
        finally:
            steps.end()
        if len(slots) <= _KEPT_SLOTS:
            self._slots = slots

    def fence(self) -> None:
        """Everything has finished when `run` returns."""

    def tier(self, memo: dict[str, object]) -> str:
        """As in `backends.base.Backend`."""
        return "numpy: BACKEND is 'numpy'"


def make(ranks_here: int) -> Interpreter:
    """A new backend."""
    return Interpreter()


def _is_dead(step: Step) -> bool:
    """Whether nobody can ask for a step's result; it is computed all the same, for its floating-point events."""
    return any(type(out) is Temp for out in step.outputs)


def _watching(loop: Loop, current: list[int]) -> np.errstate:
    """The error state in which a loop is told of the events of the step whose label is in `current`."""

    def hook(kind: str, flag: int) -> None:
        loop.report(current[0], kind)

    kinds: dict[str, Literal["call"]] = dict.fromkeys(loop.watched, "call")
    return np.errstate(all="ignore", call=hook, **kinds)


def tiles(shape: Sequence[int]) -> Iterator[tuple[slice, ...]]:
    """Cut a local iteration space into tiles of at most `TILE_ELEMENTS` elements: blocks of full rows along one axis.

    Yields
    ------
    tuple of slice
        For the leading axes up to the blocked one; the axes behind it are whole.
    """
    inner = 1
    axis = len(shape) - 1
    while axis > 0 and inner * shape[axis] <= TILE_ELEMENTS:
        inner *= shape[axis]
        axis -= 1
    block = max(1, TILE_ELEMENTS // inner)
    for lead in np.ndindex(*shape[:axis]):
        head = tuple(slice(i, i + 1) for i in lead)
        for start in range(0, shape[axis], block):
            yield (*head, slice(start, min(start + block, shape[axis])))
