"""Copies, assignment and new arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from numpy_dist.engine.data.gather import gather
from numpy_dist.engine.data.ingest import from_global, make_storage, shardable
from numpy_dist.engine.memory.budget import check_shares
from numpy_dist.engine.memory.handle import Handle, is_sharded, metadata, plain, ref_of, replicated
from numpy_dist.engine.recording.casts import is_real_part, warn_of_real_part
from numpy_dist.engine.recording.numpy_errors import numpy_error
from numpy_dist.engine.recording.operands import choose_space, operand_of, read_of
from numpy_dist.engine.recording.queries import layout_of
from numpy_dist.engine.recording.record import elementwise, may_write, wrap
from numpy_dist.engine.recording.replay import remember, replay
from numpy_dist.engine.runtime import runtime
from numpy_dist.ir import structure
from numpy_dist.ir.ops import COPY
from numpy_dist.ir.rules import can_raise, copy_axes
from numpy_dist.ir.statements import NO_OPTIONS, SCALAR_KINDS, Elementwise, Ref
from numpy_dist.layout.layout import Layout
from numpy_dist.settings import config

_LARGEST_HALF = float(np.finfo(np.float16).max)


def assign(
    target: Any, value: Any, where: object = True, casting: Any = "unsafe", named: str = "assignment destination"
) -> None:
    """``target[...] = value`` with NumPy's broadcasting, as if `value` had been copied first.

    Not collective for sharded targets.

    Parameters
    ----------
    named : str
        What NumPy calls the target when it is read-only.

    Raises
    ------
    ValueError, TypeError
        NumPy's own, for shapes and casts that do not fit.
    """
    if not isinstance(target, Handle) or target._storage is None:
        if _before_replicating is not None and is_sharded(value) and not shardable(target.dtype):
            _before_replicating(value, target.dtype)
        np.copyto(
            plain(target), gather(value) if is_sharded(value) else plain(value), casting=casting, where=_gathered(where)
        )
        return
    if where is True and is_sharded(value):
        whole, part = target._array, value._array
        if whole.shape == part.shape and whole.dtype == part.dtype and may_write(whole):
            if value._storage is not target._storage or ref_of(value).view is not ref_of(target).view:
                elementwise(COPY, (value,), (target,))
            return
    value = operand_of(value)
    if isinstance(value, np.ndarray):
        value = np.asarray(value)  # a matrix keeps its two axes whatever the index
    source = metadata(value)
    if isinstance(source, np.ndarray) and not shardable(source.dtype):
        value = source = _converted(plain(value), target._array.dtype, where, casting)
    if not may_write(target._array):
        raise ValueError(f"{named} is read-only")
    if isinstance(source, np.ndarray) and "V" in (source.dtype.kind, target._array.dtype.kind):
        if not np.can_cast(source.dtype, target._array.dtype, "unsafe"):
            numpy_error(np.copyto, (target, value), {"casting": "unsafe"})
    if casting != "unsafe":
        # NumPy's rules and errors, also for Python's numbers, whose values count.
        sample = np.zeros((0,) * bool(source.ndim), source.dtype) if isinstance(source, np.ndarray) else source
        np.copyto(np.empty(0, target._array.dtype), sample, casting=casting)
    if isinstance(source, np.ndarray):
        while source.ndim > target._array.ndim and source.shape[0] == 1:
            value = value._view(structure.index, 0) if isinstance(value, Handle) else value[0]
            source = metadata(value)
        if source.ndim > target._array.ndim or not fits(source.shape, target._array.shape):
            numpy_error(np.copyto, (target, value), {"casting": "unsafe"})
    loses_part = is_real_part(getattr(source, "dtype", None), target._array.dtype)
    if loses_part:
        warn_of_real_part()
    if not isinstance(source, np.ndarray) and not isinstance(value, Handle):
        value = value.real if loses_part else value
        value = np.asarray(value).astype(target._array.dtype, casting="unsafe")[()]
    elementwise(COPY, (value,), (target,), where)


def assign_part(target: Ref, value: object) -> bool:
    """``x[key] = value`` where the key selects `target` (see `selected`) and this was recorded before; False if not.

    To be called by ``__setitem__`` (see `replay`).
    """
    view = target.view
    if not view.writeable:
        return False
    if type(value) in SCALAR_KINDS:
        if not _converts_silently(value, view.dtype):
            return False
        value = np.asarray(value, view.dtype)[()]  # as NumPy converts what is assigned
    elif not isinstance(value, Handle) or value._array.dtype != view.dtype:
        return False  # conversions may warn
    elif value._storage is target.storage and ref_of(value).view is view:
        return True  # the end of ``x[key] += y``: the view was updated in place
    return replay(COPY, (value,), target, None, 3) is not None


def _converts_silently(value: Any, dtype: np.dtype) -> bool:
    """Whether a scalar becomes one of this dtype without a warning, and without an error that depends on the key."""
    if isinstance(value, np.generic):
        return value.dtype == dtype
    return dtype.char not in "efF" or type(value) not in (int, float) or abs(value) < _LARGEST_HALF


def fits(shape: tuple[int, ...], into: tuple[int, ...]) -> bool:
    """Whether the axes that two shapes both have, counted from the last, let one be broadcast into the other."""
    return all(n in (1, m) for n, m in zip(reversed(shape), reversed(into), strict=False))


def _converted(values: np.ndarray, dtype: np.dtype, where: object, casting: Any) -> np.ndarray:
    """Values that every rank has, cast by NumPy; of those that `where` leaves out any stand for them."""
    chosen = _gathered(where)
    shape = values.shape if chosen is True else np.broadcast_shapes(values.shape, np.shape(chosen))
    made = np.zeros(shape, dtype)
    np.copyto(made, values, casting=casting, where=chosen)
    return made


def _gathered(where: object) -> Any:
    return gather(where) if is_sharded(where) else plain(where)


_before_replicating: Callable[[Handle, np.dtype], None] | None = None


def register_policy(announce: Callable[[Handle, np.dtype], None]) -> None:
    """Set what is asked before a sharded array is gathered because its new dtype cannot be sharded."""
    global _before_replicating
    _before_replicating = announce


def copy(x: Any, dtype: DTypeLike | None = None, order: Any = "K", layout: Layout | None = None) -> Any:
    """A copy with another dtype, memory order or layout. Not collective; recorded.

    With `layout` this is a redistribution: each rank will be sent what it does not hold.

    Raises
    ------
    GatherError
        On every rank alike, where a rank would be sent more than ``MEMORY_BUDGET`` (asking for it may be collective).
    """
    if not is_sharded(x):
        array = np.array(plain(x), dtype=dtype, order=order, copy=True)
        return wrap(array) if layout is None else from_global(array, layout)
    array = x._array
    kind = array.dtype if dtype is None else np.dtype(dtype)
    in_order = layout is None and array.ndim and array.flags.c_contiguous and order in ("K", "C", "A")
    in_order = in_order and not is_real_part(array.dtype, kind)
    if in_order and (made := replay(COPY, (x,), None, kind, 3)) is not None:
        return made
    if not shardable(kind):
        if _before_replicating is not None:
            _before_replicating(x, kind)
        return replicated(gather(x).astype(kind, order=order))
    if is_real_part(x._array.dtype, kind):
        warn_of_real_part()
    rt = runtime()
    shape = x._array.shape
    axes = copy_axes(order, x._array)
    if layout is None:
        layout = choose_space(rt, [x], (None,), True, shape, kind.itemsize)[0]
    else:
        check_shares(rt, layout, kind.itemsize, f"redistributing an array of shape {shape}, {kind}")
    target = make_storage(shape, kind, layout, axes)
    read = read_of(rt, x, shape, layout)
    now = can_raise(COPY, (x._array.dtype,), (kind,))
    statement = Elementwise(COPY, (read,), (ref_of(target),), (True,), None, NO_OPTIONS, layout)
    if in_order and read is ref_of(x):
        target._storage.movable = True  # as what is computed, and as replayed
        remember(statement, (x,), target, kind, now, ())
    rt.program.append(statement, now)
    return target


def aligned(x: object, layout: Layout) -> Any:
    """`x` itself if it has this layout, else a recorded redistribution of it."""
    if is_sharded(x) and layout_of(x) == layout:
        return x
    return copy(x, layout=layout)


def empty(shape: Sequence[int], dtype: DTypeLike | None, order: Any = "C", layout: Layout | None = None) -> Any:
    """A new array, not initialised. Not collective; no memory is taken before it is written."""
    shape, kind = tuple(shape), np.dtype(dtype)
    nbytes = kind.itemsize
    for n in shape:
        nbytes *= n
    if not shardable(kind) or (layout is None and (not shape or nbytes < config.MIN_SHARD_BYTES)):
        return replicated(np.empty(shape, kind, order))
    axes = tuple(reversed(range(len(shape)))) if order == "F" and len(shape) > 1 else None
    return make_storage(shape, kind, layout or runtime().default_layout(shape), axes)


def full(
    shape: Sequence[int], value: object, dtype: DTypeLike | None, order: str | None = "C", layout: Layout | None = None
) -> Any:
    """A new array filled with a scalar. Not collective; recorded."""
    made = empty(shape, dtype, order, layout)
    if made._storage is None:
        plain(made)[...] = value
    else:
        value = np.asarray(value).astype(made._array.dtype, casting="unsafe")[()]
        ref = ref_of(made)
        runtime().program.append(Elementwise(COPY, (value,), (ref,), (True,), None, NO_OPTIONS, ref.view.write_space))
    return made
