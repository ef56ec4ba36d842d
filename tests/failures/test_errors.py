"""Errors that the data of one rank cause are raised on every rank, as NumPy raises them; the arrays stay usable."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import numpy_dist
from numpy_dist import engine
from numpy_dist.settings import config
from numpy_dist.spmd_testing import run_simulated
from tests.failures.jobs import run

N = 24
INTEGERS, FLOATS = np.arange(N), np.arange(1.0, N + 1)


def with_bad(bad: Any, good: Any = 1, dtype: Any = None) -> np.ndarray:
    """An array in which the last element but one, of the last rank, is bad."""
    array = np.full(N, good, np.result_type(type(good), type(bad)) if dtype is None else dtype)
    array[-2] = bad
    return array


def raising(function: Callable[[], Any]) -> Any:
    with np.errstate(all="raise"):
        return function()


def strict(function: Callable[[], Any]) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return function()


def generator(make: Callable[..., Any]) -> Any:
    return (np if make is np.asarray else numpy_dist).random.default_rng(1)


SINGULAR = np.stack([np.eye(3)] * N)
SINGULAR[-2] = 0
INDEFINITE = np.stack([np.eye(3)] * N)
INDEFINITE[-2] *= -1
BEYOND = with_bad(99)
TEXT = np.array([str(i) for i in range(N)])
TEXT[-2] = "x"
DATES = np.array(["2020-01-06"] * N, "M8[D]")
DATES[-2] = "2020-01-04"

# Each is called with what makes an array of an ndarray: `numpy.asarray`, or ours.
CASES: dict[str, Callable[[Any], Any]] = {
    "index": lambda a: a(FLOATS)[a(BEYOND)],
    "take": lambda a: np.take(a(FLOATS), a(BEYOND)),
    "take_along_axis": lambda a: np.take_along_axis(a(FLOATS), a(BEYOND), 0),
    "put": lambda a: np.put(a(FLOATS), a(BEYOND), 1),
    "setitem": lambda a: a(FLOATS).__setitem__(a(BEYOND), 1.0),
    "delete": lambda a: np.delete(a(FLOATS), BEYOND),
    "add.at": lambda a: np.add.at(a(FLOATS), a(BEYOND), 1.0),
    "add.reduceat": lambda a: np.add.reduceat(a(FLOATS), a(BEYOND)),
    "bincount": lambda a: np.bincount(a(with_bad(-1))),
    "choose": lambda a: np.choose(a(with_bad(9)), [a(INTEGERS), a(INTEGERS)]),
    "repeat": lambda a: np.repeat(a(FLOATS), a(with_bad(-1))),
    "unravel_index": lambda a: np.unravel_index(a(BEYOND), (4, 6)),
    "ravel_multi_index": lambda a: np.ravel_multi_index((a(BEYOND), a(INTEGERS)), (4, 60)),
    "inv": lambda a: np.linalg.inv(a(SINGULAR)),
    "solve": lambda a: np.linalg.solve(a(SINGULAR), a(np.ones((N, 3, 1)))),
    "cholesky": lambda a: np.linalg.cholesky(a(INDEFINITE)),
    "eig": lambda a: np.linalg.eig(a(np.where(SINGULAR == 0, np.nan, SINGULAR))),
    "text to int": lambda a: a(TEXT).astype(int),
    "text to float": lambda a: a(TEXT).astype(float),
    "text to date": lambda a: a(with_bad("nonsense", "2020-01-01", "U10")).astype("M8[D]"),
    "text to bytes": lambda a: a(with_bad("\u1234", "a", "U2")).astype("S2"),
    "bytes to text": lambda a: a(with_bad(b"\xff", b"a", "S2")).astype("U2"),
    "assigned text": lambda a: a(INTEGERS).__setitem__(slice(None), a(TEXT)),
    "copyto": lambda a: np.copyto(a(INTEGERS), a(TEXT), casting="unsafe"),
    "power": lambda a: a(INTEGERS) ** a(with_bad(-1)),
    "strings.index": lambda a: np.strings.index(a(TEXT), "1"),
    "strings.decode": lambda a: np.strings.decode(a(with_bad(b"\xff", b"a", "S2")), "utf8"),
    "busday_offset": lambda a: np.busday_offset(a(DATES), 1),
    "mask": lambda a: a(FLOATS)[a(np.ones(N - 1, bool))],
    "values for a mask": lambda a: a(FLOATS).__setitem__(a(FLOATS) > 3, a(FLOATS)[:3]),
    "place": lambda a: np.place(a(FLOATS), a(FLOATS) > 3, []),
    "histogram": lambda a: np.histogram(a(with_bad(np.nan))),
    "histogram bins": lambda a: np.histogram(a(FLOATS), a(with_bad(-5.0))),
    "quantile": lambda a: np.quantile(a(FLOATS), a(with_bad(1.5, 0.5))),
    "normal": lambda a: generator(a).normal(0, a(with_bad(-1.0))),
    "integers": lambda a: generator(a).integers(a(with_bad(5)), 3),
    "choice": lambda a: generator(a).choice(N, p=a(with_bad(-1.0, 5.0))),
    "divide": lambda a: raising(lambda: 1 / a(with_bad(0.0))),
    "log": lambda a: raising(lambda: np.log(a(with_bad(-1.0)))),
    "cumsum": lambda a: raising(lambda: np.cumsum(a(np.where(INTEGERS % 13 == 9, 1e308, 0.9e308)))),
    "nan to int": lambda a: raising(lambda: a(with_bad(np.nan)).astype(int)),
    "floor_divide": lambda a: raising(lambda: np.floor_divide(a(INTEGERS), a(with_bad(0)))),
    "a warning": lambda a: strict(lambda: 1 / a(with_bad(0.0))),
    "vectorize": lambda a: np.vectorize(lambda v: TEXT[: N - 2][v])(a(INTEGERS)),
    "apply_along_axis": lambda a: np.apply_along_axis(
        lambda v: TEXT[: N - 2][v[0]] != v[0], 1, a(INTEGERS.reshape(N, 1))
    ),
    "truth": lambda a: bool(a(FLOATS)),
}


def outcome(function: Callable[[Any], Any], make: Callable[..., Any]) -> tuple[str, str]:
    try:
        function(make)
    except Exception as error:
        return type(error).__name__, str(error)
    return "no error", ""


@pytest.mark.parametrize("name", CASES)
def test_an_error_of_one_rank_is_every_ranks(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = outcome(CASES[name], np.asarray)

    def on_each_rank() -> tuple[tuple[str, str], float]:
        warnings.simplefilter("ignore")
        with config(MIN_SHARD_BYTES=0, FALLBACK="silent"):
            before = numpy_dist.asarray(FLOATS) + 1
            found = outcome(CASES[name], numpy_dist.asarray)
            return found, float((before + numpy_dist.asarray(FLOATS)).sum())

    assert expected[0] != "no error"
    for ranks in (1, 3):
        assert run_simulated(ranks, on_each_rank) == [(expected, float((2 * FLOATS + 1).sum()))] * ranks


def test_the_target_of_a_failed_statement_stays_usable() -> None:
    def on_each_rank() -> list[int]:
        with config(MIN_SHARD_BYTES=0):
            x = numpy_dist.asarray(INTEGERS)
            with pytest.raises(ValueError, match="negative integer powers"):
                np.power(x, numpy_dist.asarray(with_bad(-1)), out=x)
            x[...] = 5
            x += 1
            return x.gather().tolist()

    assert run_simulated(3, on_each_rank) == [[6] * N] * 3


def test_agreement_costs_no_further_collective() -> None:
    def on_each_rank() -> dict[str, int]:
        with config(MIN_SHARD_BYTES=0):
            x, y = numpy_dist.asarray(FLOATS), numpy_dist.asarray(INTEGERS)
            z = numpy_dist.asarray(np.ones(N, int))
            counters, found = engine.runtime().comm.counters, {}
            works: dict[str, Callable[[], Any]] = {
                "stencil": lambda: engine.force(x[1:] + x[:-1]),
                "sum": lambda: float(x.sum()),
                "mask": lambda: x[x > 3],
                "masked assignment": lambda: x.__setitem__(x > 3, 0.0),
                "argmax": lambda: np.argmax(x),
                "square": lambda: engine.force(y**2),
                "cast": lambda: engine.force(y.astype(float)),
                "divide": lambda: engine.force(y // z),
                "powers": lambda: engine.force(y**z),
            }
            for name, work in works.items():
                counters.reset()
                work()
                found[name] = counters.collectives
            return found

    free = dict.fromkeys(("stencil", "masked assignment", "square", "cast", "divide"), 0)
    assert run_simulated(3, on_each_rank)[0] == {**free, **dict.fromkeys(("sum", "mask", "argmax", "powers"), 1)}


REAL = """
import sys, warnings
sys.path.insert(0, {root!r})
import numpy as np
import numpy_dist
from tests.failures.test_errors import CASES, FLOATS, INTEGERS, outcome
from numpy_dist import engine
warnings.simplefilter("ignore")
numpy_dist.config.MIN_SHARD_BYTES, numpy_dist.config.FALLBACK = 0, "silent"
floats, integers = FLOATS.copy(), INTEGERS.copy()
for name, case in CASES.items():
    expected = outcome(case, np.asarray)
    FLOATS[:], INTEGERS[:] = floats, integers  # NumPy's put writes what is before the wrong index
    before = numpy_dist.asarray(FLOATS) + 1
    found = outcome(case, numpy_dist.asarray)
    total = float((before + numpy_dist.asarray(FLOATS)).sum())
    for other in engine.runtime().comm.allgather((name, found, total)):
        assert other == (name, expected, 2 * FLOATS.sum() + len(FLOATS)), (name, expected, other)
print("<all>")
"""


@pytest.mark.slow
def test_the_same_on_real_ranks(tmp_path: Path) -> None:
    job = run("mpiexec", REAL.format(root=str(Path(__file__).parents[2])), tmp_path, 3)
    assert (job.code, job.output.count("<all>"), job.errors) == (0, 3, ""), job.text
