"""Functions that NumPy computes on parts of a block, on all threads of a rank."""

from __future__ import annotations

import _thread
import os
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
from typing import Any

import numpy as np
import pytest

import numpy_dist
from numpy_dist import config, engine
from numpy_dist.dispatch.functions import indexing_generation, statistics_quantiles
from numpy_dist.dispatch.patterns import search, thread_take, threads
from numpy_dist.spmd_testing import run_simulated

NUMBERS = np.random.default_rng(0).standard_normal((41, 60))
POINTS = np.sort(NUMBERS[0])
PLACES = np.random.default_rng(2).integers(-60, 60, (41, 60))
CALLS = {
    "interp": lambda x: np.interp(x, POINTS, NUMBERS[1]),
    "interp of complex numbers": lambda x: np.interp(x, POINTS, NUMBERS[1] * 1j),
    "searchsorted": lambda x: np.searchsorted(POINTS, x, "right"),
    "digitize": lambda x: np.digitize(x, POINTS),
    "rows in order": lambda x: np.sort(x),
    "columns in order": lambda x: np.sort(x, 0),
    "columns in Fortran order": lambda x: np.sort(x.T, 1),
    "argsort": lambda x: np.argsort(x, 1, kind="stable"),
    "elements at positions": lambda x: x.reshape(-1)[PLACES],
    "rows at positions": lambda x: x[PLACES[0] % 41],
    "elements of rows and columns": lambda x: x[PLACES % 41, PLACES],
    "elements of columns": lambda x: x[np.arange(41)[:, None], PLACES[0, :9][None]],
    "take": lambda x: np.take(x, PLACES.astype(np.int32)),
    "take of columns": lambda x: np.take(x, PLACES[0], 1),
    "take around the end": lambda x: np.take(x, PLACES * 99, mode="wrap"),
    "take_along_axis": lambda x: np.take_along_axis(x, PLACES % 41, 0),
    "places of a line": lambda x: np.nonzero(x.reshape(-1) > 0.3)[0],
    "places of rows": lambda x: np.stack(np.nonzero(x > 0.3)),
    "places of few": lambda x: np.flatnonzero(x == x[40, 59]),
    "medians of rows": lambda x: np.median(x, 1),
    "medians of columns": lambda x: np.median(x, 0),
    "quantiles of rows": lambda x: np.quantile(x, [0.1, 0.7, 0.8], axis=1),
    "quantiles of columns": lambda x: np.quantile(x, 0.3, axis=0, keepdims=True),
    "searchsorted in a sorted array": lambda x: np.searchsorted(np.sort(x.reshape(-1)), x.reshape(-1)),
    "fft": lambda x: np.fft.fft(x),
    "fft of columns": lambda x: np.fft.fft(x, axis=0),
    "rfft of more elements": lambda x: np.fft.rfft(x, 100, 0),
    "irfft": lambda x: np.fft.irfft(x[:, :9] + 1j),
    "fftn": lambda x: np.fft.fftn(x),
}
LARGE = np.random.default_rng(1).standard_normal((600, 256))  # of which transforms are done in pieces
LONGER = {
    "irfft": np.fft.irfft,
    "irfft of columns": lambda x: np.fft.irfft(x, axis=0),
    "fft of more elements": lambda x: np.fft.fft(x, 700),
    "fft of longer columns": lambda x: np.fft.fft(x, 1300, 0),
    "rfft of more elements": lambda x: np.fft.rfft(x.real, 700),
    "fft of a part": lambda x: np.fft.fft(x, 100),
}
THRESHOLDS = [
    (threads, "FEW"),
    (thread_take, "FEW"),
    (search, "_EACH"),
    (indexing_generation, "_FEW"),
    (indexing_generation, "_PIECE"),
    (statistics_quantiles, "FEW"),
]


@pytest.fixture
def three_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name in THRESHOLDS:
        monkeypatch.setattr(module, name, 8)
    monkeypatch.setattr(engine.runtime().backend, "threads", 3, raising=False)


@pytest.mark.parametrize("call", LONGER.values(), ids=LONGER)
@pytest.mark.parametrize("ranks", [1, 2])
def test_lines_may_become_longer(call: Any, ranks: int) -> None:
    values = LARGE + 0.5j * LARGE[::-1]
    expected = call(values)

    def on_each_rank() -> None:
        with config(MIN_SHARD_BYTES=0):
            found = call(numpy_dist.asarray(values.copy()))
            assert found.dtype == expected.dtype and found.strides == expected.strides
            assert np.array_equal(found.gather(), expected)

    run_simulated(ranks, on_each_rank)


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.usefixtures("three_threads")
def test_results_have_numpys_bits(call: Any, ranks: int) -> None:
    expected = call(NUMBERS)

    def on_each_rank() -> None:
        with config(MIN_SHARD_BYTES=0):
            x = numpy_dist.asarray(NUMBERS.copy())
            engine.runtime().backend.threads = 3  # type: ignore[attr-defined]
            found = call(x)
            assert found.dtype == expected.dtype and found.strides == expected.strides
            assert np.array_equal(found.gather(), expected)

    run_simulated(ranks, on_each_rank)


@pytest.mark.parametrize("call", [pytest.param(call, id=name) for name, call in CALLS.items() if "fft" not in name])
@pytest.mark.usefixtures("three_threads")
def test_several_threads_take_part(call: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    started = []
    start = _thread.start_new_thread

    def noting(*arguments: Any) -> int:
        started.append(arguments)
        return start(*arguments)

    with config(MIN_SHARD_BYTES=0):
        x = numpy_dist.asarray(NUMBERS.copy())
        monkeypatch.setattr(_thread, "start_new_thread", noting)
        found = call(x)
        assert np.array_equal(found.gather(), call(NUMBERS))
    assert len(started) >= 2


def test_positions_that_do_not_go_together_are_told_as_numpy_does(three_threads: None) -> None:
    table = numpy_dist.asarray(NUMBERS.copy())
    with config(MIN_SHARD_BYTES=0):
        for rows, columns in ((np.arange(9), np.arange(8)), (np.zeros((1, 2), int), np.zeros((1, 5), int))):
            with pytest.raises(IndexError) as told:
                NUMBERS[rows, columns]
            with pytest.raises(IndexError, match=f"^{re.escape(str(told.value))}$"):
                table[rows, columns]
        rows, columns = np.arange(40)[:, None], np.arange(0, 60, 7)
        assert np.array_equal(table[rows, columns].gather(), NUMBERS[rows, columns])


def test_positions_out_of_bounds_are_told_as_numpy_does(three_threads: None) -> None:
    line = numpy_dist.asarray(NUMBERS[0].copy())
    wrong = PLACES + 1
    with config(MIN_SHARD_BYTES=0):
        for call in (lambda x: x[wrong], lambda x: np.take(x, wrong)):
            with pytest.raises(IndexError) as told:
                call(NUMBERS[0])
            with pytest.raises(IndexError, match=f"^{told.value}$"):
                call(line)


@pytest.mark.usefixtures("three_threads")
def test_parts_and_threads() -> None:
    seen = []

    def note(part: np.ndarray) -> np.ndarray:
        seen.append((part.shape, threading.get_ident()))
        return part[:, :1] + np.float32(1)

    block = NUMBERS.astype(np.float32)
    made = threads.in_parts(note, block, 1)
    assert np.array_equal(made, block[:, :1] + 1) and made.dtype == np.float32
    sample, *parts = sorted(seen)
    assert sample[0] == (1, 60)
    assert [shape for shape, _ in parts] == [(13, 60), (14, 60), (14, 60)]
    assert len({thread for _, thread in parts}) > 1


@pytest.mark.parametrize("shape", [(41, 60), (7, 5, 11), (3, 4, 1), (1, 30)])
@pytest.mark.parametrize("nbytes", [1, 600, 1 << 20])
@pytest.mark.usefixtures("three_threads")
def test_pieces_cover_a_block(shape: tuple[int, ...], nbytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "_PIECE", nbytes)
    block = np.random.default_rng(0).standard_normal(shape)
    for axis in range(len(shape)):
        made, sizes = np.full(shape, np.nan), []

        def running(lines: np.ndarray, results: np.ndarray, axis: int = axis, sizes: list[int] = sizes) -> None:
            sizes.append(lines.nbytes)
            np.cumsum(lines, axis, out=results)

        threads.into_pieces(running, block, axis, made)
        expected = np.cumsum(block, axis)
        assert np.array_equal(made, expected) and sum(sizes) == block.nbytes
        assert max(sizes) <= max(nbytes, 64 * shape[axis]), "what a cache holds, or a cache line of each row"
        assert nbytes > block.nbytes or len(sizes) >= block.nbytes // max(nbytes, 64 * shape[axis])
        again = block.copy()
        threads.into_pieces(running, again, axis, again)
        assert np.array_equal(again, expected)


@pytest.mark.usefixtures("three_threads")
def test_the_error_of_a_part_comes_when_all_have_ended() -> None:
    ended = []

    def fail(part: np.ndarray) -> np.ndarray:
        if part.shape[0] > 1 and part[0, 0] == NUMBERS[13, 0]:
            raise KeyError("the second part")
        ended.append(part.shape)
        return part

    with pytest.raises(KeyError, match="the second part"):
        threads.in_parts(fail, NUMBERS, 1)
    assert len(ended) == 3


@pytest.mark.usefixtures("three_threads")
def test_an_interrupt_waits_for_the_parts() -> None:
    ended = []

    def slow(part: np.ndarray) -> np.ndarray:
        if part.shape[0] > 1 and part[0, 0] != NUMBERS[0, 0]:
            time.sleep(0.2)
            ended.append(part.shape)
        elif part.shape[0] > 1:
            signal.setitimer(signal.ITIMER_REAL, 0.05)
        return part

    def interrupt(number: int, frame: object) -> None:
        raise InterruptedError("in the middle")

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with pytest.raises(InterruptedError, match="in the middle"):
            threads.in_parts(slow, NUMBERS, 1)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert len(ended) == 2


@pytest.mark.usefixtures("three_threads")
def test_threads_have_the_callers_error_state() -> None:
    with np.errstate(all="raise"), pytest.raises(FloatingPointError):
        threads.in_parts(lambda part: part / np.where(part == NUMBERS[40, 0], 0, 1), NUMBERS, 1)
    with np.errstate(all="ignore"):
        assert np.isinf(threads.in_parts(lambda part: part / np.where(part == NUMBERS[40, 0], 0, 1), NUMBERS, 1)).any()


@pytest.mark.usefixtures("three_threads")
def test_without_threads_to_be_had_the_caller_computes(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(_thread, "start_new_thread", refuse)
    assert np.array_equal(threads.in_parts(lambda part: part * 2, NUMBERS, 1), NUMBERS * 2)


def test_signals_whose_handlers_raise_at_any_point() -> None:
    script = """
    import random, signal, time
    import numpy as np
    import numpy_dist as nd

    class Alarm(Exception):
        pass

    def interrupt(number, frame):
        raise Alarm

    values = np.random.default_rng(0).random((400, 400))
    x, expected = nd.asarray(values), np.sort(values, 1)
    takes = 1.0
    for _ in range(10):  # of which a busy machine interrupts some
        began = time.perf_counter()
        np.sort(x, axis=1)
        takes = min(takes, time.perf_counter() - began)
    signal.signal(signal.SIGALRM, interrupt)
    random.seed(1)
    met = 0
    for _ in range(1500):
        try:
            signal.setitimer(signal.ITIMER_REAL, random.uniform(1e-5, takes))
            np.sort(x, axis=1)
            signal.setitimer(signal.ITIMER_REAL, 0)
        except Alarm:
            met += 1
    assert met > 20, met
    assert np.array_equal(np.sort(x, axis=1).gather(), expected)
    """
    _run_script(script)


def test_handlers_of_the_end_may_sort() -> None:
    script = """
    import atexit
    import numpy as np
    import numpy_dist as nd

    values = np.random.default_rng(0).random((400, 400))
    x = nd.asarray(values)
    atexit.register(lambda: print(np.array_equal(np.sort(x, axis=1).gather(), np.sort(values, 1))))
    """
    assert _run_script(script).split() == ["True"]


def _run_script(script: str) -> str:
    """What a script prints that runs in a process of its own, with several threads."""
    command = [sys.executable, "-c", textwrap.dedent(script)]
    environment = {**os.environ, "NUMPY_DIST_NUM_THREADS": "3"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout
