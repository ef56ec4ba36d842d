"""Exceptions that come anywhere while programs are recorded and executed: arrays have their values, or say why not."""

from __future__ import annotations

import os
import random
import signal
import sys
import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import numpy as np
import pytest

import numpy_dist
from numpy_dist import engine
from numpy_dist.comm.supervision.signals import Postponed
from numpy_dist.engine.memory import pool as pools
from numpy_dist.errors import LostValueError
from numpy_dist.settings import config

ENGINE = os.path.dirname(engine.__file__) + os.sep
SHAPE = (40, 30)
Step = Callable[[dict[str, Any]], None]


class Planted(BaseException):
    """What comes between any two steps of Python, as KeyboardInterrupt does."""


class Planting:
    """Raises `Planted` where the engine's code begins or ends its n-th call, of Python's or C's functions.

    Handlers of signals run there, too; but not before a function of C's is called, such as the one that ends the block
    of a lock, which would then stay locked.
    """

    def __init__(self, at: int = 0) -> None:
        self._at, self.calls = at, 0
        self._hook = self._profile  # kept: Python 3.11 may call what was set a last time when it has raised

    def _profile(self, frame: FrameType, event: str, argument: Any) -> None:
        if event != "c_call" and frame.f_code.co_filename.startswith(ENGINE):
            self.calls += 1
            if self.calls == self._at:
                raise Planted

    def __enter__(self) -> Planting:
        self._before = sys.getprofile()
        sys.setprofile(self._hook)
        return self

    def __exit__(self, *error: Any) -> None:
        sys.setprofile(self._before)


def _set(name: str, function: Callable[[dict[str, Any]], Any]) -> Step:
    def step(d: dict[str, Any]) -> None:
        d[name] = function(d)

    return step


def _update(function: Callable[[dict[str, Any]], Any]) -> Step:
    def step(d: dict[str, Any]) -> None:
        function(d)

    return step


def _add(target: Any, value: Any) -> None:
    target += value


def _assign(target: Any, value: Any) -> None:
    target[...] = value


def _assign_where(target: Any, mask: Any, value: Any) -> None:
    target[mask] = value


PROGRAMS: dict[str, list[Step]] = {
    "new arrays": [
        _set("y", lambda d: d["x"] + 1),
        _set("z", lambda d: d["y"][1:] * d["y"][:-1]),
        _set("s", lambda d: float(d["z"].max())),
        _set("w", lambda d: np.sqrt(abs(d["z"])) + d["y"][1:]),
        _set("t", lambda d: d["w"].max(axis=0)),
        _set("u", lambda d: float(d["t"].min())),
    ],
    "in place": [
        _set("y", lambda d: d["x"] * 2),
        _update(lambda d: _add(d["x"], 1)),
        _update(lambda d: _add(d["x"][1:-1], d["x"][2:])),
        _set("s", lambda d: float(d["x"].max())),
        _update(lambda d: _add(d["y"], d["x"])),
        _update(lambda d: _assign(d["x"][2:4], d["y"][:2])),
        _update(lambda d: np.multiply(d["x"], d["y"], out=d["x"])),
        _set("t", lambda d: float(d["x"][3, 4])),
        _update(lambda d: _add(d["x"], d["x"][::-1])),
        _set("u", lambda d: float(d["x"].min())),
    ],
    "names bound anew": [
        step
        for _ in range(3)
        for step in (
            _set("x", lambda d: d["x"] * 0.5 + d["x"]),
            _set("x", lambda d: np.minimum(d["x"], 9.0)),
            _set("s", lambda d: float(d["x"][1, 1])),
        )
    ],
    "masks": [
        _set("m", lambda d: d["x"] > 0.5),
        _update(lambda d: _assign_where(d["x"], d["m"], 0.25)),
        _set("n", lambda d: int(d["m"].sum())),
        _set("y", lambda d: np.where(d["m"], d["x"], -d["x"])),
        _update(lambda d: np.add(d["y"], 1, out=d["y"], where=d["m"])),
        _set("s", lambda d: float(d["y"].min())),
    ],
    "reduced and kept": [
        _set("y", lambda d: abs(d["x"] - 0.5)),
        _set("q", lambda d: d["y"] * d["y"]),
        _set("s", lambda d: float(d["q"].max())),
        _update(lambda d: _add(d["x"], d["q"])),
        _set("t", lambda d: float(d["x"].max())),
        _set("v", lambda d: np.exp(d["q"] - d["q"].max(axis=1, keepdims=True))),
        _set("u", lambda d: float(d["v"].min())),
    ],
    "a loop": [
        step
        for _ in range(40)
        for step in (
            _set("y", lambda d: 0.25 * (d["x"][2:] + d["x"][:-2]) + d["x"][1:-1]),
            _update(lambda d: _assign(d["x"][1:-1], d["y"])),
        )
    ],
}


def _given() -> np.ndarray:
    return np.random.default_rng(5).random(SHAPE)


def _values(d: dict[str, Any]) -> dict[str, Any]:
    return {name: x.copy() if isinstance(x, np.ndarray) else x for name, x in d.items()}


def _states(program: list[Step]) -> list[dict[str, Any]]:
    """NumPy's values before each step, and after the last."""
    d: dict[str, Any] = {"x": _given()}
    found = [_values(d)]
    for step in program:
        step(d)
        found.append(_values(d))
    return found


def _outcome(name: str, x: Any, allowed: list[dict[str, Any]]) -> str:
    """How an array compares with what NumPy has before and after the step that was left."""
    try:
        got = x.gather() if isinstance(x, numpy_dist.DistArray) else x
    except LostValueError as error:
        assert "Planted" in str(error) and os.path.basename(__file__) in str(error), error
        return "lost"
    if any(name in state and np.array_equal(got, state[name]) for state in allowed):
        return "same"
    return f"{name} differs"


def _try(program: list[Step], states: list[dict[str, Any]], call: int) -> list[str]:
    """What the arrays hold after an exception at this call, and after more of the session."""
    d: dict[str, Any] = {"x": numpy_dist.asarray(_given())}
    at = len(program)
    with Planting(call):
        try:
            for at, step in enumerate(program):  # noqa: B007
                step(d)
        except Planted:
            allowed = states[at : at + 2]
        else:  # Python passes over what is raised in finalizers
            allowed = states[-1:]
    first = [_outcome(name, x, allowed) for name, x in d.items()]
    again = [_outcome(name, x, allowed) for name, x in d.items()]
    assert first == again
    for x in d.values():  # what is assigned as a whole has values again
        if isinstance(x, numpy_dist.DistArray) and x.dtype == float:
            x[...] = 3.0
            assert np.array_equal(x.gather(), np.full(x.shape, 3.0))
    return first


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("name", PROGRAMS)
def test_an_exception_at_any_call(name: str) -> None:
    program, states = PROGRAMS[name], _states(PROGRAMS[name])
    outcomes: Counter[str] = Counter()
    rng = random.Random(name)
    with config(MIN_SHARD_BYTES=0):
        counted = Planting()
        for planting in (Planting(), counted):  # the second time plans are found
            d: dict[str, Any] = {"x": numpy_dist.asarray(_given())}
            with planting:
                for step in program:
                    step(d)
        chosen = sorted(rng.sample(range(1, counted.calls), 40))
        for call in chosen:
            found = _try(program, states, call)
            outcomes.update(found)
            assert not any("differs" in what for what in found), (call, found)
        d = {"x": numpy_dist.asarray(_given())}
        for step in program:
            step(d)
        assert {_outcome(name, x, states[-1:]) for name, x in d.items()} == {"same"}
    assert outcomes["same"] > 4 * outcomes["lost"], outcomes


def _recorded(x: Any) -> tuple[Any, Any]:
    y = x + 1
    z = y[1:] * y[:-1]
    for k in range(6):
        z = np.sqrt(z[1:] + z[:-1]) + k
    return y, z


@pytest.fixture
def alarm() -> Iterator[Callable[[float], None]]:
    """Starts the timer of a signal whose handler raises `Planted`."""

    def handler(*_: Any) -> None:
        raise Planted

    before = signal.signal(signal.SIGALRM, handler)
    yield lambda seconds: signal.setitimer(signal.ITIMER_REAL, seconds)
    signal.setitimer(signal.ITIMER_REAL, 0)
    assert signal.signal(signal.SIGALRM, before) is handler


def test_a_signal_in_the_middle_of_an_execution_loses_nothing(alarm: Callable[[float], None]) -> None:
    values = np.arange(200_000.0)
    wanted, left = _recorded(values), 0
    for attempt in range(12):
        made = _recorded(numpy_dist.asarray(values))
        try:
            alarm(2e-4 * (1 + attempt))
            try:
                float(made[1][5])
            finally:
                alarm(0)
        except Planted:
            left += 1
        for got, want in zip(made, wanted, strict=True):
            assert np.array_equal(got.gather(), want)
    assert left, "no signal came in time"


def test_signals_are_handled_between_groups() -> None:
    """The handler runs once the loop is done, with the frame that was interrupted, and in the order of the signals."""
    handled: list[tuple[int, bool]] = []
    backend = engine.runtime().backend
    run, runs = type(backend).run, [0]

    def signals(self: Any, loop: Any) -> Any:
        signal.raise_signal(signal.SIGUSR1)
        signal.raise_signal(signal.SIGINT)
        assert len(handled) == 2 * runs[0]
        runs[0] += 1
        return run(self, loop)

    def handler(number: int, frame: FrameType | None) -> None:
        handled.append((number, frame is not None and frame.f_code is signals.__code__))

    before = {number: signal.signal(number, handler) for number in (signal.SIGUSR1, signal.SIGINT)}
    try:
        x = numpy_dist.asarray(np.arange(300_000.0))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(type(backend), "run", signals)
            float((np.sqrt(x) + x[::-1])[7])
        assert runs[0] and handled == runs[0] * [(signal.SIGUSR1, True), (signal.SIGINT, True)]
        assert all(signal.getsignal(number) is handler for number in before)
    finally:
        for number, known in before.items():
            signal.signal(number, known)


def test_handlers_are_given_back_though_one_raises(alarm: Callable[[float], None]) -> None:
    postponed = Postponed()
    with pytest.raises(Planted), postponed:
        signal.raise_signal(signal.SIGALRM)
        assert [number for number, _ in postponed.noted] == [signal.SIGALRM]
        raise MemoryError
    assert signal.getsignal(signal.SIGINT) is not postponed._note
    signal.signal(signal.SIGALRM, postponed._note)  # as it is if it could not be given back
    with pytest.raises(Planted):
        signal.raise_signal(signal.SIGALRM)


def _without_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(nbytes: int) -> pools.Block:
        raise MemoryError("planted")

    engine.runtime().pool.clear()
    monkeypatch.setattr(pools, "make_block", refuse)


def test_what_had_no_memory_is_executed_when_there_is_some(monkeypatch: pytest.MonkeyPatch) -> None:
    values = _given()
    with config(MIN_SHARD_BYTES=0), monkeypatch.context() as patch:
        x = numpy_dist.asarray(values)
        engine.flush()
        y = x + 1
        x *= 2
        z = y - x
        _without_memory(patch)
        for _ in range(3):
            with pytest.raises(MemoryError, match="planted"):
                engine.force(z)
        patch.undo()
        assert np.array_equal(z.gather(), values + 1 - 2 * values)
        assert np.array_equal(x.gather(), 2 * values) and np.array_equal(y.gather(), values + 1)


@pytest.mark.parametrize("kept", [True, False])
def test_what_has_no_memory_is_in_nobody_elses_way(monkeypatch: pytest.MonkeyPatch, kept: bool) -> None:
    """As in a program that tries a large array first: what it does next is computed, also if it has kept the name."""
    values, make = np.arange(1000.0), pools.make_block

    def refuse(nbytes: int) -> pools.Block:
        if nbytes > 1 << 20:
            raise MemoryError("planted")
        return make(nbytes)

    with config(MIN_SHARD_BYTES=0), monkeypatch.context() as patch:
        x = numpy_dist.asarray(values)
        before = x * 3
        large = np.multiply.outer(x, x)
        larger = large + 1
        engine.runtime().pool.clear()
        patch.setattr(pools, "make_block", refuse)
        for _ in range(2):
            with pytest.raises(MemoryError, match="planted"):
                large.gather() if kept else np.sort(larger, axis=None)
        if not kept:
            del large, larger
        after = x + 1
        for _ in range(2):
            assert np.array_equal(after.gather(), values + 1) and float(np.sort(x)[3]) == 3
        assert np.array_equal(before.gather(), values * 3)
        patch.undo()
        if kept:
            for array in (large, larger):
                with pytest.raises(LostValueError, match="no memory for it: MemoryError: planted .* multiply"):
                    array.gather()
            large[:] = 2.0
            assert float(large.sum()) == 2e6


def test_a_statement_is_not_done_whose_call_had_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    values = _given()
    with config(MIN_SHARD_BYTES=0), monkeypatch.context() as patch:
        x = numpy_dist.asarray(values)
        y = x[:, ::2] * 1.0
        monkeypatch.setattr("numpy_dist.engine.scheduling.program.MOST_STATEMENTS", 2)
        _without_memory(patch)
        with pytest.raises(MemoryError, match="planted"):
            x += 1
        patch.undo()
        x += 1
        assert np.array_equal(x.gather(), values + 1) and np.array_equal(y.gather(), values[:, ::2])


def test_what_is_computed_from_lost_values_is_lost() -> None:
    with config(MIN_SHARD_BYTES=0):
        x, y = numpy_dist.asarray(_given()), numpy_dist.asarray(_given())
        engine.flush()
        known = len(engine.runtime().program._recovery.lost)
        x._storage.lost = "its values are lost: a test"
        engine.runtime().program._recovery.lost.append(weakref.ref(x._storage))
        z = x + y
        y += 1
        row = y[0]
        row[...] = z[0]
        w = z * 2
        for lost in (x, z, w, y):
            with pytest.raises(
                LostValueError, match=r"an array of shape \(40, 30\), float64, cannot be read: its values"
            ):
                lost.gather()
        x[...] = 1.0
        z = x * 2
        y[:] = z
        assert float(y.max()) == 2.0 and np.array_equal(z.gather(), np.full(SHAPE, 2.0))
        with pytest.raises(LostValueError):
            w.gather()
        assert len(engine.runtime().program._recovery.lost) <= known + 1


def test_values_are_not_asked_for_while_the_program_executes(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a signal's handler, say."""
    values = _given()
    with config(MIN_SHARD_BYTES=0):
        x = numpy_dist.asarray(values)
        y, z = x + 1, x + 2
        backend, met = engine.runtime().backend, []
        run = type(backend).run

        def asks(self: Any, loop: Any) -> Any:
            if not met:
                with pytest.raises(RuntimeError, match="while the program executes") as caught:
                    z.gather()
                met.append(caught)
            return run(self, loop)

        monkeypatch.setattr(type(backend), "run", asks)
        assert np.array_equal(y.gather(), values + 1) and np.array_equal(z.gather(), values + 2) and met
