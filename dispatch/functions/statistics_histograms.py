"""Statistics by counting: how many elements have a value or lie between two."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np

from numpy_dist import engine
from numpy_dist.argument_types import Function, Keywords
from numpy_dist.dispatch.core.operands import as_operand
from numpy_dist.dispatch.core.registry import implements
from numpy_dist.dispatch.patterns.arguments import as_handle, astype
from numpy_dist.dispatch.patterns.blocks import blocks, exact_layout
from numpy_dist.dispatch.patterns.fold import folded, own_blocks
from numpy_dist.dispatch.patterns.numpy_source import adopt, numpy_source
from numpy_dist.dispatch.patterns.replicate import known
from numpy_dist.layout.layout import Layout
from numpy_dist.parallel.bins import can_count, count, occurrences
from numpy_dist.parallel.extremes import extremes

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from numpy_dist.distarray import DistArray


def _direction(bins: DistArray | np.ndarray) -> int:
    """As NumPy's private ``_monotonicity``: 1 if the values ascend, -1 if they descend, else 0.

    The first values that are not alike say which of both is asked: where one of them is no number, NumPy asks whether
    they descend.
    """
    # Its errors for values that are no floating-point numbers, and for bins that are no row of numbers.
    np.digitize(0.0, np.zeros((1,) * bins.ndim, bins.dtype))
    if len(bins) < 2:
        return 1
    others = bins[1:] != bins[0]
    at = int(np.argmax(others)) + 1
    if not others[at - 1]:
        return 1  # all are alike
    if bins[0] < bins[at]:
        return 0 if np.any(bins[:-1] > bins[1:]) else 1
    return 0 if np.any(bins[:-1] < bins[1:]) else -1


adopt(__name__, np.digitize, _monotonicity=_direction)

_bin_edges: Function = numpy_source(np.histogram_bin_edges)
_ravelled: Callable[..., tuple[DistArray, DistArray | None]] = _bin_edges.__globals__["_ravel_and_check_weights"]


@implements(np.bincount, kind="parallel")
def bincount(x: object, /, weights: ArrayLike | None = None, minlength: SupportsIndex = 0) -> DistArray:
    """Collective: one allgather of the largest, and one message from each rank to each owner of the counts."""
    x = as_handle(x)
    weights, given = (None, None) if weights is None or not x.size else _weights(weights)  # of nothing NumPy needs none
    one: np.ndarray = np.zeros((1,) * x.ndim, x.dtype)
    np.bincount(one, minlength=minlength)  # NumPy's errors for what is wrong with any values
    layout = exact_layout(x)
    fits = weights is not None and weights.shape == x.shape and np.can_cast(weights.dtype, float)
    (counted, heavy), owner = own_blocks(layout, x, weights if fits else None)
    found, high, negative = occurrences(counted, heavy, most := _most_counts(x.nbytes))
    told = engine.runtime().comm.allgather((high, negative))
    if any(negative for _, negative in told):
        np.bincount(np.full(1, -1))  # NumPy's error; also for what is unsigned, and too large
    if weights is not None and not fits:  # which NumPy looks at next
        np.bincount(one, given)
        raise ValueError("The weights and list don't have the same length.")
    length = max(int(minlength), max(high for high, _ in told) + 1)
    with np.errstate(all="ignore"):  # as in `occurrences`
        if found is None or length > most:
            return _sparse_counts(x, weights, length)
        if found.size < length:
            found = np.concatenate([found, np.zeros(length - found.size, found.dtype)])
        return folded(found, layout, owner)


def _weights(given: ArrayLike) -> tuple[DistArray, ArrayLike]:
    """Weights as a handle, and what NumPy finds the same faults with."""
    if isinstance(given, np.ndarray | engine.Handle):
        weights = as_handle(given)
        return weights, np.zeros((1,) * weights.ndim, weights.dtype)
    try:
        return as_handle(np.asarray(given, float)), given
    except (TypeError, ValueError):  # NumPy looks at the elements first, and raises then
        return as_handle(np.zeros((), object)), given


def _most_counts(nbytes: int) -> int:
    """How many counts a rank may have, if it has all of them, for so many bytes of elements on all ranks together.

    A rank then has at most three times its part of elements and counts.
    """
    size = engine.runtime().size
    return max(1 << 20, 2 * nbytes // (size - 2) if size > 2 else 8 * nbytes) // 8


def _sparse_counts(x: DistArray, weights: DistArray | np.ndarray | None, length: int) -> DistArray:
    """Many more counts than elements: nobody has them all, and what a rank counts goes to their owners."""
    kind = np.dtype(np.intp if weights is None else float)
    counts = engine.full((length,), 0, kind, layout=engine.default_layout((length,)))
    added = 1 if weights is None else astype(weights, float, copy=False)
    np.add.at(counts, astype(x, np.intp, copy=False), added)
    return counts


@implements(np.histogram_bin_edges, kind="composed")
def histogram_bin_edges(a: object, bins: object = 10, range: object = None, weights: object = None) -> engine.Handle:
    found = _bin_edges(a, bins, range, weights)
    return found if engine.is_handle(found) else engine.wrap(found)


@implements(np.histogram, kind="parallel")
def histogram(
    a: object, bins: ArrayLike = 10, range: object = None, density: object = None, weights: object = None
) -> tuple[DistArray, engine.Handle]:
    """Collective: the extremes, if they are not given, and one message from each rank to each owner of the counts."""
    a, weights = _ravelled(as_handle(a), None if weights is None else as_handle(weights))
    simple = range is None and np.ndim(bins) == 0 and not isinstance(bins, str) and a.dtype.kind in "iuf" and a.size
    found = None if simple else histogram_bin_edges(a, bins, range, weights)
    edges = None if found is None else known(found, np.histogram, "the edges of the bins")
    layout = exact_layout(a)
    (counted, heavy), owner = own_blocks(layout, a, weights)
    if edges is None:
        edges = np.histogram_bin_edges(np.array(extremes(counted, engine.runtime().comm), a.dtype), bins)
    if simple and heavy is None and can_count(counted, edges):
        counts = count(counted, edges)
    else:
        how: Keywords = (
            {"bins": len(edges) - 1, "range": (edges[0], edges[-1])} if np.ndim(bins) == 0 else {"bins": edges}
        )
        # NumPy's errors, on all ranks alike: one without elements would meet none, as NumPy does if there are none.
        few = min(a.size, 1)
        np.histogram(np.ones(few, counted.dtype), weights=None if heavy is None else np.ones(few, heavy.dtype), **how)
        counts = np.histogram(counted, weights=heavy, **how)[0]
    total = folded(counts, layout, owner)
    if density:
        total = total / np.array(np.diff(edges), float) / np.sum(total)
    return total, engine.wrap(edges) if found is None else found


_range = range  # a parameter has this name, too
_source: Function = numpy_source(np.histogramdd)
_outer_edges: Callable[..., tuple[np.floating, np.floating]] = _source.__globals__["_get_outer_edges"]


@implements(np.histogramdd, kind="parallel")
def histogramdd(
    sample: Any,
    bins: Any = 10,
    range: Sequence[tuple[float, float]] | None = None,
    density: object = None,
    weights: object = None,
) -> tuple[DistArray, list[DistArray]]:
    """Collective: the extremes of each dimension, and one message from each rank to each owner of the counts."""
    if getattr(sample, "ndim", 0) != 2:  # a sequence of columns
        sample = np.transpose(np.atleast_2d(as_operand(sample)))
    sample = as_handle(sample)
    weights = None if weights is None else as_handle(weights)
    depth = sample.shape[1]
    scalar = not hasattr(bins, "__len__")
    if not scalar:
        bins = [known(x, np.histogramdd, "edges of the bins") if engine.is_handle(x) else x for x in bins]
    none: np.ndarray | None = None if weights is None else np.zeros((0,) * weights.ndim, weights.dtype)
    edges: Any = np.histogramdd(np.zeros((0, depth)), bins, range, None, none)[1]  # NumPy's errors
    if weights is not None and tuple(weights.shape) != sample.shape[:1]:
        np.bincount(np.zeros(2, int), np.zeros(1))  # NumPy's error
    for k, each in enumerate([bins] * depth if scalar else bins):
        if np.ndim(each) == 0:
            low, high = _outer_edges(sample[:, k], None if range is None else range[k])
            edges[k] = np.linspace(low, high, operator.index(each) + 1)
    counts, layout = _counts(sample, edges, weights)
    total = folded(counts, layout, [layout.primary(rank) for rank in _range(layout.size)])
    if density:  # as NumPy's source
        whole = total.sum()
        for k, each in enumerate(edges):
            total = total / np.diff(each).reshape([-1 if j == k else 1 for j in _range(depth)])
        total /= whole
    return total, [engine.wrap(each) for each in edges]


def _counts(sample: DistArray, edges: list[np.ndarray], weights: DistArray | None) -> tuple[np.ndarray, Layout]:
    """What this rank's rows add to the counts, and how the rows are divided."""
    layout = engine.layout_of(sample) if engine.is_sharded(sample) else None
    if layout is None or any(layout.cut_axes):
        layout = engine.default_layout(tuple(sample.shape), split=0)
    its = layout.drop_axes([1])
    arrays = [(engine.aligned(sample, layout), layout)]
    arrays += [] if weights is None else [(engine.aligned(weights, its), its)]
    found: list[np.ndarray] = list(blocks(*arrays))
    if not layout.primary(engine.runtime().rank):  # copies, which another rank counts
        found = [np.zeros((0, *sample.shape[1:]), sample.dtype), *(each[:0] for each in found[1:])]
    made = np.histogramdd(found[0], edges, weights=found[1] if found[1:] else None)[0]
    return np.ascontiguousarray(made), its


adopt(__name__, np.histogram2d)
