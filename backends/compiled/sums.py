"""Pairwise sums of contiguous floats in NumPy's order, with vector registers; imported by kernels only.

NumPy's loop of `add` cuts n elements into halves (the first one rounded down to a multiple of 8) until at most 128 are
left, and adds these to eight accumulators. Here the accumulators are one vector, and two such blocks are added at a
time, so that an addition need not wait for the one before it.
"""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

LANES = 8
BLOCK = 128
AHEAD = 2048  # bytes

_WORD = ir.IntType(64)
_TYPES: dict[str, tuple[types.Type, ir.Type, int]] = {
    "f4": (types.float32, ir.FloatType(), 4),
    "f8": (types.float64, ir.DoubleType(), 8),
}


class _SumWriter:
    """Writes the body of ``kind sum(kind *first, int64 n, kind start)``; `far`: of what may not be in a cache."""

    def __init__(self, function: ir.Function, kind: ir.Type, size: int, far: bool) -> None:
        self.function, self.size, self.far = function, size, far
        self.vector = ir.VectorType(kind, LANES)
        self.b = ir.IRBuilder(function.append_basic_block("entry"))

    def write(self) -> None:
        b, function = self.b, self.function
        first, n, start = function.args
        with b.if_then(b.icmp_signed("<", n, _WORD(LANES))):
            b.ret(self.tail(start, first, _WORD(0), n))
        with b.if_then(b.icmp_signed("<=", n, _WORD(BLOCK))):
            b.ret(self.blocks([first], n, n))
        half = b.and_(b.lshr(n, _WORD(1)), _WORD(-LANES))
        rest = b.sub(n, half)
        behind = b.gep(first, [half])
        with b.if_then(b.icmp_signed("<=", rest, _WORD(BLOCK))):
            b.ret(self.blocks([first, behind], half, rest))
        b.ret(b.fadd(b.call(function, [first, half, start]), b.call(function, [behind, rest, start])))

    def blocks(self, places: list[ir.Value], n: ir.Value, last: ir.Value) -> ir.Value:
        """The sum of one block, or of two: the first has `n` elements, a multiple of 8 if there are two."""
        b = self.b
        lanes = [cgutils.alloca_once(b, self.vector) for _ in places]
        for place, lane in zip(places, lanes, strict=True):
            b.store(self.load(place, _WORD(0)), lane)
        whole = b.and_(n, _WORD(-LANES))
        with cgutils.for_range_slice(b, _WORD(LANES), whole, _WORD(LANES), inc=True) as (index, _):
            for place, lane in zip(places, lanes, strict=True):
                if self.far:
                    self.prefetch(place, index)
                b.store(b.fadd(b.load(lane), self.load(place, index)), lane)
        end = b.and_(last, _WORD(-LANES))
        if len(places) == 2:
            with b.if_then(b.icmp_signed("<", whole, end)):
                b.store(b.fadd(b.load(lanes[1]), self.load(places[1], whole)), lanes[1])
        total = self.tail(self.across(b.load(lanes[-1])), places[-1], end, last)
        return total if len(places) == 1 else b.fadd(self.across(b.load(lanes[0])), total)

    def load(self, place: ir.Value, index: ir.Value) -> ir.Value:
        pointer = self.b.bitcast(self.b.gep(place, [index]), self.vector.as_pointer())
        return self.b.load(pointer, align=1)

    def prefetch(self, place: ir.Value, index: ir.Value) -> None:
        """Ask for what will be needed soon: sums wait for memory, and processors do not look far beyond a page."""
        b, byte, number = self.b, ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        function = cgutils.get_or_insert_function(b.module, kind, "llvm.prefetch.p0")
        ahead = b.gep(place, [b.add(index, _WORD(AHEAD // self.size))])
        b.call(function, [b.bitcast(ahead, byte), number(0), number(3), number(1)])  # to be read, kept, data

    def across(self, vector: ir.Value) -> ir.Value:
        """``((r0 + r1) + (r2 + r3)) + ((r4 + r5) + (r6 + r7))``."""
        b = self.b
        sums = [b.extract_element(vector, ir.IntType(32)(k)) for k in range(LANES)]
        while len(sums) > 1:
            sums = [b.fadd(x, y) for x, y in zip(sums[::2], sums[1::2], strict=True)]
        return sums[0]

    def tail(self, total: ir.Value, place: ir.Value, begin: ir.Value, end: ir.Value) -> ir.Value:
        """Add what is left, one element after the other."""
        b = self.b
        kept = cgutils.alloca_once_value(b, total)
        with cgutils.for_range_slice(b, begin, end, _WORD(1), inc=True) as (index, _):
            b.store(b.fadd(b.load(kept), b.load(b.gep(place, [index]), align=1)), kept)
        return b.load(kept)


def _function(module: ir.Module, kind: str, far: bool) -> ir.Function:
    _, element, size = _TYPES[kind]
    name = f"pairwise_{kind}_{'far' if far else 'near'}"
    function = module.globals.get(name)
    if function is None:
        signature = ir.FunctionType(element, [element.as_pointer(), _WORD, element])
        function = ir.Function(module, signature, name)
        function.linkage = "internal"
        _SumWriter(function, element, size, far).write()
    return function


def _pairwise(name: str, far: bool) -> Callable[..., object]:
    result, element, _ = _TYPES[name]

    @intrinsic
    def pairwise(typingctx, address, n, start):  # type: ignore[no-untyped-def]
        """The sum of the `n` elements at `address`; fewer than eight are added to `start`."""

        def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
            first = builder.inttoptr(args[0], element.as_pointer())
            return builder.call(_function(builder.module, name, far), [first, *args[1:]])

        return result(types.int64, types.int64, result), codegen

    return pairwise


# Of operands, and of what the kernel itself has just computed.
far_sum_f4, far_sum_f8 = _pairwise("f4", True), _pairwise("f8", True)
near_sum_f4, near_sum_f8 = _pairwise("f4", False), _pairwise("f8", False)
