"""Eigenvalues and singular values on ranks: as near as LAPACK's, within ten times, whatever the matrix."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest
import scipy.linalg

from numpy_dist.comm.detect import get_communicator
from numpy_dist.parallel import cuppen, spectra, tall
from numpy_dist.parallel.columns import even_bounds
from numpy_dist.parallel.extreme_values import extreme_values
from numpy_dist.parallel.phases import phases_of
from numpy_dist.parallel.polar import EPS, unitary_factor
from numpy_dist.parallel.spectra import eigh, svd
from tests.parallel.test_columns import dealt, matrix_of, whole

pytestmark = pytest.mark.spmd(ranks=(1, 3))

N = 36


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Matrices of these tests are the ranks' together, and divided several times."""
    monkeypatch.setattr(spectra, "SMALL", 1)
    monkeypatch.setattr(cuppen, "SMALLEST", 9)


def some_spectra() -> Iterator[tuple[str, np.ndarray]]:
    """Eigenvalues that LAPACK's own tests have, too."""
    rng = np.random.default_rng(1)
    yield "random", rng.standard_normal(N)
    yield "graded", np.logspace(0, -15, N)
    yield "graded, of both signs", np.logspace(0, -10, N) * rng.choice([-1, 1], N)
    yield "repeated", rng.integers(0, 3, N).astype(float)
    yield "rank-deficient", np.where(np.arange(N) < N // 3, rng.standard_normal(N), 0.0)
    yield "one cluster", 1 + 1e-13 * rng.standard_normal(N)
    yield "two clusters", np.where(np.arange(N) < N // 2, 1, 2) + 1e-12 * rng.standard_normal(N)
    yield "one that is large", np.r_[1e8, rng.standard_normal(N - 1)]
    yield "rank one", np.r_[1.0, np.zeros(N - 1)]


def hermitian(values: np.ndarray, kind: str) -> np.ndarray:
    """A matrix with these eigenvalues."""
    basis = np.linalg.qr(matrix_of(kind, N, N))[0]
    made = (basis * values) @ basis.conj().T
    return (made + made.conj().T) / 2


def symmetric_part(matrix: np.ndarray) -> np.ndarray:
    """Of any matrix."""
    return (matrix + matrix.T) / 2


MATRICES = {f"{name}, {kind}": hermitian(values, kind) for kind in "dD" for name, values in some_spectra()} | {
    "identity": np.eye(N),
    "zeros": np.zeros((N, N)),
    "diagonal": np.diag(np.arange(N) % 4 * 1.0),
    "ones": np.ones((N, N)),
    "Hilbert": scipy.linalg.hilbert(N),
    "Wilkinson": np.diag(np.abs(np.arange(N) - N / 2)) + np.eye(N, k=1) + np.eye(N, k=-1),
    "glued": scipy.linalg.block_diag(*(np.diag([2.0, 1, 0, 1, 2, 3]) + np.eye(6, k=1) + np.eye(6, k=-1),) * 6)
    + np.diag(np.tile(np.r_[np.zeros(5), 1e-9], 6)[:-1], 1)
    + np.diag(np.tile(np.r_[np.zeros(5), 1e-9], 6)[:-1], -1),
    "no diagonal": np.eye(N, k=1) + np.eye(N, k=-1),
    "blocks": np.kron(np.eye(N // 3), np.ones((3, 3))),
    "Vandermonde": symmetric_part(np.vander(np.linspace(0, 1, N))),
    "Chebyshev": symmetric_part(np.polynomial.chebyshev.chebvander(np.linspace(-1, 1, N), N - 1)),
    "of order one": np.ones((1, 1)),
}


QUICK = ("random, d", "graded, D", "rank-deficient, D", "one cluster, d", "Hilbert", "identity", "of order one")
NAMES = [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in MATRICES]


def orthogonality(vectors: np.ndarray) -> float:
    """How far columns are from being orthonormal."""
    return float(np.linalg.norm(vectors.conj().T @ vectors - np.eye(vectors.shape[1])))


def as_near(ours: float, theirs: float, n: int) -> bool:
    """Whether an error is at most ten times LAPACK's, or that of a good algorithm."""
    return ours <= 10 * max(theirs, n * EPS)


@pytest.mark.parametrize("name", NAMES)
def test_eigenvectors(name: str) -> None:
    matrix = MATRICES[name]
    n, norm = len(matrix), np.linalg.norm(matrix, 2) or 1
    theirs, vectors = np.linalg.eigh(matrix)

    comm = get_communicator()
    ours, rows = eigh(dealt(matrix, 5))
    only, none = eigh(dealt(matrix, 5), vectors=False)
    assert rows is not None and none is None
    found = np.concatenate(comm.allgather(rows))
    for theirs_values, theirs_only in comm.allgather((ours, only)):
        assert np.array_equal(ours, theirs_values) and np.array_equal(only, theirs_only)
    assert np.all(np.diff(ours) >= 0)
    assert np.abs(ours - theirs).max() <= 10 * n * EPS * norm
    assert np.abs(only - theirs).max() <= 10 * n * EPS * norm
    assert as_near(orthogonality(found), orthogonality(vectors), n)
    left_over = [np.linalg.norm(matrix @ v - v * w) / norm for w, v in ((ours, found), (theirs, vectors))]
    assert as_near(*left_over, n)


@pytest.mark.parametrize("kind", "dD")
def test_eigenvectors_are_those_of_lapack_but_for_phases(kind: str) -> None:
    matrix = matrix_of(kind, 110, 110)
    matrix += matrix.conj().T
    theirs = np.linalg.eigh(matrix).eigenvectors
    _, rows = eigh(dealt(matrix, 5))
    assert rows is not None
    ours = np.concatenate(get_communicator().allgather(rows))
    assert np.abs(ours - theirs * phases_of(theirs)).max() <= 1e-11


@pytest.mark.parametrize("kind", "dD")
def test_phases_of_small_matrices_are_those_of_lapack(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the adjoint is decomposed, since the matrix is wide."""
    monkeypatch.setattr(spectra, "SMALL", 9)
    for m, n in ((7, 4), (4, 7), (5, 5)):
        matrix = matrix_of(kind, m, n)
        wide = m < n
        _, left, right = svd(dealt(matrix.conj().T if wide else matrix, 5), full=True, adjoint=wide)
        assert left is not None and right is not None
        theirs = np.linalg.svd(matrix)
        first, second = (right, left) if wide else (left, right)
        assert np.array_equal(whole(first), theirs.U) and np.array_equal(whole(second), theirs.Vh.conj().T)


@pytest.mark.parametrize("name", NAMES)
def test_singular_vectors(name: str) -> None:
    check_singular_vectors(MATRICES[name])


@pytest.mark.parametrize("kind", "dD")
def test_singular_vectors_of_other_matrices(kind: str) -> None:
    for m, n in ((50, 30), (31, 1), (40, 39)):
        matrix = matrix_of(kind, m, n)
        check_singular_vectors(matrix)
        matrix[7] = 0
        matrix[:, n // 2] = matrix[:, -1]
        check_singular_vectors(matrix)
    check_singular_vectors(np.logspace(0, -16, N)[:, None] * matrix_of(kind, N, N))
    check_singular_vectors(np.logspace(0, -16, N) * matrix_of(kind, N, N))


def check_singular_vectors(matrix: np.ndarray) -> None:
    """Compare those of a matrix with LAPACK's."""
    (m, n), norm = matrix.shape, np.linalg.norm(matrix, 2) or 1
    theirs = np.linalg.svd(matrix, full_matrices=False)

    found = []
    for complete in (False, True):
        values, left, right = svd(dealt(matrix, 5), full=complete)
        assert left is not None and right is not None
        found += [values, whole(left), whole(right)]
    values, left, right, same, full, also = found
    only = svd(dealt(matrix, 5), vectors=False)[0]
    assert left.shape == (m, n) and full.shape == (m, m) and right.shape == (n, n)
    assert np.array_equal(values, same) and np.array_equal(right, also) and np.all(np.diff(values) <= 0)
    for ours in (values, only):
        assert np.abs(ours - theirs.S).max() <= 10 * m * EPS * norm
    for vectors, like in ((left, theirs.U), (full, theirs.U), (right, theirs.Vh.conj().T)):
        assert as_near(orthogonality(vectors), orthogonality(like), m)
    left_over = [np.linalg.norm(matrix - (u * s) @ vh) / norm for u, s, vh in ((left, values, right.conj().T), theirs)]
    assert as_near(*left_over, m)


def test_what_has_no_unitary_factor() -> None:
    """The number of singular values that are lost tells."""
    matrix = np.diag(np.r_[np.ones(N - 3), np.zeros(3)])
    assert round(unitary_factor(dealt(matrix, 5))[1]) == 3


@pytest.mark.parametrize("guesses", [(1.0, 1e-3), (1.0, 0.25), (0.3, 1e-3), (20.0, 1e-8), (math.inf, 0.0)])
@pytest.mark.parametrize("kind", "dD")
def test_a_unitary_factor_by_guesses(guesses: tuple[float, float], kind: str) -> None:
    """Of singular values from 1 to 0.001; where guesses are wrong more steps are made."""
    left, right = (np.linalg.qr(matrix_of(kind, N + more, N))[0] for more in (0, 1))
    right = np.linalg.qr(right[:N])[0]
    factor, lost = unitary_factor(dealt((left * np.logspace(0, -3, N)) @ right.conj().T, 5), *guesses)
    assert lost == 0
    assert np.abs(whole(factor) - left @ right.conj().T).max() <= 1e-12


@pytest.mark.parametrize("kind", "dD")
def test_extreme_values(kind: str) -> None:
    """Estimates come from the inside, and are near; of a singular matrix the smallest one is next to nothing."""
    triangle = np.triu(matrix_of(kind, N, N)) + 3 * np.eye(N)
    values = np.linalg.svd(triangle, compute_uv=False)
    largest, smallest = extreme_values(dealt(triangle, 5))
    assert 0.8 * values[0] <= largest <= values[0] * (1 + N * EPS)
    assert values[-1] * (1 - N * EPS * values[0] / values[-1]) <= smallest <= 1.5 * values[-1]
    triangle[:, N // 2] = 0
    assert extreme_values(dealt(triangle, 5))[1] <= EPS * values[0]
    assert extreme_values(dealt(np.zeros((N, N), kind), 5)) == (0, 0)


@pytest.mark.parametrize("block", [tall._BLOCK, 24])
@pytest.mark.parametrize("kind", "dD")
def test_tall_matrices(kind: str, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where they lie, with LAPACK's signs, and alike on any number of threads."""
    monkeypatch.setattr(tall, "_BLOCK", block)
    monkeypatch.setattr(tall, "_PIECE", 4 * block)
    comm = get_communicator()
    for m, n in ((40, 3), (9, 1), (200, 20), (12, 6), (1000, 3)):
        matrix = matrix_of(kind, m, n)
        basis, triangle = np.linalg.qr(matrix)
        low, high = even_bounds(m, comm.size)[comm.rank]
        rows, found = tall.factors(np.asfortranarray(matrix[low:high]), low, comm, 3)
        assert all(map(np.array_equal, tall.factors(matrix[low:high], low, comm, 1), (rows, found)))
        ours = np.concatenate(comm.allgather(rows))
        assert np.abs(ours - basis).max() <= 1e-14 and np.abs(found - triangle).max() <= 1e-13
        small = tall.triangles(matrix[low:high], comm, 3)
        assert np.array_equal(tall.triangles(matrix[low:high], comm, 1), small)
        sizes = np.linalg.svd(small, compute_uv=False)
        assert np.abs(sizes - np.linalg.svd(matrix, compute_uv=False)).max() <= 1e-13
