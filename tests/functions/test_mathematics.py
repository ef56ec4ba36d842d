"""Functions made of ufuncs and slices, comparisons, NaN statistics and metadata, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from tests.functions.harness import PRESENTATIONS, check

rng = np.random.default_rng(6)
A = rng.standard_normal((6, 8)) * 3
B = rng.integers(-50, 50, (2, 3, 4))
V = rng.standard_normal(11)
C = A + 1j * rng.standard_normal((6, 8))
N = A.copy()
N[1, 2] = N[4, :] = N[:, 5] = np.nan
X = A.copy()
X[0, 1], X[2, 3], X[3, 3] = np.inf, -np.inf, np.nan
FEW = tuple(sorted(PRESENTATIONS)[::3])


def test_clip():
    check(lambda x: np.clip(x, -1, 1), A, ranks=(2, 3), ways=FEW)
    check(lambda x: np.clip(x, None, 1), A, ranks=(2,), ways=FEW)
    check(lambda x: np.clip(x, -1, None), A, ranks=(2,), ways=FEW)
    check(lambda x: np.clip(x, None, None), A, ranks=(2,), ways=("default",))
    check(lambda x: np.clip(x, min=-1), A, ranks=(2,), ways=("default",))
    check(lambda x, y: np.clip(x, y, 2 + y), A, A[0], ranks=(2,), ways=FEW)
    check(lambda x, out: np.clip(x, -1, 1, out=out), A, np.zeros((6, 8)), ranks=(2,), ways=FEW)
    check(lambda x: np.clip(x, -300, 3), B.astype("i1"), ranks=(2,), ways=("default",))
    check(lambda x: np.clip(x, -1, 2.5), B, ranks=(2,), ways=("default",))
    check(lambda x: np.clip(x, 1), A, ranks=(2,), ways=("default",))
    check(lambda x: np.clip(x, 1, 2, min=3), A, ranks=(2,), ways=("default",))
    check(lambda x: np.clip(x, -1, 1, dtype="f4", casting="same_kind"), A, ranks=(2,), ways=("default",))


@pytest.mark.parametrize("decimals", [0, 2, -1])
def test_round(decimals):
    check(lambda x: np.round(x, decimals), A, ranks=(2,), ways=FEW)
    check(lambda x: np.round(x, decimals), B, ranks=(2,), ways=FEW)
    check(lambda x: np.round(x, decimals), C, ranks=(2,), ways=("default", "transposed"))
    check(lambda x: np.round(x, decimals), A.astype("f4"), ranks=(2,), ways=("default",))
    check(lambda x, out: np.round(x, decimals, out=out), A, np.zeros((6, 8)), ranks=(2,), ways=("default",))


def test_comparisons():
    check(lambda x, y: np.isclose(x, y), A, A * (1 + 1e-6), ranks=(2,), ways=FEW)
    check(lambda x, y: np.isclose(x, y, equal_nan=True), X, X, ranks=(2,), ways=FEW)
    check(lambda x: np.isclose(x, 0, atol=1), B, ranks=(2,), ways=FEW)
    check(lambda x, y: np.allclose(x, y), A, A * (1 + 1e-6), ranks=(2,), ways=FEW)
    check(lambda x, y: np.allclose(x, y), A, A + 1, ranks=(2,), ways=("default",))
    check(lambda x, y: np.array_equal(x, y), A, A, ranks=(2,), ways=FEW)
    check(lambda x, y: np.array_equal(x, y), A, A[:3], ranks=(2,), ways=("default",))
    check(lambda x, y: np.array_equal(x, y, equal_nan=True), X, X, ranks=(2,), ways=("default",))
    check(lambda x, y: np.array_equiv(x, y), A, A[:1], ranks=(2,), ways=("default",))
    check(lambda x, y: np.array_equiv(x, y), A, V, ranks=(2,), ways=("default",))
    for function in (np.isneginf, np.isposinf, np.isreal, np.iscomplex):
        check(lambda x, function=function: function(x), X, ranks=(2,), ways=FEW)
    check(np.isreal, C, ranks=(2,), ways=("default",))
    check(np.iscomplex, C, ranks=(2,), ways=("default",))


@pytest.mark.slow
@pytest.mark.parametrize(
    "call",
    [
        lambda x: np.diff(x),
        lambda x: np.diff(x, 2, axis=0),
        lambda x: np.diff(x, prepend=0, append=x[:, :1]),
        lambda x: np.ediff1d(x),
        lambda x: np.ediff1d(x, to_begin=[1, 2], to_end=9),
        lambda x: np.gradient(x),
        lambda x: np.gradient(x, 0.5, axis=1),
        lambda x: np.gradient(x, 2.0, np.arange(8.0) ** 2, edge_order=2),
        lambda x: np.trapezoid(x),
        lambda x: np.trapezoid(x, dx=0.1, axis=0),
        lambda x: np.trapezoid(x, x=np.arange(8.0) ** 2),
        lambda x: np.cross(x[:, :3], x[:, 3:6]),
        lambda x: np.cross(x[0, :3], x[:, 3:6]),
        lambda x: np.cross(x[:, :2], x[:, 3:5]),  # an error since NumPy 2.5
        lambda x: np.linalg.cross(x[:, :3], x[:, 3:6]),
        lambda x: np.nan_to_num(x),
        lambda x: np.nan_to_num(x, nan=5, posinf=1, neginf=-1),
        lambda x: np.nan_to_num(x, copy=False),
        lambda x: np.angle(x),
        lambda x: np.angle(x, deg=True),
        lambda x: np.sinc(x),
        lambda x: np.fix(x),
        lambda x: np.real_if_close(x),
        lambda x: np.polyval([1, 2, 3], x),
        lambda x: np.emath.sqrt(x),
        lambda x: np.emath.log(x + 0.5),
        lambda x: np.emath.arccos(x),
        lambda x: np.emath.power(x, 2),
        lambda x: np.polyadd(x[0], x[1, :3]) if x.ndim > 1 else np.polysub(x, x[1:]),
        lambda x: np.polyder(x[0] if x.ndim > 1 else x),
        lambda x: np.polyint(x[0] if x.ndim > 1 else x, 2),
        lambda x: np.select([x > 1, x < -1], [x, -x], 0.5),
        lambda x: np.select([x[0] > 1], [x]),
        lambda x: np.apply_over_axes(np.sum, x, [0, 1]),
    ],
)
@pytest.mark.parametrize("values", [A, B[0, :, :, None] * np.ones(8, int), C], ids=["float", "integer", "complex"])
def test_composed(call, values):
    values = values[:, 0] if values.ndim == 3 else values
    check(call, values, ranks=(3,), ways=FEW, rtol=1e-12)


def test_nan_to_num_of_infinities():
    check(lambda x: np.nan_to_num(x), X, ranks=(2,), ways=FEW)
    check(lambda x: np.nan_to_num(x, copy=False, posinf=3), X, ranks=(2,), ways=FEW)


@pytest.mark.slow
@pytest.mark.parametrize(
    "function",
    [np.nansum, np.nanprod, np.nanmin, np.nanmax, np.nanmean, np.nanvar, np.nanstd],
    ids=lambda f: f.__name__,
)
def test_nan_functions(function):
    check(lambda x: function(x), N, ranks=(2,), ways=FEW)
    check(lambda x: function(x, axis=0), N, ranks=(3,), ways=FEW)
    check(lambda x: function(x, axis=1, keepdims=True), N, ranks=(3,), ways=("default", "last"))
    check(lambda x: function(x, axis=0), B, ranks=(3,), ways=("default",))
    check(lambda x: function(x), N.astype("f4"), ranks=(2,), ways=("default",), rtol=1e-5)


def test_nan_positions():
    check(lambda x: np.nanargmax(x), N, ranks=(3,), ways=FEW)
    check(lambda x: np.nanargmin(x, axis=0), N[:4, :5], ranks=(3,), ways=FEW)
    check(lambda x: np.nanargmin(x, axis=1), N, ranks=(3,), ways=("default",))


def test_metadata():
    for function in (np.shape, np.ndim, np.size, np.iscomplexobj, np.isrealobj, np.common_type, np.result_type):
        check(lambda x, function=function: function(x), A, ranks=(2,), ways=("default",))
    check(lambda x: np.result_type(x, 3.0, "f8"), A.astype("f4"), ranks=(2,), ways=("default",))
    check(lambda x: np.can_cast(x, "i4"), A, ranks=(2,), ways=("default",))
    check(lambda x: np.min_scalar_type(x), A, ranks=(2,), ways=("default",))
    check(lambda x: np.size(x, 1), A, ranks=(2,), ways=("default",))
    check(lambda x: np.size(x, 5), A, ranks=(2,), ways=("default",))
    check(lambda x: np.astype(x, int), A, ranks=(2,), ways=FEW)
    check(lambda x: np.copy(x), A, ranks=(2,), ways=FEW)
    check(lambda x: np.astype(x, int, device="gpu"), A, ranks=(2,), ways=("default",))
