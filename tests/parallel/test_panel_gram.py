"""The product of a matrix on a mesh and its own transpose: what two ranks both own is computed once, and stays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import numpy_dist as nd
from numpy_dist import engine
from numpy_dist.comm.counting import CountingCommunicator
from numpy_dist.comm.detect import get_communicator
from numpy_dist.dispatch.functions import linear_algebra
from numpy_dist.layout.layout import Cut, Layout
from numpy_dist.layout.regions import box_shape, box_size, box_slices, intersect_boxes
from numpy_dist.parallel.panel_gram import panel_gram, shares_of, words_of_panel_gram
from numpy_dist.parallel.panels import HeldMatrix
from numpy_dist.parallel.product_task import ProductTask
from numpy_dist.spmd_testing import run_simulated
from tests.parallel.exact_matrices import matrix_of
from tests.parallel.test_panels import MESHES, layouts_of, on_mesh, part_of


def box_of(layout: Layout, rank: int) -> tuple[tuple[int, int], ...]:
    box = layout.box(rank)
    assert box is not None
    return box


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("most", (1, 60, 1 << 20))
@pytest.mark.parametrize("kind", [*"dD", *(pytest.param(kind, marks=pytest.mark.slow) for kind in "fq?g")])
@pytest.mark.parametrize("shape", [(23, 17), (8, 30), (2, 3), (1, 40), (5, 0), (0, 3)])
@pytest.mark.parametrize("mesh", MESHES)
def test_products(mesh: tuple[int, int], shape: tuple[int, int], kind: str, most: int) -> None:
    matrix, (m, _) = matrix_of(kind, *shape), shape
    expected = {
        adjoint: matrix @ (matrix.conj().T if adjoint else matrix.T) for adjoint in ((0, 1) if kind == "D" else (0,))
    }

    def body() -> None:
        comm = get_communicator()
        for number, layout in enumerate(layouts_of(shape, mesh)):
            if layout is None or layout.has_copies:
                continue
            held = HeldMatrix(np.array(part_of(matrix, layout, comm.rank), order="F" if number % 2 else "C"), layout)
            for turned in (False, True):
                result = on_mesh((m, m), mesh, turned, bool(number % 3))
                for adjoint, product in expected.items():
                    out = np.empty(box_shape(box_of(result, comm.rank)), product.dtype)
                    panel_gram(held, result, ProductTask(out, comm, most), adjoint=bool(adjoint))
                    assert np.array_equal(out, part_of(product, result, comm.rank))

    run_simulated(mesh[0] * mesh[1], body)


@pytest.mark.parametrize("mesh", [*MESHES, (2, 3), (5, 5)])
def test_each_pair_of_elements_is_computed_once(mesh: tuple[int, int]) -> None:
    m = 30
    for layout in (on_mesh((m, m), mesh), on_mesh((m, m), mesh, turned=True, uneven=True)):
        shares, times, comes = shares_of(layout, (0, 7, m)), np.zeros((m, m)), np.zeros((m, m))
        for rank, boxes in enumerate(shares.boxes):
            for box in boxes:
                assert intersect_boxes(box, box_of(layout, rank)) == box
                times[box_slices(box, (0, 0))] += 1
        for source, box, target in shares.mirrored:
            image = box[::-1]
            assert box in shares.boxes[source] and intersect_boxes(image, box_of(layout, target)) == image
            comes[box_slices(image, (0, 0))] += 1
        blocks = np.logical_and(times, times.T)
        assert np.all(times + comes == 1) and np.all(times + times.T >= 1)
        assert all(box[0] == box[1] for boxes in shares.boxes for box in boxes if blocks[box_slices(box, (0, 0))].any())


@pytest.mark.parametrize("root", (2, 3, 8))
def test_ranks_of_a_square_mesh_compute_half_of_what_they_own(root: int) -> None:
    layout = on_mesh((4 * root, 4 * root), (root, root))
    for rank, boxes in enumerate(shares_of(layout, layout.dims[0].points).boxes):  # type: ignore[union-attr]
        (box,) = boxes
        assert box_size(box) == (16 if rank % root == rank // root else 8)


@pytest.mark.parametrize("mesh", [(2, 2), (3, 2), (2, 3), (8, 8), (8, 16)])
def test_fewer_words_than_of_products_with_other_matrices(mesh: tuple[int, int]) -> None:
    size, (rows, columns) = mesh[0] * mesh[1], mesh
    n = 4 * rows * columns
    layout = on_mesh((n, n), mesh)
    words = words_of_panel_gram(layout, layout)
    sent = 0
    for rank in range(size):
        comm = CountingCommunicator(rank, size, {})
        block = np.zeros(box_shape(box_of(layout, rank)))
        panel_gram(HeldMatrix(block, layout), layout, ProductTask(np.empty_like(block), comm, 1 << 20))
        sent += comm.counters.bytes
    assert sent == 8 * words
    assert words < n * n * (rows + columns - 1) * 3 / 4 + n * n / 2


@pytest.mark.parametrize("mesh", ((2, 2), (3, 2), (2, 3)))
def test_arrays(mesh: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """All names of the product take this way, for views, too; the result is symmetric bit for bit."""
    matrices = [matrix_of(kind, 90, 80) / (1 if kind == "q" else np.dtype(kind).type(7)) for kind in "dfqFD"]
    calls = []

    def noted(operand: HeldMatrix, *args: Any) -> None:
        calls.append(get_communicator().rank)
        panel_gram(operand, *args)

    monkeypatch.setattr(linear_algebra, "panel_gram", noted)

    def check(product: Callable[[Any], Any], values: np.ndarray, adjoint: bool = False) -> None:
        x, before = nd.asarray(values, mesh=mesh), calls.count(get_communicator().rank)
        made, expected = product(x), product(values)
        layout = engine.layout_of(made)
        assert layout is not None and layout.mesh.size == mesh[0] * mesh[1]
        assert [what.axis for what in layout.dims if isinstance(what, Cut)] == [0, 1]
        found = made.gather()
        assert calls.count(get_communicator().rank) == before + 1
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, rtol=2e-4 if found.dtype.char in "fF" else 1e-10, atol=1e-3)
        assert np.array_equal(found, found.conj().T if adjoint else found.T)

    def body() -> None:
        with nd.config(MIN_SHARD_BYTES=0, FALLBACK="error"):
            for values in matrices:
                check(lambda x: x.T @ x, values)
                check(lambda x: x @ x.T, values)
                check(lambda x: np.dot(x.T, x), values)
                check(lambda x: np.matmul(x[2:, ::-1], x[2:, ::-1].T), values)
                check(lambda x: np.einsum("ij,ik->jk", x, x), values)
                check(lambda x: np.inner(x, x), values)
                check(lambda x: np.matmul(x, x.T, out=np.zeros_like(x, shape=(90, 90))), values)
                if values.dtype.kind == "c":
                    check(lambda x: x @ x.conj().T, values, adjoint=True)
                    check(lambda x: x.conj().T @ x, values, adjoint=True)

    run_simulated(mesh[0] * mesh[1], body)


def test_uneven_cuts_and_long_matrices() -> None:
    """A matrix that is long along the summed axis is cut along that where this moves less."""
    matrix = matrix_of("d", 70, 700)

    def body() -> None:
        with nd.config(MIN_SHARD_BYTES=0, FALLBACK="error"):
            x = nd.asarray(matrix, mesh=(2, 2))
            assert linear_algebra._halved_on_mesh(x) is None and linear_algebra._halved_on_mesh(x.T) is not None
            assert np.array_equal((x @ x.T).gather(), matrix @ matrix.T)
            assert np.array_equal((x.T @ x).gather(), matrix.T @ matrix)
            y = x[3:, :80]
            assert np.array_equal((y @ y.T).gather(), matrix[3:, :80] @ matrix[3:, :80].T)
            assert np.array_equal((y.T @ y).gather(), matrix[3:, :80].T @ matrix[3:, :80])

    run_simulated(4, body)
