"""Products whose factors over- or underflow together: NumPy's order of multiplication, and its warnings."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import numpy_dist
from numpy_dist.comm.simulated import run_simulated
from numpy_dist.parallel.products import Factors
from numpy_dist.settings import config

RANKS = pytest.mark.parametrize("ranks", [1, 2, 3, 7])
rng = np.random.default_rng(3)


def _spread(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Factors of which a few are enough to leave the range of the dtype."""
    wide = {"e": 3, "f": 20, "d": 150, "g": 2500}[np.empty(0, dtype).real.dtype.char]
    values = np.longdouble(10) ** rng.uniform(-wide, wide, shape) * rng.choice([-1, 1], shape)
    return (values if np.dtype(dtype).kind == "f" else values + 1j * values * rng.uniform(0.5, 2, shape)).astype(dtype)


def _outcome(call: Callable[[], Any]) -> tuple[Any, list[str]]:
    with warnings.catch_warnings(record=True) as caught, np.errstate(all="warn"):
        warnings.simplefilter("always")
        found = call()
        found = found.gather() if isinstance(found, numpy_dist.DistArray) else np.asarray(found)
    return found, sorted({str(w.message) for w in caught if issubclass(w.category, RuntimeWarning)})


def _compare(ranks: int, call: Callable[[Any], Any], values: np.ndarray, exact: bool = True, **place: Any) -> None:
    expected, theirs = _outcome(lambda: call(values))

    def on_rank() -> None:
        with config(MIN_SHARD_BYTES=0, FALLBACK="error"):
            found, warned = _outcome(lambda: call(numpy_dist.asarray(values, **place)))
        assert found.dtype == expected.dtype and found.shape == expected.shape
        if exact and found.dtype.kind == "c":  # NumPy's loops round strided complex numbers in another way
            finite = np.isfinite(expected)
            np.testing.assert_array_equal(np.isfinite(found), finite)
            for numpys, ours in ((expected.real, found.real), (expected.imag, found.imag)):
                np.testing.assert_allclose(ours[finite], numpys[finite], rtol=64 * np.finfo(found.dtype).eps)
            if not finite.all():  # whether it is infinite or NaN, and met an invalid value, depends on the rounding
                return
        elif exact:
            np.testing.assert_array_equal(found, expected)
            zero = found.real == 0
            np.testing.assert_array_equal(np.signbit(found.real[zero]), np.signbit(expected.real[zero]))
        else:
            np.testing.assert_allclose(found, expected, rtol=1e-12)
        assert warned == theirs, (values, expected)

    run_simulated(ranks, on_rank)


@pytest.mark.slow
@RANKS
@pytest.mark.parametrize("dtype", ["e", "f", "d", "g", "F", "D", "G"])
@pytest.mark.parametrize("shape", [(9,), (30,), (4, 5)])
def test_factors_that_leave_the_range(ranks, dtype, shape):
    for _ in range(2):
        values = _spread(shape, dtype)
        for axis in (None, *range(len(shape)), tuple(range(len(shape)))[-2:]):
            _compare(ranks, lambda x, axis=axis: np.prod(x, axis=axis), values)


@pytest.mark.slow
@RANKS
def test_views_and_arguments(ranks):
    values, mask = _spread((6, 7), "d"), rng.random((6, 7)) > 0.3
    _compare(ranks, lambda x: np.prod(x[::-1, ::2]), values)
    _compare(ranks, lambda x: np.prod(x.T), values, split=1)
    _compare(ranks, lambda x: np.prod(x.T, axis=0, keepdims=True), values)
    _compare(ranks, lambda x: np.prod(x, initial=1e-200), values)
    _compare(ranks, lambda x: np.prod(x, axis=1, where=mask, initial=-2.0), values)
    _compare(ranks, lambda x: np.prod(x, where=mask), values)
    _compare(ranks, lambda x: np.multiply.reduce(x, axis=(0, 1)), values)
    _compare(ranks, lambda x: np.prod(x, dtype="D"), values)
    _compare(ranks, lambda x: x.prod(axis=1), np.asfortranarray(values))
    holes = np.where(mask, values, np.nan)
    _compare(ranks, np.nanprod, holes)
    _compare(ranks, lambda x: np.nanprod(x, axis=0), holes)
    _compare(ranks, lambda x: np.prod(x, dtype=float), np.full(400, -8))
    _compare(ranks, np.prod, np.array([1e200, 1e200, 0, np.inf, 1e-300, 1e-300, 2.0]))
    _compare(ranks, np.prod, np.array([1e-200, 1e-200, -1, -1, -1.0, 3, 4]))


@RANKS
def test_no_factors_and_one(ranks):
    for values in (np.array(1e300), np.array([1e300]), np.zeros(0), np.zeros((3, 0))):
        _compare(ranks, lambda x: np.prod(x, initial=1e10), values)
        _compare(ranks, lambda x: np.multiply.reduce(x, axis=-1), values)


@RANKS
def test_outputs(ranks):
    values = _spread((5, 6), "d")

    def call(x: Any) -> Any:
        out = np.zeros_like(x, shape=6) if isinstance(x, numpy_dist.DistArray) else np.zeros(6)
        assert np.prod(x, axis=0, out=out) is out
        return out

    _compare(ranks, call, values)


@pytest.mark.slow
@RANKS
def test_long_products_that_stay_in_range(ranks):
    drift = np.exp(np.where(np.arange(50_000) < 20_000, 0.02, -0.02) * rng.uniform(0.9, 1.1, 50_000))
    _compare(ranks, np.prod, drift, exact=False)
    _compare(ranks, np.prod, drift[:, None] * [1, -1], exact=False, split=0)
    _compare(ranks, np.prod, drift[::-1], exact=False)
    _compare(ranks, np.prod, drift.astype("D"), exact=False)
    _compare(ranks, np.prod, np.repeat(drift, 4))  # it overflows on the way


def test_a_part_is_regrouped_only_where_it_may():
    factors = rng.uniform(0.9, 1.1, 5000)
    part = Factors(factors)
    assert part.chunks is not None and len(part.chunks) < 500
    np.testing.assert_allclose(part.times(np.float64(1)), np.multiply.reduce(factors), rtol=1e-12)
    with np.errstate(under="ignore"):
        assert part.times(np.float64(1e-300)) == np.multiply.reduce(factors, initial=1e-300)
    assert Factors(factors, grouped=False).chunks is None
    assert Factors(np.append(factors, 0.0)).chunks is None and Factors(np.append(factors, np.inf)).chunks is None
    with np.errstate(invalid="ignore"):
        for start in (0.0, -0.0, np.inf, -np.inf, np.nan):
            for last in (1.0, -1.0, 0.0, np.inf, np.nan):
                row = np.append(factors, last)
                found, expected = Factors(row).times(np.float64(start)), np.multiply.reduce(row, initial=start)
                assert repr(float(found)) == repr(float(expected))


@RANKS
def test_segments(ranks):
    for dtype in "dD":
        values = _spread((25,), dtype)
        _compare(ranks, lambda x: np.multiply.reduceat(x, [0, 3, 20, 7, 24]), values)
