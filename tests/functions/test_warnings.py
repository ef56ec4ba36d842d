"""Warnings are NumPy's, and come from the user's line."""

from __future__ import annotations

import contextlib
import warnings

import numpy as np
import pytest

from numpy_dist import engine
from numpy_dist.settings import config
from numpy_dist.spmd_testing import run_simulated
from tests.functions.harness import split

NAN = np.full((3, 4), np.nan)
ONES = np.ones((3, 4))


def cross_of_plane_vectors(x):
    return np.cross(x[:, :2], x[:, :2])


@pytest.mark.parametrize(
    ("call", "values"),
    [
        (lambda x: np.mean(x[:0]), ONES),
        (lambda x: np.mean(x[:0], axis=0), ONES),
        (lambda x: np.var(x[:1], axis=0, ddof=1), ONES),
        (lambda x: np.std(x[:0]), ONES),
        (lambda x: np.average(x[:0]), ONES),
        (lambda x: np.nanmean(x, axis=0), NAN),
        (lambda x: np.nanmax(x), NAN),
        (lambda x: np.nanmin(x, axis=1), NAN),
        (lambda x: np.nanstd(x), NAN),
        (lambda x: np.mean(x, where=np.zeros((3, 4), bool)), ONES),
        (lambda x: np.sum(x / 0), ONES),
        (lambda x: np.astype(x + 1j, float), ONES),
        (cross_of_plane_vectors, ONES),
    ],
)
def test_warnings(call, values):
    if call is cross_of_plane_vectors and np.lib.NumpyVersion(np.__version__) >= "2.5.0":
        pytest.skip("an error since NumPy 2.5")

    def told(x):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            result = call(x)
            for each in result if isinstance(result, tuple) else (result,):
                if engine.is_handle(each):
                    engine.gather(each)
        return [(w.category, str(w.message), w.filename) for w in caught]

    numpys = told(values)
    assert numpys

    def on_each_rank():
        with config(MIN_SHARD_BYTES=0, FALLBACK="error"):
            ours = told(split(values, 0))
        # NumPy names "scalar divide" what divides an array of one element here.
        assert {text.replace("scalar ", "") for _, text, _ in ours} == {t.replace("scalar ", "") for _, t, _ in numpys}
        assert {category for category, _, _ in ours} == {category for category, _, _ in numpys}
        # Scalars are divided in our code, as they are in NumPy's.
        assert all(filename == __file__ or "scalar" in text for _, text, filename in ours), ours

    for n in (1, 2):
        run_simulated(n, on_each_rank)


def _with_complex_element(x):
    y = np.zeros_like(x, dtype="f4")
    y[1] = np.complex64(2j)
    return y


@pytest.mark.parametrize(
    "cast",
    [
        _with_complex_element,
        lambda x: np.sum(x, dtype="f4"),
        lambda x: np.sum(x, axis=0, dtype="f4"),
        lambda x: np.mean(x, dtype="i8"),
    ],
)
@pytest.mark.parametrize("ranks", [1, 3])
def test_discarded_imaginary_parts_are_told_as_often_as_by_numpy(cast, ranks):
    values = np.arange(12).reshape(3, 4) + 1j

    def told(x):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for _ in range(2):
                found = cast(x)
                if engine.is_handle(found):
                    engine.gather(found)
        return [w.category for w in caught]

    with config(MIN_SHARD_BYTES=0):
        assert all(run == told(values) for run in run_simulated(ranks, lambda: told(split(values, 0))))


LOST = 1j * np.ones(3)


def _set(x, name, value):
    setattr(x, name, value)


@pytest.mark.parametrize("value", ["handle", "ndarray", "scalar"])
@pytest.mark.parametrize(
    "write",
    [
        lambda x, v: x.__setitem__([[0], [2]], v),
        lambda x, v: x.__setitem__([0, 3], v),
        lambda x, v: x.__setitem__(([0, 3], slice(0, 0)), v[:0] if np.ndim(v) else v),
        lambda x, v: x.__setitem__(x[:, 0] > 1, v),
        lambda x, v: np.put(x, [3, 4, 3], v),
        lambda x, v: np.put(x, [], v),
        lambda x, v: np.put_along_axis(x, np.array([[0, 1, 2]]), v, 0),
        lambda x, v: np.fill_diagonal(x, v),
        lambda x, v: np.insert(x, 1, v, 0),
        lambda x, v: x.flat.__setitem__([0, 1, 2], v),
        lambda x, v: x.flat.__setitem__(slice(3), v),
        lambda x, v: x.flat.__setitem__(2, v if np.ndim(v) == 0 else v[1]),
        lambda x, v: _set(x, "real", v),
        lambda x, v: _set(x, "flat", v),
        lambda x, v: x.fill(v if np.ndim(v) == 0 else v[1]),
    ],
)
def test_discarded_imaginary_parts_are_told_once_at_the_users_line(write, value):
    def on_each_rank():
        v = {"handle": lambda: split(LOST, 0), "ndarray": lambda: LOST, "scalar": lambda: LOST[0]}[value]()
        x = split(np.arange(12.0).reshape(4, 3), 0)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            write(x, v)
        return [(w.category, w.filename) for w in caught]

    with config(MIN_SHARD_BYTES=0):
        for found in run_simulated(2, on_each_rank):
            assert found == [(np.exceptions.ComplexWarning, __file__)]


@pytest.mark.parametrize("ranks", [1, 3])
@pytest.mark.parametrize("pending", [False, True])
def test_events_of_a_loop_and_of_the_cast_of_its_results_are_told_once(ranks, pending):
    values = np.array([1e308, 1, np.inf, 3, 1e308, np.nan, 2]) * (1 + 1j)

    def on_each_rank(make=lambda x: split(x, 0)):
        x, out = make(values), make(np.zeros(7, "i4"))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with engine.lazily_recorded() if pending else contextlib.nullcontext():
                np.divide(x, 2.5, out=out, casting="unsafe")
                np.divide(x, 2.5, out=out, casting="unsafe")
            engine.gather(out) if engine.is_handle(out) else None
        return sorted(str(w.message) for w in caught if w.category is RuntimeWarning)

    expected = on_each_rank(lambda x: x)
    assert expected
    with config(MIN_SHARD_BYTES=0):
        assert all(found == expected for found in run_simulated(ranks, on_each_rank))


@pytest.mark.parametrize("key", [..., slice(2, 4), 3, np.arange(7) > 4])
@pytest.mark.parametrize(("dtype", "number"), [("f2", 10**6), ("f4", -(10**39)), ("F", 10**39), ("f4", 1e39)])
def test_numbers_that_overflow_when_assigned_are_told_once(dtype, number, key):
    def told(x):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            x[key] = number
            x[key] = number  # by the plan of the first
        return [(str(w.message), w.filename) for w in caught]

    with config(MIN_SHARD_BYTES=0):
        assert run_simulated(2, lambda: told(split(np.zeros(7, dtype), 0))) == [told(np.zeros(7, dtype))] * 2


def _assigned(x, key):
    y = np.zeros_like(x, dtype="i1")
    y[key] = x[key]


WIDE = np.array([1, 0, -1, 4, np.inf, -np.inf, np.nan, 1e308, -1e308, 1e-308, 3, 7])


@pytest.mark.parametrize(
    "call",
    [
        lambda x: np.divide.at(x, [0, 1, 2, 7, 7, 11], x[:6].copy()),
        lambda x: np.add.at(x, [7, 7, 4], x[[7, 8, 5]]),
        lambda x: np.multiply.at(x, slice(2, 9), x[7:8].copy()),
        lambda x: np.log.at(x, [1, 2, 7]),
        lambda x: np.add.accumulate(x),
        lambda x: np.divide.accumulate(x),
        lambda x: np.multiply.accumulate(np.reshape(x[[7, 7, 1, 4] * 3], (3, 4)), axis=1),
        lambda x: np.divide.reduceat(x, [0, 3, 5, 5, 8]),
        lambda x: np.divide.reduceat(np.reshape(x[[3, 0, 1, 1] * 3], (3, 4)), [0, 2, 1], axis=1),
        lambda x: _assigned(x, [4, 6, 7]),
        lambda x: _assigned(x, ~np.isfinite(x)),
        lambda x: np.sum(x, dtype="f2"),
        lambda x: np.sum(x[6:9] * 1j + x[6:9], dtype="f4"),
    ],
)
def test_numbers_and_order_of_warnings_in_the_call(call):
    def told(x):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            call(x)
        return [(w.category, str(w.message)) for w in caught]

    def raised(x):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(RuntimeWarning) as caught:
                call(x)
        return str(caught.value)

    expected, error = told(WIDE.copy()), raised(WIDE.copy())
    assert expected

    def on_each_rank():
        with config(MIN_SHARD_BYTES=0, FALLBACK="error"):
            assert told(split(WIDE, 0)) == expected
            assert raised(split(WIDE, 0)) == error

    for n in (1, 3):
        run_simulated(n, on_each_rank)


@pytest.mark.parametrize(
    "write",
    [
        lambda x, out: np.add.reduce(x, axis=0, out=out[0]),
        lambda x, out: np.add.reduce(x, axis=0, out=out[0], initial=-0.0),
        lambda x, out: np.mean(x, 1, None, out[:, 0]),
        lambda x, out: np.prod(x, axis=1, out=out[:, 0]),
        lambda x, out: np.nanprod(x, axis=1, out=out[:, 0]),
        lambda x, out: np.cumsum(x, 1, None, out),
        lambda x, out: np.multiply.accumulate(x, axis=0, out=out),
        lambda x, out: np.multiply.reduceat(x, [0, 3], axis=0, out=out[:2]),
        pytest.param(lambda x, out: np.matmul(x, x.T, out=out[:, :6]), marks=pytest.mark.host_memory),
        lambda x, out: np.square(x, out=out.view("i8"), casting="unsafe"),
        lambda x, out: out.view("i8").__setitem__([4, 0], x[:2]),
        lambda x, out: out.view("i8").__setitem__(out[:, 0] == 0, x),
    ],
)
@pytest.mark.parametrize("ranks", [1, 3])
def test_an_error_leaves_outputs_written(write, ranks: int):
    values = np.full((6, 8), 1e308)
    expected = np.zeros((6, 8))
    with np.errstate(all="raise"), pytest.raises(FloatingPointError) as error:
        write(values, expected)

    def on_each_rank():
        with config(MIN_SHARD_BYTES=0, FALLBACK="error"):
            out = split(np.zeros((6, 8)), 0)
            with np.errstate(all="raise"), pytest.raises(FloatingPointError) as raised:
                write(split(values, 0), out)
            assert str(raised.value) == str(error.value)
            assert np.array_equal(out.gather(), expected, equal_nan=True)

    run_simulated(ranks, on_each_rank)


@pytest.mark.parametrize("ranks", [1, 3])
def test_a_call_that_fails_in_another_way_leaves_no_errors_for_the_next_one(ranks: int):
    values = np.full((6, 8), 1e308)

    def on_each_rank():
        with config(MIN_SHARD_BYTES=0, FALLBACK="error"), np.errstate(over="raise"):
            x = split(values, 0)
            with pytest.raises(KeyError), engine.reported_together():
                with pytest.raises(KeyError, match="inner"), engine.reported_together():
                    engine.force(x * 2)
                    raise KeyError("inner")
                raise KeyError("outer")
            with pytest.raises(ValueError, match="output array is not acceptable"):
                np.dot(x, x.T, out=split(np.zeros((6, 6), np.float32), 0))
            with pytest.raises(ValueError, match="wrong dimensions"):
                np.dot(x, x[0], out=split(np.zeros(8), 0))
            assert (x / 2).max() == 5e307

    run_simulated(ranks, on_each_rank)


@pytest.mark.parametrize(
    "write",
    [
        lambda x, v: x.__setitem__([0, 1, 2], v),
        lambda x, v: x.__setitem__(x > 6, v[0]),
        lambda x, v: x.__setitem__(slice(0, 3), v),
        lambda x, v: x.__setitem__(0, v[0]),
        lambda x, v: x.fill(v[0]),
        lambda x, v: np.put(x, [0, 1, 2], v),
        lambda x, v: np.add.at(x, [0, 1, 2], v),
        lambda x, v: np.copyto(x[:3], v, casting="unsafe"),
        lambda x, v: np.put_along_axis(x, np.arange(3), v, 0),
        lambda x, v: np.place(x, x > 6, v),
    ],
)
@pytest.mark.parametrize("ranks", [1, 3])
@pytest.mark.parametrize("shards", [0, 1 << 18])
def test_warnings_of_which_filters_make_errors_come_before_anything_is_written(write, ranks: int, shards: int):
    values, written = np.arange(8.0), np.array([9 + 1j, 8 + 2j, 7 + 3j])

    def raised(x) -> str | None:
        with warnings.catch_warnings():
            warnings.simplefilter("error", np.exceptions.ComplexWarning)
            try:
                write(x, written)
            except (np.exceptions.ComplexWarning, TypeError) as error:
                return repr(error)
        return None

    expected = values.copy()
    error = raised(expected)

    def on_each_rank():
        with config(MIN_SHARD_BYTES=shards, FALLBACK="silent"):
            x = split(values, 0)
            assert raised(x) == error
            assert np.array_equal(x.gather(), expected)

    run_simulated(ranks, on_each_rank)


@pytest.mark.parametrize("number", [np.inf, 1e3])
def test_one_rank_meets_what_all_raise(number):
    """Were it raised on one rank only, the others would wait for it."""
    values = np.ones(9)
    values[-1] = number

    def told(x):
        with np.errstate(all="raise", under="ignore"), pytest.raises(FloatingPointError) as caught:
            engine.gather(np.i0(x)) if engine.is_handle(x) else np.i0(x)
        return str(caught.value)

    def on_each_rank():
        with config(MIN_SHARD_BYTES=0, FALLBACK="error"):
            assert told(split(values, 0)) == told(values)

    run_simulated(3, on_each_rank)


@pytest.mark.parametrize(("rows", "number"), [(12, 1e307), (40, 1e-308)])
def test_decompositions_are_silent(rows, number):
    """As LAPACK is, of which NumPy reports no events: what one rank met, and raised, the others would wait for."""
    values = np.abs(np.random.default_rng(0).standard_normal((rows, 6))) + 0.5
    values[-1] *= number

    def on_each_rank():
        with config(MIN_SHARD_BYTES=0, FALLBACK="error"), np.errstate(all="raise"):
            x = split(values, 0)
            engine.gather(np.linalg.lstsq(x, x[:, 0])[0])
            engine.gather(np.linalg.svdvals(x))
            engine.gather(np.linalg.svd(x, full_matrices=False).U)
            engine.gather(np.linalg.qr(x).Q)

    run_simulated(3, on_each_rank)
