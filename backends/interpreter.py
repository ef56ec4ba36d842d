"""The reference backend: fused loops over cache-sized tiles, each operation of a tile done by NumPy's own ufunc."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from numpy_dist.backends.base import Loop, ReduceStep, Step, Temp
from numpy_dist.backends.scratch import Scratch, assign_slots
from numpy_dist.ir.ops import wants_ascending

# Elements of a tile. It depends on nothing but the local shape, so that sums are formed alike in every tier.
TILE_ELEMENTS = 32768
_NAIVE_FOR_STRIDED_BOOL = frozenset(("isnan", "isinf", "isfinite", "signbit"))


class Interpreter:
    """Executes loops tile by tile."""

    name = "numpy"

    def run(self, loop: Loop) -> None:
        """Execute a loop (see `backends.base.Loop`)."""
        if 0 in loop.shape:
            return
        current = [0]

        def hook(kind: str, flag: int) -> None:
            loop.report(current[0], kind)

        with np.errstate(all="call", call=hook):
            step = loop.steps[0]
            if (
                len(loop.steps) == 1
                and type(step) is Step
                and not _special(step)
                and Temp not in map(type, step.outputs)
            ):
                current[0] = step.label
                step.op.apply(list(step.inputs), step.outputs, step.where, step.options)
            else:
                _run_tiles(_in_memory_order(loop), current)

    def fence(self) -> None:
        """Everything has finished when `run` returns."""


def make() -> Interpreter:
    """A new backend."""
    return Interpreter()


def _special(step: Step) -> bool:
    """Whether NumPy's loops must be kept from some of this step's strides."""
    return any(
        type(x) is np.ndarray and any(s < 0 for s in x.strides) and wants_ascending(step.op, x.dtype)
        for x in step.inputs
    ) or any(_strided_bool(step, out) for out in step.outputs)


def _strided_bool(step: Step, out: Any) -> bool:
    return (
        type(out) is np.ndarray
        and out.dtype.kind == "b"
        and out.ndim > 0
        and out.strides[-1] != 1
        and step.op.name in _NAIVE_FOR_STRIDED_BOOL
    )


def _in_memory_order(loop: Loop) -> Loop:
    """The same loop with its axes ordered by the strides of its first array, so that tiles are rows of memory."""
    ndim = len(loop.shape)
    if ndim < 2:
        return loop
    lead = next((x for s in loop.steps for x in _arrays(s) if x.ndim == ndim and 0 not in x.strides), None)
    if lead is None or all(a >= b for a, b in zip(map(abs, lead.strides), map(abs, lead.strides[1:]), strict=False)):
        return loop
    axes = sorted(range(ndim), key=lambda axis: -abs(lead.strides[axis]))
    place = {axis: position for position, axis in enumerate(axes)}

    def turn(x: Any) -> Any:
        return x.transpose(axes) if type(x) is np.ndarray else x

    steps: list[Step | ReduceStep] = []
    for s in loop.steps:
        if type(s) is Step:
            steps.append(
                Step(s.op, tuple(map(turn, s.inputs)), tuple(map(turn, s.outputs)), turn(s.where), s.options, s.label)
            )
        else:
            assert isinstance(s, ReduceStep)
            reduced = tuple(place[a] for a in s.axes)
            steps.append(ReduceStep(s.op, turn(s.source), turn(s.partial), reduced, turn(s.where), s.label))
    return Loop(tuple(loop.shape[a] for a in axes), steps, loop.report)


def _arrays(step: Step | ReduceStep) -> list[np.ndarray]:
    operands = (*step.outputs, *step.inputs) if type(step) is Step else (step.source,)  # type: ignore[union-attr]
    return [x for x in operands if type(x) is np.ndarray]


def tiles(shape: Sequence[int]) -> Iterator[tuple[slice, ...]]:
    """Cut a local iteration space into tiles of at most `TILE_ELEMENTS` elements: blocks of full rows along one axis.

    Yields
    ------
    tuple of slice
        For the leading axes up to the blocked one; the axes behind it are whole.
    """
    inner = 1
    axis = len(shape) - 1
    while axis > 0 and inner * shape[axis] <= TILE_ELEMENTS:
        inner *= shape[axis]
        axis -= 1
    block = max(1, TILE_ELEMENTS // inner)
    for lead in np.ndindex(*shape[:axis]):
        head = tuple(slice(i, i + 1) for i in lead)
        for start in range(0, shape[axis], block):
            yield (*head, slice(start, min(start + block, shape[axis])))


def _run_tiles(loop: Loop, current: list[int]) -> None:
    if not loop.shape:
        _run_tiles(_with_one_axis(loop), current)
        return
    scratch = Scratch(assign_slots(loop.steps))
    sums: dict[int, list] = {}
    tail = loop.shape
    special = [type(s) is Step and s.op.ufunc is not None and _special(s) for s in loop.steps]
    for where in tiles(loop.shape):
        shape = (*(s.stop - s.start for s in where), *tail[len(where) :])
        temps = scratch.arrays(shape)
        for number, step in enumerate(loop.steps):
            current[0] = step.label
            if type(step) is Step:
                _run_step(step, where, temps, special[number])
            else:
                assert isinstance(step, ReduceStep)
                _reduce_tile(step, where, temps, len(loop.shape), sums.setdefault(number, []))
    for number, parts in sums.items():
        step = loop.steps[number]
        assert isinstance(step, ReduceStep)
        current[0] = step.label
        if parts:
            step.partial[...] = step.op.ufunc.reduce(np.array(parts, step.partial.dtype))  # type: ignore[union-attr]


def _with_one_axis(loop: Loop) -> Loop:
    """A 0-d loop as one over a single element."""

    def lift(x: Any) -> Any:
        return x.reshape(1) if type(x) is np.ndarray else x

    steps: list[Step | ReduceStep] = []
    for s in loop.steps:
        if type(s) is Step:
            steps.append(
                Step(s.op, tuple(map(lift, s.inputs)), tuple(map(lift, s.outputs)), lift(s.where), s.options, s.label)
            )
        else:
            assert isinstance(s, ReduceStep)
            steps.append(ReduceStep(s.op, lift(s.source), lift(s.partial), (0,), lift(s.where), s.label))
    return Loop((1,), steps, loop.report)


def _tile(x: Any, where: tuple[slice, ...], temps: dict[int, np.ndarray]) -> Any:
    kind = type(x)
    if kind is np.ndarray:
        return x[where]
    if kind is Temp:
        return temps[x.index]
    return x


def _run_step(step: Step, where: tuple[slice, ...], temps: dict[int, np.ndarray], special: bool) -> None:
    inputs = [_tile(x, where, temps) for x in step.inputs]
    outputs = tuple([_tile(x, where, temps) for x in step.outputs])
    mask = None if step.where is None else _tile(step.where, where, temps)
    if not special:
        step.op.apply(inputs, outputs, mask, step.options)
        return
    inputs = [np.ascontiguousarray(x) if type(x) is np.ndarray and any(s < 0 for s in x.strides) else x for x in inputs]
    targets = tuple(np.array(x, order="C") if _strided_bool(step, x) else x for x in outputs)
    step.op.apply(inputs, targets, mask, step.options)
    for target, out in zip(targets, outputs, strict=True):
        if target is not out:
            np.copyto(out, target)


def _reduce_tile(
    step: ReduceStep, where: tuple[slice, ...], temps: dict[int, np.ndarray], ndim: int, parts: list
) -> None:
    source = _tile(step.source, where, temps)
    options = {} if step.where is None else {"where": _tile(step.where, where, temps)}
    if step.where is not None and step.op.ufunc.identity is None:  # type: ignore[union-attr]
        options["initial"] = _neutral(step, step.partial.dtype)
    reduce = step.op.ufunc.reduce  # type: ignore[union-attr]
    result = reduce(source, axis=step.axes, dtype=step.partial.dtype, keepdims=True, **options)
    if len(step.axes) == ndim:
        parts.append(result.reshape(())[()])
        return
    region = tuple(slice(0, 1) if axis in step.axes else s for axis, s in enumerate(where))
    target = step.partial[region]
    if all(where[axis].start == 0 for axis in step.axes if axis < len(where)):
        target[...] = result
    else:
        step.op.ufunc(target, result, out=target)  # type: ignore[misc]


def _neutral(step: ReduceStep, dtype: np.dtype) -> Any:
    """A value that leaves `minimum` or `maximum` as it is, for tiles of which the mask selects nothing."""
    largest = step.op.name == "minimum"
    if dtype.kind in "fc":
        return np.array(np.inf if largest else -np.inf, dtype)[()]
    if dtype.kind == "b":
        return np.bool_(largest)
    info = np.iinfo(dtype)
    return np.array(info.max if largest else info.min, dtype)[()]
