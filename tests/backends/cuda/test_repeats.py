"""Loops that come again on devices: the kernel is started on other memory and with other scalars, without planning."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from numpy_dist import engine
from numpy_dist.backends.base import Loop, ReduceStep, Step, Temp
from numpy_dist.backends.cuda import runner
from numpy_dist.backends.memory import HOST
from numpy_dist.ir.ops import op_of

from . import programs
from .on_host import COMPILER, kernels_of, launcher

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler here")


def loop_over(x: np.ndarray, y: np.ndarray, scalar: Any, axes: tuple[int, ...]) -> Loop:
    """``y = x * scalar``, and the sums of its squares along some axes, over arrays in one memory order."""
    kept = tuple(1 if axis in axes else n for axis, n in enumerate(x.shape))
    multiply, add = op_of(np.multiply), op_of(np.add)
    square = Temp(0, x.dtype)
    partial = np.empty(kept, x.dtype)
    steps = [
        Step(multiply, (x, scalar), (y,)),
        Step(multiply, (y, y), (square,)),
        ReduceStep(add, square, partial, axes),
    ]
    return Loop(x.shape, steps, lambda label, kind: None)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize(
    ("shape", "axes"), [((70, 200), (1,)), ((3, 9000), (1,)), ((300, 20), (0,)), ((40, 50), (0, 1))]
)
def test_other_memory_and_other_scalars(shape, axes, order, tmp_path):
    def arrays(seed: int) -> tuple[np.ndarray, np.ndarray]:
        made = np.random.default_rng(seed).integers(-9, 9, shape).astype(float)
        return np.asarray(made, order=order), np.empty(shape, order=order)

    launch = launcher(tmp_path, kernels_of([loop_over(*arrays(1), 2.0, axes)]))
    first = loop_over(*arrays(1), 2.0, axes)
    repeated = runner.run(first, HOST, np.ndarray, launch)
    assert repeated is not None and repeated.scalars == [(0, 1)]
    for seed, scalar in ((2, 3.0), (3, -1), (4, np.float64(0.5))):
        x, y = arrays(seed)
        operands = [(x, y)[number].ctypes.data for number in repeated.operands]
        partials = repeated.again(operands, [scalar], None)
        assert partials is not None
        assert np.array_equal(y, x * scalar)
        assert np.array_equal(partials[0], np.sum((x * scalar) ** 2, axis=axes, keepdims=True))


def test_what_was_started_keeps_its_arguments(tmp_path):
    """Kernels start late on a device; by then the same loop may have been asked for again."""
    first, second = (loop_over(np.full((7, 90), k), np.empty((7, 90)), 2.0, (1,)) for k in (1.0, 3.0))
    launch, later = launcher(tmp_path, kernels_of([first])), list[Any]()
    repeated = runner.run(first, HOST, np.ndarray, lambda *arguments: later.append(arguments))
    assert repeated is not None
    x, y = second.steps[0].inputs[0], second.steps[0].outputs[0]  # type: ignore[union-attr]
    repeated.again([(x, y)[number].ctypes.data for number in repeated.operands], [5.0], None)
    for arguments in later:
        launch(*arguments)
    assert set(first.steps[0].outputs[0].ravel()) == {2.0} and set(y.ravel()) == {15.0}  # type: ignore[union-attr]


def test_an_integer_that_does_not_fit_is_left_to_others(tmp_path):
    x, y = np.arange(9, dtype=np.uint8), np.empty(9, np.uint8)
    loop = Loop((9,), [Step(op_of(np.add), (x, 3), (y,))], lambda label, kind: None)
    launch = launcher(tmp_path, kernels_of([loop]))
    repeated = runner.run(loop, HOST, np.ndarray, launch)
    assert repeated is not None
    assert repeated.again([x.ctypes.data, y.ctypes.data], [300], None) is None
    assert repeated.again([x.ctypes.data, y.ctypes.data], [9], None) == [] and y.tolist() == list(range(9, 18))


def planned(run: Callable[..., Any], counts: list[int]) -> Callable[..., Any]:
    def counted(*arguments: Any) -> Any:
        counts.append(1)
        return run(*arguments)

    return counted


@pytest.mark.parametrize("ranks", [1, 3])
def test_a_loop_of_a_program_is_planned_once(ranks, tmp_path, monkeypatch):
    """After some rounds no loop is planned any more, and the results are NumPy's."""
    base, seen = np.random.default_rng(2).random((30, 20)), list[int]()

    def work(array: Callable[[np.ndarray], Any]) -> list[Any]:
        grid, totals = array(base), []
        for step in range(12):
            grid[1:-1, 1:-1] = 0.25 * (grid[:-2, 1:-1] + grid[2:, 1:-1]) + 0.01 * step
            totals.append(float((grid * grid).sum()))
            if step == 6:
                engine.flush()
                seen.clear()
        return [grid, np.array(totals)]

    monkeypatch.setattr(programs, "work", work)
    kernels = programs.collect(ranks, monkeypatch)[0]
    monkeypatch.setattr(programs, "run", planned(programs.run, seen))
    found, _ = programs.on_device(ranks, monkeypatch, launcher(tmp_path, kernels))
    assert seen == []
    for results in found:
        for got, expected in zip(results, work(np.array), strict=True):
            np.testing.assert_allclose(got, expected, rtol=1e-13)


def test_another_device_plans_anew(tmp_path, monkeypatch):
    """What is kept of a loop belongs to one device: a second one in the same process must not get its kernels."""
    kernels = programs.collect(1, monkeypatch)[0]
    launch = launcher(tmp_path, kernels)
    for _ in range(2):
        ((found,), _) = programs.on_device(1, monkeypatch, launch)
        for got, expected in zip(found, programs.work(np.array), strict=True):
            np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-12)
