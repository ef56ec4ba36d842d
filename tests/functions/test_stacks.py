"""NumPy's functions on whole items of each rank: transforms, stacks of matrices, strings, dates."""

from __future__ import annotations

import threading
import warnings

import numpy as np
import pytest

import numpy_dist
from numpy_dist import engine
from numpy_dist.dispatch.core.registry import Declined
from numpy_dist.dispatch.patterns import stacks
from numpy_dist.dispatch.patterns.stacks import on_stacks
from numpy_dist.settings import config
from numpy_dist.spmd_testing import forbid_gathers, run_simulated
from tests.functions.harness import PRESENTATIONS, check, split

rng = np.random.default_rng(11)
CUBE = rng.standard_normal((4, 6, 5))
STACK = rng.standard_normal((9, 3, 3))
FEW = tuple(sorted(PRESENTATIONS)[::3])


@pytest.mark.slow
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_lines_are_transformed_with_numpys_bits(axis):
    for function in (np.fft.fft, np.fft.irfft, np.fft.ihfft):
        check(lambda x, f=function: f(x, axis=axis), CUBE, ways=FEW, rtol=0)
    check(lambda x: np.fft.rfftn(x, axes=(axis, 1), norm="ortho"), CUBE, ranks=(3, 7), ways=FEW, rtol=0)


@pytest.mark.slow
@pytest.mark.parametrize("n", [None, 36, 50, 49, 64])
def test_a_single_line(n):
    line = rng.standard_normal(49)
    for function in (np.fft.fft, np.fft.ifft, np.fft.rfft, np.fft.irfft, np.fft.hfft):
        given = line[:48] if n is None else line
        check(lambda x, f=function: f(x, n), given, ranks=(1, 2, 3, 7), ways=("default", "irregular"), rtol=1e-14)
    check(lambda x: np.fft.ifft(x, n, norm="ortho"), line[:48] * 1j, ranks=(3,), ways=FEW, rtol=1e-14)


@pytest.mark.parametrize("shape", [(3, 0), (0, 3), (4, 0, 2)])
def test_the_inverse_of_matrices_without_elements_has_no_cutoff(shape):
    check(lambda x, y: np.linalg.pinv(x, y), np.zeros(shape), np.ones(5), ranks=(1,), ways=("default",))
    check(lambda x, y: np.linalg.pinv(x, rtol=y), np.zeros(shape), np.ones(5), ranks=(1,), ways=("default",))


def test_the_byte_order_of_texts_stays():
    texts = np.array(["ab", "c"], ">U2")
    check(lambda x: np.strings.upper(x).dtype.str, texts, ranks=(1, 3), ways=("default",))
    check(lambda x: np.strings.zfill(x, np.array([3, 4])).dtype.str, texts, ranks=(1, 3), ways=("default",))


def test_outputs_of_double_precision_are_computed_in_it():
    single = CUBE.astype("f4")
    for function, kind in ((np.fft.fft, complex), (np.fft.ifft, complex), (np.fft.irfft, float)):
        for values, rtol in ((single, 0), (single[0, 0], 1e-14)):
            out = np.zeros(function(values).shape, kind)
            call = lambda x, out, f=function: f(x, out=out)  # noqa: E731
            check(call, values, out, ranks=(1, 3), ways=("default", "irregular"), rtol=rtol)


def test_what_is_whole_stays():
    """Axes that are not cut, and stacks of whole matrices, are worked on where they lie."""

    def on_each_rank():
        with config(MIN_SHARD_BYTES=0, FALLBACK="error"), forbid_gathers():
            rows, stack = split(CUBE, 0), split(STACK, 0)
            engine.force(rows, stack)
            comm = engine.runtime().comm
            comm.counters.reset()
            spectrum, inverse = np.fft.fft2(rows), np.linalg.inv(stack)
            engine.force(spectrum, inverse)
            assert comm.counters.messages == 0
            assert comm.counters.collectives == 3
            assert spectrum.layout == rows.layout and inverse.layout == stack.layout
            turned = np.fft.fft(rows, axis=0)
            assert turned.layout.cut_of(0) is None or turned.layout.cut_of(0).extent == 1
            assert comm.counters.bytes < 2 * rows.nbytes

    run_simulated(3, on_each_rank)


def test_errors_of_one_rank_are_everybodys():
    singular = np.stack([np.eye(3)] * 8)
    singular[5, 2] = 0
    check(np.linalg.inv, singular, ways=FEW)
    check(np.linalg.cholesky, -singular, ranks=(3,), ways=FEW)
    check(lambda x: np.strings.decode(x, "ascii"), np.array([b"a"] * 8 + [b"\xfe"]), ranks=(2, 7), ways=FEW)
    check(lambda x: np.busday_offset(x, 1), np.array(["2020-03-06", "2020-03-07"], "M8[D]"), ranks=(2, 3), ways=FEW)


def test_warnings_of_one_rank_are_everybodys():
    def on_each_rank():
        with config(MIN_SHARD_BYTES=0, FALLBACK="error"), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            huge = STACK.copy()
            huge[7] *= 1e200
            engine.force(np.linalg.det(split(huge, 0)))
            engine.runtime().events.tell()
        assert [str(w.message) for w in caught] == ["overflow encountered in det"]

    run_simulated(4, on_each_rank)


def test_floating_point_errors_are_agreed():
    def on_each_rank():
        huge = STACK.copy()
        huge[7] *= 1e200
        with config(MIN_SHARD_BYTES=0), np.errstate(over="raise"), pytest.raises(FloatingPointError, match="in det"):
            np.linalg.det(split(huge, 0))

    run_simulated(4, on_each_rank)


def test_dtypes_that_follow_from_all_items():
    turns = np.stack([np.eye(2)] * 6)
    turns[4] = [[0, 1], [-1, 0]]
    check(np.linalg.eigvals, turns, ranks=(1, 3, 7), ways=FEW)
    check(np.linalg.eigvals, turns[:4], ranks=(3,), ways=FEW)
    words = np.array(["a", "bb", "a", "ccccc", "aaaaaaa", ""])
    check(lambda x: np.strings.replace(x, "a", "xyz"), words, ways=FEW)
    check(lambda x: np.strings.encode(x), words, ways=FEW)
    check(lambda x: np.strings.partition(x, "b"), words, ways=FEW)
    check(lambda x, i: np.strings.multiply(x, i), words, np.array([1, 0, 3, 2, 1, 1]), ways=FEW)


def test_strings_without_characters():
    def on_each_rank():
        with config(MIN_SHARD_BYTES=0, FALLBACK="error"):
            found = np.strings.partition(split(np.array(["b", "", "a", "cc"]), 0), "e")
            expected = np.strings.partition(np.array(["b", "", "a", "cc"]), "e")
            assert [x.dtype for x in found] == [x.dtype for x in expected] == ["U2", "U1", "U0"]
            np.testing.assert_array_equal(engine.gather(found[0]), expected[0])

    run_simulated(3, on_each_rank)


def test_stacks_are_broadcast():
    matrices, columns = rng.standard_normal((2, 1, 3, 3)), rng.standard_normal((5, 3, 2))
    check(np.linalg.solve, matrices, columns, ways=FEW, rtol=1e-10)
    check(np.linalg.solve, matrices, columns[:, :2, :], ways=("default",), ranks=(3,))
    check(np.linalg.solve, STACK, np.ones((4, 3, 1)), ways=("default",), ranks=(3,))
    check(lambda x: np.linalg.svd(x).S, STACK, ways=FEW, rtol=1e-10)
    check(lambda x, t: np.linalg.matrix_rank(x, tol=t), STACK, np.linspace(0, 4, 9), ways=FEW)


def test_a_single_item_is_declined():
    with config(MIN_SHARD_BYTES=0), pytest.raises(Declined, match="single"):
        on_stacks(np.linalg.inv, [engine.from_global(np.eye(3))], 2, name="inv")


@pytest.mark.parametrize("ranks", [1, 3])
@pytest.mark.parametrize("limit", [0, 1 << 22], ids=["copied", "where they lie"])
def test_a_function_of_lines_may_write_into_them(ranks, limit, monkeypatch):
    monkeypatch.setattr(stacks, "_IN_CACHE", limit)

    def in_place(line):
        line.sort()
        return line[::-1]

    def on_rank():
        with config(MIN_SHARD_BYTES=0, AT_ONCE="off", FALLBACK="silent"):
            for values in (CUBE.T, CUBE[0, 0]):
                for axis in range(values.ndim):
                    for way in ("irregular", "flipped"):
                        expected, x = values.copy(), PRESENTATIONS[way](values)
                        engine.gather(x[1:] - x[:-1])  # neighbours have its halos
                        made = np.apply_along_axis(in_place, axis, x)
                        assert np.array_equal(engine.gather(made), np.apply_along_axis(in_place, axis, expected))
                        assert np.array_equal(engine.gather(x), expected)
                        assert np.array_equal(engine.gather(x[1:] - x[:-1]), expected[1:] - expected[:-1])
            x = engine.from_global(CUBE)
            x.flags.writeable = False
            with pytest.raises(ValueError, match="read-only"):
                np.apply_along_axis(in_place, 1, x)

    run_simulated(ranks, on_rank)


@pytest.mark.parametrize("ranks", [1, 3])
def test_a_function_of_lines_may_return_one_buffer(ranks):
    buffer = threading.local()  # simulated ranks are threads

    def doubled(line):
        buffer.values = getattr(buffer, "values", np.zeros(len(line)))
        np.multiply(line, 2, out=buffer.values)
        return buffer.values

    def on_rank():
        with config(MIN_SHARD_BYTES=0, AT_ONCE="off"):
            return engine.gather(np.apply_along_axis(doubled, 1, engine.from_global(CUBE)))

    for found in run_simulated(ranks, on_rank):
        assert np.array_equal(found, CUBE * 2)


@pytest.mark.parametrize("limit", [0, 1 << 22], ids=["copied", "where they lie"])
def test_the_only_rank_computes_where_items_lie(limit, monkeypatch):
    monkeypatch.setattr(stacks, "_IN_CACHE", limit)
    cube, wide = CUBE.transpose(2, 0, 1), STACK.transpose(1, 2, 0).copy("F").transpose(2, 0, 1)
    calls = (
        (lambda x: np.fft.fft(x, axis=1), cube),
        (lambda x: np.sort(x, axis=0), cube),
        (lambda x: np.apply_along_axis(lambda line: line[::-1], 1, x), cube),
        (np.linalg.inv, wide),
        (lambda x: np.linalg.eigh(x + x.mT), wide),
        (lambda x: np.strings.upper(x), np.array([["a", "bc"], ["d", "e"], ["", "f"]]).T),
    )
    with config(MIN_SHARD_BYTES=0, AT_ONCE="off"):
        for call, values in calls:
            x = numpy_dist.asarray(values)
            found, expected = call(x), call(values)
            x[...] = x.dtype.type(1)  # no result looks at it
            for mine, numpys in zip(found, expected, strict=True) if isinstance(found, tuple) else ((found, expected),):
                assert (mine.dtype, mine.strides) == (numpys.dtype, numpys.strides)
                assert np.array_equal(mine.gather(), numpys)
