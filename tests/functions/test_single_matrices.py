"""Factors of one matrix whose columns are cut between ranks."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg

import numpy_dist as nd
from numpy_dist.comm.detect import get_communicator
from numpy_dist.parallel.factors import Columns, cholesky, eliminate, substitute
from numpy_dist.spmd_testing import forbid_gathers, run_simulated

CUTS = {1: (0, 23), 2: (0, 20, 23), 3: (0, 0, 9, 23), 4: (0, 7, 7, 8, 23), 7: (0, 3, 6, 9, 13, 16, 23, 23)}
WIDTHS = (1, 4, 128)


def _matrix(kind: str, n: int = 23) -> np.ndarray:
    rng = np.random.default_rng(n)
    imaginary = 1j * rng.standard_normal((n, n)) if kind in "FD" else 0
    return (rng.standard_normal((n, n)) + imaginary).astype(kind)


def _columns(matrix: np.ndarray, width: int) -> Columns:
    comm = get_communicator()
    bounds = list(zip(CUTS[comm.size][:-1], CUTS[comm.size][1:], strict=True))
    return Columns(matrix[:, slice(*bounds[comm.rank])].copy(), bounds, comm, width)


def _close(ours: np.ndarray, theirs: np.ndarray) -> None:
    assert ours.dtype == theirs.dtype
    assert np.abs(ours - theirs).max() <= 500 * np.finfo(theirs.dtype).eps * np.abs(theirs).max()


@pytest.mark.slow
@pytest.mark.parametrize("kind", "fdFD")
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("ranks", CUTS)
def test_elimination(ranks: int, width: int, kind: str) -> None:
    matrix = _matrix(kind)
    right = matrix[::-1, :5] + 1
    lu, pivots = scipy.linalg.lu_factor(matrix)

    def work() -> None:
        comm, columns = get_communicator(), _columns(matrix, width)
        mine = right[:, comm.rank :: comm.size].copy()
        found = eliminate(columns, mine)
        assert found is not None
        diagonal, swaps = found
        _close(diagonal, lu.diagonal())
        assert swaps == np.count_nonzero(pivots != np.arange(len(pivots)))
        upper = np.concatenate(comm.allgather(columns.values), axis=1)
        _close(np.triu(upper), np.triu(lu))
        substitute(columns, mine)
        if mine.size:
            _close(mine, np.linalg.solve(matrix, right)[:, comm.rank :: comm.size])

    run_simulated(ranks, work)


@pytest.mark.parametrize("place", [0, 11, 22])
@pytest.mark.parametrize("ranks", CUTS)
def test_a_singular_matrix(ranks: int, place: int) -> None:
    matrix = np.tri(23).T * 2
    matrix[place, place] = 0
    assert run_simulated(ranks, lambda: eliminate(_columns(matrix, 4))) == [None] * ranks


@pytest.mark.parametrize("kind", "fdFD")
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("ranks", CUTS)
def test_cholesky(ranks: int, width: int, kind: str) -> None:
    matrix = _matrix(kind)
    matrix = matrix @ matrix.conj().T + np.eye(23, dtype=kind)
    wanted = np.linalg.cholesky(matrix)
    matrix[np.triu_indices(23, 1)] = np.nan  # is not read

    def work() -> None:
        columns = _columns(matrix, width)
        assert cholesky(columns)
        _close(columns.values, wanted[:, columns.low : columns.high]) if columns.values.size else None

    run_simulated(ranks, work)


@pytest.mark.parametrize("place", [0, 11, 22])
@pytest.mark.parametrize("ranks", CUTS)
def test_a_matrix_that_is_not_positive_definite(ranks: int, place: int) -> None:
    matrix = np.eye(23)
    matrix[place, place] = -1
    assert run_simulated(ranks, lambda: cholesky(_columns(matrix, 4))) == [False] * ranks


@pytest.mark.slow
@pytest.mark.parametrize("split", [0, 1])
@pytest.mark.parametrize("ranks", [2, 3, 5])
def test_nothing_is_gathered(ranks: int, split: int) -> None:
    matrix = _matrix("d", 300) + 20 * np.eye(300)

    def work() -> None:
        x = nd.asarray(matrix, split=split)
        with forbid_gathers(), nd.config(FALLBACK="error", MIN_SHARD_BYTES=0):
            solution, inverse, lower = np.linalg.solve(x, x[:, 3]), np.linalg.inv(x), np.linalg.cholesky(x @ x.T)
            signed = np.linalg.slogdet(x)
            assert type(signed.sign) is np.float64 and signed.sign == np.linalg.slogdet(matrix).sign
        assert np.allclose(solution.gather(), np.eye(300)[3], atol=1e-12)
        assert np.allclose(inverse.gather() @ matrix, np.eye(300), atol=1e-12)
        assert np.allclose(lower.gather(), np.linalg.cholesky(matrix @ matrix.T))
        assert inverse.local.size <= 300 * 300 // ranks + 300

    run_simulated(ranks, work)


@pytest.mark.parametrize("function", [np.linalg.inv, np.linalg.cholesky, lambda x: np.linalg.solve(x, x)])
@pytest.mark.parametrize("ranks", [2, 3])
def test_errors_are_raised_on_every_rank(ranks: int, function) -> None:
    matrix = np.ones((9, 9))
    with pytest.raises(np.linalg.LinAlgError) as theirs:
        function(matrix)

    def work() -> str:
        with pytest.raises(np.linalg.LinAlgError) as ours:
            function(nd.asarray(matrix, split=0))
        return str(ours.value)

    assert run_simulated(ranks, work) == [str(theirs.value)] * ranks


@pytest.mark.parametrize("name", ["inv", "det", "slogdet", "cholesky", "eigh", "qr", "svd", "pinv", "eigvals"])
@pytest.mark.parametrize("ranks", [2, 3])
def test_a_small_matrix_is_known_to_all_ranks(ranks: int, name: str) -> None:
    matrix, function = _matrix("d", 60), getattr(np.linalg, name)
    matrix = matrix @ matrix.T
    theirs = function(matrix)

    def work() -> None:
        with nd.config(MIN_SHARD_BYTES=1 << 15, FALLBACK="error"), forbid_gathers():
            ours = function(nd.asarray(matrix, split=0))
        assert type(ours) is type(theirs) or not isinstance(theirs, tuple)
        for mine, other in zip(*(x if isinstance(x, tuple) else (x,) for x in (ours, theirs)), strict=True):
            assert np.array_equal(mine.gather() if isinstance(mine, nd.DistArray) else mine, other)
        with nd.config(MIN_SHARD_BYTES=1 << 15, FALLBACK="error"), pytest.raises(np.linalg.LinAlgError):
            np.linalg.inv(nd.asarray(np.ones((60, 60)), split=0))

    run_simulated(ranks, work)


@pytest.mark.parametrize("kind", "fF")
@pytest.mark.parametrize("ranks", [2, 3])
def test_single_precision_is_that_of_the_result_only(ranks: int, kind: str) -> None:
    """Of a matrix whose condition is 1e6 single precision would leave one digit; NumPy computes in double precision."""
    left, right = (np.linalg.qr(_matrix("d", 60) + shift)[0] for shift in (0, 1))
    matrix = (left * np.logspace(0, -6, 60) @ right).astype(kind)
    definite = (left * np.logspace(0, -6, 60) @ left.T).astype(kind) + np.eye(60, dtype=kind) * np.float32(1e-6)

    def work() -> None:
        with nd.config(MIN_SHARD_BYTES=0, FALLBACK="error"):
            x, y = nd.asarray(matrix), nd.asarray(definite)
            for ours, theirs in (
                (np.linalg.inv(x), np.linalg.inv(matrix)),
                (np.linalg.solve(x, x[:, ::-1]), np.linalg.solve(matrix, matrix[:, ::-1])),
                (np.linalg.cholesky(y), np.linalg.cholesky(definite)),
                (np.linalg.det(x * 1e3), np.linalg.det(matrix * np.float32(1e3))),
            ):
                ours = ours.gather() if isinstance(ours, nd.DistArray) else ours
                assert ours.dtype == theirs.dtype == kind
                assert np.abs(ours - theirs).max() <= 4 * np.finfo(theirs.dtype).eps * np.abs(theirs).max()

    run_simulated(ranks, work)
