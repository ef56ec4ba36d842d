"""The axes of a loop in the order in which memory is walked."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from numpy_dist.backends.base import Loop, ReduceStep, Step, arrays_of
from numpy_dist.backends.geometry import merged

if TYPE_CHECKING:
    from numpy_dist.backends.memory import Array

T = TypeVar("T")

SHORT, LONG = 6, 64  # elements of rows that cost more to begin than to compute, and of those that do not


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


def with_long_rows(loop: Loop) -> Loop:
    """The same loop with its short rows, as of points' coordinates, turned into a few long ones across them.

    Parameters
    ----------
    loop : Loop
        With its axes in memory order.
    """
    if loop.shape[-1] > SHORT or any(isinstance(step, ReduceStep) for step in loop.steps):
        return loop
    strides = [x.strides for x in arrays_of(loop)]
    space, ndim = merged(loop.shape, strides), len(loop.shape)
    if len(space.shape) == 1 or space.shape[-1] > SHORT:
        return loop
    first = next(axis for axis in reversed(range(ndim)) if prod(loop.shape[axis:]) == space.shape[-1])
    order = (*range(first, ndim), *range(first))
    shape = tuple(loop.shape[axis] for axis in order)
    if merged(shape, [[row[axis] for axis in order] for row in strides]).shape[-1] < LONG:
        return loop
    return _turned(loop, shape, lambda x: x.transpose(order), lambda axes: axes, _is_ndarray)


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
