"""What reference counts tell, and that nothing is lost where they tell less."""

import sys

import numpy as np
import pytest

import numpy_dist
from numpy_dist.engine.memory import liveness, pool, storage
from numpy_dist.engine.memory.pool import Pool


def _alone(others, getrefcount):
    given = bytearray(1)
    others[:] = [given] * len(others)
    return getrefcount(given)


def test_this_interpreter_tells_nobody_from_somebody():
    assert liveness.ATTRIBUTE > 0
    assert liveness.ARGUMENT > 0


def test_another_number_for_nobody_is_measured():
    def counting(x):
        return sys.getrefcount(x)

    def counting_more(x):  # as an interpreter that has more references of its own: 3.11 beside 3.14
        return sys.getrefcount(x) + 2

    assert liveness.measured(_alone, counting_more) == liveness.measured(_alone, counting) + 2


@pytest.mark.parametrize("counts", ["always the same", "others are not seen", "one less now and then"])
def test_counts_that_prove_nothing_are_not_used(counts):
    calls = iter(range(10**6))

    def getrefcount(x):
        if counts == "always the same":
            return 1 << 30  # as of what is immortal
        if counts == "others are not seen":
            return min(sys.getrefcount(x), 3)
        return sys.getrefcount(x) - (2 if next(calls) > 200 else 0)

    assert liveness.measured(_alone, getrefcount) == 0


def test_the_least_of_several_counts_is_that_of_nobody():
    calls = iter(range(10**6))
    assert liveness.measured(_alone, lambda x: sys.getrefcount(x) + next(calls) % 2) <= liveness.measured(_alone) + 1


def test_a_block_that_somebody_sees_is_not_used_again():
    some = Pool()
    block = some.take(4096)
    view = np.frombuffer(block, np.uint8)
    address = view.ctypes.data
    some.give(block)
    del block
    assert some.free == 0
    other = some.take(4096)
    assert np.frombuffer(other, np.uint8).ctypes.data != address


def test_a_block_that_nobody_sees_is_used_again():
    some = Pool()
    block = some.take(4096)
    some.give(block)
    assert some.free >= 4096


def _program():
    x = numpy_dist.asarray(np.arange(100_000.0))
    for step in range(6):
        y = np.sqrt(x) + step
        x = y * 2
        x[1:] += y[:-1]
    return x.gather()


@pytest.mark.parametrize("what", ["nothing is proven dead", "a tracer looks at the variables"])
def test_programs_are_right_where_counts_tell_less(what, monkeypatch):
    expected = _program()
    if what == "nothing is proven dead":
        monkeypatch.setattr(storage, "ATTRIBUTE", 0)
        monkeypatch.setattr(pool, "ARGUMENT", 0)
        found = _program()
    else:

        def look(frame, event, argument):
            frame.f_locals.copy()
            return look

        before = sys.gettrace()
        sys.settrace(look)
        try:
            found = _program()
        finally:
            sys.settrace(before)
    np.testing.assert_array_equal(found, expected)
