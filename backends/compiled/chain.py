"""A kernel that runs other kernels: some rows of the first, the same rows of the next, and so on. Like `launch`, this
file is a source, and is not imported.

Its unit is a *step*, a number of rows. Its block describes the kernels (*members*), each with its reductions, whose
chunks it puts together before the next member reads the results. Where a member stops, or a floating-point flag is
raised, it notes how far the step has come, and stops there.
"""

# mypy: ignore-errors
# (the types are Numba's)

from numba import njit

from numpy_dist.backends.compiled.intrinsics import (
    call_kernel,
    call_loop,
    clear_flags,
    load_atomic,
    scratch,
    store_atomic,
    test_flags,
)
from numpy_dist.backends.compiled.memory import peek_u1, put_i8, put_u1

# Offsets in bytes, as in chained.py.
MEMBERS, PROGRESS, FIRST = 0, 8, 16
ADDRESS, BLOCK, STEP, UNITS, MASK, FOLDS, MEMBER = 0, 8, 16, 24, 32, 40, 48
PARTS, CHUNKS, SIZE, RESULTS, TOTAL, TARGET, LOOP, DATA, START, FOLD = 0, 8, 16, 24, 32, 40, 48, 56, 64, 72

_inlined = njit(error_model="numpy", forceinline=True)


@_inlined
def copy(target, source, size):
    for k in range(size):
        put_u1(target, k, peek_u1(source, k))


@_inlined
def fold(at, step, args, extent, steps):
    """Put the chunks of some results together."""
    chunks, size, results = load_atomic(at + CHUNKS), load_atomic(at + SIZE), load_atomic(at + RESULTS)
    begin = step * results
    end = min(begin + results, load_atomic(at + TOTAL))
    start = load_atomic(at + START)
    for result in range(begin, end):
        source = load_atomic(at + PARTS) + result * chunks * size
        target = load_atomic(at + TARGET) + result * size
        count = chunks
        if chunks == 1 or start == 0:
            copy(target, source, size)
            source += size
            count -= 1
        else:
            copy(target, start, size)
        if count > 0:
            put_i8(args, 0, target)
            put_i8(args, 1, source)
            put_i8(args, 2, target)
            put_i8(steps, 0, 0)
            put_i8(steps, 1, size)
            put_i8(steps, 2, 0)
            put_i8(extent, 0, count)
            call_loop(load_atomic(at + LOOP), args, extent, steps, load_atomic(at + DATA))


@_inlined
def stopped(block, step, member, unit):
    place = load_atomic(block + PROGRESS) + 16 * step
    store_atomic(place, member)
    store_atomic(place + 8, unit)


def kernel(block, first, last):
    args, steps, extent = scratch(128), scratch(128), scratch(8)
    for step in range(first, last):
        at = block + FIRST
        for member in range(load_atomic(block + MEMBERS)):
            begin = step * load_atomic(at + STEP)
            end = min(begin + load_atomic(at + STEP), load_atomic(at + UNITS))
            stop = call_kernel(load_atomic(at + ADDRESS), load_atomic(at + BLOCK), begin, end)
            if stop != 0:
                stopped(block, step, member, stop - 1)
                return step + 1
            folds = load_atomic(at + FOLDS)
            mask = load_atomic(at + MASK)
            at += MEMBER
            if folds > 0:
                clear_flags()
                for _ in range(folds):
                    fold(at, step, args, extent, steps)
                    at += FOLD
                if test_flags() & mask != 0:
                    stopped(block, step, member, end)
                    return step + 1
    return 0
