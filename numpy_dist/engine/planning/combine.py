"""Partial results of a reduction: exchanged with the owners of the result and folded there in rank order."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from numpy_dist.engine.events import floating
from numpy_dist.ir.statements import Reduction
from numpy_dist.layout.alignment import is_empty
from numpy_dist.layout.layout import Layout
from numpy_dist.layout.regions import Box

SMALL = 1 << 16


def combine(runtime: Any, statement: Reduction, partial: np.ndarray | None) -> None:
    """Fold the ranks' partial results into the result's storage.

    Parameters
    ----------
    partial : ndarray or None
        This rank's partial result, reduced axes kept with extent 1; None where it had no elements.

    Notes
    -----
    Replicated results: one allgather. Others: one message from each contributor to each owner whose boxes meet. The
    fold is in rank order on every owner, so copies are bitwise equal and results do not depend on time.
    """
    out = statement.outputs[0]
    storage = out.storage
    space, mine, memory = statement.space, storage.layout.box(runtime.rank), runtime.backend.memory
    if partial is not None:
        partial = partial if statement.keepdims else partial.reshape(_kept(partial.shape, statement.axes))
        if storage.axes is not None:
            partial = partial.transpose(storage.axes)
        if runtime.size == 1 and _is_result(runtime, statement):
            storage.allocate(mine)
            (memory.upload if type(partial) is np.ndarray else memory.copy)(storage.array(), partial)
            return
        partial = memory.download(partial)
    boxes = partial_boxes(space, statement.axes, statement.keepdims, storage.layout.mesh.size, storage.axes)
    if boxes[runtime.rank] is None:
        partial = None  # a copy: its primary contributes
    pieces: list[tuple[Box, np.ndarray]] = []
    if runtime.size == 1:
        pieces = [] if partial is None else [(boxes[0], partial)]  # type: ignore[list-item]
    elif storage.layout.is_replicated:
        pieces = _gather_all(runtime, partial, boxes, statement.dtype)
    else:
        pieces = _exchange(runtime, storage.layout, boxes, partial, statement.dtype)
    if mine is not None:
        storage.allocate(mine)
        if not runtime.computes:  # a value that all ranks agree on
            np.copyto(storage.array(), runtime.backend.value, casting="unsafe")
            return
        result = storage.array()
        if len(pieces) == 1 and pieces[0][0] == mine and _is_result(runtime, statement):
            memory.upload(result, pieces[0][1])
        else:
            memory.upload(result, _folded(runtime, statement, mine, pieces, dtype=result.dtype))


def _is_result(runtime: Any, statement: Reduction) -> bool:
    """Whether a partial result of everything is the result."""
    return runtime.computes and statement.initial is None and statement.outputs[0].storage.dtype == statement.dtype


def _kept(shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(n for axis, n in enumerate(shape) if axis not in axes)


@lru_cache(maxsize=512)
def partial_boxes(
    space: Any, axes: tuple[int, ...], keepdims: bool, size: int, order: tuple[int, ...] | None
) -> tuple[Box | None, ...]:
    """For each rank the part of the result's storage to which it contributes, None where it contributes nothing."""
    boxes: list[Box | None] = []
    for rank in range(size):
        box = space.box(rank)
        if box is None or is_empty(box) or (isinstance(space, Layout) and not space.primary(rank)):
            boxes.append(None)
        else:
            part = [(0, 1) if axis in axes else side for axis, side in enumerate(box) if keepdims or axis not in axes]
            boxes.append(tuple(part if order is None else (part[a] for a in order)))
    return tuple(boxes)


def _gather_all(
    runtime: Any, partial: np.ndarray | None, boxes: tuple[Box | None, ...], dtype: np.dtype
) -> list[tuple[Box, np.ndarray]]:
    nbytes = max((_count(b) for b in boxes if b is not None), default=0) * dtype.itemsize
    if nbytes <= SMALL:
        received = runtime.comm.allgather((partial, tuple(runtime.flags)))
        runtime.program.share([flags for _, flags in received])
        parts = [p for p, _ in received]
    else:
        parts = runtime.comm.allgather_array(np.empty(0, dtype) if partial is None else partial)
    return [(box, part) for box, part in zip(boxes, parts, strict=True) if box is not None]


def _count(box: Box) -> int:
    count = 1
    for lo, hi in box:
        count *= hi - lo
    return count


def meet(a: Box | None, b: Box | None) -> Box | None:
    """What two boxes share; None if that is nothing."""
    if a is None or b is None:
        return None
    both = tuple((max(p, r), min(q, s)) for (p, q), (r, s) in zip(a, b, strict=True))
    return None if is_empty(both) else both


def _within(array: np.ndarray, box: Box, part: Box) -> np.ndarray:
    key: Any = (*(slice(lo - low, hi - low) for (lo, hi), (low, _) in zip(part, box, strict=True)), ...)
    return array[key]


def _exchange(
    runtime: Any, layout: Layout, boxes: tuple[Box | None, ...], partial: np.ndarray | None, dtype: np.dtype
) -> list[tuple[Box, np.ndarray]]:
    me = runtime.rank
    sends, receives, pieces = [], [], []
    for rank in range(runtime.size):
        out = meet(boxes[me], layout.box(rank))
        if out is not None and rank != me:
            assert partial is not None and boxes[me] is not None
            sends.append((rank, np.ascontiguousarray(_within(partial, boxes[me], out))))
        back = meet(boxes[rank], layout.box(me))
        if back is None:
            continue
        if rank == me:
            assert partial is not None and boxes[me] is not None
            pieces.append((back, _within(partial, boxes[me], back)))
        else:
            buffer = np.empty([hi - lo for lo, hi in back], dtype)
            receives.append((rank, buffer))
            pieces.append((back, buffer))
    if sends or receives:
        runtime.comm.transfer(sends, receives)
    return pieces


def _folded(
    runtime: Any, statement: Reduction, mine: Box, pieces: list[tuple[Box, np.ndarray]], dtype: np.dtype
) -> np.ndarray:
    """The fold of contributions, in rank order, and ``initial`` for the owner's box of the result, as this dtype."""
    ufunc = statement.op.ufunc
    assert ufunc is not None
    total = np.empty([hi - lo for lo, hi in mine], statement.dtype)
    seen = np.zeros(total.shape, bool)

    def hook(kind: str, flag: int) -> None:
        met = floating.event(statement.serial, kind, "reduce", statement.errstate, statement.site)
        runtime.program.note(met, alike=statement.outputs[0].storage.layout.is_replicated)

    with np.errstate(all="call", call=hook):
        for box, part in pieces:  # contributors to one element cover the same box
            target, known = _within(total, mine, box), _within(seen, mine, box)
            if known.any():
                ufunc(target, part, out=target, where=known)
            np.copyto(target, part, where=~known)
            known[...] = True
        if statement.initial is not None:
            ufunc(total, statement.initial, out=total, where=seen, casting="unsafe")
        if not seen.all():
            # The identity of `bitwise_and` is -1, also of unsigned integers.
            neutral = np.asarray(ufunc.identity).astype(total.dtype) if statement.initial is None else statement.initial
            total[~seen] = neutral
        if dtype == total.dtype:
            return total
        result = np.empty(total.shape, dtype)
        np.copyto(result, total, casting="unsafe")
        return result
