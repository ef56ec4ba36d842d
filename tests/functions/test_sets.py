"""Sets of values and of rows, and searching, at several numbers of ranks."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import numpy_dist
from numpy_dist import engine
from numpy_dist.comm.simulated import run_simulated
from numpy_dist.dispatch.patterns import replicate
from numpy_dist.parallel import key_sort
from numpy_dist.settings import config

from .harness import check

RNG = np.random.default_rng(11)
SMALL = ("default", "first", "irregular", "descending", "flipped", "strided", "transposed")
NAN = np.nan
RECORDS = np.zeros(23, "i4,U2,f8")
RECORDS["f0"], RECORDS["f1"] = RNG.integers(0, 3, 23), RNG.integers(0, 3, 23).astype("U2")
ROWS = {
    "integers": RNG.integers(0, 2, (23, 3)),
    "bools": RNG.integers(0, 2, (23, 2)) > 0,
    "nan": np.where(RNG.random((23, 2)) < 0.3, NAN, RNG.integers(0, 2, (23, 2))),
    "complex": RNG.integers(0, 2, (9, 2)) + 1j * RNG.integers(0, 2, (9, 2)),
    "strings": RNG.integers(0, 3, (23, 2)).astype("U3"),
    "dates": RNG.integers(0, 2, (23, 2)).astype("M8[D]"),
    "wide": RNG.integers(0, 2, (23, 1)).repeat(20, axis=1),
    "deep": RNG.integers(0, 2, (12, 2, 2)),
    "like": np.ones((11, 3)),
    "single": RNG.integers(0, 2, (1, 5)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ROWS)
def test_different_rows(name):
    for axis in (0, -1):
        check(lambda x, axis=axis: np.unique(x, axis=axis), ROWS[name], ways=SMALL, ranks=(1, 3, 7))
    check(lambda x: np.unique(x, True, True, True, axis=0), ROWS[name], ways=SMALL, ranks=(1, 2, 5))


def test_rows_of_arrays_without_elements_and_bad_axes():
    check(lambda x: np.unique(x, axis=0), np.zeros((3, 0)), ways=("default",))
    check(lambda x: np.unique(x, return_counts=True, axis=1), np.zeros((0, 3), "i2"), ways=("default",))
    check(lambda x: np.unique(x, axis=2), ROWS["integers"], ways=("first",))
    check(lambda x: np.unique(x, axis=1), ROWS["integers"][:, 0], ways=("first",))
    check(lambda x: np.unique(x, axis=0), ROWS["nan"][:, 0], ways=SMALL)


def test_different_records():
    check(lambda x: np.unique(x, True, True, True), RECORDS, ways=("default", "irregular", "descending", "flipped"))


@pytest.mark.parametrize("dtype", ["M8[D]", ">M8[s]", "m8[s]", "f4", "c16"])
def test_whether_nan_equals_itself(dtype):
    values = np.zeros(4, dtype)
    values[1::2] = "NaT" if values.dtype.kind in "mM" else NAN
    for options in ({}, {"equal_nan": False}, {"equal_nan": False, "return_counts": True}):
        check(lambda x, options=options: np.unique(x, **options), values, ranks=(1, 3), ways=("default",))
    check(lambda x: np.unique_values(x).size, values, ranks=(2,), ways=("default",))


@pytest.mark.slow
def test_functions_of_the_array_api():
    for values in (ROWS["integers"], ROWS["nan"], ROWS["strings"]):
        # No two NaN are equal here; which of them is which in the inverse is by NumPy's unstable sort.
        for function in (np.unique_all, np.unique_counts, *([np.unique_inverse] if values is not ROWS["nan"] else [])):
            check(function, values, ways=SMALL, ranks=(1, 3))
        check(lambda x: np.sort(np.unique_values(x)), values, ways=SMALL, ranks=(1, 3))


@pytest.mark.slow
def test_operations_on_two_sets():
    one, two = RNG.integers(0, 30, 50), RNG.integers(10, 50, 40)
    ways = ("default", "irregular", "descending")
    for function in (np.intersect1d, np.union1d, np.setdiff1d, np.setxor1d, np.isin):
        check(function, one, two, ways=ways, ranks=(1, 3, 5))
        check(function, one.reshape(5, 10).astype("f4"), two.reshape(8, 5), ways=ways, ranks=(2,))
        check(function, one[:0], two, ways=("default",), ranks=(3,))
    check(lambda x, y: np.intersect1d(x, y, return_indices=True), one, two, ways=ways, ranks=(1, 3, 5))
    one, two = RNG.permutation(30), RNG.permutation(40)[:20]
    for function in (np.intersect1d, np.setdiff1d, np.setxor1d, np.isin):
        check(lambda x, y, function=function: function(x, y, assume_unique=True), one, two, ways=ways, ranks=(1, 3))
    for options in ({"invert": True}, {"kind": "sort"}, {"kind": "table"}, {"kind": "table", "invert": True}):
        check(lambda x, y, options=options: np.isin(x, y, **options), one, two, ways=ways, ranks=(1, 3))


def test_isin_of_records():
    records, others = np.array([(1, 2.0), (2, 3.0)], "i4,f8"), np.array([(1, 2.0)], "i4,i8")
    for one, two in ((records, others), (others, records), (records, np.array([1, 2])), (np.array([1, 2]), records)):
        check(np.isin, one, two, ranks=(1, 3), ways=("default",))


@pytest.mark.slow
def test_isin_of_many_tests(monkeypatch):
    monkeypatch.setattr(replicate, "MOST_KNOWN", 0)
    ways = ("default", "irregular", "descending", "flipped")
    values = np.where(RNG.random(40) < 0.2, NAN, RNG.integers(0, 20, 40))
    for one, two in ((RNG.integers(0, 30, 50), RNG.integers(10, 50, 40)), (values, values[::2].copy())):
        check(np.isin, one, two, ways=ways)
        check(lambda x, y: np.isin(x, y, invert=True), one.reshape(5, -1), two, ways=ways)
    check(np.isin, values.astype("U3"), values[::2].astype("U4"), ways=ways)


@pytest.mark.slow
@pytest.mark.parametrize("few", [0, 1 << 16])
def test_searching(monkeypatch, few):
    monkeypatch.setattr(replicate, "MOST_KNOWN", few)
    ways = ("default", "irregular", "descending", "flipped", "strided")
    held = np.sort(RNG.integers(0, 9, 30))
    for sought in (RNG.integers(-1, 11, 40), RNG.random((4, 5)) * 9, np.zeros(0), np.full(3, 4)):
        for side in ("left", "right"):
            check(lambda a, v, side=side: np.searchsorted(a, v, side), held, sought, ways=ways)
    with_nan = np.append(np.sort(RNG.random(9)), [NAN] * 4)
    check(np.searchsorted, with_nan, np.array([NAN, 0.5, 2]), ways=ways)
    check(np.searchsorted, held.astype("U2"), np.array(["3", "7", "", "x"]), ways=ways)
    check(np.searchsorted, np.sort(RNG.integers(0, 9, 30)).astype("M8[s]"), held.astype("M8[s]"), ways=ways)
    shuffled = RNG.permutation(held)
    for side in ("left", "right"):
        check(
            lambda a, v, sorter, side=side: np.searchsorted(a, v, side, sorter),
            shuffled,
            RNG.integers(-1, 11, 12),
            np.argsort(shuffled),
            ways=ways,
        )


def test_what_searchsorted_refuses():
    a, v, where = np.arange(5.0), np.arange(3.0), np.arange(5)
    ways = ("default",)
    check(lambda a, v, s: np.searchsorted(a, v, sorter=s), a, v, where[:4], ways=ways)
    check(lambda a, v, s: np.searchsorted(a, v, sorter=s), a, v, where + 5, ways=ways)
    check(lambda a, v, s: np.searchsorted(a, v, sorter=s), a, v, where * 0.5, ways=ways)
    check(lambda a, v: np.searchsorted(a, v, "middle"), a, v, ways=ways)
    check(np.searchsorted, a.reshape(5, 1), v, ways=ways)


def test_sorted_rows_stay_balanced_and_little_is_sent():
    def on_rank() -> None:
        n = 40_000
        for first in (np.zeros(n), np.arange(n) % 3, np.exp(9 * np.random.default_rng(1).random(n)), np.full(n, NAN)):
            with config(MIN_SHARD_BYTES=0, FALLBACK="error"):
                keys = (numpy_dist.asarray(first), numpy_dist.asarray(first[::-1].copy()))
                engine.flush()
                comm = engine.runtime().comm
                comm.counters.reset()
                found = np.lexsort(keys)
                assert comm.counters.collectives == 2
                assert comm.counters.messages <= 3 * (comm.size - 1)
                assert comm.counters.bytes <= 3 * 8 * n / comm.size + 60_000
                layout = engine.layout_of(found)
                held = max(q - p for p, q in pairwise(layout.dims[0].points))
                assert held <= n / comm.size + n / key_sort.SAMPLES + 2 * comm.size

    run_simulated(5, on_rank)
