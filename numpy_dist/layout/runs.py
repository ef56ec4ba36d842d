"""Runs: elements of a box that follow one another in the C order of the whole array, as in a file of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import prod

from numpy_dist.layout.regions import Box


def run_length(shape: Sequence[int], box: Box) -> int:
    """How many elements each run of a box has; all of its runs are alike.

    Parameters
    ----------
    shape : sequence of int
        Of the whole array.
    box : box
        Not empty.
    """
    return prod(hi - lo for lo, hi in box[_first(shape, box) :])


def runs(shape: Sequence[int], box: Box) -> Iterator[int]:
    """The first element of each run, by its place in the whole array; ascending."""
    strides = [prod(shape[axis + 1 :]) for axis in range(len(shape))]
    outer = _first(shape, box)
    inner = sum(lo * stride for (lo, _), stride in zip(box[outer:], strides[outer:], strict=True))
    for index in product(*(range(lo, hi) for lo, hi in box[:outer])):
        yield inner + sum(i * stride for i, stride in zip(index, strides, strict=False))


def _first(shape: Sequence[int], box: Box) -> int:
    """The outermost axis within a run: behind it the box has all there is."""
    axis = len(shape)
    while axis and (axis == len(shape) or box[axis] == (0, shape[axis])):
        axis -= 1
    return axis
