"""Tensors of one rank as matrices: axes that follow each other are joined, some of them at a time where that copies."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from numpy_dist.layout.regions import box_size, box_slices, full_box
from numpy_dist.parallel.matmul import ProductSpace, ProductSum
from numpy_dist.parallel.pieces import at_most, counts_of_pieces, divided


def multiply_joined(left: np.ndarray, right: np.ndarray, summed: int, out: np.ndarray, space: ProductSpace) -> None:
    """Multiply two tensors, summed over the last axes of both.

    Parameters
    ----------
    left, right : ndarray
    summed : int
        How many axes are summed.
    out : ndarray, in C order
        The product, whose axes are those of the left operand and of the right one that are not summed.
    space : ProductSpace
        For products that are added; what is copied to be joined takes as much again.
    """
    extents = left.shape[left.ndim - summed :]
    heights = [prod(block.shape[: block.ndim - summed]) for block in (left, right)]
    total = ProductSum(out.reshape(heights[0], heights[1]), space)
    copied = sum(
        height
        for block, height in zip((left, right), heights, strict=True)
        if as_shape(block, (height, prod(extents))) is None
    )
    counts = counts_of_pieces(extents, copied, at_most(space.most)) if copied else [1] * summed
    for part in divided(full_box(extents), counts):
        key: Any = (..., *box_slices(part, (0,) * summed))
        one, other = (
            for_blas(block[key].reshape(height, box_size(part)))
            for block, height in zip((left, right), heights, strict=True)
        )
        total.add_product(one, other.T)
        del one, other  # before the next ones are made
    total.finish()


def as_shape(array: np.ndarray, shape: tuple[int, ...]) -> np.ndarray | None:
    """An array with another shape in the same memory, or None where there is none."""
    try:
        return np.reshape(array, shape, copy=False)
    except ValueError:
        return None


def for_blas(matrices: np.ndarray) -> np.ndarray:
    """Matrices of which rows or columns have no gaps; other ones NumPy would multiply element by element."""
    size = matrices.dtype.itemsize
    return matrices if size in matrices.strides[-2:] else np.ascontiguousarray(matrices)
