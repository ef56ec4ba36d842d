"""The form of a loop: all that its kernel's source depends on, and what fills the kernel's arguments.

A form is hashable and says nothing of addresses, extents, strides of outer axes, or values of scalars.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from numpy_dist.backends.base import Loop, ReduceStep
from numpy_dist.backends.compiled import inner_loops
from numpy_dist.backends.compiled.casts import NUMBA, cast
from numpy_dist.backends.compiled.pairwise import adds_pairwise
from numpy_dist.backends.geometry import merged
from numpy_dist.backends.graph import OperationNode, ReductionNode, Ref, Unsupported, build
from numpy_dist.backends.operations import row_of
from numpy_dist.backends.summation import Leading, Trailing, Tree, initial_of, neutral
from numpy_dist.ir.ops import COPY, SELECT, Op

if TYPE_CHECKING:
    import numpy.typing as npt

NEAREST = 16  # elements: arrays that lie at most so far apart in one allocation share a row pointer

# Chooses between an input and a harmless value, by a mask that nothing else is compared with.
GUARD = Op("guard", 3, 1, SELECT.apply)


@dataclass(frozen=True)
class OperandForm:
    """An array of the loop.

    Attributes
    ----------
    kind : str
        Type of its elements.
    inner : str
        How it lies along the inner axis: "c" contiguous ascending, "0" one element for all, "s" with a stride.
    base, shift : int
        The operand whose row pointer it uses, and the distance from it in elements.
    """

    kind: str
    inner: str
    base: int
    shift: int


@dataclass(frozen=True)
class Node:
    """One operation on values.

    Attributes
    ----------
    op : Op
    kinds : tuple of str
        Types of the NumPy loop, inputs and outputs.
    dtypes : tuple of dtype
        The same as NumPy's dtypes.
    inputs : tuple of Ref
    sources : tuple of str
        Types of the inputs before they are cast to the loop's.
    outputs : tuple of int
        Values.
    targets : tuple of str
        Their types.
    where, old : Ref or None
        A mask, and the value that stays where it is false; without such a value it does not matter there.
    """

    op: Op
    kinds: tuple[str, ...]
    dtypes: tuple[np.dtype, ...]
    inputs: tuple[Ref, ...]
    sources: tuple[str, ...]
    outputs: tuple[int, ...]
    targets: tuple[str, ...]
    where: Ref | None = None
    old: Ref | None = None

    @property
    def native(self) -> bool:
        """Whether machine code computes it; else NumPy's inner loop is called."""
        if self.op is COPY or self.op is GUARD:
            return True
        return row_of(self.op).written(self.kinds[: self.op.nin]).numba is not None

    def text(self, args: list[str]) -> str | None:
        """Its expression, for arguments of the loop's types."""
        if self.op is COPY:
            return cast(args[0], self.kinds[0], self.kinds[1])
        if self.op is GUARD:
            return f"choose({args[0]}, {args[1]}, {args[2]}, zero, nought)"
        return native_text(self.op, self.kinds[: self.op.nin], args)


def native_text(op: Op | np.ufunc, kinds: tuple[str, ...], args: list[str]) -> str | None:
    """The expression of an operation on inputs of these types; None if machine code does not compute it."""
    text = row_of(op).written(kinds).numba
    return None if text is None else text.format(*args, t=NUMBA[kinds[0]])


@dataclass(frozen=True)
class ReductionForm:
    """A reduction of chunks, or rows, of a value by NumPy's loop, or by native code that leaves the same bits."""

    ufunc: np.ufunc
    kind: str
    dtype: np.dtype
    source: Ref
    starts_with_first: bool  # as NumPy does for want of a neutral element
    native: bool


@dataclass(frozen=True)
class Form:
    """The loop nest of a kernel: what units of work consist of.

    `outer` counts the outer axes. `pieces`: a unit of work may lie in several rows; `rows`: reductions put rows
    together, which a unit has some of. `across`: units of all rows at the same place follow each other.
    """

    outer: int
    pieces: bool
    operands: tuple[OperandForm, ...]
    scalars: tuple[str, ...]
    nodes: tuple[Node, ...]
    stores: tuple[tuple[int, Ref], ...]  # (operand, its value after the loop)
    staged: frozenset[int]  # operands that are read, too: stored in a pass of their own
    folds: tuple[ReductionForm, ...]
    rows: bool = False
    across: bool = False


@dataclass
class Lowered:
    """A loop's form and arguments."""

    form: Form
    shape: tuple[int, ...]
    arrays: list[np.ndarray]
    strides: tuple[tuple[int, ...], ...]
    scalars: list[np.ndarray]
    scalar_places: list[tuple[int, int] | None]  # step and input that a scalar comes from
    tree: Tree | None
    reductions: list[ReduceStep] = field(default_factory=list)


def kind_of(dtype: np.dtype) -> str:
    """The type name of a dtype that kernels know."""
    name = f"{dtype.kind}{dtype.itemsize}"
    if name not in NUMBA or not dtype.isnative:
        raise Unsupported(f"elements of dtype {dtype}")
    return name


def lower(loop: Loop, across: bool = False) -> Lowered:
    """The form and the arguments of a loop whose axes are in memory order; `across`: as `axes.with_long_rows` made it.

    Raises
    ------
    Unsupported
    """
    return _FormLowering(loop).result(across)


def _is_array(x: object) -> bool:
    return isinstance(x, np.ndarray)


def _place_of(x: np.ndarray) -> tuple:
    return x.ctypes.data, x.strides, x.dtype


class _FormLowering:
    """The nodes of a kernel for the nodes of a graph: with guards, casts that NumPy's inner loops want, and folds."""

    def __init__(self, loop: Loop) -> None:
        self.shape = loop.shape
        self.graph = build(loop, _is_array, _place_of)
        self.scalars = list(self.graph.scalars)
        self.scalar_places: list[tuple[int, int] | None] = [*self.graph.scalar_places]
        self.nodes: list[Node] = []
        self.count = 0  # of values
        self.values: dict[int, int] = {}  # by the graph's
        self.guarded: dict[tuple[Ref, Ref, int], Ref] = {}
        self.folds: list[ReductionForm] = []
        self.reductions: list[ReduceStep] = []

    def result(self, across: bool) -> Lowered:
        graph = self.graph
        for node in graph.nodes:
            if isinstance(node, OperationNode):
                self._operation(node)
            else:
                self._reduction(node)
        stores = tuple(sorted((number, self._ref(ref)) for number, ref in graph.stores.items()))
        self._check_used(stores)
        tree, rows = graph.tree, isinstance(graph.tree, Leading)
        wall = graph.tree.end if isinstance(graph.tree, Leading) else 0
        space = merged(self.shape, [x.strides for x in graph.arrays], wall)
        operands = self._operands([s[-1] for s in space.strides])
        staged = frozenset(number for number, _ in stores if number in graph.reads)
        pieces = isinstance(tree, Trailing) and not tree.within_rows(space.shape[-1])
        form = Form(
            len(space.shape) - 1,
            pieces,
            operands,
            tuple(kind_of(x.dtype) for x in self.scalars),
            tuple(self.nodes),
            stores,
            staged,
            tuple(self.folds),
            rows,
            across,
        )
        return Lowered(
            form, space.shape, graph.arrays, space.strides, self.scalars, self.scalar_places, tree, self.reductions
        )

    # -- operands ---------------------------------------------------------------------------------------------------

    def _ref(self, ref: Ref) -> Ref:
        """What the graph refers to."""
        return ("v", self.values[ref[1]]) if ref[0] == "v" else ref

    def _constant(self, value: object, dtype: np.dtype) -> Ref:
        self.scalars.append(np.array(value, dtype))
        self.scalar_places.append(None)
        return "s", len(self.scalars) - 1

    def _value(self) -> int:
        self.count += 1
        return self.count - 1

    def _written(self, number: int) -> int:
        """The value of one that the graph has."""
        found = self.values[number] = self._value()
        return found

    def _operands(self, inner: list[int]) -> tuple[OperandForm, ...]:
        made: list[OperandForm] = []
        arrays = self.graph.arrays
        rows = [x.strides for x in arrays]
        written = set(self.graph.stores)
        for number, x in enumerate(arrays):
            kind, size = kind_of(x.dtype), x.dtype.itemsize
            lies = "c" if inner[number] == size else "0" if inner[number] == 0 else "s"
            base, shift = number, 0
            if lies == "c" and number not in written:
                for other in range(number):
                    distance = x.ctypes.data - arrays[other].ctypes.data
                    if (
                        made[other].base == other
                        and other not in written
                        and arrays[other].base is x.base
                        and x.base is not None
                        and rows[other] == rows[number]
                        and made[other].kind == kind
                        and distance % size == 0
                        and abs(distance) <= NEAREST * size
                    ):
                        base, shift = other, distance // size
                        break
            made.append(OperandForm(kind, lies, base, shift))
        return tuple(made)

    # -- operations -------------------------------------------------------------------------------------------------

    def _operation(self, node: OperationNode) -> None:
        op, row = node.op, row_of(node.op)
        if node.where is not None and row.not_masked and node.targets[0].kind == "f":
            raise Unsupported(row.not_masked)
        if (reason := row.why_not_called(node.dtypes[0].kind)) is not None:
            raise Unsupported(reason)
        names, sources = tuple(map(kind_of, node.dtypes)), tuple(map(kind_of, node.sources))
        targets = tuple(map(kind_of, node.targets))
        inputs = [self._ref(ref) for ref in node.inputs]
        where = None if node.where is None else self._ref(node.where)
        olds = [None if old is None else self._ref(old) for old in node.olds]
        native = Node(op, names, node.dtypes, (), (), (), ()).native
        if not native and (op.ufunc is None or inner_loops.find(op.ufunc, node.dtypes) is None):
            raise Unsupported(f"{op.name} of {', '.join(names[: op.nin])}")
        if where is not None and (not native or _may_raise(op, (*sources, *names))):
            inputs = [self._guarded(op, where, *x) for x in zip(inputs, sources, strict=True)]
        if native:
            outputs = tuple(map(self._written, node.outputs))
            self.nodes.append(Node(op, names, node.dtypes, tuple(inputs), sources, outputs, targets, where, *olds))
            return
        inputs = [self._converted(*x) for x in zip(inputs, sources, names, strict=False)]
        made = names[op.nin :]
        as_they_are = made == targets and where is None
        outputs = tuple(self._written(n) if as_they_are else self._value() for n in node.outputs)
        self.nodes.append(Node(op, names, node.dtypes, tuple(inputs), names[: op.nin], outputs, made))
        if not as_they_are:
            for value, name, target, number, old in zip(outputs, made, targets, node.outputs, olds, strict=True):
                self._cast(("v", value), name, target, self._written(number), where, old)

    def _guarded(self, op: Op, where: Ref, ref: Ref, kind: str) -> Ref:
        """An input with a harmless value where a mask is false: NumPy computes nothing there, and reports nothing."""
        number = row_of(op).harmless
        key = (where, ref, number)
        if key not in self.guarded:
            kinds = ("b1", kind, kind, kind)
            inputs = (where, ref, self._constant(number, np.dtype(kind)))
            value = self._value()
            self.nodes.append(Node(GUARD, kinds, (), inputs, kinds[:3], (value,), (kind,)))
            self.guarded[key] = ("v", value)
        return self.guarded[key]

    def _converted(self, ref: Ref, source: str, target: str) -> Ref:
        """A value in the type that a loop of NumPy's wants."""
        if source == target:
            return ref
        value = self._value()
        self._cast(ref, source, target, value)
        return "v", value

    def _cast(
        self, ref: Ref, source: str, target: str, value: int, where: Ref | None = None, old: Ref | None = None
    ) -> None:
        kinds = (source, target)
        self.nodes.append(Node(COPY, kinds, (), (ref,), (source,), (value,), (target,), where, old))

    # -- reductions -------------------------------------------------------------------------------------------------

    def _reduction(self, node: ReductionNode) -> None:
        step = node.step
        ufunc, dtype = step.op.ufunc, step.partial.dtype
        assert ufunc is not None
        if inner_loops.find(ufunc, (dtype,) * 3) is None:
            raise Unsupported(f"{step.op.name}.reduce of {dtype}")
        kind, source, source_kind = kind_of(dtype), self._ref(node.source), kind_of(node.dtype)
        if node.where is not None:
            rest, value = self._constant(neutral(ufunc, dtype), dtype), self._value()
            kinds, sources = ("b1", kind, kind, kind), ("b1", source_kind, kind)
            inputs = (self._ref(node.where), source, rest)
            self.nodes.append(Node(SELECT, kinds, (), inputs, sources, (value,), (kind,)))
            source, source_kind = ("v", value), kind
        source = self._converted(source, source_kind, kind)
        if isinstance(self.graph.tree, Leading):
            native = row_of(ufunc).folds and native_text(ufunc, (kind, kind), ["x", "y"]) is not None
        else:
            native = ufunc is np.add and kind in ("f4", "f8") and adds_pairwise(dtype)
        self.folds.append(ReductionForm(ufunc, kind, dtype, source, first_of(ufunc, dtype, native) is None, native))
        self.reductions.append(step)

    def _check_used(self, stores: tuple[tuple[int, Ref], ...]) -> None:
        """A result that nobody uses is computed for its floating-point events; the compiler would leave it out."""
        used = {ref for node in self.nodes for ref in (*node.inputs, node.where, node.old)}
        used |= {fold.source for fold in self.folds} | {ref for _, ref in stores}
        if any(("v", number) not in used for node in self.nodes for number in node.outputs):
            raise Unsupported("a result that nobody uses")


def first_of(ufunc: np.ufunc, dtype: np.dtype, native: bool) -> npt.ArrayLike | None:
    """The initial value of a fold; None where that is the first element. Integers may begin with a neutral one."""
    found = initial_of(ufunc, dtype)
    return neutral(ufunc, dtype) if found is None and native else found


def _may_raise(op: Op, kinds: tuple[str, ...]) -> bool:
    """Whether native code for these types of inputs and outputs may raise floating-point flags."""
    if op is SELECT or (op is COPY and len(set(kinds)) == 1):
        return False
    return any(kind[0] in "fc" for kind in kinds)
