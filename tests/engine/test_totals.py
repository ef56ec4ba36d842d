"""Arrays of one process are reduced to scalars at once, with the engine's bits, and not before what is pending."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import numpy_dist as nd
from numpy_dist import config, engine
from numpy_dist.engine.data import totals
from numpy_dist.spmd_testing import run_simulated

FUNCTIONS = [np.sum, np.max, np.min, np.any, np.all, np.mean, np.count_nonzero, np.prod]


def _values(kind: str, shape: tuple[int, ...]) -> np.ndarray:
    rng = np.random.default_rng(5)
    values = rng.uniform(-9, 9, shape) * 10.0 ** rng.integers(-6, 6, shape)
    if kind in "fd":
        values.reshape(-1)[:9] = [0, -0.0, 0, 1, -0.0, 0, 0, 0, 0][: values.size]
    return values.astype(kind)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["d", "f", "l", "B", "h", "?"])
def test_totals_have_the_engines_bits(kind: str) -> None:
    shapes = [(1,), (7,), (2047,), (2048,), (2049,), (50, 80), (3, 7, 500), (40_000,), (0,)]

    def run() -> list[Any]:
        found = []
        for limit in (1, 0):
            made = []
            with config(MIN_SHARD_BYTES=0, AT_ONCE=limit):
                for shape in shapes:
                    x = nd.asarray(_values(kind, shape))
                    for part in (x, x[1:], x[..., ::2], x.T):
                        for function in FUNCTIONS:
                            if part.size or function not in (np.max, np.min, np.mean):
                                made.append(function(part))
                                if part.ndim < 3:
                                    made.append(function(part.diagonal() if part.ndim == 2 else part, axis=-1))
                    made += [np.add.reduce(x, axis=None, dtype=other) for other in "bid?"]
            found.append(made)
        return found

    with np.errstate(all="ignore"):
        [(at_once, recorded)] = run_simulated(1, run)
    for one, other in zip(at_once, recorded, strict=True):
        assert type(one) is type(other) and np.asarray(one).tobytes() == np.asarray(other).tobytes()


@pytest.fixture
def switched_on() -> Any:
    with config(MIN_SHARD_BYTES=0, AT_ONCE=1):
        yield


@pytest.mark.spmd(ranks=(1,))
@pytest.mark.usefixtures("switched_on")
def test_nothing_is_recorded_where_nothing_is_pending() -> None:
    x, truths = nd.asarray(np.arange(60_000.0)), nd.asarray(np.zeros(60_000, bool))
    recorded = engine.runtime().program.recorded
    assert x.sum() == 60_000 * 59_999 / 2 and np.max(x) == 59_999 and not np.any(truths)
    assert np.count_nonzero(truths) == 0
    assert x[::3].sum(axis=0) == 3 * 20_000 * 19_999 / 2 and np.trace(x.reshape(100, 600)) == 601 * 99 * 100 / 2
    assert engine.runtime().program.recorded == recorded


@pytest.mark.spmd(ranks=(1,))
@pytest.mark.usefixtures("switched_on")
def test_what_is_pending_comes_first() -> None:
    x = nd.asarray(np.zeros(60_000))
    x += 1.0
    assert x.sum() == 60_000
    x[5:7] = 4.0
    assert np.max(x) == 4
    engine.flush()
    assert np.max(x) == 4


@pytest.mark.spmd(ranks=(1,))
@pytest.mark.usefixtures("switched_on")
@pytest.mark.parametrize("place", [0, totals.PROBE - 1, totals.PROBE, -1])
def test_a_large_array_of_truth_values(place: int) -> None:
    values = np.zeros(totals.MOST + 10, bool)
    x = nd.asarray(values)
    assert not np.any(x) and not np.all(x)
    values[place] = True
    x, inverse = nd.asarray(values), nd.asarray(~values)
    assert np.any(x) and not np.all(inverse) and np.any(inverse) and np.count_nonzero(x) == 1


@pytest.mark.spmd(ranks=(1,))
@pytest.mark.usefixtures("switched_on")
def test_an_overflow_is_told_at_its_line() -> None:
    x = nd.asarray(np.full(60_000, 1e308))
    with pytest.warns(RuntimeWarning, match="overflow encountered in reduce") as caught:
        assert np.sum(x) == np.inf
    assert [warning.filename for warning in caught] == [__file__]
    with pytest.raises(FloatingPointError, match="overflow encountered in reduce"), np.errstate(over="raise"):
        np.sum(x)
