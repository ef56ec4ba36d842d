"""Products of vectors and matrices, and what is made of them, against NumPy."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from numpy_dist import engine
from numpy_dist.settings import config
from numpy_dist.spmd_testing import forbid_gathers, run_simulated
from tests.functions.harness import PRESENTATIONS, check, split

rng = np.random.default_rng(5)
A = rng.standard_normal((6, 8))
B = rng.standard_normal((8, 5))
U = rng.standard_normal(8)
S = rng.standard_normal((4, 3, 6))
I8 = rng.integers(-100, 100, (6, 8)).astype("i1")
FEW = tuple(sorted(PRESENTATIONS)[::3])


def test_matmul():
    check(lambda x, y: x @ y, A, B)
    check(lambda x, y: x @ y, A, U)
    check(lambda x, y: x @ y, U, B)
    check(lambda x, y: np.matmul(x, y), U, U, ranks=(1, 3))
    check(lambda x: x.T @ x, A, ranks=(2, 3))
    check(lambda x: x @ B, A, ranks=(3,), ways=FEW)
    check(lambda x: A @ x, B, ranks=(3,), ways=FEW)
    check(lambda x, y: np.matmul(x, y, out=np.zeros((6, 5))), A, B, ranks=(2,), ways=("default",), native=False)
    check(lambda x, y, out: np.matmul(x, y, out=out), A, B, np.ones((6, 5)), ranks=(2,), ways=FEW)
    check(lambda x, y: np.matmul(x, y, dtype=complex), A, B, ranks=(2,), ways=("default",))
    ends = np.array([2**62, 2**62 - 2**40, 5])
    for dtype in ("f2", "f4"):
        check(lambda x, y, dtype=dtype: np.matmul(x, y, dtype=dtype), U, U, ranks=(1, 2), ways=FEW, rtol=1e-6)
    check(lambda x, y: np.matmul(x, y, dtype=float), ends, ends, ranks=(1, 2), ways=("default",))


@pytest.mark.parametrize("dtype", ["i1", "u2", "?", "f2", "f4", "c8", "c16"])
def test_dtypes(dtype):
    x, y = (rng.integers(-100, 100, shape).astype(dtype) for shape in ((6, 8), (8, 5)))
    rtol = 2e-3 if dtype == "f2" else 1e-5 if dtype in ("f4", "c8") else 1e-12
    check(lambda x, y: x @ y, x, y, ranks=(2, 3), ways=("first", "last", "irregular"), rtol=rtol)
    check(lambda x, y: np.dot(x[0], y[:, 0]), x, y, ranks=(3,), ways=("default",), rtol=rtol)


def test_mixed_dtypes_and_empty():
    check(lambda x, y: x @ y, I8, B.astype("f4"), ranks=(2,), ways=FEW, rtol=1e-5)
    check(lambda x, y: x @ y, np.zeros((3, 0)), np.zeros((0, 4)), ranks=(3,), ways=("default", "first"))
    check(lambda x, y: x @ y, np.zeros((0, 3)), np.zeros((3, 4)), ranks=(3,), ways=("default",))
    check(lambda x, y: np.dot(x, y), np.zeros(0), np.zeros(0), ranks=(3,), ways=("default",))


def test_dot_inner_outer():
    check(lambda x, y: np.dot(x, y), A, B, ranks=(3,), ways=FEW)
    check(lambda x, y: np.dot(x, y), U, U)
    check(lambda x: np.dot(x, 3), A, ranks=(2,), ways=FEW)
    check(lambda x, y: np.dot(x, y), S, A[:, :2], ranks=(3,), ways=FEW)
    check(lambda x, y: np.dot(x, y), S, S.transpose(0, 2, 1).copy(), ranks=(3,), ways=("default", "last"))
    check(lambda x, y: x.dot(y), A, U, ranks=(2,), ways=FEW)
    check(lambda x, y, out: np.dot(x, y, out=out), A, B, np.zeros((6, 5)), ranks=(2,), ways=("default",))
    check(lambda x, y: np.dot(x, y, out=engine.replicated(np.array(0.0))), U, U, ranks=(1, 2), ways=("default",))
    check(lambda x, y: np.inner(x, y), A, A, ranks=(3,), ways=FEW)
    check(lambda x, y: np.inner(x, y), U, U, ranks=(2,), ways=FEW)
    check(lambda x: np.inner(3.0, x), I8.astype("m8[s]"), ranks=(1, 2), ways=("default",), native=False)
    check(lambda x, y: np.vdot(x, y), A + 1j, A - 2j, ranks=(3,), ways=FEW)
    check(lambda x, y: np.outer(x, y), U, A, ranks=(3,), ways=FEW)
    check(lambda x, y: np.linalg.outer(x, y), U, U, ranks=(2,), ways=FEW)
    check(lambda x, y: np.tensordot(x, y, ((2,), (0,))), S, A, ranks=(3,), ways=("default", "last"))
    check(lambda x, y: np.tensordot(x, y, 2), A, A, ranks=(3,), ways=("default",))


def test_stacks():
    check(lambda x, y: x @ y, S, rng.standard_normal((4, 6, 2)), ranks=(1, 3), ways=FEW)
    check(lambda x, y: x @ y, S, A, ranks=(3,), ways=("default", "last"))
    check(lambda x, y: x @ y, S, U[:6], ranks=(3,), ways=("default", "last"))
    check(lambda x, y: x @ y, A[:, :3], S, ranks=(3, 7), ways=FEW)
    check(lambda x, y: x @ y, U[:3], S, ranks=(3,), ways=FEW)
    check(lambda x, y: x @ y, S[:, None], rng.standard_normal((5, 6, 2)), ranks=(3,), ways=("default", "last"))
    check(lambda x, y: x @ y, S, np.ones((3, 6, 2)), ranks=(2,), ways=("default",))
    check(lambda x, y: np.einsum("bij,j->bi", x, y), S, U[:6], ranks=(3,), ways=FEW)


@pytest.mark.parametrize(
    "call",
    [
        lambda x, y: x @ x,
        lambda x, y: np.dot(x, x),
        lambda x, y: np.dot(x[0], y),
        lambda x, y: np.matmul(x, 3.0),
        lambda x, y: np.inner(x, y),
        lambda x, y: np.vdot(x, y[:2]),
        lambda x, y: np.matmul(x, y.T, out=np.zeros((3, 3))),
        lambda x, y: np.dot(x, y.T, out=np.zeros((6, 5), "f4")),
        lambda x, y: np.tensordot(x, y, 2),
    ],
)
def test_linear_algebra_errors_are_numpys(call):
    check(call, A, B.T.copy()[:, :7], ranks=(2,), ways=("default",))
    check(call, A, B.T.copy(), ranks=(2,), ways=("default",))


def test_norms_and_the_like():
    for order in (None, "fro", 1, -1, np.inf, -np.inf):
        check(lambda x, order=order: np.linalg.norm(x, order), A, ranks=(3,), ways=FEW)
    for order in (None, 0, 1, 3, np.inf):
        check(lambda x, order=order: np.linalg.norm(x, order, axis=0, keepdims=True), A, ranks=(3,), ways=("default",))
    check(lambda x: np.linalg.norm(x), A + 1j, ranks=(3,), ways=FEW)
    check(lambda x: np.linalg.vector_norm(x, axis=1), A, ranks=(2,), ways=("default",))
    check(lambda x: np.linalg.matrix_norm(x), A, ranks=(2,), ways=("default",))
    check(lambda x: np.trace(x), A, ranks=(3,), ways=FEW)
    check(lambda x: np.trace(x, 1, 1, 2), S, ranks=(3,), ways=FEW)
    check(lambda x: np.linalg.trace(x), A, ranks=(3,), ways=("default",))
    check(lambda x: np.linalg.matrix_power(x, 3), A[:, :6].copy(), ranks=(3,), ways=("default",))
    check(lambda x, y: np.linalg.multi_dot([x, y, x.T]), A, rng.standard_normal((8, 8)), ranks=(2,), ways=("default",))
    check(lambda x: np.cov(x), A, ranks=(3,), ways=("default", "last"))
    check(lambda x: np.corrcoef(x), A, ranks=(2,), ways=("default",))


def test_vecdot_and_kron():
    check(lambda x, y: np.vecdot(x, y), A, A[:1], ranks=(3,), ways=FEW)
    check(lambda x, y: np.vecdot(x, y, axis=0), A + 1j, A, ranks=(2,), ways=("default",))
    check(lambda x, y: np.linalg.vecdot(x, y), U, U, ranks=(2,), ways=("default",))
    check(lambda x: np.vecdot(x, x[:, :3]), A, ranks=(2,), ways=("default",))
    check(lambda x: np.vecdot(x, x), I8, ranks=(2,), ways=("default",))
    check(lambda x, y: np.kron(x, y), A, np.arange(6).reshape(2, 3), ranks=(1, 3), ways=FEW)
    check(lambda x, y: np.kron(x, y), U, A[:2, :2], ranks=(2,), ways=("default",))


def test_what_is_moved():
    """Tall matrices: products over the long axis move only the small results, and no rank holds a whole operand."""

    def on_each_rank():
        with config(MIN_SHARD_BYTES=0, FALLBACK="error"):
            rt = engine.runtime()
            tall = split(np.ones((3000, 4)), 0)
            small = engine.replicated(np.ones((4, 2)))
            engine.force(tall)
            rt.comm.counters.reset()
            with forbid_gathers():
                square = tall.T @ tall
                assert rt.comm.counters.bytes < 2000
                thin = tall @ small
                assert rt.comm.counters.bytes < 2000
                assert thin.layout.box(rt.rank) == tall.layout.box(rt.rank)[:1] + ((0, 2),)
            np.testing.assert_array_equal(engine.gather(square), np.full((4, 4), 3000.0))

    run_simulated(3, on_each_rank)


def test_what_all_ranks_have_does_not_travel():
    """A small sum of products is told to all ranks; the next products with it need no message."""

    def on_each_rank():
        with config(FALLBACK="error"), forbid_gathers():
            x = split(np.ones((3 * config.MIN_SHARD_BYTES // 40, 5)), 0)
            slope, totals = x.T @ x[:, 0], np.sum(x, axis=0)
            engine.force(slope, totals)
            counters = engine.runtime().comm.counters
            counters.reset()
            made = x @ (2 * slope)
            engine.force(made, x @ totals)
            assert counters.messages == counters.collectives == 0
            assert made[0] == 2 * 5 * len(x)

    run_simulated(3, on_each_rank)


@pytest.mark.parametrize("dtype", ["f", "d", "D"])
def test_blocks_are_summed_where_they_lie(dtype):
    """Norms and dot products of what is cut along several axes, or along the last one, send nothing of it."""
    values = (np.arange(2400).reshape(40, 60) % 7 - 3).astype(dtype)
    values += 1j if dtype == "D" else 0

    def on_each_rank():
        with config(MIN_SHARD_BYTES=0, FALLBACK="error"), forbid_gathers():
            for where in ({"mesh": (2, 2)}, {"split": 1}):
                x = split(values, 0).redistribute(**where)
                engine.force(x)
                counters = engine.runtime().comm.counters
                counters.reset()
                for norm in (lambda x: np.linalg.norm(x), lambda x: np.linalg.norm(x, "fro", keepdims=True)):
                    found, expected = norm(x), norm(values)
                    assert np.shape(found) == np.shape(expected) and found.dtype == expected.dtype
                    np.testing.assert_allclose(engine.gather(found) if found.ndim else found, expected, rtol=1e-6)
                found, expected = np.vdot(x, x), np.vdot(values, values)
                assert type(found) is type(expected)
                np.testing.assert_allclose(found, expected, rtol=1e-6)
                assert counters.bytes < 1000  # of 9,600 to 38,400

    run_simulated(4, on_each_rank)


@pytest.mark.parametrize("axis", [0, 1])
def test_one_process_has_numpys_norms(axis):
    """To the bit, whatever the axis that is cut."""
    values = np.random.default_rng(5).standard_normal((30, 70))

    def on_each_rank():
        with config(MIN_SHARD_BYTES=0):
            x = split(values, axis)
            assert np.linalg.norm(x) == np.linalg.norm(values) and np.vdot(x, x) == np.vdot(values, values)

    run_simulated(1, on_each_rank)


def test_overflow_in_a_norm_of_blocks_is_told_as_numpys():
    values = np.full((40, 60), 1e200)
    with np.errstate(over="raise"):
        try:
            np.linalg.norm(values)
        except FloatingPointError as error:
            expected = str(error)
        else:
            expected = ""  # NumPy 2.1's dot tells of none

    def on_each_rank():
        with config(MIN_SHARD_BYTES=0), np.errstate(over="raise"):
            x = split(values, 0).redistribute(mesh=(2, 2))
            if expected:
                with pytest.raises(FloatingPointError, match=expected):
                    np.linalg.norm(x)
            else:
                assert np.linalg.norm(x) == np.inf

    run_simulated(4, on_each_rank)


def test_floating_point_events():
    """What one rank meets, all ranks tell."""
    values = np.ones((6, 4))
    values[5, 3] = np.inf
    with warnings.catch_warnings(record=True) as caught_of_numpy:
        warnings.simplefilter("always")
        values.dot(np.zeros((4, 2)))
    of_numpy = [str(w.message) for w in caught_of_numpy]  # NumPy 2.1's dot tells of none

    def on_each_rank():
        with config(MIN_SHARD_BYTES=0):
            x, y = split(values, 0), split(np.zeros((4, 2)), 0)
            with np.errstate(invalid="raise"), pytest.raises(FloatingPointError, match="invalid value .* in matmul"):
                x @ y
            with np.errstate(all="ignore"):
                assert np.isnan(engine.gather(x @ y)).sum() == 2
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                np.sum(x.dot(y))
            assert [str(w.message) for w in caught] == of_numpy
            assert all(w.filename == __file__ for w in caught)

    for n in (1, 3):
        run_simulated(n, on_each_rank)
