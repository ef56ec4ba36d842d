"""Signs and phases of eigenvectors and singular vectors: of large matrices by a rule, of small ones LAPACK's."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pytest
import scipy.linalg

import numpy_dist as nd
from numpy_dist.parallel import spectra
from numpy_dist.spmd_testing import forbid_gathers

pytestmark = pytest.mark.spmd(ranks=(1, 3))

SMALL = 20


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Matrices of these tests are large, but for those of order `SMALL`."""
    monkeypatch.setattr(spectra, "SMALL", SMALL)


def gathered(found: Any) -> list[np.ndarray]:
    """Results as ndarrays."""
    return [np.asarray(x.gather() if isinstance(x, nd.DistArray) else x) for x in found]


def by_rule(vectors: np.ndarray) -> np.ndarray:
    """Columns of which the first element that is not small is positive."""
    made = vectors.copy()
    for column in made.T:
        first = column[np.argmax(np.abs(column) >= 0.57 * np.abs(column).max())]
        column *= first.conj() / np.abs(first)
    return made


def a_matrix(kind: str, m: int, n: int) -> np.ndarray:
    """Random numbers."""
    rng = np.random.default_rng((m, n))
    return (rng.standard_normal((m, n)) + (1j * rng.standard_normal((m, n)) if kind in "FD" else 0)).astype(kind)


def symmetric(kind: str, name: str, n: int) -> np.ndarray:
    """Matrices of which LAPACK's signs are those of its rounding errors, and another one."""
    made = a_matrix(kind, n, n)
    made += made.conj().T
    if name == "blocks":
        made[: n // 3, n // 3 :] = made[n // 3 :, : n // 3] = 0
    if name == "second difference":
        made = (2 * np.eye(n) - np.eye(n, k=1) - np.eye(n, k=-1)).astype(kind)
    return made


@pytest.mark.parametrize("uplo", ["L", "U"])
@pytest.mark.parametrize("name", ["random", "blocks", "second difference"])
@pytest.mark.parametrize("kind", "dF")
def test_eigenvectors_of_large_matrices(kind: str, name: str, uplo: Literal["L", "U"]) -> None:
    matrix = symmetric(kind, name, 60)
    theirs = by_rule(np.linalg.eigh(matrix, uplo).eigenvectors)
    with nd.config(MIN_SHARD_BYTES=0, FALLBACK="error"), forbid_gathers():
        x = nd.asarray(matrix)
        ours, (left, _, right) = np.linalg.eigh(x, uplo).eigenvectors, np.linalg.svd(x, hermitian=True)
    ours, left, right = gathered((ours, left, right))
    assert np.abs(ours - theirs).max() <= 1e6 * np.finfo(kind).eps
    assert np.abs(right.conj().T - by_rule(right.conj().T)).max() <= 10 * np.finfo(kind).eps
    signs = np.einsum("ij,ij->j", left.conj(), matrix @ right.conj().T)
    assert (signs.real > 0).all()


@pytest.mark.parametrize("shape", [(60, 60), (60, 30), (30, 60), (300, 4)])
@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("kind", "fD")
def test_singular_vectors_of_large_matrices(kind: str, full: bool, shape: tuple[int, int]) -> None:
    matrix = a_matrix(kind, *shape)
    theirs = np.linalg.svd(matrix, full_matrices=full)
    count = len(theirs.S)
    right = by_rule(theirs.Vh[:count].conj().T)
    left = matrix @ right / theirs.S
    with nd.config(MIN_SHARD_BYTES=0, FALLBACK="error"), forbid_gathers():
        found = np.linalg.svd(nd.asarray(matrix), full_matrices=full)
    ours = gathered(found)
    assert np.abs(ours[0][:, :count] - left).max() <= 1e4 * np.finfo(kind).eps
    assert np.abs(ours[2][:count].conj().T - right).max() <= 1e4 * np.finfo(kind).eps


def test_vectors_of_small_matrices_are_those_of_numpy() -> None:
    matrix = symmetric("D", "random", SMALL)
    with nd.config(MIN_SHARD_BYTES=0, FALLBACK="error"):
        x = nd.asarray(matrix)
        found = gathered((np.linalg.eigh(x).eigenvectors, *np.linalg.svd(x), *np.linalg.svd(x, hermitian=True)))
    expected = (np.linalg.eigh(matrix).eigenvectors, *np.linalg.svd(matrix), *np.linalg.svd(matrix, hermitian=True))
    for ours, theirs in zip(found, expected, strict=True):
        assert np.abs(ours - theirs).max() <= 1e-12 * np.abs(theirs).max()


def test_vectors_of_matrices_that_every_rank_may_have_are_those_of_numpy() -> None:
    matrix = symmetric("d", "random", 40)
    with nd.config(MIN_SHARD_BYTES=1000, FALLBACK="warn"):
        ours = gathered((np.linalg.eigh(nd.asarray(matrix)).eigenvectors,))[0]
    assert np.abs(ours - np.linalg.eigh(matrix).eigenvectors).max() <= 1e-12


@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_what_is_made_of_numbers_that_are_not_finite(number: float) -> None:
    """They are what LAPACK makes of them."""
    matrix = symmetric("D", "random", 40)
    matrix[3, 5] = matrix[5, 3] = number
    theirs = np.linalg.eigh(matrix).eigenvectors
    with nd.config(MIN_SHARD_BYTES=0, FALLBACK="error"):
        (ours,) = gathered((np.linalg.eigh(nd.asarray(matrix)).eigenvectors,))
    assert np.array_equal(ours, theirs, equal_nan=True)


@pytest.mark.parametrize("problem", [1, 2, 3])
def test_vectors_of_generalized_problems(problem: int) -> None:
    a, b = symmetric("D", "random", 40), symmetric("D", "second difference", 40)
    theirs = scipy.linalg.eigh(a, b, type=problem)[1]
    with nd.config(MIN_SHARD_BYTES=0, FALLBACK="error", PLUGINS="scipy"):
        ours = gathered(scipy.linalg.eigh(nd.asarray(a), nd.asarray(b), type=problem))[1]
    assert np.abs(ours - by_rule(theirs)).max() <= 1e-10 * np.abs(theirs).max()
