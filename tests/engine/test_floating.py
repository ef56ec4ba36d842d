"""Floating-point events are reported as NumPy reports them, at the user's line, on every rank."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import numpy_dist
from numpy_dist import engine

pytestmark = pytest.mark.spmd


def _values() -> np.ndarray:
    values = np.ones(40)
    values[37] = 0.0  # in the last rank's shard only
    return values


def _caught(function) -> list:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        function()
    return [w for w in caught if issubclass(w.category, RuntimeWarning)]


def test_a_warning_names_the_recorded_line():
    x = numpy_dist.asarray(_values())

    def work():
        y = 1 / x
        z = y + 1
        z.gather()

    found = _caught(work)
    assert [str(w.message) for w in found] == ["divide by zero encountered in divide"]
    assert found[0].filename == __file__
    assert found[0].lineno == work.__code__.co_firstlineno + 1


def test_errstate_is_that_of_the_statement():
    x = numpy_dist.asarray(_values())

    def work():
        with np.errstate(all="ignore"):
            y = 1 / x
        y.gather()

    assert _caught(work) == []


def test_raise_raises_at_once_on_every_rank():
    x = numpy_dist.asarray(_values())
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError, match="divide by zero encountered in divide"):
        1 / x
    assert np.array_equal((x + 1).gather(), _values() + 1)


def test_call_calls():
    x = numpy_dist.asarray(_values())
    seen = []
    with np.errstate(divide="call", call=lambda kind, flag: seen.append((kind, flag))):
        1 / x
    expected = []
    with np.errstate(divide="call", call=lambda kind, flag: expected.append((kind, flag))):
        1 / _values()
    assert seen == expected


def test_warnings_that_are_errors_are_raised_by_the_call():
    x = numpy_dist.asarray(_values())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RuntimeWarning, match="divide by zero"):
            1 / x


@pytest.mark.parametrize(
    "work", [lambda x: np.sqrt(x - 2), lambda x: np.log(x), lambda x: np.exp(x * 1000), lambda x: x // 0]
)
def test_messages_are_numpys(work):
    expected = [str(w.message) for w in _caught(lambda: work(_values()))]
    x = numpy_dist.asarray(_values())
    assert [str(w.message) for w in _caught(lambda: work(x).gather())] == expected


def test_integers_to_negative_powers_raise_on_every_rank():
    values = np.arange(30)
    exponents = np.ones(30, int)
    exponents[-1] = -1
    x, y = numpy_dist.asarray(values), numpy_dist.asarray(exponents)
    with pytest.raises(ValueError, match="Integers to negative integer powers are not allowed"):
        x**y
    assert np.array_equal((x + y).gather(), values + exponents)
    assert engine.counters().gathers >= 0


def test_a_reduction_raises_too():
    values = np.ones(40)
    values[37], values[38] = np.inf, -np.inf
    x = numpy_dist.asarray(values)
    with np.errstate(invalid="raise"), pytest.raises(FloatingPointError, match="invalid value encountered in reduce"):
        np.add.reduce(x)
