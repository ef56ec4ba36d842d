"""Many short rows at once, by kernels as soon as they are there: NumPy has a loop for each row."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from numpy_dist.backends.summation import initial_of
from numpy_dist.ir.meta_arrays import address_of

FEW = 256  # rows that NumPy goes through in the time of a kernel's call
SHORT = 128  # bytes of a row that NumPy's loop begins on in the time of its work
WORTH = 1 << 18  # rows for which a kernel is asked for
_KINDS: dict[np.dtype, str] = {np.dtype("f4"): "f4", np.dtype("f8"): "f8"}
_NAMES: dict[np.ufunc, str] = {
    np.add: "add",
    np.subtract: "subtract",
    np.multiply: "multiply",
    np.true_divide: "divide",
}
# Called with the interpreter's lock: it takes longer to give it away than to be done.
_KERNEL = ctypes.PYFUNCTYPE(ctypes.c_int64, ctypes.c_char_p, ctypes.c_int64, ctypes.c_int64)
_Function = Callable[[bytes, int, int], int]
_SUM = struct.Struct("=6q")
_OPERANDS = struct.Struct("=3q")

# The block's words: addresses of the results, of the rows, and of room for the results of one's blocks; rows of each
# result and of a block, elements of a row.
_SUMS = """from numpy_dist.backends.compiled.intrinsics import clear_flags, test_flags
from numpy_dist.backends.compiled.memory import peek_i8
from numpy_dist.backends.compiled.row_strips import sum_{kind}_c
from numba import {type}


def kernel(block, first, last):
    target, rows, parts = peek_i8(block, 0), peek_i8(block, 1), peek_i8(block, 2)
    length, most, inner = peek_i8(block, 3), peek_i8(block, 4), peek_i8(block, 5)
    step = inner * {size}
    clear_flags()
    for result in range(first, last):
        begin, made = rows + result * length * step, target + result * step
        if length <= most:
            sum_{kind}_c(made, begin, length, inner, {type}({start}))
            continue
        blocks = (length + most - 1) // most
        for number in range(blocks):
            done = number * most
            sum_{kind}_c(parts + number * step, begin + done * step, min(most, length - done), inner, {type}({start}))
        sum_{kind}_c(made, parts, blocks, inner, {type}({start}))
    return test_flags()
"""
# Addresses of the result and the operands; elements of a row; rows of a group and the operands' steps between these;
# the number of other axes, and the same of each of them.
_OPERATION = """from numpy_dist.backends.compiled.intrinsics import clear_flags, test_flags
from numpy_dist.backends.compiled.memory import peek_i8
from numpy_dist.backends.compiled.row_strips import {name}_{kind}_{form}


def kernel(block, first, last):
    target, left, right = peek_i8(block, 0), peek_i8(block, 1), peek_i8(block, 2)
    inner, count, step_a, step_b = peek_i8(block, 3), peek_i8(block, 4), peek_i8(block, 5), peek_i8(block, 6)
    axes = peek_i8(block, 7)
    clear_flags()
    for group in range(first, last):
        a, b, rest = left, right, group
        for axis in range(axes):
            extent = peek_i8(block, 8 + 3 * axis)
            index = rest % extent
            rest //= extent
            a += index * peek_i8(block, 9 + 3 * axis)
            b += index * peek_i8(block, 10 + 3 * axis)
        {name}_{kind}_{form}(target + group * count * inner * {size}, a, b, step_a, step_b, count, inner)
    return test_flags()
"""


def sums_source(kind: str) -> str:
    """The text of the kernel that adds rows up as the summation tree has it."""
    start = float(initial_of(np.add, np.dtype(kind)))  # type: ignore[arg-type]
    names = {"f4": "float32", "f8": "float64"}
    return _SUMS.format(kind=kind, type=names[kind], size=kind[1], start=repr(start))


def operation_source(name: str, kind: str, form: str) -> str:
    """The text of the kernel of an operation; `form` as in `row_strips`."""
    return _OPERATION.format(name=name, kind=kind, form=form, size=kind[1])


class _RowGroups(NamedTuple):
    """How two arrays are gone through in rows.

    Attributes
    ----------
    shape : tuple of int
        Of the result.
    form : str
    groups, many : int
        Groups of rows, and rows of each.
    words : bytes
        Of the block, but for addresses.
    """

    shape: tuple[int, ...]
    form: str
    groups: int
    many: int
    words: bytes


Extents = tuple[int, ...]


@lru_cache(maxsize=1024)
def rows_of(shape_a: Extents, strides_a: Extents, shape_b: Extents, strides_b: Extents, size: int) -> _RowGroups | None:
    """How two arrays are gone through; None where NumPy is as fast, or would have another memory order."""
    ndim = max(len(shape_a), len(shape_b))
    shapes = [(1,) * (ndim - len(shape)) + shape for shape in (shape_a, shape_b)]
    strides = [(0,) * (ndim - len(steps)) + steps for steps in (strides_a, strides_b)]
    shape = tuple(max(pair) if 1 in pair else pair[0] for pair in zip(*shapes, strict=True))
    if any(n not in (1, m) for sizes in shapes for n, m in zip(sizes, shape, strict=True)) or 0 in shape:
        return None  # NumPy's error, or nothing
    axes: list[list[int]] = []  # extents and steps, from the inside, without those of one element
    for n, *pairs in zip(shape, *(zip(*x, strict=True) for x in zip(shapes, strides, strict=True)), strict=True):
        steps = [0 if m == 1 else step for m, step in pairs]
        if n > 1:
            axes.insert(0, [n, *steps])
    for operand in (1, 2):
        steps = [axis[operand] for axis in axes if axis[operand]]
        if steps != sorted(set(steps)) or min(steps, default=0) < 0:
            return None
    merged: list[list[int]] = []
    for n, *steps in axes:
        if merged and all(step == merged[-1][0] * below for step, below in zip(steps, merged[-1][1:], strict=True)):
            merged[-1][0] *= n
        else:
            merged.append([n, *steps])
    if len(merged) < 2:
        return None
    (inner, *lies), (count, *steps), *others = merged
    if inner * size > SHORT or any(step not in (0, size) for step in lies) or not any(lies):
        return None
    groups = int(np.prod([n for n, *_ in others], dtype=np.int64))
    if groups * count < FEW:
        return None
    form = "".join("c" if step else "0" for step in lies)
    words = [inner, count, *steps, len(others), *(word for axis in others for word in axis)]
    return _RowGroups(shape, form, groups, count, struct.pack(f"={len(words)}q", *words))


class KernelRows:
    """Works on short rows by kernels (see `backends.base.ShortRows`).

    Parameters
    ----------
    address : callable
        ``address(text, asked)`` returns a kernel's address or None, and has it compiled if that is `asked` for.
    """

    def __init__(self, address: Callable[[str, bool], int | None]) -> None:
        self._address = address
        self._functions: dict[tuple[str, ...], _Function] = {}
        self._seen: dict[tuple[str, ...], int] = {}  # rows

    def sums(self, rows: np.ndarray, most: int) -> np.ndarray | None:
        """As in `backends.base.ShortRows`."""
        kind = _KINDS.get(rows.dtype)
        results, length, inner = rows.shape
        if kind is None or results * length < FEW or not 1 < inner <= SHORT // rows.itemsize:
            return None
        if not rows.flags.c_contiguous:
            return None
        function = self._functions.get((kind,)) or self._asked((kind,), results * length)
        if function is None:
            return None
        made = np.empty((results, inner), rows.dtype)
        parts = np.empty((-(-length // most), inner), rows.dtype)
        block = _SUM.pack(address_of(made), address_of(rows), address_of(parts), length, most, inner)
        return None if function(block, 0, results) else made

    def computed(self, ufunc: np.ufunc, a: np.ndarray, b: np.ndarray) -> np.ndarray | None:
        """As in `backends.base.ShortRows`."""
        name, kind = _NAMES.get(ufunc), _KINDS.get(a.dtype)
        if name is None or kind is None or a.dtype != b.dtype:
            return None
        rows = rows_of(a.shape, a.strides, b.shape, b.strides, a.itemsize)
        if rows is None:
            return None
        key = name, kind, rows.form
        function = self._functions.get(key) or self._asked(key, rows.groups * rows.many)
        if function is None:
            return None
        made = np.empty(rows.shape, a.dtype)
        block = _OPERANDS.pack(address_of(made), address_of(a), address_of(b)) + rows.words
        return None if function(block, 0, rows.groups) else made

    def _asked(self, key: tuple[str, ...], count: int) -> _Function | None:
        """The function of a kernel, if it is there; it is asked for when enough rows were seen."""
        seen = self._seen[key] = self._seen.get(key, 0) + count
        address = self._address(sums_source(*key) if len(key) == 1 else operation_source(*key), seen >= WORTH)
        if address is None:
            return None
        made: _Function = _KERNEL(address)
        self._functions[key] = made
        return made
