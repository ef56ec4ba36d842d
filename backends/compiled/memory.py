"""Loads and stores of kernels, by address and element number; imported by kernels only (it imports Numba).

Every store says that it writes to no memory that the kernel loads from, and to another place than the other outputs
(LLVM's alias scopes), so that loops over many operands become vector code without checks at run time. What a kernel
reads and overwrites it reads as an output.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

OUTPUTS, SLOTS = 16, 48  # scopes of outputs and of slots of scratch memory; the last one of each is shared

_DOUBLE, _FLOAT, _WORD = ir.DoubleType(), ir.FloatType(), ir.IntType(64)
# For each type of element: Numba's type and how it lies in memory (complex numbers are pairs).
_TYPES: dict[str, tuple[types.Type, ir.Type, int]] = {
    "b1": (types.boolean, ir.IntType(8), 1),
    "i1": (types.int8, ir.IntType(8), 1),
    "i2": (types.int16, ir.IntType(16), 1),
    "i4": (types.int32, ir.IntType(32), 1),
    "i8": (types.int64, _WORD, 1),
    "u1": (types.uint8, ir.IntType(8), 1),
    "u2": (types.uint16, ir.IntType(16), 1),
    "u4": (types.uint32, ir.IntType(32), 1),
    "u8": (types.uint64, _WORD, 1),
    "f4": (types.float32, _FLOAT, 1),
    "f8": (types.float64, _DOUBLE, 1),
    "c8": (types.complex64, _FLOAT, 2),
    "c16": (types.complex128, _DOUBLE, 2),
}


def _scopes(module: ir.Module, names: Iterable[str]) -> ir.MDValue:
    domain = module.add_metadata(["kernel"])
    return module.add_metadata([module.add_metadata([name, domain]) for name in names])


_ALL = (*(f"output {k}" for k in range(OUTPUTS)), *(f"slot {k}" for k in range(SLOTS)))


def _mark(builder: ir.IRBuilder, instruction: ir.Instruction, scope: str | None) -> None:
    """Say that an access is to this scope only: None for what is only read, "" for nothing that we know."""
    if scope == "":
        return
    if scope is not None:
        instruction.set_metadata("alias.scope", _scopes(builder.module, [scope]))
    instruction.set_metadata("noalias", _scopes(builder.module, [s for s in _ALL if s != scope]))


def _places(builder: ir.IRBuilder, kind: ir.Type, parts: int, row: ir.Value, index: ir.Value) -> list[ir.Value]:
    pointer = builder.inttoptr(row, kind.as_pointer())
    if parts == 1:
        return [builder.gep(pointer, [index])]
    first = builder.mul(index, _WORD(2))
    return [builder.gep(pointer, [first]), builder.gep(pointer, [builder.add(first, _WORD(1))])]


def _load(name: str, scope: str | None) -> Callable[..., object]:
    element, kind, parts = _TYPES[name]

    @intrinsic
    def load(typingctx, row, index):  # type: ignore[no-untyped-def]
        def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
            loaded = []
            for place in _places(builder, kind, parts, *args):
                value = builder.load(place, align=1)
                _mark(builder, value, scope)
                loaded.append(value)
            if parts == 2:
                made = context.make_complex(builder, element)
                made.real, made.imag = loaded
                return made._getvalue()
            return builder.icmp_unsigned("!=", loaded[0], kind(0)) if name == "b1" else loaded[0]

        return element(types.int64, types.int64), codegen

    return load


def _store(name: str, scope: str) -> Callable[..., object]:
    element, kind, parts = _TYPES[name]

    @intrinsic
    def store(typingctx, row, index, value):  # type: ignore[no-untyped-def]
        def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
            values = [args[2]]
            if parts == 2:
                number = context.make_complex(builder, element, args[2])
                values = [number.real, number.imag]
            elif name == "b1":
                values = [builder.zext(args[2], kind)]
            for x, place in zip(values, _places(builder, kind, parts, *args[:2]), strict=True):
                _mark(builder, builder.store(x, place, align=1), scope)
            return context.get_dummy_value()

        return types.void(types.int64, types.int64, element), codegen

    return store


def _bits(kind: ir.Type) -> ir.IntType:
    return kind if isinstance(kind, ir.IntType) else ir.IntType({_FLOAT: 32, _DOUBLE: 64}[kind])


def _low(builder: ir.IRBuilder, word: ir.Value, bits: ir.IntType) -> ir.Value:
    return word if bits == _WORD else builder.trunc(word, bits)


def _blend(builder: ir.IRBuilder, condition: ir.Value, one: ir.Value, other: ir.Value, *zeros: ir.Value) -> ir.Value:
    kind = one.type
    bits = _bits(kind)
    chosen = condition if bits.width == 1 else builder.sext(condition, bits)
    zero, nought = (_low(builder, word, bits) for word in zeros)
    here = builder.and_(builder.bitcast(one, bits), builder.xor(chosen, zero))
    there = builder.and_(builder.bitcast(other, bits), builder.xor(chosen, builder.not_(nought)))
    return builder.bitcast(builder.or_(here, there), kind)


@intrinsic
def choose(typingctx, condition, one, other, zero, nought):  # type: ignore[no-untyped-def]
    """One value or the other, of the same type; both are computed, with their floating-point events.

    What a select takes the optimiser computes only where it is taken: in a branch, or by masked instructions. So bits
    are put together by masks that are no conditions, as far as it can see: `zero` and `nought` are words that are 0.
    """

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        kind = signature.return_type
        condition, one, other, *zeros = args
        if not isinstance(kind, types.Complex):
            return _blend(builder, condition, one, other, *zeros)
        made, x, y = (context.make_complex(builder, kind, value) for value in (None, one, other))
        made.real = _blend(builder, condition, x.real, y.real, *zeros)
        made.imag = _blend(builder, condition, x.imag, y.imag, *zeros)
        return made._getvalue()

    return one(types.boolean, one, one, types.int64, types.int64), codegen


@intrinsic
def opaque(typingctx, value, zero):  # type: ignore[no-untyped-def]
    """The value, of which the optimiser does not see how it is made: it could tell results without making it."""

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        value, zero = args
        bits = _bits(value.type)
        return builder.bitcast(builder.xor(builder.bitcast(value, bits), _low(builder, zero, bits)), value.type)

    return value(value, types.int64), codegen


def __getattr__(name: str) -> Callable[..., object]:
    """What kernels ask for, made when they do.

    ``load_TYPE(row, index)`` and ``store_TYPE_OUTPUT(row, index, value)``: elements of arrays.
    ``read_TYPE_OUTPUT(row, index)``: elements of an output.
    ``fetch_TYPE_SLOT`` and ``keep_TYPE_SLOT``: elements of a slot of scratch memory.
    ``peek_TYPE`` and ``put_TYPE``: elements of which nothing is known.
    """
    verb, _, rest = name.partition("_")
    kind, _, number = rest.partition("_")
    if kind in _TYPES and verb in ("load", "peek") and not number:
        made = _load(kind, None if verb == "load" else "")
    elif kind in _TYPES and verb == "put" and not number:
        made = _store(kind, "")
    elif kind in _TYPES and verb in ("fetch", "keep") and number.isdigit():
        made = (_load if verb == "fetch" else _store)(kind, f"slot {min(int(number), SLOTS - 1)}")
    elif kind in _TYPES and verb in ("read", "store") and number.isdigit():
        made = (_load if verb == "read" else _store)(kind, f"output {min(int(number), OUTPUTS - 1)}")
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = made
    return made
