"""The axes of a loop in the order in which memory is walked."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from numpy_dist.backends.base import Loop, ReduceStep, Step

if TYPE_CHECKING:
    from numpy_dist.backends.memory import Array

T = TypeVar("T")


def _is_ndarray(x: object) -> bool:
    return type(x) is np.ndarray


def memory_order(loop: Loop, is_array: Callable[[object], bool] = _is_ndarray) -> tuple[int, ...] | None:
    """The axes of a loop by the strides of its first array, outermost first; None where they are in this order."""
    ndim = len(loop.shape)
    operands = [x for s in loop.steps for x in _lead(s)]
    lead = next((x for x in operands if is_array(x) and x.ndim == ndim and 0 not in x.strides), None)
    if lead is None or all(abs(a) >= abs(b) for a, b in zip(lead.strides, lead.strides[1:], strict=False)):
        return None
    return tuple(sorted(range(ndim), key=lambda axis: -abs(lead.strides[axis])))


def in_memory_order(loop: Loop, is_array: Callable[[object], bool] = _is_ndarray) -> Loop:
    """The same loop with its axes in memory order, so that tiles are rows of memory; it has at least one axis."""
    if not loop.shape:
        return _turned(loop, (1,), lambda x: x.reshape(1), lambda axes: (0,), is_array)
    order = memory_order(loop, is_array)
    if order is None:
        return loop
    place = {axis: position for position, axis in enumerate(order)}
    shape = tuple(loop.shape[a] for a in order)
    return _turned(loop, shape, lambda x: x.transpose(order), lambda axes: tuple(place[a] for a in axes), is_array)


def _lead(step: Step | ReduceStep) -> tuple[Any, ...]:
    return (*step.outputs, *step.inputs) if isinstance(step, Step) else (step.source,)


def _turned(
    loop: Loop,
    shape: tuple[int, ...],
    turn: Callable[[Array], Array],
    turn_axes: Callable[[tuple[int, ...]], tuple[int, ...]],
    is_array: Callable[[object], bool],
) -> Loop:
    """The same loop with each array, and each list of reduced axes, seen in another way."""
    seen: dict[int, Array] = {}

    def view(x: T) -> T:
        if not is_array(x):
            return x
        if id(x) not in seen:
            seen[id(x)] = turn(x)
        return seen[id(x)]

    steps: list[Step | ReduceStep] = []
    for s in loop.steps:
        if isinstance(s, Step):
            inputs, outputs = tuple(map(view, s.inputs)), tuple(map(view, s.outputs))
            steps.append(Step(s.op, inputs, outputs, view(s.where), s.options, s.label))
        else:
            axes = turn_axes(s.axes)
            steps.append(ReduceStep(s.op, view(s.source), view(s.partial), axes, view(s.where), s.label))
    return Loop(shape, steps, loop.report, loop.watched, loop.memo)
