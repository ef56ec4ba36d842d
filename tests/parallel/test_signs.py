"""Signs and phases of eigenvectors and singular vectors: those of the matrix, at any number of ranks."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import scipy.linalg

from numpy_dist.comm.detect import get_communicator
from numpy_dist.parallel import spectra
from numpy_dist.parallel.spectra import eigh, svd
from numpy_dist.spmd_testing import run_simulated
from tests.parallel.test_columns import dealt, whole

N = 80
SECOND = 2 * np.eye(N) - np.eye(N, k=1) - np.eye(N, k=-1)
BESIDE = np.sqrt(np.arange(1.0, N) * np.arange(N - 1.0, 0, -1))
PHASES = np.exp(1j * np.random.default_rng(1).random(N))


def _block(order: int) -> np.ndarray:
    made = np.random.default_rng(order).standard_normal((order, order))
    return made + made.T


# Of all of these, rounding could decide: halves have the same eigenvalues, or what joins blocks is rounding itself.
MATRICES = {
    "second difference": SECOND,
    "of other phases": SECOND * np.outer(PHASES, PHASES.conj()),
    "Kac": np.diag(BESIDE, 1) + np.diag(BESIDE, -1),
    "blocks": scipy.linalg.block_diag(_block(25), _block(26), _block(29)),
}


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Matrices of these tests are the ranks' together."""
    monkeypatch.setattr(spectra, "SMALL", 1)


def _eigenvectors(matrix: np.ndarray) -> np.ndarray:
    _, rows = eigh(dealt(matrix, 5))
    assert rows is not None
    return np.concatenate(get_communicator().allgather(rows))


def _singular_vectors(matrix: np.ndarray) -> np.ndarray:
    _, left, right = svd(dealt(matrix, 5))
    assert left is not None and right is not None
    return np.concatenate([whole(left), whole(right)])


CASES = [(_eigenvectors, name) for name in MATRICES]
CASES += [(_singular_vectors, name) for name in MATRICES if name != "Kac"]  # whose singular values come in pairs


@pytest.mark.parametrize(("function", "name"), CASES)
def test_any_number_of_ranks(function: Callable[[np.ndarray], np.ndarray], name: str) -> None:
    found = [run_simulated(size, lambda: function(MATRICES[name]))[0] for size in (1, 2, 3, 5)]
    for other in found[1:]:
        assert np.abs(other - found[0]).max() <= 1e-8


@pytest.mark.parametrize("wide", [False, True])
def test_the_first_large_element_of_a_right_singular_vector_is_positive(wide: bool) -> None:
    rng = np.random.default_rng(2)
    matrix = rng.standard_normal((50, 40)) + 1j * rng.standard_normal((50, 40))

    def body() -> None:
        _, left, right = svd(dealt(matrix, 5), adjoint=wide)
        assert left is not None and right is not None
        vectors = whole(left if wide else right)
        sizes = np.abs(vectors)
        first = vectors[np.argmax(sizes >= 0.57 * sizes.max(axis=0), axis=0), np.arange(40)]
        assert (first.real > 0).all() and np.abs(first.imag).max() <= 1e-15

    run_simulated(3, body)
