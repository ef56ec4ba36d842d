"""The default layout: which axes are cut, and into how many parts, when nobody has said so."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from functools import lru_cache
from math import prod

from numpy_dist.layout.layout import Copies, Cut, Layout, replicated_layout
from numpy_dist.layout.mesh import Mesh

# Exhaustive search is over the longest axes only: with more of them the number of factorisations explodes, and
# cutting a shorter axis instead never has the smaller surface.
_SEARCHED_AXES = 4


def default_points(n: int, extent: int) -> tuple[int, ...]:
    """Return balanced cut points of an axis of `n` indices for `extent` coordinates: the first ones get one more."""
    quotient, remainder = divmod(n, extent)
    return tuple(c * quotient + min(c, remainder) for c in range(extent + 1))


def default_layout(
    shape: Sequence[int],
    nranks: int,
    *,
    split: int | None = None,
    mesh: Sequence[int] | None = None,
    allow_empty: bool = False,
) -> Layout:
    """Return the layout of a new array.

    Without `split` and `mesh`, the axes are cut so that the surface of the shards is smallest; of equal ones, leading
    axes are preferred. An axis is not cut into more parts than it has indices, unless `allow_empty`; where that leaves
    ranks over, they hold copies.

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
    """
    try:
        split = None if split is None else operator.index(split)
        mesh = None if mesh is None else tuple(map(operator.index, mesh))
    except TypeError:
        raise TypeError(f"split={split!r} must be an integer, and mesh={mesh!r} a tuple of integers") from None
    return _default_layout(tuple(shape), nranks, split, mesh, bool(allow_empty))


@lru_cache(maxsize=1024)
def _default_layout(
    shape: tuple[int, ...], nranks: int, split: int | None, mesh: tuple[int, ...] | None, allow_empty: bool
) -> Layout:
    if nranks < 1:
        raise ValueError(f"nranks must be at least 1, not {nranks}")
    ndim = len(shape)
    if split is not None and mesh is not None:
        raise ValueError("give split or mesh, not both")
    if split is not None:
        if not -ndim <= split < ndim:
            raise ValueError(f"split={split} is out of bounds for an array of {ndim} axes")
        return _cut(shape, {split % ndim: nranks})
    if mesh is not None:
        if prod(mesh) != nranks or any(extent < 1 for extent in mesh) or not mesh:
            raise ValueError(f"mesh={mesh} does not have {nranks} ranks")
        if len(mesh) > ndim:
            raise ValueError(f"mesh={mesh} has more dimensions than the array of shape {shape}")
        return _cut(shape, dict(enumerate(mesh)))
    if ndim == 0:
        return replicated_layout(shape, nranks)
    if nranks == 1:
        return _cut(shape, {0: 1})
    parts = _best_parts(shape, nranks, allow_empty)
    if parts is not None:
        return _cut(shape, {axis: count for axis, count in enumerate(parts) if count > 1})
    return _partly_copied(shape, nranks)


def _cut(shape: tuple[int, ...], parts: dict[int, int], copies: int = 1) -> Layout:
    dims: list[Cut | Copies] = [Cut(axis, default_points(shape[axis], count)) for axis, count in parts.items()]
    extents = list(parts.values())
    if copies > 1:
        dims.append(Copies())
        extents.append(copies)
    return Layout(shape, Mesh(tuple(extents)), tuple(dims))


def _partly_copied(shape: tuple[int, ...], nranks: int) -> Layout:
    """As many cuts as fit without an empty shard, and copies for the other ranks."""
    for count in sorted((d for d in range(2, nranks) if nranks % d == 0), reverse=True):
        parts = _best_parts(shape, count, False)
        if parts is not None:
            return _cut(shape, {axis: k for axis, k in enumerate(parts) if k > 1}, nranks // count)
    return replicated_layout(shape, nranks)


def _best_parts(shape: tuple[int, ...], nranks: int, allow_empty: bool) -> tuple[int, ...] | None:
    """The number of parts of each axis, None when nothing fits."""
    fitting = _search(shape, nranks, fits=True)
    if fitting is None:
        fitting = _greedy(shape, nranks)
    if fitting is not None or not allow_empty:
        return fitting
    return _search(shape, nranks, fits=False)


def _search(shape: tuple[int, ...], nranks: int, fits: bool) -> tuple[int, ...] | None:
    longest = sorted(range(len(shape)), key=lambda axis: (-shape[axis], axis))[:_SEARCHED_AXES]
    axes = sorted(longest)
    best: tuple[tuple[int, int, tuple[int, ...]], tuple[int, ...]] | None = None
    for factors in _factorisations(nranks, len(axes)):
        if fits and any(factor > 1 and factor > shape[axis] for axis, factor in zip(axes, factors, strict=True)):
            continue
        parts = [1] * len(shape)
        for axis, factor in zip(axes, factors, strict=True):
            parts[axis] = factor
        # With empty shards the largest shard decides first: one rank with everything has no surface at all.
        largest = 0 if fits else prod(-(-n // p) for n, p in zip(shape, parts, strict=True))
        key = (largest, _surface(shape, parts), tuple(-p for p in parts))
        if best is None or key < best[0]:
            best = (key, tuple(parts))
    return None if best is None else best[1]


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
