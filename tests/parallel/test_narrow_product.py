"""Narrow products of a matrix on a mesh: right for any layout of the narrow operand, with the words that are told."""

from __future__ import annotations

import numpy as np
import pytest

import numpy_dist as nd
from numpy_dist import engine
from numpy_dist.comm.counting import CountingCommunicator
from numpy_dist.comm.detect import get_communicator
from numpy_dist.layout.default import default_layout
from numpy_dist.parallel.narrow_product import narrow_product, words_of_narrow
from numpy_dist.parallel.panels import HeldMatrix
from numpy_dist.parallel.product_task import ProductTask
from numpy_dist.spmd_testing import run_simulated
from tests.parallel.exact_matrices import matrix_of
from tests.parallel.test_panels import layouts_of, on_mesh, part_of

pytestmark = pytest.mark.usefixtures("small_pieces")


@pytest.mark.parametrize("most", (1, 1 << 20))
@pytest.mark.parametrize("kinds", ["dd", "??", "fd", "De", "qb"])
@pytest.mark.parametrize("shape", [(23, 17, 3), (17, 23, 1), (2, 3, 1), (5, 0, 4), (0, 3, 4), (9, 4, 0)])
@pytest.mark.parametrize("mesh", ((1, 2), (2, 2), (4, 1), (3, 2)))
def test_products(mesh: tuple[int, int], shape: tuple[int, int, int], kinds: str, most: int) -> None:
    (m, k, n), size = shape, mesh[0] * mesh[1]
    left, right = matrix_of(kinds[0], m, k), matrix_of(kinds[1], k, n)
    expected, result = left @ right, default_layout((m, n), size, split=0, allow_empty=True)

    def body() -> None:
        comm = get_communicator()
        for number, of_right in enumerate(layouts_of((k, n), mesh)):
            of_left = on_mesh((m, k), mesh, bool(number % 2), bool(number % 3))
            one = HeldMatrix(part_of(left, of_left, comm.rank), of_left)
            other = HeldMatrix(np.asarray(part_of(right, of_right, comm.rank), order="CF"[number % 2]), of_right)
            box = result.box(comm.rank)
            out = np.empty((0 if box is None else box[0][1] - box[0][0], n), expected.dtype)
            narrow_product(one, other, result, ProductTask(out, comm, most))
            assert box is None or np.array_equal(out, part_of(expected, result, comm.rank))

    run_simulated(size, body)


@pytest.mark.parametrize("size", (4, 64, 256))
def test_words_fall_with_the_square_root_of_the_ranks(size: int) -> None:
    root, n = round(size**0.5), 4 * size
    layout, of_vector = on_mesh((n, n), (root, root)), default_layout((n, 1), size, split=0)
    sent = 0
    for rank in range(size):
        comm = CountingCommunicator(rank, size, {})
        held = HeldMatrix(np.zeros((n // root, n // root), np.int8), layout)
        vector = HeldMatrix(np.zeros((4, 1), np.int8), of_vector)
        narrow_product(held, vector, of_vector, ProductTask(np.empty((4, 1), np.int8), comm, 1))
        sent += comm.counters.bytes
    assert sent == words_of_narrow(layout, of_vector, of_vector) <= 2 * n * root


def test_a_matrix_on_a_mesh_is_not_sent() -> None:
    matrix, vector = matrix_of("d", 90, 80), matrix_of("d", 80, 3)

    def body() -> None:
        with nd.config(MIN_SHARD_BYTES=0, FALLBACK="error"):
            a, v = nd.asarray(matrix, mesh=(2, 2)), nd.asarray(vector, split=0)
            engine.force(a)
            engine.force(v)
            comm = engine.runtime().comm
            for call, expected in (
                (lambda: a @ v, matrix @ vector),
                (lambda: a @ v[:, 0], matrix @ vector[:, 0]),
                (lambda: v.T @ a.T, vector.T @ matrix.T),
                (lambda: np.dot(v[:, 1], a.T), vector[:, 1] @ matrix.T),
            ):
                before = comm.counters.bytes
                made = call()
                engine.force(made)
                assert comm.counters.bytes - before < matrix.nbytes / 8
                assert np.array_equal(made.gather(), expected)

    run_simulated(4, body)
