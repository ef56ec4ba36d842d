"""Loops that run together, some rows at a time: the block that the kernel of `chain` works with, and what it leaves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import gcd, lcm
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from numpy_dist.backends.axes import in_memory_order
from numpy_dist.backends.base import Loop, ReduceStep
from numpy_dist.backends.compiled.arguments import ArgumentBlock
from numpy_dist.backends.compiled.repair import repair, reporting
from numpy_dist.backends.compiled.threads import MOST_RANGES
from numpy_dist.backends.summation import Leading, fold_chunks

if TYPE_CHECKING:
    from numpy_dist.backends.compiled.threads import ThreadPool
    from numpy_dist.backends.interpreter import Interpreter

    class ChainingBackend(Protocol):
        """What loops that run together ask of a `Compiled`."""

        pool: ThreadPool
        interpreter: Interpreter
        counts: dict[str, int]
        chained: int


SMALLEST = 1 << 25  # bytes that the largest loop goes through: fewer stay in caches by themselves
STEP_BYTES = 1 << 18  # of operands that the rows of a step have: they should stay in a core's own cache
STEPS_A_THREAD = 4  # at least, so that threads end at about the same time

_PROGRESS, _HEAD, _MEMBER, _FOLD, _TARGET = 1, 2, 6, 9, 5  # words, as in chain.py


class Steps(NamedTuple):
    """How loops are divided: the number of steps, and the rows of a step."""

    number: int
    height: int


def steps_of(blocks: Sequence[ArgumentBlock], rows: int, threads: int) -> Steps | None:
    """The steps of loops of so many rows; None where they cannot be divided along rows, or are too small. Pure."""
    if max(block.nbytes for block in blocks) <= SMALLEST:
        return None
    units = [units_of(block, rows) for block in blocks]
    if None in units:
        return None
    least = lcm(*(of for _, of in units))  # type: ignore[misc]
    row_bytes = sum(block.nbytes for block in blocks) // rows
    height = min(STEP_BYTES // max(1, row_bytes), -(-rows // (STEPS_A_THREAD * threads)))
    height = max(height, -(-rows // MOST_RANGES), 1)
    height = -(-height // least) * least
    count = -(-rows // height)
    return Steps(count, height) if count > 1 else None


def units_of(block: ArgumentBlock, rows: int) -> tuple[int, int] | None:
    """How many units are how many rows: the least such numbers; None if rows are no whole units.

    No units where `Block.divide` can make them of as many rows as one likes.
    """
    tree = block.tree
    if isinstance(tree, Leading) or block.across:
        return None
    if tree is None:
        lines = block.total // block.inner
        if lines % rows == 0:
            return lines // rows * block.tiles, 1
        row = block.total // rows  # elements: rows are parts of the inner axis
        if block.inner % row or row > block.kernel.width:
            return None
        if not block.divided:
            return 0, 1
        return None if block.width % row else (1, block.width // row)
    if tree.results % rows:
        return None
    results = tree.results // rows
    if tree.chunks > 1:
        return results * tree.chunks, 1
    shared = gcd(tree.together, results)
    return results // shared, tree.together // shared


def units_of_step(block: ArgumentBlock, rows: int, height: int) -> int:
    """The units of a step; divides a block for which that is still open."""
    found = units_of(block, rows)
    assert found is not None
    if not found[0]:
        row = block.total // rows
        most = block.kernel.width // row
        block.divide(row * next(n for n in range(min(most, height), 0, -1) if height % n == 0))
        return units_of_step(block, rows, height)
    units, of = found
    return units * height // of


class ChainedLoops:
    """See `backends.base.Chained`.

    Parameters
    ----------
    backend : Compiled
    address : int
        Of the kernel of `chain`.
    members : sequence of (int, Block)
        The loops' kernels and blocks.
    rows : int
    steps : Steps
    """

    def __init__(
        self,
        backend: ChainingBackend,
        address: int,
        members: Sequence[tuple[int, ArgumentBlock]],
        rows: int,
        steps: Steps,
    ) -> None:
        self._backend, self._address, self._count = backend, address, steps.number
        self._blocks = [block for _, block in members]
        self._units = [units_of_step(block, rows, steps.height) for block in self._blocks]
        self._progress = np.zeros((steps.number, 2), np.int64)  # of steps that stopped: member and unit
        words = [len(members), self._progress.ctypes.data]
        self._targets: list[list[int]] = []  # the words of the results' addresses
        for (kernel, block), units in zip(members, self._units, strict=True):
            mask = int(block.words[block.kernel.words["mask"]])
            words += [kernel, block.address, units, block.units, mask, len(block.parts)]
            self._targets.append([])
            for number, parts in enumerate(block.parts):
                self._targets[-1].append(len(words) + _TARGET)
                words += self._fold(block, number, parts, units)
        self._words = np.array(words, np.int64)

    def _fold(self, block: ArgumentBlock, number: int, parts: np.ndarray, units: int) -> list[int]:
        names, words = block.kernel.words, block.words
        start = 0 if block.starts_with_first[number] else block.address + 8 * names[f"initial{number}"]
        loop, data = (int(words[names[f"{letter}{number}"]]) for letter in "fg")
        results = self._results(block, units)
        return [parts.ctypes.data, parts.shape[1], parts.itemsize, results, len(parts), 0, loop, data, start]

    def _results(self, block: ArgumentBlock, units: int) -> int:
        """Results of so many units."""
        tree = block.tree
        return units // tree.chunks if tree.chunks > 1 else units * tree.together  # type: ignore[union-attr]

    def launch(self, results: Sequence[Sequence[np.ndarray]], loops: Sequence[Callable[[], Loop]]) -> None:
        """As in `backends.base.Chained`."""
        backend = self._backend
        backend.chained += 1
        backend.counts["numba"] += len(loops)
        for places, arrays in zip(self._targets, results, strict=True):
            for place, array in zip(places, arrays, strict=True):
                self._words[place] = array.ctypes.data
        stops = backend.pool.run(self._address, self._words.ctypes.data, self._count, 1)
        if stops:
            made = [in_memory_order(loop()) for loop in loops]
            for step, _ in stops:
                self._finish(step, results, made)

    def _finish(self, step: int, results: Sequence[Sequence[np.ndarray]], loops: Sequence[Loop]) -> None:
        """Have the interpreter do what a step has left undone."""
        stopped, unit = map(int, self._progress[step])
        for number, (block, units, loop, arrays) in enumerate(
            zip(self._blocks, self._units, loops, results, strict=True)
        ):
            if number < stopped:
                continue
            first = unit if number == stopped else step * units
            end = min((step + 1) * units, block.units)
            if first < end:
                repair(self._backend.interpreter, loop, block, first, end)
            steps = [s for s in loop.steps if isinstance(s, ReduceStep)]
            for s, parts, array in zip(steps, block.parts, arrays, strict=True):
                assert s.op.ufunc is not None
                many = self._results(block, units)
                rows = slice(step * many, (step + 1) * many)
                with reporting(loop, s):
                    array[rows] = fold_chunks(s.op.ufunc.reduce, parts[rows])
