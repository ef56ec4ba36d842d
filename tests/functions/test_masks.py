"""Boolean masks, read and written, against NumPy."""

from __future__ import annotations

import operator

import numpy as np
import pytest

import numpy_dist
from numpy_dist import engine
from numpy_dist.layout.layout import Cut
from numpy_dist.settings import config
from numpy_dist.spmd_testing import run_simulated
from tests.functions.harness import PRESENTATIONS, check, split

rng = np.random.default_rng(2)
V = rng.integers(0, 100, 23)
A = rng.standard_normal((6, 8))
B = rng.integers(0, 50, (4, 3, 5))
FEW = tuple(sorted(PRESENTATIONS)[::3])


def mask(*shape):
    return rng.random(shape) > 0.5


def assigned(x, key, value):
    x[key] = value
    return x


@pytest.mark.slow
def test_reading():
    check(operator.getitem, V, mask(23))
    check(operator.getitem, A, mask(6, 8))
    check(operator.getitem, A, mask(6))
    check(operator.getitem, B, mask(4, 3), ranks=(2, 7))
    check(operator.getitem, V, np.zeros(23, bool), ranks=(3,))
    check(operator.getitem, V, np.ones(23, bool), ranks=(3,))


def test_masks_of_other_kinds():
    m = mask(6)
    check(lambda x: x[m], A, ranks=(3,))
    check(lambda x: x[list(m)], A, ways=FEW, ranks=(3,))
    check(lambda x: x[x > 0], A)
    check(lambda x: x[x[:, 0] > 0], A, ranks=(1, 3))


@pytest.mark.parametrize(
    "index",
    [
        lambda m: (m, slice(2, 5)),
        lambda m: (m, ...),
        lambda m: (..., m, slice(None)),
        lambda m: (m, 3),
        lambda m: (m, None, slice(None, None, -2)),
        lambda m: (None, m),
        lambda m: (m[:, None] & np.ones(8, bool), None),
    ],
)
def test_combined(index):
    m = mask(6)
    check(lambda x: x[index(m)], A, ranks=(1, 3), ways=FEW)
    check(lambda x: assigned(x, index(m), 9), A, ranks=(1, 3), ways=FEW)


@pytest.mark.parametrize("truth", [True, False])
def test_single_truth_values(truth):
    check(lambda x: x[truth], A, ranks=(1, 3), ways=FEW)
    check(lambda x: x[..., np.bool_(truth)], A, ranks=(3,), ways=FEW)
    check(lambda x: x[1:, np.array(truth), 0], A, ranks=(3,), ways=("default",), native=False)
    check(lambda x: assigned(x, truth, 5), A, ranks=(3,), ways=FEW)
    check(lambda x: assigned(x, x.sum() > 1e9, [1.0]), V, ranks=(3,), ways=FEW)


def test_later_axes():
    m, n = mask(8), mask(3, 5)
    check(lambda x: x[:, m], A, ranks=(2, 3))
    check(lambda x: x[..., n], B, ranks=(3,))
    check(lambda x: x[1:, m[:3]], B, ranks=(3,), ways=FEW)
    check(lambda x: assigned(x, (slice(None), m), 1.5), A, ranks=(3,))
    check(lambda x, v: assigned(x, (slice(None), m), v), A, rng.random((6, m.sum())), ranks=(3,), ways=FEW)
    check(lambda x, v: assigned(x, (slice(None), m), v), A, rng.random((6, 1)), ranks=(3,), ways=FEW)


def test_writing_scalars():
    check(lambda x, m: assigned(x, m, 7), V, mask(23))
    check(lambda x: assigned(x, x < 0, 0), A)
    check(lambda x, m: assigned(x, m, -1), A, mask(6))
    check(lambda x, m: assigned(x, m, np.array([3.5])), A, mask(6, 8), ranks=(2,))
    check(lambda x: assigned(x, x > 50, 300), V.astype("u1"), ranks=(2,), ways=FEW)
    check(lambda x: assigned(x, x > 50, 2.7), V, ranks=(2,), ways=FEW)


def test_writing_rows():
    m = mask(6)
    check(lambda x, v: assigned(x, m, v), A, rng.random(8), ranks=(3,))
    check(lambda x, v: assigned(x, m, v), A, rng.random((1, 8)), ranks=(3,), ways=FEW)
    check(lambda x, v: assigned(x, m, v), A, rng.random((m.sum(), 1)), ranks=(3,), ways=FEW)


@pytest.mark.slow
def test_writing_values():
    m, n, k = mask(23), mask(6, 8), mask(6)
    check(lambda x, v: assigned(x, m, v), V, rng.integers(0, 9, m.sum()))
    check(lambda x, v: assigned(x, n, v), A, rng.random(n.sum()))
    check(lambda x, v: assigned(x, k, v), A, rng.random((k.sum(), 8)))
    check(lambda x: assigned(x, n, list(range(n.sum()))), A, ranks=(3,), ways=FEW)
    check(lambda x: assigned(x, m, x[m][::-1]), V, ranks=(3,))
    check(lambda x, n, v: assigned(x, n, v), A, n, rng.random(n.sum()), ranks=(2,), ways=FEW)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x[np.ones(5, bool)],
        lambda x: x[np.ones((6, 7), bool)],
        lambda x: x[np.ones((6, 8, 1), bool)],
        lambda x: x[:, np.ones(6, bool)],
        lambda x: x[np.ones(6, bool), 9],
        lambda x: assigned(x, np.ones(5, bool), 1),
        lambda x: assigned(x, x > 0, [1.0, 2.0, 3.0]),
        lambda x: assigned(x, x > 0, np.ones((2, 3))),
        lambda x: assigned(x, x[:, 0] > 0, np.ones((6, 3))),
        lambda x: assigned(x, x[:, 0] > 0, np.ones((7, 8))),
        lambda x: assigned(x, x[:, 0] > 0, np.ones((2, 1, 8))),
        lambda x: assigned(x, (slice(None), x[0] > 0), np.ones(7)),
        lambda x: assigned(np.broadcast_to(x, (2, 6, 8)), np.ones((2, 6, 8), bool), 1),
    ],
)
def test_mask_errors_are_numpys(call):
    check(call, A, ranks=(2,), ways=("default", "first"))


def test_nothing_is_moved():
    """What a mask selects stays where it is: one small collective, uneven cut points."""

    def on_each_rank():
        with config(MIN_SHARD_BYTES=0):
            a = np.arange(1000.0)
            x = split(a, 0)
            keep = x < 300
            engine.force(x, keep)
            comm = engine.runtime().comm
            comm.counters.reset()
            chosen = x[keep]
            engine.force(chosen)
            assert comm.counters.messages == 0 and comm.counters.collectives <= 2
            assert [type(d) for d in chosen.layout.dims] == [Cut]
            assert chosen.layout.dims[0].points == (0, 300, 300)
            assert chosen.local.size == (300, 0)[comm.rank]
            comm.counters.reset()
            x[keep] = 0
            engine.force(x)
            assert comm.counters.messages == 0

    run_simulated(2, on_each_rank)


def test_empty():
    check(operator.getitem, np.zeros((0, 6)), np.zeros(0, bool), ranks=(1, 3), ways=("default", "last"))
    check(operator.getitem, np.zeros((4, 0)), mask(4), ranks=(3,), ways=("default", "first"))
    none = np.zeros(8, bool)
    check(lambda x, v: assigned(x, (slice(None), none), v), A, np.zeros((6, 0)), ranks=(3,), ways=FEW)
    check(lambda x: assigned(x, none[:6], []), V[:6], ranks=(3,), ways=FEW)


@pytest.mark.parametrize(
    "key", [(mask(6), np.array(1)), (np.array(2), mask(8)), (True, np.array(1)), (False, np.array(0))]
)
def test_integers_beside_a_mask_may_be_arrays_without_axes(key):
    def body():
        with config(MIN_SHARD_BYTES=0):
            x = split(A, 0)
            np.testing.assert_array_equal(x[key].gather(), A[key])
            changed = A.copy()
            x[key] = changed[key] = 7
            np.testing.assert_array_equal(x.gather(), changed)

    for ranks in (1, 2):
        run_simulated(ranks, body)


def test_what_cannot_be_cast_may_be_given_to_a_mask_that_selects_nothing() -> None:
    values = np.zeros(1, [("x", "f8"), ("n", "i4")])
    with config(MIN_SHARD_BYTES=0):
        for value in (values, values[0:1].reshape(()), numpy_dist.asarray(values)):
            x = numpy_dist.asarray(np.arange(60.0))
            x[x < 0] = value
            assert np.array_equal(x.gather(), np.arange(60.0))
            with pytest.raises(TypeError, match="Cannot cast"):
                x[x > 50] = value
