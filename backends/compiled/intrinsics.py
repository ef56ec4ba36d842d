"""What kernels import: typed pointers, NumPy's inner loops, stack memory, floating-point flags and atomic words.

Importing this module imports Numba: only the process that compiles does it. The text of this file is a part of every
kernel's key in the cache.

Addresses are int64 words throughout. An address becomes an array by ``numba.carray(pointer_float64(address), (n,))``;
indexing the pointer itself gives the same machine code, but Numba cannot store a bool so.
"""

from __future__ import annotations

import platform
from collections.abc import Callable
from typing import Any

import llvmlite.binding
from llvmlite import ir
from numba import types
from numba.core import errors
from numba.extending import intrinsic

# The bits of what `test_flags` returns: NumPy's NPY_FPE_* constants.
DIVIDE, OVER, UNDER, INVALID = 1, 2, 4, 8

llvmlite.binding.initialize_native_asmparser()  # Numba does without; inline assembly needs it

_WORD = ir.IntType(64)
_BYTE = ir.IntType(8)


def _pointer(dtype: types.Type) -> Callable[..., object]:
    @intrinsic
    def pointer(typingctx, address):  # type: ignore[no-untyped-def]
        def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
            return builder.inttoptr(args[0], context.get_value_type(signature.return_type))

        return types.CPointer(dtype)(types.int64), codegen

    return pointer


pointer_bool = _pointer(types.boolean)
pointer_int8 = _pointer(types.int8)
pointer_int16 = _pointer(types.int16)
pointer_int32 = _pointer(types.int32)
pointer_int64 = _pointer(types.int64)
pointer_uint8 = _pointer(types.uint8)
pointer_uint16 = _pointer(types.uint16)
pointer_uint32 = _pointer(types.uint32)
pointer_uint64 = _pointer(types.uint64)
pointer_float32 = _pointer(types.float32)
pointer_float64 = _pointer(types.float64)
pointer_complex64 = _pointer(types.complex64)
pointer_complex128 = _pointer(types.complex128)


def _bits(dtype: Any) -> Callable[..., object]:
    """An intrinsic that takes the low bits of a word (little end first) for a value of `dtype`."""

    @intrinsic
    def bits(typingctx, word):  # type: ignore[no-untyped-def]
        def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
            if dtype == types.boolean:
                return builder.icmp_unsigned("!=", builder.trunc(args[0], _BYTE), _BYTE(0))
            if dtype == types.complex64:
                halves = (args[0], builder.lshr(args[0], _WORD(32)))
                parts = [builder.bitcast(builder.trunc(half, ir.IntType(32)), ir.FloatType()) for half in halves]
                value = context.make_complex(builder, dtype)
                value.real, value.imag = parts
                return value._getvalue()
            width = dtype.bitwidth
            low = args[0] if width == 64 else builder.trunc(args[0], ir.IntType(width))
            return builder.bitcast(low, context.get_value_type(dtype))

        return dtype(types.int64), codegen

    return bits


bits_bool = _bits(types.boolean)
bits_int8 = _bits(types.int8)
bits_int16 = _bits(types.int16)
bits_int32 = _bits(types.int32)
bits_int64 = _bits(types.int64)
bits_uint8 = _bits(types.uint8)
bits_uint16 = _bits(types.uint16)
bits_uint32 = _bits(types.uint32)
bits_uint64 = _bits(types.uint64)
bits_float32 = _bits(types.float32)
bits_float64 = _bits(types.float64)
bits_complex64 = _bits(types.complex64)


@intrinsic
def call_loop(typingctx, function, args, dimensions, steps, data):  # type: ignore[no-untyped-def]
    """Call a ufunc's inner loop, ``function(char **args, npy_intp *dimensions, npy_intp *steps, void *data)``."""

    def codegen(context, builder, signature, a):  # type: ignore[no-untyped-def]
        # On all of Numba's 64-bit machines a pointer is passed like a word.
        loop = builder.inttoptr(a[0], ir.FunctionType(ir.VoidType(), [_WORD] * 4).as_pointer())
        builder.call(loop, a[1:])
        return context.get_dummy_value()

    return types.void(*[types.int64] * 5), codegen


@intrinsic
def call_kernel(typingctx, address, block, first, last):  # type: ignore[no-untyped-def]
    """``int64_t (*)(int64_t, int64_t, int64_t)``: another kernel."""

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        kind = ir.FunctionType(_WORD, [_WORD] * 3)
        return builder.call(builder.inttoptr(args[0], kind.as_pointer()), args[1:])

    return types.int64(types.int64, types.int64, types.int64, types.int64), codegen


@intrinsic(prefer_literal=True)
def scratch(typingctx, nbytes):  # type: ignore[no-untyped-def]
    """The address of `nbytes` (a literal) of uninitialised stack memory, aligned to 64, until the kernel returns.

    Each place in the source has one piece of memory, also in a loop.
    """
    if not isinstance(nbytes, types.IntegerLiteral):
        raise errors.RequireLiteralValue("scratch(nbytes): nbytes must be a literal")

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        with builder.goto_entry_block():  # elsewhere each pass of a loop would take more stack
            memory = builder.alloca(ir.ArrayType(_BYTE, max(1, nbytes.literal_value)))
        memory.align = 64
        return builder.ptrtoint(memory, _WORD)

    return types.int64(nbytes), codegen


# The processor's status word: how it is read and written, and its bits in the order of `_FLAGS`. The asm is volatile
# and says that it changes memory, so that no load goes up before it and no store goes down behind it. Arithmetic alone
# may: load the operands after `clear_flags`, and store the results before `test_flags`.
_FLAGS = (DIVIDE, OVER, UNDER, INVALID)
_MACHINES = {
    "x86_64": ("stmxcsr", (4, 8, 16, 1)),
    "aarch64": ("fpsr", (2, 4, 8, 1)),
}
_MACHINES["amd64"] = _MACHINES["x86_64"]
_MACHINES["arm64"] = _MACHINES["aarch64"]


def _machine() -> tuple[str, tuple[int, ...]]:
    name = platform.machine().lower()
    if name not in _MACHINES:
        raise errors.TypingError(f"kernels can not read the floating-point flags of a processor {name!r}")
    return _MACHINES[name]


def _status_slot(builder: ir.IRBuilder) -> ir.Value:
    with builder.goto_entry_block():
        return builder.alloca(ir.IntType(32))


def _read_status(builder: ir.IRBuilder, register: str) -> ir.Value:
    """The status word, as 32 bits."""
    if register == "fpsr":
        kind = ir.FunctionType(_WORD, [])
        return builder.trunc(builder.asm(kind, "mrs $0, fpsr", "=r,~{memory}", [], side_effect=True), ir.IntType(32))
    slot = _status_slot(builder)
    kind = ir.FunctionType(ir.VoidType(), [_WORD])
    builder.asm(kind, "stmxcsr ($0)", "r,~{memory}", [builder.ptrtoint(slot, _WORD)], side_effect=True)
    # The C library raises overflow and underflow that NumPy asks for (integer division) in the x87 word, the same bits.
    half = ir.IntType(16)
    old = builder.asm(ir.FunctionType(half, []), "fnstsw $0", "={ax},~{memory}", [], side_effect=True)
    old = builder.zext(builder.and_(old, half(sum(_MACHINES["x86_64"][1]))), ir.IntType(32))
    return builder.or_(builder.load(slot), old)


def _write_status(builder: ir.IRBuilder, register: str, value: ir.Value) -> None:
    if register == "fpsr":
        kind = ir.FunctionType(ir.VoidType(), [_WORD])
        builder.asm(kind, "msr fpsr, $0", "r,~{memory}", [builder.zext(value, _WORD)], side_effect=True)
        return
    slot = _status_slot(builder)
    builder.store(value, slot)
    kind = ir.FunctionType(ir.VoidType(), [_WORD])
    builder.asm(
        kind,
        "ldmxcsr ($0)",
        "r,~{memory},~{dirflag},~{fpsr},~{flags}",
        [builder.ptrtoint(slot, _WORD)],
        side_effect=True,
    )


@intrinsic
def clear_flags(typingctx):  # type: ignore[no-untyped-def]
    """Forget the floating-point events that this thread has seen. Load what the arithmetic needs after it."""
    register, bits = _machine()

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        status = _read_status(builder, register)
        if register == "stmxcsr":
            builder.asm(ir.FunctionType(ir.VoidType(), []), "fnclex", "~{memory}", [], side_effect=True)
        _write_status(builder, register, builder.and_(status, ir.IntType(32)(0xFFFFFFFF & ~sum(bits))))
        return context.get_dummy_value()

    return types.void(), codegen


@intrinsic
def test_flags(typingctx):  # type: ignore[no-untyped-def]
    """The floating-point events of this thread since `clear_flags`: ``DIVIDE | OVER | UNDER | INVALID``."""
    register, bits = _machine()

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        status = _read_status(builder, register)
        word = ir.IntType(32)
        found = word(0)
        for flag, bit in zip(_FLAGS, bits, strict=True):
            seen = builder.icmp_unsigned("!=", builder.and_(status, word(bit)), word(0))
            found = builder.or_(found, builder.select(seen, word(flag), word(0)))
        return builder.zext(found, _WORD)

    return types.int64(), codegen


@intrinsic
def load_atomic(typingctx, address):  # type: ignore[no-untyped-def]
    """The int64 at `address`, and with it what the thread that stored it had written before (acquire)."""

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        return builder.load_atomic(builder.inttoptr(args[0], _WORD.as_pointer()), "acquire", 8)

    return types.int64(types.int64), codegen


@intrinsic
def store_atomic(typingctx, address, value):  # type: ignore[no-untyped-def]
    """Store an int64 at `address`, after everything that this thread has written before (release)."""

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        builder.store_atomic(args[1], builder.inttoptr(args[0], _WORD.as_pointer()), "release", 8)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), codegen


@intrinsic
def fetch_add(typingctx, address, value):  # type: ignore[no-untyped-def]
    """Add to the int64 at `address`; returns what was there before (acquire and release)."""

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        return builder.atomic_rmw("add", builder.inttoptr(args[0], _WORD.as_pointer()), args[1], "acq_rel")

    return types.int64(types.int64, types.int64), codegen


@intrinsic
def pause(typingctx):  # type: ignore[no-untyped-def]
    """Tell the processor that this thread waits in a loop."""
    instruction = {"stmxcsr": "pause", "fpsr": "yield"}[_machine()[0]]

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        builder.asm(ir.FunctionType(ir.VoidType(), []), instruction, "~{memory}", [], side_effect=True)
        return context.get_dummy_value()

    return types.void(), codegen
