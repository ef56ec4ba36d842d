"""argmin, argmax, where and the positions of what is not zero, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from tests.functions.harness import PRESENTATIONS, check

rng = np.random.default_rng(3)
A = rng.integers(0, 4, (6, 8)).astype(float)
B = rng.integers(0, 3, (4, 3, 5))
N = A.copy()
N[4, 1] = N[1, 6] = np.nan
FEW = tuple(sorted(PRESENTATIONS)[::3])


@pytest.mark.slow
@pytest.mark.parametrize("function", [np.argmin, np.argmax])
@pytest.mark.parametrize("values", [A, N], ids=["ties", "nan"])
def test_arg_reductions(function, values):
    check(lambda x: function(x), values)
    check(lambda x: function(x, axis=0), values)
    check(lambda x: function(x, axis=1), values)


@pytest.mark.parametrize("function", [np.argmin, np.argmax])
def test_arg_reductions_of_other_kinds(function):
    check(lambda x: function(x, axis=1), B, ranks=(2, 7), ways=FEW)
    check(lambda x: function(x, axis=-1, keepdims=True), B, ranks=(3,), ways=FEW)
    check(lambda x: function(x, keepdims=True), B, ranks=(3,), ways=FEW)
    check(lambda x: function(x, axis=0), A + 1j * A[::-1], ranks=(3,), ways=FEW)
    check(lambda x: function(x), A > 1, ranks=(3,), ways=FEW)
    check(lambda x, out: function(x, axis=0, out=out), A, np.zeros(8, np.intp), ranks=(3,), ways=FEW)
    check(lambda x: function(x, axis=0), A[0], ranks=(1, 3), ways=FEW)
    check(lambda x: function(x, axis=1), np.zeros((0, 4)), ways=("default",), ranks=(2,))
    dates = np.array(["2020-01-03", "NaT", "2020-01-01", "NaT"], "M8[D]")
    check(lambda x: function(x), dates, ranks=(2,), ways=FEW)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: np.argmax(x[:0]),
        lambda x: np.argmin(x[:0], axis=0),
        lambda x: np.argmax(x, axis=2),
        lambda x: np.argmax(x, axis=0, out=np.zeros(3, int)),
    ],
)
def test_sort_errors_are_numpys(call):
    check(call, A, ranks=(2,), ways=("default",))


@pytest.mark.slow
def test_where():
    check(lambda c, x, y: np.where(c, x, y), A > 1, A, -A)
    check(lambda x: np.where(x > 1, x, 0), A, ranks=(3,))
    check(lambda x: np.where(x, 1, 2.5), B, ranks=(3,), ways=FEW)
    check(lambda x: np.where(x > 1, x, 1.5), A.astype("f4"), ranks=(2,), ways=FEW)
    check(lambda x: np.where(x[:, :1] > 1, x[0], x), A, ranks=(3,), ways=FEW)
    check(lambda x, y: np.where(True, x, y), A, B[0, 0, 0], ranks=(2,), ways=FEW)
    check(lambda x: np.where(x, x), A, ranks=(2,), ways=("default",))
    check(lambda x: np.where(x > 0, x, np.ones(3)), A, ranks=(2,), ways=("default",), messages=False)
    check(lambda x: np.where(x > 1), A, ranks=(3,), ways=FEW)


def test_nonzero():
    check(np.nonzero, A)
    check(np.nonzero, B, ranks=(2, 3), ways=FEW)
    check(np.flatnonzero, B > 1, ranks=(3,), ways=FEW)
    check(np.argwhere, A > 2, ranks=(3,), ways=FEW)


def test_extracting():
    check(lambda c, x: np.extract(c, x), A > 1, A, ranks=(3,), ways=FEW)
    check(lambda x: np.compress([True, False, True], x, axis=0), A, ranks=(3,), ways=FEW)
    check(lambda x: np.compress(np.arange(8) % 3 == 0, x, axis=1), A, ranks=(3,), ways=FEW)
    check(lambda x: np.compress([False] * 7 + [True, True], x, axis=0), A, ranks=(2,), ways=("default",))
    check(lambda x: np.compress([True] + [False] * 8, x, axis=0), A, ranks=(2,), ways=("default",))
    check(lambda x: np.fill_diagonal(x, 1), A[0], ranks=(2,), ways=("default",))
    check(lambda x: np.compress(np.arange(40) % 3 == 0, x), A, ranks=(3,), ways=("default", "transposed"))


def test_masked_assignment():
    check(lambda x: np.place(x, x > 1, [1.5, 2.5, 3.5]), A, ranks=(3,), ways=FEW)
    check(lambda x: np.place(x, x > 1, 9), A, ranks=(3,), ways=FEW)
    check(lambda x: np.place(x, x > 1, []), A, ranks=(2,), ways=("default",))
    check(lambda x: np.place(x, x > 9, []), A, ranks=(2,), ways=("default",))
    check(lambda x: np.place(x, x[0] > 1, [1]), A, ranks=(2,), ways=("default",))
    check(lambda x, y: np.putmask(x, x > 1, y), A, -A, ranks=(3,), ways=FEW)
    check(lambda x: np.putmask(x, x > 1, 2.5), B, ranks=(3,), ways=FEW)
    check(lambda x: np.fill_diagonal(x, 5), A, ranks=(3,), ways=FEW)
    check(lambda x: np.fill_diagonal(x, np.arange(6)), A, ranks=(2,), ways=FEW)
    check(lambda x: np.copyto(x, 1, where=x > 1), A, ranks=(2,), ways=FEW)
    check(lambda x, y: np.copyto(x, y), B, A[0, :5].astype("f4"), ranks=(2,), ways=("default",))
    check(lambda x, y: np.copyto(x, y), A, B[0, 0, :1], ranks=(2,), ways=("default",))
