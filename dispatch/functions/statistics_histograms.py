"""Counting: how many elements have a value or lie between two, and where values belong in a sorted array."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from numpy_dist import engine
from numpy_dist.dispatch.core import policy
from numpy_dist.dispatch.core.keys import name_of
from numpy_dist.dispatch.core.registry import Outlook, decline, implements
from numpy_dist.dispatch.functions.picking import integer_getitem
from numpy_dist.dispatch.patterns.arguments import as_handle, blocks, values_of
from numpy_dist.dispatch.patterns.numpy_source import adopt, numpy_source
from numpy_dist.layout.layout import Cut, Layout
from numpy_dist.parallel.bins import can_count, count, occurrences
from numpy_dist.parallel.combine import fold
from numpy_dist.parallel.extremes import extremes
from numpy_dist.parallel.request_reply import ask
from numpy_dist.settings import config


def _direction(bins: Any) -> int:
    """As NumPy's private ``_monotonicity``: 1 if the values ascend, -1 if they descend, else 0."""
    # Its errors for values that are no floating-point numbers, and for bins that are no row of numbers.
    np.digitize(0.0, np.zeros((1,) * bins.ndim, bins.dtype))
    if not np.any(bins[:-1] > bins[1:]):
        return 1
    return 0 if np.any(bins[:-1] < bins[1:]) else -1


adopt(__name__, np.digitize, _monotonicity=_direction)

_bin_edges: Any = numpy_source(np.histogram_bin_edges)
_ravelled: Any = _bin_edges.__globals__["_ravel_and_check_weights"]

# What has to be known to every rank (values that are looked for, points between which others lie) has at most so many
# bytes.
MOST_KNOWN = 1 << 24


def most_known() -> int:
    """From how many bytes on what other ranks have is asked for, rather than known to all.

    That is slower for fewer; with ``FALLBACK="error"`` it is done wherever a replication is not native.
    """
    return min(MOST_KNOWN, policy.most_native()) if config.FALLBACK == "error" else MOST_KNOWN


def outlook_of_known(*arrays: Any) -> Outlook:
    """The outlook of a function that has these arrays brought to every rank, or asked for if they are too many."""
    needed = [x for x in arrays if engine.is_sharded(x)] if engine.runtime().size > 1 else []
    nbytes = sum(x.nbytes for x in needed)
    if any(x.nbytes > most_known() for x in needed):
        return Outlook("parallel", "communicated: what is sought is sent to the ranks that hold its place in the order")
    return Outlook("parallel", f"communicated: {policy.format_bytes(nbytes)} come to every rank", nbytes)


@implements(np.bincount, kind="parallel")
def bincount(x: Any, /, weights: Any = None, minlength: Any = 0) -> Any:
    """Collective: one allgather of the largest, and one message from each rank to each owner of the counts."""
    x = as_handle(x)
    weights, given = (None, None) if weights is None or not x.size else _weights(weights)  # of nothing NumPy needs none
    one: Any = np.zeros((1,) * x.ndim, x.dtype)
    np.bincount(one, minlength=minlength)  # NumPy's errors for what is wrong with any values
    layout = _layout(x)
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


def _weights(given: Any) -> tuple[Any, Any]:
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


def _sparse_counts(x: Any, weights: Any, length: int) -> Any:
    """Many more counts than elements: nobody has them all, and what a rank counts goes to their owners."""
    kind = np.dtype(np.intp if weights is None else float)
    counts = engine.full((length,), 0, kind, layout=engine.default_layout((length,)))
    added = 1 if weights is None else np.astype(weights, float, copy=False)
    np.add.at(counts, np.astype(x, np.intp, copy=False), added)
    return counts


@implements(np.histogram_bin_edges, kind="composed")
def histogram_bin_edges(a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> Any:
    found = _bin_edges(a, bins, range, weights)
    return found if engine.is_handle(found) else engine.wrap(found)


@implements(np.histogram, kind="parallel")
def histogram(a: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None) -> Any:
    """Collective: the extremes, if they are not given, and one message from each rank to each owner of the counts."""
    a, weights = _ravelled(as_handle(a), None if weights is None else as_handle(weights))
    simple = range is None and np.ndim(bins) == 0 and not isinstance(bins, str) and a.dtype.kind in "iuf" and a.size
    found = None if simple else histogram_bin_edges(a, bins, range, weights)
    edges = None if found is None else known(found, np.histogram, "the edges of the bins")
    layout = _layout(a)
    (counted, heavy), owner = own_blocks(layout, a, weights)
    if edges is None:
        edges = np.histogram_bin_edges(np.array(extremes(counted, engine.runtime().comm), a.dtype), bins)
    if simple and heavy is None and can_count(counted, edges):
        counts = count(counted, edges)
    else:
        how: Any = {"bins": len(edges) - 1, "range": (edges[0], edges[-1])} if np.ndim(bins) == 0 else {"bins": edges}
        # NumPy's errors, on all ranks alike: one without elements would meet none, as NumPy does if there are none.
        few = min(a.size, 1)
        np.histogram(np.ones(few, counted.dtype), weights=None if heavy is None else np.ones(few, heavy.dtype), **how)
        counts = np.histogram(counted, weights=heavy, **how)[0]
    total = folded(counts, layout, owner)
    if density:
        total = total / np.array(np.diff(edges), float) / np.sum(total)
    return total, engine.wrap(edges) if found is None else found


def _outlook_of_search(a: Any, v: Any, side: Any = "left", sorter: Any = None) -> Outlook:
    return outlook_of_known(v) if engine.is_sharded(a) else Outlook("parallel", "nothing is communicated")


@implements(np.searchsorted, kind="parallel", outlook=_outlook_of_search)
def searchsorted(a: Any, v: Any, side: Any = "left", sorter: Any = None) -> Any:
    """Collective where `a` is sharded: positions in all shards are added up; many values are sent where they belong."""
    if sorter is not None:
        a = _by_sorter(as_handle(a), as_handle(sorter), side)
    if not engine.is_sharded(a):
        held, v = values_of(a), as_handle(v)
        _raise_alike(held, v, side)
        return _mapped(lambda block: np.searchsorted(held, block, side), v)
    v = values_of(v) if not engine.is_sharded(v) else v
    _raise_alike(a, v, side)
    if engine.is_sharded(v) and v.nbytes > most_known():
        kind = np.result_type(a.dtype, v.dtype)  # what NumPy compares in
        points = np.astype(a, kind, copy=False)
        sought = np.astype(v, kind, copy=False)
        return _routed(points, sought, side, lambda q, held, low: low + np.searchsorted(held, q, side), np.intp)
    layout = _layout(a)
    (held, _), owner = own_blocks(layout, a, None)
    sought = known(v, np.searchsorted, "values to be found", chosen=True)
    found = folded(np.searchsorted(held, np.atleast_1d(sought), side), layout, owner)
    return found if v.ndim else found[0]


def _raise_alike(a: Any, v: Any, side: Any) -> None:
    """NumPy's errors, on all ranks alike: one without elements would meet none where they cannot be compared."""
    np.searchsorted(np.zeros((min(1, a.size),) * a.ndim, a.dtype), np.zeros(min(1, v.size), v.dtype), side)


def _by_sorter(a: Any, sorter: Any, side: Any) -> Any:
    """The array in the order that a sorter gives (collective); NumPy's errors."""
    few = [np.zeros(tuple(min(n, 1) for n in x.shape), x.dtype) for x in (a, sorter)]
    np.searchsorted(few[0], np.zeros(0, a.dtype), side, few[1])
    if sorter.shape != a.shape:
        raise ValueError("sorter.size must equal a.size")
    if np.any((sorter < 0) | (sorter >= a.size)):  # NumPy finds those only that it meets
        raise ValueError("Sorter index out of range.")
    return integer_getitem(a, (sorter,))


def _outlook_of_points(
    x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None
) -> Outlook:
    return outlook_of_known(xp, fp)


@implements(np.interp, kind="parallel", outlook=_outlook_of_points)
def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Any:
    """Collective where the points are sharded: all ranks get them, or what is sought goes to them if they are many."""
    if any(engine.is_sharded(each) and each.nbytes > most_known() for each in (xp, fp)):
        return _interp_routed(as_handle(x), as_handle(xp), as_handle(fp), left, right, period)
    points, values = (known(each, np.interp, "points of the function", chosen=True) for each in (xp, fp))
    np.interp(np.zeros(0), points, values, left, right, period)  # NumPy's errors
    if not engine.is_handle(x):
        return engine.wrap(np.interp(x, points, values, left, right, period))
    return _mapped(lambda block: np.interp(block, points, values, left, right, period), x)


def _interp_routed(x: Any, xp: Any, fp: Any, left: Any, right: Any, period: Any) -> Any:
    """Each element goes to the rank that has the points on both sides of it, where NumPy interpolates."""
    if xp.ndim != 1 or xp.shape != fp.shape or not xp.size:
        engine.numpy_error(np.interp, (x, xp, fp, left, right, period))
    kind = np.interp(np.zeros(0), np.zeros(1), np.zeros(1, fp.dtype), left, right, period).dtype  # NumPy's errors
    x, xp, fp = np.astype(x, float), np.astype(xp, float), np.astype(fp, kind)
    if period is not None:  # as NumPy's source
        period, left, right = abs(period), None, None
        x, xp = x % period, xp % period
        order = np.argsort(xp)
        xp, fp = xp[order], fp[order]
        xp = np.concatenate((xp[-1:] - period, xp, xp[:1] + period))
        fp = np.concatenate((fp[-1:], fp, fp[:1]))
    layout = sequence_layout(xp)
    points, values = blocks((engine.aligned(xp, layout), layout), (engine.aligned(fp, layout), layout))
    comm = engine.runtime().comm
    firsts = comm.allgather((points[0], values[0]) if points.size else None)
    following = [pair for pair in firsts[comm.rank + 1 :] if pair is not None][:1]
    points = np.concatenate([points, [first for first, _ in following]])
    values = np.concatenate([values, [first for _, first in following]]).astype(kind, copy=False)
    holders = np.array([rank for rank, pair in enumerate(firsts) if pair is not None])
    starts = np.array([pair[0] for pair in firsts if pair is not None])

    def answer(sought: np.ndarray) -> np.ndarray:
        return np.interp(sought, points, values, left, right) if sought.size else np.empty(0, kind)

    its = _layout(x)
    (block,) = blocks((engine.aligned(x, its), its))
    owners = holders[np.maximum(np.searchsorted(starts, block.reshape(-1), "right") - 1, 0)]
    return engine.from_local(ask(block.reshape(-1), owners, answer, kind, comm).reshape(block.shape), its)


def contained(values: Any, tests: Any) -> Any:
    """Which of `values` are among `tests`, many sharded ones (collective: a sort, and what is sought is sent there)."""
    kind = np.result_type(values.dtype, tests.dtype)

    def answer(sought: np.ndarray, held: np.ndarray, low: int) -> np.ndarray:
        place = np.searchsorted(held, sought)
        inside = place < held.size
        inside[inside] = held[place[inside]] == sought[inside]
        return inside

    tests = np.sort(np.ravel(np.astype(tests, kind, copy=False)))
    return _routed(tests, np.astype(values, kind, copy=False), "left", answer, np.dtype(bool))


def _routed(ordered: Any, sought: Any, side: Any, answer: Any, dtype: Any) -> Any:
    """``answer(sought, held, low)`` of the rank that holds, from index `low`, where in order each sought value belongs.

    A rank gets as many values as belong to its part.
    """
    layout, its = sequence_layout(ordered), _layout(sought)
    held, block = blocks((engine.aligned(ordered, layout), layout), (engine.aligned(sought, its), its))
    comm = engine.runtime().comm
    box = layout.box(comm.rank)
    ends = comm.allgather(held[-1] if held.size else None)
    holders = np.array([rank for rank, end in enumerate(ends) if end is not None], int)
    if not holders.size:
        return engine.from_local(np.zeros(block.shape, dtype), its)
    places = np.searchsorted(np.array([end for end in ends if end is not None]), block.reshape(-1), side)
    owners = holders[np.minimum(places, holders.size - 1)]
    found = ask(block.reshape(-1), owners, lambda q: answer(q, held, 0 if box is None else box[0][0]), dtype, comm)
    return engine.from_local(found.reshape(block.shape), its)


def sequence_layout(x: Any) -> Layout:
    """The layout of a sequence that is cut between all ranks, in their order."""
    layout = engine.layout_of(x) if engine.is_sharded(x) else None
    if layout is not None and len(layout.dims) == 1 and isinstance(layout.dims[0], Cut) and not layout.dims[0].descends:
        return layout
    return engine.default_layout((x.size,), split=0)


def known(points: Any, function: Callable[..., Any], what: str, chosen: bool = False) -> Any:
    """Values that all ranks know from here on, as an ndarray (collective where they are sharded).

    NumPy's `function`, what they are, and whether the caller had a choice (`policy.replicate`), are for the user.
    """
    if not engine.is_sharded(points):
        return values_of(points)
    if points.nbytes > MOST_KNOWN:
        decline("there are too many sharded values for every rank to have them")
    policy.replicate(name_of(function), f"every rank needs the {what}", points.nbytes, chosen)
    return few(points)


def few(x: Any) -> np.ndarray:
    """All of a small array on every rank: a result on the way, of which nobody is told (collective)."""
    if not engine.is_sharded(x):
        return values_of(x)
    layout = engine.runtime().replicated_layout(tuple(x.shape))
    return blocks((engine.copy(x, layout=layout), layout))[0]


def _layout(x: Any) -> Layout:
    found = engine.layout_of(x) if engine.is_sharded(x) else None
    return engine.default_layout(tuple(x.shape)) if found is None else found


def own_blocks(layout: Layout, x: Any, weights: Any) -> tuple[list[Any], list[bool]]:
    """This rank's elements and their weights, none of copies that another rank counts; and which ranks have any."""
    if any(each is not None and not engine.shardable(each.dtype) for each in (x, weights)):
        decline("weights that are Python objects")
    arrays = [(engine.aligned(each, layout), layout) for each in (x, weights) if each is not None]
    found: list[Any] = [block.reshape(-1) for block in blocks(*arrays)]
    owner = [layout.primary(rank) for rank in range(layout.size)]
    if not owner[engine.runtime().rank]:
        found = [block[:0] for block in found]
    return (found if weights is not None else [*found, None]), owner


def folded(part: np.ndarray, layout: Layout, owner: list[bool]) -> Any:
    """The sum of the parts of all owners."""
    runtime = engine.runtime()
    large = engine.default_shard(part.nbytes)
    result = engine.default_layout(part.shape) if large else runtime.replicated_layout(part.shape)
    return engine.from_local(fold(np.add, part, owner, result, runtime.comm), result)


def _mapped(function: Any, x: Any) -> Any:
    """A function of elements, on each rank's own; a scalar of an array without axes, as NumPy's."""
    if not engine.is_sharded(x):
        return engine.wrap(function(engine.plain(x)))
    layout = _layout(x)
    (block,) = blocks((engine.aligned(x, layout), layout))
    made = engine.from_local(np.asarray(function(block)), layout)
    return made if made.ndim else made[()]
