"""The form of a loop, all that its kernel's source depends on, and what fills the kernel's arguments.

As `backends.compiled.form` does for CPUs, from the same loops; devices need neither tiles nor guards against flags.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from numpy_dist.backends.base import Loop, ReduceStep, Step, Temp
from numpy_dist.backends.cuda.expressions import KINDS, expressions, wide
from numpy_dist.backends.summation import Tree, initial_of, neutral, tree_of
from numpy_dist.ir.ops import COPY, SELECT
from numpy_dist.ir.rules import loop_dtypes, scalar_kind

_OPTIONS = frozenset(("dtype", "signature", "casting"))
_FOLDED = frozenset(
    "add multiply minimum maximum fmin fmax bitwise_and bitwise_or bitwise_xor "
    "logical_and logical_or logical_xor".split()
)

# ("a", operand), ("s", scalar), ("v", value that the loop computes)
Ref = tuple[str, int]


class NotGenerated(Exception):
    """A loop has no kernel; the message is the reason."""


@dataclass(frozen=True)
class Node:
    """One operation: `text` names its arguments ``{0}``, ``{1}`` ..., which are cast to `kinds` before.

    Attributes
    ----------
    texts : tuple of str
        For each output an expression of the kind `makes`.
    inputs, sources, kinds : tuple
        References, their kinds, and those that the expression wants.
    outputs, targets : tuple
        Numbers of values, and their kinds.
    where, olds
        A mask, and for each output the value that stays where it is false, if there is one.
    """

    texts: tuple[str, ...]
    makes: tuple[str, ...]
    inputs: tuple[Ref, ...]
    sources: tuple[str, ...]
    kinds: tuple[str, ...]
    outputs: tuple[int, ...]
    targets: tuple[str, ...]
    where: Ref | None
    olds: tuple[Ref | None, ...]


@dataclass(frozen=True)
class Fold:
    """A reduction of a value: `text` puts ``{0}`` and ``{1}`` together."""

    kind: str
    text: str
    source: Ref
    source_kind: str


@dataclass(frozen=True)
class Form:
    """See the module. `ndim` counts axes after merging; `small`: numbers of elements fit 32 bits."""

    ndim: int
    operands: tuple[str, ...]
    scalars: tuple[str, ...]
    nodes: tuple[Node, ...]
    stores: tuple[tuple[int, Ref, str], ...]
    folds: tuple[Fold, ...] = ()
    small: bool = True


@dataclass
class Lowered:
    """A loop's form, and what fills its arguments.

    Attributes
    ----------
    scalar_places : list
        For each scalar the numbers of its step and input; None for one that is always the same.
    """

    form: Form
    arrays: list[Any]
    scalars: list[np.ndarray]
    scalar_places: list[tuple[int, int] | None]
    tree: Tree | None
    neutrals: list[np.ndarray] = field(default_factory=list)
    reductions: list[ReduceStep] = field(default_factory=list)


def kind_of(dtype: np.dtype) -> str:
    """The kind of a dtype that kernels know."""
    name = f"{dtype.kind}{dtype.itemsize}"
    if name not in KINDS or not dtype.isnative:
        raise NotGenerated(f"elements of dtype {dtype}")
    return name


def neutral_of(ufunc: np.ufunc, dtype: np.dtype) -> Any:
    """What the elements of a thread that has none are taken to be."""
    if ufunc in (np.fmin, np.fmax) and dtype.kind in "fc":
        return np.array(np.nan, dtype)[()]  # these leave NaN out
    found = initial_of(ufunc, dtype)
    return neutral(ufunc, dtype) if found is None else found


def typed_scalar(value: Any, dtype: np.dtype) -> np.ndarray:
    """A scalar operand as the dtype in which it is used.

    Raises
    ------
    OverflowError
        For a Python int that it can not hold.
    """
    with np.errstate(all="ignore"):
        return np.array(value, dtype) if type(value) is int else np.array(value).astype(dtype)


class Lowering:
    """Lowers a loop whose arrays are told from scalars by `is_array`.

    Parameters
    ----------
    loop : Loop
    ndim : int
        Axes after merging.
    small : bool
    place_of : callable
        ``place_of(x)`` identifies the elements of an array: the same for arrays over the same memory.
    """

    def __init__(self, loop: Loop, ndim: int, small: bool, is_array: Any, place_of: Any) -> None:
        self.loop, self.is_array, self.place_of = loop, is_array, place_of
        self.arrays: list[Any] = []
        self.places: dict[Any, int] = {}
        self.scalars: list[np.ndarray] = []
        self.scalar_places: list[tuple[int, int] | None] = []
        self.value_kinds: list[str] = []
        self.nodes: list[Node] = []
        self.temps: dict[int, Ref] = {}
        self.current: dict[int, Ref] = {}
        self.folds: list[Fold] = []
        self.neutrals: list[np.ndarray] = []
        self.reductions: list[ReduceStep] = []
        self.ndim, self.small = ndim, small

    def result(self) -> Lowered:
        """The form and the arguments.

        Raises
        ------
        NotGenerated
        """
        trees = {tree_of(self.loop.shape, s.axes) for s in self.loop.steps if isinstance(s, ReduceStep)}
        if len(trees) > 1 or None in trees:
            raise NotGenerated("reductions along several sets of axes, or axes with others between them")
        for number, step in enumerate(self.loop.steps):
            if isinstance(step, Step):
                self._step(number, step)
            else:
                self._reduction(step)
        stores = tuple((k, ref, kind_of(self.arrays[k].dtype)) for k, ref in sorted(self.current.items()))
        kinds, scalars = tuple(kind_of(x.dtype) for x in self.arrays), tuple(kind_of(x.dtype) for x in self.scalars)
        form = Form(self.ndim, kinds, scalars, tuple(self.nodes), stores, tuple(self.folds), self.small)
        tree = trees.pop() if trees else None
        return Lowered(form, self.arrays, self.scalars, self.scalar_places, tree, self.neutrals, self.reductions)

    def _operand(self, x: Any) -> int:
        kind_of(x.dtype)
        number = self.places.setdefault(self.place_of(x), len(self.arrays))
        if number == len(self.arrays):
            self.arrays.append(x)
        return number

    def _read(self, x: Any) -> tuple[Ref, str]:
        if type(x) is Temp:
            return self.temps[x.index], kind_of(x.dtype)
        number = self._operand(x)
        return self.current.get(number, ("a", number)), kind_of(x.dtype)

    def _scalar(self, value: Any, dtype: np.dtype, place: tuple[int, int] | None = None) -> Ref:
        kind_of(dtype)
        try:
            self.scalars.append(typed_scalar(value, dtype))
        except OverflowError:
            raise NotGenerated("a Python int that its operand's dtype can not hold") from None
        self.scalar_places.append(place)
        return "s", len(self.scalars) - 1

    def _step(self, number: int, step: Step) -> None:
        if not _OPTIONS.issuperset(step.options):
            raise NotGenerated("a ufunc with such options")
        dtypes = self._dtypes(step)
        kinds = tuple(map(kind_of, dtypes))
        nin = len(step.inputs)
        names = [f"{{{k}}}" for k in range(nin)]
        if step.op is COPY:
            texts: list[str] | None = ["{0}"]
        elif step.op is SELECT:
            texts = ["({0} ? {1} : {2})"]
        else:
            texts = expressions(step.op.name, kinds, nin, names)
        if texts is None:
            raise NotGenerated(f"{step.op.name} of {', '.join(kinds[:nin])}")
        read = [
            self._read(x) if self._is_operand(x) else (self._scalar(x, dtype, (number, position)), kind)
            for position, (x, dtype, kind) in enumerate(zip(step.inputs, dtypes, kinds, strict=False))
        ]
        where, olds = None, tuple[Ref | None, ...](None for _ in step.outputs)
        if step.where is not None:
            where, mask = self._read(step.where)
            if mask != "b1":
                raise NotGenerated("a mask that is not bool")
            olds = tuple(self.temps.get(o.index) if type(o) is Temp else self._read(o)[0] for o in step.outputs)
        targets = tuple(kind_of(out.dtype) for out in step.outputs)
        outputs = tuple(self._write(out) for out in step.outputs)
        inputs, sources = tuple(ref for ref, _ in read), tuple(kind for _, kind in read)
        makes = kinds[nin:]
        self.nodes.append(Node(tuple(texts), makes, inputs, sources, kinds[:nin], outputs, targets, where, olds))

    def _is_operand(self, x: Any) -> bool:
        return type(x) is Temp or self.is_array(x)

    def _dtypes(self, step: Step) -> tuple[np.dtype, ...]:
        """The dtypes of inputs and outputs in which an operation is computed."""
        ufunc = step.op.ufunc
        if ufunc is None:
            out = step.outputs[0].dtype
            first = [np.dtype(bool)] if step.op is SELECT else []
            if step.op is COPY and self._is_operand(step.inputs[0]):
                first = [step.inputs[0].dtype]
                return (*first, *first)
            return (*first, *(out,) * (len(step.inputs) - len(first)), out)
        kinds = tuple(x.dtype if self._is_operand(x) else scalar_kind(x) for x in step.inputs)
        for x, kind in zip(step.inputs, kinds, strict=True):
            if kind is int and any(_outside(x, other) for other in kinds):
                raise NotGenerated("a Python int that its operand's dtype can not hold")
        signature = step.options.get("signature")
        if "dtype" in step.options:
            signature = (None,) * ufunc.nin + (step.options["dtype"],) * ufunc.nout
        casting = step.options.get("casting", "same_kind")
        return loop_dtypes(ufunc, (*kinds, *(None,) * ufunc.nout), casting, signature)

    def _write(self, out: Any) -> int:
        self.value_kinds.append(kind_of(out.dtype))
        number = len(self.value_kinds) - 1
        if type(out) is Temp:
            self.temps[out.index] = ("v", number)
        else:
            self.current[self._operand(out)] = ("v", number)
        return number

    def _reduction(self, step: ReduceStep) -> None:
        ufunc, dtype = step.op.ufunc, step.partial.dtype
        assert ufunc is not None
        kind = kind_of(dtype)
        texts = expressions(step.op.name, (kind,) * 3, 2, ["{0}", "{1}"]) if step.op.name in _FOLDED else None
        if texts is None:
            raise NotGenerated(f"{step.op.name}.reduce of {dtype}")
        rest = neutral_of(ufunc, dtype)
        source, source_kind = self._read(step.source)
        if step.where is not None:
            where, mask = self._read(step.where)
            if mask != "b1":
                raise NotGenerated("a mask that is not bool")
            self.value_kinds.append(kind)
            value = len(self.value_kinds) - 1
            inputs = (where, source, self._scalar(rest, dtype))
            node = Node(
                ("({0} ? {1} : {2})",), (kind,), inputs, ("b1", source_kind, kind), ("b1", kind, kind), (value,),
                (kind,), None, (None,),
            )  # fmt: skip
            self.nodes.append(node)
            source, source_kind = ("v", value), kind
        if kind == "b1" or wide(kind) == kind or step.op.name in ("minimum", "maximum", "fmin", "fmax"):
            self.folds.append(Fold(kind, texts[0], source, source_kind))
        else:
            raise NotGenerated(f"{step.op.name}.reduce of {dtype}")  # halves would be rounded at every step
        self.neutrals.append(np.array(rest, dtype))
        self.reductions.append(step)


def _outside(value: int, other: Any) -> bool:
    if not isinstance(other, np.dtype) or other.kind not in "iu":
        return False
    limits = np.iinfo(other)
    return not limits.min <= value <= limits.max
