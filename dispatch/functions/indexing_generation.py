"""Generation of index arrays: positions of what is not zero, coordinates, triangles and diagonals, `r_` and `c_`."""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterable, Sequence
from itertools import accumulate
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from numpy_dist import engine
from numpy_dist.argument_types import Arguments
from numpy_dist.backends.library import compute
from numpy_dist.dispatch.core.registry import decline, implements
from numpy_dist.dispatch.functions.array_creation_by_numpy import Creating, created
from numpy_dist.dispatch.functions.array_creation_from_data import asarray
from numpy_dist.dispatch.functions.array_creation_matrices import numbered_lines
from numpy_dist.dispatch.functions.array_creation_ranges import arange, linspace
from numpy_dist.dispatch.patterns.arguments import NoValue, as_handle, astype, metadata, truth_of
from numpy_dist.dispatch.patterns.blocks import blocks
from numpy_dist.dispatch.patterns.numpy_source import numpy_source
from numpy_dist.dispatch.patterns.take import within
from numpy_dist.dispatch.patterns.threads import over_ranges, threads_of_rank
from numpy_dist.ir.ops import SELECT
from numpy_dist.ir.rules import broadcast_shapes, memory_order
from numpy_dist.parallel import masks

if TYPE_CHECKING:
    from numpy import _ModeKind
    from numpy.typing import ArrayLike

    from numpy_dist.distarray.array import DistArray


_FEW = 1 << 18  # elements that are not worth a thread
_PIECE = 1 << 16  # elements whose positions a cache holds
_ENOUGH = 3  # threads that are faster than NumPy along one axis: what they do takes twice its time


@implements(np.nonzero, kind="parallel")
def nonzero(a: DistArray) -> tuple[DistArray, ...]:
    if a.ndim == 0:
        np.nonzero(np.zeros((), a.dtype))  # NumPy's error
    truth = truth_of(a)
    layout = engine.layout_of(truth) if engine.is_sharded(truth) else None
    if layout is None or layout.is_replicated or not masks.selects_in_order(layout, a.ndim):
        line = np.ravel(truth)
        layout = engine.default_layout(line.shape, split=0)
        truth = engine.aligned(line, layout)
    (block,) = blocks((truth, layout), library=True)
    comm = engine.runtime().comm
    box = layout.box(comm.rank)
    assert box is not None
    with engine.Scratch() as scratch:
        if isinstance(block, np.ndarray):
            indices = _true_places(block, [low for low, _ in box], scratch)
        else:
            found = compute("nonzero", np.nonzero, block)
            indices = tuple(where + low for where, (low, _) in zip(found, box, strict=True))
        result = masks.selection_layout(layout, truth.ndim, comm.allgather(len(indices[0])))
        if truth.ndim != a.ndim:
            shape = tuple(a.shape)
            indices = compute("unravel", lambda flat: np.unravel_index(flat, shape), indices[0], shape=shape)
        return tuple(engine.from_local(each, result)[:] for each in indices)  # NumPy's are views of one array


def _true_places(block: np.ndarray, lows: list[int], scratch: engine.Scratch) -> tuple[np.ndarray, ...]:
    """Where a rank's elements are true: indices along each axis, counted from `lows`; on all threads of the rank."""
    if block.ndim == 1 and threads_of_rank() < _ENOUGH:
        (found,) = np.nonzero(block)
        if lows[0]:
            found += lows[0]
        return (scratch.given(found),)
    each = max(prod(block.shape[1:]), 1)
    step, few = max(_PIECE // each, 1), max(_FEW // each, 1)
    counts = over_ranges(lambda low, high: (low, int(np.count_nonzero(block[low:high]))), len(block), few)
    starts = dict(zip((low for low, _ in counts), accumulate((n for _, n in counts), initial=0), strict=False))
    made = tuple(scratch.empty(sum(n for _, n in counts), np.intp) for _ in lows)

    def fill(first: int, last: int) -> None:
        start = starts[first]
        for low in range(first, last, step):
            found = np.nonzero(block[low : min(low + step, last)])
            stop = start + len(found[0])
            for axis, (where, into) in enumerate(zip(found, made, strict=True)):
                np.add(where, lows[axis] + (0 if axis else low), out=into[start:stop])
            start = stop

    over_ranges(fill, len(block), few)
    return made


@implements(np.where, kind="native", varies=("x", "y"))  # None is an object like others to NumPy's
def where(condition: Any, x: Any = NoValue, y: Any = NoValue, /) -> object:
    if x is NoValue and y is NoValue:
        return np.nonzero(as_handle(condition))
    if x is NoValue or y is NoValue:
        raise ValueError("either both or neither of x and y should be given")
    # Python's numbers are weak in the dtype of the result (NEP 50); a text would be taken for the name of a dtype.
    dtype = np.result_type(*(v if type(v) in _WEAK else metadata(v).dtype for v in (x, y)))
    if dtype.hasobject:
        decline("arrays of Python objects")
    condition = condition if engine.is_handle(condition) else np.asarray(condition)
    if not np.can_cast(condition.dtype, bool, "unsafe"):
        np.where(np.empty(condition.shape, condition.dtype), True, False)  # NumPy's error
    condition = condition if engine.is_handle(condition) else condition.astype(bool)
    integers = [v for v in (x, y) if type(v) is int]
    if integers and (dtype.kind in "iu" or not all(_LEAST <= v < -_LEAST for v in integers)):
        # NumPy's error for integers that do not fit, since 2.5 also for those that int64 holds.
        with np.errstate(all="ignore"):
            np.where(np.zeros(1, bool), *(v if type(v) is int else np.zeros(1, dtype) for v in (x, y)))
    # Shapes that do not fit are an error before a number overflows.
    if (_overflows(x, dtype) or _overflows(y, dtype)) and _fit(*(metadata(v).shape for v in (condition, x, y))):
        x, y = (engine.narrowed(v, dtype) if _overflows(v, dtype) else v for v in (x, y))
    found = engine.elementwise(SELECT, list(map(_chosen, (condition, x, y))), result_dtype=dtype)
    return found if engine.is_handle(found) else engine.wrap(np.asarray(found, dtype))  # an array also without axes


_WEAK = (int, float, complex)
_LEAST = -(1 << 63)  # of int64
_LARGEST = {char: float(np.finfo(char).max) for char in "efF"}


def _fit(*shapes: tuple[int, ...]) -> bool:
    """Whether shapes can be broadcast together."""
    try:
        broadcast_shapes(*shapes)
    except ValueError:
        return False
    return True


def _overflows(value: complex, dtype: np.dtype) -> bool:
    """Whether one of Python's numbers, which are weak, may not fit the dtype of the result."""
    return type(value) in _WEAK and not abs(value) <= _LARGEST.get(dtype.char, np.inf)


def _chosen(value: object) -> object:
    """An array, or a scalar that knows its dtype."""
    return value if engine.is_handle(value) else np.asarray(value)[()]


_numpys_ix = numpy_source(np.ix_)


@implements(np.ix_, kind="structural")
def ix_(*args: object) -> Arguments:
    return tuple(x if engine.is_handle(x) else engine.replicated(x) for x in _numpys_ix(*args))


@implements(np.unravel_index, kind="composed")
def unravel_index(indices: DistArray, shape: Any, order: Any = "C") -> tuple[DistArray, ...]:
    """Collective: whether an index is out of bounds is asked of all ranks."""
    indices = as_handle(indices)
    np.unravel_index(np.zeros(0, indices.dtype), shape, order=order)  # NumPy's own errors
    order = memory_order(order, "C")
    extents = (operator.index(shape),) if np.ndim(shape) == 0 else tuple(map(operator.index, shape))
    size = prod(extents)
    outside = (indices < 0) | (indices >= size)
    if np.any(outside):
        first = int(np.ravel(indices)[int(np.argmax(outside))])
        raise ValueError(f"index {first} is out of bounds for array with size {size}")
    rest = engine.copy(indices, dtype=np.intp, order="K")
    found = []
    for n in extents if order == "F" else reversed(extents):
        found.append(rest % max(n, 1))
        rest = rest // max(n, 1)
    return tuple(found if order == "F" else reversed(found))


@implements(np.ravel_multi_index, kind="composed")
def ravel_multi_index(
    multi_index: Iterable[ArrayLike], dims: Any, mode: _ModeKind | tuple[_ModeKind, ...] = "raise", order: Any = "C"
) -> object:
    """Collective: whether an index is out of bounds is asked of all ranks."""
    parts = [x if engine.is_handle(x) else np.asarray(x) for x in multi_index]
    few = tuple(np.zeros(tuple(min(n, 1) for n in x.shape), x.dtype) for x in parts)
    np.ravel_multi_index(few, dims, mode, order)  # NumPy's own errors
    order = memory_order(order, "C")
    extents = (operator.index(dims),) if np.ndim(dims) == 0 else tuple(map(operator.index, dims))
    try:
        broadcast_shapes(*(x.shape for x in parts))
    except ValueError:
        engine.numpy_error(np.ravel_multi_index, (tuple(parts), dims, mode, order))
    modes = mode if isinstance(mode, tuple) else (mode,) * len(extents)
    found: DistArray | np.ndarray = np.zeros((), np.intp)
    steps = zip(parts, extents, modes, strict=True)
    for part, n, how in reversed(list(steps)) if order == "F" else steps:
        index = within(astype(part, np.intp), n, how)
        if np.any((index < 0) | (index >= n)):
            raise ValueError("invalid entry in coordinates array")
        found = found * n + index
    return found


@implements(np.diag_indices_from, kind="composed")
def diag_indices_from(arr: DistArray) -> tuple[DistArray, ...]:
    if not arr.ndim >= 2:
        raise ValueError("input array must be at least 2-d")
    if not all(n == arr.shape[0] for n in arr.shape):
        raise ValueError("All dimensions of input must be of equal length")
    return (_range(arr.shape[0]),) * arr.ndim


def _range(n: int) -> DistArray:
    return engine.from_reader(lambda box: np.arange(*box[0]), (n,), np.intp, engine.default_layout((n,)))


def _triangle(shape: tuple[int, ...], k: int, lower: bool) -> tuple[DistArray | np.ndarray, ...]:
    """The indices of a triangle of a matrix: those of a mask that each rank makes for its part."""
    if len(shape) != 2:
        raise ValueError("input array must be 2-d")
    n, m = shape
    _, columns = numbered_lines(n, m, k if lower else k - 1)
    below = _range(n)[:, None] >= columns
    return np.nonzero(below if lower else np.logical_not(below))


@implements(np.tril_indices_from, kind="composed")
def tril_indices_from(arr: DistArray, k: int = 0) -> tuple[DistArray | np.ndarray, ...]:
    return _triangle(tuple(arr.shape), k, True)


@implements(np.triu_indices_from, kind="composed")
def triu_indices_from(arr: DistArray, k: int = 0) -> tuple[DistArray | np.ndarray, ...]:
    return _triangle(tuple(arr.shape), k, False)


mask_indices = created(np.mask_indices)
tril_indices = created(np.tril_indices)
triu_indices = created(np.triu_indices)


@functools.wraps(np.diag_indices)
def diag_indices(n: object, ndim: int = 2) -> tuple[DistArray, ...]:
    return (arange(n),) * ndim


class OpenGrid:
    """`numpy.ogrid` with distributed arrays."""

    def __getitem__(self, key: slice | Sequence[slice]) -> Any:
        made = np.ogrid[key]
        return type(made)(map(asarray, made)) if isinstance(made, tuple | list) else asarray(made)


_Concatenator: Any = type(np.r_).__base__


class Concatenator(_Concatenator):  # type: ignore[misc]
    """`numpy.r_` and `numpy.c_` with distributed arrays (gathers only where a matrix is asked for)."""

    _join = numpy_source(_Concatenator.__getitem__, _nx=Creating(np), linspace=linspace)

    def __getitem__(self, key: object) -> engine.Handle | np.matrix:
        made = np.r_[key] if isinstance(key, str) else self._join(key)
        return made if isinstance(made, np.matrix) or engine.is_handle(made) else asarray(made)


ogrid = OpenGrid()
r_ = Concatenator(0)
c_ = Concatenator(-1, ndmin=2, trans1d=0)
