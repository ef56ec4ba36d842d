"""Partial results of a reduction: exchanged with the owners of the result and folded there in rank order."""

from __future__ import annotations

from types import EllipsisType
from typing import TYPE_CHECKING

import numpy as np

from numpy_dist.engine.events import floating
from numpy_dist.engine.memory.storage import Storage
from numpy_dist.engine.planning.actions import Combine
from numpy_dist.ir.statements import Reduction
from numpy_dist.layout.regions import Box, box_shape, box_size, box_slices

if TYPE_CHECKING:
    from numpy_dist.engine.executing.executing_rank import ExecutingRank

SMALL = 1 << 16


def combine(
    runtime: ExecutingRank, action: Combine, statement: Reduction, storage: Storage, partial: np.ndarray | None
) -> None:
    """Fold the ranks' partial results into the result's storage, which has memory where this rank owns some of it.

    Parameters
    ----------
    partial : ndarray or None
        This rank's partial result, reduced axes kept with extent 1; None where it had no elements.

    Notes
    -----
    Replicated results: one allgather. Others: one message from each contributor to each owner whose boxes meet. The
    fold is in rank order on every owner, so copies are bitwise equal and results do not depend on time.
    """
    mine, memory = storage.layout.box(runtime.rank), runtime.backend.memory
    if partial is not None:
        partial = partial if statement.keepdims else partial.reshape(_kept(partial.shape, statement.axes))
        if storage.axes is not None:
            partial = partial.transpose(storage.axes)
        if runtime.size == 1 and _is_result(runtime, statement):
            (memory.upload if type(partial) is np.ndarray else memory.copy)(storage.array(), partial)
            return
        partial = memory.download(partial)
    if action.boxes[runtime.rank] is None:
        partial = None  # a copy: its primary contributes
    if action.everywhere:
        pieces = _gather_all(runtime, partial, action.boxes, action.dtype)
    else:
        pieces = _exchange(runtime, action, partial)
    if mine is not None:
        if not runtime.computes:  # a value that all ranks agree on
            np.copyto(storage.array(), runtime.backend.value, casting="unsafe")
            return
        result = storage.array()
        if len(pieces) == 1 and pieces[0][0] == mine and _is_result(runtime, statement):
            memory.upload(result, pieces[0][1])
        else:
            memory.upload(result, _folded(runtime, statement, mine, pieces, dtype=result.dtype))


def _is_result(runtime: ExecutingRank, statement: Reduction) -> bool:
    """Whether a partial result of everything is the result."""
    return runtime.computes and statement.initial is None and statement.outputs[0].storage.dtype == statement.dtype


def _kept(shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(n for axis, n in enumerate(shape) if axis not in axes)


def _gather_all(
    runtime: ExecutingRank, partial: np.ndarray | None, boxes: tuple[Box | None, ...], dtype: np.dtype
) -> list[tuple[Box, np.ndarray]]:
    nbytes = max((box_size(b) for b in boxes if b is not None), default=0) * dtype.itemsize
    if nbytes <= SMALL:
        received = runtime.comm.allgather((partial, tuple(runtime.events.met)))
        runtime.events.share([met for _, met in received])
        parts = [p for p, _ in received]
    else:
        parts = runtime.comm.allgather_array(np.empty(0, dtype) if partial is None else partial)
    return [(box, part) for box, part in zip(boxes, parts, strict=True) if box is not None]


def _within(array: np.ndarray, box: Box, part: Box) -> np.ndarray:
    """A part, as a view, of an array of the elements in a box."""
    key: tuple[slice | EllipsisType, ...] = (*box_slices(part, [low for low, _ in box]), ...)
    return array[key]


def _exchange(runtime: ExecutingRank, action: Combine, partial: np.ndarray | None) -> list[tuple[Box, np.ndarray]]:
    own = action.boxes[runtime.rank]

    def part(box: Box) -> np.ndarray:
        assert partial is not None and own is not None
        return _within(partial, own, box)

    sends = [(rank, np.ascontiguousarray(part(box))) for rank, box in action.sends]
    pieces = [
        (box, part(box) if rank == runtime.rank else np.empty(box_shape(box), action.dtype))
        for rank, box in action.receives
    ]
    others = zip(action.receives, pieces, strict=True)
    receives = [(rank, buffer) for (rank, _), (_, buffer) in others if rank != runtime.rank]
    if sends or receives:
        runtime.comm.transfer(sends, receives)
    return pieces


def _folded(
    runtime: ExecutingRank, statement: Reduction, mine: Box, pieces: list[tuple[Box, np.ndarray]], dtype: np.dtype
) -> np.ndarray:
    """The fold of contributions, in rank order, and ``initial`` for the owner's box of the result, as this dtype."""
    ufunc = statement.op.ufunc
    assert ufunc is not None
    total = np.empty(box_shape(mine), statement.dtype)
    seen = np.zeros(total.shape, bool)

    def hook(kind: str, flag: int) -> None:
        met = floating.event(statement.serial, kind, "reduce", statement.errstate, statement.site)
        runtime.events.note(met, alike=statement.outputs[0].storage.layout.is_replicated)

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
