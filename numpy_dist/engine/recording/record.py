"""Recording: shapes, dtypes and errors are worked out at once, by NumPy's rules; values are not."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from numpy_dist.argument_types import Keywords
from numpy_dist.engine.data import windows
from numpy_dist.engine.data.gather import agreed, gather, item
from numpy_dist.engine.data.ingest import broadcast, from_global, make_storage, operand, shardable
from numpy_dist.engine.data.totals import elements_of
from numpy_dist.engine.data.watch import watched
from numpy_dist.engine.events.floating import event, told_as
from numpy_dist.engine.events.sites import user_site
from numpy_dist.engine.memory.handle import Handle, is_sharded, metadata, plain, ref_of, replicated
from numpy_dist.engine.memory.storage import Storage
from numpy_dist.engine.recording.plans import DOUBLES, Bounds, bounds_of, remember, replay, target_of, within
from numpy_dist.engine.runtime import Runtime, runtime
from numpy_dist.frames import stack_level
from numpy_dist.ir import structure
from numpy_dist.ir.meta_arrays import is_writeable, warns_if_written
from numpy_dist.ir.ops import COPY, SELECT, STRIDE_SENSITIVE, Op, op_of
from numpy_dist.ir.rules import broadcast_shapes, loop_dtypes, order_axes, scalar_kind
from numpy_dist.ir.statements import NO_OPTIONS, Elementwise, Ref
from numpy_dist.layout.layout import Layout, Pinned
from numpy_dist.settings import config

if TYPE_CHECKING:
    from numpy_dist.layout.layout import BoxList

_SCALARS = (int, float, complex, bool, np.generic)
_ndarray = np.ndarray


def numpy_error(function: Callable, args: Sequence[object], kwargs: Keywords | None = None) -> NoReturn:
    """Raise the error that NumPy raises for arguments of these shapes and dtypes.

    `function` is called with a stand-in for each sharded array: one element, seen with strides of zero. It must be
    known to fail on metadata alone.
    """

    def stand_in(x: object) -> object:
        if isinstance(x, Handle):
            return x._array if x._storage is None else structure.stand_in(x._array)
        if isinstance(x, tuple | list):
            return type(x)(stand_in(y) for y in x)
        return x

    function(*map(stand_in, args), **{k: stand_in(v) for k, v in (kwargs or {}).items()})
    raise AssertionError(f"{function} was expected to refuse these arguments")


def may_write(array: np.ndarray) -> bool:
    """Whether an array, perhaps a meta array, may be written; asked when it will be, with NumPy's warning for some."""
    if warns_if_written(array):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            array[False] = np.zeros((), array.dtype)  # writes nothing
        for warning in caught:
            warnings.warn(warning.message, warning.category, stacklevel=stack_level())
    return is_writeable(array)


def mask_of(where: object) -> object:
    """What is given as ``where=``: of a scalar NumPy takes the truth, and an array must be one of bools."""
    array = metadata(where)
    if isinstance(array, np.ndarray):
        if array.dtype != bool:
            np.zeros((1,) * array.ndim, array.dtype).astype(bool, casting="safe")  # NumPy's error
        return where
    return bool(where) if isinstance(where, int | float | complex | np.generic) else where


def elementwise(
    op: np.ufunc | Op,
    inputs: Sequence[object],
    out: object = None,
    where: object = True,
    dtype: Any = None,
    casting: str = "same_kind",
    order: str = "K",
    signature: object = None,
    result_dtype: np.dtype | None = None,
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
        op = op_of(op)  # type: ignore[arg-type]
    outs = out if isinstance(out, tuple) else (None,) * op.nout if out is None else (out,)
    inputs = tuple(inputs)
    usual = where is True and dtype is None and signature is None and casting == "same_kind" and order == "K"
    if usual and op.nout == 1 and len(outs) == 1:
        if outs[0] is None and op.ufunc is not None and windows.class_at_hand in map(type, inputs):
            made = windows.computed(op.ufunc, inputs, {})
            if made is not None:
                return made
        made = _replayed(op, inputs, outs[0], result_dtype)
        if made is None and _ndarray in map(type, inputs):
            inputs = _brought(inputs, outs)
            made = _replayed(op, inputs, outs[0], result_dtype)
        if made is not None:
            return made
    where = mask_of(where)
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
    return _record(runtime(), op, inputs, outs, where, options, order, result_dtype, usual)


def _replayed(op: Op, inputs: tuple, out: object, result_dtype: np.dtype | None) -> object:
    """The result of a statement that is planned already; None if there is no plan, and nothing was recorded."""
    if out is None:
        return replay(op, inputs, None, result_dtype, 3)
    target = target_of(out) if is_sharded(out) else None
    return out if target is not None and replay(op, inputs, target, result_dtype, 3) is not None else None


def _brought(inputs: tuple, outs: tuple) -> tuple:
    """The operands as plans know them: ndarrays of the shape of the largest sharded one are cut as that is.

    Each rank copies its part, as `operand` does for others. Those without axes are scalars, which NumPy's own scalars
    have made arrays of.
    """
    own = [x for x in inputs if is_sharded(x)]
    lead = max(own, key=lambda x: x._array.size, default=None)
    if lead is None or not all(o is None or is_sharded(o) for o in outs):
        return inputs
    shape = lead._array.shape
    found = [operand_of(x) if type(x) is _ndarray and not x.ndim else x for x in inputs]
    for position, x in enumerate(found):
        if type(x) is _ndarray and x.shape == shape and shape and x.flags.c_contiguous and shardable(x.dtype):
            layout, space = choose(runtime(), own, outs, True, shape, x.itemsize)
            if space is layout:
                found[position] = from_global(x, layout, compared=True)
    return tuple(found)


def wrap(result: object) -> Any:
    """NumPy's result on replicated data, as ours: arrays become replicated handles, scalars stay."""
    return replicated(result) if isinstance(result, np.ndarray) else agreed(result)


def _at_once(
    op: Op,
    inputs: Sequence[object],
    outs: tuple,
    where: object,
    options: dict,
    order: str,
    result_dtype: np.dtype | None,
) -> object:
    """All operands are replicated: plain NumPy, now."""
    values = [plain(x) for x in inputs]
    if op.ufunc is not None:
        if any(o is not None for o in outs):
            options["out"] = tuple(map(plain, outs))
        if where is not True:
            # NumPy warns, since 2.4, where `out` is not given at all. The protocol does not tell this from None, with
            # which users say that they know what they do.
            options = {"out": (None,) * op.nout, **options, "where": plain(where)}
        if order != "K":
            options["order"] = order
        result = op.ufunc(*values, **options)
    else:
        arrays = [np.asarray(x) for x in values]
        shape = broadcast_shapes(*(a.shape for a in arrays))
        target = plain(outs[0])
        result = np.empty(shape, result_dtype) if target is None else target
        op.apply(
            [np.broadcast_to(a, result.shape) for a in arrays], (result,), None if where is True else plain(where), {}
        )
    if op.nout == 1:
        return outs[0] if outs[0] is not None else wrap(result)
    return tuple(o if o is not None else wrap(r) for o, r in zip(outs, result, strict=True))


def _into_local(
    op: Op,
    inputs: Sequence[object],
    outs: tuple,
    where: object,
    dtype: DTypeLike | None,
    casting: str,
    order: str,
    signature: object,
    result_dtype: np.dtype | None,
) -> object:
    """`out` is an ndarray or a replicated handle: compute into shards, then gather into the very object. Collective."""
    rt = runtime()
    usual = where is True and dtype is None and signature is None and order == "K" and op.nout == 1
    if usual and rt.size == 1 and op.ufunc is not None and (values := _values_here(rt, op, inputs, outs)) is not None:
        watched(op.ufunc, op.name, *values, out=plain(outs[0]), casting=casting)
        return outs[0]
    sharded = tuple(
        o if o is None or is_sharded(o) else from_global(plain(o), rt.default_layout(plain(o).shape)) for o in outs
    )
    results = elementwise(op, inputs, sharded, where, dtype, casting, order, signature, result_dtype)
    results = results if isinstance(results, tuple) else (results,)
    for target, result in zip(outs, results, strict=True):
        if target is not None and not is_sharded(target):
            plain(target)[...] = gather(result)
    final = tuple(r if o is None else o for o, r in zip(outs, results, strict=True))
    return final if op.nout > 1 else final[0]


def _values_here(rt: Runtime, op: Op, inputs: Sequence[object], outs: tuple) -> list[object] | None:
    """The values of operands in the memory of the only rank; None where NumPy's result may have other bits there.

    Executes what the operands need.
    """
    if not windows.limit or op.name in STRIDE_SENSITIVE or not plain(outs[0]).flags.c_contiguous:
        return None
    operands = [operand_of(x) for x in inputs]
    arrays = [metadata(x) for x in (*operands, outs[0]) if isinstance(x, Handle | _ndarray)]
    if not all(x.flags.c_contiguous and x.dtype.char in windows.KINDS for x in arrays):
        return None
    found = []
    for x in operands:
        if isinstance(x, Handle):
            rt.program.force(x._storage)  # type: ignore[arg-type]
            values = elements_of(rt, x)
            if values is None:
                return None
            x = values.reshape(x._array.shape)
        found.append(x)
    return found


def _record(
    rt: Runtime,
    op: Op,
    inputs: Sequence[object],
    outs: tuple,
    where: object,
    options: dict,
    order: str,
    result_dtype: np.dtype | None,
    usual: bool = False,
) -> Any:
    operands = [operand_of(x) for x in inputs]
    kinds = tuple(
        x._array.dtype if isinstance(x, Handle) else x.dtype if isinstance(x, np.ndarray) else scalar_kind(x)
        for x in operands
    )
    try:
        loop = _loop(op, kinds, outs, options, result_dtype)
    except TypeError:
        if op.ufunc is not None and any(o is not None for o in outs):  # that a number does not fit is told first
            loop = _loop(op, kinds, (None,) * op.nout, options, result_dtype)
            _cast(op, operands, kinds, loop, bounds_of(op, operands, loop), options)
        raise
    dtypes = loop[op.nin :]
    for kind, needed in zip(kinds, loop, strict=False):
        if isinstance(kind, np.dtype) and kind.kind == "V" and not np.can_cast(kind, needed, "unsafe"):
            assert op.ufunc is not None
            numpy_error(op.ufunc, operands, {"where": where, **options})  # which resolving dtypes does not find
    unsafe = options.get("casting") == "unsafe"
    if unsafe and "signature" not in options:  # by which numbers would have to be of its dtypes
        operands = [_of_kind(x, kind) for x, kind in zip(operands, loop, strict=False)]
    if op.ufunc is not None and not usual:
        _check_numbers(operands, loop)
    if op.ufunc is not None and (unsafe or where is not True):
        if unsafe:
            operands = [without_imaginary_part(x, kind) for x, kind in zip(operands, loop, strict=False)]
        written = [(kind, o._array.dtype) for kind, o in zip(dtypes, outs, strict=True) if o is not None]
        # With a mask NumPy casts what is in the output, too, as if the loop read it.
        lost = [is_real_part(*pair) or where is not True and is_real_part(*pair[::-1]) for pair in written]
        if any(lost):
            _shape(op, operands, outs, where, options)  # its errors come first
            for _ in filter(None, lost):
                warn_of_real_part()
            with told_as(op.name, rt.events.begin_call()):
                return _by_way_of_new_arrays(rt, op, operands, outs, where, options, order)
    bounds = bounds_of(op, operands, loop)
    if bounds and not within(bounds, operands):
        operands = _cast(op, operands, kinds, loop, bounds, options)
    shape = _shape(op, operands, outs, where, options)
    if op.ufunc is not None and not all(map(_has_cast, kinds, loop)):
        kwargs = {"out": outs} if any(o is not None for o in outs) else {}
        numpy_error(op.ufunc, operands, {**kwargs, **({} if where is True else {"where": where}), **options})
    if op.nout > 1 and not _owned_alike(outs):
        return _by_way_of_new_arrays(rt, op, inputs, outs, where, options, order)
    arrays = [x._array if isinstance(x, Handle) else x for x in operands if isinstance(x, Handle | np.ndarray)]
    layout, space = choose(rt, operands, outs, where, shape, max(d.itemsize for d in dtypes))
    if space is None:
        return _write_elsewhere(rt, op, operands, outs, where, options, order, result_dtype)
    arrays += [o._array for o in outs if o is not None]
    axes = order_axes(order, arrays, shape) if any(o is None for o in outs) else None
    creates = tuple(o is None for o in outs)
    results = tuple(
        make_storage(shape, kind, layout, axes) if o is None else o for o, kind in zip(outs, dtypes, strict=True)
    )
    reads = tuple(read_of(rt, x, shape, space) if isinstance(x, Handle | np.ndarray) else x for x in operands)
    mask = None if where is True else read_of(rt, operand_of(where), shape, space)
    now = can_raise(op, kinds, dtypes)
    for result, made in zip(results, creates, strict=True):
        result._storage.movable |= made
    statement = Elementwise(op, reads, tuple(map(ref_of, results)), creates, mask, options, space)
    is_scalar = shape == () and any(creates)
    if usual and op.nout == 1 and not is_scalar and _are_own(reads, operands):
        remember(statement, operands, results[0], result_dtype, now, bounds)
    rt.program.append(statement, now)
    if is_scalar:
        results = tuple(item(o) if made else o for o, made in zip(results, creates, strict=True))
    return results if op.nout > 1 else results[0]


def is_real_part(source: np.dtype | None, target: np.dtype) -> bool:
    """Whether a cast discards the imaginary part."""
    return source is not None and source.kind == "c" and target.kind in "iuf"


def warn_of_real_part() -> None:
    """NumPy's warning of such a cast, at the user's line.

    It is given when the cast is recorded. Programs cast real parts, so that nothing warns, or raises, as they run.
    """
    text = "Casting complex values to real discards the imaginary part"
    warnings.warn(text, np.exceptions.ComplexWarning, stacklevel=stack_level())


def _has_cast(kind: np.dtype | type, loop: np.dtype) -> bool:
    """Whether an operand can be cast to its loop's dtype at all, which resolution does not ask of records."""
    return not isinstance(kind, np.dtype) or kind.kind != "V" or np.can_cast(kind, loop, "unsafe")


def without_imaginary_part(x: Any, kind: np.dtype) -> Any:
    """What is to become this dtype: its real part, with NumPy's warning, where nothing else is left of it."""
    array = x._array if isinstance(x, Handle) else x
    if not isinstance(array, np.ndarray | np.generic) or not is_real_part(array.dtype, kind):
        return x
    warn_of_real_part()
    return x._view(structure.attribute, "real") if isinstance(x, Handle) else x.real


def _of_kind(x: object, kind: np.dtype) -> object:
    """A Python number of another kind than its loop's as a NumPy scalar of that, cast as an array of one number is."""
    if type(x) is complex and kind.kind in "iuf":
        warn_of_real_part()
        x = x.real
    return watched(np.float64(x).astype, "cast", kind) if type(x) is float and kind.kind in "iu" else x


def _check_numbers(operands: Sequence[object], loop: tuple[np.dtype, ...]) -> None:
    """NumPy's error for Python's numbers that a loop of another kind, asked for by name, cannot take."""
    for x, kind in zip(operands, loop, strict=False):
        if (type(x) is complex and kind.kind in "iuf") or (type(x) is float and kind.kind in "iu"):
            np.empty(1, kind)[0] = x


def _cast(op: Op, operands: list, kinds: tuple, loop: tuple[np.dtype, ...], bounds: Bounds, options: Keywords) -> list:
    """The operands, with infinity for Python's numbers that are too large for floats, of which NumPy warns at once.

    Raises
    ------
    OverflowError
        NumPy's own, for an integer that its dtype does not hold.
    FloatingPointError
        If the error state says so.
    """
    operands = list(operands)
    for bound in bounds:
        if within((bound,), operands):
            continue
        position = bound[0]
        kind = loop[position]
        if kind.kind in "iumM":
            given = zip(operands, kinds, strict=True)
            numpy_error(op.ufunc, [x if isinstance(x, int) else np.ones((), k) for x, k in given], options)  # type: ignore[arg-type]
        if kind.char in DOUBLES:
            float(operands[position])  # raises NumPy's error, here on every rank
            continue
        if kind.char == "g":
            np.empty(1, kind)[0] = operands[position]  # the same for one with too many digits
            continue
        operands[position] = narrowed(operands[position], kind).item()
    return operands


def narrowed(value: complex, kind: np.dtype) -> Any:
    """One of Python's numbers as a floating-point number of this dtype; that it overflows is told at the user's line.

    Raises
    ------
    FloatingPointError
        If the error state says so.
    """
    wide = np.asarray(value, np.result_type(kind, float))
    with np.errstate(all="ignore"):
        found = wide.astype(kind)[()]
    if np.isinf(found) and not np.isinf(wide):
        events = runtime().events
        met = event(0, "overflow", "cast", events.error_state(), user_site(1))
        events.report(() if met is None else (met,))
    return found


def _owned_alike(outs: tuple) -> bool:
    """Whether a rank that computes a part of one output owns this part of every other: they are one iteration space."""
    spaces = [ref_of(o).view.write_space for o in outs if o is not None]
    if any(s is None or s != spaces[0] for s in spaces):
        return False
    return not spaces or all(o is not None for o in outs) or isinstance(spaces[0], Layout)


def _by_way_of_new_arrays(
    rt: Runtime, op: Op, inputs: Sequence[object], outs: tuple, where: object, options: dict, order: str
) -> object:
    """Outputs that the loop cannot write, as where they are divided differently: assigned from results of its own."""
    arrays = [x._array if isinstance(x, Handle) else x for x in (*inputs, *outs) if isinstance(x, Handle | np.ndarray)]
    if order == "K" and order_axes(order, arrays, broadcast_shapes(*(x.shape for x in arrays))) is None:
        order = "C"  # the given outputs have a say in the memory order of new ones
    with rt.events.together:
        found = _record(rt, op, inputs, (None,) * op.nout, where, options, order, None)
        made = found if op.nout > 1 else (found,)
        for target, value in zip(outs, made, strict=True):
            if target is not None:
                elementwise(COPY, (value,), (target,), where)
    results = tuple(value if target is None else target for target, value in zip(outs, made, strict=True))
    return results if op.nout > 1 else results[0]


def _are_own(reads: tuple, operands: list) -> bool:
    """Whether a statement reads its operands' own storages, broadcast perhaps, but not redistributed."""
    return all(
        r.storage is x._storage if isinstance(x, Handle) else type(r) is not Ref
        for r, x in zip(reads, operands, strict=True)
    )


def operand_of(x: Any) -> Any:
    """An operand as a sharded handle, an ndarray of one or more dimensions, or a scalar."""
    if isinstance(x, Handle):
        if x._storage is not None:
            return x
        x = plain(x)
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
    shapes = [
        x._array.shape if isinstance(x, Handle) else x.shape for x in operands if isinstance(x, Handle | np.ndarray)
    ]
    if where is not True:
        shapes.append(np.shape(metadata(where)))
    targets = [o._array.shape for o in outs if o is not None]
    first = (shapes + targets or [()])[0]
    writeable = all(o is None or may_write(o._array) for o in outs)
    if writeable and all(s == first for s in shapes) and all(t == first for t in targets):
        return first
    try:
        shape = broadcast_shapes(*shapes, *targets)
    except ValueError:
        shape = None
    if shape is None or not writeable or any(t != shape for t in targets):
        kwargs = {"out": tuple(outs)} if targets else {}
        if where is not True:
            kwargs["where"] = where
        if op is SELECT and not kwargs:
            numpy_error(np.where, operands)
        numpy_error(op.ufunc or _copy_like, operands, {**kwargs, **options} if op.ufunc else kwargs)
    return shape


def _copy_like(
    *operands: ArrayLike, out: tuple[np.ndarray, ...] | None = None, where: np.ndarray | bool = True
) -> tuple[np.ndarray, ...]:
    if out is not None:
        np.copyto(out[0], operands[0], where=where)
    return np.broadcast_arrays(*operands)


def choose(
    rt: Runtime, operands: list, outs: tuple, where: object, shape: tuple[int, ...], itemsize: int
) -> tuple[Layout, Any]:
    """Layout of results, and iteration space: that of `out`, else of the largest sharded operand (ties: leftmost)."""
    for o in outs:
        if o is not None:
            space = ref_of(o).view.write_space
            return (space if isinstance(space, Layout) else rt.default_layout(shape)), space
    candidates = [x for x in (*operands, where) if isinstance(x, Handle) and x._storage is not None]
    lead = max(candidates, key=lambda x: x._array.size, default=None)
    layout = None if lead is None else broadcast(ref_of(lead), shape).view.read_layout
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
    return 2 * held < layout.size and size >= max(config.MIN_SHARD_BYTES, 1)


def read_of(rt: Runtime, x: object, shape: tuple[int, ...], space: Layout | BoxList) -> Ref:
    """What a statement reads of an operand; a reshape that merges cut axes is redistributed first."""
    if not isinstance(x, Handle):
        return operand(np.asarray(x), shape, space)
    ref = ref_of(x)
    if ref.view.vmap is None:
        ref = Ref(_flattened(rt, ref.storage), ref.array)
    return broadcast(ref, shape)


def _flattened(rt: Runtime, storage: Storage) -> Storage:
    """A copy of a storage that is cut along its first axis only: each rank has a range of the flat index."""
    layout = rt.default_layout(storage.shape, split=0)
    target = make_storage(storage.shape, storage.dtype, layout)
    _append_copy(rt, target, storage)
    return target._storage


def _append_copy(rt: Runtime, target: Any, source: Storage) -> None:
    read = Ref(source, source.meta_array())
    rt.program.append(Elementwise(COPY, (read,), (ref_of(target),), (True,), None, NO_OPTIONS, target._storage.layout))


def _write_elsewhere(
    rt: Runtime,
    op: Op,
    operands: list,
    outs: tuple,
    where: object,
    options: dict,
    order: str,
    result_dtype: np.dtype | None,
) -> object:
    """A target whose owners hold no boxes: write into a copy of its storage that is cut otherwise, and copy back."""
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
        moved = trial._seen_as(o._array)
        targets.append(moved)
    with rt.events.together:
        results = _record(rt, op, operands, tuple(targets), where, options, order, result_dtype)
        for o, moved in zip(outs, targets, strict=True):
            if o is not moved:
                whole, copy = o._storage, moved._storage
                read, target = Ref(copy, copy.meta_array()), Ref(whole, whole.meta_array())
                rt.program.append(Elementwise(COPY, (read,), (target,), (False,), None, NO_OPTIONS, whole.layout))
    results = results if isinstance(results, tuple) else (results,)
    final = tuple(r if o is None else o for o, r in zip(outs, results, strict=True))
    return final if op.nout > 1 else final[0]


def _layouts_to_try(rt: Runtime, shape: tuple[int, ...]) -> list[Layout]:
    cuts = [rt.default_layout(shape, split=axis) for axis in range(len(shape)) if shape[axis] >= rt.size]
    pinned = Layout(shape, rt.flat_mesh, (Pinned(0),))
    return [*cuts, pinned]


@cache
def times_overflow() -> bool:
    """Whether this NumPy raises an error where a time is too large."""
    most = np.array(np.iinfo(np.int64).max, "m8[s]")
    try:
        np.add(most, most)
    except OverflowError:
        return True
    return False


def _is_time(kind: object) -> bool:
    return isinstance(kind, np.dtype) and kind.kind in "mM"


def can_raise(op: Op, kinds: tuple, dtypes: tuple[np.dtype, ...]) -> bool:
    """Whether values can raise: integers to negative powers, texts repeated or not found, times, and some casts.

    Text may be no number, or too short for a date; what raw memory and records hold goes by way of Python's objects.
    Times may be too large for their sum, or for another unit, which NumPy says since 2.5.
    `kinds` are dtypes (or Python's types) of the inputs, `dtypes` those of the outputs.
    """
    if times_overflow() and (units := {np.datetime_data(x) for x in (*kinds, *dtypes) if _is_time(x)}):
        if len(units) > 1 or op.name in ("add", "subtract", "multiply"):
            return True
    if op is COPY:
        source, target = getattr(kinds[0], "kind", ""), dtypes[0].kind
        if "V" in (source, target):
            return kinds[0] != dtypes[0]
        return (source in ("S", "U") and target != source) or (source == "M" and target in "SU")
    if op.name == "power":
        return dtypes[0].kind == "i"
    return op.name in ("index", "rindex") or (op.name == "multiply" and dtypes[0].kind in "SU")
