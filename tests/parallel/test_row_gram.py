"""The product of a matrix and its own transpose: what two ranks both need is computed once."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import numpy_dist as nd
from numpy_dist import engine
from numpy_dist.comm.base import Communicator
from numpy_dist.comm.detect import get_communicator
from numpy_dist.dispatch.functions import linear_algebra
from numpy_dist.parallel import contraction
from numpy_dist.parallel.columns import even_bounds
from numpy_dist.parallel.row_gram import gram, row_gram
from numpy_dist.spmd_testing import run_simulated
from tests.parallel.exact_matrices import matrix_of


@pytest.mark.parametrize("kind", "fqD")
@pytest.mark.parametrize("shape", [(23, 17), (8, 3), (1, 40), (5, 0), (0, 3)])
@pytest.mark.parametrize("size", (1, 2, 3, 4, 5, 6))
def test_products(size: int, shape: tuple[int, int], kind: str) -> None:
    matrix = matrix_of(kind, *shape)
    even = even_bounds(shape[0], size)
    uneven = even if size < 3 else [(even[0][0], even[1][1]), (0, 0), *even[2:]]
    for bounds in (even, uneven, even[::-1]):

        def body(bounds: list[tuple[int, int]] = bounds) -> None:
            comm = get_communicator()
            expected = (matrix @ matrix.T)[slice(*bounds[comm.rank])]
            made = np.empty(expected.shape, kind)
            row_gram(matrix[slice(*bounds[comm.rank])], bounds, comm, made, 1 << 20)
            assert made.dtype == expected.dtype and np.array_equal(made, expected)

        run_simulated(size, body)


def check_product(
    calls: list[int], x: nd.DistArray, y: nd.DistArray, expected: np.ndarray, halved: bool = False
) -> None:
    """Compare a product, and whether this rank is among the `calls` of what computes half of one."""
    comm = get_communicator()
    comm.barrier()
    before = calls.count(comm.rank)
    made = x @ y
    assert (calls.count(comm.rank) > before) == halved
    assert np.array_equal(made.gather(), expected)


@pytest.mark.parametrize("size", (2, 3))
def test_an_array_and_its_transpose(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only of the same memory: a copy that is equal, and another view of it, are other matrices."""
    matrix, other = matrix_of("d", 90, 70), matrix_of("d", 90, 71)
    calls = []

    def noted(rows: np.ndarray, bounds: list[tuple[int, int]], comm: Communicator, *args: Any) -> None:
        calls.append(comm.rank)
        row_gram(rows, bounds, comm, *args)

    monkeypatch.setattr(linear_algebra, "row_gram", noted)

    def body() -> None:
        check = partial(check_product, calls)
        with nd.config(MIN_SHARD_BYTES=0, FALLBACK="error"):
            a, b, c = nd.asarray(matrix), nd.asarray(matrix), nd.asarray(other)
            check(a, a.T, matrix @ matrix.T, halved=True)
            check(c[:, 1:], c.T[1:], other[:, 1:] @ other.T[1:], halved=True)
            check(a, b.T, matrix @ matrix.T)
            check(a[::-1], a.T, matrix[::-1] @ matrix.T)
            check(c[:, 1:], c.T[:70], other[:, 1:] @ other.T[:70])
            check(a[:, :6], a.T[:6], matrix[:, :6] @ matrix.T[:6])
            check(a.T, a, matrix.T @ matrix)

    run_simulated(size, body)


@pytest.mark.parametrize("kind", "FD")
@pytest.mark.parametrize("size", (1, 2, 3, 4, 5))
def test_products_with_the_adjoint(size: int, kind: str) -> None:
    for shape in ((23, 17), (300, 5), (1, 40), (5, 0), (0, 3)):
        matrix = matrix_of(kind, *shape)
        bounds = even_bounds(shape[0], size)

        def body(matrix: np.ndarray = matrix, bounds: list[tuple[int, int]] = bounds) -> None:
            comm = get_communicator()
            mine = slice(*bounds[comm.rank])
            expected = (matrix @ matrix.conj().T)[mine]
            made = np.empty(expected.shape, kind)
            row_gram(matrix[mine], bounds, comm, made, 1 << 20, adjoint=True)
            assert made.dtype == expected.dtype and np.array_equal(made, expected)

        run_simulated(size, body)


@pytest.mark.parametrize("split", (0, 1))
@pytest.mark.parametrize("size", (2, 3))
def test_an_array_and_its_adjoint(size: int, split: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only as long as the conjugate is that of the same elements; then no rank multiplies what it has twice."""
    matrix = matrix_of("D", 90, 70) if split == 0 else matrix_of("D", 70, 90)
    calls = []

    def noted(rows: np.ndarray) -> np.ndarray:
        calls.append(get_communicator().rank)
        return gram(rows)

    monkeypatch.setattr(contraction, "gram", noted)
    monkeypatch.setattr("numpy_dist.parallel.row_gram.gram", noted)

    def body() -> None:
        check = partial(check_product, calls)
        with nd.config(MIN_SHARD_BYTES=0, FALLBACK="error"):
            a, other = nd.asarray(matrix, split=split), nd.asarray(matrix, split=split)
            adjoint = matrix.conj().T
            check(a, a.conj().T, matrix @ adjoint, halved=True)
            check(a.conj().T, a, adjoint @ matrix, halved=True)
            check(np.conj(a.T), a, adjoint @ matrix, halved=True)
            check(a, other.conj().T, matrix @ adjoint, halved=False)
            check(a.T, a, matrix.T @ matrix, halved=False)
            check(a[1:], a.conj().T, matrix[1:] @ adjoint, halved=False)
            check(a[::-1], a.conj().T, matrix[::-1] @ adjoint, halved=False)
            kept = a.conj().T
            a[3] = 7
            changed = matrix.copy()
            changed[3] = 7
            check(a, kept, changed @ adjoint, halved=False)
            check(kept, other, adjoint @ matrix, halved=False)
            check(other, other.conj().T, matrix @ adjoint, halved=True)
            seen = other.conj().T
            engine.force(seen)
            check(other, seen, matrix @ adjoint, halved=False)

    run_simulated(size, body)


def test_a_matrix_that_is_written_in_between() -> None:
    matrix = matrix_of("d", 70, 70)

    def body() -> None:
        with nd.config(MIN_SHARD_BYTES=0, FALLBACK="error"):
            a = nd.asarray(matrix)
            transposed = a.T
            a[3] = 7
            made = a @ transposed
            a[...] = 0
        changed = matrix.copy()
        changed[3] = 7
        assert np.array_equal(made.gather(), changed @ changed.T)

    run_simulated(3, body)
