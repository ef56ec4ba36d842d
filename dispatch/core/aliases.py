"""Views that NumPy returns of a gathered array, as views of the array itself.

Functions that are known to return views never run on gathered arrays. A few others do in single cases, such as
``einsum("ii->i", x)``: what they return is then described relative to the argument and taken of the original.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from numpy_dist.ir import structure
from numpy_dist.ir.meta_arrays import as_strided
from numpy_dist.layout.views import decode


@dataclass
class Alias:
    """A view of an argument: where its first element is and how its axes step, in bytes and in axes of the argument.

    Attributes
    ----------
    number : int
        Which argument.
    shape, dtype, writeable
        Of the view.
    start : tuple of int
        Index of the argument's element in which the view begins.
    skip : int
        Bytes between the beginning of that element and the view's.
    steps : tuple of tuple of int
        For each axis of the view, its steps along the axes of the argument, then in bytes.
    """

    number: int
    shape: tuple[int, ...]
    dtype: np.dtype
    writeable: bool
    start: tuple[int, ...]
    skip: int
    steps: tuple[tuple[int, ...], ...]

    def of(self, array: np.ndarray) -> np.ndarray:
        """The view of an array (or meta array) like the argument, which need not lie in memory as the argument did."""
        strides = tuple(
            sum(step * stride for step, stride in zip(row, (*array.strides, 1), strict=True)) for row in self.steps
        )
        first = structure.view(array, structure.part, self.start, self.skip, self.dtype)
        return structure.view(first, as_strided, self.shape, strides, writeable=self.writeable)


def find(result: np.ndarray, arguments: Sequence[object]) -> Alias | None:
    """How `result` is a view of one of the arguments; None if it is not.

    `arguments` are contiguous in some order of their axes, and share no memory with one another.
    """
    if result.size == 0:
        return None
    for number, argument in enumerate(arguments):
        if isinstance(argument, np.ndarray) and argument.size and np.may_share_memory(result, argument):
            return _describe(number, result, argument)
    return None


def _describe(number: int, result: np.ndarray, argument: np.ndarray) -> Alias | None:
    axes = sorted(range(argument.ndim), key=lambda axis: -abs(argument.strides[axis]))
    whole = argument.transpose(axes)
    if result.itemsize > argument.itemsize or not whole.flags.c_contiguous:
        return None
    offset = result.__array_interface__["data"][0] - argument.__array_interface__["data"][0]
    vmap = decode(whole.shape, whole.itemsize, (), offset, result.shape, result.strides, result.itemsize)
    if vmap is None or vmap.merged:
        return None
    order = [axes.index(axis) for axis in range(len(axes))]
    return Alias(
        number,
        result.shape,
        result.dtype,
        result.flags.writeable,
        tuple(vmap.offset[axis] for axis in order),
        vmap.offset[-1],
        tuple((*(row[axis] for axis in order), row[-1]) for row in vmap.steps),
    )
