"""Running loops by generated kernels: arguments, grids, and reductions in several stages. It needs no device itself."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from numpy_dist.backends.axes import in_memory_order, memory_order
from numpy_dist.backends.base import Loop, ReduceStep, arrays_of
from numpy_dist.backends.cuda.lowering import DeviceLowered, lower, typed_scalar
from numpy_dist.backends.cuda.source import THREADS, DeviceKernel, generate
from numpy_dist.backends.geometry import Space, is_aligned, merged
from numpy_dist.backends.graph import build
from numpy_dist.backends.memory import Memory
from numpy_dist.backends.summation import Leading, Tree

if TYPE_CHECKING:
    from numpy_dist.backends.memory import Array

SPAN = 8192  # elements of one result that a block folds, at least
MOST_PARTS = 8192  # of one result, where blocks fold: their results are folded by one
ROWS = 64  # elements of one result that a thread folds
MANY = 1 << 17  # results that keep a device busy with a thread each
BLOCKS = 4096  # that keep a device busy
MOST_ROWS = 4  # that a thread walks down
_MOST_X, _MOST_Y = (1 << 31) - 1, 65535

# Starts a kernel with the words of its argument block on a grid of blocks.
Launch = Callable[[DeviceKernel, np.ndarray, tuple[int, int]], None]


def run(loop: Loop, memory: Memory, array_type: type, launch: Launch) -> DeviceRepeat | None:
    """Execute a loop over arrays of a memory; returns how to run it again (see `backends.base.Repeat`).

    Raises
    ------
    Unsupported
        Before anything was started, with the reason why it has no kernel.
    """
    if 0 in loop.shape:
        return None

    def is_array(x: object) -> bool:
        return isinstance(x, array_type)

    def place_of(x: Array) -> tuple[int, tuple[int, ...], np.dtype]:
        return memory.address(x), x.strides, x.dtype

    order = memory_order(loop, is_array) if loop.shape else None
    turned = in_memory_order(loop, is_array)
    graph = build(turned, is_array, place_of)
    space = merged(turned.shape, [x.strides for x in graph.arrays])
    packed = frozenset(k for k, x in enumerate(graph.arrays) if not is_aligned(memory.address(x), x))
    inner = [strides[-1] for strides in space.strides]
    lowered = lower(graph, len(space.shape), prod(turned.shape) < 1 << 31, packed, inner)
    kernel = generate(lowered.form)
    words = _words(kernel, lowered, space, memory)
    numbers = {id(x): number for number, x in enumerate(arrays_of(turned, is_array))}
    repeated = DeviceRepeat(kernel, words, space, lowered, memory, array_type, launch)
    repeated.operands = [numbers[id(x)] for x in lowered.arrays]
    repeated.turned_back = None if order is None else tuple(np.argsort(order).tolist())
    for step, result in zip(lowered.reductions, repeated.start(words.copy()), strict=True):
        memory.copy(step.partial, result.reshape(step.partial.shape))
    return repeated if loop.shape else None


class DeviceRepeat:
    """A loop that has a kernel (see `backends.base.Repeat`). It keeps no arrays.

    Attributes
    ----------
    turned_back : tuple of int or None
        How the axes of partial results are put in the loop's own order.
    """

    operands: list[int]
    turned_back: tuple[int, ...] | None = None

    def __init__(
        self,
        kernel: DeviceKernel,
        words: np.ndarray,
        space: Space,
        lowered: DeviceLowered,
        memory: Memory,
        array_type: type,
        launch: Launch,
    ) -> None:
        self._kernel, self._words, self._tree = kernel, words, lowered.tree
        self._memory, self._array_type, self._launch = memory, array_type, launch
        self._grid = self._arranged(space)
        # Where the address of each operand stands, and the bits that have to be 0 in it.
        self._addresses = [
            (kernel.words[f"p{k}"], 0 if k in lowered.form.packed else x.dtype.alignment - 1)
            for k, x in enumerate(lowered.arrays)
        ]
        self.scalars = [place for place in lowered.scalar_places if place is not None]
        typed = zip(lowered.scalars, lowered.scalar_places, strict=True)
        self._typed = [
            words[kernel.words[f"s{k}"] :].view(np.uint8)[: x.itemsize].view(x.dtype)
            for k, (x, place) in enumerate(typed)
            if place is not None
        ]
        self._numbers = words.data  # quicker for single words
        self._ops = [step.op for step in lowered.reductions]
        self._shapes = [(step.partial.shape, step.partial.dtype) for step in lowered.reductions]
        self._fold: DeviceRepeat | None = None

    def again(
        self, addresses: list[int], scalars: list[object], loop: Callable[[], Loop] | None = None
    ) -> list[Array] | None:
        """Start the kernel on other memory; returns the partial results of reductions."""
        numbers = self._numbers
        for (place, odd), address in zip(self._addresses, addresses, strict=True):
            if address & odd:
                return None
            numbers[place] = address
        try:
            for typed, value in zip(self._typed, scalars, strict=True):
                if type(value) is float and typed.dtype.char == "d":
                    typed[0] = value
                else:
                    typed[0] = typed_scalar(value, typed.dtype)
        except OverflowError:  # a Python integer that the dtype can not hold: NumPy compares them all the same
            return None
        words = self._words.copy()  # it may be read later
        results = self.start(words)
        made = [result.reshape(shape) for result, (shape, _) in zip(results, self._shapes, strict=True)]
        return made if self.turned_back is None else [result.transpose(self.turned_back) for result in made]

    def _arranged(self, space: Space) -> tuple[int, int]:
        """The grid, and what of the argument block depends on it."""
        words, number = self._words, self._kernel.words
        if self._tree is None:
            rows, inner = prod(space.shape[:-1]), space.shape[-1]
            shift = max(5, min(8, (inner - 1).bit_length()))
            along, above = self._kernel.elements << shift, THREADS >> shift
            across = min(-(-inner // along), _MOST_X)
            # Neighbouring rows are one block's, as far as there are blocks enough: what both read lies near.
            chunk = max(1, min(MOST_ROWS, rows * across // (above * BLOCKS)))
            words[number["rows"]], words[number["shift"]], words[number["chunk"]] = rows, shift, chunk
            return across, min(-(-rows // (above * chunk)), _MOST_Y)
        outer, length, inner, span, shared = parts_of(self._tree)
        parts = -(-length // span)
        given = {"outer": outer, "length": length, "inner": inner, "span": span, "parts": parts, "shared": shared}
        for name, value in given.items():
            words[number[name]] = value
        units = outer * parts * inner
        self._parts = outer, parts, inner
        return min(units if shared else -(-units // THREADS), _MOST_X), 1

    def start(self, words: np.ndarray) -> list[Array]:
        """Start the kernel, and those that fold the parts of results; returns the results."""
        if self._tree is None:
            self._launch(self._kernel, words, self._grid)
            return []
        memory, (outer, parts, inner) = self._memory, self._parts
        results = [memory.empty(self._parts, dtype) for _, dtype in self._shapes]
        for k, result in enumerate(results):
            words[self._kernel.words[f"result{k}"]] = memory.address(result)
        self._launch(self._kernel, words, self._grid)
        if parts == 1:
            return results
        # The parts' results are folded in the same way.
        if self._fold is not None:
            folded = self._fold.again([memory.address(result) for result in results], [])
            assert folded is not None
            return folded
        folded = [memory.empty((outer, 1, inner), result.dtype) for result in results]
        steps = [
            ReduceStep(op, result, target, (1,)) for op, result, target in zip(self._ops, results, folded, strict=True)
        ]
        loop = Loop((outer, parts, inner), steps, lambda label, kind: None)
        self._fold = run(loop, memory, self._array_type, self._launch)
        return folded



def _words(kernel: DeviceKernel, lowered: DeviceLowered, space: Space, memory: Memory) -> np.ndarray:
    """The argument block, but for what depends on the kind of kernel."""
    words, number = np.zeros(kernel.length, np.int64), kernel.words
    for axis, n in enumerate(space.shape):
        words[number[f"n{axis}"]] = n
    for k, (array, strides) in enumerate(zip(lowered.arrays, space.strides, strict=True)):
        words[number[f"p{k}"]] = memory.address(array)
        for axis, stride in enumerate(strides):
            words[number[f"d{k}_{axis}"]] = stride
    for name, values in (("s", lowered.scalars), ("neutral", lowered.neutrals)):
        for k, value in enumerate(values):
            _fill(words, number[f"{name}{k}"], value)
    return words


def _fill(words: np.ndarray, place: int, value: np.ndarray) -> None:
    """Put a scalar into its two words."""
    data = value.tobytes()
    words[place : place + 2].view(np.uint8)[: len(data)] = np.frombuffer(data, np.uint8)


def parts_of(tree: Tree) -> tuple[int, int, int, int, bool]:
    """How a reduction is divided: its outer, length and inner extents, the elements of a part, and whether blocks fold.

    It depends on the shape only, and so do the bits of the results.
    """
    if isinstance(tree, Leading):
        outer, length, inner = tree.outer, tree.length, tree.inner
    else:
        outer, length, inner = tree.results, tree.length, 1
    if inner == 1 and length > ROWS:
        span = SPAN
        while span * MOST_PARTS < length:
            span *= 2
        return outer, length, inner, span, True
    return outer, length, inner, length if outer * inner >= MANY else ROWS, False
