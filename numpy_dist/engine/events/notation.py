"""Statements as text: views as index expressions, operations in Python's own notation."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

import numpy as np

from numpy_dist.engine.events.sites import resolve
from numpy_dist.ir.ops import COPY
from numpy_dist.ir.samples import text_of
from numpy_dist.ir.statements import Reduction, Ref, Statement
from numpy_dist.layout.frames import Origin, framed
from numpy_dist.layout.views import ViewMap

_OPERATORS = {
    "add": "+", "subtract": "-", "multiply": "*", "divide": "/", "floor_divide": "//", "remainder": "%", "power": "**",
    "bitwise_and": "&", "bitwise_or": "|", "bitwise_xor": "^", "left_shift": "<<", "right_shift": ">>",
    "equal": "==", "not_equal": "!=", "less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">=",
}  # fmt: skip
_SIGNS = {"negative": "-", "invert": "~"}


def index_name(axis: int) -> str:
    """The loop's index along an axis of the iteration space."""
    return "ijklmn"[axis] if axis < 6 else f"i{axis}"


def indices(axes: Sequence[int]) -> str:
    """Indices, separated by commas."""
    return ", ".join(map(index_name, axes))


def coordinate(offset: int, steps: Sequence[int]) -> str:
    """``offset + i * steps[0] + j * steps[1] + …`` as one writes it.

    >>> coordinate(1, (0, 1)), coordinate(39, (-2,)), coordinate(0, (3, 1)), coordinate(4, (0,)), coordinate(-1, (1,))
    ('j+1', '39-2*i', '3*i+j', '4', 'i-1')
    """
    terms = []
    for axis, step in enumerate(steps):
        if step:
            size = "" if abs(step) == 1 else f"{abs(step)}*"
            terms.append(("+" if step > 0 else "-") + size + index_name(axis))
    if offset or not terms:
        terms.append(f"{offset:+}")
    terms.sort(key=lambda term: term[0] != "+")  # what is added comes first
    return "".join(terms).removeprefix("+")


def view_text(name: str, ref: Ref, origin: Origin = ()) -> str:
    """A view of a buffer at the loop's indices, such as ``b0[i, j+1]``."""
    vmap, storage = framed(ref.vmap, origin), ref.storage
    steps = [[row[axis] for row in vmap.steps] for axis in range(len(vmap.offset))]
    places = [coordinate(offset, row) for offset, row in zip(vmap.offset, steps, strict=True)]
    if vmap.merged:
        return _merged_text(name, ref, vmap, places, steps)
    *places, byte = places
    if storage.axes is not None:  # as the user sees the axes, not as they lie in memory
        places = [places[storage.axes.index(axis)] for axis in range(len(places))]
    return f"{name}[{', '.join(places) or '()'}]" + _part_text(ref, vmap.offset[-1], byte)


def _part_text(ref: Ref, offset: int, byte: str) -> str:
    """What of each element is meant, where it is not all of it."""
    whole, seen = ref.storage.dtype, ref.array.dtype
    if whole == seen and byte == "0":
        return ""
    if whole.kind == "c" and seen.kind == "f" and byte == str(offset) and offset in (0, seen.itemsize):
        return ".imag" if offset else ".real"
    return f".bytes[{byte}].view({seen})"


def _merged_text(name: str, ref: Ref, vmap: ViewMap, places: list[str], steps: list[list[int]]) -> str:
    """A view through a reshape: the buffer is reshaped, too."""
    storage, extents = ref.storage, list(vmap.axes_shape)
    if storage.axes is not None:
        name = f"{name}.transpose{storage.axes}"
    itemsize = storage.dtype.itemsize
    if len(vmap.groups[-1]) == 1:
        *places, byte = places
        del extents[-1]
        return f"{name}.reshape{_shape(extents)}[{', '.join(places)}]" + _part_text(ref, vmap.offset[-1], byte)
    if any(n % itemsize for n in (vmap.offset[-1], *steps[-1])) or ref.array.dtype != storage.dtype:
        return f"{name}.bytes.reshape{_shape(extents)}[{', '.join(places)}].view({ref.array.dtype})"
    extents[-1] //= itemsize
    places[-1] = coordinate(vmap.offset[-1] // itemsize, [n // itemsize for n in steps[-1]])
    return f"{name}.reshape{_shape(extents)}[{', '.join(places)}]"


def _shape(extents: Sequence[int]) -> str:
    return f"({', '.join(map(str, extents))})"


def scalar_text(value: object) -> str:
    """A scalar operand."""
    return str(value) if isinstance(value, np.generic) and value.dtype.kind not in "mM" else text_of(value)


def value_text(statement: Statement, value: Callable[[Ref], str]) -> str:
    """The right side of a statement.

    Parameters
    ----------
    value : callable
        The text of what a ref's view holds at present.
    """
    op = statement.op
    args = [value(x) if type(x) is Ref else scalar_text(x) for x in statement.inputs]
    if isinstance(statement, Reduction):
        mask = "" if statement.where is None else f" where {value(statement.where)}"
        start = "" if statement.initial is None else f", initial={scalar_text(statement.initial)}"
        return f"{op.name}.reduce({args[0]} over {indices(statement.axes) or 'nothing'}{mask}{start})"
    options = [f"{name}={option}" for name, option in sorted(statement.options.items())]
    if op is COPY:
        source, target = statement.inputs[0], statement.outputs[0].array.dtype
        same = type(source) is not Ref or source.array.dtype == target
        return args[0] if same else f"{target}({args[0]})"
    if not options and len(args) == 2 and op.name in _OPERATORS:
        return f"{args[0]} {_OPERATORS[op.name]} {args[1]}"
    if not options and len(args) == 1 and op.name in _SIGNS:
        return _SIGNS[op.name] + args[0]
    return f"{op.name}({', '.join([*args, *options])})"


def site_text(statement: Statement) -> str:
    """File and line that recorded a statement; the file as seen from the working directory, if it lies there."""
    site = resolve(statement.site)
    here = os.getcwd() + os.sep
    return f"{site.filename.removeprefix(here)}:{site.line}"


def bytes_text(nbytes: int) -> str:
    """A number of bytes, exactly."""
    return f"{nbytes:,} bytes" if nbytes != 1 else "1 byte"
