"""Small work on large arrays is done at once in one process: with NumPy's outcome, and with the engine's bits."""

from __future__ import annotations

import operator
import random
import subprocess
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import numpy_dist as nd
from numpy_dist import config, engine
from numpy_dist.distarray.at_hand import AtHand
from numpy_dist.engine.data import watch, windows
from numpy_dist.spmd_testing import run_simulated

N = 24
SMALL = N * N * 8 // 3  # bytes: whole arrays are large, rows and columns are small

OPERATORS = [operator.add, operator.sub, operator.mul, operator.truediv, operator.lt, operator.ge, operator.pow]
IN_PLACE = [operator.iadd, operator.isub, operator.imul, operator.itruediv]
UFUNCS = [np.sqrt, np.exp, np.negative, np.abs, np.sin, np.isfinite, np.maximum, np.arctan2]


ROWS: dict[str, Callable[[Any], Any]] = {
    "ndim": np.ndim,
    "shape": np.shape,
    "size": lambda x: np.size(x, 0),
    "isrealobj": np.isrealobj,
    "iscomplexobj": np.iscomplexobj,
    "amax": np.amax,
    "amin": lambda x: np.amin(x, axis=0),
    "prod": np.prod,
    "method prod": lambda x: x.prod(),
    "trace": lambda x: x.reshape(4, -1).trace(),
    "bincount": lambda x: np.bincount((x * 3).astype(int)),
    "convolve": lambda x: np.convolve(x, x[:3]),
    "correlate": lambda x: np.correlate(x, x[:3]),
    "cross": lambda x: np.cross(x[:3], x[3:6]),
    "histogram": lambda x: np.histogram(x, 3),
    "percentile": lambda x: np.percentile(x, 30),
    "quantile": lambda x: np.quantile(x, [0.1, 0.9]),
    "packbits": lambda x: np.packbits(x > 1.5),
    "solve": lambda x: np.linalg.solve(x[:9].reshape(3, 3), x[:3]),
    "inv": lambda x: np.linalg.inv(x[:9].reshape(3, 3)),
    "det": lambda x: np.linalg.det(x[:9].reshape(3, 3)),
    "eigh": lambda x: np.linalg.eigh(x[:9].reshape(3, 3)),
    "fill": lambda x: x[:5].fill(3),
    "fill, converted": lambda x: x[:5].fill(np.float32(0.1)),
    "copyto": lambda x: np.copyto(x[:5], x[5:10]),
    "copyto, a number": lambda x: np.copyto(x, 3),
    "copyto, masked": lambda x: np.copyto(x, x * 2, where=x > 1.5),
    "copyto, overlapping": lambda x: np.copyto(x, x[::-1]),
    "put": lambda x: np.put(x, [1, -1], [0.5][0]),
    "method put": lambda x: x.put([1, 30], 2, mode="wrap"),
    "putmask": lambda x: np.putmask(x, x > 1.5, x[::-1]),
    "place": lambda x: np.place(x, x > 1.5, x[:2]),
    "fill_diagonal": lambda x: np.fill_diagonal(x.reshape(4, -1), 7.0),
    "accumulate": np.add.accumulate,
    "multiply.reduce": np.multiply.reduce,
    "nansum": np.nansum,
    "nanmean": np.nanmean,
    "nanstd": np.nanstd,
    "nanprod": np.nanprod,
    "nanmax": np.nanmax,
    "nanmedian": np.nanmedian,
    "average": lambda x: np.average(x, weights=x * 2),
    "cov": lambda x: np.cov(x, x * x),
    "corrcoef": lambda x: np.corrcoef(x, x * x),
    "polyval": lambda x: np.polyval([1.5, 2, 3], x),
    "tile": lambda x: np.tile(x, 2),
    "repeat": lambda x: np.repeat(x, 2),
    "kron": lambda x: np.kron(x[:3], x[:4]),
    "fft": np.fft.fft,
    "sort": lambda x: x.sort(),
    "sort, stable": lambda x: x.reshape(4, -1).sort(axis=0, kind="stable"),
    "r_": lambda x: np.r_[0.5, x[1:]],
}
"""What programs do to rows of a large array, one after the other."""


@pytest.mark.parametrize("name", ROWS)
def test_functions_leave_rows_at_hand(name: str) -> None:
    values = np.random.default_rng(3).uniform(1, 2, (N, N))
    with config(MIN_SHARD_BYTES=SMALL):
        x, expected = nd.asarray(values), values.copy()
        row = x[1]
        assert type(row) is AtHand
        with config(FALLBACK="silent"):
            found = ROWS[name](row)
        assert type(row) is AtHand, "it was handed over"
        known = ROWS[name](expected[1])
        assert type(found) is (AtHand if isinstance(known, np.ndarray) and name != "r_" else type(known))
        several = isinstance(known, tuple)
        for one, other in zip(found if several else [found], known if several else [known], strict=True):
            np.testing.assert_array_equal(one.gather() if isinstance(one, nd.DistArray) else one, other)
        np.testing.assert_array_equal(x.gather(), expected)


def _random_key(rng: random.Random, shape: tuple[int, ...]) -> Any:
    items: list[Any] = []
    for n in shape:
        start, stop = sorted((rng.randint(0, n), rng.randint(0, n)))
        items.append(
            rng.choice(
                [
                    rng.randrange(-n, n) if n else slice(None),
                    slice(start, stop),
                    slice(1, -1),
                    slice(None),
                    slice(None, None, rng.choice([-1, 2])),
                ]
            )
        )
    if rng.random() < 0.2:
        items = items[:1]
    if rng.random() < 0.1:
        items.insert(rng.randint(0, len(items)), None)
    if rng.random() < 0.1:
        items.append(Ellipsis)
    return tuple(items) if len(items) != 1 or rng.random() < 0.5 else items[0]


def _step(rng: random.Random, arrays: list[Any]) -> Any:
    """One random step on some arrays, which may make another one; the same for equal states of `rng`."""
    x, y = rng.choice(arrays), rng.choice(arrays)
    number = rng.choice([2, 0.5, -1.25, np.float64(1.5), 0])
    kind = rng.randrange(14)
    if kind <= 2:
        return x[_random_key(rng, x.shape)]
    if kind >= 11:  # a value for Python: what comes before it is executed
        return x[tuple(rng.randrange(-n, n) if n else 0 for n in x.shape)]
    if kind == 3:
        return rng.choice(OPERATORS)(x, rng.choice([number, y]))
    if kind == 4:
        return rng.choice(OPERATORS)(number, x)
    if kind == 5:
        x[_random_key(rng, x.shape)] = rng.choice([number, y])
    elif kind == 6:
        rng.choice(IN_PLACE)(x, rng.choice([number, y]))
    elif kind == 7:
        key = _random_key(rng, x.shape)
        x[key] -= number
    elif kind == 8:
        ufunc = rng.choice(UFUNCS)
        return ufunc(x, y) if ufunc.nin == 2 else ufunc(x)
    elif kind == 9:
        np.add(x, y, out=rng.choice(arrays))
    else:
        new = [lambda: np.roll(x, 1, axis=0), lambda: np.diff(x, axis=0), lambda: np.stack([x, x])] if x.ndim else []
        new += [lambda: np.where(x > 0, x, number), lambda: np.zeros_like(x), lambda: np.concatenate([x, x], axis=None)]
        return rng.choice([lambda: x.T, x.copy, lambda: -x, lambda: x**2, *new])()
    return None


def _outcomes(seed: int, make: Any, steps: int = 60) -> tuple[list[Any], list[Any], int]:
    """What each step gave, and what the arrays are at last; and how many arrays were at hand."""
    rng, values = random.Random(seed), np.random.default_rng(seed)
    arrays = [make(values.uniform(-2, 2, (N, N))), make(values.uniform(1, 2, (N, N)))]
    seen: list[Any] = []
    near = 0
    with np.errstate(all="ignore"):
        for _ in range(steps):
            try:
                made = _step(rng, arrays)
            except (ValueError, IndexError, TypeError) as error:
                # Sorted: Python lets the array at hand of two operands begin, as it is of a derived class.
                seen.append((type(error), sorted(str(error).split())))
                continue
            near += type(made) is AtHand
            if isinstance(made, np.ndarray | nd.DistArray):
                if made.size and made.dtype != bool:
                    arrays = [*arrays[-6:], made, arrays[0]]
            seen.append(made)
        final = [x if isinstance(x, np.ndarray) else x.gather() for x in arrays]
    plain = [x.gather() if isinstance(x, nd.DistArray) else x for x in seen]
    return plain, final, near


def _compare(ours: list[Any], theirs: list[Any]) -> None:
    for one, other in zip(ours, theirs, strict=True):
        if other is None or isinstance(other, tuple):
            assert one == other
        else:
            assert type(one) is type(other)
            # The loops of some functions are others where NumPy goes backwards through memory.
            assert np.shape(one) == np.shape(other)
            np.testing.assert_allclose(one, other, rtol=1e-14, atol=0)
            if isinstance(other, np.ndarray):
                assert one.dtype == other.dtype


@pytest.mark.parametrize(("seed", "ranks"), [(s, 1) for s in range(40)] + [(s, 2) for s in range(0, 40, 8)])
def test_random_steps_give_numpys_values(seed: int, ranks: int) -> None:
    theirs = _outcomes(seed, lambda a: a)

    def run() -> Any:
        with config(MIN_SHARD_BYTES=0, AT_ONCE=SMALL):
            return _outcomes(seed, nd.asarray)

    for mine in run_simulated(ranks, run):
        _compare(mine[0], theirs[0])
        _compare(mine[1], theirs[1])
        assert ranks == 1 or not mine[2]


def test_much_of_it_is_at_hand() -> None:
    with config(MIN_SHARD_BYTES=0, AT_ONCE=SMALL):
        assert sum(_outcomes(seed, nd.asarray)[2] for seed in range(5)) > 15
    with config(MIN_SHARD_BYTES=0, AT_ONCE=0):
        assert run_simulated(1, lambda: _outcomes(1, nd.asarray)[2]) == [0]


@pytest.fixture
def large() -> Any:
    with config(AT_ONCE=SMALL, MIN_SHARD_BYTES=0):
        yield nd.asarray(np.arange(N * N, dtype=float).reshape(N, N))


def test_a_walk_records_nothing(large: Any) -> None:
    engine.flush()
    engine.counters().reset()
    for j in range(1, N):
        large[1:-1, j] = -0.5 / (large[1:-1, j - 1] + 2.0)
        large[j] *= 2
    assert engine.counters().statements == 0
    theirs = np.arange(N * N, dtype=float).reshape(N, N)
    for j in range(1, N):
        theirs[1:-1, j] = -0.5 / (theirs[1:-1, j - 1] + 2.0)
        theirs[j] *= 2
    np.testing.assert_array_equal(large.gather(), theirs)


def test_a_walk_behind_pending_work_goes_on_at_once(large: Any) -> None:
    """The first steps are recorded, since they wait for `made`; after some of them nothing is."""
    made = large * 2.0
    engine.counters().reset()
    for j in range(1, N):
        made[:, j] = made[:, j - 1] + 1.0
    assert engine.counters().statements < 2 * 20
    np.testing.assert_array_equal(made.gather(), np.arange(N)[:, None] * 2 * N + np.arange(N))


def test_boundary_rows_between_large_statements_are_left_to_fusion(large: Any) -> None:
    other = large + 0.0
    engine.flush()
    engine.counters().reset()
    for _ in range(4):
        other += 1.0
        other[0, :] = other[1, :]
        other[:, 0] = 2.0
    assert engine.counters().statements == 4 * 3


def test_views_stay_views_whatever_is_recorded_meanwhile(large: Any) -> None:
    row, theirs = large[3], np.arange(N * N, dtype=float).reshape(N, N)
    assert type(row) is AtHand
    large *= 2  # pending: the row's window is shut
    theirs *= 2
    tenth = row[2:9]
    tenth += 1
    theirs[3, 2:9] += 1
    np.testing.assert_array_equal(large.gather(), theirs)
    again = large[3, 2:9]
    total = large + 1  # reads what is written next
    again[:] = 0
    np.testing.assert_array_equal(total.gather(), theirs + 1)
    theirs[3, 2:9] = 0
    np.testing.assert_array_equal(large.gather(), theirs)
    np.testing.assert_array_equal(row.gather(), theirs[3])


def test_a_result_and_its_views_share_memory_when_they_are_handed_over(large: Any) -> None:
    result = large[2] + 1
    part = result[4:9]
    every = result[:]
    assert type(part) is AtHand and every.base is result and part.base is result and result.base is None
    assert type(result) is nd.DistArray is type(part)  # `base` has handed them over
    part[:] = -1
    result[0] = 7
    expected = np.arange(2 * N, 3 * N) + 1.0
    expected[4:9], expected[0] = -1, 7
    for x in (result, every):
        np.testing.assert_array_equal(x.gather(), expected)


def test_views_of_what_was_handed_over_write_its_memory(large: Any) -> None:
    result = large[2] + 1
    part = result[4:9]
    windows.hand_over(result)
    assert type(part) is AtHand
    part[1] = -1
    expected = np.arange(2 * N, 3 * N) + 1.0
    expected[5] = -1
    np.testing.assert_array_equal(result.gather(), expected)
    np.testing.assert_array_equal(part.gather(), expected[4:9])


def test_the_array_lives_as_long_as_its_parts(large: Any) -> None:
    row = (large * 2.0)[1]
    float(row[0])
    kept = large * 3.0
    row = kept[1]
    float(row[0])
    row = kept[1]
    del kept
    large += 1.0
    np.testing.assert_array_equal(row.gather(), np.arange(N, 2 * N) * 3.0)


def test_warnings_are_of_the_users_line(large: Any) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        large[0] / 0  # this line
        np.sqrt(-large[1])
        large[0][0:2] **= -1
    lines = [line.strip() for line in open(__file__)]
    met = [(str(w.message), lines[w.lineno - 1], w.filename) for w in caught]
    assert met == [
        ("divide by zero encountered in divide", "large[0] / 0  # this line", __file__),
        ("invalid value encountered in divide", "large[0] / 0  # this line", __file__),
        ("invalid value encountered in sqrt", "np.sqrt(-large[1])", __file__),
        ("divide by zero encountered in reciprocal", "large[0][0:2] **= -1", __file__),
    ]
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError, match="divide by zero"):
        large[1] / 0
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("error")
        large[1] / 0


def test_iterators_see_what_is_written_through_windows(large: Any) -> None:
    def walk(x: Any) -> list[float]:
        line, elements = iter(x[::-1].reshape(-1)), x.flat
        found = [float(next(line)), float(next(elements))]
        x[0, 1], x[-1, -2] = -1.0, -2.0
        found += [float(next(line)), float(next(elements))]
        x[0, 2:] += 3.0
        return [*found, float(next(elements)), float(next(elements))]

    assert walk(large) == walk(np.arange(N * N, dtype=float).reshape(N, N))
    vector = nd.asarray(np.arange(N * N, dtype=float))
    elements = iter(vector)
    assert next(elements) == 0.0
    vector[1] = 7.0
    assert next(elements) == 7.0


def test_the_setting_switches_it_off(large: Any) -> None:
    with config(AT_ONCE="off"):
        fresh = nd.asarray(np.ones((N, N)))
        assert type(fresh[0]) is nd.DistArray
    assert type(large[0]) is AtHand
    with config(AT_ONCE="auto", MIN_SHARD_BYTES=1 << 18):
        assert type(nd.asarray(np.ones((200, 200)))[0]) is AtHand
    with pytest.raises(ValueError, match="AT_ONCE"):
        config(AT_ONCE="some")


@pytest.mark.parametrize("kind", ["d", "f", "l"])
def test_products_have_the_engines_bits(kind: str) -> None:
    values = (np.random.default_rng(3).uniform(-9, 9, (200, 200))).astype(kind)
    operands = [
        lambda x: (x[3], x[4]), lambda x: (x[:, 5], x[:, 7]), lambda x: (x[2, ::-1], x[:, 7]),
        lambda x: (x[:9, :70], x[:70, 3]), lambda x: (x[5, :90], x[:90, 2:40]),
        lambda x: (x[3:9, ::2], x[::2, 5:9].copy()),
        lambda x: (x.T[:7], x[:, :5]), lambda x: (x[1, :1], x[2, :1]), lambda x: (x[1, :0], x[2, :0]),
    ]  # fmt: skip

    def run() -> list[Any]:
        found = []
        for limit in (1 << 18, 0):
            with config(MIN_SHARD_BYTES=0, AT_ONCE=limit):
                x = nd.asarray(values)
                made = [f(*pick(x)) for pick in operands for f in (np.dot, operator.matmul, np.matmul)]
                found.append([m.gather() if isinstance(m, nd.DistArray) else m for m in made])
        return found

    [(at_once, recorded)] = run_simulated(1, run)
    for one, other in zip(at_once, recorded, strict=True):
        np.testing.assert_array_equal(one, other, strict=True)
        assert type(one) is type(other)


@pytest.mark.parametrize("kind", ["d", "f", "l", "B", "?"])
def test_reductions_have_the_engines_bits(kind: str) -> None:
    rng = np.random.default_rng(5)
    values = (rng.uniform(-9, 9, 40_000) * 10.0 ** rng.integers(-6, 6, 40_000)).astype(kind)
    values[:9] = [0, -0.0, 0, 1, -0.0, 0, 0, 0, 0] if kind in "fd" else 0
    parts = [slice(n) for n in (1, 2, 7, 8, 100, 2047, 2048, 2049, 4096, 5000, 9999, 14_000)]
    parts += [slice(3, 4000, 3), slice(5000, 40_000, 7), slice(300, 2, -1), slice(0, 0), slice(5, 9)]
    functions = [np.sum, np.max, np.min, np.any, np.all, np.mean]

    def run() -> list[Any]:
        found = []
        for limit in (1 << 18, 0):
            with config(MIN_SHARD_BYTES=0, AT_ONCE=limit):
                x, made = nd.asarray(values), []
                for part in parts:
                    for function in functions:
                        if part != slice(0, 0) or function in (np.sum, np.any, np.all):
                            made += [function(x[part]), getattr(x[part], function.__name__)()]
                found.append(made)
        return found

    [(at_once, recorded)] = run_simulated(1, run)
    for one, other in zip(at_once, recorded, strict=True):
        assert type(one) is type(other) and np.asarray(one).tobytes() == np.asarray(other).tobytes()


ALONG = [
    ((8, 5, 5, 3, 8), [(1, 2, 3), (1, 2), (0, 1), (3, 4), (0, 4), 0, 2, -1, None]),
    ((3, 150, 9), [0, 1, 2, (0, 1), (1, 2)]),
    ((2, 5000), [0, 1, None]),
    ((300, 1, 7), [0, 1, (0, 2)]),
    ((4096, 2), [0, 1]),
    ((6, 2048), [1]),
    ((1, 64, 3), [1, (0, 1)]),
]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["d", "f", "l", "B", "?"])
def test_reductions_along_axes_have_the_engines_bits(kind: str) -> None:
    """Also where NaN, infinities and zeros of both signs meet, of arrays that lie in any way."""
    functions = [np.sum, np.max, np.min, np.any, np.all, np.mean]

    def run() -> list[Any]:
        found = []
        for limit in (1 << 18, 0):
            made: list[Any] = []
            with config(MIN_SHARD_BYTES=0, AT_ONCE=limit):
                for shape, axes in ALONG:
                    n = int(np.prod(shape))
                    rng = np.random.default_rng(n)
                    values = rng.uniform(-9, 9, n) * 10.0 ** rng.integers(-6, 6, n)
                    values[::3] = np.where(rng.random(n) < 0.5, 0.0, -0.0)[::3]
                    values[rng.integers(0, n, 3)] = np.nan, np.inf, -np.nan
                    x = nd.asarray(np.concatenate([values, values]).astype(kind).reshape((2, *shape)))
                    for part in (x[0], x[0, ..., ::-1], x[1].T, x[:, 0], x[0][:, None], x[1] * 3):
                        for axis in axes:
                            for function in functions:
                                made += [function(part, axis=axis), function(part, axis, keepdims=True)]
                                made.append(getattr(part, function.__name__)(axis=axis))
                found.append([(engine.is_handle(y) or type(y), plain(y)) for y in made])
        return found

    def plain(y: Any) -> np.ndarray:
        return y.gather() if engine.is_handle(y) else np.asarray(y)

    with np.errstate(all="ignore"):
        [(at_once, recorded)] = run_simulated(1, run)
    for (kind, mine), (other, theirs) in zip(at_once, recorded, strict=True):
        assert kind is other
        assert (mine.shape, mine.dtype, mine.strides) == (theirs.shape, theirs.dtype, theirs.strides)
        assert mine.tobytes() == theirs.tobytes()


@pytest.mark.parametrize("kind", "?bBhiqQfd")
@pytest.mark.parametrize("ufunc", [np.add, np.maximum, np.logical_or, np.bitwise_xor], ids=lambda f: f.__name__)
@pytest.mark.usefixtures("large")
def test_reductions_to_a_dtype(kind: str, ufunc: np.ufunc) -> None:
    values = (np.arange(8 * N * N) % 7).reshape(8 * N, N).astype(kind)
    for dtype in "?bBhqfd":
        row = nd.asarray(values)[2]
        assert type(row) is AtHand
        try:
            expected = ufunc.reduce(values[2], dtype=dtype)
        except TypeError as error:
            with pytest.raises(type(error)):
                ufunc.reduce(row, dtype=dtype)
            continue
        made = ufunc.reduce(row, dtype=dtype)
        assert (made, made.dtype) == (expected, expected.dtype)


def test_reductions_along_axes_record_nothing(large: Any) -> None:
    recorded = engine.runtime().program.recorded
    for k in range(1, 20):
        assert type(large[k : k + 2].sum(axis=1)) is type(np.max(large[:, k : k + 2], axis=0)) is AtHand
    assert engine.runtime().program.recorded == recorded


@pytest.mark.parametrize("kind", ["d", "i", "?", "e", "D"])
def test_what_a_mask_selects(kind: str) -> None:
    """Little of it is at hand; the rest has its own memory, and all of it the engine's values."""
    rng = np.random.default_rng(3)
    values = rng.uniform(-9, 9, (60, 40)).astype(kind)
    masks = [rng.random((60, 40)) < share for share in (0, 0.1, 0.6, 1)]

    def run() -> list[Any]:
        found = []
        for limit in (4000, 0):
            made = []
            with config(MIN_SHARD_BYTES=0, AT_ONCE=limit):
                for given in masks:
                    x, mask = nd.asarray(values), nd.asarray(given)
                    x[:, 3:7] = 1
                    parts = [x[mask], x[(mask,)], x[1:][mask[1:]], x[:, ::2][mask[:, ::2]], x.T[mask.T], x[given]]
                    parts += [(x * 2)[np.logical_and(mask, x != 1)], np.extract(mask, x)]
                    x[...] = 0
                    made += [(y.gather(), y.size and y.sum().item(), y.strides) for y in parts]
            found.append(made)
        return found

    [(at_once, recorded)] = run_simulated(1, run)
    for (one, total, strides), (other, sum_of_other, others) in zip(at_once, recorded, strict=True):
        np.testing.assert_array_equal(one, other, strict=True)
        assert (total, strides) == (sum_of_other, others)


def test_what_a_mask_selects_is_at_hand_where_it_is_little(large: Any) -> None:
    mask = large > np.sort(large.gather(), axis=None)[-9]
    recorded = engine.runtime().program.recorded
    assert type(large[mask]) is AtHand and large[mask].size == 8 and large[mask].mean() > large[0, 0]
    assert engine.runtime().program.recorded == recorded
    with pytest.raises(IndexError, match="boolean index did not match"):
        large[mask[1:]]


def test_elements_that_index_arrays_pick_of_a_large_array_are_at_hand(large: Any) -> None:
    values, later = large.gather(), large + 1
    rows, columns = np.array([3, -1, 3]), np.array([0, 5, 0], np.uint8)
    recorded = engine.runtime().program.recorded
    assert type(large[rows, columns]) is AtHand and large[rows, columns].tolist() == values[rows, columns].tolist()
    assert engine.runtime().program.recorded == recorded
    large[rows, columns] = large[rows, columns] * 2 + [1.0, 2.0, 3.0]
    values[rows, columns] = values[rows, columns] * 2 + [1.0, 2.0, 3.0]
    large[nd.asarray(rows), columns] += 1
    values[rows, columns] += 1
    assert np.array_equal(large.gather(), values)
    assert np.array_equal(later.gather(), np.arange(N * N, dtype=float).reshape(N, N) + 1)
    with pytest.raises(IndexError, match=f"index {N} is out of bounds for axis 0 with size {N}"):
        large[np.array([0, N]), columns[:2]]


def test_items_of_large_arrays_are_read_in_place(large: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    engine.flush()
    engine.counters().reset()
    with monkeypatch.context() as patched:
        patched.setattr(engine, "item", None)  # what brings an element from wherever it is
        assert large.item(-2) == N * N - 2
    assert large.item(2, 3) == 2 * N + 3 and large.item(-1) == N * N - 1 and type(large.item((1, 0))) is float
    large += 1.0  # pending
    assert large.item(5) == 6.0
    large[0, 5] = 7.0
    assert large.item(5) == 7.0 and engine.counters().statements == 1
    with pytest.raises(IndexError, match=f"index {N} is out of bounds for axis 1 with size {N}"):
        large.item(0, N)
    with pytest.raises(ValueError, match="incorrect number of indices for array"):
        large.item(0, 0, 0)


def test_a_reduction_records_nothing_and_warns_at_its_line(large: Any) -> None:
    recorded = engine.runtime().program.recorded
    for k in range(1, 20):
        assert large[k].sum() and large[:, k].max() > 0 and np.mean(large[k, 2:])
    assert engine.runtime().program.recorded == recorded
    large[3] = 1e308
    with pytest.warns(RuntimeWarning, match="overflow encountered in reduce") as caught:
        assert large[3].sum() == np.inf
    assert [warning.filename for warning in caught] == [__file__]


def test_metadata_that_is_set_is_seen_by_what_follows() -> None:
    """Shape, dtype, size and flags that are set in place, of an array that was worked on at once before."""

    def walk(x: Any) -> list[Any]:
        found: list[Any] = []

        def attempt(function: Any) -> None:
            try:
                found.append(function())
            except (IndexError, TypeError, ValueError) as error:
                found.append(repr(error))

        x[0, 0] = 5.0
        x.shape = (N * N,)
        found.append(x[3].item())
        attempt(lambda: operator.setitem(x, (1, 1), 0))
        x.flags.writeable = False
        attempt(lambda: operator.setitem(x, 3, 1))
        x.flags.writeable = True
        x[3] = 2
        x.dtype = "i8"
        found.append(x[3].item())
        x[3] = 7
        x.dtype = "f8"
        attempt(lambda: x.sort(axis=1.0))
        y = x.copy()
        y[0] = 1
        y.resize((10,), refcheck=False)
        y[3] = 9
        found.append(y.tolist())
        y.setflags(write=False)
        attempt(lambda: operator.imul(y[3:5], 2))
        return [*found, x.tolist()]

    values = np.arange(N * N, dtype="f8").reshape(N, N)
    with config(MIN_SHARD_BYTES=SMALL):
        found = walk(nd.asarray(values))
    assert found == walk(values.copy())


def test_views_without_elements() -> None:
    """Their strides may be those of views that their memory does not hold."""
    with config(MIN_SHARD_BYTES=0, AT_ONCE=SMALL):
        part = nd.asarray(np.empty((0, 2)))[:, 1]
        found = (part + 1, part[...], -part)
    assert [x.shape for x in found] == [(0,)] * 3


@pytest.mark.parametrize("function", [np.negative, np.exp, np.sin, np.floor_divide])
def test_results_lie_in_memory_as_their_operands_do(function: Any) -> None:
    values = np.arange(1.0, 1.0 + N * N).reshape(N, N)
    with config(MIN_SHARD_BYTES=0, AT_ONCE=SMALL):
        ours = nd.asarray(values)
        for pick in (lambda x: x.T[:4], lambda x: x.T[4::-1, ::2], lambda x: x[::2, :3], lambda x: x[::-1].T):
            mine, other = pick(ours), pick(values)
            made, expected = (function(*(x,) * function.nin) for x in (mine, other))
            assert (made.flags.c_contiguous, made.flags.f_contiguous) == (
                expected.flags.c_contiguous,
                expected.flags.f_contiguous,
            )
            np.testing.assert_array_equal(made.gather(), expected)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: np.logical_or.reduce(x[0, 5:9], dtype="f8"),
        lambda x: x[3:6, 2:5].sum(axis=True),
        lambda x: x[3:6, 2:5].sum(axis=(0, True)),
    ],
)
def test_reductions_that_numpy_refuses(large: Any, call: Any) -> None:
    with pytest.raises(TypeError) as expected:
        call(np.ones(large.shape))
    with pytest.raises(TypeError) as raised:
        call(large)
    assert str(raised.value) == str(expected.value)


@pytest.mark.parametrize("error", [MemoryError, KeyboardInterrupt])
def test_what_is_not_handed_over_stays_at_hand(large: Any, error: type, monkeypatch: pytest.MonkeyPatch) -> None:
    result, other = large[0] * 2.0, large[0] + 1.0
    part = other[1:4]

    def fail(*args: Any) -> Any:
        raise error

    with monkeypatch.context() as broken:
        broken.setattr(windows, "from_global", fail)
        for x in (result, part, other):
            with pytest.raises(error):
                x.layout  # noqa: B018
    np.testing.assert_array_equal(np.sort(result).gather(), np.arange(N) * 2.0)
    part[0] = 50.0
    np.testing.assert_array_equal(np.sort(other).gather(), sorted([1.0, 50.0, *range(3, N + 1)]))
    np.testing.assert_array_equal(part.gather(), [50.0, 3.0, 4.0])


@pytest.mark.parametrize("moment", [0, 1])
@pytest.mark.parametrize("work", [lambda x: x / 0, lambda x: operator.itruediv(x, 0), np.log])
def test_an_interrupt_leaves_the_error_state(
    large: Any, work: Any, moment: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    row, state, calls = large[0], np.geterr(), []
    large[1] / 2  # the state is known
    seen, stand_in, run, nameless = watch.latest

    def interrupted(*call: Any) -> None:
        for step in range(moment + 1):  # as a signal's handler does, before the operation or after it
            calls.append(run(*call) if step else None)
        raise KeyboardInterrupt

    with monkeypatch.context() as context, pytest.raises(KeyboardInterrupt):
        context.setattr(watch, "latest", (seen, stand_in, interrupted, nameless))
        work(row)
    assert len(calls) > moment
    assert np.geterr() == state and not watch.met
    with pytest.warns(RuntimeWarning, match="divide by zero encountered in divide"):
        large[1] / 0


FEW: list[Any] = [
    [3, 1],
    (2, [1, 5]),
    (slice(1, 4), [0, 2]),
    np.array([5, 5]),
    (np.array([[1], [2]]), np.array([4, 0])),
]


@pytest.mark.parametrize("key", FEW, ids=str)
def test_few_rows_that_indices_pick_of_a_large_array_are_at_hand(large: Any, key: Any) -> None:
    theirs = np.arange(N * N, dtype=float).reshape(N, N)
    found = large[key]
    assert type(found) is AtHand
    np.testing.assert_array_equal(found.gather(), theirs[key])
    large[key] = -found
    theirs[key] = -theirs[key]
    np.testing.assert_array_equal(large.gather(), theirs)


@pytest.mark.parametrize("key", [[N, 0], (0, [0, -N - 1]), (np.array([0, 1]), np.array([0, 1, 2]))], ids=str)
def test_indices_that_pick_nothing_raise_numpys_errors(large: Any, key: Any) -> None:
    with pytest.raises(IndexError) as expected:
        np.zeros((N, N))[key]
    with pytest.raises(IndexError) as found:
        large[key]
    assert str(found.value) == str(expected.value)
    with pytest.raises(IndexError) as found:
        large[key] = 0
    assert str(found.value) == str(expected.value)


@pytest.mark.parametrize("moment", [0, 1])
def test_an_interrupt_of_an_exchange_leaves_the_error_state(
    large: Any, moment: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    row, state, calls = large[0], np.geterr(), []
    exchange = watch._exchange

    def interrupted(value: Any) -> None:
        exchange(value)
        calls.append(value)
        if len(calls) == moment + 1:
            raise KeyboardInterrupt

    with monkeypatch.context() as context, pytest.raises(KeyboardInterrupt):
        context.setattr(watch, "_exchange", interrupted)
        np.diff(row)
    assert len(calls) > moment
    assert np.geterr() == state and not watch.met


def test_a_context_that_is_in_use_is_done_without(large: Any) -> None:
    """As where another thread, or a finalizer within a callback, works at the same time."""
    rows = [large[1], large[2]]
    rows[0] / 2
    run = watch.latest[2]

    def work() -> Any:
        with pytest.warns(RuntimeWarning, match="divide by zero encountered in divide"):
            quotient = rows[0] / 0
        rows[1] *= rows[0]
        with pytest.warns(RuntimeWarning, match="invalid value encountered in sqrt"):
            root = np.sqrt(-rows[0])
        return quotient, rows[1], root

    theirs = np.arange(N * N, dtype=float).reshape(N, N)[1:3]
    with np.errstate(all="ignore"):
        expected = theirs[0] / 0, theirs[1] * theirs[0], np.sqrt(-theirs[0])
    for found, value in zip(run(work), expected, strict=True):
        np.testing.assert_array_equal(found.gather(), value)
    assert not watch.met


@pytest.mark.parametrize("operation", [operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv,
                                       operator.mod, operator.pow, operator.lt, operator.eq])  # fmt: skip
@pytest.mark.parametrize("scalar", [np.float64(-2.5), np.float32(2), np.int64(3), np.bool_(True), np.complex128(1j)])
def test_a_scalar_of_numpys_on_the_left(large: Any, operation: Any, scalar: Any) -> None:
    theirs = np.arange(N * N, dtype=float).reshape(N, N)

    def attempt(row: Any) -> Any:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            try:
                made = operation(scalar, row)
            except TypeError as error:
                return str(error)
            told_of = [(str(w.message), w.filename) for w in told]
            return np.asarray(getattr(made, "gather", lambda: made)()).tobytes(), made.dtype, told_of

    mine, expected = attempt(large[0, :7]), attempt(theirs[0, :7])  # with a zero
    assert mine == expected
    if type(expected) is tuple and not isinstance(scalar, np.complexfloating):
        assert type(operation(scalar, large[1, :7])) is AtHand


def test_divmod_of_an_element_and_a_vector(large: Any) -> None:
    found = divmod(large[2, 3, ...], large[1])
    assert [type(x) for x in found] == [AtHand, AtHand]
    for x, expected in zip(found, divmod(2.0 * N + 3, np.arange(N, 2.0 * N)), strict=True):
        np.testing.assert_array_equal(x.gather(), expected)


def test_outputs_of_functions_by_position(large: Any) -> None:
    target, whole = large[3, :4], large + 0.0
    assert np.concatenate((large[0, :2], large[1, :2]), 0, target) is target
    assert np.take(large[0], [5, 6], 0, large[4, :2]) is not None
    plain = np.zeros(2)
    assert np.take(large[0], [5, 6], 0, plain) is plain and plain.tolist() == [5.0, 6.0]
    assert large[3, :5].gather().tolist() == [0.0, 1.0, N, N + 1.0, 3 * N + 4.0]
    assert large[4, :3].gather().tolist() == [5.0, 6.0, 4 * N + 2.0]
    np.testing.assert_array_equal(whole.gather(), np.arange(N * N).reshape(N, N))  # recorded before


def test_no_difference_is_the_array_itself(large: Any) -> None:
    row = large[0]
    made = np.diff(row, n=0)
    assert made is row
    later = large + 0.0
    made[0] = 5.0
    assert row[0] == large[0, 0] == 5.0 and later[0, 0] == 0.0


NEW = {
    "where": lambda x: np.where(x > 0, x, -x),
    "where with numbers": lambda x: np.where(x > 0, 1, 0.5),
    "concatenate": lambda x: np.concatenate([x, x[::-1], [3.0]]),
    "stack": lambda x: np.stack((x, x), axis=1),
    "hstack": lambda x: np.hstack([x, x]),
    "roll": lambda x: np.roll(x, 2),
    "diff": lambda x: np.diff(x, n=2),
    "outer": lambda x: np.outer(x[:3], x[:4]),
    "take": lambda x: np.take(x, [0, 2, 2]),
    "argmax": lambda x: np.argmax(x),
    "nonzero": lambda x: np.nonzero(x > 0),
    "count_nonzero": lambda x: np.count_nonzero(x),
    "searchsorted": lambda x: np.searchsorted(np.array([0.0, 1.0]), x, side="right"),
    "triu": lambda x: np.triu(np.stack([x, x]), k=1),
    "zeros_like": lambda x: np.zeros_like(x),
    "array_equal": lambda x: np.array_equal(x, x),
    "invalid cast": lambda x: np.full_like(x, np.nan, "i4"),
    "cast that overflows": lambda x: np.where(x > 0, np.zeros_like(x, "f4"), 1e300),
    "overflow": lambda x: np.outer(x * 1e200, x * 1e200),
    "too short": lambda x: np.concatenate([x, np.ones((2, 2))]),
}


@pytest.mark.parametrize("name", NEW)
def test_functions_that_make_new_arrays(name: str) -> None:
    values = np.random.default_rng(1).standard_normal((N, N))
    found = []
    for at_once in (None, 0, SMALL):  # NumPy, the engine, at hand
        settings = {} if at_once is None else {"MIN_SHARD_BYTES": 0, "AT_ONCE": at_once}
        with config(**settings), warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            row = (values.copy() if at_once is None else nd.asarray(values))[3, 2:]
            assert (type(row) is AtHand) == bool(at_once)
            try:
                made = NEW[name](row)
            except ValueError as error:
                found.append(str(error))
                continue
            assert type(row) is AtHand or not at_once, "it stays at hand"
            made = made if isinstance(made, tuple) else (made,)
            events = sorted(str(w.message) for w in told if issubclass(w.category, RuntimeWarning))
            found.append([(np.asarray(x).tolist(), np.shape(x), str(np.asarray(x).dtype)) for x in made] + events)
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize(
    "call",
    [
        lambda x: np.full_like(x, 1e300, "f2"),
        lambda x: np.astype(x * 1e300, np.float16),
        lambda x: (x * 1e300).astype("F"),
    ],
)
@pytest.mark.parametrize("state", ["warn", "call"])
def test_events_of_casts_that_are_not_done_at_hand_are_told_once(call: Callable[[Any], Any], state: Any) -> None:
    def told(x: Any) -> list[str]:
        handled: list[str] = []
        with warnings.catch_warnings(record=True) as caught, np.errstate(over=state, call=lambda *a: handled.append(a)):
            warnings.simplefilter("always")
            np.asarray(call(x))
        return [*handled, *(str(w.message) for w in caught if w.category is RuntimeWarning)]

    with config(MIN_SHARD_BYTES=0, AT_ONCE=SMALL, FALLBACK="silent"):
        row = nd.asarray(np.ones((N, N)))[3, 2:]
        assert type(row) is AtHand
        assert told(row) == told(np.ones(N - 2))


@pytest.mark.parametrize("at_once", [1, SMALL])
def test_a_mask_selects_nothing_of_what_begins_beyond_the_memory(at_once: int) -> None:
    with config(MIN_SHARD_BYTES=0, AT_ONCE=at_once):
        column = nd.asarray(np.empty((0, 3)))[:, 1]
        assert np.extract(column > 0, column).shape == (0,)
        plain = np.empty(0)
        plain += column


@pytest.mark.slow
@pytest.mark.parametrize(
    "call", ["np.exp(row)", "row * row", "row[:, None] @ row[None, :5]", "np.dot(x[:9, :9], row[:9])"]
)
def test_the_first_call_of_a_process_is_at_once(call: str) -> None:
    """Where the table of functions is not loaded yet."""
    script = "import numpy as np, numpy_dist as nd\nx = nd.asarray(np.ones((999, 999)))\nrow = x[3]\n"
    script += f"made = {call}\nassert type(row) is not nd.DistArray\n"
    # NumPy 2.1's dot tells of no floating-point events, and is left to the engine.
    at_once = not (call.startswith("np.dot") and np.__version__.startswith("2.1."))
    script += f"assert (type(made) is type(row)) is {at_once}, type(made)"
    subprocess.run([sys.executable, "-c", script], check=True, timeout=120)


@pytest.mark.parametrize("state", ["warn", "raise", "log", "ignore"])
@pytest.mark.parametrize("product", [operator.matmul, np.dot], ids=["matmul", "dot"])
def test_products_of_vectors_tell_events_by_the_name_that_numpy_has(large: Any, product: Any, state: Any) -> None:
    class Log:
        def write(self, text: str) -> None:
            logged.append(text)

    def told(x: Any) -> list[str]:
        logged.clear()
        with np.errstate(over=state, call=Log()), warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            try:
                product(x[1], x[1, ::-1][::-1])
            except FloatingPointError as error:
                return [str(error)]
        return [*(f"{warning.filename}: {warning.message}" for warning in found), *logged]

    logged: list[str] = []
    large[1] = 1e300
    theirs = told(large.gather())
    assert told(large) == theirs
    silent = state == "ignore" or (product is np.dot and np.__version__.startswith("2.1."))
    assert any("overflow" in text for text in theirs) is not silent


def test_numpys_scalars_meet_overrides_of_their_ufunc(large: Any) -> None:
    row = large[3]
    assert type(np.float64(2) * row) is AtHand
    with nd.overriding(np.multiply, lambda *args, **kwargs: nd.asarray(np.full(N, 0.5))):
        assert float((np.float64(2) * row)[1]) == float((row * np.float64(2))[1]) == 0.5
    assert type(np.float64(2) * large[3]) is AtHand


@pytest.mark.parametrize("dtype", [np.float32, np.dtype("f4"), float])
def test_ufuncs_in_another_dtype_are_at_hand(large: Any, dtype: Any) -> None:
    row, theirs = large[3], np.arange(N * N, dtype=float).reshape(N, N)[3]
    found = np.multiply(row, 1.1, dtype=dtype, casting="same_kind")
    expected = np.multiply(theirs, 1.1, dtype=dtype, casting="same_kind")
    assert type(found) is AtHand and found.dtype == expected.dtype
    assert found.gather().tobytes() == expected.tobytes()
    with pytest.raises(TypeError):
        np.multiply(row, 1.1, dtype=np.int32, casting="same_kind")


def test_a_small_array_takes_what_is_at_hand_and_warns_at_the_users_line(large: Any) -> None:
    small = nd.asarray(np.full(4, 1e308))
    assert type(small) is not AtHand
    with pytest.warns(RuntimeWarning, match="overflow encountered in add") as found:
        large[0, :4] = 1e308
        small += large[0, :4]
    assert found[0].filename == __file__
    assert np.isinf(small.gather()).all()


@pytest.mark.parametrize("key", [0, 5, -1, N * N - 1])
def test_elements_are_set_by_their_number(large: Any, key: int) -> None:
    theirs = np.arange(N * N, dtype=float).reshape(N, N)
    large[0]
    for x in (large, theirs):
        x.flat[key] = 7.5
        x[:, ::-2].flat[key // 3] = 8
    np.testing.assert_array_equal(large.gather(), theirs)
    for wrong in (N * N, -N * N - 1):
        with pytest.raises(IndexError) as expected:
            theirs.flat[wrong] = 1
        with pytest.raises(IndexError) as error:
            large.flat[wrong] = 1
        assert str(error.value) == str(expected.value)


def test_what_a_vector_at_hand_picks_is_at_hand() -> None:
    with config(MIN_SHARD_BYTES=SMALL, AT_ONCE=SMALL):
        x, places = nd.asarray(np.arange(N * N) * 0.5), nd.asarray(np.arange(N * N)[::-1].copy())
        x[0], places[0]
        picked = x[places[3:9]]
        assert type(picked) is AtHand
        np.testing.assert_array_equal(picked.gather(), (np.arange(N * N) * 0.5)[::-1][3:9])
        chosen = x[3:9][places[3:9] > N * N - 7]
        np.testing.assert_array_equal(chosen.gather(), np.arange(3, 9)[: len(chosen)] * 0.5)
        with pytest.raises(IndexError, match="out of bounds"):
            x[(places + 1)[:3]]


@pytest.mark.parametrize("kind", ["d", "f", "D", "l"])
def test_products_of_a_large_matrix_have_the_engines_bits(kind: str) -> None:
    values = (np.random.default_rng(3).uniform(-9, 9, (300, 200))).astype(kind)
    products = [
        lambda x: x @ x[7], lambda x: x[:, 3] @ x, lambda x: x.T @ x[:, 3], lambda x: x[::-1] @ x[7],
        lambda x: x[:, ::-1] @ x[7], lambda x: x[::2] @ x[7], lambda x: x[:, 1:] @ x[7, 1:], lambda x: x @ x[:4].T,
    ]  # fmt: skip

    def run() -> list[Any]:
        found = []
        for limit in (1 << 17, 0):
            with config(MIN_SHARD_BYTES=0, AT_ONCE=limit):
                x = nd.asarray(values)
                made = [product(x) for product in products]
                assert all(type(m) is AtHand for m in made) == bool(limit)
                found.append([m.gather() for m in made])
        return found

    [(at_once, recorded)] = run_simulated(1, run)
    for one, other, product in zip(at_once, recorded, products, strict=True):
        np.testing.assert_array_equal(one, other, strict=True)
        np.testing.assert_array_equal(one, product(values), strict=True)


def test_products_of_a_large_matrix_meet_overrides_of_their_ufunc(large: Any) -> None:
    row = large[3]
    assert type(large @ row) is AtHand
    with nd.overriding(np.matmul, lambda *args, **kwargs: nd.asarray(np.full(N, 0.5))):
        assert float((large @ row)[1]) == float((row @ large)[1]) == 0.5
    assert type(row @ large) is AtHand
