"""Partial products of operands that do not lie as the summed axis is shared: right for any layouts."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

import numpy_dist as nd
from numpy_dist.comm.detect import get_communicator
from numpy_dist.dispatch.functions import linear_algebra
from numpy_dist.parallel.columns import even_bounds
from numpy_dist.parallel.panels import HeldMatrix
from numpy_dist.parallel.partial_product import partial_product
from numpy_dist.parallel.product_task import ProductTask
from numpy_dist.spmd_testing import run_simulated
from tests.parallel.exact_matrices import matrix_of
from tests.parallel.test_panels import layouts_of, part_of

pytestmark = pytest.mark.usefixtures("small_pieces")


@pytest.mark.parametrize("most", (1, 300, 1 << 20))
@pytest.mark.parametrize(
    "kinds", ["dd", *(pytest.param(kinds, marks=pytest.mark.slow) for kinds in ("??", "fd", "De"))]
)
@pytest.mark.parametrize("shape", [(5, 31, 7), (2, 3, 1), (1, 0, 4), (0, 9, 4)])
@pytest.mark.parametrize("mesh", ((1, 2), (3, 1), (2, 2), (3, 2)))
def test_each_share(mesh: tuple[int, int], shape: tuple[int, int, int], kinds: str, most: int) -> None:
    """Shares are even, uneven, or all of one rank."""
    (m, k, n), size = shape, mesh[0] * mesh[1]
    left, right = matrix_of(kinds[0], m, k), matrix_of(kinds[1], k, n)
    dtype = (left @ right).dtype
    of_one = [(0, 0)] * (size - 1) + [(0, k)]
    uneven = [(0, k // 5), *((k // 5 + low, k // 5 + high) for low, high in even_bounds(k - k // 5, size - 1))]

    def body() -> None:
        comm = get_communicator()
        for number, (of_left, of_right) in enumerate(product(layouts_of((m, k), mesh), layouts_of((k, n), mesh))):
            shares = (even_bounds(k, size), of_one, uneven)[number % 3]
            one = HeldMatrix(np.array(part_of(left, of_left, comm.rank), order="CF"[number % 2]), of_left)
            other = HeldMatrix(np.array(part_of(right, of_right, comm.rank)), of_right)
            out = np.full((m, n), 77, dtype)
            partial_product(one, other, shares, ProductTask(out, comm, most))
            low, high = shares[comm.rank]
            assert np.array_equal(out, left[:, low:high] @ right[low:high])

    run_simulated(size, body)


@pytest.mark.parametrize("size", (2, 3, 4))
def test_arrays(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wide matrix and a tall one in any layouts; operands of half precision are added up in single precision."""
    calls = []

    def noted(*args: Any) -> None:
        calls.append(get_communicator().rank)
        partial_product(*args)

    monkeypatch.setattr(linear_algebra, "partial_product", noted)

    def check(call: Callable[..., Any], left: np.ndarray, right: np.ndarray, comes: bool) -> None:
        for splits in product((0, 1), repeat=2):
            before = calls.count(get_communicator().rank)
            x, y = (nd.asarray(values, split=split) for values, split in zip((left, right), splits, strict=True))
            made, expected = call(x, y), call(left, right)
            assert made.dtype == expected.dtype and np.array_equal(made.gather(), expected)
            if comes and size == 4 and splits != (1, 0):  # of fewer ranks one operand goes around
                assert calls.count(get_communicator().rank) == before + 1

    def body() -> None:
        with nd.config(MIN_SHARD_BYTES=0, FALLBACK="error"):
            for kinds in ("dd", "fd", "qb", "DD", "ee"):
                wide, tall = matrix_of(kinds[0], 6, 900), matrix_of(kinds[1], 900, 5)
                check(np.matmul, wide, tall, True)
                check(lambda x, y: np.dot(y.T, x.T), wide, tall, False)
                check(lambda x, y: np.einsum("ij,jk->ki", x, y), wide, tall, False)
                check(lambda x, y: x[1:, 1::2] @ y[1::2], wide, tall, False)

    run_simulated(size, body)
