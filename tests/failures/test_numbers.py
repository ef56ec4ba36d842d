"""NaN and infinity steer every rank alike, error states are NumPy's, and results are the same from run to run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import numpy_dist
from numpy_dist.settings import config
from numpy_dist.spmd_testing import run_simulated
from tests.failures.jobs import run

N = 30
PLACES = {"first": [0], "last": [N - 1], "middle": [N // 2], "several": [1, N // 2, N - 2]}
VALUES = {"nan": np.nan, "inf": np.inf, "-inf": -np.inf, "mixed": None, "-nan": -np.float64("nan")}


def data(place: str, value: str) -> np.ndarray:
    x = np.sin(np.arange(N))
    positions = PLACES[place]
    x[positions] = [np.nan, np.inf, -np.inf][: len(positions)] if VALUES[value] is None else VALUES[value]
    return x


def branches(x: Any) -> list[Any]:
    """What control flow would be taken from: the same objects on every rank, or ranks go different ways."""
    with np.errstate(all="ignore"):
        found: list[Any] = [x.max(), x.min(), x.sum(), x.mean(), x.std(), np.prod(x), np.ptp(x)]
        found += [np.nanmax(x), np.nanmin(x), np.nansum(x), np.linalg.norm(x), np.dot(x, x), x[0], x[-1]]
        found += [np.argmax(x), np.argmin(x), np.count_nonzero(x != x)]
        found += [bool((x > 0).any()), bool((x == x).all()), bool(np.isfinite(x).all()), bool(x.max() > 1)]
        found += [np.allclose(x, x), np.array_equal(x, x), np.array_equal(x, x, equal_nan=True), 2.0 in x]
        steps = 0
        while abs(x).max() > 1e-3 and steps < 20:  # a NaN ends it at once, an infinity never
            x = x * 0.5
            steps += 1
        return [*found, steps]


def same(a: Any, b: Any) -> bool:
    return type(a) is type(b) and np.asarray(a).tobytes() == np.asarray(b).tobytes()


@pytest.mark.slow
@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("ranks", [2, 4])
def test_every_rank_takes_the_same_branch(ranks: int, place: str, value: str) -> None:
    def on_each_rank() -> list[Any]:
        with config(MIN_SHARD_BYTES=0, FALLBACK="silent"):
            return branches(numpy_dist.asarray(data(place, value)))

    results = run_simulated(ranks, on_each_rank)
    for other in results[1:]:
        assert all(map(same, results[0], other)), (results[0], other)
    expected = branches(data(place, value))
    for ours, numpys in zip(results[0], expected, strict=True):
        assert type(ours) is type(numpys) and np.allclose(ours, numpys, rtol=1e-12, equal_nan=True), (ours, numpys)


class Log:
    def __init__(self) -> None:
        self.lines: list[str] = []

    def write(self, text: str) -> None:
        self.lines.append(text)


def calls(x: Any) -> list[tuple[str, int]]:
    seen: list[tuple[str, int]] = []
    with np.errstate(all="call", call=lambda kind, flag: seen.append((kind, flag))):
        1 / x
        np.log(x - 1)
    return seen


def logs(x: Any) -> list[str]:
    log = Log()
    with np.errstate(all="log", call=log):
        1 / x
        np.log(x - 1)
    return log.lines


def raises(x: Any) -> list[str]:
    found = []
    works: list[Callable[[], Any]] = [lambda: 1 / x, lambda: np.log(x - 1), lambda: np.exp(x * 800), lambda: x * 5]
    for work in works:
        try:
            with np.errstate(all="raise"):
                work()
        except FloatingPointError as error:
            found.append(str(error))
    return found


@pytest.mark.parametrize("ranks", [1, 3])
@pytest.mark.parametrize("told", [calls, logs, raises])
def test_error_states_tell_every_rank_what_numpy_tells(told: Callable[[Any], Any], ranks: int) -> None:
    x = np.full(N, 1.5)
    x[-2] = 0.0  # on the last rank

    def on_each_rank() -> Any:
        with config(MIN_SHARD_BYTES=0):
            return told(numpy_dist.asarray(x))

    assert run_simulated(ranks, on_each_rank) == [told(x)] * ranks


def test_what_is_printed_is_printed_by_each_rank(capfd: pytest.CaptureFixture[str]) -> None:
    x = np.full(N, 1.5)
    x[-2] = 0.0

    def on_each_rank() -> None:
        with config(MIN_SHARD_BYTES=0), np.errstate(all="print"):
            1 / numpy_dist.asarray(x)

    with np.errstate(all="print"):
        1 / x
    expected = capfd.readouterr()
    assert expected.err == "Warning: divide by zero encountered in divide\n"
    run_simulated(2, on_each_rank)
    assert capfd.readouterr() == (expected.out, 2 * expected.err)


WORK = """
import hashlib
import numpy as np
import numpy_dist
from numpy_dist import engine
x = numpy_dist.asarray(np.random.default_rng(1).standard_normal((700, 501)))
y = numpy_dist.random.default_rng(2).standard_normal(x.shape)
results = [x.sum(), x.mean(axis=0), x.std(axis=1), np.dot(x.ravel(), y.ravel()), x @ y.T, np.cumsum(x, axis=0)]
results += [np.linalg.norm(x), (np.exp(x) / y).sum(axis=1), np.hypot(x, y)[:5].prod(), np.sort(x, axis=None)]
for _ in range(5):
    x[1:-1] = 0.3 * (x[:-2] + x[2:] + y[1:-1])
results += [x, x.var()]
digest = hashlib.sha256()
for result in results:
    digest.update(np.ascontiguousarray(result.gather() if engine.is_handle(result) else result).tobytes())
if engine.runtime().rank == 0:
    print(digest.hexdigest())
"""


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_the_same_bits_from_run_to_run(tmp_path: Path) -> None:
    """Whatever the number of threads, and whether loops are compiled or interpreted."""
    texts = []
    for settings in ({}, {"NUM_THREADS": "2", "COMPILE": "first"}, {"BACKEND": "numpy"}):
        lines = "".join(f"os.environ['NUMPY_DIST_{name}'] = {value!r}\n" for name, value in settings.items())
        job = run("mpiexec", f"import os\nos.environ['NUMPY_DIST_FALLBACK'] = 'silent'\n{lines}{WORK}", tmp_path, 3)
        assert (job.code, job.errors) == (0, ""), job
        texts.append(job.output)
    assert len(texts[0]) == 65 and len(set(texts)) == 1
