"""The tile interpreter computes what NumPy computes, whatever the shapes, strides and lifetimes."""

from __future__ import annotations

import weakref

import numpy as np
import pytest

from numpy_dist.backends.base import Loop, ReduceStep, Step, Temp, make_backend
from numpy_dist.backends.interpreter import TILE_ELEMENTS, Interpreter, tiles
from numpy_dist.backends.scratch import assign_slots
from numpy_dist.backends.tile_steps import TileSteps
from numpy_dist.ir.ops import COPY, SELECT, op_of

F8 = np.dtype("f8")


def _run(shape, steps) -> list:
    events = []
    Interpreter().run(Loop(shape, steps, lambda label, kind: events.append((label, kind))))
    return events


@pytest.mark.parametrize("shape", [(1,), (5,), (3 * TILE_ELEMENTS + 7,), (300, 400), (2, 3, 5, 7), (3, 200000), (0, 4)])
def test_tiles_cover_everything_once(shape):
    seen = np.zeros(shape, int)
    for where in tiles(shape):
        seen[where] += 1
        assert seen[where].size <= TILE_ELEMENTS
    assert (seen == 1).all()


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape", [(7,), (211, 503), (3, 50, 700)])
def test_a_chain_with_temporaries(shape, order):
    x = np.asarray(np.random.default_rng(0).random(shape), order=order)
    out = np.empty(shape, order=order)
    sine, double = Temp(0, F8), Temp(1, F8)
    steps = [
        Step(op_of(np.sin), (x,), (sine,)),
        Step(op_of(np.multiply), (sine, 2.0), (double,)),
        Step(op_of(np.add), (double, sine), (out,)),
    ]
    _run(shape, steps)
    assert np.array_equal(out, np.sin(x) * 2.0 + np.sin(x))


def test_a_loop_without_axes():
    x, out = np.array(2.0), np.empty(())
    temp = Temp(0, F8)
    _run((), [Step(op_of(np.sqrt), (x,), (temp,)), Step(op_of(np.add), (temp, 1.0), (out,))])
    assert out == np.sqrt(2.0) + 1.0


def test_slots_are_reused_when_lifetimes_end():
    steps = [Step(op_of(np.negative), (np.ones(3),), (Temp(0, F8),))]
    steps += [Step(op_of(np.negative), (Temp(i, F8),), (Temp(i + 1, F8),)) for i in range(9)]
    assert len({slot for slot, _ in assign_slots(steps).values()}) == 1


def test_select_may_overwrite_either_choice():
    x = np.arange(-4.0, 4.0)
    for first in (True, False):
        out = np.empty(8)
        value, test = Temp(0, F8), Temp(1, np.dtype(bool))
        chosen = (test, value, 0.0) if first else (test, 0.0, value)
        steps = [
            Step(op_of(np.multiply), (x, 3.0), (value,)),
            Step(op_of(np.greater), (x, 0.0), (test,)),
            Step(SELECT, tuple(np.float64(c) if isinstance(c, float) else c for c in chosen), (Temp(2, F8),)),
            Step(op_of(np.add), (Temp(2, F8), 1.0), (out,)),
        ]
        _run((8,), steps)
        expected = np.where(x > 0, *((3 * x, 0.0) if first else (0.0, 3 * x))) + 1
        assert np.array_equal(out, expected)


@pytest.mark.parametrize("axes", [(0,), (1,), (0, 1), (2,), (0, 2), (0, 1, 2)])
@pytest.mark.parametrize("ufunc", [np.add, np.maximum, np.logical_or])
def test_reductions(axes, ufunc):
    x = np.random.default_rng(1).integers(-5, 5, (40, 50, 60)).astype(float)
    kind = np.dtype(bool) if ufunc is np.logical_or else F8
    partial = np.empty([1 if a in axes else n for a, n in enumerate(x.shape)], kind)
    _run(x.shape, [ReduceStep(op_of(ufunc), x, partial, axes)])
    assert np.array_equal(partial, ufunc.reduce(x, axis=axes, keepdims=True))


def test_masked_minimum_with_tiles_that_select_nothing():
    x = np.random.default_rng(2).random(3 * TILE_ELEMENTS)
    where = np.zeros(x.shape, bool)
    where[-5:] = True
    partial = np.empty(1)
    _run(x.shape, [ReduceStep(op_of(np.minimum), x, partial, (0,), where)])
    assert partial[0] == x[-5:].min()


def test_events_name_the_statement():
    out = np.empty(3)
    zero = np.zeros(3)
    events = _run(
        (3,),
        [
            Step(op_of(np.add), (zero, 1.0), (Temp(0, F8),), label=4),
            Step(op_of(np.divide), (Temp(0, F8), zero), (out,), label=5),
        ],
    )
    assert set(events) == {(5, "divide by zero")}


def test_negative_strides_give_the_values_of_ascending_tiles():
    x = np.random.default_rng(3).random(5000)
    out = np.empty(5000)
    _run((5000,), [Step(op_of(np.exp), (x[::-1],), (out,))])
    assert np.array_equal(out, np.exp(np.ascontiguousarray(x[::-1])))


def test_null_counts():
    backend = make_backend("null")
    backend.run(Loop((3, 4), [], lambda label, kind: None))
    assert (backend.loops, backend.elements) == (1, 12)


def test_unknown_backends_are_refused():
    with pytest.raises(ValueError, match="has the backends"):
        make_backend("tpu")


@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "i4"])
@pytest.mark.parametrize("step", [1, -1])
def test_columns_of_as_many_bytes_as_numpy_misreads(dtype, step):
    """NumPy 2.1 to 2.4: ``negative`` of elements that lie itemsize elements apart, into strided memory, is wrong."""
    width = np.dtype(dtype).itemsize
    x = np.arange(9 * width, dtype=dtype).reshape(9, width)[::step, 0]
    out = np.zeros((9, width), dtype)[::step, 0]
    _run((9,), [Step(op_of(np.negative), (x,), (out,))])
    assert np.array_equal(out, -x.copy())


def _stencil(n, factor, memo, order="C", step=1):
    """A loop that copies a result into an array, its operands, and what NumPy makes of them."""
    a = np.asarray(np.random.default_rng(n).random((n, n)), order=order)[::step]
    b = np.zeros((n, n), order=order)[::step]
    first, second = Temp(0, a.dtype), Temp(1, a.dtype)
    inner, outer = a[1:-1], b[1:-1]
    steps = [
        Step(op_of(np.add), (a[2:], inner), (first,), label=1),
        Step(op_of(np.multiply), (factor, first), (second,), label=2),
        Step(COPY, (second,), (outer,), label=3),
        ReduceStep(op_of(np.add), inner, np.empty((1, 1)), (0, 1), label=4),
    ]
    return Loop(inner.shape, steps, lambda label, kind: None, memo=memo), outer, factor * (a[2:] + inner), inner.sum()


def test_what_was_prepared_for_a_loop_serves_others_of_its_memo():
    interpreter, memo = Interpreter(), {}
    prepared = []
    for factor in (2.0, 3.0, -1.0):
        loop, out, expected, total = _stencil(50, factor, memo)
        interpreter.run(loop)
        assert np.array_equal(out, expected)
        assert loop.steps[-1].partial[0, 0] == pytest.approx(total)
        prepared.append(memo["tile steps"])
    assert prepared[0] is prepared[1] is prepared[2]


@pytest.mark.parametrize("other", [{"n": 60}, {"order": "F"}, {"step": 2}, {"factor": np.float64(4.0)}, {"factor": 4}])
def test_nothing_else_is_done_as_it_was_prepared(other):
    interpreter, memo = Interpreter(), {}
    for chosen in ({}, other, {}):
        loop, out, expected, _ = _stencil(**({"n": 50, "factor": 2.0, "memo": memo} | chosen))
        interpreter.run(loop)
        assert np.array_equal(out, expected)


def test_the_interpreter_keeps_no_array(monkeypatch):
    interpreter, memo = Interpreter(), {}
    for fails in (False, True):
        loop, out, *_ = _stencil(50, 2.0, memo)
        seen = [weakref.ref(x if x.base is None else x.base) for x in (out, loop.steps[0].inputs[0])]
        if fails:

            def stop(steps):
                raise KeyboardInterrupt

            monkeypatch.setattr(TileSteps, "finish", stop)
            with pytest.raises(KeyboardInterrupt):
                interpreter.run(loop)
        else:
            interpreter.run(loop)
        del loop, out
        assert [ref() for ref in seen] == [None, None]


def test_a_loop_within_a_loop_has_scratch_memory_of_its_own():
    interpreter, inner_out = Interpreter(), []

    def report(label, kind):
        loop, out, expected, _ = _stencil(50, 5.0, {})
        interpreter.run(loop)
        inner_out.append(np.array_equal(out, expected))

    x, out, temp = np.linspace(-1.0, 1.0, 2500).reshape(50, 50), np.empty((50, 50)), Temp(0, np.dtype(float))
    steps = [
        Step(op_of(np.add), (x, 1.0), (temp,)),
        Step(op_of(np.sqrt), (x,), (np.empty((50, 50)),)),
        Step(op_of(np.maximum), (temp, x), (out,)),
    ]
    interpreter.run(Loop((50, 50), steps, report))
    assert inner_out == [True] and np.array_equal(out, np.maximum(x + 1.0, x))


def test_a_result_is_computed_where_it_is_copied_to():
    """An event of it is told once, with the label of the operation."""
    x, out, temp = np.array([1.0, 0.0, 4.0]), np.zeros(6)[::2], Temp(0, np.dtype(float))
    steps = [Step(op_of(np.divide), (1.0, x), (temp,), label=7), Step(COPY, (temp,), (out,), label=8)]
    events, memo = [], {}
    Interpreter().run(Loop((3,), steps, lambda label, kind: events.append((label, kind)), memo=memo))
    assert events == [(7, "divide by zero")] and out.tolist() == [1.0, np.inf, 0.25]
    assert len(memo["tile steps"]._calls) == 1


@pytest.mark.parametrize("way", ["read again", "of another dtype", "with a mask", "no exact operation"])
def test_other_copies_stay(way):
    x, temp = np.array([1.0, 2.0, 4.0]), Temp(0, np.dtype(float))
    op = op_of(np.exp if way == "no exact operation" else np.add)
    inputs = (x,) if op.nin == 1 else (x, x)
    out = np.zeros(3, "f4" if way == "of another dtype" else "f8")
    mask = np.array([True, False, True]) if way == "with a mask" else None
    steps = [Step(op, inputs, (temp,)), Step(COPY, (temp,), (out,), mask)]
    if way == "read again":
        steps.append(Step(op_of(np.sqrt), (temp,), (np.empty(3),)))
    memo = {}
    Interpreter().run(Loop((3,), steps, lambda label, kind: None, memo=memo))
    made = (np.exp(x) if op.nin == 1 else x + x).astype(out.dtype)
    assert np.array_equal(out, made if mask is None else np.where(mask, made, 0))
    if "tile steps" in memo:
        assert len(memo["tile steps"]._calls) == len(steps)
