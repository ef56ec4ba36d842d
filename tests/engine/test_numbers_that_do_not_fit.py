"""Python's numbers that a dtype does not hold: refused, or told of, in the call, by all ranks alike.

The elements lie on one rank, so that what is found out later, as the program runs, is this rank's error alone.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from numpy_dist import asarray, config
from tests.distarray.oracle import check

HUGE = [1 << 63, -(1 << 63) - 1, 10**400, 10**5000]
KINDS = ["?", "i1", "e", "f8", "g", "F", "m8[s]"]


def _few(x):
    return x[:3]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("value", HUGE, ids=["2**63", "-2**63-1", "10**400", "10**5000"])
def test_operands(kind, value):
    a = np.arange(40).astype(kind)
    check(lambda x: _few(x) < value, a, ranks=(3,), replicated=False)
    check(lambda x: _few(x) + value, a, ranks=(3,), replicated=False)
    check(lambda x: np.where(_few(x) == _few(x)[1], _few(x), value), a, ranks=(3,), replicated=False)
    check(lambda x: (_few(x) * 1, _few(x) * value), a, ranks=(3,), replicated=False)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("number", range(12))
def test_initial_values(kind, number):
    initial = [300, 1.7, "3", 1j, 1e300, None, np.float64(1.5), [1], *HUGE][number]
    a = np.array([0, 3, 2] + [1] * 37).astype(kind)
    for ufunc in (np.add, np.maximum):
        check(lambda x, u=ufunc: u.reduce(_few(x), initial=initial), a, ranks=(3,), replicated=False)
    check(lambda x: np.min(x.reshape(4, 10), axis=1, initial=initial), a, ranks=(2,), replicated=False)


def test_initial_values_are_cast_before_they_are_added():
    check(lambda x: np.add.reduce(x, initial=1.5), np.full(7, -1), ranks=(1, 2))


def test_numbers_for_a_dtype_that_is_asked_for():
    for options in ({"dtype": "i1"}, {"dtype": "i1", "casting": "unsafe"}):
        check(lambda x, o=options: np.add(_few(x), 300, **o), np.arange(40, dtype="i2"), ranks=(2,), replicated=False)


@pytest.mark.parametrize("value", [1j, float("nan"), float("inf"), 1.5], ids=str)
@pytest.mark.parametrize("signature", ["dd->d", "ll->l", "ff->f", "DD->D"])
def test_numbers_for_a_loop_that_is_asked_for(signature, value):
    options = {"signature": signature, "casting": "unsafe"}
    check(lambda x: np.add(_few(x), value, **options), np.arange(40.0), ranks=(2,), replicated=False)


@pytest.mark.parametrize("value", [1, 1.0, 1j])
@pytest.mark.parametrize("casting", ["no", "equiv", "safe"])
def test_numbers_where_casts_are_refused(casting, value):
    for ufunc in (np.add, np.maximum, np.ldexp):
        check(lambda x, u=ufunc: u(x, value, casting=casting), np.arange(7.0), ranks=(1, 2))
    check(lambda x: np.add(x, value, out=x, casting=casting), np.arange(7.0), ranks=(2,))


@pytest.mark.parametrize("value", [2.5, -1.5, 300.0, 1e300, np.nan, -np.inf, 2j, 2.5 - 1j, complex(np.nan, 1)], ids=str)
def test_numbers_of_other_kinds_are_cast_where_that_is_asked_for(value):
    a = np.arange(40.0)
    for dtype in ("u1", "i8", "f4"):
        options = {"dtype": dtype, "casting": "unsafe"}
        for source in ("i2", "f8"):
            check(lambda x, o=options: np.add(x, value, **o), a.astype(source), ranks=(1, 3))
            check(lambda x, o=options: np.maximum(value, x, **o), a.astype(source), ranks=(1, 3))


def test_they_are_refused_before_an_output_is():
    for kind in ("i1", "?", "S3"):
        for value in (10**400, 300):
            check(
                lambda x, kind=kind, value=value: np.divide(x, value, out=np.zeros_like(x, dtype=kind)),
                np.arange(40, dtype="i1"),
                ranks=(2,),
                replicated=False,
            )


def test_shapes_that_do_not_fit_are_told_first():
    with config(MIN_SHARD_BYTES=0), warnings.catch_warnings():
        warnings.simplefilter("error")  # of the number, which overflows
        with pytest.raises(ValueError, match="could not be broadcast together"):
            np.where(asarray(np.arange(3.0)), 1e39, np.zeros(2, "F"))


def test_objects_that_cannot_be_compared():
    check(lambda x: np.isin(_few(x), [10**400]), np.arange(40, dtype="G"), ranks=(3,), fallback="silent")
    check(lambda x: np.isin(_few(x), [1, None, "a"]), np.arange(40.0), ranks=(3,), fallback="silent")


@pytest.mark.parametrize("decimals", [400, -400, 308, -309])
def test_rounding_beyond_the_range(decimals):
    for kind in ("f8", "f4", "i4", "c16"):
        check(lambda x: np.round(x, decimals), np.arange(7).astype(kind), ranks=(2,))
