"""Reductions against NumPy: every keyword, many layouts."""

from __future__ import annotations

import numpy as np
import pytest

import numpy_dist
from numpy_dist.settings import config
from tests.functions.harness import check

rng = np.random.default_rng(1)
A = rng.standard_normal((5, 8))
B = rng.integers(-5, 5, (4, 3, 6))
V = rng.standard_normal(23)
M = rng.random((5, 8)) > 0.4
REDUCTIONS = [np.sum, np.prod, np.max, np.min, np.any, np.all, np.mean, np.var, np.std, np.ptp, np.count_nonzero]


@pytest.mark.parametrize("function", REDUCTIONS)
@pytest.mark.parametrize("axis", [None, 0, *(pytest.param(a, marks=pytest.mark.slow) for a in (-1, (0, 1), ()))])
def test_axes(function, axis):
    if axis == () and function in (np.ptp,):
        axis = 1
    check(lambda x: function(x, axis=axis), A)


@pytest.mark.slow
@pytest.mark.parametrize("function", REDUCTIONS)
def test_keepdims_and_integers(function):
    check(lambda x: function(x, axis=1, keepdims=True), B, ways=("default", "transposed", "pinned"))
    check(lambda x: function(x, axis=(0, 2), keepdims=True), B, ways=("last", "flipped"))
    check(lambda x: function(x), V, ways=("default", "strided", "irregular", "descending"))


@pytest.mark.slow
@pytest.mark.parametrize("function", [np.sum, np.prod, np.max, np.min])
def test_initial_and_where(function):
    check(lambda x, m: function(x, axis=0, initial=2, where=m), A, M, ways=("default", "last", "irregular"))
    check(lambda x, m: function(x, initial=-1.5, where=m), A, M, ways=("default", "transposed"))
    check(lambda x: function(x, initial=3), np.zeros(0), ways=("default",))


@pytest.mark.slow
@pytest.mark.parametrize("function", [np.any, np.all, np.mean, np.var, np.std, np.sum])
def test_where(function):
    check(lambda x, m: function(x, axis=0, where=m), A, M, ways=("default", "last"))
    check(lambda x, m: function(x, axis=1, where=m, keepdims=True), A, M, ways=("default",))
    check(lambda x: function(x, axis=1, where=[True, False] * 4), A, ways=("default",))


@pytest.mark.parametrize("ufunc", [np.heaviside, np.subtract, np.add])
def test_masks_of_other_dtypes_are_refused_on_every_rank(ufunc):
    for where in (np.ones(1), [1], 1, 1.0, [True]):
        for n in (0, 5):
            check(lambda x, where=where: ufunc.reduce(x, axis=0, initial=1, where=where), np.ones((n, 1)), ranks=(1, 3))


@pytest.mark.slow
@pytest.mark.parametrize("function", REDUCTIONS[:-1])
def test_out(function):
    def call(x, out):
        result = function(x, axis=0, out=out)
        assert result is out
        return result

    dtype = np.bool_ if function in (np.any, np.all) else np.float64
    check(call, A, np.zeros(8, dtype), ways=("default", "last", "strided"))


@pytest.mark.parametrize("function", [np.prod, np.sum])
def test_results_of_another_dtype_than_the_elements_they_are_combined_with(function):
    """A span of time times a number, a date and a span: NumPy does it, and all ranks do it alike."""
    values = B.astype("f8" if function is np.prod else "m8[s]")
    out = np.zeros((3, 6), "m8[s]" if function is np.prod else "M8[s]")
    check(lambda x, out: function(x, axis=0, out=out), values, out, ways=("default", "last"), native=False)
    # A span of time times another is an error, and that of every rank.
    check(lambda x, out: np.prod(x, axis=0, out=out), B.astype("m8[s]"), np.zeros((3, 6), "m8[s]"), ways=("default",))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("function", "values", "target"),
    [
        (np.max, np.array([200, 100, 2], "u1"), "i1"),
        (np.min, np.array([100, 200, 101], "u1"), "i1"),
        (np.ptp, np.array([200, 100, 2], "u1"), "i1"),
        (np.max, np.array([1.5, 0.5, 1.75]), int),
        (np.nanmax, np.array([200, 100, 2], "u1"), "i1"),
        (np.subtract.reduce, np.array([0.5, 0.5, 0.75, 1.25, 0.5]), int),
        (np.subtract.reduce, np.array([True, False, True]), int),
    ],
)
def test_an_output_of_another_kind_holds_the_first_element(function, values, target):
    values = np.stack([values, values], axis=1)
    extremes = function != np.subtract.reduce
    check(
        lambda x, out: function(x, axis=0, out=out),
        values,
        np.zeros(2, target),
        ways=("default", "last"),
        native=extremes,
    )


def test_replicated_elements_are_added_in_the_dtype_of_a_sharded_output():
    values = np.full((3, 2), 60000, "f2")
    with config(MIN_SHARD_BYTES=0):
        out = numpy_dist.asarray(np.zeros(2))
    np.sum(numpy_dist.engine.replicated(values), axis=0, out=out)
    np.testing.assert_array_equal(out.gather(), np.sum(values, axis=0, out=np.zeros(2)))


def test_dtype_and_ddof():
    check(lambda x: np.sum(x, dtype=np.float32), A, ways=("default",), rtol=1e-5)
    check(lambda x: np.prod(x, axis=0, dtype=np.complex64), A, ways=("default",), rtol=1e-5)
    check(lambda x: np.mean(x, dtype=np.int64), B, ways=("default",))
    check(lambda x: np.var(x, axis=1, ddof=1), A)
    check(lambda x: np.std(x, correction=1), A, ways=("default",))
    check(lambda x: np.std(x, correction=1, ddof=2), A, ways=("default",))
    check(lambda x, m: np.var(x, axis=0, mean=m), A, A.mean(0, keepdims=True), ways=("default", "last"))


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["f2", "f4", "c8", "c16", "i1", "u2", "?"])
@pytest.mark.parametrize("function", [np.sum, np.mean, np.var, np.std, np.max, np.count_nonzero, np.any])
def test_dtypes(function, dtype):
    values = (rng.standard_normal((6, 7)) * 3).astype(dtype)
    if dtype in ("c8", "c16"):
        values = values + 1j * rng.standard_normal((6, 7)).astype(values.real.dtype)
    rtol = 4e-3 if dtype == "f2" else 1e-5 if dtype in ("f4", "c8") else 1e-12
    check(lambda x: function(x), values, ways=("default", "last"), rtol=rtol)
    check(lambda x: function(x, axis=0), values, ways=("default", "first"), rtol=rtol)


def test_nan_and_empty():
    x = A.copy()
    x[2, 3] = np.nan
    check(lambda x: np.max(x), x, ways=("default", "last"))
    check(lambda x: np.min(x, axis=0), x, ways=("default", "last"))
    check(lambda x: np.mean(x, axis=0), np.zeros((0, 4)), ways=("default", "last"))
    check(lambda x: np.mean(x), np.zeros((0, 4), "f4"), ways=("default",))
    check(lambda x: np.var(x), np.zeros((1, 1)), ways=("default",))
    check(lambda x: np.var(x, ddof=1), np.ones(1), ways=("default",))
    check(lambda x: np.sum(x, axis=1), np.zeros((3, 0)), ways=("default",))


@pytest.mark.parametrize(
    "call",
    [
        lambda x: np.max(x[:0]),
        lambda x: np.sum(x, axis=2),
        lambda x: np.sum(x, axis=(0, 0)),
        lambda x: np.sum(x, axis="a"),
        lambda x: np.sum(x, axis=True),
        lambda x: np.max(x, axis=(0, True)),
        lambda x: np.mean(x, axis=-3),
        lambda x: np.max(x, axis=0, out=np.zeros(3)),
        lambda x: np.max(x, where=x > 0),
        lambda x: np.sum(x, where=x > 0, initial=None),
        lambda x: np.sum(x[:0], axis=0, initial=None),
        lambda x: np.prod(x[:, :0], initial=None),
        lambda x: np.sum(x, dtype=[("a", int)]),
        lambda x: np.sum(x, dtype={"names": ["a"], "formats": ["i4"]}),
    ],
)
def test_reduction_errors_are_numpys(call):
    check(call, A, ways=("default", "last"))


def test_average():
    w = rng.random(5)
    check(lambda x: np.average(x), A, ways=("default",))
    check(lambda x, w: np.average(x, axis=0, weights=w), A, w, ways=("default", "last"))
    check(lambda x, w: np.average(x, weights=w, returned=True), A, rng.random((5, 8)), ways=("default",))
    check(lambda x, w: np.average(x, axis=0, weights=w, keepdims=True), B, rng.random(4), ways=("default",))
    check(lambda x, w: np.average(x, weights=w), A, np.zeros((5, 8)), ways=("default",))


def test_lcm_over_several_axes_is_refused_by_every_rank():
    check(lambda x: np.lcm.reduce(x, axis=None), np.arange(1, 13).reshape(3, 4))
    check(lambda x: np.lcm.reduce(x, axis=1), np.arange(1, 13).reshape(3, 4))


@pytest.mark.parametrize(
    ("shape", "mask"), [((), (3,)), ((), (0,)), ((3,), (4,)), ((2, 3), (4,)), ((3,), (2, 3)), ((1,), (3,))]
)
@pytest.mark.parametrize("function", [np.sum, np.min, np.nansum, np.all])
def test_masks_that_do_not_fit(function, shape, mask):
    theirs, chosen = np.ones(shape), np.ones(mask, bool)
    more = {} if function is np.all else {"initial": 1.0}
    with pytest.raises(ValueError) as expected:
        function(theirs, where=chosen, **more)
    with config(MIN_SHARD_BYTES=0):
        x, where = numpy_dist.asarray(theirs), numpy_dist.asarray(chosen)
        with pytest.raises(ValueError) as raised:
            function(x, where=where, **more)
    assert str(raised.value) == str(expected.value)


def test_what_a_mask_leaves_out_is_cast():
    values = np.array([[1.0], [np.nan]])
    with config(MIN_SHARD_BYTES=0):
        x = numpy_dist.asarray(values)
        with pytest.warns(RuntimeWarning, match="invalid value encountered in reduce"):
            assert int(np.sum(x, where=x > 0, dtype="i8")) == 1


@pytest.mark.parametrize("axis", [[], [0], [0, 1], np.array([], int), np.array([0, 1])])
@pytest.mark.parametrize("function", [np.sum, np.prod, np.max, np.any, np.mean, np.add.reduce])
def test_sequences_that_are_no_tuples_are_no_axes(function, axis):
    with pytest.raises(TypeError) as expected:
        function(A, axis=axis)
    with config(MIN_SHARD_BYTES=0):
        with pytest.raises(TypeError) as raised:
            function(numpy_dist.asarray(A), axis=axis)
    assert str(raised.value) == str(expected.value)


def test_running_sums_have_one_axis():
    with config(MIN_SHARD_BYTES=0):
        x = numpy_dist.asarray(A)
        for function in (np.cumsum, np.cumprod):
            with pytest.raises(TypeError, match="'tuple' object cannot be interpreted as an integer"):
                function(x, axis=(0,))
            np.testing.assert_array_equal(function(x, axis=np.int8(1)).gather(), function(A, axis=1))


@pytest.mark.parametrize("kind", ["M8[s]", "m8[s]"])
@pytest.mark.parametrize("function", [np.all, np.any, np.logical_xor.reduce])
def test_truths_of_dates_under_a_mask(function, kind):
    a = rng.integers(0, 2, (5, 8)).astype("i8").view(kind)
    a[1, 2] = a[3] = "NaT"
    check(lambda x, m: function(x, axis=0, where=m), a, M, ways=("default", "last"))
    check(lambda x, m: function(x, axis=None, where=m), a, M, ways=("default", "transposed"))
