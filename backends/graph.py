"""The graph of a loop: its operations over numbered values, which the emitters of kernels write in their languages.

A loop (`base.Loop`) names arrays, which its steps read and overwrite. In its graph each step makes new values, arrays
over the same elements are one operand, scalars have the dtype in which they are used, and what no kernel can do is
refused, whatever the processor.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from numpy_dist.backends.base import Loop, ReduceStep, Step, Temp
from numpy_dist.backends.operations import Unsupported
from numpy_dist.backends.summation import Tree, tree_of
from numpy_dist.ir.ops import COPY, SELECT, Op
from numpy_dist.ir.rules import loop_dtypes, scalar_kind

if TYPE_CHECKING:
    from numpy_dist.backends.memory import Array

__all__ = ["Graph", "OperationNode", "Ref", "ReductionNode", "UnfitScalar", "Unsupported", "build"]

_OPTIONS = frozenset(("dtype", "signature", "casting"))

# ("a", operand as it was before the loop), ("v", value that the loop computes), ("s", scalar)
Ref = tuple[str, int]


class UnfitScalar(Unsupported):
    """A loop has no kernel for the present value of a scalar; it may have one for another."""


@dataclass(frozen=True)
class OperationNode:
    """One operation on values.

    Attributes
    ----------
    op : Op
    dtypes : tuple of dtype
        Those in which it is computed, of inputs and outputs.
    inputs : tuple of Ref
    sources : tuple of dtype
        Those of the inputs before they are cast.
    outputs : tuple of int
        Values.
    targets : tuple of dtype
        Those to which the outputs are cast.
    where : Ref or None
        A mask.
    olds : tuple of (Ref or None)
        For each output the value that stays where the mask is false; without one it does not matter there.
    """

    op: Op
    dtypes: tuple[np.dtype, ...]
    inputs: tuple[Ref, ...]
    sources: tuple[np.dtype, ...]
    outputs: tuple[int, ...]
    targets: tuple[np.dtype, ...]
    where: Ref | None
    olds: tuple[Ref | None, ...]


@dataclass(frozen=True)
class ReductionNode:
    """A reduction of a value, which is not cast yet, where a mask is true."""

    step: ReduceStep
    source: Ref
    dtype: np.dtype
    where: Ref | None


class Graph:
    """See the module.

    Attributes
    ----------
    arrays : list
        The operands.
    scalars : list of ndarray
        Without axes.
    scalar_places : list of (int, int)
        For each scalar the numbers of its step and input.
    nodes : list of OperationNode or ReductionNode
    stores : dict of int to Ref
        Operands that are written, and their values after the loop.
    reads : set of int
        Operands that are read as they were before the loop.
    tree : Trailing, Leading or None
        How reductions are put together.
    """

    def __init__(self, tree: Tree | None) -> None:
        self.arrays: list[Array] = []
        self.scalars: list[np.ndarray] = []
        self.scalar_places: list[tuple[int, int]] = []
        self.nodes: list[OperationNode | ReductionNode] = []
        self.stores: dict[int, Ref] = {}
        self.reads: set[int] = set()
        self.tree = tree


def build(loop: Loop, is_array: Callable[[object], bool], place_of: Callable[[Array], Hashable]) -> Graph:
    """The graph of a loop.

    Parameters
    ----------
    loop : Loop
    is_array : callable
        Tells arrays from scalars.
    place_of : callable
        Identifies the elements of an array: the same for arrays over the same memory.

    Raises
    ------
    Unsupported
    """
    builder = _Builder(Graph(_tree(loop)), is_array, place_of)
    for number, step in enumerate(loop.steps):
        if isinstance(step, Step):
            builder.add_operation(number, step)
        else:
            builder.add_reduction(step)
    return builder.graph


class _Builder:
    """The graph so far, and where arrays and temporaries stand in it."""

    def __init__(self, graph: Graph, is_array: Callable[[object], bool], place_of: Callable[[Array], Hashable]) -> None:
        self.graph, self._is_array, self._place_of = graph, is_array, place_of
        self._known: dict[int, int] = {}  # operands by the arrays' identities
        self._operands: dict[Hashable, int] = {}
        self._temps: dict[int, Ref] = {}
        self._values = 0

    def add_operation(self, number: int, step: Step) -> None:
        if not _OPTIONS.issuperset(step.options):
            raise Unsupported("a ufunc with such options")
        dtypes = self._dtypes(step)
        inputs, sources = [], []
        for position, (x, dtype) in enumerate(zip(step.inputs, dtypes, strict=False)):
            if self._has_elements(x):
                inputs.append(self._read(x))
                sources.append(x.dtype)
            else:
                inputs.append(self._scalar(x, dtype, (number, position)))
                sources.append(dtype)
        where = self._mask(step.where)
        olds = tuple(None if where is None else self._old(out) for out in step.outputs)
        targets = tuple(out.dtype for out in step.outputs)
        outputs = tuple(self._write(out) for out in step.outputs)
        node = OperationNode(step.op, dtypes, tuple(inputs), tuple(sources), outputs, targets, where, olds)
        self.graph.nodes.append(node)

    def add_reduction(self, step: ReduceStep) -> None:
        source = self._read(step.source)
        self.graph.nodes.append(ReductionNode(step, source, step.source.dtype, self._mask(step.where)))

    def _has_elements(self, x: object) -> bool:
        return type(x) is Temp or self._is_array(x)

    def _dtypes(self, step: Step) -> tuple[np.dtype, ...]:
        """The dtypes of inputs and outputs in which an operation is computed."""
        ufunc = step.op.ufunc
        if ufunc is None:
            out = step.outputs[0].dtype
            if step.op is COPY and self._has_elements(step.inputs[0]):
                return step.inputs[0].dtype, out
            first = (np.dtype(bool),) if step.op is SELECT else ()
            return *first, *(out,) * (len(step.inputs) - len(first)), out
        if any(out.dtype.kind not in "biufc" for out in step.outputs):
            raise Unsupported(f"{step.op.name} of other things than numbers")
        kinds = tuple(x.dtype if self._has_elements(x) else scalar_kind(x) for x in step.inputs)
        for x, kind in zip(step.inputs, kinds, strict=True):
            if kind is int and any(_outside(x, other) for other in kinds):
                raise UnfitScalar("a Python int that its operand's dtype can not hold")
        signature = step.options.get("signature")
        if "dtype" in step.options:
            signature = (None,) * ufunc.nin + (step.options["dtype"],) * ufunc.nout
        casting = step.options.get("casting", "same_kind")
        return loop_dtypes(ufunc, (*kinds, *(None,) * ufunc.nout), casting, signature)

    def _operand(self, x: Array) -> int:
        """The number of an operand. Arrays over the same elements are one: it may be read, and written later on."""
        number = self._known.get(id(x))
        if number is None:
            arrays = self.graph.arrays
            number = self._known[id(x)] = self._operands.setdefault(self._place_of(x), len(arrays))
            if number == len(arrays):
                arrays.append(x)
        return number

    def _read(self, x: Array | Temp) -> Ref:
        """The present value of an array or temporary."""
        if type(x) is Temp:
            return self._temps[x.index]
        number = self._operand(x)
        found = self.graph.stores.get(number)
        if found is None:
            self.graph.reads.add(number)
            found = "a", number
        return found

    def _old(self, out: Array | Temp) -> Ref | None:
        """What stays where a mask is false; None for a new result, which is undefined there."""
        return self._temps.get(out.index) if type(out) is Temp else self._read(out)

    def _mask(self, where: Array | Temp | None) -> Ref | None:
        if where is None:
            return None
        if where.dtype != bool:
            raise Unsupported("a mask that is not bool")
        return self._read(where)

    def _scalar(self, value: object, dtype: np.dtype, place: tuple[int, int]) -> Ref:
        with np.errstate(all="ignore", over="raise"):  # the interpreter reports that a Python float does not fit
            try:
                typed = np.array(value, dtype) if type(value) is int else np.array(value).astype(dtype)
            except FloatingPointError:
                raise UnfitScalar("a Python float that its operand's dtype can not hold") from None
            except OverflowError:
                raise UnfitScalar("a Python int that its operand's dtype can not hold") from None
        self.graph.scalars.append(typed)
        self.graph.scalar_places.append(place)
        return "s", len(self.graph.scalars) - 1

    def _write(self, out: Array | Temp) -> int:
        """A new value for what a step writes."""
        number = self._values
        self._values += 1
        if type(out) is Temp:
            self._temps[out.index] = "v", number
        else:
            self.graph.stores[self._operand(out)] = "v", number
        return number


def _tree(loop: Loop) -> Tree | None:
    trees = {tree_of(loop.shape, step.axes) for step in loop.steps if isinstance(step, ReduceStep)}
    if len(trees) > 1:
        raise Unsupported("reductions along several sets of axes")
    if None in trees:
        raise Unsupported("reductions along axes with others between them")
    return trees.pop() if trees else None


def _outside(value: int, other: object) -> bool:
    if not isinstance(other, np.dtype) or other.kind not in "iu":
        return False
    limits = np.iinfo(other)
    return not limits.min <= value <= limits.max
