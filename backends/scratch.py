"""Scratch memory of a loop's temporaries: as few tile-sized slots as their lifetimes allow; they stay in cache."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from numpy_dist.backends.base import ReduceStep, Step, Temp


def assign_slots(steps: Sequence[Step | ReduceStep]) -> dict[int, tuple[int, np.dtype]]:
    """Give every temporary a slot (linear scan over the steps).

    Returns
    -------
    dict
        Temporary's index -> (slot number, dtype). A ufunc's output may take the slot of an input that ends there, if
        their dtypes are the same.
    """
    last: dict[int, int] = {}
    for position, step in enumerate(steps):
        for temp in _temps(step):
            last[temp.index] = position
    slots: dict[int, tuple[int, np.dtype]] = {}
    free: list[int] = []
    used = 0
    for position, step in enumerate(steps):
        outputs = step.outputs if isinstance(step, Step) else ()
        in_place = isinstance(step, Step) and step.op.ufunc is not None and step.op.nout == 1
        ending = [t for t in _reads(step) if last[t.index] == position]
        if in_place and outputs and isinstance(outputs[0], Temp):
            kept = {step.where.index} if isinstance(step.where, Temp) else set()
            same = [t for t in ending if t.dtype == outputs[0].dtype and t.index not in kept]
            free.extend(slots[t.index][0] for t in same if slots[t.index][0] not in free)
        for out in outputs:
            if isinstance(out, Temp) and out.index not in slots:
                slot = free.pop() if free else used
                used = max(used, slot + 1)
                slots[out.index] = (slot, out.dtype)
        taken = {slots[o.index][0] for o in outputs if isinstance(o, Temp)}
        free.extend(s for s in dict.fromkeys(slots[t.index][0] for t in ending) if s not in free and s not in taken)
    return slots


def _reads(step: Step | ReduceStep) -> list[Temp]:
    operands = (*step.inputs, step.where) if isinstance(step, Step) else (step.source, step.where)
    return [x for x in operands if isinstance(x, Temp)]


def _temps(step: Step | ReduceStep) -> list[Temp]:
    outputs = step.outputs if isinstance(step, Step) else ()
    return _reads(step) + [x for x in outputs if isinstance(x, Temp)]


class TileScratch:
    """Tile-shaped arrays over the slots.

    Parameters
    ----------
    slots : dict
        From `assign_slots`.
    memory : dict
        The memory of slots, which other loops have used before and will use again.
    """

    def __init__(self, slots: dict[int, tuple[int, np.dtype]], memory: dict[int, np.ndarray]) -> None:
        self._slots = slots
        self._memory = memory
        self._arrays: dict[tuple[int, ...], dict[int, np.ndarray]] = {}

    def arrays(self, shape: tuple[int, ...]) -> dict[int, np.ndarray]:
        """For each temporary, an array of this shape in its slot."""
        found = self._arrays.get(shape)
        if found is None:
            count = int(np.prod(shape, dtype=np.int64))
            found = self._arrays[shape] = {}
            for index, (slot, dtype) in self._slots.items():
                nbytes = count * dtype.itemsize
                memory = self._memory.get(slot)
                if memory is None or memory.size < nbytes:
                    memory = self._memory[slot] = np.empty(max(nbytes, 1), np.uint8)
                    for arrays in self._arrays.values():
                        arrays.clear()
                    self._arrays.clear()
                    return self.arrays(shape)
                found[index] = np.ndarray(shape, dtype, buffer=memory)
        return found
