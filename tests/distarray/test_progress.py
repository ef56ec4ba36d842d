"""Progress bars: what they show of a program, when they appear, and that they are silent where nobody looks."""

from __future__ import annotations

import fcntl
import io
import os
import select
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import numpy_dist
from numpy_dist import engine, progress_bars
from numpy_dist.engine.data import activities
from numpy_dist.progress_bars import Drawn, Sight, look_at

SORTING = """import time, numpy_dist
from numpy_dist import engine, progress_bars

progress_bars._PATIENCE = 0.0
x = numpy_dist.ones(100_000)
with engine.activity("sorting", 1 << 30):
    {what}
"""
PATIENCE = 60.0
LOOP = Sight(None, "array program", " statements", 0, None, 0)


class Bar:
    """What tqdm would be asked for."""

    def __init__(self, **options: Any) -> None:
        self.options, self.n, self.postfix, self.closed = options, options["initial"], "", False

    def update(self, count: int) -> bool:
        self.n += count
        return bool(count)

    def refresh(self) -> None:
        pass

    def set_postfix_str(self, text: str, refresh: bool) -> None:
        self.postfix = text

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def bars() -> list[Bar]:
    return []


@pytest.fixture
def drawn(bars: list[Bar]) -> Drawn:
    def make(**options: Any) -> Bar:
        bars.append(Bar(**options))
        return bars[-1]

    return Drawn(make)


def test_what_is_short_has_no_bar(drawn: Drawn, bars: list[Bar]) -> None:
    for second in range(5):
        drawn.update(Sight(object(), "sorting", "B", 0, 100, 0), float(second))
    assert not bars


def test_a_file_has_a_bar_of_its_bytes(drawn: Drawn, bars: list[Bar]) -> None:
    activity = object()
    for second, done in enumerate([0, 20, 50, 90]):
        drawn.update(Sight(activity, "writing x.npy", "B", done, 100, 0), float(second))
    (bar,) = bars
    assert bar.options == {"desc": "writing x.npy", "total": 100, "unit": "B", "initial": 20}
    assert bar.n == 90 and not bar.closed
    drawn.update(LOOP, 4.0)
    assert bar.closed


def test_a_loop_counts_its_statements(drawn: Drawn, bars: list[Bar]) -> None:
    for second in range(4):
        drawn.update(LOOP._replace(done=100 * second, sent=second * 7_000_000), float(second))
    (bar,) = bars
    assert bar.n == 300 and bar.options["total"] is None
    assert bar.postfix == "21 MB sent"


def test_a_program_that_records_nothing_has_no_bar(drawn: Drawn, bars: list[Bar]) -> None:
    for second in range(9):
        drawn.update(LOOP._replace(done=5), float(second))
    assert not bars


def test_what_only_ends_shows_the_time(drawn: Drawn, bars: list[Bar]) -> None:
    activity = object()
    for second in range(3):
        drawn.update(Sight(activity, "gathering 800 MB", "", 0, None, 0), float(second))
    assert bars[0].options["bar_format"] == "{desc}: {elapsed}"


@pytest.mark.spmd
def test_ranks_tell_what_they_are_busy_with(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another thread looks as each activity ends; how often it would come to see one depends on the machine."""
    seen: dict[str, tuple[int, int | None]] = {}
    runtime = engine.runtime()
    x = numpy_dist.asarray(np.arange(9_000_000.0))  # three ranks have 24 MB each
    going_on = activities._going_on

    def look() -> None:
        sight = look_at(runtime)
        seen[sight.what] = sight.done, sight.total

    @contextmanager
    def looked_at(*what: Any) -> Iterator[None]:
        with going_on(*what):
            yield
            thread = threading.Thread(target=look)
            thread.start()
            thread.join()

    monkeypatch.setattr(activities, "_going_on", looked_at)
    path = runtime.comm.bcast(tmp_path_factory.getbasetemp() / "progress.npy")
    np.save(path, x)
    numpy_dist.load(path)
    np.sort(x[::-1].copy())
    np.gradient(x).gather()
    for _ in range(2):  # two barriers: nobody removes what others still write
        runtime.comm.barrier()
    assert {"writing progress.npy", "reading progress.npy", "sorting 72 MB"} <= set(seen)
    assert seen["writing progress.npy"][1] == x.local.nbytes
    assert seen["writing progress.npy"][0] > 0
    if runtime.size > 1:
        assert "gathering 72 MB" in seen
    assert not runtime.activities


def test_small_work_is_no_activity() -> None:
    with engine.activity("sorting", 1000):
        assert engine.runtime().activities == []


def test_an_error_ends_an_activity() -> None:
    with pytest.raises(KeyError), engine.activity("sorting", 1 << 30):
        raise KeyError
    assert engine.runtime().activities == []


def test_bars_of_tqdm(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("tqdm")
    monkeypatch.setattr(progress_bars, "_PATIENCE", 0.0)
    monkeypatch.setattr(progress_bars, "_LOOK", 0.01)
    stream = io.StringIO()

    def until(shown: str) -> None:
        end = time.monotonic() + PATIENCE
        while shown not in stream.getvalue():
            assert time.monotonic() < end, stream.getvalue()
            time.sleep(0.01)

    with numpy_dist.progress(stream):
        with engine.activity("gathering", 1 << 30):
            until("gathering 1,074 MB: 00:00")
        with engine.activity("reading x.npy", 1 << 30, stepwise=True):
            until("reading x.npy:   0%")
            for _ in range(10):
                engine.progressed(1 << 26)
            until("| 671M/1.07G [")
    text = stream.getvalue()
    assert text.endswith("\r") and not any(t.name == "numpy_dist progress" for t in threading.enumerate())


def test_it_is_silent_where_nobody_looks(tmp_path: Path) -> None:
    pytest.importorskip("tqdm")
    script = tmp_path / "script.py"
    script.write_text(SORTING.format(what="time.sleep(1.0)"))
    environment = os.environ | {"NUMPY_DIST_PROGRESS": "on"}
    done = subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_terminal_shows_the_bar_of_a_whole_script(tmp_path: Path) -> None:
    pytest.importorskip("tqdm")
    script = tmp_path / "script.py"
    script.write_text(SORTING.format(what="input()"))
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    environment = os.environ | {"NUMPY_DIST_PROGRESS": "on"}
    pipe = subprocess.PIPE
    process = subprocess.Popen(
        [sys.executable, script], env=environment, stdin=pipe, stderr=theirs, stdout=subprocess.DEVNULL
    )
    os.close(theirs)
    assert process.stdin is not None
    text = b""
    try:
        while select.select([ours], [], [], PATIENCE)[0]:
            text += os.read(ours, 4096)
            if b"sorting 1,074 MB" in text and not process.stdin.closed:
                process.stdin.write(b"\n")  # which ends the activity
                process.stdin.close()
    except OSError:  # how Linux tells that the other end is closed
        assert process.wait(PATIENCE) == 0
    finally:
        os.close(ours)
        process.kill()
        process.wait()
    assert process.returncode == 0
    assert b"sorting 1,074 MB" in text and text.endswith(b"\r")


def test_a_loop_is_no_file() -> None:
    with pytest.raises(TypeError, match=r"write `with numpy_dist.progress\(\):` around a loop"):
        numpy_dist.progress(range(3))
