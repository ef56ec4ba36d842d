"""Programs whose loops are kernels give the interpreter's bytes and NumPy's warnings, at any number of ranks."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import numpy_dist
from numpy_dist import engine

from .random_programs import random_program
from .test_random_programs import _run as run_random_program
from .tiers import Outcome, compare_tiers, messages, run_tier, same_bytes

RANKS = pytest.mark.parametrize("ranks", [1, 2, 3])
N = 3000

# Why loops of these programs have no kernel (tests/backends/compiled/test_tiers.py says more of each).
REASONS = re.compile(
    r"a result that nobody uses|reductions along (several sets of axes|axes with others between them)"
    r"|minima and maxima of floats with where="
    r"|results in place of operands beside reductions of rows"
    r"|a Python int that its operand's dtype can not hold"
)


def _compare(ranks: int, cache: str, work: Callable[[Callable], list]) -> list:
    """Run `work(asarray)` by NumPy and by both tiers, with equal results; returns the warnings, which are the same."""

    def on_rank() -> list:
        return [x.gather() if isinstance(x, numpy_dist.DistArray) else x for x in work(numpy_dist.asarray)]

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        expected = work(np.asarray)
    compiled, _ = compare_tiers(ranks, cache, on_rank)
    for outcome in compiled:
        assert len(outcome.result) == len(expected)
        for got, want in zip(outcome.result, expected, strict=True):
            assert np.asarray(got).dtype == np.asarray(want).dtype
            np.testing.assert_array_equal(got, want)
        assert outcome.said == messages(caught)
        assert all(map(REASONS.fullmatch, outcome.reasons)), outcome.reasons
    assert any(outcome.counts["numba"] for outcome in compiled)
    return messages(caught)


def _random(ranks: int, seed: int, cache: str) -> Outcome:
    return compare_tiers(ranks, cache, run_random_program, random_program(seed))[0][0]


@pytest.mark.slow
@RANKS
@pytest.mark.parametrize("seed", [2, 6, 11, 23, 51])
def test_random_programs(ranks: int, seed: int, kernel_cache: str) -> None:
    outcome = _random(ranks, seed, kernel_cache)
    assert all(map(REASONS.fullmatch, outcome.reasons)), outcome.reasons


@pytest.mark.long
@RANKS
@pytest.mark.parametrize("block", range(4))
def test_many_random_programs(ranks: int, block: int, kernel_cache: str) -> None:
    kernels = 0
    for seed in range(100 + 25 * block, 125 + 25 * block):
        kernels += _random(ranks, seed, kernel_cache).counts["numba"]
    assert kernels > 25


def _values(special: float = 0.0) -> np.ndarray:
    values = np.random.default_rng(4).random(N) + 1
    values[N - 3] = special  # in the last rank's part only
    return values


# -- floating-point events --------------------------------------------------------------------------------------------


def _divide(asarray):
    x = asarray(_values())
    y = 1 / x
    return [y, y + 1]


def _overflow(asarray):
    x = asarray(_values(1000.0))
    y = np.exp(x)
    z = x * 1e308
    return [y, z - 1]


def _underflow(asarray):
    x = asarray(_values(1e-200))
    with np.errstate(under="warn"):
        y = x * x
    return [y, x * x]


def _invalid(asarray):
    x = asarray(_values(-1.0))
    y = np.sqrt(x)
    return [y, np.log(x) + y]


def _integer_division(asarray):
    x, y = asarray(np.arange(N)), asarray(np.arange(N)[::-1].copy())
    quotient = x // y
    rest = x % y
    return [quotient, rest, quotient + rest]


def _invalid_cast(asarray):
    x = asarray(_values(np.nan))
    whole = x.astype(int)
    y = asarray(_values(1e300))
    small = y.astype(np.float32)
    return [whole + 1, small]


def _in_place(asarray):
    x, y = asarray(_values(7.0)), asarray(_values(0.0))
    x /= y
    y -= x
    return [x, y]


def _in_place_on_views(asarray):
    x, y = asarray(_values(7.0)), asarray(_values(0.0))
    x[1:-1] += 1
    x[1:-1] /= y[1:-1]
    x[::2] *= x[::2]
    return [x, y]


def _overflow_of_a_sum(asarray):
    x = asarray(np.full(N, 1.7e308))
    total = np.add.reduce(x)
    return [float(total), x]


def _overflow_before_a_sum(asarray):
    x = asarray(_values(1e200))
    total = np.maximum.reduce(x * x)
    return [float(total), x]


def _rows(asarray):
    x = np.ones((60, 50))
    x[7, 11], x[50, 0] = 0.0, -1.0
    x = asarray(x)
    return [np.maximum.reduce(1 / x, axis=1), np.fmax.reduce(np.sqrt(x), axis=1)]


def _comparisons_of_nan(asarray):
    x, y = asarray(_values(np.nan)), asarray(_values(2.0))
    return [x < y, x <= 1.5, x == y, x != y, x > y, np.maximum(x, y), np.fmin(x, y), np.isnan(x)]


def _choices(asarray):
    x = asarray(_values(-1.0))
    root = np.where(x > 0, np.sqrt(x), 0.0)  # NumPy computes all of both
    return [root, np.where(x > 0, x, np.nan) < 3]


def _masked(asarray):
    x, out = asarray(_values(0.0)), asarray(np.full(N, 9.0))
    np.divide(1.0, x, out=out, where=x != 0)
    return [out, out + x]


def _scalars_only(asarray):
    x, y, zero = asarray(_values()), asarray(_values()), np.float64(0.0)
    np.divide(zero, zero, out=x)
    np.multiply(1e300, np.float64(1e300), out=y)
    return [x, y]


def _masked_scalars(asarray):
    x, zero = asarray(_values(0.0)), np.float64(0.0)
    np.divide(1.0, zero, out=x, where=x < 0)
    return [x]


WARNING = [
    (_divide, ["divide by zero encountered in divide"]),
    (_overflow, ["overflow encountered in exp", "overflow encountered in multiply"]),
    (_underflow, ["underflow encountered in multiply"]),
    (_invalid, ["invalid value encountered in log", "invalid value encountered in sqrt"]),
    (_integer_division, ["divide by zero encountered in floor_divide", "divide by zero encountered in remainder"]),
    (_invalid_cast, ["invalid value encountered in cast", "overflow encountered in cast"]),
    (_in_place, ["divide by zero encountered in divide"]),
    (_in_place_on_views, ["divide by zero encountered in divide"]),
    (_overflow_of_a_sum, ["overflow encountered in reduce"]),
    (_overflow_before_a_sum, ["overflow encountered in multiply"]),
    (_rows, ["divide by zero encountered in divide", "invalid value encountered in sqrt"]),
    (_comparisons_of_nan, []),
    (_choices, ["invalid value encountered in sqrt"]),
    (_masked, []),
    (_scalars_only, ["invalid value encountered in divide", "overflow encountered in multiply"]),
    (_masked_scalars, []),
]


@pytest.mark.slow
@RANKS
@pytest.mark.parametrize("work,expected", WARNING, ids=lambda x: getattr(x, "__name__", "-"))
def test_warnings_are_numpys(ranks: int, work: Callable, expected: list[str], kernel_cache: str) -> None:
    """The same messages at the same lines; the results are right where something was met, too."""
    said = _compare(ranks, kernel_cache, work)
    assert sorted(message for message, _, _ in said) == expected
    assert all(file == __file__ for _, file, _ in said)


@RANKS
def test_ignored_events_do_not_stop_a_kernel(ranks: int, kernel_cache: str) -> None:
    def work(asarray):
        with np.errstate(all="ignore"):
            x = asarray(_values())
            y = 1 / x
            z = np.sqrt(y - 5)
        return [y, z]

    assert _compare(ranks, kernel_cache, work) == []


@RANKS
def test_raise_raises_on_every_rank(ranks: int, kernel_cache: str) -> None:
    def on_rank() -> list:
        x, y = numpy_dist.asarray(_values()), numpy_dist.asarray(_values(3.0))
        said = []
        for work in (lambda: y / x, lambda: np.log(x), lambda: y.__itruediv__(x), lambda: np.sqrt(-y)):
            with np.errstate(all="raise"):
                try:
                    work()
                    engine.flush()
                except FloatingPointError as error:
                    said.append(str(error))
        return [said, x.gather()]

    compiled, plain = compare_tiers(ranks, kernel_cache, on_rank)
    for outcome in compiled:
        assert outcome.result[0] == [
            "divide by zero encountered in divide",
            "divide by zero encountered in log",
            "divide by zero encountered in divide",
            "invalid value encountered in sqrt",
        ]
        assert np.array_equal(outcome.result[1], _values())


@RANKS
def test_call_is_called(ranks: int, kernel_cache: str) -> None:
    def on_rank() -> list:
        seen: list[tuple[str, int]] = []
        x = numpy_dist.asarray(_values())
        with np.errstate(divide="call", over="call", call=lambda kind, flag: seen.append((kind, flag))):
            y = 1 / x
            z = y + np.exp(x * 800)
        return [[text for text, _ in seen], [flag for _, flag in seen], z.gather()]

    compiled, _ = compare_tiers(ranks, kernel_cache, on_rank)
    for outcome in compiled:
        assert outcome.result[0] == ["divide by zero", "overflow"]
        assert outcome.result[1] == [1, 2]


# -- what changes from run to run -------------------------------------------------------------------------------------


@RANKS
def test_scalars_that_change(ranks: int, kernel_cache: str) -> None:
    def work(asarray):
        x, single, whole = asarray(_values(5.0)), asarray(_values(5.0).astype("f4")), asarray(np.arange(N) % 100)
        for k in range(12):
            x = x * (k / 10) + np.float64(1 / (k + 1))
            single = single * 0.5 + k
            whole = (whole * k) % 97 - k
            if not isinstance(x, np.ndarray):
                engine.flush()
        return [x, single, whole]

    _compare(ranks, kernel_cache, work)


@RANKS
def test_python_ints_that_do_not_fit(ranks: int, kernel_cache: str) -> None:
    def work(asarray):
        x = asarray((np.arange(N) % 256).astype("u1"))
        found = []
        for limit in (100, 300, 255, -1, 0, 2**70, 17):
            found.append(x < limit)
            found.append(x == limit)
            if not isinstance(x, np.ndarray):
                engine.flush()
        return found

    _compare(ranks, kernel_cache, work)


@RANKS
def test_python_floats_that_do_not_fit(ranks: int, kernel_cache: str) -> None:
    """The event is told where the statement is recorded, as NumPy's; the statement is compiled like others."""

    def on_rank() -> list:
        x, found = numpy_dist.asarray(_values(2.0).astype("f4")), []
        for factor in (0.5, 1e300, 1e300, 3.0, np.inf, 1e-300):
            y = x * factor
            with np.errstate(all="raise"):
                engine.flush()
            found.append(y.gather())
        return found

    compiled, _ = compare_tiers(ranks, kernel_cache, on_rank)
    with np.errstate(all="ignore"):
        expected = [_values(2.0).astype("f4") * f for f in (0.5, 1e300, 1e300, 3.0, np.inf, 1e-300)]
    for outcome in compiled:
        assert same_bytes(outcome.result, expected)
        assert outcome.counts == {"numba": 6, "numpy": 0}
        ((message, file, _),) = outcome.said
        assert message == "overflow encountered in cast" and file == __file__


@pytest.mark.slow
@RANKS
@pytest.mark.parametrize("values", [(1.5, -2.75, 1e5, 7), (np.float32(1.5), np.float32(9.5), np.float32(-3))])
@pytest.mark.parametrize("kind", ["f8", "f4", "i8", "i2", "c16", "?"])
def test_scalars_that_are_assigned(ranks: int, values: tuple, kind: str, kernel_cache: str) -> None:
    def work(asarray):
        x = asarray(np.zeros(N, kind))
        y = asarray(np.zeros(N, kind))
        for value in values:
            if kind == "i2" and abs(value) > 30000:
                continue
            x[...] = value
            y[1:] = y[1:] + x[:-1]
            if not isinstance(x, np.ndarray):
                engine.flush()
        return [x, y]

    _compare(ranks, kernel_cache, work)


@RANKS
def test_moving_boxes(ranks: int, kernel_cache: str) -> None:
    def work(asarray):
        x, y = asarray(np.zeros((40, 50))), asarray(np.random.default_rng(1).random((40, 50)))
        for k in range(30):
            x[k : k + 8, k + 2 : k + 12] += y[k : k + 8, k : k + 10] * k
            y[k] -= x[k + 1]
        return [x, y]

    _compare(ranks, kernel_cache, work)


# -- what lies in the same memory -------------------------------------------------------------------------------------


@RANKS
def test_shifts_that_overlap(ranks: int, kernel_cache: str) -> None:
    def work(asarray):
        x, y = asarray(_values(3.0)), asarray(np.random.default_rng(2).random((30, 70)))
        for _ in range(4):
            x[1:] = x[:-1]
            x[:-5] = x[5:]
            x[2:] += x[:-2]
            x[:-1] -= 0.5 * x[1:]
            x[:] = x[::-1]
            x[::2] = x[1::2]
            y[1:, :-1] = y[:-1, 1:]
            y[:-1] += y[1:]
            y[:, 1:] *= y[:, :-1]
            y[:30, :30] = y[:30, :30].T
        return [x, y]

    _compare(ranks, kernel_cache, work)


@RANKS
def test_memory_that_was_handed_out(ranks: int, kernel_cache: str) -> None:
    def on_rank() -> list:
        x, y = numpy_dist.asarray(_values(2.0)), numpy_dist.asarray(_values(4.0))
        mine = x.local
        for k in range(4):
            x += y * k
            x[1:] = x[:-1]
            assert np.array_equal(mine, x.local)
            mine[:1] += 1
        return [x.gather(), mine.copy()]

    compiled, _ = compare_tiers(ranks, kernel_cache, on_rank)
    assert compiled[0].counts["numba"] > 0


# -- sums -------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@RANKS
@pytest.mark.parametrize("kind", ["f4", "f8", "c16", "i4"])
def test_sums_have_the_same_bits_in_both_tiers(ranks: int, kind: str, kernel_cache: str) -> None:
    def on_rank() -> list:
        rng = np.random.default_rng(8)
        x = numpy_dist.asarray((rng.standard_normal((90, 300)) * 50).astype(kind))
        y = numpy_dist.asarray((rng.standard_normal((300, 90)) * 50).astype(kind)).T
        found: list[Any] = []
        for a in (x, y, x[3:-5, 2::3], x[::-1], x * y + 1):
            for axis in (None, 0, 1, (0, 1)):
                total, most = np.add.reduce(a, axis=axis), np.multiply.reduce(a * 0 + 1, axis=axis)
                found += [total, most]
        found += [x.mean(), x.std(axis=1), (x - x.mean()).sum(), np.linalg.norm(x.astype("f8"))]
        return [a.gather() if isinstance(a, numpy_dist.DistArray) else a for a in found]

    compiled, plain = compare_tiers(ranks, kernel_cache, on_rank)
    assert compiled[0].counts["numba"] > 10
    first = np.random.default_rng(8).standard_normal((90, 300))
    expected = (first * 50).astype(kind).sum()
    np.testing.assert_allclose(compiled[0].result[0], expected, rtol=1e-3 if kind == "f4" else 1e-10)


def test_tiers_are_chosen_by_the_setting(kernel_cache: str) -> None:
    def on_rank() -> list:
        x = numpy_dist.asarray(_values(2.0))
        return [(x * 2).gather()]

    assert run_tier(2, "never", kernel_cache, on_rank)[0].counts == {"numba": 0, "numpy": 1}
    assert run_tier(2, "first", kernel_cache, on_rank)[0].counts == {"numba": 1, "numpy": 0}


def test_ufuncs_of_others_are_not_numpys_of_the_same_name(kernel_cache: str) -> None:
    numba = pytest.importorskip("numba")

    @numba.vectorize(["float64(float64)"])
    def square(x):
        return x * x + 1

    def on_rank() -> list:
        x = numpy_dist.asarray(_values(2.0))
        return [square(x).gather(), np.square(x).gather()]

    compiled, _ = compare_tiers(2, kernel_cache, on_rank)
    own, numpys = compiled[0].result
    assert np.array_equal(own, square(_values(2.0)), equal_nan=True)
    assert np.array_equal(numpys, np.square(_values(2.0)), equal_nan=True)


@RANKS
def test_integer_powers_into_floats_raise_numpys_error(ranks: int, kernel_cache: str) -> None:
    def on_rank() -> str:
        base, exponents = np.arange(1, 301), np.where(np.arange(300) == 150, -1, 2)
        with pytest.raises(ValueError) as caught:
            np.power(numpy_dist.asarray(base), numpy_dist.asarray(exponents), out=numpy_dist.zeros(300))
        return str(caught.value)

    for when in ("first", "never"):
        for outcome in run_tier(ranks, when, kernel_cache, on_rank):
            assert outcome.result == "Integers to negative integer powers are not allowed."
