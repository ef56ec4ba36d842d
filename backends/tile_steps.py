"""The steps of a loop, prepared once, so that a tile costs little more than NumPy's own calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from numpy_dist.backends.base import ReduceStep, Step, Temp
from numpy_dist.backends.scratch import TileScratch, assign_slots
from numpy_dist.backends.summation import Blocks, Chunks, Leading, loop_type, neutral, tree_of
from numpy_dist.ir.ops import COPY, wants_ascending

if TYPE_CHECKING:
    from numpy_dist.backends.memory import Array
    from numpy_dist.backends.summation import Tree

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


def _is_misread(step: Step, x: object) -> bool:
    """Whether NumPy may take strided elements for contiguous ones.

    The vector loops of ``negative`` compare a stride in elements with a size in bytes (seen in NumPy 2.1 to 2.4, with
    an output that is strided, too).
    """
    if step.op.name != "negative" or type(x) is not np.ndarray:
        return False
    return any(abs(stride) == x.itemsize**2 for stride in x.strides)


def _minds_overlap(step: Step) -> bool:
    """Whether `_overlap` depends on where this step's arrays lie."""
    return step.op.ufunc is not None and any(
        type(x) is np.ndarray and wants_ascending(step.op, x.dtype) for x in step.inputs
    )


def _overlap(step: Step, x: object, out: object) -> bool:
    """Whether an op that depends on it has an output in the memory of another input than the output itself."""
    if type(x) is not np.ndarray or type(out) is not np.ndarray or not wants_ascending(step.op, x.dtype):
        return False
    same = x.strides == out.strides and x.__array_interface__["data"] == out.__array_interface__["data"]
    return not same and np.may_share_memory(x, out)


def _descends(x: object) -> bool:
    return type(x) is np.ndarray and any(s < 0 for s in x.strides)


def _strided_bool(step: Step, out: object) -> bool:
    return (
        type(out) is np.ndarray
        and out.dtype.kind == "b"
        and out.ndim > 0
        and out.strides[-1] != 1
        and step.op.name in _NAIVE_FOR_STRIDED_BOOL
    )


class TileSteps:
    """Runs the steps of a loop on one tile after the other; made once for all loops that differ in their memory only.

    Parameters
    ----------
    steps : sequence of Step or ReduceStep
        What is prepared; of its arrays nothing is kept.
    shape : tuple of int
        The loop's.

    Attributes
    ----------
    current : list of int
        Its one element is the label of the running step.
    lasting : bool
        Whether what was prepared depends on no array's address.
    """

    def __init__(self, steps: Sequence[Step | ReduceStep], shape: tuple[int, ...]) -> None:
        self.current = [0]
        self.lasting = not any(type(s) is Step and _minds_overlap(s) for s in steps)
        self._shape = shape
        given = Given(steps)
        joined = _without_copies(steps)
        self._slots = assign_slots([s for _, s in joined])
        self._temps = list(dict.fromkeys(x.index for _, s in joined for x in _operands(s) if type(x) is Temp))
        count = len(given.arrays)
        self._temp_places = {index: count + number for number, index in enumerate(self._temps)}
        self._scalars = count + len(self._temps)
        self._places = {id(x): number for number, x in enumerate(given.arrays)}
        self._scalar_places = {key: self._scalars + number for number, key in enumerate(given.scalar_keys)}
        self._trees: list[tuple[int, Tree, np.ufunc, np.dtype]] = []  # of reductions, and the numbers of their steps
        self._calls = [
            self._element_wise(s, number) if type(s) is Step else self._reducing(s, number)  # type: ignore[arg-type]
            for number, s in joined
        ]
        self._signature = given.signature
        del self._places
        self._values: Values = []
        self._arrays: list[np.ndarray] = []
        self._sums: list[Chunks | Blocks] = []
        self._steps: Sequence[Step | ReduceStep] = ()
        self._scratch = TileScratch({}, {})
        self._where: tuple[slice, ...] = ()

    def begin(self, steps: Sequence[Step | ReduceStep], shape: tuple[int, ...], memory: dict[int, np.ndarray]) -> bool:
        """Take the arrays and scalars of a loop, and scratch memory; False if something else was prepared."""
        given = Given(steps)
        if shape != self._shape or given.signature != self._signature:
            return False
        self._arrays, self._steps = given.arrays, steps
        self._values = [None] * self._scalars + given.scalars
        self._scratch = TileScratch(self._slots, memory)
        self._sums = [
            Blocks(tree, ufunc, dtype) if isinstance(tree, Leading) else Chunks(tree, ufunc, dtype)
            for _, tree, ufunc, dtype in self._trees
        ]
        return True

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
        for (number, *_), sums in zip(self._trees, self._sums, strict=True):
            step = self._steps[number]
            assert isinstance(step, ReduceStep)
            self.current[0] = step.label
            step.partial[...] = sums.result().reshape(step.partial.shape)

    def end(self) -> None:
        """Let the arrays go."""
        self._values, self._arrays, self._sums, self._steps = [], [], [], ()
        self._scratch = TileScratch({}, {})

    def _place(self, x: object, key: tuple[int, int]) -> int:
        """Where an operand's tile, or a scalar, stands among the values; `key`: the numbers of its step and its own."""
        if type(x) is np.ndarray:
            return self._places[id(x)]
        if type(x) is Temp:
            return self._temp_places[x.index]
        return self._scalar_places[key]

    def _element_wise(self, step: Step, number: int) -> Callable[[Values], None]:
        inputs = [self._place(x, (number, k)) for k, x in enumerate(step.inputs)]
        outputs = [self._place(x, (number, -1)) for x in step.outputs]
        where = None if step.where is None else self._place(step.where, (number, len(step.inputs)))
        current, label, op, options = self.current, step.label, step.op, step.options
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
        current, label, op, options = self.current, step.label, step.op, step.options

        def call(values: Values) -> None:
            current[0] = label
            # A copy also of a single element, which would keep its stride in `ascontiguousarray`.
            given = zip((values[i] for i in inputs), shared, strict=True)
            tiles = [np.array(x, order="C") if apart or _descends(x) else x for x, apart in given]
            outs = [values[i] for i in outputs]
            targets = tuple(np.array(x, order="C") if way else x for x, way in zip(outs, careful, strict=True))
            op.apply(tiles, targets, None if where is None else values[where], options)
            for target, out in zip(targets, outs, strict=True):
                if target is not out:
                    np.copyto(out, target)

        return call

    def _reducing(self, step: ReduceStep, number: int) -> Callable[[Values], None]:
        """Masked elements are taken for the neutral one."""
        source = self._place(step.source, (number, 0))
        where = None if step.where is None else self._place(step.where, (number, 1))
        ufunc, dtype, current, label = _ufunc(step), step.partial.dtype, self.current, step.label
        rest = None if where is None else neutral(ufunc, dtype)
        loses_parts = dtype.kind in "iuf"  # where elements are complex, which the user was warned of
        truths = where is not None and dtype.kind == "b"
        axes = step.axes

        def tile(values: Values) -> Array:
            current[0] = label
            found = values[source]
            if loses_parts and found.dtype.kind == "c":
                found = found.real
            if truths and found.dtype.kind not in "biufc":  # no common dtype with the neutral one
                found = found.astype(dtype)
            return found if where is None else np.where(values[where], found, rest)

        tree = tree_of(self._shape, axes)
        if tree is not None:
            which = len(self._trees)
            self._trees.append((number, tree, ufunc, dtype))
            return lambda values: self._sums[which].feed(tile(values))

        def call(values: Values) -> None:
            whole = ufunc.reduce(tile(values), axis=axes, dtype=loop_type(dtype), keepdims=True)
            _accumulate(self._steps[number], whole, self._where)  # type: ignore[arg-type]

        return call


class Given:
    """The operands of a loop, and all else that the preparation of its steps depends on.

    Attributes
    ----------
    arrays : list of ndarray
        In the order in which they first appear.
    scalars : list
    scalar_keys : list of (int, int)
        For each scalar the number of its step and of its operand.
    signature : list
        The same for loops for which the same is prepared.
    """

    def __init__(self, steps: Sequence[Step | ReduceStep]) -> None:
        self.arrays: list[np.ndarray] = []
        self.scalars: list[object] = []
        self.scalar_keys: list[tuple[int, int]] = []
        self.signature: list[object] = []
        places: dict[int, int] = {}
        note = self.signature.append
        for number, s in enumerate(steps):
            note((s.op, s.label, s.options if type(s) is Step else (s.axes, s.partial.dtype)))  # type: ignore[union-attr]
            for k, x in enumerate((*s.inputs, s.where, *s.outputs) if type(s) is Step else (s.source, s.where)):  # type: ignore[union-attr]
                kind = type(x)
                if kind is np.ndarray:
                    place = places.get(id(x))
                    if place is None:
                        place = places[id(x)] = len(self.arrays)
                        self.arrays.append(x)
                    note(place)
                elif kind is Temp:
                    note(x)
                else:
                    note(kind)
                    if x is not None:
                        self.scalars.append(x)
                        self.scalar_keys.append((number, k))
        self.signature += [(x.strides, x.dtype) for x in self.arrays]


# Of these, NumPy's loops make the same bits whatever the strides of their output.
_EXACT = frozenset(("add", "subtract", "multiply", "divide"))


def _without_copies(steps: Sequence[Step | ReduceStep]) -> list[tuple[int, Step | ReduceStep]]:
    """The same steps with their numbers, where a result that is only copied into an array is computed there."""
    found: list[tuple[int, Step | ReduceStep]] = []
    reads: dict[Temp, int] = {}
    for s in steps:
        for x in (*s.inputs, s.where) if type(s) is Step else (s.source, s.where):  # type: ignore[union-attr]
            if type(x) is Temp:
                reads[x] = reads.get(x, 0) + 1
    for number, s in enumerate(steps):
        made = _joined(found[-1][1], s, reads) if found else None
        if made is None:
            found.append((number, s))
        else:
            found[-1] = found[-1][0], made
    return found


def _joined(first: Step | ReduceStep, copy: Step | ReduceStep, reads: dict[Temp, int]) -> Step | None:
    """A step that does what two steps do, of which the second copies the result of the first; None if none can."""
    if type(first) is not Step or type(copy) is not Step or copy.op is not COPY or first.op.name not in _EXACT:
        return None
    (result,), (out,), (source,) = first.outputs, copy.outputs, copy.inputs
    if source is not result or type(source) is not Temp or reads[source] != 1 or type(out) is not np.ndarray:
        return None
    if first.where is not None or first.options or copy.where is not None or copy.options:
        return None
    if out.dtype != source.dtype or source.dtype.kind not in "iuf":
        return None
    made = Step(first.op, first.inputs, (out,), None, first.options, first.label)
    return None if is_special(made) else made


def _operands(step: Step | ReduceStep) -> tuple:
    if isinstance(step, Step):
        return (*step.inputs, *step.outputs, step.where)
    return step.source, step.where


def _ufunc(step: ReduceStep) -> np.ufunc:
    ufunc = step.op.ufunc
    assert ufunc is not None
    return ufunc


def _accumulate(step: ReduceStep, result: np.ndarray, where: tuple[slice, ...]) -> None:
    """Fold a tile's result into the partial result; the first tile of each part is its start."""
    target = step.partial[tuple(slice(0, 1) if axis in step.axes else s for axis, s in enumerate(where))]
    if all(where[axis].start == 0 for axis in step.axes if axis < len(where)):
        target[...] = result
    else:
        _ufunc(step)(target, result, out=target)
