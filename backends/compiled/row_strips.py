"""Short rows, many of them: strips of columns are worked on down all rows; imported by kernels only.

A loop along a row of eight elements takes longer to begin than to run. Here a strip of some columns is a few vector
registers, and what remains of a row is done in narrower strips, so that no row has a loop of its own.
"""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

# Elements of strips. Vectors are whole registers: what lies in the rest of one would raise events, too.
_WIDTHS = {"f4": (32, 16, 8, 4, 1), "f8": (16, 8, 4, 2, 1)}

_WORD = ir.IntType(64)
_TYPES: dict[str, tuple[types.Type, ir.Type, int]] = {
    "f4": (types.float32, ir.FloatType(), 4),
    "f8": (types.float64, ir.DoubleType(), 8),
}
_OPERATIONS = {"add": "fadd", "subtract": "fsub", "multiply": "fmul", "divide": "fdiv"}
Strip = Callable[[ir.IRBuilder, int, ir.Value], None]


def _strips(b: ir.IRBuilder, kind: str, inner: ir.Value, strip: Strip) -> None:
    """Write ``strip(builder, width, column)`` for all strips of rows of `inner` elements."""
    begin: ir.Value = _WORD(0)
    for width in _WIDTHS[kind]:
        end = b.and_(inner, _WORD(-width))
        with cgutils.for_range_slice(b, begin, end, _WORD(width), inc=True) as (column, _):
            strip(b, width, column)
        begin = end


def _row(b: ir.IRBuilder, kind: ir.Type, width: int, first: ir.Value, step: ir.Value, row: ir.Value) -> ir.Value:
    """The place of a strip's elements in a row: rows are `step` bytes apart."""
    address = b.add(first, b.mul(row, step))
    return b.inttoptr(address, (ir.VectorType(kind, width) if width > 1 else kind).as_pointer())


def _all(b: ir.IRBuilder, value: ir.Value, width: int) -> ir.Value:
    """A vector whose elements are one value."""
    if width == 1:
        return value
    vector = b.insert_element(ir.Constant(ir.VectorType(value.type, width), ir.Undefined), value, ir.IntType(32)(0))
    zeros = ir.Constant(ir.VectorType(ir.IntType(32), width), [0] * width)
    return b.shuffle_vector(vector, vector, zeros)


def _sum(function: ir.Function, kind: str) -> None:
    """``(target, rows, count, inner, start)``: columns of contiguous rows are added up, one row after the other."""
    _, element, size = _TYPES[kind]
    b = ir.IRBuilder(function.append_basic_block("entry"))
    target, rows, count, inner, start = function.args
    step = b.mul(inner, _WORD(size))

    def strip(b: ir.IRBuilder, width: int, column: ir.Value) -> None:
        offset = b.mul(column, _WORD(size))
        total = cgutils.alloca_once_value(b, _all(b, start, width))
        b.store(_all(b, start, width), total)
        with cgutils.for_range(b, count) as loop:
            place = _row(b, element, width, b.add(rows, offset), step, loop.index)
            b.store(b.fadd(b.load(total), b.load(place, align=1)), total)
        found = b.load(total)
        nan = _all(b, element(float("nan")), width)
        one_nan = b.select(b.fcmp_unordered("uno", found, found), nan, found)  # as `summation.one_nan`
        b.store(one_nan, _row(b, element, width, target, _WORD(size), column), align=1)

    _strips(b, kind, inner, strip)
    b.ret_void()


def _apply(function: ir.Function, kind: str, name: str, form: str) -> None:
    """``(target, a, b, step of a, step of b, count, inner)``: an operation on rows; the target's follow each other.

    `form` has a letter for each operand: "c" contiguous rows, "0" one element for all of a row.
    """
    _, element, size = _TYPES[kind]
    b = ir.IRBuilder(function.append_basic_block("entry"))
    target, *operands, count, inner = function.args
    step = b.mul(inner, _WORD(size))

    def strip(b: ir.IRBuilder, width: int, column: ir.Value) -> None:
        offset = b.mul(column, _WORD(size))
        with cgutils.for_range(b, count) as loop:
            values = []
            for how, first, stride in zip(form, operands[:2], operands[2:], strict=True):
                if how == "c":
                    place = _row(b, element, width, b.add(first, offset), stride, loop.index)
                    values.append(b.load(place, align=1))
                else:
                    values.append(_all(b, b.load(_row(b, element, 1, first, stride, loop.index), align=1), width))
            made = getattr(b, _OPERATIONS[name])(*values)
            b.store(made, _row(b, element, width, b.add(target, offset), step, loop.index), align=1)

    _strips(b, kind, inner, strip)
    b.ret_void()


def _function(module: ir.Module, name: str, kind: str, operation: str, form: str) -> ir.Function:
    found = module.globals.get(name)
    if found is None:
        arguments = [_WORD] * 4 + [_TYPES[kind][1]] if operation == "sum" else [_WORD] * 7
        found = ir.Function(module, ir.FunctionType(ir.VoidType(), arguments), name)
        found.linkage = "internal"
        if operation == "sum":
            _sum(found, kind)
        else:
            _apply(found, kind, operation, form)
    return found


def _called(name: str) -> Callable[..., object]:
    operation, kind, form = name.split("_")

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        builder.call(_function(builder.module, f"strips_{name}", kind, operation, form), args)
        return context.get_dummy_value()

    if operation == "sum":

        @intrinsic
        def add_rows(typingctx, target, rows, count, inner, start):  # type: ignore[no-untyped-def]
            return types.void(*[types.int64] * 4, _TYPES[kind][0]), codegen

        return add_rows

    @intrinsic
    def apply_to_rows(typingctx, target, a, b, step_a, step_b, count, inner):  # type: ignore[no-untyped-def]
        return types.void(*[types.int64] * 7), codegen

    return apply_to_rows


def __getattr__(name: str) -> Callable[..., object]:
    """What kernels ask for, made when they do: ``sum_TYPE_c``, and ``OPERATION_TYPE_FORM``, as ``multiply_f8_0c``."""
    operation, _, rest = name.partition("_")
    kind, _, form = rest.partition("_")
    if kind not in _TYPES or not form or (operation not in _OPERATIONS and operation != "sum"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    made = globals()[name] = _called(name)
    return made
