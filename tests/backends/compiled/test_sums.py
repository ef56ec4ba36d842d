"""Native sums of floats have NumPy's bits at every length, of every value."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from numpy_dist.backends.base import ReduceStep, Step, Temp
from numpy_dist.backends.compiled import form
from numpy_dist.backends.compiled.backend import Compiled
from numpy_dist.backends.compiled.pairwise import adds_pairwise, pairwise_sum, start_of_few
from numpy_dist.backends.summation import CHUNK
from numpy_dist.ir.ops import op_of

from .kernels import call, compiled
from .loops import ALL_EVENTS, check, values

TEXT = """
from numba import {number}
from numpy_dist.backends.compiled.memory import load_i8, load_{kind}, put_{kind}
from numpy_dist.backends.compiled.sums import {place}_sum_{kind}

def kernel(block, first, last):
    x, out, n = load_i8(block, 0), load_i8(block, 1), load_i8(block, 2)
    few = load_{kind}(block + 24, 0)
    for row in range(first, last):
        put_{kind}(out, row, {place}_sum_{kind}(x + row * n * {size}, n, few))
    return 0
"""


@pytest.mark.parametrize("place", ["near", "far"])
@pytest.mark.parametrize("kind", ["f4", "f8"])
def test_every_length(kind: str, place: str) -> None:
    dtype = np.dtype(kind)
    address = compiled(TEXT.format(kind=kind, number=dtype.name, place=place, size=dtype.itemsize))
    few = np.zeros(1, np.int64)
    few.view(dtype)[0] = start_of_few(dtype)
    rng = np.random.default_rng(3)
    for n in (*range(1, 600), 1000, 1999, 2000, 2001, 2040, CHUNK - 1, CHUNK, 5000):
        x = (rng.standard_normal((4, n)) * 10.0 ** rng.integers(-6, 6, (4, n))).astype(dtype)
        x[1] = -0.0
        x[2, :: rng.integers(1, 9)] = -0.0
        x[3, rng.integers(n)] = [np.inf, -np.inf, 0.0, np.finfo(dtype).smallest_subnormal][n % 4]
        out = np.empty(4, dtype)
        call(address, x, out, n, int(few[0]), last=4)
        expected = np.add.reduce(x, axis=1, initial=dtype.type(-0.0))
        assert out.tobytes() == expected.tobytes(), n
        if n < 300:
            assert pairwise_sum(x[0]) == expected[0]


def test_this_numpy_adds_in_the_order_that_kernels_know() -> None:
    assert adds_pairwise(np.dtype("f4")) and adds_pairwise(np.dtype("f8"))


def test_another_order_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    adds_pairwise.cache_clear()
    monkeypatch.setattr(pairwise_sum, "__code__", (lambda x: sum(x.tolist(), 0.0)).__code__)
    assert not adds_pairwise(np.dtype("f8"))
    adds_pairwise.cache_clear()


@pytest.fixture(params=[True, False], ids=["native", "called"])
def native(request, monkeypatch: pytest.MonkeyPatch) -> Iterator[bool]:
    """Whether kernels add themselves, or have NumPy's loop called."""
    monkeypatch.setattr(form, "adds_pairwise", lambda dtype: request.param)
    yield request.param


def _sums(kind: str, shape: tuple[int, ...], axes: tuple[int, ...], change):
    """A sum of an array, and one of what the loop computes."""

    def build(rng):
        x = change(values(rng, kind, int(np.prod(shape))).reshape(shape))
        partials = [np.zeros([1 if a in axes else n for a, n in enumerate(shape)], kind) for _ in range(2)]
        temp = Temp(0, x.dtype)
        steps = [
            Step(op_of(np.negative), (x,), (temp,), None, {}, 0),
            ReduceStep(op_of(np.add), x, partials[0], axes, None, 1),
            ReduceStep(op_of(np.add), temp, partials[1], axes, None, 2),
        ]
        return shape, steps, [*partials, x]

    return build


SPACES = [((1,), (0,)), ((5,), (0,)), ((CHUNK * 3 + 5,), (0,)), ((700, 4), (1,)), ((50, 300), (1,)), ((3, 5000), (1,))]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["f", "d"])
@pytest.mark.parametrize("shape,axes", SPACES, ids=str)
def test_special_values(backend: Compiled, native: bool, kind: str, shape: tuple[int, ...], axes: tuple) -> None:
    def nans(x):  # of both signs, with and without payload: which one remains is NumPy's choice
        bits = x.reshape(-1).view(f"u{x.dtype.itemsize}")
        places = np.flatnonzero(np.isnan(x.reshape(-1)))
        bits[places] |= (places % 1000).astype(bits.dtype)
        x.reshape(-1)[places[::2]] *= -1
        return x

    def zeros(x):
        return np.full_like(x, -0.0)

    for change in (nans, zeros, np.abs, np.nan_to_num):
        check(backend, _sums(kind, shape, axes, change))
        check(backend, _sums(kind, shape, axes, change), watched=ALL_EVENTS)
