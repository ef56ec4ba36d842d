"""Decimal numbers in text, to doubles that are rounded as Python rounds them; imported by kernels only.

The digits are an integer w and a power of ten. Small ones are exact as doubles, and so is their product or quotient
(Clinger, "How to read floating point numbers accurately", 1990). Others are multiplied by 128 bits of the power of
five, which tells the double in all but a few cases (Lemire, "Number parsing at a gigabyte per second", Software:
Practice and Experience 2021). The few, and whatever is no plain number, are left to NumPy.
"""

# mypy: ignore-errors
# Numba finds the types.

from __future__ import annotations

from llvmlite import ir
from numba import float64, int64, njit, types, uint64
from numba.extending import intrinsic

from numpy_dist.backends.compiled.memory import load_u1, load_u8, peek_i8, put_i8, store_u8_0

LEAST_POWER = -342  # of ten, of which the table has the power of five
MOST_POWER = 308

_LEFT = uint64(0xFFFFFFFFFFFFFFFF)  # what `bits_of` returns for what is left to NumPy: a NaN
_MOST_DIGITS = 19  # that always fit 64 bits
_EXACT = 22  # powers of ten up to this are exact as doubles
_WORD, _WIDE = ir.IntType(64), ir.IntType(128)
_HEAD = 55  # bits of the product that decide, if they are not all ones below: those of a double and three more


@intrinsic
def _high_product(typingctx, a, b):
    """The upper 64 bits of a product."""

    def codegen(context, builder, signature, args):
        wide = builder.mul(*(builder.zext(x, _WIDE) for x in args))
        return builder.trunc(builder.lshr(wide, _WIDE(64)), _WORD)

    return types.uint64(types.uint64, types.uint64), codegen


@intrinsic
def _leading_zeros(typingctx, a):
    """How many bits are 0 before the first one that is 1."""

    def codegen(context, builder, signature, args):
        return builder.ctlz(args[0], ir.IntType(1)(1))

    return types.uint64(types.uint64), codegen


@intrinsic
def _bits_of_double(typingctx, x):
    """The bits of a double."""

    def codegen(context, builder, signature, args):
        return builder.bitcast(args[0], _WORD)

    return types.uint64(types.float64), codegen


@intrinsic
def _load_double(typingctx, address, index):
    """An element of a table of doubles."""

    def codegen(context, builder, signature, args):
        pointer = builder.inttoptr(args[0], ir.DoubleType().as_pointer())
        return builder.load(builder.gep(pointer, [args[1]]), align=8)

    return types.float64(types.int64, types.int64), codegen


@njit(error_model="numpy", inline="always")
def bits_of(w, power, tables):
    """The bits of the double nearest to ``w * 10**power``; `_LEFT` for what is left to NumPy.

    `tables` is the address of the doubles 10**0 to 10**22, and of the pairs of words of the powers of five.
    """
    if w == uint64(0):
        return uint64(0)
    if w <= uint64(1 << 53) and -_EXACT <= power <= _EXACT:
        scale = _load_double(tables, abs(power))
        exact = float64(w) * scale if power >= 0 else float64(w) / scale
        return _bits_of_double(exact)
    if power < LEAST_POWER or power > MOST_POWER:
        return _LEFT
    zeros = _leading_zeros(w)
    w = w << zeros
    place = int64(_EXACT + 1 + 2 * (power - LEAST_POWER))
    high_five, low_five = load_u8(tables, place), load_u8(tables, place + 1)
    low, high = w * high_five, _high_product(w, high_five)
    undecided = uint64(_LEFT >> uint64(_HEAD))
    if high & undecided == undecided:
        more = _high_product(w, low_five)
        low = low + more
        if low < more:
            high = high + uint64(1)
    if low == _LEFT and (power < -27 or power > 55):
        return _LEFT
    upper = high >> uint64(63)
    shift = upper + uint64(64 - 52 - 3)
    mantissa = high >> shift
    exponent = ((217706 * power) >> 16) + 63 + int64(upper) - int64(zeros) + 1023
    if exponent <= 0 or exponent >= 2046:  # subnormal numbers, and those near infinity
        return _LEFT
    halfway = low <= uint64(1) and -4 <= power <= 23 and mantissa & uint64(3) == uint64(1)
    if halfway and mantissa << shift == high:
        mantissa = mantissa & ~uint64(1)  # to the even one
    mantissa = (mantissa + (mantissa & uint64(1))) >> uint64(1)
    if mantissa >= uint64(1 << 53):
        mantissa, exponent = uint64(1 << 52), exponent + 1
    return (mantissa & uint64((1 << 52) - 1)) | (uint64(exponent) << uint64(52))


@njit(error_model="numpy", inline="always")
def _is_digit(c):
    return 48 <= c <= 57


@njit(error_model="numpy", inline="always")
def _at(text, at, last):
    """A byte, -1 behind the last."""
    return int64(load_u1(text, at)) if at < last else -1


@njit(error_model="numpy", inline="always")
def read_number(text, at, last, tables):
    """The bits of the number that begins at a place, and the place behind it, or -1 for what is left to NumPy."""
    c = _at(text, at, last)
    negative = c == 45
    if negative or c == 43:
        at += 1
        c = _at(text, at, last)
    w, digits, power, more, cut = uint64(0), 0, 0, False, False
    fraction = False
    while True:
        if _is_digit(c):
            more = True
            if digits < _MOST_DIGITS:
                w = w * uint64(10) + uint64(c - 48)
                if w != uint64(0):
                    digits += 1
                if fraction:
                    power -= 1
            else:
                cut = cut or c != 48
                if not fraction:
                    power += 1
        elif c == 46 and not fraction:
            fraction = True
        else:
            break
        at += 1
        c = _at(text, at, last)
    if not more:
        return _LEFT, -1
    if c == 101 or c == 69:
        at += 1
        c = _at(text, at, last)
        down = c == 45
        if down or c == 43:
            at += 1
            c = _at(text, at, last)
        written, count = 0, 0
        while _is_digit(c):
            written, count = written * 10 + (c - 48), count + 1
            if count > 6:
                return _LEFT, -1
            at += 1
            c = _at(text, at, last)
        if count == 0:
            return _LEFT, -1
        power += -written if down else written
    found = _LEFT
    for beyond in range(2 if cut else 1):  # the digits that were left out lie between two numbers: the same double?
        nearest = bits_of(w + uint64(beyond), power, tables)
        if nearest == _LEFT or (beyond == 1 and nearest != found):
            return _LEFT, -1
        found = nearest
    if negative:
        found = found | uint64(1 << 63)
    return found, at


@njit(error_model="numpy", inline="always")
def read_rows(block, first, last):
    """The rows of numbers in the bytes from `first` to `last` of a text; 0, or 1 where NumPy has to read them.

    The words of the block: the addresses of the text, of the result and of the tables; the delimiter, 0 for blanks;
    the numbers in a row, and how many rows there is room for. The last word gets how many there are.
    """
    text, out, tables = peek_i8(block, 0), peek_i8(block, 1), peek_i8(block, 2)
    delimiter, columns, room = peek_i8(block, 3), peek_i8(block, 4), peek_i8(block, 5)
    at, row, place = int64(first), 0, int64(0)
    while at < last:
        c = _at(text, at, last)
        if c == 13 and _at(text, at + 1, last) == 10:
            at += 1
            c = 10
        if c == 10:  # an empty line
            at += 1
            continue
        if row == room:
            return 1
        column = 0
        while True:
            while c == 32 or (c == 9 and delimiter != 9):
                at += 1
                c = _at(text, at, last)
            if column == columns:
                return 1
            found, at = read_number(text, at, last, tables)
            if at < 0:
                return 1
            store_u8_0(out, place, found)
            place, column, before = place + 1, column + 1, at
            c = _at(text, at, last)
            while c == 32 or (c == 9 and delimiter != 9):
                at += 1
                c = _at(text, at, last)
            if c == 10 or c == -1 or (c == 13 and _at(text, at + 1, last) == 10):
                break
            if delimiter == 0:
                if before == at:
                    return 1
            elif c == delimiter:
                at += 1
                c = _at(text, at, last)
            else:
                return 1
        if column != columns:
            return 1
        at += 2 if c == 13 else 1
        row += 1
    put_i8(block, 6, row)
    return 0

