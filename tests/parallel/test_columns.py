"""Matrices whose columns are dealt out to the ranks: there and back, and their factors."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg

from numpy_dist.comm.detect import get_communicator
from numpy_dist.parallel.column_products import gram, multiply, multiply_adjoint
from numpy_dist.parallel.columns import Columns, deal, even_bounds, width_of
from numpy_dist.parallel.factors import Reflections, cholesky, eliminate, exchange_multipliers, exchanged_rows
from numpy_dist.parallel.substitution import substitute

pytestmark = pytest.mark.spmd(ranks=(1, 3))

SHAPES = ((23, 23), (40, 17), (17, 40), (1, 5), (7, 1))
WIDTHS = (1, 4, 128)


def matrix_of(kind: str, m: int = 23, n: int = 23) -> np.ndarray:
    """Random numbers."""
    rng = np.random.default_rng((m, n))
    made = rng.standard_normal((m, n)) + (1j * rng.standard_normal((m, n)) if kind in "FD" else 0)
    return made.astype(kind)


def dealt(matrix: np.ndarray, width: int = 0) -> Columns:
    """The columns of a matrix whose rows lie unevenly."""
    comm = get_communicator()
    bounds = uneven(len(matrix), comm.size)
    low, high = bounds[comm.rank]
    return Columns.dealt(matrix[low:high].copy(), bounds, comm, width)


def uneven(n: int, size: int) -> list[tuple[int, int]]:
    """Rows of ranks, of which the second has none."""
    bounds = even_bounds(n, size)
    return bounds if size < 3 else [(bounds[0][0], bounds[1][1]), (0, 0), *bounds[2:]]


def whole(columns: Columns) -> np.ndarray:
    """The matrix, on every rank."""
    return np.concatenate(columns.comm.allgather(columns.rows(even_bounds(columns.shape[0], columns.comm.size))))


def assert_close(ours: np.ndarray, theirs: np.ndarray) -> None:
    """Equal up to rounding."""
    assert ours.shape == theirs.shape and ours.dtype == theirs.dtype
    if theirs.size:
        assert np.abs(ours - theirs).max() <= 500 * np.finfo(theirs.dtype).eps * max(np.abs(theirs).max(), 1)


@pytest.mark.parametrize("size", (1, 2, 3, 5))
def test_every_column_is_dealt_once(size: int) -> None:
    for n in (1, 5, 100, 3000):
        for end in {0, n // 3, n}:
            panels = deal(n, size, width_of(n, size), end)
            assert [column for panel in panels for column in range(panel.start, panel.stop)] == list(range(n))
            assert not any(panel.start < end < panel.stop for panel in panels)
            held = [sum(panel.width for panel in panels if panel.owner == rank) for rank in range(size)]
            assert max(held) - min(held) <= width_of(n, size) * (2 if 0 < end < n else 1)


@pytest.mark.parametrize("shape", SHAPES)
def test_there_and_back(shape: tuple[int, int]) -> None:
    matrix, comm = matrix_of("D", *shape), get_communicator()
    bounds = uneven(shape[0], comm.size)
    for width in WIDTHS:
        columns = dealt(matrix, width)
        assert np.array_equal(whole(columns), matrix)
        assert np.array_equal(columns.rows(bounds), matrix[slice(*bounds[comm.rank])])
        assert np.array_equal(whole(columns.adjoint()), matrix.conj().T)
        assert np.array_equal(columns.diagonal(), matrix.diagonal())
        held, made = columns.on(comm.size - 1), columns.like()
        assert held is None if comm.rank < comm.size - 1 else np.array_equal(held, matrix)
        made.set(held, comm.size - 1)
        assert np.array_equal(made.values, columns.values)
        if shape[0] == shape[1]:
            assert np.array_equal(whole(columns.block(3, 17)), matrix[3:17, 3:17])


@pytest.mark.parametrize("kind", "fdFD")
def test_products(kind: str) -> None:
    matrix, other = matrix_of(kind, 40, 17), matrix_of(kind, 17, 9)

    for width in WIDTHS:
        a, b = dealt(matrix, width), dealt(other, width)
        assert_close(whole(multiply(a, b)), matrix @ other)
        assert_close(whole(multiply_adjoint(a, a)), matrix.conj().T @ matrix)
        assert_close(np.tril(whole(gram(a))), np.tril(matrix.conj().T @ matrix))
        two = Columns((40, 17), a.values.dtype, a.comm, width, 5)
        two.values[...] = matrix[:, two.indices()]
        rest = dealt(other[:12], width)
        assert_close(whole(multiply(two, rest, 5, 17)), matrix[:, 5:] @ other[:12])


@pytest.mark.parametrize("kind", "fdFD")
def test_elimination(kind: str) -> None:
    matrix = matrix_of(kind)
    right = matrix[::-1, :5] + 1
    lu, pivots = scipy.linalg.lu_factor(matrix)

    for width in WIDTHS:
        columns = dealt(matrix, width)
        mine = right[:, columns.comm.rank :: columns.comm.size].copy()
        found = eliminate(columns, mine)
        assert_close(found.diagonal, lu.diagonal())
        assert np.array_equal(found.pivots, pivots) and not found.singular
        assert_close(np.triu(whole(columns)), np.triu(lu))
        substitute(columns, mine)
        assert_close(mine, np.linalg.solve(matrix, right)[:, columns.comm.rank :: columns.comm.size])


@pytest.mark.parametrize("place", [0, 11, 22])
def test_a_singular_matrix(place: int) -> None:
    matrix = np.tri(23).T * 2
    matrix[place, place] = 0
    assert eliminate(dealt(matrix, 4)).singular == place + 1


@pytest.mark.parametrize("kind", "fdFD")
@pytest.mark.parametrize("shape", SHAPES)
def test_triangular_factors(shape: tuple[int, int], kind: str) -> None:
    matrix = matrix_of(kind, *shape)
    lu, pivots = scipy.linalg.lu_factor(matrix)

    for width in WIDTHS:
        columns = dealt(matrix, width)
        found = eliminate(columns)
        assert np.array_equal(found.pivots, pivots)
        exchange_multipliers(columns, found.pivots)
        assert_close(whole(columns), lu)


def test_exchanged_rows() -> None:
    pivots = scipy.linalg.lu_factor(matrix_of("d"))[1]
    rows = np.arange(23)
    for row, other in enumerate(pivots):
        rows[[row, other]] = rows[[other, row]]
    assert np.array_equal(exchanged_rows(pivots), rows)
    assert np.array_equal(rows[exchanged_rows(pivots, back=True)], np.arange(23))


@pytest.mark.parametrize("kind", "fdFD")
@pytest.mark.parametrize("unit", [False, True])
@pytest.mark.parametrize("adjoint", [False, True])
@pytest.mark.parametrize("lower", [False, True])
def test_substitution(lower: bool, adjoint: bool, unit: bool, kind: str) -> None:
    matrix, right = matrix_of(kind) / 9 + 2 * np.eye(23, dtype=kind), matrix_of(kind, 23, 5)
    trans = "C" if adjoint else "N"
    solution = scipy.linalg.solve_triangular(matrix, right, trans, lower, unit)

    for width in WIDTHS:
        mine = right[:, get_communicator().rank :: get_communicator().size].copy()
        substitute(dealt(matrix, width), mine, lower, adjoint, unit)
        assert_close(mine, solution[:, get_communicator().rank :: get_communicator().size])


@pytest.mark.parametrize("kind", "fdFD")
def test_cholesky(kind: str) -> None:
    matrix, right = matrix_of(kind), matrix_of(kind, 23, 5)
    matrix = matrix @ matrix.conj().T + np.eye(23, dtype=kind)
    factor, solution = np.linalg.cholesky(matrix), np.linalg.solve(matrix, right)
    matrix[np.triu_indices(23, 1)] = np.nan  # is not read

    for width in WIDTHS:
        columns = dealt(matrix, width)
        mine = right[:, columns.comm.rank :: columns.comm.size].copy()
        assert cholesky(columns, mine) == 0
        assert_close(whole(columns), factor)
        substitute(columns, mine, lower=True, adjoint=True)
        assert_close(mine, solution[:, columns.comm.rank :: columns.comm.size])


@pytest.mark.parametrize("place", [0, 11, 22])
def test_a_matrix_that_is_not_positive_definite(place: int) -> None:
    matrix = np.eye(23)
    matrix[place, place] = -1
    assert cholesky(dealt(matrix, 4)) == place + 1


@pytest.mark.parametrize("kind", "fdFD")
@pytest.mark.parametrize("shape", SHAPES)
def test_reflections(shape: tuple[int, int], kind: str) -> None:
    """LAPACK's own factors, signs included."""
    matrix = matrix_of(kind, *shape)
    basis, triangle = np.linalg.qr(matrix)
    complete = np.linalg.qr(matrix, "complete")[0]

    for width in WIDTHS:
        reflections = Reflections(dealt(matrix, width))
        reflections.reduce()
        upper = reflections.columns.like(triangle.shape)
        upper.values[...] = reflections.upper()
        assert_close(whole(upper), triangle)
        assert_close(reflections.diagonal(), triangle.diagonal())
        assert_close(whole(reflections.basis(min(shape))), basis)
        assert_close(whole(reflections.basis(shape[0])), complete)


def test_reflections_above_a_diagonal() -> None:
    matrix = matrix_of("D")
    basis = np.linalg.qr(np.concatenate([matrix, 2 * np.eye(23)]))[0]

    above = dealt(matrix, 4)
    columns = Columns((46, 23), above.values.dtype, above.comm, 4)
    columns.values[:23] = above.values
    columns.add_to_diagonal(2, 23)
    reflections = Reflections(columns, stacked=True)
    reflections.reduce()
    assert_close(whole(reflections.basis(23)), basis)
