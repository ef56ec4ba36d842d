"""Recording: shapes, dtypes and errors are worked out at once, by NumPy's rules; values are not."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from numpy_dist.argument_types import Keywords
from numpy_dist.engine.data import windows
from numpy_dist.engine.data.gather import agreed, gather, item
from numpy_dist.engine.data.ingest import from_global, make_storage, shardable
from numpy_dist.engine.data.totals import elements_of
from numpy_dist.engine.data.watch import watched
from numpy_dist.engine.events.floating import told_as
from numpy_dist.engine.memory.handle import Handle, is_sharded, metadata, plain, ref_of, replicated
from numpy_dist.engine.recording.casts import (
    Kinds,
    bounds_of,
    check_numbers,
    fitted,
    is_real_part,
    of_kind,
    warn_of_real_part,
    within,
    without_imaginary_part,
)
from numpy_dist.engine.recording.numpy_errors import numpy_error
from numpy_dist.engine.recording.operands import choose_space, copy_whole, operand_of, read_of
from numpy_dist.engine.recording.replay import remember, replay, target_of
from numpy_dist.engine.runtime import Runtime, runtime
from numpy_dist.frames import stack_level
from numpy_dist.ir.meta_arrays import is_writeable, warns_if_written
from numpy_dist.ir.ops import COPY, SELECT, STRIDE_SENSITIVE, Op, op_of
from numpy_dist.ir.rules import broadcast_shapes, can_raise, loop_dtypes, order_axes, scalar_kind
from numpy_dist.ir.statements import NO_OPTIONS, Elementwise, Ref
from numpy_dist.layout.layout import Layout, Pinned

_ndarray = np.ndarray


class ElementwiseCall(NamedTuple):
    """An element-wise call.

    Attributes
    ----------
    op : Op
    inputs : tuple
        Handles, ndarrays and scalars.
    outs : tuple
        For each output a handle or an ndarray, or None for a new array.
    where, order
        NumPy's.
    options : dict
        Of NumPy's ``dtype``, ``signature`` and ``casting`` those that were given.
    result_dtype : dtype or None
        Of the result, for an `Op` that is no ufunc.
    """

    op: Op
    inputs: tuple
    outs: tuple
    where: Any
    order: str
    options: Keywords
    result_dtype: np.dtype | None

    @property
    def given(self) -> Keywords:
        """The outputs and the mask as keywords, where they were given."""
        found: Keywords = {"out": self.outs} if any(o is not None for o in self.outs) else {}
        return found if self.where is True else {**found, "where": self.where}

    def returned(self, results: Sequence[object]) -> object:
        """What the call returns: outputs that were given, and results for the others."""
        made = tuple(result if out is None else out for out, result in zip(self.outs, results, strict=True))
        return made if self.op.nout > 1 else made[0]


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
    options: Keywords = {}
    if dtype is not None:
        options["dtype"] = np.dtype(dtype)
    if signature is not None:
        options["signature"] = signature
    if casting != "same_kind":
        options["casting"] = casting
    if not (any(map(is_sharded, inputs)) or any(map(is_sharded, outs)) or is_sharded(where)):
        return _at_once(op, inputs, outs, where, order, options, result_dtype)
    call = ElementwiseCall(op, inputs, outs, where, order, options, result_dtype)
    if any(o is not None and not is_sharded(o) for o in outs):
        return _into_local(runtime(), call)
    return _record(runtime(), call, usual)


def _replayed(op: Op, inputs: tuple, out: object, result_dtype: np.dtype | None) -> object:
    """The result of a statement that has a template; None if there is none, and nothing was recorded."""
    if out is None:
        return replay(op, inputs, None, result_dtype, 3)
    target = target_of(out) if is_sharded(out) else None
    return out if target is not None and replay(op, inputs, target, result_dtype, 3) is not None else None


def _brought(inputs: tuple, outs: tuple) -> tuple:
    """The operands as templates know them: ndarrays of the shape of the largest sharded one are cut as that is.

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
            layout, space = choose_space(runtime(), own, outs, True, shape, x.itemsize)
            if space is layout:
                found[position] = from_global(x, layout, compared=True)
    return tuple(found)


def wrap(result: object) -> Any:
    """NumPy's result on replicated data, as ours: arrays become replicated handles, scalars stay."""
    return replicated(result) if isinstance(result, np.ndarray) else agreed(result)


def _at_once(
    op: Op,
    inputs: tuple,
    outs: tuple,
    where: object,
    order: str,
    options: Keywords,
    result_dtype: np.dtype | None,
) -> object:
    """The result of a call whose arrays are all replicated: NumPy's, now; its arguments are not even put together."""
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
        target = plain(outs[0])
        result = np.empty(broadcast_shapes(*(a.shape for a in arrays)), result_dtype) if target is None else target
        mask = None if where is True else plain(where)
        op.apply([np.broadcast_to(a, result.shape) for a in arrays], (result,), mask, {})
    if op.nout == 1:
        return outs[0] if outs[0] is not None else wrap(result)
    return tuple(o if o is not None else wrap(r) for o, r in zip(outs, result, strict=True))


def _into_local(rt: Runtime, call: ElementwiseCall) -> object:
    """The result of a call with an output that is not sharded: made in shards, and gathered into it. Collective."""
    op, outs = call.op, call.outs
    if rt.size == 1 and op.nout == 1 and (values := _values_here(rt, call)) is not None:
        watched(op.ufunc, op.name, *values, out=plain(outs[0]), **call.options)  # type: ignore[arg-type]
        return outs[0]
    targets = tuple(
        o if o is None or is_sharded(o) else from_global(plain(o), rt.default_layout(plain(o).shape)) for o in outs
    )
    found = elementwise(
        op, call.inputs, targets, call.where, order=call.order, result_dtype=call.result_dtype, **call.options
    )
    results = found if op.nout > 1 else (found,)
    for out, result in zip(outs, results, strict=True):
        if out is not None and not is_sharded(out):
            plain(out)[...] = gather(result)
    return call.returned(results)


def _values_here(rt: Runtime, call: ElementwiseCall) -> list[object] | None:
    """The values of a call's operands in the memory of the only rank; None where NumPy may have other bits there.

    Executes what the operands need.
    """
    (out,) = call.outs
    if call.where is not True or call.order != "K" or not call.options.keys() <= {"casting"}:
        return None
    if call.op.ufunc is None or call.op.name in STRIDE_SENSITIVE or not windows.limit:
        return None
    operands = [operand_of(x) for x in call.inputs]
    arrays = [metadata(x) for x in (*operands, out) if isinstance(x, Handle | _ndarray)]
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


def _record(rt: Runtime, call: ElementwiseCall, usual: bool = False) -> Any:
    """Record a call of which some array is sharded, as are all outputs that are given.

    Parameters
    ----------
    usual : bool
        Whether there are no options, so that calls like it may be replayed.
    """
    op, outs, where = call.op, call.outs, call.where
    operands = [operand_of(x) for x in call.inputs]
    kinds = tuple(map(_kind, operands))
    loop = _loop(call, operands, kinds)
    operands = _typed(call, operands, loop, usual)
    if lost := _lost_parts(call, loop):
        _shape(call, operands)  # its errors come first
        for _ in range(lost):
            warn_of_real_part()
        with told_as(op.name, rt.events.begin_call()):
            return _by_way_of_new_arrays(rt, call._replace(inputs=tuple(operands)))
    bounds = bounds_of(op, operands, loop) if _have_numbers(kinds) else ()
    if bounds and not within(bounds, operands):
        operands = fitted(op, operands, kinds, loop, bounds, call.options)
    shape = _shape(call, operands)
    if op.nout > 1 and not _owned_alike(outs):
        return _by_way_of_new_arrays(rt, call)
    dtypes = loop[op.nin :]
    layout, space = choose_space(rt, operands, outs, where, shape, max(d.itemsize for d in dtypes))
    if space is None:
        return _write_elsewhere(rt, call._replace(inputs=tuple(operands)))
    creates = tuple(o is None for o in outs)
    axes = order_axes(call.order, _arrays(operands, outs), shape) if any(creates) else None
    results = tuple(
        make_storage(shape, kind, layout, axes) if o is None else o for o, kind in zip(outs, dtypes, strict=True)
    )
    for result, made in zip(results, creates, strict=True):
        result._storage.movable |= made
    reads = tuple(read_of(rt, x, shape, space) if isinstance(x, Handle | _ndarray) else x for x in operands)
    mask = None if where is True else read_of(rt, operand_of(where), shape, space)
    now = can_raise(op, kinds, dtypes)
    statement = Elementwise(op, reads, tuple(map(ref_of, results)), creates, mask, call.options, space)
    is_scalar = shape == () and any(creates)
    if usual and op.nout == 1 and not is_scalar and _are_own(reads, operands):
        remember(statement, operands, results[0], call.result_dtype, now, bounds)
    rt.program.append(statement, now)
    if is_scalar:
        results = tuple(item(x) if made else x for x, made in zip(results, creates, strict=True))
    return call.returned(results)


def _kind(x: object) -> np.dtype | type:
    """The dtype of an operand, or the type of one of Python's numbers."""
    if isinstance(x, Handle):
        return x._array.dtype
    return x.dtype if isinstance(x, _ndarray) else scalar_kind(x)


def _have_numbers(kinds: Kinds) -> bool:
    """Whether there are Python's numbers among operands."""
    return any(isinstance(kind, type) for kind in kinds)


def _arrays(operands: Sequence[object], outs: Sequence[object]) -> list[np.ndarray]:
    """What has shape, dtype and strides of the operands, and of the outputs that are given, that are arrays."""
    return [metadata(x) for x in (*operands, *outs) if isinstance(x, Handle | _ndarray)]


def _typed(call: ElementwiseCall, operands: list, loop: tuple[np.dtype, ...], usual: bool) -> list:
    """The operands as the loop's kinds of dtypes want them, with NumPy's errors, and warnings of what is discarded."""
    unsafe = call.options.get("casting") == "unsafe"
    if unsafe and "signature" not in call.options:  # by which numbers would have to be of its dtypes
        operands = [of_kind(x, kind) for x, kind in zip(operands, loop, strict=False)]
    if call.op.ufunc is not None and not usual:
        check_numbers(operands, loop)
        if unsafe:
            operands = [without_imaginary_part(x, kind) for x, kind in zip(operands, loop, strict=False)]
    return operands


def _lost_parts(call: ElementwiseCall, loop: tuple[np.dtype, ...]) -> int:
    """Of how many outputs NumPy discards imaginary parts as it casts a loop's results to them, or them for the loop.

    With a mask it casts what is in an output, too, as if the loop read it.
    """
    if call.op.ufunc is None or (call.where is True and call.options.get("casting") != "unsafe"):
        return 0
    dtypes = zip(loop[call.op.nin :], call.outs, strict=True)
    written = [(kind, o._array.dtype) for kind, o in dtypes if o is not None]
    return sum(is_real_part(*pair) or (call.where is not True and is_real_part(*pair[::-1])) for pair in written)


def _loop(call: ElementwiseCall, operands: list, kinds: Kinds) -> tuple[np.dtype, ...]:
    """The dtypes of inputs and outputs in which a call is computed, or NumPy's error where there are none."""
    op, outs = call.op, call.outs
    if op.ufunc is None:
        made = outs[0]._array.dtype if call.result_dtype is None else call.result_dtype
        return (*kinds, made)  # type: ignore[arg-type]
    try:
        loop = _ufunc_loop(op, kinds, outs, call.options)
    except TypeError:
        if any(o is not None for o in outs):  # that a number does not fit is told first
            loop = _ufunc_loop(op, kinds, (None,) * op.nout, call.options)
            fitted(op, operands, kinds, loop, bounds_of(op, operands, loop), call.options)
        raise
    if any(_has_no_cast(kind, needed) for kind, needed in zip(kinds, loop, strict=False)):
        numpy_error(op.ufunc, operands, {"where": call.where, **call.options})
    return loop


def _has_no_cast(kind: np.dtype | type, needed: np.dtype) -> bool:
    """Whether records cannot be cast to their loop's dtype at all, which resolution does not ask of them."""
    return isinstance(kind, np.dtype) and kind.kind == "V" and not np.can_cast(kind, needed, "unsafe")


def _ufunc_loop(op: Op, kinds: Kinds, outs: tuple, options: Keywords) -> tuple[np.dtype, ...]:
    """The dtypes of a ufunc's loop."""
    assert op.ufunc is not None
    signature = options.get("signature")
    if "dtype" in options:
        signature = (None,) * op.nin + (options["dtype"],) * op.nout
    given = tuple(None if o is None else o._array.dtype for o in outs)
    return loop_dtypes(op.ufunc, (*kinds, *given), options.get("casting", "same_kind"), signature)


def _shape(call: ElementwiseCall, operands: list) -> tuple[int, ...]:
    """The shape over which a call iterates, or NumPy's error where operands and outputs have none, or are read-only."""
    op, outs = call.op, call.outs
    shapes = [x.shape for x in _arrays(operands, ())]
    if call.where is not True:
        shapes.append(np.shape(metadata(call.where)))
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
        if op is SELECT and not call.given:
            numpy_error(np.where, operands)
        numpy_error(op.ufunc or _copy_like, operands, {**call.given, **call.options} if op.ufunc else call.given)
    return shape


def _copy_like(
    *operands: ArrayLike, out: tuple[np.ndarray, ...] | None = None, where: np.ndarray | bool = True
) -> tuple[np.ndarray, ...]:
    if out is not None:
        np.copyto(out[0], operands[0], where=where)
    return np.broadcast_arrays(*operands)


def _are_own(reads: tuple, operands: list) -> bool:
    """Whether a statement reads its operands' own storages, broadcast perhaps, but not redistributed."""
    return all(
        r.storage is x._storage if isinstance(x, Handle) else type(r) is not Ref
        for r, x in zip(reads, operands, strict=True)
    )


def _owned_alike(outs: tuple) -> bool:
    """Whether a rank that computes a part of one output owns this part of every other: they are one iteration space."""
    spaces = [ref_of(o).view.write_space for o in outs if o is not None]
    if any(s is None or s != spaces[0] for s in spaces):
        return False
    return not spaces or all(o is not None for o in outs) or isinstance(spaces[0], Layout)


def _by_way_of_new_arrays(rt: Runtime, call: ElementwiseCall) -> object:
    """Outputs that the loop cannot write, as where they are divided differently: assigned from results of its own."""
    arrays, order = _arrays(call.inputs, call.outs), call.order
    if order == "K" and order_axes(order, arrays, broadcast_shapes(*(x.shape for x in arrays))) is None:
        order = "C"  # the given outputs have a say in the memory order of new ones
    nout = call.op.nout
    with rt.events.together:
        found = _record(rt, call._replace(outs=(None,) * nout, order=order, result_dtype=None))
        made = found if nout > 1 else (found,)
        for target, value in zip(call.outs, made, strict=True):
            if target is not None:
                elementwise(COPY, (value,), (target,), call.where)
    return call.returned(made)


def _write_elsewhere(rt: Runtime, call: ElementwiseCall) -> object:
    """A target whose owners hold no boxes: write into a copy of its storage that is cut otherwise, and copy back."""
    targets = []
    for o in call.outs:
        if o is None or ref_of(o).view.write_space is not None:
            targets.append(o)
            continue
        storage = o._storage
        for layout in _layouts_to_try(rt, storage.shape):
            trial = make_storage(storage.shape, storage.dtype, layout)
            if Ref(trial._storage, o._array).view.write_space is not None:
                break
        copy_whole(rt, trial, storage)
        targets.append(trial._seen_as(o._array))
    with rt.events.together:
        results = _record(rt, call._replace(outs=tuple(targets)))
        for o, moved in zip(call.outs, targets, strict=True):
            if o is not moved:
                whole, copy = o._storage, moved._storage
                read, target = Ref(copy, copy.meta_array()), Ref(whole, whole.meta_array())
                rt.program.append(Elementwise(COPY, (read,), (target,), (False,), None, NO_OPTIONS, whole.layout))
    return call.returned(results if call.op.nout > 1 else (results,))


def _layouts_to_try(rt: Runtime, shape: tuple[int, ...]) -> list[Layout]:
    cuts = [rt.default_layout(shape, split=axis) for axis in range(len(shape)) if shape[axis] >= rt.size]
    pinned = Layout(shape, rt.flat_mesh, (Pinned(0),))
    return [*cuts, pinned]
