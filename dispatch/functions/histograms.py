"""Histograms of points in several dimensions."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from numpy_dist import engine
from numpy_dist.dispatch.core.operands import as_operand
from numpy_dist.dispatch.core.registry import implements
from numpy_dist.dispatch.functions.statistics_histograms import folded, known
from numpy_dist.dispatch.patterns.arguments import as_handle, blocks
from numpy_dist.dispatch.patterns.numpy_source import adopt, numpy_source
from numpy_dist.layout.layout import Layout

_range = range  # a parameter has this name, too
_source: Any = numpy_source(np.histogramdd)
_outer_edges: Any = _source.__globals__["_get_outer_edges"]


@implements(np.histogramdd, kind="parallel")
def histogramdd(sample: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None) -> Any:
    """Collective: the extremes of each dimension, and one message from each rank to each owner of the counts."""
    if getattr(sample, "ndim", 0) != 2:  # a sequence of columns
        sample = np.transpose(np.atleast_2d(as_operand(sample)))
    sample = as_handle(sample)
    weights = None if weights is None else as_handle(weights)
    depth = sample.shape[1]
    scalar = not hasattr(bins, "__len__")
    if not scalar:
        bins = [known(x, np.histogramdd, "edges of the bins") if engine.is_handle(x) else x for x in bins]
    none: Any = None if weights is None else np.zeros((0,) * weights.ndim, weights.dtype)
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


def _counts(sample: Any, edges: list[Any], weights: Any) -> tuple[np.ndarray, Layout]:
    """What this rank's rows add to the counts, and how the rows are divided."""
    layout = engine.layout_of(sample) if engine.is_sharded(sample) else None
    if layout is None or any(layout.cut_axes):
        layout = engine.default_layout(tuple(sample.shape), split=0)
    its = layout.drop_axes([1])
    arrays = [(engine.aligned(sample, layout), layout)]
    arrays += [] if weights is None else [(engine.aligned(weights, its), its)]
    found: list[Any] = list(blocks(*arrays))
    if not layout.primary(engine.runtime().rank):  # copies, which another rank counts
        found = [np.zeros((0, *sample.shape[1:]), sample.dtype), *(each[:0] for each in found[1:])]
    made = np.histogramdd(found[0], edges, weights=found[1] if found[1:] else None)[0]
    return np.ascontiguousarray(made), its


adopt(__name__, np.histogram2d)
