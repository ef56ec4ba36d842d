"""The form of a loop: all that its kernel's source depends on, and what fills the kernel's arguments.

A form is hashable and says nothing of addresses, extents, strides of outer axes, or values of scalars.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from numpy_dist.backends.base import Loop, ReduceStep, Step, Temp
from numpy_dist.backends.compiled import inner_loops
from numpy_dist.backends.compiled.expressions import NUMBA, cast, expression
from numpy_dist.backends.compiled.pairwise import adds_pairwise
from numpy_dist.backends.geometry import merged
from numpy_dist.backends.summation import Leading, Trailing, Tree, initial_of, neutral, tree_of
from numpy_dist.ir.ops import COPY, SELECT, Op
from numpy_dist.ir.rules import loop_dtypes, scalar_kind

NEAREST = 16  # elements: arrays that lie at most so far apart in one allocation share a row pointer

# Reductions whose rows native code puts together, for the types that it has the operation for.
_IN_ROWS = frozenset((np.add, np.multiply, np.minimum, np.maximum, np.bitwise_and, np.bitwise_or, np.bitwise_xor,
                      np.logical_and, np.logical_or, np.logical_xor))  # fmt: skip

# Operations with a value of their own that raises no floating-point flag; it is 1 for all others.
_HARMLESS = {"arctanh": 0}

# Chooses between an input and a harmless value, by a mask that nothing else is compared with.
GUARD = Op("guard", 3, 1, SELECT.apply)

_UNSURE = frozenset(("minimum", "maximum", "fmin", "fmax"))

_OPTIONS = frozenset(("dtype", "signature", "casting"))

# ("a", operand as it was before the loop), ("v", value that the loop computes), ("s", scalar)
Ref = tuple[str, int]


class NotCompiled(Exception):
    """A loop has no kernel; the message is the reason."""


class UnfitScalar(NotCompiled):
    """A loop has no kernel for the present value of a scalar; it may have one for another."""


@dataclass(frozen=True)
class Operand:
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
        return self.text(["x"] * self.op.nin) is not None

    def text(self, args: list[str]) -> str | None:
        """Its expression, for arguments of the loop's types."""
        if self.op is COPY:
            return cast(args[0], self.kinds[0], self.kinds[1])
        if self.op is GUARD:
            # The optimiser must not see that this mask is the one by which results are chosen later: it would then
            # compute what is left out, and let go of it.
            return f"choose({args[0]} ^ never, {args[1]}, {args[2]})"
        if self.op is SELECT:
            return f"choose({args[0]}, {args[1]}, {args[2]})"
        return expression(self.op.name, self.kinds[0], args) if len(set(self.kinds[: self.op.nin])) == 1 else None


@dataclass(frozen=True)
class Fold:
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
    together, which a unit has some of.
    """

    outer: int
    pieces: bool
    operands: tuple[Operand, ...]
    scalars: tuple[str, ...]
    nodes: tuple[Node, ...]
    stores: tuple[tuple[int, Ref], ...]  # (operand, its value after the loop)
    staged: frozenset[int]  # operands that are read, too: stored in a pass of their own
    folds: tuple[Fold, ...]
    rows: bool = False


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
        raise NotCompiled(f"elements of dtype {dtype}")
    return name


def lower(loop: Loop) -> Lowered:
    """The form and the arguments of a loop whose axes are in memory order.

    Raises
    ------
    NotCompiled
    """
    return _Lowering(loop).result()


class _Lowering:
    def __init__(self, loop: Loop) -> None:
        self.loop = loop
        self.arrays: list[np.ndarray] = []
        self.places: dict[int, int] = {}
        self.elements: dict[tuple, int] = {}
        self.scalars: list[np.ndarray] = []
        self.scalar_kinds: list[str] = []
        self.scalar_places: list[tuple[int, int] | None] = []
        self.nodes: list[Node] = []
        self.value_kinds: list[str] = []
        self.current: dict[int, Ref] = {}  # operand -> its present value
        self.temps: dict[int, Ref] = {}
        self.guarded: dict[tuple[Ref, Ref, int], Ref] = {}
        self.reads: set[int] = set()
        self.folds: list[Fold] = []
        self.reductions: list[ReduceStep] = []
        self.tree = _tree(loop)

    def result(self) -> Lowered:
        for number, step in enumerate(self.loop.steps):
            self.number = number
            if isinstance(step, Step):
                self._step(step)
            else:
                self._reduction(step)
        self._check_used()
        tree, rows = self.tree, isinstance(self.tree, Leading)
        wall = self.tree.end if isinstance(self.tree, Leading) else 0
        space = merged(self.loop.shape, [x.strides for x in self.arrays], wall)
        operands = self._operands([s[-1] for s in space.strides])
        stores = tuple(sorted(self.current.items()))
        staged = frozenset(k for k, _ in stores if k in self.reads)
        pieces = isinstance(tree, Trailing) and not tree.within_rows(space.shape[-1])
        form = Form(
            len(space.shape) - 1,
            pieces,
            operands,
            tuple(self.scalar_kinds),
            tuple(self.nodes),
            stores,
            staged,
            tuple(self.folds),
            rows,
        )
        return Lowered(
            form, space.shape, self.arrays, space.strides, self.scalars, self.scalar_places, tree, self.reductions
        )

    # -- operands ---------------------------------------------------------------------------------------------------

    def _place(self, x: np.ndarray) -> int:
        """The number of an operand. Arrays over the same elements are one: it may be read, and written later on."""
        place = self.places.get(id(x))
        if place is None:
            kind_of(x.dtype)
            elements = x.ctypes.data, x.strides, x.dtype
            place = self.places[id(x)] = self.elements.setdefault(elements, len(self.arrays))
            if place == len(self.arrays):
                self.arrays.append(x)
        return place

    def _read(self, x: Any) -> tuple[Ref, str]:
        """A value that a step reads, and its type."""
        if type(x) is Temp:
            return self.temps[x.index], kind_of(x.dtype)
        place = self._place(x)
        now = self.current.get(place)
        if now is None:
            self.reads.add(place)
            now = ("a", place)
        return now, kind_of(x.dtype)

    def _scalar(self, value: Any, dtype: np.dtype, position: int | None = None) -> Ref:
        self.scalar_places.append(None if position is None else (self.number, position))
        with np.errstate(all="ignore", over="raise"):  # the interpreter reports that a Python float does not fit
            try:
                typed = np.array(value).astype(dtype) if type(value) is not int else np.array(value, dtype)
            except FloatingPointError:
                raise UnfitScalar("a Python float that its operand's dtype can not hold") from None
        self.scalars.append(typed)
        self.scalar_kinds.append(kind_of(dtype))
        return "s", len(self.scalars) - 1

    def _value(self, kind: str) -> int:
        self.value_kinds.append(kind)
        return len(self.value_kinds) - 1

    def _write(self, out: Any) -> int:
        """A new value for what a step writes."""
        number = self._value(kind_of(out.dtype))
        if type(out) is Temp:
            self.temps[out.index] = ("v", number)
        else:
            self.current[self._place(out)] = ("v", number)
        return number

    def _operands(self, inner: list[int]) -> tuple[Operand, ...]:
        made: list[Operand] = []
        rows = [x.strides for x in self.arrays]
        written = set(self.current)
        for number, x in enumerate(self.arrays):
            kind, size = kind_of(x.dtype), x.dtype.itemsize
            lies = "c" if inner[number] == size else "0" if inner[number] == 0 else "s"
            base, shift = number, 0
            if lies == "c" and number not in written:
                for other in range(number):
                    distance = x.ctypes.data - self.arrays[other].ctypes.data
                    if (
                        made[other].base == other
                        and other not in written
                        and self.arrays[other].base is x.base
                        and x.base is not None
                        and rows[other] == rows[number]
                        and made[other].kind == kind
                        and distance % size == 0
                        and abs(distance) <= NEAREST * size
                    ):
                        base, shift = other, distance // size
                        break
            made.append(Operand(kind, lies, base, shift))
        return tuple(made)

    # -- operations -------------------------------------------------------------------------------------------------

    def _step(self, step: Step) -> None:
        if not _OPTIONS.issuperset(step.options):
            raise NotCompiled("a ufunc with such options")
        if step.op.ufunc is None:
            self._copy_or_select(step)
        else:
            self._ufunc(step, step.op.ufunc)

    def _copy_or_select(self, step: Step) -> None:
        (out,) = step.outputs
        dtypes = [np.dtype(bool)] if step.op is SELECT else []
        dtypes += [out.dtype] * (len(step.inputs) - len(dtypes))
        if step.op is COPY and isinstance(step.inputs[0], np.ndarray | Temp):
            dtypes = [step.inputs[0].dtype]
        self._append(step, (*dtypes, out.dtype))

    def _ufunc(self, step: Step, ufunc: np.ufunc) -> None:
        kinds = tuple(x.dtype if isinstance(x, np.ndarray | Temp) else scalar_kind(x) for x in step.inputs)
        if any(out.dtype.kind not in "biufc" for out in step.outputs):
            raise NotCompiled(f"{step.op.name} of other things than numbers")
        if step.where is not None and step.op.name in _UNSURE and step.outputs[0].dtype.kind == "f":
            raise NotCompiled("minima and maxima of floats with where=")  # which of 0 and -0 depends on the mask
        if step.op.name == "power" and step.outputs[0].dtype.kind in "iu":
            raise NotCompiled("integer powers, which may raise an exception")
        for x, kind in zip(step.inputs, kinds, strict=True):
            if kind is int and any(_outside(x, other) for other in kinds):
                raise UnfitScalar("a Python int that its operand's dtype can not hold")
        signature = step.options.get("signature")
        if "dtype" in step.options:
            signature = (None,) * ufunc.nin + (step.options["dtype"],) * ufunc.nout
        casting = step.options.get("casting", "same_kind")
        self._append(step, loop_dtypes(ufunc, (*kinds, *(None,) * ufunc.nout), casting, signature))

    def _append(self, step: Step, dtypes: tuple[np.dtype, ...]) -> None:
        names = tuple(map(kind_of, dtypes))
        inputs, sources = [], []
        for position, (x, dtype, name) in enumerate(zip(step.inputs, dtypes, names, strict=False)):
            if isinstance(x, np.ndarray | Temp):
                ref, source = self._read(x)
            else:
                ref, source = self._scalar(x, dtype, position), name
            inputs.append(ref)
            sources.append(source)
        where = self._mask(step)
        olds = [None if where is None else self._old(out) for out in step.outputs]
        targets = tuple(kind_of(out.dtype) for out in step.outputs)
        native = Node(step.op, names, dtypes, (), (), (), ()).native
        if not native and (step.op.ufunc is None or inner_loops.find(step.op.ufunc, dtypes) is None):
            raise NotCompiled(f"{step.op.name} of {', '.join(names[: step.op.nin])}")
        if where is not None and (not native or _may_raise(step.op, (*sources, *names))):
            inputs = [self._guarded(step.op, where, *x) for x in zip(inputs, sources, strict=True)]
        if native:
            outputs = tuple(self._write(out) for out in step.outputs)
            node = Node(step.op, names, dtypes, tuple(inputs), tuple(sources), outputs, targets, where, *olds)
            self.nodes.append(node)
            return
        inputs = [self._converted(*x) for x in zip(inputs, sources, names, strict=False)]
        made = names[step.op.nin :]
        if made == targets and where is None:
            outputs = tuple(self._write(out) for out in step.outputs)
        else:
            outputs = tuple(self._value(name) for name in made)
        self.nodes.append(Node(step.op, names, dtypes, tuple(inputs), names[: step.op.nin], outputs, made))
        if made != targets or where is not None:
            for value, name, target, out, old in zip(outputs, made, targets, step.outputs, olds, strict=True):
                self._cast(("v", value), name, target, self._write(out), where, old)

    def _mask(self, step: Step) -> Ref | None:
        if step.where is None:
            return None
        where, kind = self._read(step.where)
        if kind != "b1":
            raise NotCompiled("a mask that is not bool")
        return where

    def _old(self, out: Any) -> Ref | None:
        """What stays where a mask is false; None for a new result, which is undefined there."""
        return self.temps.get(out.index) if type(out) is Temp else self._read(out)[0]

    def _guarded(self, op: Op, where: Ref, ref: Ref, kind: str) -> Ref:
        """An input with a harmless value where a mask is false: NumPy computes nothing there, and reports nothing."""
        number = _HARMLESS.get(op.name, 1)
        key = (where, ref, number)
        if key not in self.guarded:
            kinds = ("b1", kind, kind, kind)
            inputs = (where, ref, self._scalar(number, np.dtype(kind)))
            value = self._value(kind)
            self.nodes.append(Node(GUARD, kinds, (), inputs, kinds[:3], (value,), (kind,)))
            self.guarded[key] = ("v", value)
        return self.guarded[key]

    def _converted(self, ref: Ref, source: str, target: str) -> Ref:
        """A value in the type that a loop of NumPy's wants."""
        if source == target:
            return ref
        value = self._value(target)
        self._cast(ref, source, target, value)
        return "v", value

    def _cast(
        self, ref: Ref, source: str, target: str, value: int, where: Ref | None = None, old: Ref | None = None
    ) -> None:
        kinds = (source, target)
        self.nodes.append(Node(COPY, kinds, (), (ref,), (source,), (value,), (target,), where, old))

    # -- reductions -------------------------------------------------------------------------------------------------

    def _reduction(self, step: ReduceStep) -> None:
        ufunc, dtype = step.op.ufunc, step.partial.dtype
        assert ufunc is not None
        if inner_loops.find(ufunc, (dtype,) * 3) is None:
            raise NotCompiled(f"{step.op.name}.reduce of {dtype}")
        kind = kind_of(dtype)
        source, source_kind = self._read(step.source)
        if step.where is not None:
            where, mask_kind = self._read(step.where)
            if mask_kind != "b1":
                raise NotCompiled("a mask that is not bool")
            value = self._value(kind)
            rest = self._scalar(neutral(ufunc, dtype), dtype)
            kinds, sources = ("b1", kind, kind, kind), ("b1", source_kind, kind)
            self.nodes.append(Node(SELECT, kinds, (), (where, source, rest), sources, (value,), (kind,)))
            source, source_kind = ("v", value), kind
        source = self._converted(source, source_kind, kind)
        if isinstance(self.tree, Leading):
            native = ufunc in _IN_ROWS and expression(step.op.name, kind, ["x", "y"]) is not None
        else:
            native = ufunc is np.add and kind in ("f4", "f8") and adds_pairwise(dtype)
        self.folds.append(Fold(ufunc, kind, dtype, source, first_of(ufunc, dtype, native) is None, native))
        self.reductions.append(step)

    def _check_used(self) -> None:
        """A result that nobody uses is computed for its floating-point events; the compiler would leave it out."""
        used = {ref for node in self.nodes for ref in (*node.inputs, node.where, node.old)}
        used |= {fold.source for fold in self.folds} | set(self.current.values())
        if any(("v", number) not in used for node in self.nodes for number in node.outputs):
            raise NotCompiled("a result that nobody uses")


def _tree(loop: Loop) -> Tree | None:
    trees = {tree_of(loop.shape, step.axes) for step in loop.steps if isinstance(step, ReduceStep)}
    if len(trees) > 1:
        raise NotCompiled("reductions along several sets of axes")
    if None in trees:
        raise NotCompiled("reductions along axes with others between them")
    return trees.pop() if trees else None


def first_of(ufunc: np.ufunc, dtype: np.dtype, native: bool) -> Any:
    """The initial value of a fold; None where that is the first element. Integers may begin with a neutral one."""
    found = initial_of(ufunc, dtype)
    return neutral(ufunc, dtype) if found is None and native else found


def _may_raise(op: Op, kinds: tuple[str, ...]) -> bool:
    """Whether native code for these types of inputs and outputs may raise floating-point flags."""
    if op is SELECT or (op is COPY and len(set(kinds)) == 1):
        return False
    return any(kind[0] in "fc" for kind in kinds)


def _outside(value: int, other: Any) -> bool:
    if not isinstance(other, np.dtype) or other.kind not in "iu":
        return False
    limits = np.iinfo(other)
    return not limits.min <= value <= limits.max
