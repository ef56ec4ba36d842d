"""Eigenvalues and singular values alone, by way of a band: LAPACK's, whatever the widths of panels."""

from __future__ import annotations

import numpy as np
import pytest

import numpy_dist as nd
from numpy_dist.comm.detect import get_communicator
from numpy_dist.parallel import band, band_values, spectra
from tests.parallel.test_columns import dealt, matrix_of

pytestmark = pytest.mark.spmd(ranks=(1, 3))

SHAPES = ((40, 40), (33, 32), (50, 20), (21, 20), (1, 1), (9, 1))


@pytest.mark.parametrize("width", [1, 7, 32])
@pytest.mark.parametrize("kind", "dD")
def test_singular_values(kind: str, width: int) -> None:
    for m, n in SHAPES:
        matrix = matrix_of(kind, m, n)
        theirs = np.linalg.svd(matrix, compute_uv=False)
        found = band.upper_band(dealt(matrix, width))
        assert found.shape == (width + 1, n)
        ours = band_values.singular_values(found, get_communicator())
        assert np.abs(ours - theirs).max() <= 1e-14 * theirs[0]


@pytest.mark.parametrize("width", [1, 7, 32])
@pytest.mark.parametrize("kind", "dD")
def test_eigenvalues(kind: str, width: int) -> None:
    for n in (1, 2, 20, 33, 40):
        matrix = matrix_of(kind, n, n)
        matrix += matrix.conj().T
        theirs = np.linalg.eigvalsh(matrix)
        ours = band_values.eigenvalues(band.hermitian_band(dealt(matrix, width)), get_communicator())
        assert np.abs(ours - theirs).max() <= 1e-14 * np.abs(theirs).max()


def test_a_band_is_what_is_left_of_a_matrix() -> None:
    """And no other elements of it: the band has the norm of the matrix."""
    matrix = matrix_of("d", 30, 30)
    found = band.upper_band(dealt(matrix, 4))
    assert found.shape == (5, 30)
    assert np.isclose(np.linalg.norm(found), np.linalg.norm(matrix), rtol=1e-13)
    assert all((found[row, : 4 - row] == 0).all() for row in range(4))


def test_without_lapacks_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    """The polar decomposition finds the same."""
    monkeypatch.setattr(spectra, "SMALL", 1)
    matrix = matrix_of("d", 40, 30)
    by_band = spectra.svd(dealt(matrix, 5), vectors=False)[0]
    monkeypatch.setattr(band_values, "has_singular_values", lambda comm: False)
    by_polar = spectra.svd(dealt(matrix, 5), vectors=False)[0]
    assert not np.array_equal(by_band, by_polar)
    assert np.abs(by_band - by_polar).max() <= 1e-14 * by_band[0]


def test_lapack_can_be_called() -> None:
    assert band_values.has_singular_values(get_communicator())


@pytest.mark.parametrize("function", [np.linalg.svdvals, np.linalg.eigvalsh])
def test_messages_do_not_grow_with_the_columns(function: np.ufunc) -> None:
    """A panel takes a few for each other rank, a column none."""
    matrix = np.broadcast_to(0.0, (600, 600))
    with nd.config(MIN_SHARD_BYTES=1, FALLBACK="error"):
        counts = nd.count_program(function, matrix, ranks=8, only=(0, 4))
    assert counts.most("messages") <= 800
