"""Questions to the engine: counts, layouts, how one array was made of another; and execution on request."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from numpy_dist.engine.data import windows
from numpy_dist.engine.memory.handle import Handle, is_sharded
from numpy_dist.engine.runtime import runtime
from numpy_dist.engine.scheduling.counters import EngineCounters
from numpy_dist.ir.meta_arrays import offset_of
from numpy_dist.ir.statements import Ref
from numpy_dist.ir.views import view_of
from numpy_dist.layout.layout import Layout


def counters() -> EngineCounters:
    """The calling rank's counters."""
    return runtime().counters


def force(*handles: Handle) -> None:
    """Execute the pending program as far as these arrays need it."""
    for x in handles:
        if type(x) is windows.class_at_hand and x._window.readable:
            windows.asked_for(x.nbytes)
        elif is_sharded(x):
            runtime().program.force(x._storage)  # type: ignore[arg-type]


def flush() -> None:
    """Execute the whole pending program."""
    runtime().program.run()


def layout_of(x: Handle) -> Layout | None:
    """The layout of an array, which is final from now on; None for a view whose owners are no layout."""
    if x._storage is None:
        return runtime().replicated_layout(x._array.shape)
    x._storage.movable = False
    return view_of(x._storage.layout, x._storage.dtype.itemsize, x._array).exact_layout


def is_transpose(x: Handle, y: Handle) -> bool:
    """Whether an array is another one transposed, in the same memory; known from metadata."""
    if x._storage is None or x._storage is not y._storage or x._array.dtype != y._array.dtype:
        return False
    one, other = x._array, y._array
    same = offset_of(one) == offset_of(other)
    return same and one.shape == other.shape[::-1] and one.strides == other.strides[::-1]


def is_adjoint(x: Handle, y: Handle) -> bool:
    """Whether an array is the conjugate transpose of another one, and not computed yet.

    Known from what is pending, which is the same on all ranks: one that executes by itself has diverged, and is told so
    where ranks meet next (`comm.divergence.journal`).
    """
    storage, of = y._storage, x._storage
    if storage is None or of is None:
        return False
    made = next((s for s in runtime().program.pending if s.serial == storage.last_write), None)
    if made is None or made.op.ufunc is not np.conjugate or made.where is not None:
        return False
    (source,), (out,) = made.inputs, made.outputs
    if type(source) is not Ref or source.storage is not of or of.last_write >= made.serial:
        return False
    for conjugate, plain in ((out.array, source.array), (out.array.T, source.array.T)):
        if _is_same_view(conjugate, y._array):
            return _is_same_view(plain.T, x._array)
    return False


def _is_same_view(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether views of one storage are the same."""
    if one.dtype != other.dtype or offset_of(one) != offset_of(other):
        return False
    return one.shape == other.shape and one.strides == other.strides


def default_layout(shape: Sequence[int], **choice: object) -> Layout:
    """The layout of new arrays of this shape at this number of ranks; `choice` is ``split=`` or ``mesh=``."""
    return runtime().default_layout(tuple(shape), **choice)
