"""Replay: statements that differ from a recorded one in their storages and scalars only are filled from its template.

A statement is recorded in one of two ways. The first of its kind goes through `record`: NumPy's rules give shape and
dtypes, the layouts give its iteration space, and `remember` keeps what came out, a *template*, under a key. The key
holds the operation, the view of `out` if there is one, and for each operand its view or the type of the scalar: views
are interned, hence compared by identity, and know shape, strides, dtype and layout. Every further one finds the
template and is *replayed*: new objects for what is its own (storage, handle, ref, statement) are filled from it.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike

from numpy_dist.engine.data import windows
from numpy_dist.engine.memory import handle as handles
from numpy_dist.engine.memory.handle import SHUT, Handle, ref_of
from numpy_dist.engine.memory.storage import Storage, Token
from numpy_dist.engine.recording.casts import Bounds, within
from numpy_dist.engine.runtime import current, runtime
from numpy_dist.ir.meta_arrays import is_writeable
from numpy_dist.ir.ops import Op
from numpy_dist.ir.rules import dtype_char
from numpy_dist.ir.statements import NO_OPTIONS, SCALAR_KINDS, Elementwise, Reduction, Ref, scalar_form
from numpy_dist.settings import config

if TYPE_CHECKING:
    from numpy_dist.engine.memory.handle import ShardedHandle
    from numpy_dist.engine.memory.pool import Pool
    from numpy_dist.ir.views import View

_new = object.__new__
_current, _thread = current.get, threading.get_ident


class StatementTemplate:
    """Everything about a statement with one output but its storages and scalars.

    Attributes
    ----------
    creates, space, form
        The statement's.
    now : bool
        Whether it executes at once, since its values can raise.
    bounds : tuple
        Between which values Python's numbers must lie for the template to fit.
    spread : tuple
        For each operand that is broadcast the array and the view that are read, else None; empty where none is.
    shape, dtype, layout, nbytes, axes
        Of the storage that it makes.
    array, view
        Of the handle that it makes.
    """

    __slots__ = (
        "array",
        "axes",
        "bounds",
        "creates",
        "dtype",
        "form",
        "layout",
        "nbytes",
        "now",
        "shape",
        "space",
        "spread",
        "view",
    )

    def __init__(
        self,
        statement: Elementwise,
        result: ShardedHandle,
        now: bool,
        bounds: Bounds,
        spread: tuple[tuple[np.ndarray, View] | None, ...],
    ) -> None:
        self.creates, self.space, self.form = statement.creates, statement.space, statement.form
        self.now, self.bounds, self.spread = now, bounds, spread
        storage = result._storage
        self.shape, self.dtype, self.layout = storage.shape, storage.dtype, storage.layout
        self.axes, self.nbytes = storage.axes, storage.nbytes
        self.array, self.view = result._array, ref_of(result).view


TEMPLATES: dict[tuple, StatementTemplate] = {}
_MOST = 4096
MOST_INPUTS = 3


def remember(
    statement: Elementwise,
    operands: Sequence[object],
    result: ShardedHandle,
    result_dtype: np.dtype | None,
    now: bool,
    bounds: Bounds,
) -> None:
    """Keep the template of a statement that was recorded with no options and reads its operands' own storages.

    All templates are forgotten when there are too many.
    """
    (out,) = statement.outputs
    owns = [ref_of(x) if isinstance(x, Handle) else None for x in operands]
    forms = [scalar_form(x) if own is None else own.view for x, own in zip(operands, owns, strict=True)]
    if len(forms) > MOST_INPUTS:
        return
    spread = tuple(
        None if own is None or read is own else (read.array, read.view)
        for read, own in zip(statement.inputs, owns, strict=True)
    )
    made_of: View | tuple[np.dtype, str] | None = out.view
    if statement.creates[0]:
        made_of = None if result_dtype is None else (result_dtype, result_dtype.char)
    if len(TEMPLATES) > _MOST:
        TEMPLATES.clear()
    template = StatementTemplate(statement, result, now, bounds, spread if any(spread) else ())
    TEMPLATES[statement.op, made_of, *[None] * (MOST_INPUTS - len(forms)), *forms] = template


def target_of(out: Handle) -> Ref | None:
    """The ref of a sharded array that a replayed statement may write; None if its flags must be looked at."""
    ref = out._ref
    if ref is None:
        ref = ref_of(out)
    view = ref.view
    if view.array is out._array:
        return ref if view.writeable else None
    return ref if is_writeable(out._array) else None  # the view was another array's first


def _result(template: StatementTemplate | ReductionTemplate, pool: Pool, cls: type[Handle]) -> Any:
    """A storage without memory and its handle: `__new__` and assignments in place of three constructors.

    No more than three assignments to a line, since Python would make a tuple of four.
    """
    array = template.array
    layout = template.layout
    storage = _new(Storage)
    storage.shape, storage.dtype, storage.layout = template.shape, template.dtype, layout
    storage.nbytes, storage.axes, storage.pool = template.nbytes, template.axes, pool
    storage.movable = True
    token = storage.token = Token()
    ref: Ref = _new(Ref)
    ref.storage, ref.array = storage, array
    ref._view, ref._layout = template.view, layout
    made: Handle = _new(cls)
    made._array, made._storage = array, storage
    made._ref, made._token = ref, token
    made._window = SHUT
    return made


def _broadcast(own: Ref, array: np.ndarray, view: View) -> Ref:
    """What a statement reads of an operand that is broadcast."""
    ref: Ref = _new(Ref)
    ref.storage, ref.array = own.storage, array
    ref._view, ref._layout = view, own.storage.layout
    return ref


def replay(
    op: Op, inputs: tuple, target: Ref | None = None, result_dtype: np.dtype | None = None, depth: int = 2
) -> object:
    """Record a statement that has a template: a long function, since in Python a call costs as much as ten lines.

    Returns the new array, or `target`; None if there is no template, and nothing was recorded.

    Parameters
    ----------
    target : Ref or None
        What is written (see `target_of`); None for a new array.
    depth : int
        How many frames up the user's is, at least: 2 where an operator calls, whose caller is the user.
    """
    if windows.eager and target is None and result_dtype is None and op.ufunc is not None:
        made = windows.computed_eagerly(op.ufunc, inputs)
        if made is not None:
            return made
    # What the statement reads (three operands at most, the last one in `third`), and what of them is in the key.
    cls = handles._handle_class
    nothing: object = None
    first = second = third = of_first = of_second = of_third = nothing
    for x in inputs:
        first = second
        second = third
        of_first = of_second
        of_second = of_third
        kind = type(x)
        if kind is not cls:
            if kind in SCALAR_KINDS:
                third, of_third = x, kind
                continue
            if not isinstance(x, Handle):
                if not isinstance(x, np.generic):
                    return None
                third, of_third = x, x.dtype
                continue
        storage = x._storage
        if storage is None:
            return None
        third = x._ref
        if third is None:
            third = ref_of(x)
        of_third = third._view if third._layout is storage.layout else third.view
    if target is not None:
        made_of: View | tuple[np.dtype, str] | None = target.view
    else:
        made_of = None if result_dtype is None else (result_dtype, result_dtype.char)
    template = TEMPLATES.get((op, made_of, of_first, of_second, of_third))
    if template is None or (template.bounds and not within(template.bounds, inputs)):
        return None
    reads: tuple = (second, third) if op.nin == 2 else (third,) if op.nin == 1 else (first, second, third)
    if template.spread:
        pairs = zip(reads, template.spread, strict=True)
        reads = tuple([x if way is None else _broadcast(x, *way) for x, way in pairs])
    rt = _current()
    if rt is None or rt.thread != _thread():
        rt = runtime()
    if target is None:
        made = _result(template, rt.pool, cls)
        out = made._ref
    else:
        made = out = target
    statement = _new(Elementwise)
    statement.op, statement.inputs, statement.outputs = op, reads, (out,)
    statement.creates, statement.space, statement.form = template.creates, template.space, template.form
    statement.where, statement.options = None, NO_OPTIONS
    rt.program.append(statement, template.now, depth)
    return made


REDUCTION_TEMPLATES: dict[tuple | None, ReductionTemplate] = {}


class ReductionTemplate:
    """Everything about a reduction of a view without options but its storages.

    Attributes
    ----------
    op, reduced, partial, space, keepdims, form
        The statement's; `reduced` are its axes and `partial` is its dtype.
    shape, dtype, layout, nbytes, axes, array, view
        Of the storage and the handle that it makes.
    """

    def __init__(self, statement: Reduction, result: ShardedHandle) -> None:
        self.op, self.reduced, self.partial = statement.op, statement.axes, statement.dtype
        self.space, self.keepdims, self.form = statement.space, statement.keepdims, statement.form
        storage = result._storage
        self.shape, self.dtype, self.layout = storage.shape, storage.dtype, storage.layout
        self.axes, self.nbytes = storage.axes, storage.nbytes
        self.array, self.view = result._array, ref_of(result).view


def reduction_key(ufunc: np.ufunc, x: Handle, axis: object, dtype: DTypeLike | None, keepdims: bool) -> tuple | None:
    """What a reduction without `out`, `where` and `initial` depends on; None where it is not kept."""
    if not (axis is None or type(axis) is int or (type(axis) is tuple and all(type(a) is int for a in axis))):
        return None  # 1.0 == 1, but is no axis
    if not (dtype is None or isinstance(dtype, np.dtype | type | str)):
        return None  # fields, which cannot be hashed: NumPy refuses them
    return ufunc, ref_of(x).view, axis, dtype, dtype_char(dtype), keepdims, config.MIN_SHARD_BYTES


def remember_reduction(key: tuple, statement: Reduction, result: ShardedHandle) -> None:
    """Keep the template of a reduction; all are forgotten when there are too many."""
    if len(REDUCTION_TEMPLATES) > _MOST:
        REDUCTION_TEMPLATES.clear()
    REDUCTION_TEMPLATES[key] = ReductionTemplate(statement, result)


def replay_reduction(template: ReductionTemplate, x: Handle) -> Handle:
    """Record a reduction that has a template; returns its result."""
    rt = runtime()
    made = _result(template, rt.pool, handles._handle_class)
    made._storage.movable = False
    statement = _new(Reduction)
    statement.op, statement.inputs, statement.outputs = template.op, (ref_of(x),), (made._ref,)
    statement.where, statement.options, statement.initial = None, NO_OPTIONS, None
    statement.axes, statement.dtype, statement.keepdims = template.reduced, template.partial, template.keepdims
    statement.space, statement.form = template.space, template.form
    rt.program.append(statement, depth=2)
    return made
