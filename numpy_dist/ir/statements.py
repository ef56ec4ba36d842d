"""Statements of the array program: what was recorded, with the views that it reads and writes."""

from __future__ import annotations

from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from numpy_dist.argument_types import Keywords
from numpy_dist.ir.ops import Op
from numpy_dist.ir.views import View, view_of
from numpy_dist.layout.marks import mark_of
from numpy_dist.layout.views import ViewMap

if TYPE_CHECKING:
    from numpy_dist.layout.layout import BoxList, Layout

NO_OPTIONS: Keywords = {}  # shared by statements without any; never changed


class Ref:
    """A view that a statement reads or writes: a storage and the meta array that describes the view.

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
        if self._layout is not layout:  # a pending result's layout may still move (engine.planning.layout_propagation)
            self._view = view_of(layout, self.storage.dtype.itemsize, self.array)
            self._layout = layout
        return self._view  # type: ignore[return-value]

    @property
    def vmap(self) -> ViewMap:
        """The affine map. Refs whose view has none are redistributed when they are recorded."""
        found = self.view.vmap
        assert found is not None
        return found


class Statement:
    """What all statements share.

    Attributes
    ----------
    form : ProgramForm
        The same for statements that differ in nothing but their storages, the values of their scalars, site and
        error state; as recorded, hence before `engine.planning.layout_propagation`.
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
    space: Layout | BoxList
    site: Any
    errstate: Any
    form: ProgramForm
    serial: int

    def reads(self) -> list[Ref]:
        """The views that it reads."""
        refs = [x for x in self.inputs if type(x) is Ref]
        if self.where is not None:
            refs.append(self.where)
        return refs

    def refs(self) -> list[Ref]:
        """The views that it reads and writes."""
        return [*self.reads(), *self.outputs]

    def scalars(self) -> list[object]:
        """The scalars that it was given."""
        return [x for x in self.inputs if type(x) is not Ref]


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
        space: Layout | BoxList,
    ) -> None:
        self.op, self.inputs, self.outputs, self.creates = op, inputs, outputs, creates
        self.where, self.options, self.space = where, options, space
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
        initial: object,
        space: Layout | BoxList,
        keepdims: bool,
    ) -> None:
        self.op, self.inputs, self.outputs = op, (source,), (out,)
        self.where, self.options, self.space = where, NO_OPTIONS, space
        self.axes, self.dtype, self.initial, self.keepdims = axes, dtype, initial, keepdims
        self.form = form_of(self, (axes, dtype, initial is None, keepdims))

    def scalars(self) -> list[object]:
        return [] if self.initial is None else [self.initial]


def _kind_of_scalar(kind: object) -> str:
    """A name of what `scalar_form` returns; the same for types of equal dtypes, as uint64 and ulonglong may be."""
    return np.dtype(kind).str if isinstance(kind, type) and issubclass(kind, np.generic) else str(kind)


def is_part(view: View) -> bool:
    """Whether a view is less than a quarter of its storage."""
    return 4 * prod(view.shape) * view.dtype.itemsize < prod(view.layout.shape) * view.itemsize


class ProgramForm:
    """What a statement is, but for its storages, the values of its scalars, its site and its error state.

    Made by `form_of`: statements of one form share the object, as long as it is in use.

    Attributes
    ----------
    key : tuple
        Op, class, operands (views, types of scalars), outputs, mask, options, space, and what else the class has.
    has_scalars, has_initial : bool
        Whether an operand is a scalar, or there is one with which a reduction begins.
    reads_part : bool
        Whether an operand is less than a quarter of its storage.
    """

    def __init__(self, key: tuple) -> None:
        self.key = key
        self.has_initial = key[1] is Reduction and not key[-1][0][2]
        self.has_scalars = self.has_initial or any(not isinstance(x, View) for x in key[2])
        self.reads_part = any(isinstance(x, View) and is_part(x) for x in (*key[2], key[4]))

    @cached_property
    def mark(self) -> int:
        """The same on all ranks for equal forms (see `layout.marks`)."""
        op, kind, inputs, outputs, where, options, space, rest = self.key
        operands = [x.mark if isinstance(x, View) else _kind_of_scalar(x) for x in (*inputs, *outputs, where)]
        return mark_of(op.name, kind.__name__, len(inputs), operands, options, space, rest)


_FORMS: dict[tuple, ProgramForm] = {}
_MOST = 8192


def scalar_form(value: object) -> np.dtype | type:
    """What a statement depends on of a scalar: its type, or its dtype where the type leaves something open."""
    kind = type(value)
    return value.dtype if isinstance(value, np.generic) and kind not in SCALAR_KINDS else kind


SCALAR_KINDS = frozenset({int, float, complex, bool, *(np.dtype(char).type for char in "?bBhHiIlLqQefdgFDG")})
"""Types of scalars that say which dtype takes part in an operation, whatever the value."""


def form_of(statement: Statement, *rest: object) -> ProgramForm:
    """A statement's form: operation, kinds of operands (views, types of scalars), options and space.

    Parameters
    ----------
    statement : Statement
    *rest
        What else its class has that matters.

    Notes
    -----
    Forms are forgotten when there are too many; further statements of a forgotten form get another object, so that
    whatever is kept by form stays right. Which storages are the same is not part of the form.
    """
    options: tuple | str = tuple(sorted(statement.options.items())) if statement.options else ()
    try:
        hash(options)
    except TypeError:  # lists and the like
        options = repr(options)
    key = (
        statement.op,
        type(statement),
        tuple(x.view if type(x) is Ref else scalar_form(x) for x in statement.inputs),
        tuple(out.view for out in statement.outputs),
        None if statement.where is None else statement.where.view,
        options,
        statement.space,
        rest,
    )
    found = _FORMS.get(key)
    if found is None:
        if len(_FORMS) > _MOST:
            _FORMS.clear()
        found = _FORMS[key] = ProgramForm(key)
    return found
