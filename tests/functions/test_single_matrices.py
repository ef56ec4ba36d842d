"""Linear algebra of one matrix that several ranks hold."""

from __future__ import annotations

import numpy as np
import pytest

import numpy_dist as nd
from numpy_dist.spmd_testing import forbid_gathers, run_simulated


def _matrix(kind: str, n: int = 23) -> np.ndarray:
    rng = np.random.default_rng(n)
    imaginary = 1j * rng.standard_normal((n, n)) if kind in "FD" else 0
    return (rng.standard_normal((n, n)) + imaginary).astype(kind)


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
