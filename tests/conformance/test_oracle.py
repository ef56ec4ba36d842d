"""The oracle itself: what it has to object to, and what it must not."""

from __future__ import annotations

import contextlib
import warnings

import numpy as np
import pytest

from numpy_dist import engine
from numpy_dist.conformance import known_differences
from numpy_dist.conformance.arguments import a, plain
from numpy_dist.conformance.case import Case, Tolerance
from numpy_dist.conformance.checking.compare import differences
from numpy_dist.conformance.checking.oracle import check
from numpy_dist.conformance.known_differences import Difference

NDARRAY = "a result is an ndarray, not a distributed array"


def _gathered(x):
    return engine.gather(x) if engine.is_handle(x) else x + 0


def _problems(*args, **options):
    found = check(Case(*args, **options))
    return [text.splitlines()[1].strip() for text in found]


def test_an_ndarray_in_place_of_a_distributed_array_is_noticed():
    assert _problems(np.positive, (a(6, 5),), via=_gathered) == [NDARRAY]
    assert _problems(np.positive, (a(6, 5),), via=lambda x: [x * 1, _gathered(x)]) == [NDARRAY]


def test_an_ndarray_where_none_of_ours_was_given_is_not():
    assert _problems(np.positive, (plain(6, 5),)) == []


def test_an_argument_is_returned_as_it_is():
    assert _problems(np.positive, (a(6, 5), plain(3)), via=lambda x, y: (x, y)) == []
    assert _problems(np.positive, (a(6, 5),), via=lambda x: x if type(x) is np.ndarray else x[...]) == [
        "does not return the argument itself"
    ]


def test_functions_that_numpy_does_not_ask_us_about():
    def plainly(x):
        return np.asarray(x) + 0

    assert _problems(plainly, (a(6, 5),)) == []


def _moved(ufunc, wrong=0.0):
    def into_itself(x):
        ufunc(x[::-1], out=x)
        if engine.is_handle(x):
            x += wrong
        return x

    def apart(x):
        x[...] = ufunc(x[::-1].copy())
        return x

    return {"via": into_itself, "apart": apart}


@pytest.mark.parametrize(
    ("event", "first", "told"),
    [
        ("invalid value encountered in dot", 1.0, False),
        ("invalid value encountered in dot", np.inf, False),
        ("invalid value encountered in dot", np.nan, True),
        ("invalid value encountered in divide", 1.0, True),
        ("overflow encountered in matmul", 1.0, False),
        ("overflow encountered in matmul", np.inf, True),
    ],
)
def test_events_of_products_whose_values_do_not_tell_of_them(event, first, told):
    def warns(x):
        if type(x) is np.ndarray:
            warnings.warn(event, RuntimeWarning, stacklevel=2)
        return x * first

    assert [text.startswith("warnings are [] instead") for text in _problems(np.positive, (a(6, 5),), via=warns)] == [
        True
    ] * told


def test_a_value_is_returned_after_its_warnings():
    def forgets(x):
        x * 1e308 * 1e10
        return float(x.shape[0])

    found = _problems(np.positive, (a(6, 5),), via=forgets)
    assert found == ["warns after it has returned a value: ['overflow encountered in multiply']"]


def test_errors_of_events_are_compared():
    def divides(x):
        with np.errstate(all="warn") if engine.is_handle(x) else contextlib.nullcontext():
            return x / 0

    (found,) = _problems(np.positive, (a(6, 5),), via=divides)
    assert "raises None instead of FloatingPointError('divide by zero encountered in divide')" in found


def test_a_difference_of_other_processors_explains_nothing():
    case, problem = Case(np.positive, (a(6, 5),)), "1 of 30 values of result differ"
    for here in (True, False):
        known = Difference(np.positive, "values of result", "a reason", here=here)
        assert bool(known_differences.matching(case, problem, [known])) is here


def test_overlapping_memory_is_a_reason_for_stride_dependent_ufuncs_only():
    case = Case(np.cbrt, (a(1000),), **_moved(np.cbrt))
    assert known_differences.depends_on_strides(case, ((np.zeros(3),), {}))
    assert check(case) == []
    other = Case(np.negative, (a(1000),), **_moved(np.negative))
    assert not known_differences.depends_on_strides(other, ((np.zeros(3),), {}))


def test_a_tolerance_counts_in_the_dtype_in_which_a_result_was_computed():
    exact, narrow = np.array([1.0, 3.0]), np.array([1.0, 3.0 + 2e-7])
    assert list(differences(narrow, exact, Tolerance(64, "")))
    assert not list(differences(narrow, exact, Tolerance(64, "", computed_in="f4")))
    assert list(differences(narrow + 1e-3, exact, Tolerance(64, "", computed_in="f4")))
    assert not list(differences(exact + 1e-15j, exact + 0j, Tolerance(64, "")))
    assert list(differences(exact + 1e-12j, exact + 0j, Tolerance(64, "")))
    assert not list(differences(narrow.astype("f2"), exact.astype("f2"), Tolerance(1, "", computed_in="f4")))


def test_overlapping_memory_is_no_reason_for_wrong_values():
    problems = _problems(np.cbrt, (a(1000),), **_moved(np.cbrt, wrong=1e-9))
    assert len(problems) == 2 and problems[0].startswith("1000 of 1000 values of result differ")


def _warned_again(x):
    for _ in range(1 + engine.is_handle(x)):
        warnings.warn("again", RuntimeWarning, stacklevel=2)
    return x * 1


def test_a_warning_that_is_given_twice_is_noticed():
    (problem,) = _problems(np.positive, (a(6, 5),), via=_warned_again)
    assert "2 times" in problem


def test_signs_of_zeros_are_noticed_also_within_a_tolerance():
    zeros, minus = np.zeros(3), -np.zeros(3)
    assert list(differences(minus, zeros, Tolerance(64, "sums")))
    assert list(differences(-0.0, 0.0, None))
    assert list(differences(np.array([-0.0], object), np.array([0.0], object), None))


def test_results_that_share_memory_where_those_of_numpy_do_not_are_noticed():
    found = _problems(np.positive, (a(6, 5),), via=lambda x: x[...] if engine.is_handle(x) else x.copy())
    assert any("shares_memory" in text for text in found)
    assert any("argument 0, afterwards," in text for text in found)
