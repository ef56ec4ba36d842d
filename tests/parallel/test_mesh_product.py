"""Products on a mesh of ranks: right for any numbers of rows, and with fewer words the more ranks there are."""

from __future__ import annotations

import numpy as np
import pytest

import numpy_dist as nd
from numpy_dist import engine
from numpy_dist.comm.counting import CountingCommunicator
from numpy_dist.comm.detect import get_communicator
from numpy_dist.layout.mesh import Mesh
from numpy_dist.parallel.columns import even_bounds
from numpy_dist.parallel.mesh_product import MeshProduct, best_mesh
from numpy_dist.spmd_testing import run_simulated

MESHES = ((1, 1), (1, 3), (3, 1), (2, 2), (2, 3), (3, 2), (3, 3))


def operands(kind: str, m: int, k: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Small whole numbers, of which every product is exact."""
    rng = np.random.default_rng((m, k, n))
    return tuple(rng.integers(-3, 4, shape).astype(kind) for shape in ((m, k), (k, n)))  # type: ignore[return-value]


def some_without(bounds: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The second rank gives its rows to the first."""
    return bounds if len(bounds) < 3 else [(bounds[0][0], bounds[1][1]), (0, 0), *bounds[2:]]


@pytest.mark.parametrize("kind", "?fqD")
@pytest.mark.parametrize("shape", [(23, 17, 31), (40, 600, 9), (2, 3, 1), (1, 40, 40), (5, 0, 4), (0, 3, 4), (9, 4, 0)])
@pytest.mark.parametrize("mesh", MESHES)
def test_products(mesh: tuple[int, int], shape: tuple[int, int, int], kind: str) -> None:
    (m, k, _), size = shape, Mesh(mesh).size
    left, right = operands(kind, *shape)
    descending = even_bounds(m, size)[::-1]
    for rows in (even_bounds(m, size), some_without(even_bounds(m, size)), descending):
        for panels in (even_bounds(k, size), some_without(even_bounds(k, size))):

            def body(rows: list[tuple[int, int]] = rows, panels: list[tuple[int, int]] = panels) -> None:
                comm = get_communicator()
                mine, panel = left[slice(*rows[comm.rank])], right[slice(*panels[comm.rank])]
                expected = (left @ right)[slice(*rows[comm.rank])]
                for order in "CF":
                    its, other = np.asarray(mine, order=order), np.asarray(panel, order=order)
                    made = MeshProduct(its, other, rows, panels, Mesh(mesh), comm).result()
                    assert made.dtype == expected.dtype and np.array_equal(made, expected)

            run_simulated(size, body)


@pytest.mark.parametrize("shape", [(64, 64, 64), (60, 30, 90), (300, 40, 40), (40, 40, 300)])
def test_arrays_of_eight_ranks(shape: tuple[int, int, int]) -> None:
    left, right = operands("d", *shape)

    def body() -> None:
        with nd.config(MIN_SHARD_BYTES=0, FALLBACK="error"):
            a, b = nd.asarray(left), nd.asarray(right)
            before = get_communicator().counters.bytes
            made = a @ b
            sent = get_communicator().counters.bytes - before
        # The blocks of a mesh, where whole rows would have to go around.
        assert sent < 0.87 * left.nbytes or shape != (64, 64, 64)
        assert engine.is_sharded(made)
        assert np.array_equal(made.gather(), left @ right)

    run_simulated(8, body)


def words(size: int) -> float:
    """What a rank sends in a product of square matrices, in shares of a matrix."""
    n, rank = 4 * size, size // 2
    mesh, moved = best_mesh(n, n, n, size)
    comm = CountingCommunicator(rank, size, {})
    rows = np.zeros((4, n))
    MeshProduct(rows, rows, even_bounds(n, size), even_bounds(n, size), mesh, comm).result()
    sent = comm.counters.bytes / 8
    assert sent * size == pytest.approx(moved, rel=0.1)
    return sent / n**2


def test_words_fall_with_the_square_root_of_the_ranks() -> None:
    counted = {size: words(size) for size in (16, 64, 256)}
    assert counted[16] <= 2.1 / 4 and counted[64] <= 2.1 / 8 and counted[256] <= 2.1 / 16
