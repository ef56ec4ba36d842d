"""Products whose operands lie in boxes of any mesh: right for any layouts, and with the words that are told."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import numpy_dist as nd
from numpy_dist import engine
from numpy_dist.comm.counting import CountingCommunicator
from numpy_dist.comm.detect import get_communicator
from numpy_dist.layout.default import default_layout
from numpy_dist.layout.layout import Copies, Cut, Layout
from numpy_dist.layout.mesh import Mesh
from numpy_dist.layout.regions import box_shape, box_slices
from numpy_dist.parallel.panels import HeldMatrix, panel_product, words_of_panels
from numpy_dist.parallel.product_task import ProductTask
from numpy_dist.spmd_testing import run_simulated
from tests.parallel.exact_matrices import matrix_of

pytestmark = pytest.mark.usefixtures("small_pieces")

MESHES = ((1, 2), (2, 1), (3, 1), (2, 2), (1, 4), (4, 1), (3, 2))


def on_mesh(shape: tuple[int, int], mesh: tuple[int, int], turned: bool = False, uneven: bool = False) -> Layout:
    """Blocks; `turned`, the first dimension of the mesh cuts columns; `uneven`, one has nothing along each axis."""
    dims = []
    for extent, axis in zip(mesh, (1, 0) if turned else (0, 1), strict=True):
        points = tuple(shape[axis] * c // extent for c in range(extent + 1))
        if uneven and extent > 1:
            points = (0, 0, *points[2:])[::-1]
        dims.append(Cut(axis, points))
    return Layout(shape, Mesh(mesh), tuple(dims))


def layouts_of(shape: tuple[int, int], mesh: tuple[int, int]) -> list[Layout | None]:
    size = mesh[0] * mesh[1]
    made: list[Layout | None] = [on_mesh(shape, mesh, turned, uneven) for turned in (0, 1) for uneven in (0, 1)]
    made += [default_layout(shape, size, split=axis) for axis in (0, 1)]
    half = Layout(shape, Mesh(mesh), (Cut(0, on_mesh(shape, mesh).dims[0].points), Copies()))  # type: ignore[union-attr]
    return [*made, half, None]


def part_of(matrix: np.ndarray, layout: Layout | None, rank: int) -> np.ndarray:
    box = None if layout is None else layout.box(rank)
    return matrix if box is None else matrix[box_slices(box, (0, 0))]


@pytest.mark.parametrize("most", (1, 60, 1 << 20))
@pytest.mark.parametrize(
    "kinds", ["dd", "fd", *(pytest.param(kinds, marks=pytest.mark.slow) for kinds in ("??", "De", "qb"))]
)
@pytest.mark.parametrize("shape", [(23, 17, 31), (2, 3, 1), (5, 0, 4), (0, 3, 4), (9, 4, 0)])
@pytest.mark.parametrize("mesh", MESHES)
def test_products(mesh: tuple[int, int], shape: tuple[int, int, int], kinds: str, most: int) -> None:
    (m, k, n), size = shape, mesh[0] * mesh[1]
    left, right = matrix_of(kinds[0], m, k), matrix_of(kinds[1], k, n)
    expected = left @ right

    def body() -> None:
        comm = get_communicator()
        cases = product(layouts_of((m, k), mesh), layouts_of((k, n), mesh))
        for number, (of_left, of_right) in enumerate(cases):
            turned = bool(number // 2 % 2)
            result = on_mesh((m, n), mesh, turned, bool(number % 3))
            order = "CF"[number % 2]
            one = HeldMatrix(np.asarray(part_of(left, of_left, comm.rank), order=order), of_left)
            other = HeldMatrix(np.asarray(part_of(right, of_right, comm.rank), order=order), of_right)
            box = result.box(comm.rank)
            assert box is not None
            out = np.empty(box_shape(box), expected.dtype)
            panel_product(one, other, result, ProductTask(out, comm, most))
            assert np.array_equal(out, part_of(expected, result, comm.rank))
            if kinds == "fd" and number % 5 == 0:
                single = np.empty(out.shape, "f")
                panel_product(one, other, result, ProductTask(single, comm, most), work=out.dtype)
                assert np.array_equal(out, single)

    run_simulated(size, body)


@pytest.mark.parametrize("size", (4, 64, 256))
def test_words_fall_with_the_square_root_of_the_ranks(size: int) -> None:
    root = round(size**0.5)
    layout, rank = on_mesh((4 * root, 4 * root), (root, root)), size // 2
    comm = CountingCommunicator(rank, size, {})
    block, out = np.zeros((4, 4)), np.empty((4, 4))
    panel_product(HeldMatrix(block, layout), HeldMatrix(block, layout), layout, ProductTask(out, comm, 1))
    words = words_of_panels(layout, layout, layout, 4 * root)
    assert words == 2 * (root - 1) * 16 * root**2
    assert comm.counters.bytes * size == 8 * words


@pytest.mark.parametrize("mesh", ((2, 2), (1, 4), (4, 1), (3, 2)))
def test_a_product_stays_on_the_mesh_of_its_operands(mesh: tuple[int, int]) -> None:
    left, right = matrix_of("d", 90, 80), matrix_of("d", 80, 70)

    def body() -> None:
        with nd.config(MIN_SHARD_BYTES=0, FALLBACK="error"):
            a, b = nd.asarray(left, mesh=mesh), nd.asarray(right, mesh=mesh)
            u, v = nd.asarray(left.T.copy(), mesh=mesh), nd.asarray(right.T.copy(), mesh=mesh)
            for made in (a @ b, u.T @ b, a @ v.T, u.T @ v.T, np.dot(a, b), np.einsum("ij,jk->ik", a, b)):
                layout = engine.layout_of(made)
                assert layout is not None and layout.mesh.shape == mesh
                assert np.array_equal(made.gather(), left @ right)
            out = nd.zeros((90, 70))
            assert np.matmul(a, b, out=out) is out and np.array_equal(out.gather(), left @ right)

    run_simulated(mesh[0] * mesh[1], body)
