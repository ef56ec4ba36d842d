"""The form of a loop, all that the source of a device's kernel depends on, and what fills the kernel's arguments.

`backends.compiled.form` makes one for CPUs from the same graphs; devices need neither tiles nor guards against flags.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from numpy_dist.backends.base import ReduceStep
from numpy_dist.backends.cuda.casts import KINDS, ctype, wide
from numpy_dist.backends.graph import Graph, OperationNode, ReductionNode, Ref, Unsupported
from numpy_dist.backends.operations import row_of
from numpy_dist.backends.summation import Tree, initial_of, neutral
from numpy_dist.ir.ops import COPY, SELECT, Op

if TYPE_CHECKING:
    import numpy.typing as npt

    from numpy_dist.backends.memory import Array

_CHOOSING = frozenset((np.minimum, np.maximum, np.fmin, np.fmax))  # reductions that do not round


@dataclass(frozen=True)
class DeviceNode:
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
class DeviceFold:
    """A reduction of a value: `text` puts ``{0}`` and ``{1}`` together."""

    kind: str
    text: str
    source: Ref
    source_kind: str


@dataclass(frozen=True)
class DeviceForm:
    """See the module.

    Attributes
    ----------
    ndim : int
        Axes after merging.
    operands, scalars : tuple of str
        Their kinds.
    packed : frozenset of int
        The operands whose elements lie at any addresses, not at multiples of their alignment.
    steps : tuple of int or None
        For each operand how many bytes its elements are apart along the inner axis: 0, or as many as they have; None
        for any other number, which is an argument of the kernel.
    small : bool
        Whether numbers of elements fit 32 bits.
    """

    ndim: int
    operands: tuple[str, ...]
    scalars: tuple[str, ...]
    nodes: tuple[DeviceNode, ...]
    stores: tuple[tuple[int, Ref, str], ...]
    folds: tuple[DeviceFold, ...] = ()
    small: bool = True
    packed: frozenset[int] = frozenset()
    steps: tuple[int | None, ...] = ()


@dataclass
class DeviceLowered:
    """A loop's form, and what fills its arguments.

    Attributes
    ----------
    scalar_places : list
        For each scalar the numbers of its step and input; None for one that is always the same.
    """

    form: DeviceForm
    arrays: list[Array]
    scalars: list[np.ndarray]
    scalar_places: list[tuple[int, int] | None]
    tree: Tree | None
    neutrals: list[np.ndarray] = field(default_factory=list)
    reductions: list[ReduceStep] = field(default_factory=list)


def kind_of(dtype: np.dtype) -> str:
    """The kind of a dtype that kernels know."""
    name = f"{dtype.kind}{dtype.itemsize}"
    if name not in KINDS or not dtype.isnative:
        raise Unsupported(f"elements of dtype {dtype}")
    return name


def expressions(op: Op, kinds: tuple[str, ...], made: tuple[str, ...]) -> tuple[str, ...] | None:
    """The expressions of an operation's outputs, of the kinds `made`, as in `DeviceNode`; None if it has none.

    Parameters
    ----------
    kinds : tuple of str
        Of the inputs, whose halves are given as singles.
    """
    texts = row_of(op).written(kinds).cuda
    if texts is None:
        return None
    places = [f"{{{k}}}" for k in range(len(kinds))]
    filled = tuple(text.format(*places, t=ctype(wide(kinds[0]))) for text in texts)
    if op.ufunc is None:  # a choice: nothing is computed that would have to be rounded
        return filled
    return tuple(f"nd_single(nd_half({x}))" if kind == "f2" else x for x, kind in zip(filled, made, strict=True))


def neutral_of(ufunc: np.ufunc, dtype: np.dtype) -> npt.ArrayLike:
    """What the elements of a thread that has none are taken to be."""
    if ufunc in (np.fmin, np.fmax) and dtype.kind in "fc":
        return np.array(np.nan, dtype)[()]  # these leave NaN out
    found = initial_of(ufunc, dtype)
    return neutral(ufunc, dtype) if found is None else found


def typed_scalar(value: object, dtype: np.dtype) -> np.ndarray:
    """A scalar operand as the dtype in which it is used.

    Raises
    ------
    OverflowError
        For a Python int that it can not hold.
    """
    with np.errstate(all="ignore"):
        return np.array(value, dtype) if type(value) is int else np.array(value).astype(dtype)


def lower(
    graph: Graph, ndim: int, small: bool, packed: frozenset[int] = frozenset(), strides: Sequence[int] = ()
) -> DeviceLowered:
    """The form and the arguments of a loop.

    Parameters
    ----------
    graph : Graph
    ndim, small, packed
        As in `DeviceForm`.
    strides : sequence of int
        Of each operand along the inner axis; default: any.

    Raises
    ------
    Unsupported
    """
    return _CudaLowering(graph).result(ndim, small, packed, strides)


class _CudaLowering:
    """The expressions of a kernel for the nodes of a graph, whose values keep their numbers."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.scalars = list(graph.scalars)
        self.scalar_places: list[tuple[int, int] | None] = [*graph.scalar_places]
        self.count = sum(len(node.outputs) for node in graph.nodes if isinstance(node, OperationNode))  # of values
        self.nodes: list[DeviceNode] = []
        self.folds: list[DeviceFold] = []
        self.neutrals: list[np.ndarray] = []
        self.reductions: list[ReduceStep] = []

    def result(self, ndim: int, small: bool, packed: frozenset[int], strides: Sequence[int]) -> DeviceLowered:
        graph = self.graph
        for node in graph.nodes:
            if isinstance(node, OperationNode):
                self._operation(node)
            else:
                self._reduction(node)
        stores = tuple((k, ref, kind_of(graph.arrays[k].dtype)) for k, ref in sorted(graph.stores.items()))
        kinds, scalars = tuple(kind_of(x.dtype) for x in graph.arrays), tuple(kind_of(x.dtype) for x in self.scalars)
        steps = tuple(
            stride if stride in (0, x.dtype.itemsize) else None
            for x, stride in zip(graph.arrays, strides or [-1] * len(graph.arrays), strict=True)
        )
        form = DeviceForm(ndim, kinds, scalars, tuple(self.nodes), stores, tuple(self.folds), small, packed, steps)
        return DeviceLowered(
            form, graph.arrays, self.scalars, self.scalar_places, graph.tree, self.neutrals, self.reductions
        )

    def _operation(self, node: OperationNode) -> None:
        op, nin = node.op, len(node.inputs)
        kinds = tuple(map(kind_of, node.dtypes))
        made = kinds[nin:]
        if op is COPY:
            texts: tuple[str, ...] | None = ("{0}",)
            made = kinds[:1]  # it is cast as it is stored
        else:
            texts = expressions(op, kinds[:nin], made)
        if texts is None:
            raise Unsupported(f"{op.name} of {', '.join(kinds[:nin])}")
        sources, targets = tuple(map(kind_of, node.sources)), tuple(map(kind_of, node.targets))
        self.nodes.append(
            DeviceNode(texts, made, node.inputs, sources, kinds[:nin], node.outputs, targets, node.where, node.olds)
        )

    def _reduction(self, node: ReductionNode) -> None:
        step = node.step
        ufunc, dtype = step.op.ufunc, step.partial.dtype
        assert ufunc is not None
        kind = kind_of(dtype)
        texts = expressions(step.op, (kind,) * 2, (kind,)) if row_of(ufunc).folds else None
        if texts is None:
            raise Unsupported(f"{step.op.name}.reduce of {dtype}")
        rest = np.array(neutral_of(ufunc, dtype), dtype)
        source, source_kind = node.source, kind_of(node.dtype)
        if node.where is not None:
            self.scalars.append(rest)
            self.scalar_places.append(None)
            value = self.count
            self.count += 1
            inputs = (node.where, source, ("s", len(self.scalars) - 1))
            choice = expressions(SELECT, ("b1", kind, kind), (kind,))
            assert choice is not None
            self.nodes.append(
                DeviceNode(
                    choice,
                    (kind,),
                    inputs,
                    ("b1", source_kind, kind),
                    ("b1", kind, kind),
                    (value,),
                    (kind,),
                    None,
                    (None,),
                )  # fmt: skip
            )
            source, source_kind = ("v", value), kind
        if kind == "b1" or wide(kind) == kind or ufunc in _CHOOSING:
            self.folds.append(DeviceFold(kind, texts[0], source, source_kind))
        else:
            raise Unsupported(f"{step.op.name}.reduce of {dtype}")  # halves would be rounded at every step
        self.neutrals.append(rest)
        self.reductions.append(step)
