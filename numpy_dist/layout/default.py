"""The default layout: which axes are cut, and into how many parts, when nobody has said so."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from math import prod
from typing import NamedTuple

from numpy_dist.layout.layout import Copies, Cut, Layout, replicated_layout
from numpy_dist.layout.mesh import Mesh
from numpy_dist.layout.weights import misfit, slab_weights, weighted_points

# Exhaustive search is over the longest axes only: with more of them the number of factorisations explodes, and
# cutting a shorter axis instead never has the smaller surface.
_SEARCHED_AXES = 4
# What an element costs that neighbours on different nodes exchange, beside one that stays on a node.
_ACROSS_NODES = 4
# Meshes whose slowest rank takes at most so much longer than weights say are equally good.
_TOLERANCE = Fraction(21, 20)


class _Ranks(NamedTuple):
    """What is known of the ranks: how many there are, their weights, and the node of each."""

    size: int
    weights: tuple[float, ...] = ()
    nodes: tuple[int, ...] = ()

    def grouped(self, copies: int) -> _Ranks:
        """Each `copies` ranks that follow each other as one."""
        starts = range(0, self.size, copies)
        weights = tuple(sum(self.weights[start : start + copies]) for start in starts) if self.weights else ()
        return _Ranks(len(starts), weights, self.nodes[::copies])


def default_points(n: int, extent: int) -> tuple[int, ...]:
    """Balanced cut points of an axis of `n` indices for `extent` coordinates: the first ones get one more."""
    quotient, remainder = divmod(n, extent)
    return tuple(c * quotient + min(c, remainder) for c in range(extent + 1))


def default_layout(
    shape: Sequence[int],
    nranks: int,
    *,
    split: int | None = None,
    mesh: Sequence[int] | None = None,
    allow_empty: bool = False,
    weights: Sequence[float] = (),
    nodes: Sequence[int] = (),
) -> Layout:
    """The layout of a new array.

    Without `split` and `mesh`, the axes are cut so that the surface of the shards is smallest; of equal ones, leading
    axes are preferred. What lies between two nodes counts more than what lies within one, and with weights a mesh is
    taken whose cuts can follow them. An axis is not cut into more parts than it has indices, unless `allow_empty`;
    where that leaves ranks over, they hold copies.

    Parameters
    ----------
    shape : tuple of int
        Global shape.
    nranks : int
        Number of ranks.
    split : int, optional
        Cut this axis only, for all ranks.
    mesh : tuple of int, optional
        Cut the leading axes, in order, into so many parts.
    allow_empty : bool, optional
        Cut small axes too; trailing shards are then empty.
    weights : sequence of float, optional
        How large the share of each rank is beside the others'. Along each cut axis, a coordinate gets the share of all
        ranks that have it.
    nodes : sequence of int, optional
        The number of the node of each rank.
    """
    try:
        split = None if split is None else operator.index(split)
        mesh = None if mesh is None else tuple(map(operator.index, mesh))
    except TypeError:
        raise TypeError(f"split={split!r} must be an integer, and mesh={mesh!r} a tuple of integers") from None
    ranks = _Ranks(nranks, tuple(weights) if nranks > 1 else (), tuple(nodes))
    return _default_layout(tuple(shape), ranks, split, mesh, bool(allow_empty))


def reweighted(layout: Layout, weights: Sequence[float]) -> Layout:
    """The layout with cuts of the same axes on the same mesh that follow weights; even cuts without weights.

    Where no cuts of this mesh can follow them, it is the default layout of the shape.
    """
    if weights and len(weights) != layout.size:
        raise ValueError(f"there are {len(weights)} weights for {layout.size} ranks")
    cut = [extent for extent, what in zip(layout.mesh.shape, layout.dims, strict=True) if isinstance(what, Cut)]
    if weights and (len(cut) < layout.mesh.ndim or misfit(layout.mesh.shape, weights) > _TOLERANCE):
        return default_layout(layout.shape, layout.size, weights=weights)
    shares = slab_weights(layout.mesh.shape, weights)
    dims = [
        Cut(what.axis, _points(layout.shape[what.axis], share)) if isinstance(what, Cut) else what
        for what, share in zip(layout.dims, shares, strict=True)
    ]
    return Layout(layout.shape, layout.mesh, tuple(dims))


@lru_cache(maxsize=1024)
def _default_layout(
    shape: tuple[int, ...], ranks: _Ranks, split: int | None, mesh: tuple[int, ...] | None, allow_empty: bool
) -> Layout:
    nranks = ranks.size
    if nranks < 1:
        raise ValueError(f"nranks must be at least 1, not {nranks}")
    if ranks.weights and len(ranks.weights) != nranks:
        raise ValueError(f"there are {len(ranks.weights)} weights for {nranks} ranks")
    ndim = len(shape)
    if split is not None and mesh is not None:
        raise ValueError("give split or mesh, not both")
    if split is not None:
        if not -ndim <= split < ndim:
            raise ValueError(f"split={split} is out of bounds for an array of {ndim} axes")
        return _cut(shape, {split % ndim: nranks}, ranks)
    if mesh is not None:
        if prod(mesh) != nranks or any(extent < 1 for extent in mesh) or not mesh:
            raise ValueError(f"mesh={mesh} does not have {nranks} ranks")
        if len(mesh) > ndim:
            raise ValueError(f"mesh={mesh} has more dimensions than the array of shape {shape}")
        return _cut(shape, dict(enumerate(mesh)), ranks)
    if ndim == 0:
        return replicated_layout(shape, nranks)
    if nranks == 1:
        return _cut(shape, {0: 1}, ranks)
    parts = _best_parts(shape, ranks, allow_empty)
    if parts is not None:
        return _cut(shape, {axis: count for axis, count in enumerate(parts) if count > 1}, ranks)
    return _partly_copied(shape, ranks)


def _cut(shape: tuple[int, ...], parts: dict[int, int], ranks: _Ranks, copies: int = 1) -> Layout:
    """The layout of axes with so many parts; `ranks` are those that have different parts."""
    extents = list(parts.values())
    shares = slab_weights(tuple(extents), ranks.weights)
    dims: list[Cut | Copies] = [
        Cut(axis, _points(shape[axis], share)) for axis, share in zip(parts, shares, strict=True)
    ]
    if copies > 1:
        dims.append(Copies())
        extents.append(copies)
    return Layout(shape, Mesh(tuple(extents)), tuple(dims))


def _points(n: int, shares: tuple[float, ...]) -> tuple[int, ...]:
    return weighted_points(n, shares) if len(set(shares)) > 1 else default_points(n, len(shares))


def _partly_copied(shape: tuple[int, ...], ranks: _Ranks) -> Layout:
    """As many cuts as fit without an empty shard, and copies for the other ranks."""
    nranks = ranks.size
    for count in sorted((d for d in range(2, nranks) if nranks % d == 0), reverse=True):
        groups = ranks.grouped(nranks // count)
        parts = _best_parts(shape, groups, False)
        if parts is not None:
            return _cut(shape, {axis: k for axis, k in enumerate(parts) if k > 1}, groups, nranks // count)
    return replicated_layout(shape, nranks)


def _best_parts(shape: tuple[int, ...], ranks: _Ranks, allow_empty: bool) -> tuple[int, ...] | None:
    """The number of parts of each axis, None when nothing fits."""
    fitting = _search(shape, ranks, fits=True)
    if fitting is None:
        fitting = _greedy(shape, ranks.size)
    if fitting is not None or not allow_empty:
        return fitting
    return _search(shape, ranks, fits=False)


def _search(shape: tuple[int, ...], ranks: _Ranks, fits: bool) -> tuple[int, ...] | None:
    longest = sorted(range(len(shape)), key=lambda axis: (-shape[axis], axis))[:_SEARCHED_AXES]
    axes = sorted(longest)
    best: tuple[tuple[int, Fraction, int, tuple[int, ...]], tuple[int, ...]] | None = None
    for factors in _factorisations(ranks.size, len(axes)):
        if fits and any(factor > 1 and factor > shape[axis] for axis, factor in zip(axes, factors, strict=True)):
            continue
        parts = [1] * len(shape)
        for axis, factor in zip(axes, factors, strict=True):
            parts[axis] = factor
        # With empty shards the largest shard decides first: one rank with everything has no surface at all.
        largest = 0 if fits else prod(-(-n // p) for n, p in zip(shape, parts, strict=True))
        slowest = max(misfit(factors, ranks.weights), _TOLERANCE) if ranks.weights else _TOLERANCE
        key = (largest, slowest, _cost(shape, parts, ranks), tuple(-p for p in parts))
        if best is None or key < best[0]:
            best = (key, tuple(parts))
    return None if best is None else best[1]


def _cost(shape: Sequence[int], parts: Sequence[int], ranks: _Ranks) -> int:
    """What neighbours have to exchange: the surface, of which what lies between nodes costs more."""
    surface = _surface(shape, parts)
    if not ranks.nodes:
        return surface
    # In parts of an element, so that it is an integer: a face of a shard is so much of the surface along its axis.
    across, stride = 0, ranks.size
    for axis, count in enumerate(parts):
        stride //= count
        if count == 1:
            continue
        pairs = sum(
            ranks.nodes[rank] != ranks.nodes[rank + stride]
            for rank in range(ranks.size - stride)
            if rank // stride % count < count - 1
        )
        across += pairs * count * prod(n for other, n in enumerate(shape) if other != axis)
    return surface * ranks.size + (_ACROSS_NODES - 1) * across


def _surface(shape: Sequence[int], parts: Sequence[int]) -> int:
    """Number of elements on one side of all the cuts."""
    total = 0
    for axis, count in enumerate(parts):
        if count > 1:
            total += (count - 1) * prod(n for other, n in enumerate(shape) if other != axis)
    return total


def _factorisations(n: int, count: int) -> Iterator[tuple[int, ...]]:
    """All ordered products of `count` factors."""
    if count == 1:
        yield (n,)
        return
    for factor in range(1, n + 1):
        if n % factor == 0:
            for rest in _factorisations(n // factor, count - 1):
                yield (factor, *rest)


def _greedy(shape: tuple[int, ...], nranks: int) -> tuple[int, ...] | None:
    """Give the prime factors, largest first, to the axes with the longest shards: for many short axes."""
    parts = [1] * len(shape)
    for prime in _primes(nranks):
        able = [axis for axis, n in enumerate(shape) if parts[axis] * prime <= n]
        if not able:
            return None
        axis = max(able, key=lambda a: (shape[a] // parts[a], -a))
        parts[axis] *= prime
    return tuple(parts)


def _primes(n: int) -> list[int]:
    """Prime factors, largest first."""
    primes = []
    factor = 2
    while n > 1:
        while n % factor == 0:
            primes.append(factor)
            n //= factor
        factor = factor + 1 if factor * factor <= n else max(n, factor + 1)
    return primes[::-1]
