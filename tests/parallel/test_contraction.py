"""Products that are computed by pieces: right for any pieces, layouts and numbers of ranks."""

from __future__ import annotations

import numpy as np
import pytest

import numpy_dist as nd
from numpy_dist import engine
from numpy_dist.comm.detect import get_communicator
from numpy_dist.layout.layout import Cut, Layout
from numpy_dist.layout.mesh import Mesh
from numpy_dist.layout.regions import box_shape, box_slices
from numpy_dist.parallel.contraction import Contraction
from numpy_dist.parallel.matmul import ring
from numpy_dist.parallel.product_task import ProductTask
from numpy_dist.parallel.row_gram import row_gram
from numpy_dist.spmd_testing import run_simulated
from tests.parallel.exact_matrices import matrix_of

pytestmark = pytest.mark.usefixtures("small_pieces")

SIZES = pytest.mark.parametrize("size", (1, 2, 3, 4))
KINDS = pytest.mark.parametrize("kind", "?dD")
MOST = pytest.mark.parametrize("most", (1, 100, 1 << 20))


def cut_points(n: int, size: int) -> list[tuple[int, ...]]:
    """Even ones, those of which one rank has nothing, and descending ones."""
    even = tuple(n * rank // size for rank in range(size + 1))
    return [even] if size == 1 else [even, (even[0], even[0], *even[2:]), even[::-1]]


def cut_between(shape: tuple[int, int], axis: int, points: tuple[int, ...]) -> Layout:
    return Layout(shape, Mesh((len(points) - 1,)), (Cut(axis, points),))


def shape_on(layout: Layout, rank: int) -> tuple[int, ...]:
    box = layout.box(rank)
    return (0, 0) if box is None else box_shape(box)


def part_of(matrix: np.ndarray, layout: Layout, rank: int) -> np.ndarray:
    box = layout.box(rank)
    return np.empty((0, 0), matrix.dtype) if box is None else matrix[box_slices(box, (0, 0))]


@SIZES
@KINDS
@MOST
@pytest.mark.parametrize("shape", [(23, 17, 31), (2, 3, 1), (5, 0, 4), (0, 3, 4)])
def test_panels_that_go_around(size: int, kind: str, most: int, shape: tuple[int, int, int]) -> None:
    (m, k, n), (even, *_) = shape, cut_points(shape[0], size)
    left, right = matrix_of(kind, m, k), matrix_of(kind, k, n)
    expected = left @ right
    for axis in (0, 1):
        for points in cut_points(right.shape[axis], size):
            layout = cut_between(right.shape, axis, points)

            def body(layout: Layout = layout) -> None:
                comm = get_communicator()
                mine = slice(*even[comm.rank : comm.rank + 2])
                out = np.empty((n, mine.stop - mine.start), kind).T
                ring(left[mine], part_of(right, layout, comm.rank), layout, ProductTask(out, comm, most))
                assert np.array_equal(out, expected[mine])

            run_simulated(size, body)


def layouts_of(shape: tuple[int, int], size: int) -> list[Layout]:
    """A product between whose rows or columns it is cut, on a mesh, and of which each rank has a copy."""
    cuts = [cut_between(shape, axis, points) for axis in (0, 1) for points in cut_points(shape[axis], size)[::2]]
    mesh = Layout(shape, Mesh((2, 2)), tuple(Cut(axis, cut_points(shape[axis], 2)[0]) for axis in (0, 1)))
    return [*cuts, *([mesh] if size == 4 else []), engine.runtime().replicated_layout(shape)]


@SIZES
@KINDS
@MOST
@pytest.mark.parametrize("shape", [(23, 17, 31), (4, 3, 5), (5, 0, 4), (7, 3, 1)])
def test_partial_products(size: int, kind: str, most: int, shape: tuple[int, int, int]) -> None:
    m, k, n = shape
    left, right = matrix_of(kind, m, k), matrix_of(kind, k, n)
    expected = left @ right
    for points in cut_points(k, size):

        def body(points: tuple[int, ...] = points) -> None:
            comm = get_communicator()
            mine = slice(*sorted(points[comm.rank : comm.rank + 2]))
            for layout in layouts_of((m, n), size):
                out = np.empty(shape_on(layout, comm.rank), kind)
                holders = [points[rank] != points[rank + 1] for rank in range(size)]
                Contraction(holders, layout, ProductTask(out, comm, most)).product(left[:, mine], right[mine])
                assert np.array_equal(out, part_of(expected, layout, comm.rank))

        run_simulated(size, body)


@SIZES
@MOST
@pytest.mark.parametrize("kind", "qD")
@pytest.mark.parametrize("shape", [(17, 23), (40, 5), (3, 8), (0, 4), (5, 1)])
def test_halves_of_partial_products(size: int, kind: str, most: int, shape: tuple[int, int]) -> None:
    matrix, n = matrix_of(kind, *shape), shape[1]
    for adjoint in (False, True) if kind == "D" else (False,):
        expected = (matrix.conj() if adjoint else matrix).T @ matrix
        for points in cut_points(shape[0], size):
            for rows in cut_points(n, size):

                def body(
                    points: tuple[int, ...] = points,
                    adjoint: bool = adjoint,
                    rows: tuple[int, ...] = rows,
                    expected: np.ndarray = expected,
                ) -> None:
                    comm = get_communicator()
                    mine = slice(*sorted(points[comm.rank : comm.rank + 2]))
                    layout = cut_between((n, n), 0, rows)
                    out = np.empty(shape_on(layout, comm.rank), kind)
                    holders = [points[rank] != points[rank + 1] for rank in range(size)]
                    Contraction(holders, layout, ProductTask(out, comm, most)).gram(matrix[mine], adjoint)
                    assert np.array_equal(out, part_of(expected, layout, comm.rank))

                run_simulated(size, body)


@SIZES
@MOST
@pytest.mark.parametrize("kind", "dD")
def test_rows_of_a_product_with_the_transpose(size: int, most: int, kind: str) -> None:
    matrix = matrix_of(kind, 23, 7)
    expected = matrix @ matrix.conj().T
    for points in cut_points(23, size):

        def body(points: tuple[int, ...] = points) -> None:
            comm = get_communicator()
            bounds = [tuple(sorted(points[rank : rank + 2])) for rank in range(size)]
            mine = slice(*bounds[comm.rank])
            out = np.empty(expected[mine].shape, kind)
            row_gram(matrix[mine], bounds, comm, out, most, adjoint=kind == "D")
            assert np.array_equal(out, expected[mine])

        run_simulated(size, body)


@pytest.mark.parametrize("size", (2, 3, 4))
def test_a_product_with_the_transpose_is_symmetric(size: int) -> None:
    """Bit for bit, as NumPy's; the sums of three ranks and more depend on their order."""
    matrix = np.random.default_rng(1).standard_normal((150, 120))

    def body() -> None:
        with nd.config(MIN_SHARD_BYTES=0, FALLBACK="error"):
            x = nd.asarray(matrix, split=0)
            before = get_communicator().counters.messages
            product = x.T @ x
            assert get_communicator().counters.messages - before > 2 * size  # by pieces
        found = product.gather()
        assert np.array_equal(found, found.T)
        assert np.allclose(found, matrix.T @ matrix, rtol=1e-12, atol=1e-12)

    run_simulated(size, body)
