"""Programs that ask for values of middle-sized arrays after a few statements: NumPy computes them, with all bits."""

from __future__ import annotations

import platform
import subprocess
import sys
import warnings
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import numpy_dist
from numpy_dist import engine
from numpy_dist.comm.simulated import run_simulated
from numpy_dist.conformance import known_differences
from numpy_dist.conformance.adapter import use
from numpy_dist.conformance.checking.oracle import check
from numpy_dist.conformance.suite import groups
from numpy_dist.distarray.at_hand import AtHand
from numpy_dist.engine.data import windows
from numpy_dist.engine.scheduling import eagerness
from numpy_dist.engine.scheduling.eagerness import MOST, PATIENCE, Eagerness
from numpy_dist.settings import config
from tests.distarray.at_hand_arrays import LIMIT
from tests.distarray.eager_arrays import EagerArrays, eager

ONE_IN = 3
"""Of so many functions of the suite one is tried: all of them, with 1, take minutes."""


@pytest.mark.slow
@pytest.mark.parametrize("name", list(groups())[::ONE_IN])
def test_sharded_arrays_of_an_eager_program_have_numpys_results(name: str) -> None:
    adapter = EagerArrays()
    with use(adapter), eager(LIMIT, LIMIT):
        for case in groups()[name]:
            known = adapter.differences()
            found = [text for text in check(case) if not known_differences.matching(case, text, known)]
            assert not found, "\n".join(found)


def _statements(count: int, nbytes: int = 300_000, name: str = "add") -> list[Any]:
    out = SimpleNamespace(array=SimpleNamespace(nbytes=nbytes))
    return [SimpleNamespace(op=SimpleNamespace(name=name), outputs=(out,))] * count


@pytest.fixture
def changes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    made: list[int] = []
    monkeypatch.setattr(eagerness, "_change", lambda most, free: made.append(most))
    return made


def test_the_limit_is_lifted_when_executions_were_not_worth_it(changes: list[int]) -> None:
    seen = Eagerness(threads=2)
    for _ in range(PATIENCE - 1):
        seen.executing(_statements(2))
    assert not changes
    seen.executing(_statements(2))
    assert changes == [MOST]
    assert seen.lifted


@pytest.mark.parametrize(
    ("count", "nbytes", "name"),
    [(1, MOST, "add"), (16, 600_000, "add"), (4, 300_000, "exp"), (8, 800_000, "add")],
    ids=["large", "many", "costly", "much work"],
)
def test_the_limit_stays_where_loops_pay(changes: list[int], count: int, nbytes: int, name: str) -> None:
    seen = Eagerness(threads=2)
    for _ in range(4 * PATIENCE):
        for _ in range(PATIENCE - 1):
            seen.executing(_statements(1))
        seen.executing(_statements(count, nbytes, name))
    assert not changes


@pytest.mark.parametrize(("nbytes", "pays"), [(200_000, False), (400_000, True), (MOST, True)])
def test_sweeps_that_pay_are_not_looked_at_each_time(changes: list[int], nbytes: int, pays: bool) -> None:
    seen = Eagerness(threads=2)
    looks: list[int] = []

    class Looked(list[Any]):
        def __len__(self) -> int:
            looks.append(1)
            return super().__len__()

    sweep = Looked(_statements(36, nbytes))
    for _ in range(8 * PATIENCE):
        if not changes:
            seen.executing(sweep, asked=False)
    assert changes == ([] if pays else [MOST])
    assert len(looks) == PATIENCE


def test_small_work_of_an_eager_program_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    lifted: list[tuple[int, int]] = []
    monkeypatch.setattr(eagerness, "_change", lambda *limits: lifted.append(limits))
    seen = Eagerness(threads=2)
    for _ in range(PATIENCE):
        seen.executing(_statements(1))
    [(most, free)] = lifted
    assert most == MOST
    assert 300_000 < free < 500_000
    for _ in range(1000):
        assert seen.permits(free - 1000, "add")
    assert seen.saved == 0
    assert sum(seen.permits(free - 1000, "exp") for _ in range(10)) < 10


def test_sweeps_end_it_and_values_that_are_asked_for_do_not(changes: list[int]) -> None:
    seen = Eagerness(threads=2)
    for _ in range(PATIENCE):
        seen.executing(_statements(1))
    for _ in range(100):
        assert seen.permits(600_000, "add")
        assert seen.permits(600_000, "add")
        seen.saved = 0.0
    assert not seen.permits(MOST, "add")
    assert seen.lifted
    swept = 0
    while seen.permits(600_000, "add"):
        swept += 1
    assert 2 <= swept < 20
    assert changes == [MOST, 0]
    for _ in range(2 * PATIENCE - 1):  # sweeps may come again: twice as many
        seen.executing(_statements(1))
    assert changes == [MOST, 0]
    seen.executing(_statements(1))
    assert changes == [MOST, 0, MOST]


SHAPE = (300, 300)


def _until_close(a: Any, b: Any, steps: int) -> list[float]:
    found = []
    for _ in range(steps):
        c = a * 0.75 + b
        found.append(float(np.max(c)))
        a[:, 1:] -= 0.125 * c[:, :-1]
    return found


def _sweep(a: Any, steps: int) -> None:
    for _ in range(steps):
        a[1:-1, 1:-1] = 0.25 * (a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:])


def test_a_program_becomes_eager_and_ceases_to_be() -> None:
    x, y = np.random.default_rng(1).random((2, *SHAPE))
    with config(MIN_SHARD_BYTES=1 << 18, AT_ONCE="auto"):
        a, b = numpy_dist.asarray(x.copy()), numpy_dist.asarray(y)
        kept, part = a, a[10:150]
        assert not windows.eager
        found = _until_close(a, b, 30)
        assert windows.eager
        assert windows.limit == MOST
        assert type(a + b) is AtHand
        assert found == _until_close(x, y, 30)
        _sweep(a, 20)
        assert not windows.eager
        assert windows.limit == 1 << 18
        _sweep(x, 20)
        np.testing.assert_array_equal(kept.gather(), x)
        np.testing.assert_array_equal(part.gather(), x[10:150])
        assert kept is a
        assert part.base is a


def test_a_program_that_sweeps_over_middle_sized_arrays_becomes_eager() -> None:
    x = np.random.default_rng(1).random(33_000)
    with config(MIN_SHARD_BYTES=1 << 18, AT_ONCE="auto"):
        a, b = numpy_dist.asarray(x.copy()), numpy_dist.asarray(x.copy())
        _relax(a, b, 300)
        assert windows.eager
        assert type(a[1:] + b[1:]) is AtHand
        y, z = x.copy(), x.copy()
        _relax(y, z, 300)
        np.testing.assert_array_equal(a.gather(), y)
        np.testing.assert_array_equal(b.gather(), z)
    with config(MIN_SHARD_BYTES=1 << 18, AT_ONCE="auto"):
        a, b = (numpy_dist.asarray(np.ones(100_000)) for _ in range(2))
        _relax(a, b, 300)
        assert not windows.eager


def _relax(a: Any, b: Any, steps: int) -> None:
    for _ in range(steps):
        b[1:-1] = 0.3 * (a[:-2] + a[1:-1] + a[2:])
        b[:2], b[-2:] = b[2:4], b[-4:-2]
        a[1:-1] = 0.3 * (b[:-2] + b[1:-1] + b[2:])


def _step_until_close(a: Any, b: Any, steps: int) -> float:
    for _ in range(steps):
        b[1:-1, 1:-1] = 0.25 * (a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:])
        a, b = b, a
        found = float(a[1, 1])
    return found


def test_elements_of_arrays_that_were_sharded_are_values_that_were_asked_for() -> None:
    x, y = np.random.default_rng(1).random((2, *SHAPE))
    with config(MIN_SHARD_BYTES=1 << 18, AT_ONCE="auto"):
        a, b = numpy_dist.asarray(x.copy()), numpy_dist.asarray(y.copy())
        found = _step_until_close(a, b, 2 * PATIENCE)
        assert windows.eager
        found = _step_until_close(a, b, 8)  # not of sweeps: the program stays eager
        assert windows.eager
        assert found == _step_until_close(x, y, 2 * PATIENCE + 8)


_FAULTS = """
import resource
import numpy as np, numpy_dist

def steps(count):
    for _ in range(count):
        ((x + 1.0) * 2.0 + x) * 3.0

x = numpy_dist.asarray(np.ones(30000))
steps(20)
begin = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
steps(100)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - begin)
"""


def test_the_memory_of_temporaries_is_kept_for_the_next_ones() -> None:
    """With glibc; others may do as they like."""
    found = subprocess.run([sys.executable, "-c", _FAULTS], capture_output=True, text=True, check=True)
    assert platform.libc_ver()[0] != "glibc" or int(found.stdout) < 1000


_MAKING = """
import resource
import numpy_dist
from numpy_dist import engine

for step in range(13):
    if step == 3:
        begin = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    x = numpy_dist.linspace(0.0, 1.0, 1_000_000)
engine.flush()
print(max(engine.runtime().comm.allgather(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - begin)))
"""


@pytest.mark.slow
def test_ranks_of_a_job_keep_it_too(tmp_path) -> None:
    (tmp_path / "making.py").write_text(_MAKING)
    command = [sys.executable, "-m", "numpy_dist", "run", "-n", "2", str(tmp_path / "making.py")]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    assert platform.libc_ver()[0] != "glibc" or int(found.stdout.split()[0]) < 4000  # it was 1,900 a step


def test_settings_end_it() -> None:
    with config(MIN_SHARD_BYTES=1 << 18, AT_ONCE="auto"):
        a, b = (numpy_dist.asarray(np.ones(SHAPE)) for _ in range(2))
        _until_close(a, b, 30)
        assert windows.eager
        with config(AT_ONCE=1 << 18):
            assert not windows.eager
            assert windows.limit == 1 << 18
            _until_close(a, b, 30)
            assert not windows.eager
            assert type(a + b) is not AtHand


def test_several_ranks_are_not_eager() -> None:
    def program() -> bool:
        with config(MIN_SHARD_BYTES=1 << 18, AT_ONCE="auto"):
            a, b = (numpy_dist.asarray(np.ones(SHAPE)) for _ in range(2))
            _until_close(a, b, 30)
            return windows.eager or engine.runtime().program.eagerness is not None

    assert not any(run_simulated(2, program))


def test_simulated_ranks_of_an_eager_process_have_the_usual_limit() -> None:
    def limit_of_rank() -> tuple[bool, int]:
        engine.runtime()
        return windows.eager, windows.limit

    with config(MIN_SHARD_BYTES=1 << 18, AT_ONCE="auto"):
        _until_close(*(numpy_dist.asarray(np.ones(SHAPE)) for _ in range(2)), 30)
        assert windows.eager
        assert run_simulated(2, limit_of_rank) == [(False, 1 << 18)] * 2


def test_pending_statements_and_read_only_arrays_stay_as_they_are() -> None:
    x = np.random.default_rng(2).random(SHAPE)
    with config(MIN_SHARD_BYTES=1 << 18, AT_ONCE="auto"):
        a, b = numpy_dist.asarray(x.copy()), numpy_dist.asarray(np.ones(SHAPE))
        _until_close(numpy_dist.asarray(x.copy()), b, 30)
        assert windows.eager
        a[1:] = a[:-1] * 2  # not at hand yet, and pending
        c = a + b
        a += c
        b.setflags(write=False)
        with pytest.raises(ValueError, match="read-only"):
            b += a
        d = np.sqrt(a, out=c)
        y = x.copy()
        y[1:] = y[:-1] * 2
        y += y + 1
        assert d is c
        np.testing.assert_array_equal(a.gather(), y)
        np.testing.assert_array_equal(c.gather(), np.sqrt(y))


def test_warnings_name_the_users_line() -> None:
    with config(MIN_SHARD_BYTES=1 << 18, AT_ONCE="auto"):
        a, b = (numpy_dist.asarray(np.ones(SHAPE)) for _ in range(2))
        _until_close(a, b, 30)
        zeros = numpy_dist.asarray(np.zeros(SHAPE))
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            made = a / zeros
            made += zeros
        assert [(w.category, w.filename, "divide by zero" in str(w.message)) for w in found] == [
            (RuntimeWarning, __file__, True)
        ]
