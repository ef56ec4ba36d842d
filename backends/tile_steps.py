"""The steps of a loop, prepared once, so that a tile costs little more than NumPy's own calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numpy_dist.backends.base import ReduceStep, Step, Temp
from numpy_dist.backends.scratch import TileScratch, assign_slots
from numpy_dist.backends.summation import Blocks, Chunks, Leading, neutral, tree_of
from numpy_dist.ir.ops import wants_ascending

Values = list[Any]
_NAIVE_FOR_STRIDED_BOOL = frozenset(("isnan", "isinf", "isfinite", "signbit"))


def is_special(step: Step) -> bool:
    """Whether NumPy's loops must be kept from some of this step's strides."""
    return step.op.ufunc is not None and (
        any(_descends(x) and wants_ascending(step.op, x.dtype) for x in (*step.inputs, *step.outputs))
        or any(_is_misread(step, x) for x in step.inputs)
        or any(_strided_bool(step, out) for out in step.outputs)
        or any(_overlap(step, x, out) for x in step.inputs for out in step.outputs)
    )


def _is_misread(step: Step, x: Any) -> bool:
    """Whether NumPy may take strided elements for contiguous ones.

    The vector loops of ``negative`` compare a stride in elements with a size in bytes (seen in NumPy 2.1 to 2.4, with
    an output that is strided, too).
    """
    if step.op.name != "negative" or type(x) is not np.ndarray:
        return False
    return any(abs(stride) == x.itemsize**2 for stride in x.strides)


def _overlap(step: Step, x: Any, out: Any) -> bool:
    """Whether an op that depends on it has an output in the memory of another input than the output itself."""
    if type(x) is not np.ndarray or type(out) is not np.ndarray or not wants_ascending(step.op, x.dtype):
        return False
    same = x.strides == out.strides and x.__array_interface__["data"] == out.__array_interface__["data"]
    return not same and np.may_share_memory(x, out)


def _descends(x: Any) -> bool:
    return type(x) is np.ndarray and any(s < 0 for s in x.strides)


def _strided_bool(step: Step, out: Any) -> bool:
    return (
        type(out) is np.ndarray
        and out.dtype.kind == "b"
        and out.ndim > 0
        and out.strides[-1] != 1
        and step.op.name in _NAIVE_FOR_STRIDED_BOOL
    )


class TileSteps:
    """Runs the steps of a loop on one tile after the other.

    Parameters
    ----------
    steps : sequence of Step or ReduceStep
    shape : tuple of int
        The loop's.
    current : list of int
        Its one element is kept at the label of the running step.
    """

    def __init__(self, steps: Sequence[Step | ReduceStep], shape: tuple[int, ...], current: list[int]) -> None:
        self._arrays: list[np.ndarray] = []
        self._places: dict[Any, int] = {}
        self._scratch = TileScratch(assign_slots(steps))
        self._current = current
        self._shape = shape
        operands = [x for s in steps for x in _operands(s)]
        for x in operands:
            if type(x) is np.ndarray and id(x) not in self._places:
                self._places[id(x)] = len(self._arrays)
                self._arrays.append(x)
        self._temps: list[int] = []
        for x in operands:
            if type(x) is Temp and x not in self._places:
                self._places[x] = len(self._arrays) + len(self._temps)
                self._temps.append(x.index)
        self._values: Values = [None] * (len(self._arrays) + len(self._temps))
        self._sums: list[tuple[ReduceStep, Chunks | Blocks]] = []
        self._calls = [self._element_wise(s) if type(s) is Step else self._reducing(s) for s in steps]  # type: ignore[arg-type]

    def run(self, where: tuple[slice, ...], shape: tuple[int, ...]) -> None:
        """Run all steps on the tile at `where`, of this shape."""
        values, count = self._values, len(self._arrays)
        values[:count] = [x[where] for x in self._arrays]
        if self._temps:
            temps = self._scratch.arrays(shape)
            values[count : count + len(self._temps)] = [temps[index] for index in self._temps]
        self._where = where
        for call in self._calls:
            call(values)

    def finish(self) -> None:
        """Combine the partial results of reductions along a tree."""
        for step, sums in self._sums:
            self._current[0] = step.label
            step.partial[...] = sums.result().reshape(step.partial.shape)

    def _place(self, x: Any) -> int:
        """Where an operand's tile stands among the values; scalars stand there for good."""
        if type(x) is np.ndarray:
            return self._places[id(x)]
        if type(x) is Temp:
            return self._places[x]
        self._values.append(x)
        return len(self._values) - 1

    def _element_wise(self, step: Step) -> Callable[[Values], None]:
        inputs = [self._place(x) for x in step.inputs]
        outputs = [self._place(x) for x in step.outputs]
        where = None if step.where is None else self._place(step.where)
        current, label, op, options = self._current, step.label, step.op, step.options
        if is_special(step):
            return self._cautious(step, inputs, outputs, where)
        plain = where is None and not options and len(outputs) == 1 and len(inputs) <= 2
        if op.ufunc is not None and op.direct and plain and not any(type(x) is int for x in step.inputs):
            ufunc, first, last, (out,) = op.ufunc, inputs[0], inputs[-1], outputs
            if len(inputs) == 1:

                def unary(values: Values) -> None:
                    current[0] = label
                    ufunc(values[first], out=values[out])

                return unary

            def binary(values: Values) -> None:
                current[0] = label
                ufunc(values[first], values[last], out=values[out])

            return binary

        def general(values: Values) -> None:
            current[0] = label
            mask = None if where is None else values[where]
            op.apply([values[i] for i in inputs], tuple([values[i] for i in outputs]), mask, options)

        return general

    def _cautious(
        self, step: Step, inputs: list[int], outputs: list[int], where: int | None
    ) -> Callable[[Values], None]:
        """Inputs are copied into ascending tiles; strided bool and descending outputs are written by way of a copy."""
        careful = [_strided_bool(step, x) or _descends(x) for x in step.outputs]
        shared = [_is_misread(step, x) or any(_overlap(step, x, out) for out in step.outputs) for x in step.inputs]

        def call(values: Values) -> None:
            self._current[0] = step.label
            # A copy also of a single element, which would keep its stride in `ascontiguousarray`.
            given = zip((values[i] for i in inputs), shared, strict=True)
            tiles = [np.array(x, order="C") if apart or _descends(x) else x for x, apart in given]
            outs = [values[i] for i in outputs]
            targets = tuple(np.array(x, order="C") if way else x for x, way in zip(outs, careful, strict=True))
            step.op.apply(tiles, targets, None if where is None else values[where], step.options)
            for target, out in zip(targets, outs, strict=True):
                if target is not out:
                    np.copyto(out, target)

        return call

    def _reducing(self, step: ReduceStep) -> Callable[[Values], None]:
        """Masked elements are taken for the neutral one."""
        source = self._place(step.source)
        where = None if step.where is None else self._place(step.where)
        ufunc, dtype, current, label = _ufunc(step), step.partial.dtype, self._current, step.label
        rest = None if where is None else neutral(ufunc, dtype)
        loses_parts = dtype.kind in "iuf"  # where elements are complex, which the user was warned of

        def tile(values: Values) -> Any:
            current[0] = label
            found = values[source]
            if loses_parts and found.dtype.kind == "c":
                found = found.real
            return found if where is None else np.where(values[where], found, rest)

        tree = tree_of(self._shape, step.axes)
        if tree is not None:
            sums = Blocks(tree, ufunc, dtype) if isinstance(tree, Leading) else Chunks(tree, ufunc, dtype)
            self._sums.append((step, sums))
            return lambda values: sums.feed(tile(values))

        def call(values: Values) -> None:
            _accumulate(
                step, ufunc.reduce(tile(values), axis=step.axes, dtype=_loop_type(dtype), keepdims=True), self._where
            )

        return call


def _operands(step: Step | ReduceStep) -> tuple:
    if isinstance(step, Step):
        return (*step.inputs, *step.outputs, step.where)
    return step.source, step.where


def _ufunc(step: ReduceStep) -> np.ufunc:
    ufunc = step.op.ufunc
    assert ufunc is not None
    return ufunc


def _loop_type(dtype: np.dtype) -> Any:
    """What asks a reduction for a loop: a type, without byte order; units of time are the operand's own."""
    return dtype.type if dtype.kind in "biufc" else None


def _accumulate(step: ReduceStep, result: np.ndarray, where: tuple[slice, ...]) -> None:
    """Fold a tile's result into the partial result; the first tile of each part is its start."""
    target = step.partial[tuple(slice(0, 1) if axis in step.axes else s for axis, s in enumerate(where))]
    if all(where[axis].start == 0 for axis in step.axes if axis < len(where)):
        target[...] = result
    else:
        _ufunc(step)(target, result, out=target)
