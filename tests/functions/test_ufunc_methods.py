"""The methods of ufuncs whose order matters: reduce, accumulate, reduceat, at; and outer."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import numpy_dist
from numpy_dist import engine
from numpy_dist.settings import config
from numpy_dist.spmd_testing import run_simulated
from tests.functions.harness import check, split

rng = np.random.default_rng(11)
X, Y = rng.standard_normal(23), rng.standard_normal((6, 8))
Z, COUNTS = rng.standard_normal((3, 4, 9)), rng.integers(1, 5, (6, 8))
FEW, FEWER = ("default", "descending", "transposed", "column"), ("default", "descending")
S = np.s_


def bitwise(function: Any, *args: Any, ranks: tuple[int, ...] = (3,), ways: tuple[str, ...] = FEW) -> None:
    """Equal to NumPy's in every bit."""
    check(function, *args, ranks=ranks, ways=ways, rtol=0)


# -- reduce ----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("ufunc", [np.subtract, np.divide, np.hypot], ids=lambda u: u.__name__)
def test_reductions_in_order(ufunc):
    bitwise(ufunc.reduce, X, ranks=(1, 2, 4, 7))
    for axis in (0, 1, 2, -1):
        bitwise(lambda x, axis=axis: ufunc.reduce(x, axis), Z, ranks=(2, 7))
    bitwise(lambda x: ufunc.reduce(x, 1, keepdims=True), Y)
    bitwise(lambda x: ufunc.reduce(x, ()), Y)
    bitwise(lambda x: ufunc.reduce(x, 0, "f4"), Y)
    bitwise(lambda x: ufunc.reduce(x, 1, initial=2.5), Y)
    bitwise(lambda x: ufunc.reduce(x, initial=2.5), X)
    bitwise(lambda x, m: ufunc.reduce(x, 1, initial=2, where=m), Y, Y > 0)
    bitwise(lambda x, m: ufunc.reduce(x, initial=2, where=m), X, X > 0)
    bitwise(lambda x, m: ufunc.reduce(x, 0, initial=2, where=m), Z, Z[0] > 0)
    bitwise(lambda x, o: ufunc.reduce(x, 0, None, o, True), Y, np.zeros((1, 8)))
    # NumPy rounds what it has come to as often as it writes to the output.
    check(lambda x, o: ufunc.reduce(x, 0, out=o), Y, np.zeros(8, "f4"), ranks=(3,), ways=FEW, rtol=1e-5)


def test_reductions_of_other_dtypes():
    bitwise(lambda x: np.power.reduce(x, 0), COUNTS % 3)
    bitwise(lambda x: np.floor_divide.reduce(x, 1), COUNTS * 100)
    bitwise(lambda x: np.left_shift.reduce(x), COUNTS.astype("u1"))
    bitwise(np.subtract.reduce, X.astype("m8[s]"), ranks=(1, 3))
    bitwise(lambda x: np.subtract.reduce(x, 1), Y.astype("m8[s]"))
    bitwise(np.divide.reduce, COUNTS[0])
    bitwise(np.logaddexp.reduce, Y, ranks=(1, 3))
    # Over several axes NumPy goes in the order of memory.
    bitwise(lambda x: np.hypot.reduce(x, (0, 2)), Z, ranks=(1, 3), ways=FEWER)
    bitwise(lambda x: np.hypot.reduce(x, None), Z, ways=FEWER)
    bitwise(lambda x: np.hypot.reduce(x, None, initial=3), np.zeros(0), ways=FEWER)
    bitwise(lambda x: np.subtract.reduce(x, 0), np.zeros((3, 0)), ways=FEWER)
    bitwise(lambda x: np.subtract.reduce(x, 1, initial=3), np.zeros((3, 0)), ways=FEWER)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: np.subtract.reduce(x, None),
        lambda x: np.subtract.reduce(x, (0, 1)),
        lambda x: np.subtract.reduce(x, 2),
        lambda x: np.subtract.reduce(x, 0, where=x > 0),
        lambda x: np.subtract.reduce(x, 0, out=np.zeros(5)),
        lambda x: np.subtract.reduce(x, 0, where=np.ones(5, bool), initial=0),
        lambda x: np.subtract.reduce(x[:0], 0),
        lambda x: np.subtract.reduce(x, 0, "S3"),
        lambda x: np.less.reduce(x, 0),
        lambda x: np.sin.reduce(x),
        lambda x: np.divmod.reduce(x),
        lambda x: np.matmul.reduce(x),
        lambda x: np.subtract.accumulate(x, None),
        lambda x: np.less.accumulate(x),
        lambda x: np.subtract.reduceat(x, [0, 6]),
        lambda x: np.subtract.reduceat(x, [0, -1], 1),
        lambda x: np.subtract.reduceat(x, np.array([1.5])),
        lambda x: np.subtract.reduceat(x, np.array([])),
        lambda x: np.subtract.reduceat(x, [0, 1], 2),
        lambda x: np.subtract.reduceat(x, [0, 1], (0, 1)),
        lambda x: np.subtract.reduceat(x, [0, 1], 0, None, np.zeros((3, 8))),
        lambda x: np.sin.reduceat(x, [0]),
        lambda x: np.sin.outer(x, x),
        lambda x: np.add.outer(x, x, out=x),
        lambda x: np.add.at(x, [0, 6], 1),
        lambda x: np.add.at(x, [0, 1], np.zeros(3)),
        lambda x: np.add.at(x, [0, 1]),
        lambda x: np.negative.at(x, [0, 1], 1),
        lambda x: np.divmod.at(x, [0], 1),
        lambda x: np.add.at(x, [0.5], 1),
        lambda x: np.add.at(x, "a", 1),
        lambda x: np.add.at(x, [0], "a"),
        lambda x: np.add.at(x, (0, 0, 0), 1),
    ],
)
def test_ufunc_method_errors_are_numpys(call):
    check(call, Y, ranks=(3,), ways=FEWER)


def test_errors_of_values_are_raised_on_all_ranks():
    x = np.full((2, 23), 2)
    x[1, 17] = -1
    for axis in (0, 1):
        check(lambda x, axis=axis: np.power.reduce(x, axis), x, ranks=(1, 3), ways=FEW)
        check(lambda x, axis=axis: np.power.accumulate(x, axis), x, ranks=(1, 3), ways=FEW)
        check(lambda x, axis=axis: np.power.reduceat(x, [0, 1], axis), x, ranks=(1, 3), ways=FEW)
    check(lambda x, i: np.power.at(x, i, i), x[1], np.arange(23) - 2, ranks=(3,), ways=("default",), native=True)


# -- accumulate ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_scans_in_order():
    bitwise(np.subtract.accumulate, X, ranks=(1, 2, 4, 7))
    for axis in (0, 1, 2):
        bitwise(lambda x, axis=axis: np.divide.accumulate(x, axis), Z, ranks=(2, 7))
    bitwise(lambda x: np.divide.accumulate(x, 1), COUNTS)
    check(
        lambda x, o: np.subtract.accumulate(x, 0, None, o), Y, np.zeros((6, 8), "f4"), ranks=(3,), ways=FEW, rtol=1e-5
    )
    bitwise(np.subtract.accumulate, X.astype("m8[s]"))
    bitwise(np.power.accumulate, COUNTS[0] % 3)


# -- reduceat --------------------------------------------------------------------------------------------------------

SEGMENTS = [[0, 5, 9, 20], [3, 1, 7, 7, 2, 22, 0], [0], [22, 21, 20], list(range(23)), [11, 0, 11, 0]]


@pytest.mark.slow
@pytest.mark.parametrize("indices", SEGMENTS, ids=str)
def test_segments(indices):
    for ufunc in (np.subtract, np.maximum):
        bitwise(lambda x, u=ufunc: u.reduceat(x, indices), X, ranks=(1, 2, 7))
        bitwise(ufunc.reduceat, X, np.array(indices))
    check(np.add.reduceat, X, np.array(indices), ranks=(3,), ways=FEW)
    bitwise(np.add.reduceat, COUNTS.reshape(-1)[:23], np.array(indices))


@pytest.mark.parametrize(
    ("values", "target"),
    [
        (X > 0, int),
        (COUNTS[0], "m8[s]"),
        (X, int),
        (np.arange(9) * 700, "u1"),
        (np.arange(9) * np.timedelta64(700, "ms"), "m8[s]"),
    ],
)
def test_segments_into_outputs(values, target):
    bitwise(lambda x, out: np.subtract.reduceat(x, [0, 1], out=out), values, np.zeros((2, *values.shape[1:]), target))


def test_lists_of_indices_are_integers_whatever_is_in_them():
    for indices in ([0.0, 1.5], [True, 3], [], ()):
        bitwise(lambda x: np.add.reduceat(x, indices), np.arange(9))  # noqa: B023  (called at once)
    for values in (np.arange(3.0), np.arange(3).astype(object)):
        assert np.add.reduceat(numpy_dist.asarray(values), []).shape == (0,)


def test_segments_of_rows():
    for axis in (0, 1, 2):
        bitwise(lambda x, axis=axis: np.add.reduceat(x, [0, 2, 1], axis), Z, ranks=(2, 3))
        bitwise(lambda x, i, axis=axis: np.divide.reduceat(x, i, axis), Z, np.array([0, 2, 1]))
    bitwise(lambda x: np.subtract.reduceat(x, [0, 7, 40], 1), rng.random((2, 50)), ranks=(3, 7))
    bitwise(lambda x, o: np.subtract.reduceat(x, [0, 3], 0, None, o), Y, np.zeros((2, 8), "f4"))
    bitwise(lambda x: np.add.reduceat(x, [0, 3], 0, "f4"), Y)
    bitwise(lambda x: np.add.reduceat(x, [0, 3]), COUNTS.astype("i1"))
    bitwise(lambda x: np.add.reduceat(x, []), Y, ways=FEWER)
    bitwise(lambda x: np.add.reduceat(x, []), X, ways=FEWER)


# -- outer -----------------------------------------------------------------------------------------------------------


def test_outer():
    bitwise(np.subtract.outer, X, Y, ranks=(1, 3))
    bitwise(lambda x: np.subtract.outer(x, [1, 2]), Y)
    bitwise(lambda x: np.subtract.outer(2, x), Y)
    bitwise(lambda x: np.divmod.outer(x, x), COUNTS[0])
    bitwise(lambda x, o: np.subtract.outer(x, x, out=o), X[:4], np.zeros((4, 4), "f4"))
    bitwise(lambda x, o, m: np.subtract.outer(x, x, out=o, where=m), X[:4], np.zeros((4, 4)), X[:4] > 0)
    bitwise(lambda x: np.subtract.outer(x, x, dtype="f4"), X[:4], ways=FEWER)


# -- at --------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    "index",
    [
        S[[0, 2, 2, -1, 0]], S[:, [0, 2, 2]], S[[0, 1, 1], [2, 3, 3]], S[1:3], S[...], S[2], S[2, [1, 1]], S[()],
        S[[[0], [1]], [1, 1, 2]], S[::2, [1, 1, 0]], S[None, [1, 1]], S[Y > 0], S[Y[:, 0] > 0, 1], S[[]], S[2, 3],
    ],
    ids=str,
)  # fmt: skip
def test_updates_wherever(index):
    def add(x: Any, b: Any) -> Any:
        np.add.at(x, index, b)
        return x

    bitwise(add, Y, 1.5, ranks=(1, 4))
    bitwise(add, Y, rng.standard_normal(Y[index].shape))
    bitwise(lambda x: np.negative.at(x, index), Y)


@pytest.mark.slow
def test_updates_are_made_in_order():
    many = rng.integers(0, 5, 400)
    values = rng.standard_normal(400)

    def update(ufunc: Any) -> Any:
        def call(x: Any, i: Any, v: Any) -> Any:
            ufunc.at(x, i, v)
            return x

        return call

    for ufunc in (np.add, np.multiply, np.subtract, np.divide, np.copysign, np.maximum):
        bitwise(update(ufunc), X, many, values, ranks=(1, 2, 7))
    bitwise(update(np.add), np.arange(5), many, values)  # cast to integers at each step
    bitwise(update(np.add), np.zeros(5, "u1"), many, 300, ways=FEWER)
    bitwise(update(np.add), np.zeros(5, "f4"), many, values, ways=FEWER)
    bitwise(update(np.add), X.astype("M8[s]"), many, np.array(3, "m8[s]"), ways=FEWER)
    bitwise(update(np.logical_xor), X > 0, many, values > 0, ways=FEWER)


def test_updates_move_only_to_owners():
    """One exchange of positions and values, and no gather."""

    def on_each_rank() -> None:
        with config(MIN_SHARD_BYTES=0, FALLBACK="error"):
            x, where = split(np.zeros(9000), 0), split(np.arange(9000) % 3000, 0)
            engine.force(x, where)
            comm = engine.runtime().comm
            comm.counters.reset()
            np.add.at(x, where, 1)
            engine.force(x)
            assert comm.counters.messages <= 2 * (comm.size - 1) + 2
            assert (engine.gather(x) == np.where(np.arange(9000) < 3000, 3, 0)).all()

    run_simulated(3, on_each_rank)


@pytest.mark.parametrize("ufunc", [np.add, np.maximum, np.fmin], ids=lambda u: u.__name__)
@pytest.mark.parametrize("kind", ["f2", "f4", "f8"])
def test_at_tells_what_numpy_tells(ufunc: np.ufunc, kind: str) -> None:
    """Its loops of extremes forget the events of casts."""

    def told(x: Any) -> list[str]:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            ufunc.at(x, [2, 0, 2], 1e300)
        return [str(warning.message) for warning in caught]

    values = np.ones(3, kind)
    expected = told(values.copy())
    assert run_simulated(2, lambda: told(split(values, 0))) == [expected] * 2
