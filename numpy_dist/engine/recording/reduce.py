"""Recording of reductions: which dtype, which shape, who owns the result.

Elements are not grouped as NumPy does: where the factors of a part of a product overflow or vanish, the result is inf,
NaN or 0, though NumPy's order of multiplication may stay in range, and the other way round: `np.prod` asks beforehand.
"""

from __future__ import annotations

import warnings
from contextlib import nullcontext
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike

from numpy_dist.argument_types import Axes, Keywords
from numpy_dist.engine.data import windows
from numpy_dist.engine.data.folds import EXACT
from numpy_dist.engine.data.gather import gather, item
from numpy_dist.engine.data.ingest import from_global, make_storage, shardable
from numpy_dist.engine.data.totals import TRUTHS, reduced, total
from numpy_dist.engine.data.watch import watched
from numpy_dist.engine.events.floating import told_as
from numpy_dist.engine.memory.handle import Handle, is_sharded, metadata, plain, ref_of
from numpy_dist.engine.recording.casts import is_real_part, warn_of_real_part
from numpy_dist.engine.recording.copies import assign, copy, fits
from numpy_dist.engine.recording.numpy_errors import numpy_error
from numpy_dist.engine.recording.operands import choose_space, operand_of, read_of
from numpy_dist.engine.recording.record import mask_of, wrap
from numpy_dist.engine.recording.replay import (
    REDUCTION_TEMPLATES,
    reduction_key,
    remember_reduction,
    replay_reduction,
)
from numpy_dist.engine.runtime import Runtime, runtime
from numpy_dist.ir import structure
from numpy_dist.ir.meta_arrays import Unshardable
from numpy_dist.ir.ops import COPY, op_of
from numpy_dist.ir.rules import (
    begins_in_output,
    begins_with_an_element,
    can_raise,
    dtype_char,
    iteration_axes,
    reduction_dtype,
)
from numpy_dist.ir.statements import Reduction
from numpy_dist.layout.layout import Copies, Cut, Layout
from numpy_dist.settings import config

if TYPE_CHECKING:
    from numpy_dist.layout.layout import Pinned

_REDUCIBLE = frozenset(
    (
        np.add,
        np.multiply,
        np.maximum,
        np.minimum,
        np.fmax,
        np.fmin,
        np.logical_and,
        np.logical_or,
        np.logical_xor,
        np.bitwise_and,
        np.bitwise_or,
        np.bitwise_xor,
        np.gcd,
        np.lcm,
    )
)


def reducible(ufunc: np.ufunc, dtype: np.dtype) -> bool:
    """Whether `reduction` can do a ufunc: associative ones, whose partial results may be folded in any grouping."""
    return ufunc in _REDUCIBLE and shardable(dtype)


def reduction(
    ufunc: np.ufunc,
    x: Any,
    axis: Axes = 0,
    dtype: DTypeLike | None = None,
    out: object = None,
    keepdims: object = False,
    initial: object = np._NoValue,
    where: object = True,
) -> Any:
    """Record ``ufunc.reduce``.

    Parameters
    ----------
    ufunc : numpy.ufunc
        One that is `reducible`.
    x, axis, dtype, out, keepdims, initial, where
        NumPy's; ``axis=None`` reduces over all axes.

    Returns
    -------
    handle or scalar
        A scalar executes the program and is collective (one allgather of partial results).

    Raises
    ------
    Unrecordable
        If the results are Python objects, or partial results cannot be combined.

    Notes
    -----
    Ranks reduce their shards, one sweep fused with the element-wise work before it, and the owners of the result fold
    partial results in rank order. Float sums are within NumPy's error and depend on shape, layout and rank count only.
    """
    keepdims, where = bool(keepdims), mask_of(where)
    out = out[0] if isinstance(out, tuple) else out
    usual = out is None and where is True and initial is np._NoValue
    if usual and (elements := windows.elements_at_hand(x)) is not None:
        made = _of_elements(ufunc, elements, axis, dtype, keepdims)
        if made is not None:
            return windows.near(made) if type(made) is np.ndarray else made
    if not (is_sharded(x) or is_sharded(where)):
        return _at_once(ufunc, x, axis, dtype, out, keepdims, initial, where)
    if usual and not keepdims and (made := total(runtime(), ufunc, x, axis, dtype)) is not None:
        return made
    key = reduction_key(ufunc, x, axis, dtype, keepdims) if usual else None
    if (template := REDUCTION_TEMPLATES.get(key)) is not None:
        return _scalar_or_array(replay_reduction(template, x))
    return _record_reduction(ufunc, x, axis, dtype, out, keepdims, initial, where, key)


def _record_reduction(
    ufunc: np.ufunc,
    x: Any,
    axis: Axes,
    dtype: DTypeLike | None,
    out: object,
    keepdims: bool,
    initial: object,
    where: Any,
    key: tuple | None,
) -> object:
    """Record a reduction that has no template; one is kept under `key`, unless the operand has to be cast first."""
    start = {} if initial is np._NoValue else {"initial": initial}
    kwargs = {"axis": axis, "dtype": dtype, "keepdims": keepdims, "where": where, **start}
    array = _metadata(x)
    axes = _axes(ufunc, x, array.ndim, kwargs)
    wanted, target = None if dtype is None else np.dtype(dtype), None if out is None else metadata(out).dtype
    kind = _loop_dtype(ufunc, (array.dtype, wanted, target))
    if not shardable(kind):
        raise Unshardable(kind)
    given, x = x, _cast(x, kind, where)
    key = key if x is given else None
    array = _metadata(x)
    shape = tuple(1 if a in axes else n for a, n in enumerate(array.shape) if keepdims or a not in axes)
    mask = None if where is True else np.shape(metadata(where))
    if mask is not None and (len(mask) > array.ndim or not fits(mask, array.shape)):
        numpy_error(ufunc.reduce, (x,), kwargs)
    if _lacks_a_value(ufunc, array.shape, axes, initial, where):
        numpy_error(ufunc.reduce, (x,), kwargs)
    if out is not None and metadata(out).shape != shape:
        numpy_error(ufunc.reduce, (x,), {**kwargs, "out": out})
    if target is not None and begins_in_output(ufunc, kind, target, initial):
        x = _begun_in_output(x, axes, kind, target)
        array = metadata(x)
    first = start.get("initial")
    if first is not None:
        first = _as_element(first, kind)
    with nullcontext() if out is None else runtime().events.together:
        if ufunc is np.add and kind.kind in "fc" and array.ndim and (parts := _negative_zeros(first)):
            made = reduction(ufunc, x, axis, kind, None, True, where=where)
            _keep_signs(made, np.astype(x, kind, copy=False), axes, where, parts)
            made = made if keepdims else made._view(np.ndarray.squeeze, axes)
        else:
            made = _append(ufunc, x, array, axes, kind, keepdims, first, where, shape, key)
        return _scalar_or_array(made) if out is None else _deliver(made, out)


def _metadata(x: object) -> np.ndarray:
    """The shape, dtype and strides of an operand, as an array."""
    return metadata(x) if isinstance(x, Handle) else np.asarray(x)


def _cast(x: object, kind: np.dtype, where: object) -> Any:
    """An operand whose elements can be put together in a loop of this dtype: itself, its real part, or a copy."""
    dtype = _metadata(x).dtype
    if is_real_part(dtype, kind):
        warn_of_real_part()
        x = x._view(structure.attribute, "real") if isinstance(x, Handle) else np.asarray(x).real
    # Sums are wider within: what is too large overflows before. What a mask leaves out is cast, too, and may warn.
    narrow = kind == np.float16 != dtype or (where is not True and dtype.kind in "fc" and kind.kind in "iu")
    if narrow and is_sharded(x):
        with told_as("reduce"):
            return copy(x, dtype=kind)
    return x


def _begun_in_output(x: Handle, axes: tuple[int, ...], kind: np.dtype, target: np.dtype) -> Handle:
    """A copy of the operand whose first elements along the axes are as an output of dtype `target` holds them."""
    first = tuple(slice(0, 1) if a in axes else slice(None) for a in range(x._array.ndim))
    made = copy(x, dtype=kind)
    assign(made._view(structure.index, first), copy(x._view(structure.index, first), dtype=target))
    return made


def _as_element(value: object, kind: np.dtype) -> np.generic:
    """A value as an element of this dtype, or NumPy's error: here on every rank, and not later on one of them."""
    cell = np.empty(1, kind)
    watched(cell.__setitem__, "cast", 0, value)
    return cell[0]


def _negative_zeros(initial: object) -> tuple[str, ...]:
    """The parts, "real" and "imag", of which an initial value of a sum has negative zeros."""
    if not isinstance(initial, float | complex | np.inexact) or initial != 0:
        return ()
    return tuple(part for part in ("real", "imag") if np.signbit(getattr(initial, part)))


def _keep_signs(sums: Handle, x: object, axes: tuple[int, ...], where: Any, parts: tuple[str, ...]) -> None:
    """Make sums negative zeros, whose terms all are, as the initial value is: the engine's sums begin with 0."""
    for part in parts:
        if part == "imag" and sums.dtype.kind != "c":
            continue
        terms = getattr(x, part)
        negative = np.logical_and(terms == 0, np.signbit(terms))
        assign(getattr(sums, part), -0.0, where=np.all(negative, axis=axes, keepdims=True, where=where))


def _scalar_or_array(made: Handle) -> object:
    return item(made) if made._array.shape == () else made


def _lacks_a_value(
    ufunc: np.ufunc, given: tuple[int, ...], axes: tuple[int, ...], initial: object, where: object
) -> bool:
    """Whether some result would have nothing to begin with, which NumPy refuses, also where there are no results."""
    if not begins_with_an_element(ufunc, initial):
        return False
    return where is not True or any(given[a] == 0 for a in axes)


def _axes(ufunc: np.ufunc, x: object, ndim: int, kwargs: Keywords) -> tuple[int, ...]:
    """The reduced axes; NumPy lets `axis` be 0 or -1 for an array without axes."""
    axis = kwargs["axis"]
    # Truth values are integers to Python, and sequences of axes are tuples to NumPy.
    if bool in map(type, axis if isinstance(axis, tuple) else (axis,)) or not isinstance(axis, tuple) and np.ndim(axis):
        numpy_error(ufunc.reduce, (x,), kwargs)
    if axis is None or (ndim == 0 and axis in (0, -1)):
        return tuple(range(ndim))
    try:
        return np.lib.array_utils.normalize_axis_tuple(axis, ndim)
    except (ValueError, TypeError):
        numpy_error(ufunc.reduce, (x,), kwargs)


def _deliver(made: Handle, out: object) -> object:
    if is_sharded(out):
        assign(out, made, named="output array")
    else:
        plain(out)[...] = gather(made)
    return out


def _of_elements(ufunc: np.ufunc, elements: np.ndarray, axis: Axes, dtype: DTypeLike | None, keepdims: bool) -> object:
    """The reduction of an array at hand by NumPy; None where the engine has to do it."""
    if ufunc not in EXACT or not elements.size:
        return None
    if dtype is not None and (elements.dtype.kind != "f" or np.dtype(dtype) != elements.dtype or ufunc in TRUTHS):
        return None
    return reduced(ufunc, elements, axis, keepdims)


def _at_once(
    ufunc: Any,
    x: object,
    axis: Axes,
    dtype: DTypeLike | None,
    out: object,
    keepdims: bool,
    initial: object,
    where: object,
) -> object:
    options = {} if initial is np._NoValue else {"initial": initial}
    values = plain(x)
    if is_sharded(out):
        made = np.empty(out._array.shape, out._array.dtype)
        ufunc.reduce(values, axis, dtype, made, keepdims, where=plain(where), **options)
        assign(out, wrap(made), named="output array")
        return out
    result = ufunc.reduce(
        values, axis, dtype, None if out is None else plain(out), keepdims, where=plain(where), **options
    )
    return out if out is not None else wrap(result)


def _loop_dtype(ufunc: np.ufunc, kinds: tuple[np.dtype, np.dtype | None, np.dtype | None]) -> np.dtype:
    """Dtype of the result before it is cast to `out`, by NumPy itself on one element (so errors are NumPy's).

    `kinds` are the dtypes of the operand, the argument `dtype`, and `out`.
    """
    return _known_loop_dtype(ufunc, kinds, tuple(map(dtype_char, kinds)))


@lru_cache(maxsize=1024)
def _known_loop_dtype(ufunc: np.ufunc, kinds: tuple, chars: tuple[str | None, ...]) -> np.dtype:
    kind, dtype, out = kinds
    probe = np.ones(1, kind)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", np.exceptions.ComplexWarning)  # see `warn_of_real_part`
        if out is not None:
            ufunc.reduce(probe, dtype=dtype, out=np.empty((), out))
            if dtype is None:  # the target takes part in the choice of the loop, and small integers are not widened
                return reduction_dtype(ufunc, kind, out)
        return ufunc.reduce(probe, dtype=dtype, keepdims=True).dtype


def _append(
    ufunc: np.ufunc,
    x: Any,
    array: np.ndarray,
    axes: tuple[int, ...],
    kind: np.dtype,
    keepdims: bool,
    initial: object,
    where: object,
    shape: tuple[int, ...],
    key: tuple | None,
) -> Handle:
    rt = runtime()
    if is_sharded(x) and can_raise(COPY, (array.dtype,), (kind,)):  # a text that is no number, on some ranks only
        x, key = copy(x, dtype=kind), None
        array = x._array
    source = operand_of(x) if isinstance(x, Handle | np.ndarray) else array
    if not isinstance(source, Handle | np.ndarray):
        source = array
    lead: Any = source if is_sharded(source) else where
    if lead._array.shape != array.shape and is_sharded(source) is False:
        source = from_global(array, rt.default_layout(array.shape), compared=True)
        lead = source
    layout, space = choose_space(rt, [lead], (None,), True, array.shape, kind.itemsize)
    ref = read_of(rt, source, array.shape, space)
    mask = None
    if where is not True:
        operand = operand_of(where)
        mask = read_of(
            rt, operand if isinstance(operand, Handle | np.ndarray) else np.asarray(operand), array.shape, space
        )
    partial = np.dtype(np.float32) if kind.char == "e" and ufunc in (np.add, np.multiply) else kind
    out_layout = _result_layout(rt, layout, axes, shape, keepdims, kind.itemsize)
    made = make_storage(shape, kind, out_layout, _memory_axes(array, metadata(where), axes, keepdims))
    statement = Reduction(op_of(ufunc), ref, ref_of(made), mask, axes, partial, initial, space, keepdims)
    now = can_raise(statement.op, (array.dtype,), (kind,))
    if key is not None and ref is ref_of(x) and not now:
        remember_reduction(key, statement, made)
    rt.program.append(statement, now)
    return made


def _memory_axes(array: np.ndarray, where: object, axes: tuple[int, ...], keepdims: bool) -> tuple[int, ...] | None:
    """Memory order of a result: that of the operands (NumPy iterates over these), without the axes that go."""
    order = iteration_axes([array] if where is True else [array, np.asarray(where)], array.shape)
    if order is None or keepdims:
        return order
    kept = [a for a in order if a not in axes]
    places = {a: place for place, a in enumerate(sorted(kept))}
    order = tuple(places[a] for a in kept)
    return None if order == tuple(range(len(kept))) else order


def _result_layout(
    rt: Runtime, layout: Layout, axes: tuple[int, ...], shape: tuple[int, ...], keepdims: bool, itemsize: int
) -> Layout:
    """The operand's layout without the reduced axes; the default one where a large result would lie on every rank."""
    dims: list[Cut | Copies | Pinned] = []
    reduced = False
    for dim in layout.dims:
        if not isinstance(dim, Cut):
            dims.append(dim)
        elif dim.axis in axes:
            dims.append(Copies())
            reduced = True
        else:
            dims.append(dim if keepdims else Cut(dim.axis - sum(a < dim.axis for a in axes), dim.points))
    nbytes = itemsize
    for n in shape:
        nbytes *= n
    if reduced and shape and nbytes >= max(config.MIN_SHARD_BYTES, 1) and rt.size > 1:
        return rt.default_layout(shape)
    return Layout(shape, layout.mesh, tuple(dims))
