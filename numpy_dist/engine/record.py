"""Recording: shapes, dtypes and errors are worked out at once, by NumPy's rules; values are not."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from numpy_dist.engine.gather import gather, item
from numpy_dist.engine.handle import Handle, is_sharded, ref_of, replicated, sharded
from numpy_dist.engine.ingest import broadcast, from_global, make_storage, operand, shardable
from numpy_dist.engine.runtime import Runtime, runtime
from numpy_dist.engine.sites import stack_level
from numpy_dist.engine.storage import Storage
from numpy_dist.ir.ops import COPY, Op, op_of
from numpy_dist.ir.rules import loop_dtypes, order_axes, scalar_kind
from numpy_dist.ir.statements import Elementwise, Ref
from numpy_dist.layout.layout import Layout, Pinned
from numpy_dist.settings import config

_SCALARS = (int, float, complex, bool, np.generic)


def numpy_error(function: Callable, args: Sequence[Any], kwargs: dict[str, Any] | None = None) -> NoReturn:
    """Raise the error that NumPy raises for arguments of these shapes and dtypes.

    `function` is called with a stand-in for each sharded array: one element, seen with strides of zero. It must be known to
    fail on metadata alone.
    """

    def stand_in(x: Any) -> Any:
        if isinstance(x, Handle):
            return x._array if x._storage is None else _stand_in(x._array)
        if isinstance(x, tuple | list):
            return type(x)(stand_in(y) for y in x)
        return x

    function(*map(stand_in, args), **{k: stand_in(v) for k, v in (kwargs or {}).items()})
    raise AssertionError(f"{function} was expected to refuse these arguments")


def _stand_in(array: np.ndarray) -> np.ndarray:
    made = np.lib.stride_tricks.as_strided(np.ones(1, array.dtype), array.shape, (0,) * array.ndim, writeable=array.flags.writeable)
    return made


def elementwise(
    op: np.ufunc | Op, inputs: Sequence[Any], out: Any = None, where: Any = True, dtype: Any = None, casting: str = "same_kind",
    order: str = "K", signature: Any = None, result_dtype: np.dtype | None = None,
) -> Any:
    """Record an element-wise operation. Not collective.

    Parameters
    ----------
    op : numpy.ufunc or Op
    inputs : sequence
        Handles, ndarrays and scalars.
    out : None, handle, ndarray or tuple of these and None
    where, dtype, casting, order, signature
        NumPy's.
    result_dtype : dtype, optional
        Of the result, for an `Op` that is no ufunc.

    Returns
    -------
    handle, scalar or tuple of these
        As NumPy: a scalar where all inputs are 0-d and there is no `out` (this executes the program and is collective).
    """
    if type(op) is not Op:
        op = op_of(op)
    key = None
    if where is True and dtype is None and signature is None and casting == "same_kind" and order == "K":
        key = plan_key(op, inputs, out, result_dtype)
        plan = _PLANS.get(key)
        if plan is not None and (not plan.bounds or _within(plan.bounds, inputs)):
            return _replay(plan, op, inputs, out)
    outs = out if isinstance(out, tuple) else (None,) * op.nout if out is None else (out,)
    if len(outs) < op.nout:
        outs = (*outs, *(None,) * (op.nout - len(outs)))
    options = {}
    if dtype is not None:
        options["dtype"] = np.dtype(dtype)
    if signature is not None:
        options["signature"] = signature
    if casting != "same_kind":
        options["casting"] = casting
    if not (any(map(is_sharded, inputs)) or any(map(is_sharded, outs)) or is_sharded(where)):
        return _at_once(op, inputs, outs, where, options, order, result_dtype)
    if any(o is not None and not is_sharded(o) for o in outs):
        return _into_local(op, inputs, outs, where, dtype, casting, order, signature, result_dtype)
    return _record(runtime(), op, inputs, outs, where, options, order, result_dtype, key)


def _plain(x: Any) -> Any:
    return x._array if isinstance(x, Handle) else x


def wrap(result: Any) -> Any:
    """NumPy's result on replicated data, as ours: arrays become replicated handles, scalars stay."""
    return replicated(result) if isinstance(result, np.ndarray) else result


def _at_once(
    op: Op, inputs: Sequence[Any], outs: tuple, where: Any, options: dict, order: str, result_dtype: np.dtype | None
) -> Any:
    """All operands are replicated: plain NumPy, now."""
    plain = [_plain(x) for x in inputs]
    if op.ufunc is not None:
        if any(o is not None for o in outs):
            options["out"] = tuple(map(_plain, outs))
        if where is not True:
            options["where"] = _plain(where)
        if order != "K":
            options["order"] = order
        result = op.ufunc(*plain, **options)
    else:
        arrays = [np.asarray(x) for x in plain]
        shape = np.broadcast_shapes(*(a.shape for a in arrays))
        target = _plain(outs[0])
        result = np.empty(shape, result_dtype) if target is None else target
        op.apply([np.broadcast_to(a, result.shape) for a in arrays], (result,), None if where is True else _plain(where), {})
    if op.nout == 1:
        return outs[0] if outs[0] is not None else wrap(result)
    return tuple(o if o is not None else wrap(r) for o, r in zip(outs, result, strict=True))


def _into_local(
    op: Op, inputs: Sequence[Any], outs: tuple, where: Any, dtype: Any, casting: str, order: str, signature: Any, result_dtype: Any
) -> Any:
    """`out` is an ndarray or a replicated handle: compute into shards, then gather into the very object. Collective."""
    rt = runtime()
    sharded = tuple(
        o if o is None or is_sharded(o) else from_global(_plain(o), _cut_default(rt, _plain(o).shape)) for o in outs
    )
    results = elementwise(op, inputs, sharded, where, dtype, casting, order, signature, result_dtype)
    results = results if isinstance(results, tuple) else (results,)
    for target, result in zip(outs, results, strict=True):
        if target is not None and not is_sharded(target):
            _plain(target)[...] = gather(result)
    final = tuple(r if o is None else o for o, r in zip(outs, results, strict=True))
    return final if op.nout > 1 else final[0]


def _cut_default(rt: Runtime, shape: tuple[int, ...]) -> Layout:
    return rt.default_layout(shape)


Bounds = tuple[tuple[int, int, int], ...]
_COMPARISONS = frozenset((np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal))


def _bounds(op: Op, operands: Sequence[Any], loop: tuple[np.dtype, ...]) -> Bounds:
    """For each Python integer among the operands its position and the least and greatest value that the loop can take."""
    if op.ufunc is None or op.ufunc in _COMPARISONS:
        return ()
    found = []
    for position, x in enumerate(operands):
        if type(x) is int and loop[position].kind in "iu":
            info = np.iinfo(loop[position])
            found.append((position, int(info.min), int(info.max)))
    return tuple(found)


def _within(bounds: Bounds, operands: Sequence[Any]) -> bool:
    return all(low <= operands[position] <= high for position, low, high in bounds)


class _Plan:
    """Everything about a statement but its storages, for statements that differ in nothing else."""

    __slots__ = ("array", "bounds", "dtype", "layout", "nbytes", "now", "shape", "space", "view")

    def __init__(self, result: Any, space: Any, now: bool, bounds: Bounds) -> None:
        storage = result._storage
        self.shape, self.dtype, self.layout, self.array = storage.shape, storage.dtype, storage.layout, result._array
        self.nbytes = storage.nbytes
        self.view, self.space, self.now, self.bounds = ref_of(result).view, space, now, bounds


_PLANS: dict[Any, _Plan] = {}
_MOST_PLANS = 4096
_NO_OPTIONS: dict[str, Any] = {}


def plan_key(op: Op, inputs: Sequence[Any], out: Any, result_dtype: np.dtype | None) -> tuple | None:
    """What a statement's plan depends on, or None where there is no plan to be reused."""
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
    for x in inputs:
        if isinstance(x, Handle):
            if x._storage is None:
                return None
            key.append((x._ref or ref_of(x)).view)
        elif isinstance(x, np.generic):
            key.append(x.dtype)
        elif isinstance(x, float | int | complex):
            key.append(type(x))
        else:
            return None
    return tuple(key)


def _replay(plan: _Plan, op: Op, inputs: Sequence[Any], out: Any) -> Any:
    """Record a statement that is planned already."""
    rt = runtime()
    made = out is None
    if made:
        storage = Storage(plan.shape, plan.dtype, plan.layout, rt.pool, plan.nbytes)
        out = sharded(storage, plan.array)
        target = out._ref = Ref(storage, plan.array, plan.view)
    else:
        if isinstance(out, tuple):
            (out,) = out
        target = out._ref
    reads = tuple([x._ref if isinstance(x, Handle) else x for x in inputs])
    rt.program.append(Elementwise(op, reads, (target,), (made,), None, _NO_OPTIONS, plan.space), plan.now)
    return out


def _record(
    rt: Runtime, op: Op, inputs: Sequence[Any], outs: tuple, where: Any, options: dict, order: str, result_dtype: np.dtype | None,
    key: tuple | None = None,
) -> Any:
    operands = [_operand(x) for x in inputs]
    kinds = tuple(
        x._array.dtype if isinstance(x, Handle) else x.dtype if isinstance(x, np.ndarray) else scalar_kind(x) for x in operands
    )
    loop = _loop(op, kinds, outs, options, result_dtype)
    dtypes = loop[op.nin :]
    bounds = _bounds(op, operands, loop)
    if bounds and not _within(bounds, operands):
        numpy_error(op.ufunc, [x if isinstance(x, int) else np.ones((), k) for x, k in zip(operands, kinds, strict=True)])
    shape = _shape(op, operands, outs, where, options)
    arrays = [x._array if isinstance(x, Handle) else x for x in operands if isinstance(x, Handle | np.ndarray)]
    layout, space = _choose(rt, operands, outs, where, shape, max(d.itemsize for d in dtypes))
    if space is None:
        return _write_elsewhere(rt, op, operands, outs, where, options, order, result_dtype)
    axes = order_axes(order, arrays, shape) if any(o is None for o in outs) else None
    creates = tuple(o is None for o in outs)
    results = tuple(make_storage(shape, kind, layout, axes) if o is None else o for o, kind in zip(outs, dtypes, strict=True))
    reads = tuple(_ref(rt, x, shape, space) if isinstance(x, Handle | np.ndarray) else x for x in operands)
    mask = None if where is True else _ref(rt, _operand(where), shape, space)
    now = _can_raise(op, kinds, dtypes)
    rt.program.append(Elementwise(op, reads, tuple(map(ref_of, results)), creates, mask, options, space), now)
    if shape == () and all(creates):
        values = tuple(map(item, results))
        return values if op.nout > 1 else values[0]
    if key is not None and not any(isinstance(d, Pinned) for d in layout.dims) and _are_own(reads, operands):
        if len(_PLANS) > _MOST_PLANS:
            _PLANS.clear()
        _PLANS[key] = _Plan(results[0], space, now, bounds)
    return results if op.nout > 1 else results[0]


def _are_own(reads: tuple, operands: list) -> bool:
    """Whether a statement reads its operands' own views, neither broadcast nor redistributed."""
    return all(r is x._ref if isinstance(x, Handle) else type(r) is not Ref for r, x in zip(reads, operands, strict=True))


def _operand(x: Any) -> Any:
    """An operand as a sharded handle, an ndarray of one or more dimensions, or a scalar."""
    if isinstance(x, Handle):
        if x._storage is not None:
            return x
        x = x._array
    elif isinstance(x, _SCALARS):
        return x
    elif not isinstance(x, np.ndarray):
        x = np.asarray(x)
    return x[()] if x.ndim == 0 else x


def _loop(op: Op, kinds: tuple, outs: tuple, options: dict, result_dtype: np.dtype | None) -> tuple[np.dtype, ...]:
    """Dtypes of inputs and outputs of a statement."""
    if op.ufunc is None:
        assert result_dtype is not None or outs[0] is not None
        return (*kinds, result_dtype if result_dtype is not None else outs[0]._array.dtype)
    signature = options.get("signature")
    if "dtype" in options:
        signature = (None,) * op.nin + (options["dtype"],) * op.nout
    given = tuple(None if o is None else o._array.dtype for o in outs)
    return loop_dtypes(op.ufunc, (*kinds, *given), options.get("casting", "same_kind"), signature)


def _shape(op: Op, operands: list, outs: tuple, where: Any, options: dict) -> tuple[int, ...]:
    shapes = [x._array.shape if isinstance(x, Handle) else x.shape for x in operands if isinstance(x, Handle | np.ndarray)]
    if where is not True:
        shapes.append(np.shape(where._array if isinstance(where, Handle) else where))
    targets = [o._array.shape for o in outs if o is not None]
    first = (shapes + targets)[0]
    writeable = all(o is None or o._array.flags.writeable for o in outs)
    if writeable and all(s == first for s in shapes) and all(t == first for t in targets):
        return first
    try:
        shape = np.broadcast_shapes(*shapes, *targets)
    except ValueError:
        shape = None
    if shape is None or not writeable or any(t != shape for t in targets):
        kwargs = {"out": tuple(outs)} if targets else {}
        if where is not True:
            kwargs["where"] = where
        numpy_error(op.ufunc or _copy_like, operands, {**kwargs, **options} if op.ufunc else kwargs)
    return shape


def _copy_like(*operands: Any, out: Any = None, where: Any = True) -> Any:
    if out is not None:
        np.copyto(out[0], operands[0], where=where)
    return np.broadcast_arrays(*operands)


def _choose(rt: Runtime, operands: list, outs: tuple, where: Any, shape: tuple[int, ...], itemsize: int) -> tuple[Layout, Any]:
    """The layout of results, and the iteration space: that of `out`, else of the largest sharded operand (ties: leftmost)."""
    for o in outs:
        if o is not None:
            space = ref_of(o).view.write_space
            return (space if isinstance(space, Layout) else rt.default_layout(shape)), space
    candidates = [x for x in (*operands, where) if isinstance(x, Handle) and x._storage is not None]
    lead = max(candidates, key=lambda x: x._array.size)
    layout = broadcast(ref_of(lead), shape).view.read_layout
    if layout is None or _too_few(layout, shape, itemsize):
        layout = rt.default_layout(shape)
    return layout, layout


def _too_few(layout: Layout, shape: tuple[int, ...], itemsize: int) -> bool:
    """Whether fewer than half of the ranks would hold a result that is large enough to be sharded."""
    held = 1
    for extent, dim in zip(layout.mesh.shape, layout.dims, strict=True):
        held *= 1 if isinstance(dim, Pinned) else extent
    size = itemsize
    for n in shape:
        size *= n
    return 2 * held < layout.mesh.size and size >= max(config.MIN_SHARD_BYTES, 1)


def _ref(rt: Runtime, x: Any, shape: tuple[int, ...], space: Any) -> Ref:
    """What a statement reads of an operand; a reshape that merges cut axes is redistributed first."""
    if not isinstance(x, Handle):
        return operand(np.asarray(x), shape, space)
    ref = ref_of(x)
    if ref.view.vmap is None:
        ref = Ref(_flattened(rt, ref.storage), ref.array)
    return broadcast(ref, shape)


def _flattened(rt: Runtime, storage: Storage) -> Storage:
    """A copy of a storage that is cut along its first axis only, so that its elements lie in ranges of the flat index."""
    layout = rt.default_layout(storage.shape, split=0)
    target = make_storage(storage.shape, storage.dtype, layout)
    _append_copy(rt, target, storage)
    return target._storage


def _append_copy(rt: Runtime, target: Any, source: Storage) -> None:
    read = Ref(source, source.phantom())
    rt.program.append(Elementwise(COPY, (read,), (ref_of(target),), (True,), None, _NO_OPTIONS, target._storage.layout))


def _write_elsewhere(
    rt: Runtime, op: Op, operands: list, outs: tuple, where: Any, options: dict, order: str, result_dtype: np.dtype | None
) -> Any:
    """A target whose elements' owners are no boxes: write into a copy of its storage that is cut otherwise, and copy back."""
    targets = []
    for o in outs:
        if o is None or ref_of(o).view.write_space is not None:
            targets.append(o)
            continue
        storage = o._storage
        for layout in _layouts_to_try(rt, storage.shape):
            trial = make_storage(storage.shape, storage.dtype, layout)
            if Ref(trial._storage, o._array).view.write_space is not None:
                break
        _append_copy(rt, trial, storage)
        moved = trial._view(lambda _, array=o._array: array)
        targets.append(moved)
    results = _record(rt, op, operands, tuple(targets), where, options, order, result_dtype)
    for o, moved in zip(outs, targets, strict=True):
        if o is not moved:
            whole, copy = o._storage, moved._storage
            read, target = Ref(copy, copy.phantom()), Ref(whole, whole.phantom())
            rt.program.append(Elementwise(COPY, (read,), (target,), (False,), None, _NO_OPTIONS, whole.layout))
    results = results if isinstance(results, tuple) else (results,)
    final = tuple(r if o is None else o for o, r in zip(outs, results, strict=True))
    return final if op.nout > 1 else final[0]


def _layouts_to_try(rt: Runtime, shape: tuple[int, ...]) -> list[Layout]:
    cuts = [rt.default_layout(shape, split=axis) for axis in range(len(shape)) if shape[axis] >= rt.size]
    pinned = Layout(shape, rt.flat_mesh, (Pinned(0),))
    return [*cuts, pinned]


def _can_raise(op: Op, kinds: tuple, dtypes: tuple[np.dtype, ...]) -> bool:
    """Whether the values of a statement can raise: integers to negative integer powers."""
    return op.name == "power" and dtypes[0].kind == "i"


# -- copies and assignment -------------------------------------------------------------------------------------------


def assign(target: Any, value: Any, where: Any = True, casting: str = "unsafe") -> None:
    """``target[...] = value`` with NumPy's broadcasting, as if `value` had been copied first. Not collective for sharded targets.

    Raises
    ------
    ValueError, TypeError
        NumPy's own, for shapes and casts that do not fit.
    """
    if not isinstance(target, Handle) or target._storage is None:
        plain = _plain(target)
        np.copyto(plain, gather(value) if is_sharded(value) else _plain(value), casting=casting, where=_gathered(where))
        return
    value = _operand(value)
    source = value._array if isinstance(value, Handle) else value
    if not target._array.flags.writeable:
        raise ValueError("assignment destination is read-only")
    if isinstance(source, np.ndarray):
        while source.ndim > target._array.ndim and source.shape[0] == 1:
            value = value._view(lambda a: a[0]) if isinstance(value, Handle) else value[0]
            source = value._array if isinstance(value, Handle) else value
        if source.ndim > target._array.ndim or not _fits(source.shape, target._array.shape):
            numpy_error(np.copyto, (target, value), {"casting": "unsafe"})
    if casting != "unsafe" and not np.can_cast(source if isinstance(source, np.generic) else getattr(source, "dtype", type(source)), target._array.dtype, casting):
        numpy_error(np.copyto, (target, value), {"casting": casting})
    _warn_complex(getattr(source, "dtype", None), target._array.dtype)
    if not isinstance(source, np.ndarray):
        value = np.asarray(value).astype(target._array.dtype, casting="unsafe")[()] if not isinstance(value, Handle) else value
    elementwise(COPY, (value,), (target,), where)


def _warn_complex(source: np.dtype | None, target: np.dtype) -> None:
    if source is not None and source.kind == "c" and target.kind not in "cb":
        warnings.warn(
            "Casting complex values to real discards the imaginary part", np.exceptions.ComplexWarning,
            stacklevel=stack_level(),
        )


def _fits(shape: tuple[int, ...], into: tuple[int, ...]) -> bool:
    return all(n in (1, m) for n, m in zip(reversed(shape), reversed(into), strict=False))


def _gathered(where: Any) -> Any:
    return gather(where) if is_sharded(where) else _plain(where)


def copy(x: Any, dtype: Any = None, order: str = "K", layout: Layout | None = None) -> Any:
    """A copy with another dtype, memory order or layout. Not collective; recorded.

    With `layout` this is a redistribution: each rank will be sent what it does not hold.
    """
    if not is_sharded(x):
        array = np.array(_plain(x), dtype=dtype, order=order, copy=True)  # type: ignore[call-overload]
        return wrap(array) if layout is None else from_global(array, layout)
    kind = x._array.dtype if dtype is None else np.dtype(dtype)
    if not shardable(kind):
        return replicated(gather(x).astype(kind, order=order))  # type: ignore[arg-type]
    _warn_complex(x._array.dtype, kind)
    rt = runtime()
    shape = x._array.shape
    axes = order_axes(order, [x._array], shape)
    if layout is None:
        layout = _choose(rt, [x], (None,), True, shape, kind.itemsize)[0]
    target = make_storage(shape, kind, layout, axes)
    read = _ref(rt, x, shape, layout)
    rt.program.append(Elementwise(COPY, (read,), (ref_of(target),), (True,), None, _NO_OPTIONS, layout))
    return target


def aligned(x: Any, layout: Layout) -> Any:
    """`x` itself if it has this layout, else a recorded redistribution of it."""
    if is_sharded(x) and ref_of(x).view.exact_layout == layout:
        return x
    return copy(x, layout=layout)


def empty(shape: Sequence[int], dtype: Any, order: str = "C", layout: Layout | None = None) -> Any:
    """A new array, not initialised. Not collective; no memory is taken before it is written."""
    shape, kind = tuple(shape), np.dtype(dtype)
    nbytes = kind.itemsize
    for n in shape:
        nbytes *= n
    if not shardable(kind) or (layout is None and (not shape or nbytes < config.MIN_SHARD_BYTES)):
        return replicated(np.empty(shape, kind, order))  # type: ignore[call-overload]
    axes = tuple(reversed(range(len(shape)))) if order == "F" and len(shape) > 1 else None
    return make_storage(shape, kind, layout or runtime().default_layout(shape), axes)


def full(shape: Sequence[int], value: Any, dtype: Any, order: str = "C", layout: Layout | None = None) -> Any:
    """A new array filled with a scalar. Not collective; recorded."""
    made = empty(shape, dtype, order, layout)
    if made._storage is None:
        made._array[...] = value
    else:
        value = np.asarray(value).astype(made._array.dtype, casting="unsafe")[()]
        ref = ref_of(made)
        runtime().program.append(Elementwise(COPY, (value,), (ref,), (True,), None, _NO_OPTIONS, ref.view.write_space))
    return made

