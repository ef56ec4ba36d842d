"""Plans: what recording a statement worked out, kept for statements that differ in their storages only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from numpy_dist.engine.handle import Handle, ref_of, sharded
from numpy_dist.engine.runtime import runtime
from numpy_dist.engine.storage import Storage
from numpy_dist.ir.ops import Op
from numpy_dist.ir.statements import NO_OPTIONS, Elementwise, Ref

Bounds = tuple[tuple[int, int, int], ...]
_COMPARISONS = frozenset((np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal))


def bounds_of(op: Op, operands: Sequence[Any], loop: tuple[np.dtype, ...]) -> Bounds:
    """For each Python integer among the operands: its position, and the least and greatest value of its dtype."""
    if op.ufunc is None or op.ufunc in _COMPARISONS:
        return ()
    found = []
    for position, x in enumerate(operands):
        if type(x) is int and loop[position].kind in "iu":
            info = np.iinfo(loop[position])
            found.append((position, int(info.min), int(info.max)))
    return tuple(found)


def within(bounds: Bounds, operands: Sequence[Any]) -> bool:
    """Whether Python integers fit into the loop."""
    return all(low <= operands[position] <= high for position, low, high in bounds)


class Plan:
    """Everything about a statement but its storages, for statements that differ in nothing else."""

    __slots__ = ("array", "axes", "bounds", "dtype", "layout", "nbytes", "now", "shape", "space", "view")

    def __init__(self, result: Any, space: Any, now: bool, bounds: Bounds) -> None:
        storage = result._storage
        self.shape, self.dtype, self.layout, self.array = storage.shape, storage.dtype, storage.layout, result._array
        self.axes, self.nbytes = storage.axes, storage.nbytes
        self.view, self.space, self.now, self.bounds = ref_of(result).view, space, now, bounds


PLANS: dict[Any, Plan] = {}
_MOST = 4096


def plan_key(op: Op, inputs: Sequence[Any], out: Any, result_dtype: np.dtype | None) -> tuple[tuple, list] | None:
    """What a statement's plan depends on, and what the statement reads; None where no plan can be reused."""
    key: list[Any] = [op, result_dtype]
    if out is None:
        if op.nout != 1:
            return None
        key.append(None)
    else:
        if isinstance(out, tuple):
            if len(out) != 1:
                return None
            (out,) = out
        if not isinstance(out, Handle) or out._storage is None or not out._array.flags.writeable:
            return None
        key.append((out._ref or ref_of(out)).view)
    reads: list[Any] = []
    for x in inputs:
        kind = type(x)
        if kind is float or kind is int:
            key.append(kind)
        elif isinstance(x, Handle):
            if x._storage is None:
                return None
            x = x._ref or ref_of(x)
            key.append(x._view if x._layout is x.storage.layout and x._view is not None else x.view)
        elif isinstance(x, np.generic):
            key.append(x.dtype)
        elif isinstance(x, float | int | complex):
            key.append(kind)
        else:
            return None
        reads.append(x)
    return tuple(key), reads


def replay(plan: Plan, op: Op, reads: list, out: Any) -> Any:
    """Record a statement that is planned already."""
    rt = runtime()
    made = out is None
    if made:
        storage = Storage(plan.shape, plan.dtype, plan.layout, rt.pool, plan.nbytes)
        storage.axes, storage.movable = plan.axes, True
        out = sharded(storage, plan.array)
        target = out._ref = Ref(storage, plan.array, plan.view)
    else:
        if isinstance(out, tuple):
            (out,) = out
        target = out._ref
    rt.program.append(Elementwise(op, tuple(reads), (target,), (made,), None, NO_OPTIONS, plan.space), plan.now)
    return out


def remember(key: tuple, plan: Plan) -> None:
    """Keep a plan; all are forgotten when there are too many."""
    if len(PLANS) > _MOST:
        PLANS.clear()
    PLANS[key] = plan
