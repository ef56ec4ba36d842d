"""Statements of the array program: what was recorded, with the views that it reads and writes."""

from __future__ import annotations

from typing import Any

import numpy as np

from numpy_dist.ir.ops import Op
from numpy_dist.ir.views import View, view_of
from numpy_dist.layout.views import ViewMap

NO_OPTIONS: dict[str, Any] = {}  # shared by statements without any; never changed


class Ref:
    """A view that a statement reads or writes: a storage and the phantom array that describes the view.

    Attributes
    ----------
    view : View
        The same as metadata; refs of equal views of one storage see the same elements in the same order.
    """

    __slots__ = ("_layout", "_view", "array", "storage")

    def __init__(self, storage: Any, array: np.ndarray, view: View | None = None) -> None:
        self.storage, self.array, self._view, self._layout = storage, array, view, storage.layout

    @property
    def view(self) -> View:
        found = self._view
        layout = self.storage.layout
        if found is None or self._layout is not layout:  # a pending result's layout may still move (engine.settle)
            found = self._view = view_of(layout, self.storage.dtype.itemsize, self.array)
            self._layout = layout
        return found

    @property
    def vmap(self) -> ViewMap:
        """The affine map. Refs whose view has none are redistributed when they are recorded."""
        found = self.view.vmap
        assert found is not None
        return found

    @property
    def key(self) -> tuple:
        """What identifies the elements within a program."""
        return id(self.storage), self.view


class Statement:
    """What all statements share.

    Attributes
    ----------
    serial : int
        Position in the rank's program; the same on every rank.
    space : Layout or BoxList
        How the iteration space is divided between the ranks.
    site : tuple
        Code object and instruction of the user's call (see `sites`).
    errstate : object
        The floating-point error state when it was recorded.
    """

    __slots__ = ("errstate", "inputs", "op", "options", "outputs", "serial", "site", "space", "where")

    op: Op
    inputs: tuple
    outputs: tuple[Ref, ...]
    where: Ref | None
    options: dict
    space: Any
    site: Any
    errstate: Any
    serial: int

    def reads(self) -> list[Ref]:
        """The views that it reads."""
        refs = [x for x in self.inputs if type(x) is Ref]
        if self.where is not None:
            refs.append(self.where)
        return refs


class Elementwise(Statement):
    """``outputs = op(*inputs)`` over one iteration space; inputs are `Ref` or scalars.

    Attributes
    ----------
    creates : tuple of bool
        For each output whether the statement makes its storage (rather than writing into one that exists).
    """

    __slots__ = ("creates",)

    def __init__(
        self,
        op: Op,
        inputs: tuple,
        outputs: tuple[Ref, ...],
        creates: tuple[bool, ...],
        where: Ref | None,
        options: dict,
        space: Any,
    ) -> None:
        self.op, self.inputs, self.outputs, self.where, self.options, self.space = (
            op,
            inputs,
            outputs,
            where,
            options,
            space,
        )
        self.creates = creates


class Reduction(Statement):
    """``outputs[0] = op.reduce(inputs[0], axes)``.

    Attributes
    ----------
    axes : tuple of int
        The reduced axes of the iteration space.
    dtype : dtype
        In which partial results are kept.
    initial : scalar or None
        NumPy's ``initial``, folded in once, on the owner.
    """

    __slots__ = ("axes", "dtype", "initial", "keepdims")

    def __init__(
        self,
        op: Op,
        source: Ref,
        out: Ref,
        where: Ref | None,
        axes: tuple[int, ...],
        dtype: np.dtype,
        initial: Any,
        space: Any,
        keepdims: bool,
    ) -> None:
        self.op, self.inputs, self.outputs, self.where, self.options, self.space = (
            op,
            (source,),
            (out,),
            where,
            {},
            space,
        )
        self.axes, self.dtype, self.initial, self.keepdims = axes, dtype, initial, keepdims
