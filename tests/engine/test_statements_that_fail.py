"""A statement that cannot be executed raises its error once; other arrays have their values."""

import ctypes

import numpy as np
import pytest

import numpy_dist
from numpy_dist import engine
from numpy_dist.backends.interpreter import Interpreter
from numpy_dist.engine.scheduling import schedule
from numpy_dist.engine.scheduling.program import Program
from numpy_dist.errors import LostValueError

ERRORS = (TypeError, AttributeError)  # of the engine, which is given None


def _failing(monkeypatch):
    run = Interpreter.run

    def fail(self, loop, *args):
        return run(self, None if any(step.op.ufunc is np.cbrt for step in loop.steps) else loop, *args)

    monkeypatch.setattr(Interpreter, "run", fail)


def _unplannable(monkeypatch):
    fuse = schedule.fuse

    def fail(statements):
        return None if any(getattr(s.op, "ufunc", None) is np.cbrt for s in statements) else fuse(statements)

    monkeypatch.setattr(schedule, "fuse", fail)


@pytest.fixture(autouse=True)
def interpreted(monkeypatch):
    """No loop is run by a kernel, of this process or of the cache, and no schedule is kept from before."""
    backend = engine.runtime().backend
    monkeypatch.setattr(backend, "when", "never", raising=backend.name == "numba")  # others have no kernels
    schedule.SCHEDULES.clear()


@pytest.mark.parametrize("fault", [_failing, _unplannable])
def test_other_arrays_have_their_values(fault, monkeypatch):
    fault(monkeypatch)
    x = numpy_dist.asarray(np.arange(100_000.0))
    before = x * 3
    assert float(before[1]) == 3.0
    y = np.cbrt(x)
    z = y + 1
    with pytest.raises(ERRORS):
        y.gather()
    for lost in (y, z, y[5:]):
        with pytest.raises(LostValueError, match=r"Error: .* was raised as cbrt, .*test_statements_that_fail\.py"):
            lost.gather()
    np.testing.assert_array_equal((x + 1).gather(), np.arange(100_000.0) + 1)
    np.testing.assert_array_equal(before.gather(), np.arange(100_000.0) * 3)
    y[...] = 2.0
    assert float(y.sum()) == 200_000.0


def test_an_assigned_part_makes_the_rest_no_less_lost(monkeypatch):
    _failing(monkeypatch)
    y = np.cbrt(numpy_dist.asarray(np.arange(100_000.0)))
    with pytest.raises(ERRORS):
        y.gather()
    for part in (slice(50_000), slice(3, 3), slice(None, None, 2)):
        y[part] = 2.0
        with pytest.raises(LostValueError):
            y.gather()
    y[::-1] = 2.0
    with pytest.raises(LostValueError):  # it is not seen that these are all
        y.gather()
    y[:] = 2.0
    assert float(y.sum()) == 200_000.0


def test_an_update_that_fails_leaves_no_doubtful_values(monkeypatch):
    _failing(monkeypatch)
    x = numpy_dist.asarray(np.arange(100_000.0))
    other = numpy_dist.asarray(np.ones(100_000))
    x += 1
    np.cbrt(x, out=x)
    with pytest.raises(ERRORS):
        float(x[3])
    with pytest.raises(LostValueError, match="cbrt"):
        float(x[3])
    assert float(other[3]) == 1.0


@pytest.mark.parametrize(
    "error", [RecursionError("maximum recursion depth exceeded"), ctypes.ArgumentError("argument 1")]
)
def test_a_caller_without_depth_of_stack_asks_once_more(error, monkeypatch):
    """As for want of memory: nothing is lost, since the next caller may be nearer to the ground."""
    run, errors = Interpreter.run, [error]

    def fail(self, loop, *args):
        if errors:
            raise errors.pop()
        return run(self, loop, *args)

    monkeypatch.setattr(Interpreter, "run", fail)
    x = numpy_dist.asarray(np.arange(100_000.0))
    y = np.cbrt(x)
    with pytest.raises(type(error)):
        y.gather()
    assert np.array_equal(y.gather(), np.cbrt(np.arange(100_000.0)))


def test_a_recovery_that_fails_leaves_nothing_half_done(monkeypatch):
    _unplannable(monkeypatch)
    x = numpy_dist.asarray(np.arange(100_000.0))
    before, y = x * 3, np.cbrt(x)
    with monkeypatch.context() as patched:
        patched.setattr(Program, "_recover", _interrupt)
        with pytest.raises(KeyboardInterrupt):
            y.gather()
    assert float((x + 1)[2]) == 3.0
    with pytest.raises(LostValueError):
        y.gather()
    with pytest.raises(LostValueError):
        before.gather()


def _interrupt(*args):
    raise KeyboardInterrupt
