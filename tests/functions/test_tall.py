"""A single tall matrix: singular values and least squares from the triangles of the ranks' rows."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from numpy_dist import engine
from numpy_dist.dispatch.functions import linear_algebra_decompositions
from numpy_dist.settings import config
from numpy_dist.spmd_testing import forbid_gathers, run_simulated
from tests.functions.harness import PRESENTATIONS, check, split

rng = np.random.default_rng(8)
TALL, RIGHT = rng.standard_normal((60, 5)), rng.standard_normal((60, 2))
FEW = tuple(sorted(PRESENTATIONS)[::2])


def test_least_squares():
    check(lambda a, b: np.linalg.lstsq(a, b), TALL, RIGHT, ranks=(1, 3, 7), ways=FEW, rtol=1e-12)
    check(lambda a, b: np.linalg.lstsq(a, b[:, 0]), TALL, RIGHT * 1j, ranks=(3,), ways=FEW, rtol=1e-12)
    check(lambda x, y: np.polyfit(x, y, 3, cov=True), TALL[:, 0], TALL[:, 1], ranks=(3,), ways=("default",), rtol=1e-10)


def test_singular_values():
    for function in (np.linalg.svdvals, np.linalg.cond, np.linalg.matrix_rank, lambda x: np.linalg.norm(x, "nuc")):
        check(function, TALL, ranks=(1, 3, 7), ways=FEW, rtol=1e-12)
        check(function, TALL.T.copy(), ranks=(3,), ways=("default", "last"), rtol=1e-12)


def test_one_process_reduces_blocks():
    """Where a matrix is so large that LAPACK is slower with the whole of it."""
    matrix = rng.standard_normal((40_001, 9))
    assert matrix.nbytes > linear_algebra_decompositions._LARGE
    for function in (
        np.linalg.qr,
        lambda x: np.linalg.qr(x, "r"),
        lambda x: np.linalg.svd(x, full_matrices=False).S,
        lambda x: np.linalg.lstsq(x, x[:, :2] ** 2),
        lambda x: np.linalg.lstsq(x * 1j, x[:, 0] ** 2),
    ):
        check(function, matrix, ranks=(1,), ways=("default",), rtol=1e-12)

    def tall_ways():
        x = split(matrix, 0)
        made = np.linalg.qr(x)
        assert not np.array_equal(made.Q, np.linalg.qr(matrix).Q)  # rounded otherwise
        with config(MIN_SHARD_BYTES=0):
            u, s, vh = np.linalg.svd(split(matrix, 0), full_matrices=False)
        np.testing.assert_allclose((u * s) @ vh, matrix, rtol=0, atol=1e-13)
        first = np.argmax(np.abs(np.asarray(vh)) >= 0.57 * np.abs(np.asarray(vh)).max(axis=1, keepdims=True), axis=1)
        assert (np.asarray(vh)[np.arange(9), first] > 0).all()

    run_simulated(1, tall_ways)


def test_small_singular_values_are_not_lost():
    """The normal equations would square the condition number, and find nothing below the square root of epsilon."""
    left, right = np.linalg.qr(TALL)[0], np.linalg.qr(rng.standard_normal((5, 5)))[0]
    values = np.array([1.0, 1e-3, 1e-6, 1e-9, 1e-12])
    matrix = left * values @ right

    def on_each_rank():
        with config(MIN_SHARD_BYTES=0, FALLBACK="error"):
            found = engine.gather(np.linalg.svdvals(split(matrix, 0)))
            np.testing.assert_allclose(found, values, rtol=0, atol=1e-15)
            assert np.linalg.matrix_rank(split(matrix, 0), tol=1e-10) == 4

    run_simulated(4, on_each_rank)


def test_only_triangles_travel():
    def on_each_rank():
        with config(MIN_SHARD_BYTES=0, FALLBACK="error"), forbid_gathers():
            a, b = split(np.tile(TALL, (50, 1)), 0), split(np.tile(RIGHT, (50, 1)), 0)
            engine.force(a, b)
            counters = engine.runtime().comm.counters
            counters.reset()
            np.linalg.lstsq(a, b)
            assert counters.collectives == 1 and counters.messages == 0
            assert counters.bytes < 2000

    run_simulated(3, on_each_rank)


@pytest.mark.parametrize("number", [np.inf, -np.inf, np.nan])
def test_matrices_that_are_not_finite(number):
    """Triangles have NaN where the matrix has infinity; NumPy's SVD raises an error for one of them only."""
    values = np.arange(27.0).reshape(9, 3)
    values[4, 1] = number
    functions = (np.linalg.cond, np.linalg.svdvals, np.linalg.matrix_rank)

    def told(matrix):
        found = []
        for function in functions:
            for view in (matrix[:, 1:2], matrix, matrix.T):
                try:
                    found.append(np.asarray(function(view)).tolist())
                except np.linalg.LinAlgError as error:
                    found.append(str(error))
        return repr(found)

    with config(MIN_SHARD_BYTES=0), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for ranks in (1, 3):
            assert set(run_simulated(ranks, lambda: told(split(values, 0)))) == {told(values)}
