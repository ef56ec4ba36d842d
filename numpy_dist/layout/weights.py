"""Cuts that follow weights: where an axis is cut for ranks that are not equally fast."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate
from math import prod

__all__ = ["misfit", "slab_weights", "speed_weights", "weighted_points"]

_ALIKE = 1.25  # speeds that differ by at most this factor are taken for one: measurements differ as much
_STEPS = 4  # of a weight, in which the slowest rank has 1


def weighted_points(n: int, weights: Sequence[float]) -> tuple[int, ...]:
    """Cut points of an axis of `n` indices, whose parts are as large as weights say.

    Each part is within one index of its share, and gets one index at least where there are enough for all.
    """
    extent = len(weights)
    sums = [Fraction(0), *accumulate(map(Fraction, weights))]
    points = [int(n * part / sums[-1] + Fraction(1, 2)) for part in sums]
    if n >= extent:
        for place in range(1, extent):
            points[place] = max(points[place], points[place - 1] + 1)
        for place in range(extent - 1, 0, -1):
            points[place] = min(points[place], points[place + 1] - 1)
    return tuple(points)


def slab_weights(extents: tuple[int, ...], weights: Sequence[float]) -> list[tuple[float, ...]]:
    """The weights of the coordinates of each mesh dimension: of all ranks that have the coordinate, together.

    All are equal where no weights are given.
    """
    if not weights:
        return [(1.0,) * extent for extent in extents]
    found, stride = [], prod(extents)
    for extent in extents:
        stride //= extent
        sums = [Fraction(0)] * extent
        for rank, weight in enumerate(weights):
            sums[rank // stride % extent] += Fraction(weight)
        found.append(tuple(map(float, sums)))
    return found


def misfit(extents: tuple[int, ...], weights: Sequence[float]) -> Fraction:
    """How much longer the slowest rank of a mesh takes than if its cuts followed the weights; 1 where they do.

    Cuts of one dimension always do. Those of several give a rank the product of its coordinates' shares.
    """
    if sum(extent > 1 for extent in extents) <= 1:
        return Fraction(1)
    total = sum(map(Fraction, weights))
    shares = [[Fraction(weight) / total for weight in slab] for slab in slab_weights(extents, weights)]
    worst, stride = Fraction(0), prod(extents)
    strides = []
    for extent in extents:
        stride //= extent
        strides.append(stride)
    for rank, weight in enumerate(weights):
        share = prod(
            (slab[rank // step % extent] for slab, step, extent in zip(shares, strides, extents, strict=True)),
            start=Fraction(1),
        )
        worst = max(worst, share * total / Fraction(weight))
    return worst


def speed_weights(speeds: Sequence[float]) -> tuple[float, ...]:
    """Weights of ranks that are as fast as measured, without the noise; empty where all are equally fast.

    From the fastest on, ranks of about the same speed get the same weight, that of the one in their middle, in quarters
    of the slowest ranks' weight.
    """
    order = sorted(range(len(speeds)), key=lambda rank: -speeds[rank])
    alike: list[list[int]] = []
    for rank in order:
        if not alike or speeds[alike[-1][0]] > _ALIKE * speeds[rank]:
            alike.append([])
        alike[-1].append(rank)
    middle = [speeds[ranks[len(ranks) // 2]] for ranks in alike]
    found = [0.0] * len(speeds)
    for ranks, speed in zip(alike, middle, strict=True):
        for rank in ranks:
            found[rank] = round(speed / middle[-1] * _STEPS) / _STEPS
    return tuple(found) if len(set(found)) > 1 else ()
