"""`repr` and `str` are NumPy's texts, and move only the edges of a large array; its `repr` names the class."""

from __future__ import annotations

import numpy as np
import pytest

import numpy_dist as nd
from numpy_dist import engine
from numpy_dist.spmd_testing import run_simulated

rng = np.random.default_rng(2)
ARRAYS = {
    "small": np.arange(6.0).reshape(2, 3),
    "0-d": np.array(2.5),
    "empty": np.zeros((0, 3)),
    "empty 1-D": np.zeros(0, "i4"),
    "many": np.arange(5000),
    "many floats": rng.normal(size=3000) * 10.0 ** rng.integers(-3, 4, 3000),
    "wide": rng.normal(size=(3, 700)),
    "tall": rng.integers(0, 2**40, (900, 2)),
    "square": rng.normal(size=(60, 70)),
    "cube": rng.integers(-9, 9, (12, 13, 14)),
    "just 7": np.arange(7 * 300.0).reshape(7, 300),
    "just 6": np.arange(6 * 300.0).reshape(6, 300),
    "f4": rng.normal(size=(40, 40)).astype("f4"),
    "i1": rng.integers(-9, 9, (40, 40)).astype("i1"),
    "bool": rng.random((40, 40)) > 0.5,
    "complex": rng.normal(size=(40, 40)) * 1j,
    "strings": np.array([f"w{i}" * (i % 5) for i in range(2000)]),
    "dates": np.arange(2000).astype("M8[D]"),
    "structured": np.zeros(2000, [("x", "i4"), ("name", "f8", 2)]),
    "nan": np.where(np.arange(2000) % 3 == 0, np.nan, 1.5),
    "transposed": rng.normal(size=(60, 70)).T,
    "5-D": np.arange(8**4).reshape(8, 8, 1, 8, 8),
}
OPTIONS = [
    {},
    {"threshold": 5},
    {"edgeitems": 1, "threshold": 3},
    {"linewidth": 40},
    {"precision": 2, "suppress": True},
    {"legacy": "1.13"},
    {"edgeitems": 0},
]


class Named(np.ndarray):
    """A subclass of the same name, whose repr NumPy begins with it."""


Named.__name__ = "DistArray"


def test_the_repr_of_a_large_array_says_what_it_is():
    x = nd.zeros(100_000)
    assert repr(x) == repr(np.zeros(100_000).view(Named)) and repr(x).startswith("DistArray([0., 0., 0., ..., ")
    assert str(x) == "[0. 0. 0. ... 0. 0. 0.]" and f"{x}" == str(x)
    assert repr(x[:3]) == "array([0., 0., 0.])"  # as in doctests
    assert repr(nd.zeros(2000)).startswith("array(")  # on every rank


@pytest.mark.slow
@pytest.mark.parametrize("name", ARRAYS)
def test_text_is_numpys(name):
    a = ARRAYS[name]

    def named(options):
        cut = a.size > options.get("threshold", 1000) and options.get("edgeitems", 3)
        return a.view(Named) if cut and engine.is_sharded(nd.asarray(a)) else a

    def body(n):
        with nd.config(MIN_SHARD_BYTES=n, FALLBACK="error"):
            x = nd.asarray(a)
            for options in OPTIONS:
                with np.printoptions(**options):
                    assert repr(x) == repr(named(options)), options
                    assert str(x) == str(a), options
                    if options:
                        continue
                    assert np.array2string(x, separator="; ") == np.array2string(a, separator="; ")
                    assert np.array2string(x, threshold=10, edgeitems=2) == np.array2string(
                        a, threshold=10, edgeitems=2
                    )
                    assert np.array_repr(x, 50) == np.array_repr(named({}), 50)
                    assert np.array_str(x, precision=3) == np.array_str(a, precision=3)

    run_simulated(2, body, 0)
    run_simulated(1, body, 1 << 40)


def test_only_the_edges_move():
    def body():
        x = nd.zeros((3000, 3000))
        y = x[1:, ::-1] + 1
        before = engine.counters().gathered_bytes
        repr(y), str(x)
        assert 0 < engine.counters().gathered_bytes - before < 10_000

    run_simulated(2, body)


def test_everything_is_printed_if_that_is_wanted():
    import sys

    with nd.config(MIN_SHARD_BYTES=0), np.printoptions(threshold=sys.maxsize):
        assert str(nd.arange(2000.0)) == str(np.arange(2000.0))


def test_override_repr():
    with np.printoptions(override_repr=lambda a: f"<{a.shape}>"):
        assert repr(nd.zeros(3)) == "<(3,)>" and repr(nd.zeros(10**6)) == "<(1000000,)>"
