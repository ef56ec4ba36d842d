"""Running loops by generated kernels: arguments, grids, and reductions in several stages. It needs no device itself."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from numpy_dist.backends.axes import in_memory_order
from numpy_dist.backends.base import Loop, ReduceStep
from numpy_dist.backends.cuda.lowering import Lowered, Lowering
from numpy_dist.backends.cuda.source import THREADS, Kernel, generate
from numpy_dist.backends.geometry import Space, merged
from numpy_dist.backends.memory import Memory
from numpy_dist.backends.summation import Leading, Tree

SPAN = 8192  # elements of one result that a block folds
ROWS = 64  # elements of one result that a thread folds
MANY = 1 << 17  # results that keep a device busy with a thread each
_MOST_X, _MOST_Y = (1 << 31) - 1, 65535

# Starts a kernel with the words of its argument block on a grid of blocks.
Launch = Callable[[Kernel, np.ndarray, tuple[int, int]], None]


def run(loop: Loop, memory: Memory, array_type: type, launch: Launch) -> None:
    """Execute a loop over arrays of a memory.

    Raises
    ------
    NotGenerated
        Before anything was started, with the reason why it has no kernel.
    """
    if 0 in loop.shape:
        return

    def is_array(x: Any) -> bool:
        return isinstance(x, array_type)

    def place_of(x: Any) -> tuple:
        return memory.address(x), x.strides, x.dtype

    turned = in_memory_order(loop, is_array)
    arrays = _arrays(turned, is_array)
    small = prod(turned.shape) < 1 << 31
    space = merged(turned.shape, [x.strides for x in arrays])
    lowered = Lowering(turned, len(space.shape), small, is_array, place_of).result()
    # The arrays that it numbers are fewer: the same elements are one operand.
    space = merged(turned.shape, [x.strides for x in lowered.arrays])
    if len(space.shape) != lowered.form.ndim:
        lowered = Lowering(turned, len(space.shape), small, is_array, place_of).result()
    kernel = generate(lowered.form)
    words = _words(kernel, lowered, space, memory)
    if lowered.tree is None:
        rows, inner = prod(space.shape[:-1]), space.shape[-1]
        shift = max(5, min(8, (inner - 1).bit_length()))
        words[kernel.words["rows"]], words[kernel.words["shift"]] = rows, shift
        above = THREADS >> shift
        launch(kernel, words, (min(-(-inner >> shift), _MOST_X), min(-(-rows // above), _MOST_Y)))
    else:
        _fold(kernel, words, lowered, memory, array_type, launch)


def _arrays(loop: Loop, is_array: Callable[[Any], bool]) -> list[Any]:
    found: dict[int, Any] = {}
    for s in loop.steps:
        operands = (s.source, s.where) if isinstance(s, ReduceStep) else (*s.inputs, s.where, *s.outputs)
        found.update((id(x), x) for x in operands if is_array(x))
    return list(found.values())


def _words(kernel: Kernel, lowered: Lowered, space: Space, memory: Memory) -> np.ndarray:
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
            data = value.tobytes()
            place = number[f"{name}{k}"]
            words[place : place + 2].view(np.uint8)[: len(data)] = np.frombuffer(data, np.uint8)
    return words


def parts_of(tree: Tree) -> tuple[int, int, int, int, bool]:
    """How a reduction is divided: its outer, length and inner extents, the elements of a part, and whether blocks fold.

    It depends on the shape only, and so do the bits of the results.
    """
    if isinstance(tree, Leading):
        outer, length, inner = tree.outer, tree.length, tree.inner
    else:
        outer, length, inner = tree.results, tree.length, 1
    if inner == 1 and length > ROWS:
        return outer, length, inner, SPAN, True
    return outer, length, inner, length if outer * inner >= MANY else ROWS, False


def _fold(
    kernel: Kernel, words: np.ndarray, lowered: Lowered, memory: Memory, array_type: type, launch: Launch
) -> None:
    assert lowered.tree is not None
    outer, length, inner, span, shared = parts_of(lowered.tree)
    parts = -(-length // span)
    given = {"outer": outer, "length": length, "inner": inner, "span": span, "parts": parts, "shared": shared}
    for name, value in given.items():
        words[kernel.words[name]] = value
    results = [memory.empty((outer, parts, inner), step.partial.dtype) for step in lowered.reductions]
    for k, result in enumerate(results):
        words[kernel.words[f"result{k}"]] = memory.address(result)
    units = outer * parts * inner
    launch(kernel, words, (min(units if shared else -(-units // THREADS), _MOST_X), 1))
    if parts > 1:  # the parts' results are folded in the same way
        folded = [memory.empty((outer, 1, inner), result.dtype) for result in results]
        steps = [
            ReduceStep(step.op, result, target, (1,))
            for step, result, target in zip(lowered.reductions, results, folded, strict=True)
        ]
        run(Loop((outer, parts, inner), steps, lambda label, kind: None), memory, array_type, launch)
        results = folded
    for step, result in zip(lowered.reductions, results, strict=True):
        memory.copy(step.partial, result.reshape(step.partial.shape))
