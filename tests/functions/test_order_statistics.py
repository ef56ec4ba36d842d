"""Medians and quantiles at several numbers of ranks: NumPy's bits, by all of its methods."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from numpy.lib import _function_base_impl

import numpy_dist
from numpy_dist import engine
from numpy_dist.comm.simulated import run_simulated
from numpy_dist.dispatch.functions import statistics_quantile_formulas
from numpy_dist.dispatch.patterns import axis_local
from numpy_dist.parallel import selection
from numpy_dist.settings import config

RANKS = pytest.mark.parametrize("ranks", [1, 2, 3, 5])
METHODS = sorted(_function_base_impl._QuantileMethods)


@pytest.fixture(autouse=True)
def small_steps(monkeypatch):
    """What is gathered at last is so small that shards of some hundred elements are searched."""
    monkeypatch.setattr(selection, "FEW", 20)
    monkeypatch.setattr(selection, "SAMPLES", 8)
    monkeypatch.setattr(selection, "LEAST", 2)


def _same(found: Any, expected: Any) -> None:
    got = found.gather() if engine.is_handle(found) else found
    assert type(got) is type(expected)
    assert np.asarray(got).dtype == np.asarray(expected).dtype
    np.testing.assert_array_equal(got, expected, strict=True)


def _at_ranks(ranks: int, function: Any) -> None:
    def on_rank() -> None:
        with config(MIN_SHARD_BYTES=0, FALLBACK="error"):
            function()

    run_simulated(ranks, on_rank)


def _arrays(n: int) -> list[np.ndarray]:
    rng = np.random.default_rng(n)
    return [
        rng.normal(size=n),
        rng.integers(0, 9, n),
        np.zeros(n),
        rng.random(n).astype("f4"),
        np.exp(20 * rng.random(n)),
        np.arange(n) % 7 * 1.0,  # in step with a regular sample
    ]


@pytest.mark.slow
@RANKS
@pytest.mark.parametrize("n", [1, 2, 7, 100, 1001])
def test_of_all_elements(ranks, n):
    def check() -> None:
        for values in _arrays(n):
            x = numpy_dist.asarray(values)
            _same(np.median(x), np.median(values))
            _same(np.median(x > 3), np.median(values > 3))
            for method in METHODS:
                _same(np.quantile(x, 0.3, method=method), np.quantile(values, 0.3, method=method))
                tails = [0, 25, 99.5, 100]
                _same(np.percentile(x, tails, method=method), np.percentile(values, tails, method=method))

    _at_ranks(ranks, check)


@RANKS
def test_not_a_number(ranks):
    values = np.random.default_rng(3).normal(size=101)
    values[50] = np.nan

    def check() -> None:
        x = numpy_dist.asarray(values)
        _same(np.median(x), np.median(values))
        _same(np.quantile(x, [0.1, 0.2]), np.quantile(values, [0.1, 0.2]))

    _at_ranks(ranks, check)


@RANKS
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axis", [0, 1, None, -1, (0, 1), (1,)])
def test_along_axes(ranks, axis, keepdims):
    values = np.random.default_rng(4).normal(size=(6, 5))

    def check() -> None:
        for split in (0, 1):
            x = numpy_dist.asarray(values, split=split)
            options = {"axis": axis, "keepdims": keepdims}
            _same(np.median(x, **options), np.median(values, **options))
            _same(np.percentile(x, [3, 50], **options), np.percentile(values, [3, 50], **options))
            _same(np.quantile(x, 0.3, **options), np.quantile(values, 0.3, **options))

    _at_ranks(ranks, check)


@RANKS
def test_partitions(ranks):
    values = np.random.default_rng(5).permutation(60).reshape(6, 10)

    def check() -> None:
        x = numpy_dist.asarray(values)
        _same(np.partition(x, 4)[:, 4], np.sort(values)[:, 4])
        _same(np.argpartition(x, 4)[:, 4], np.argsort(values)[:, 4])
        with pytest.raises(ValueError, match="out of bounds"):
            np.partition(x, 10)

    _at_ranks(ranks, check)


def test_a_view_that_is_cut_along_two_axes():
    values = np.random.default_rng(6).random((12, 12))

    def check() -> None:
        x = engine.aligned(numpy_dist.asarray(values), engine.default_layout((12, 12)))
        _same(np.median(np.diagonal(x)), np.median(np.diagonal(values)))

    _at_ranks(4, check)


def test_little_is_sent():
    def on_rank() -> None:
        x = numpy_dist.asarray(np.random.default_rng(8).random(200_000))
        engine.flush()
        comm = engine.runtime().comm
        comm.counters.reset()
        np.median(x)
        assert comm.counters.bytes < x.nbytes / 50

    run_simulated(4, on_rank)


@RANKS
def test_many_places_at_once(ranks, monkeypatch):
    """More of them than elements are compared with at a time; and no more rounds than for one."""
    values = np.random.default_rng(4).normal(size=3000)
    values[::7] = 0.25
    places = [*range(0, 3000, 31), 2999]

    def check() -> None:
        x = numpy_dist.asarray(values)
        comm = engine.runtime().comm
        before = comm.counters.collectives
        one = selection.select(engine.local(x), [1500], comm)
        single = comm.counters.collectives - before
        found = selection.select(engine.local(x), places, comm)
        np.testing.assert_array_equal(found, np.sort(values)[places])
        assert one == np.sort(values)[1500]
        assert comm.counters.collectives - before - single <= 4 * single

    _at_ranks(ranks, check)


NAN = np.random.default_rng(7).normal(size=(4, 5, 6))
NAN[np.random.default_rng(9).random((4, 5, 6)) < 0.4] = np.nan
NAN[1, 2] = np.nan
SEVERAL = (np.median, np.nanmedian, np.quantile, np.nanquantile, np.percentile, np.nanpercentile)


def _options(function: Any) -> dict[str, Any]:
    return {} if function in (np.median, np.nanmedian) else {"q": [0.2, 0.5]}


def _quietly(function: Any, *args: Any, **kwargs: Any) -> tuple[Any, set[str]]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        return function(*args, **kwargs), {str(w.message) for w in caught}


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [1, 3, 4])
@pytest.mark.parametrize("axis", [None, 0, 1, 2, (0, 1), (2, 0), (0, 1, 2), ()])
def test_several_axes_nan_and_outputs(ranks, axis):
    def check() -> None:
        for values in (NAN, np.nan_to_num(NAN), np.full((4, 5, 6), np.nan, "f4")):
            for split in (0, 2):
                x = numpy_dist.asarray(values, split=split)
                for function in SEVERAL:
                    options = {**_options(function), "axis": axis, "keepdims": split == 2}
                    found, said = _quietly(function, x, **options)
                    expected, numpys = _quietly(function, values, **options)
                    _same(found, expected)
                    assert said == numpys
                    if np.ndim(expected):
                        out = numpy_dist.asarray(np.zeros(expected.shape))
                        assert _quietly(function, x, out=out, overwrite_input=True, **options)[0] is out
                        _same(out, expected.astype("f8"))

    _at_ranks(ranks, check)


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [1, 3, 4])
@pytest.mark.parametrize("function", [np.quantile, np.nanquantile, np.percentile, np.nanpercentile])
def test_weights(ranks, function):
    weights, line = np.random.default_rng(5).integers(1, 4, (4, 5, 6)), np.array([0, 1, 2, 0, 1, 0.5])

    def check() -> None:
        for values in (NAN, np.nan_to_num(NAN), np.round(NAN)):
            x = numpy_dist.asarray(values, split=1)
            options: dict[str, Any] = {"method": "inverted_cdf"}
            for axis in (None, 0, 2, *(() if statistics_quantile_formulas.MIXES_WEIGHTS else ((0, 2), (0, 1, 2)))):
                for heavy in (weights, numpy_dist.asarray(weights, split=0)):
                    found, _ = _quietly(function, x, [0, 0.3, 1], axis=axis, weights=heavy, **options)
                    expected, _ = _quietly(function, values, [0, 0.3, 1], axis=axis, weights=weights, **options)
                    _same(found, expected)
            if function in (np.quantile, np.percentile):
                for heavy in (line, numpy_dist.asarray(line)):
                    expected = function(values, 0.5, axis=2, weights=line, **options)
                    _same(function(x, 0.5, axis=2, weights=heavy, **options), expected)

    _at_ranks(ranks, check)


@pytest.mark.parametrize("function", SEVERAL)
def test_an_ndarray_as_output(function):
    values = np.array([[1.0, 4], [2, 5], [7, 7]])

    def check() -> None:
        expected = function(values, axis=0, **_options(function))
        out = np.zeros_like(expected)
        assert function(numpy_dist.asarray(values), axis=0, out=out, **_options(function)) is out
        assert (out == expected).all()

    _at_ranks(2, check)


@pytest.mark.parametrize("ranks", [1, 4])
def test_what_is_refused(ranks):
    x, heavy = np.arange(12.0).reshape(3, 4), np.ones((3, 4))
    calls: list[Any] = [
        lambda x, w: np.quantile(x, 0.5, weights=w),
        lambda x, w: np.quantile(x, 0.5, weights=w[0], method="inverted_cdf"),
        lambda x, w: np.quantile(x, 0.5, weights=w[0, :2], method="inverted_cdf", axis=1),
        lambda x, w: np.quantile(x, 0.5, weights=-w, method="inverted_cdf"),
        lambda x, w: np.nanquantile(x, 0.5, weights=0 * w, method="inverted_cdf"),
        lambda x, w: np.nanpercentile(x, 101),
        lambda x, w: np.nanmedian(x, axis=2),
        lambda x, w: np.median(x, axis=(0, 0)),
        lambda x, w: np.quantile(x, 0.5, method="other"),
        lambda x, w: np.quantile(x, [[[0.5]]]),
        lambda x, w: np.median(x, axis=0, out=w[:, 0].copy()),
        lambda x, w: np.quantile(x, 0.5, axis=0, out=w[0, :2].copy()),
        lambda x, w: np.median(x[0] * np.nan, axis=0, out=w[0, 0, ...].astype("i4")),
        lambda x, w: np.quantile(x[0] * np.nan, 0.5, axis=0, method="lower", out=w[0, 0, ...].astype("i4")),
    ]

    def check() -> None:
        given = numpy_dist.asarray(x, split=1), numpy_dist.asarray(heavy)
        for call in calls:
            with pytest.raises(Exception) as numpys, np.errstate(all="ignore"):  # noqa: B017, PT011
                call(x, heavy)
            with pytest.raises(type(numpys.value)) as ours, np.errstate(all="ignore"):
                call(*given)
            assert type(ours.value) is type(numpys.value)
            assert str(ours.value) == str(numpys.value)

    _at_ranks(ranks, check)


@pytest.mark.parametrize("ranks", [1, 3])
def test_arrays_without_elements(ranks):
    def check() -> None:
        for shape, axis in (((0,), None), ((0, 3), 0), ((0, 3), 1), ((3, 0), None), ((2, 0, 3), (0, 1))):
            values = np.zeros(shape)
            for function in (np.median, np.nanmedian):
                found, said = _quietly(function, numpy_dist.asarray(values), axis=axis)
                expected, numpys = _quietly(function, values, axis=axis)
                _same(found, expected)
                assert said == numpys

    _at_ranks(ranks, check)


@pytest.mark.parametrize("ranks", [2, 5])
def test_an_error_on_one_rank_is_one_on_all(ranks):
    values = np.zeros((10, 4))
    values[0, :2], values[0, 2:] = -np.inf, np.inf

    def check() -> None:
        x = numpy_dist.asarray(values, split=0)
        with np.errstate(invalid="raise"), pytest.raises(FloatingPointError):
            np.quantile(x, 0.5, axis=1)
        found, said = _quietly(np.quantile, x, 0.5, axis=1)
        assert any("invalid value" in text for text in said)
        _same(found, _quietly(np.quantile, values, 0.5, axis=1)[0])

    _at_ranks(ranks, check)


def test_complex_numbers_and_long_rows(monkeypatch):
    monkeypatch.setattr(axis_local, "LONG_ROW", 0)
    whole = np.random.default_rng(3).integers(0, 3, (2, 40)) * (1 + 1j)
    whole.imag = np.random.default_rng(4).integers(0, 3, (2, 40))
    rows = np.round(np.random.default_rng(3).normal(size=(2, 40)), 1)
    rows[0, 3] = np.nan
    kept = engine.runtime  # the module attribute is looked up on each rank

    def check() -> None:
        x, y = numpy_dist.asarray(whole, split=1), numpy_dist.asarray(rows, split=1)
        _same(np.median(x), np.median(whole))
        _same(np.nanmedian(x), np.nanmedian(whole))
        comm = kept().comm
        engine.flush()
        comm.counters.reset()
        for function in SEVERAL:
            options = {**_options(function), "axis": 1}
            _same(function(y, **options), _quietly(function, rows, **options)[0])
            _same(function(y, keepdims=True, **options), _quietly(function, rows, keepdims=True, **options)[0])

    _at_ranks(5, check)


@pytest.mark.parametrize("ranks", [1, 3])
def test_errors_of_quantiles_are_numpys(ranks):
    texts, nothing = np.array(["a", "b", "c"] * 3), np.zeros((0, 4))
    calls = [
        lambda x, _: np.quantile(x, 0.5),
        lambda x, _: np.quantile(x, [0.2, 0.5]),
        lambda _, e: np.quantile(e, 0.5, axis=0, weights=np.ones((0, 4)), method="inverted_cdf"),
        lambda _, e: np.quantile(e, [0.5], axis=0, weights=np.ones(0), method="inverted_cdf"),
        lambda x, _: np.quantile(np.astype(np.zeros_like(x, dtype=float), complex), 0.5),
    ]

    def error(call: Any, *arrays: Any) -> tuple[type, str] | None:
        try:
            call(*arrays)
        except (TypeError, IndexError, ValueError) as raised:
            return type(raised), str(raised)
        return None

    def check() -> None:
        for call in calls:
            expected = error(call, texts, nothing)
            assert expected is not None and error(call, *map(numpy_dist.asarray, (texts, nothing))) == expected

    _at_ranks(ranks, check)


@pytest.mark.parametrize("q", [0.25, np.array(0.25), np.array([0.25, 0.5])], ids=["number", "no axes", "vector"])
def test_weighted_quantiles_own_their_memory(q):
    x = engine.from_global(np.arange(24.0), engine.runtime().default_layout((24,)))
    for function in (np.quantile, np.nanpercentile):
        assert getattr(function(x, q, weights=np.arange(24.0), method="inverted_cdf"), "base", None) is None
