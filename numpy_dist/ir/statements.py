"""Statements of the array program: what was recorded, with the views that it reads and writes."""

from __future__ import annotations

import itertools
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
        self.storage, self.array, self._view = storage, array, view
        self._layout = None if view is None else storage.layout

    @property
    def view(self) -> View:
        layout = self.storage.layout
        if self._layout is not layout:  # a pending result's layout may still move (engine.settle)
            self._view = view_of(layout, self.storage.dtype.itemsize, self.array)
            self._layout = layout
        return self._view  # type: ignore[return-value]

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
    form : int or None
        The same for statements that differ in nothing but their storages, the values of their scalars, site and
        error state (see `form_of`); as recorded, hence before `engine.settle`. None if it cannot be told.
    serial : int
        Position in the rank's program; the same on every rank.
    space : Layout or BoxList
        How the iteration space is divided between the ranks.
    site : tuple
        Code object, instruction and module of the user's call (see `sites`); one object for each call site.
    errstate : object
        The floating-point error state when it was recorded.
    """

    __slots__ = ("errstate", "form", "inputs", "op", "options", "outputs", "serial", "site", "space", "where")

    op: Op
    inputs: tuple
    outputs: tuple[Ref, ...]
    where: Ref | None
    options: dict
    space: Any
    site: Any
    errstate: Any
    form: int | None
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
        self.form = form_of(self, creates)


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
        self.form = form_of(self, (axes, dtype, initial is None, keepdims))


_FORMS: dict[tuple, int] = {}
_MOST = 8192
_LATEST: dict[int, tuple] = {}  # forms by number, of those that were forgotten last
_REMEMBERED = 1024
_numbers = itertools.count()


def scalar_form(value: Any) -> Any:
    """What a statement depends on of a scalar: its type, or its dtype where the type leaves something open."""
    kind = type(value)
    return value.dtype if isinstance(value, np.generic) and kind not in SCALAR_KINDS else kind


SCALAR_KINDS = frozenset({int, float, complex, bool, *(np.dtype(char).type for char in "?bBhHiIlLqQefdgFDG")})
"""Types of scalars that say which dtype takes part in an operation, whatever the value."""


def _forget() -> None:
    latest = list(_FORMS.items())[-_REMEMBERED:]
    _FORMS.clear()
    _LATEST.clear()
    _LATEST.update({number: key for key, number in latest})


def known_forms() -> dict[int, tuple]:
    """What forms are the numbers of, by number."""
    return _LATEST | {number: key for key, number in list(_FORMS.items())}


def form_of(statement: Statement, *rest: Any) -> int | None:
    """The number of a statement's form: operation, kinds of operands (views, types of scalars), options and space.

    Parameters
    ----------
    statement : Statement
    *rest
        What else its class has that matters.

    Notes
    -----
    Numbers are never used again, so that whatever is kept by form stays right. Forms are forgotten when there are too
    many; statements of a forgotten form get a new number. What the last of them were is known for longer, since ranks
    compare what was recorded a while ago (`comm.journal`). Which storages are the same is not part of the form.
    """
    key = (
        statement.op,
        type(statement),
        tuple(x.view if type(x) is Ref else scalar_form(x) for x in statement.inputs),
        tuple(out.view for out in statement.outputs),
        None if statement.where is None else statement.where.view,
        tuple(sorted(statement.options.items())) if statement.options else (),
        statement.space,
        rest,
    )
    try:
        found = _FORMS.get(key)
    except TypeError:  # an option that cannot be hashed
        return None
    if found is None:
        if len(_FORMS) > _MOST:
            _forget()
        found = _FORMS[key] = next(_numbers)
    return found
