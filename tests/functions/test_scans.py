"""Scans at several numbers of ranks."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import numpy_dist
from numpy_dist import engine
from numpy_dist.comm.simulated import run_simulated
from numpy_dist.layout.layout import Copies, Cut, Layout
from numpy_dist.layout.mesh import Mesh
from numpy_dist.parallel.scans import accumulate, column
from numpy_dist.settings import config

RANKS = pytest.mark.parametrize("ranks", [1, 2, 3, 4, 7])


def _at_ranks(ranks: int, function: Any) -> None:
    def on_rank() -> None:
        with config(MIN_SHARD_BYTES=0, FALLBACK="error"), np.errstate(all="ignore"):
            function()

    run_simulated(ranks, on_rank)


def _same(found: Any, expected: np.ndarray, exact: bool = True) -> None:
    assert found.dtype == expected.dtype and found.shape == expected.shape
    if exact:
        np.testing.assert_array_equal(found.gather(), expected)
    else:
        np.testing.assert_allclose(found.gather(), expected, rtol=1e-13)


@pytest.mark.slow
@RANKS
@pytest.mark.parametrize("shape", [(9,), (7, 5), (3, 4, 5), (1,), (0,), (2, 9)])
@pytest.mark.parametrize("dtype", ["?", "i1", "i8", "f8", "c16"])
def test_sums_and_products(ranks, shape, dtype):
    values = np.random.default_rng(1).integers(-3, 4, shape).astype(dtype)

    def check() -> None:
        x = numpy_dist.asarray(values)
        for axis in (None, *range(len(shape))):
            for function in (np.cumsum, np.cumprod, np.nancumsum, np.nancumprod):
                _same(function(x, axis=axis), function(values, axis=axis))
        _same(np.cumsum(x, axis=0, dtype="c8"), np.cumsum(values, axis=0, dtype="c8"))

    _at_ranks(ranks, check)


@RANKS
def test_order_matters_where_it_is_not_associative(ranks):
    values = np.random.default_rng(2).uniform(1, 2, (11, 3))

    def check() -> None:
        x = numpy_dist.asarray(values, split=0)
        for ufunc in (np.subtract, np.divide, np.power, np.hypot, np.arctan2):
            _same(ufunc.accumulate(x), ufunc.accumulate(values), exact=ufunc in (np.subtract, np.divide))
        for ufunc in (np.maximum, np.fmin, np.logical_or):
            _same(ufunc.accumulate(x, axis=1), ufunc.accumulate(values, axis=1))

    _at_ranks(ranks, check)


@RANKS
def test_rounding_is_that_of_a_sum(ranks):
    values = np.random.default_rng(3).uniform(-1, 1, 1000)

    def check() -> None:
        found = np.cumsum(numpy_dist.asarray(values)).gather()
        np.testing.assert_allclose(found, np.cumsum(values.astype(np.longdouble)).astype(float), atol=1e-12)

    _at_ranks(ranks, check)


def test_one_process_scans_once_whatever_it_meets():
    seen = []

    def scan(*args: Any) -> Any:
        seen.append(args)
        return np.multiply.accumulate(*args)

    values = np.full(500, 0.1)

    def check() -> None:
        layout, comm = numpy_dist.asarray(values, split=0).layout, engine.runtime().comm
        found = accumulate(SimpleNamespace(accumulate=scan), values, layout, 0, values.dtype, comm)
        np.testing.assert_array_equal(found, np.cumprod(values))
        assert len(seen) == 1

    _at_ranks(1, check)


@RANKS
def test_outputs_and_errors(ranks):
    values = np.arange(12).reshape(4, 3)

    def check() -> None:
        x, out = numpy_dist.asarray(values), numpy_dist.asarray(np.zeros((4, 3)))
        assert np.cumsum(x, axis=1, out=out) is out
        np.testing.assert_array_equal(out.gather(), np.cumsum(values, axis=1))
        plain = np.zeros((4, 3))
        assert np.multiply.accumulate(x, out=plain) is plain
        np.testing.assert_array_equal(plain, np.cumprod(values, axis=0))
        with pytest.raises(np.exceptions.AxisError):
            np.cumsum(x, axis=2)
        with pytest.raises(ValueError, match="shape"):
            np.cumsum(x, axis=0, out=numpy_dist.asarray(np.zeros((5, 3))))
        with pytest.raises(TypeError):
            np.bitwise_or.accumulate(x, dtype="f8")

    with config(FALLBACK="silent"):
        run_simulated(ranks, lambda: _quiet(check))


@RANKS
@pytest.mark.parametrize(
    ("ufunc", "values", "target"),
    [
        (np.add, [0.5, 0.5, 0.5, 0.75], int),
        (np.multiply, [1.5, 1.5, 1.5, 1.25], int),
        (np.add, [2**24 + 1, 1, 1, 1], "f4"),
        (np.add, np.array([1.5, 1.5, -2.0]), "f2"),
        (np.maximum, np.array([200, 100, 201], "u1"), "i1"),
        (np.logical_or, [0.0, 1.0, 0.0], int),
        (np.subtract, [0.5, 0.5, 0.75], bool),
        (np.subtract, [True, False, True], int),
        (np.subtract, [True, False, True], "m8[s]"),
        (np.subtract, np.array([1500, 700, 1800], "m8[ms]"), "m8[s]"),
    ],
)
def test_an_output_takes_part_in_the_choice_of_the_loop(ranks, ufunc, values, target):
    values = np.array(values)
    expected = ufunc.accumulate(values, out=np.zeros(values.shape, target))

    def check() -> None:
        x, out = numpy_dist.asarray(values), numpy_dist.asarray(np.zeros(values.shape, target))
        _same(ufunc.accumulate(x, out=out), expected)

    _at_ranks(ranks, check)


@RANKS
def test_the_only_axis_need_not_be_named(ranks):
    values = np.arange(9)

    def check() -> None:
        for axis in (None, (0,)):
            _same(np.add.accumulate(numpy_dist.asarray(values), axis), np.add.accumulate(values, axis))

    _at_ranks(ranks, check)


def _quiet(check: Any) -> None:
    with config(MIN_SHARD_BYTES=0):
        check()


@RANKS
def test_messages_are_few(ranks):
    def check() -> None:
        x = engine.aligned(numpy_dist.asarray(np.ones(70)), engine.default_layout((70,)))
        engine.flush()
        comm = engine.runtime().comm
        comm.counters.reset()
        np.cumsum(x)
        assert comm.counters.messages <= max(0, (ranks - 1).bit_length())
        assert comm.counters.collectives == (ranks > 1)  # which tells of floating-point events

    _at_ranks(ranks, check)


def test_events_are_told_with_numpys_words():
    x = numpy_dist.asarray(np.full(40_000, 1e308))
    with pytest.warns(RuntimeWarning, match="overflow encountered in accumulate"):
        np.cumsum(x)


def test_columns_go_along_one_cut_among_the_same_copies():
    layout = Layout((6, 4), Mesh((2, 3)), (Copies(), Cut(0, (6, 4, 4, 0))))
    assert column(layout, 0, 0) == [2, 0]
    assert column(layout, 5, 0) == [5, 3]


@RANKS
@pytest.mark.parametrize("dtype", ["f8", "c16"])
@pytest.mark.parametrize("split", [0, 1])
def test_products_that_only_a_part_of_the_elements_has(ranks, dtype, split):
    """The product of a shard overflows, or vanishes; that of all elements so far does neither."""
    falling = np.concatenate([np.full(1000, 2.0), np.full(1900, 0.5)])
    zero = np.concatenate([[0.0], np.full(2899, 2.0)])
    values = np.stack([falling, zero], axis=1).astype(dtype)

    def check() -> None:
        _same(np.cumprod(numpy_dist.asarray(values, split=split), axis=0), np.cumprod(values, axis=0))
        _same(np.cumprod(numpy_dist.asarray(values[:, split])), np.cumprod(values[:, split]))

    _at_ranks(ranks, check)


@pytest.mark.parametrize("ranks", [2, 3])
def test_events_are_those_of_the_sequence(ranks):
    values = np.concatenate([[0.0], np.full(2899, 2.0)])

    def check() -> None:
        x = numpy_dist.asarray(values)
        with np.errstate(over="raise", invalid="raise"):
            _same(np.cumprod(x), np.cumprod(values))  # all of them 0
            with pytest.raises(FloatingPointError, match="overflow encountered in accumulate"):
                np.cumprod(x[1:])

    _at_ranks(ranks, check)


@pytest.mark.parametrize(
    ("shape", "into", "axis"),
    [
        ((5, 1), (5, 4), 0),
        ((5, 1), (5, 4), 1),
        ((5,), (3, 5), 0),
        ((4, 3), (4, 1), 1),
        ((3,), (4,), 0),
        ((2, 3), (2, 3, 1), 0),
    ],
)
def test_outputs_of_another_shape(shape, into, axis):
    """Broadcasting is NumPy's, whatever it makes of it, and so are its errors, which name the whole shapes."""
    values, given = np.arange(1.0, 1 + np.prod(shape)).reshape(shape), np.full(into, 7.0)
    expected, message = given.copy(), None
    try:
        np.add.accumulate(values, axis, out=expected)
    except ValueError as refused:
        message = str(refused)

    def check() -> None:
        out = numpy_dist.asarray(given)
        with config(FALLBACK="silent"):
            if message is None:
                assert np.add.accumulate(numpy_dist.asarray(values), axis, out=out) is out
            else:
                with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
                    np.add.accumulate(numpy_dist.asarray(values), axis, out=out)
        _same(out, expected)

    _at_ranks(2, check)
