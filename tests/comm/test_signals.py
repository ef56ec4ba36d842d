"""Signals that come to one rank, or to each at another place: all ranks handle them at the same place, or none does."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Iterator
from types import FrameType
from typing import Any

import numpy as np
import pytest

import numpy_dist
from numpy_dist import engine
from numpy_dist.comm import detect
from numpy_dist.comm.supervision import signals
from numpy_dist.engine.executing.part import Part
from numpy_dist.files import writing

pytestmark = pytest.mark.spmd(ranks=(2, 3))

NUMBER = signal.SIGUSR2


class Planted(BaseException):
    """What a handler raises, as that of SIGINT does."""


@pytest.fixture
def comm() -> Any:
    found = engine.runtime().comm
    if found.size == 1:
        pytest.skip("one rank has nobody to agree with")
    numpy_dist.asarray(np.arange(4.0)).gather()
    return found


@pytest.fixture(autouse=True)
def handler(comm: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(signals, "PATIENCE", 60.0)  # the other ranks of a busy machine come late

    def raises(number: int, frame: FrameType | None) -> None:
        raise Planted

    before = signal.signal(NUMBER, raises)
    assert float(numpy_dist.asarray(np.arange(9.0)).max()) == 8.0  # what is executed takes note of the handler
    yield
    signal.signal(NUMBER, before)


def _sent_in_a_loop(patch: pytest.MonkeyPatch, sends: bool) -> list[int]:
    """Let loops be interrupted, whether their kernels are there already or not; how many have run."""
    runs: list[int] = []
    run = Part.run

    def interrupted(self: Any, work: Any) -> Any:
        if sends and not runs:
            signal.raise_signal(NUMBER)
        runs.append(1)
        return run(self, work)

    patch.setattr(Part, "run", interrupted)
    return runs


def _all_alike(comm: Any, value: Any) -> bool:
    told = comm.allgather(value)
    return told.count(told[0]) == len(told)


@pytest.mark.parametrize("rank", [0, 1, None], ids="rank 0,rank 1,all".split(","))
def test_all_ranks_raise_where_a_value_is_read(comm: Any, monkeypatch: pytest.MonkeyPatch, rank: int | None) -> None:
    values = np.arange(60.0)
    x = numpy_dist.asarray(values)
    y = np.sqrt(x) + x[::-1]
    with monkeypatch.context() as patch:
        _sent_in_a_loop(patch, rank in (None, comm.rank))
        with pytest.raises(Planted):
            float(y[7])
    assert np.array_equal(y.gather(), np.sqrt(values) + values[::-1])
    assert float(y[7]) == np.sqrt(7.0) + 52.0


def test_a_signal_that_reaches_the_ranks_one_after_the_other_is_handled_once(
    comm: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = numpy_dist.asarray(np.arange(60.0))
    y = np.sqrt(x) + x[::-1]
    with monkeypatch.context() as patch:
        _sent_in_a_loop(patch, comm.rank == 0)
        with pytest.raises(Planted):
            float(y[7])
    if comm.rank:
        signal.raise_signal(NUMBER)  # which is late
        with pytest.raises(Planted):
            signal.raise_signal(NUMBER)  # and this is another one
    comm.barrier()
    z = x + 1
    with monkeypatch.context() as patch:
        _sent_in_a_loop(patch, comm.rank == 0)
        with pytest.raises(Planted):
            float(z[7])
    assert float((x + 2)[7]) == 9.0
    if comm.rank:
        with pytest.raises(Planted):  # a program later it is another one
            signal.raise_signal(NUMBER)
    comm.barrier()


STEPS = 400


def _steps(x: Any, first: int, done: list[int]) -> None:
    for step in range(first, STEPS):
        x[1:-1] += x[2:] + x[:-2]  # both ways: no rank can do all steps before the others begin
        x *= 0.25
        done.append(step)


@pytest.mark.parametrize("rank", [0, 1])
def test_all_ranks_raise_in_the_same_step_where_no_value_is_read(
    comm: Any, monkeypatch: pytest.MonkeyPatch, rank: int
) -> None:
    values = np.arange(50.0)
    x = numpy_dist.asarray(values)
    engine.flush()
    done: list[int] = []
    with monkeypatch.context() as patch:
        _sent_in_a_loop(patch, comm.rank == rank)
        with pytest.raises(Planted):
            _steps(x, 0, done)
    assert 0 < len(done) < STEPS and _all_alike(comm, done)
    got, wanted = x.gather(), values.copy()
    _steps(wanted, 0, [])
    half = got.copy()  # if the step that raised has recorded its first statement
    half *= 0.25
    _steps(half, len(done) + 1, [])
    _steps(got, len(done), [])
    assert np.array_equal(got, wanted) or np.array_equal(half, wanted)


@pytest.mark.parametrize("rank", [0, 1])
def test_a_file_is_whole_and_all_ranks_raise(
    comm: Any, monkeypatch: pytest.MonkeyPatch, rank: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = comm.bcast(tmp_path_factory.mktemp("files"))
    x = numpy_dist.asarray(np.arange(60.0))
    np.save(folder / "x.npy", x)
    written = (folder / "x.npy").read_bytes()
    x += 1
    engine.flush()

    def newer(number: int, frame: FrameType | None) -> None:
        raise Planted

    signal.signal(NUMBER, newer)  # of which no execution has taken note
    write = writing.write_box

    def interrupted(*args: Any) -> None:
        if comm.rank == rank:
            signal.raise_signal(NUMBER)
        write(*args)

    with monkeypatch.context() as patch:
        patch.setattr(writing, "write_box", interrupted)
        with pytest.raises(Planted):
            np.save(folder / "x.npy", x)
    assert _all_alike(comm, 1)
    np.save(folder / "y.npy", x)
    newer_file = (folder / "y.npy").read_bytes()
    comm.barrier()
    (folder / "y.npy").unlink(missing_ok=True)
    assert (folder / "x.npy").read_bytes() in (written, newer_file)
    comm.barrier()
    assert [file.name for file in folder.iterdir()] == ["x.npy"]


def test_a_signal_of_a_rank_that_calls_nothing_of_ours_is_handled_at_once(comm: Any) -> None:
    with pytest.raises(Planted):
        signal.raise_signal(NUMBER)
    assert _all_alike(comm, 1)


def test_a_signal_on_which_ranks_do_not_agree_is_handled_in_the_end(comm: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signals, "PATIENCE", 0.05)
    with comm.signals:
        signal.raise_signal(NUMBER)
        with pytest.raises(Planted):
            while True:
                pass
    assert comm.signals.number() == 0 and _all_alike(comm, 1)


def test_a_handler_that_returns_is_called_on_every_rank_once(comm: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[int] = []
    signal.signal(NUMBER, lambda number, frame: called.append(number))
    x = numpy_dist.asarray(np.arange(30.0))
    with monkeypatch.context() as patch:
        _sent_in_a_loop(patch, comm.rank == 0)
        assert float((x + 1).max()) == 30.0
    assert float((x + 2).max()) == 31.0
    assert called == [NUMBER] and _all_alike(comm, called)


def test_a_program_that_is_launched_is_not_within_the_library() -> None:
    assert not detect.run_guarded(lambda: signals._is_within(sys._getframe()))


def test_with_patience_the_users_own_code_waits_for_all_ranks(comm: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comm.signals, "patience_outside", 20.0)
    x = numpy_dist.asarray(np.arange(60.0))
    signal.raise_signal(NUMBER)  # nothing is raised here
    with pytest.raises(Planted):
        float(np.sqrt(x)[4])
    assert float(np.sqrt(x)[4]) == 2.0
    signal.raise_signal(NUMBER)
    comm.signals.forget(1_000)
    assert float(np.sqrt(x)[9]) == 3.0


def test_patience_has_an_end(comm: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comm.signals, "patience_outside", 0.05)
    signal.raise_signal(NUMBER)
    with pytest.raises(Planted):
        for _ in range(1_000):
            time.sleep(0.01)
    assert _all_alike(comm, 0)
