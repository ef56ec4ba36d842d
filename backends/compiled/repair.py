"""Units that a kernel left undone, because of a floating-point event: the interpreter does them, and reports."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np

from numpy_dist.backends.base import Loop, ReduceStep, Step
from numpy_dist.backends.compiled.arguments import ArgumentBlock
from numpy_dist.backends.interpreter import Interpreter
from numpy_dist.backends.summation import ROWS, Blocks, Leading, Trailing, neutral
from numpy_dist.ir.ops import COPY, SELECT

Box = tuple[slice, ...]


def repair(interpreter: Interpreter, loop: Loop, block: ArgumentBlock, first: int, end: int) -> None:
    """Run the units from `first` to `end` of a loop that a kernel has left as they were.

    Parameters
    ----------
    loop : Loop
        The loop, axes in memory order, for whose form `block` was made.
    """
    if block.tree is None:
        if block.across:
            found = _boxes_across(loop.shape, block, first, end)
        else:
            found = boxes(loop.shape, block.bounds(first)[0], block.bounds(end - 1)[1])
        for box in found:
            interpreter.run(_part(loop, box, {}))
        return
    for unit in range(first, end):
        if isinstance(block.tree, Leading):
            _reduce_rows(interpreter, loop, block, unit)
        else:
            _reduce_chunk(interpreter, loop, block, unit)


def boxes(shape: tuple[int, ...], begin: int, end: int) -> Iterator[Box]:
    """Boxes that cover the elements from `begin` to `end` of a shape in C order, in that order."""
    if len(shape) <= 1:
        yield (slice(begin, end),) * len(shape)
        return
    inner = int(np.prod(shape[1:], dtype=np.int64))
    while begin < end:
        row, start = divmod(begin, inner)
        if start == 0 and end - begin >= inner:
            rows = (end - begin) // inner
            yield (slice(row, row + rows), *(slice(0, n) for n in shape[1:]))
            begin += rows * inner
        else:
            stop = min(inner, start + end - begin)
            for box in boxes(shape[1:], start, stop):
                yield (slice(row, row + 1), *box)
            begin += stop - start


def _boxes_across(shape: tuple[int, ...], block: ArgumentBlock, first: int, end: int) -> Iterator[Box]:
    """Boxes of the units from `first` to `end` where those of all rows at the same place follow each other."""
    lines = block.units // block.tiles
    axis = next(k for k in range(len(shape)) if math.prod(shape[:k]) == lines and math.prod(shape[k:]) == block.inner)

    def part(rows: tuple[int, int], begin: int, stop: int) -> Iterator[Box]:
        for head in boxes(shape[:axis], *rows) if axis else [()]:
            for tail in boxes(shape[axis:], begin * block.width, min(stop * block.width, block.inner)):
                yield (*head, *tail)

    (tile, row), (last, stop) = divmod(first, lines), divmod(end, lines)
    if row and tile < last:
        yield from part((row, lines), tile, tile + 1)
        tile, row = tile + 1, 0
    if tile < last:
        yield from part((0, lines), tile, last)
        tile = last
    if row < stop:
        yield from part((row, stop), tile, tile + 1)


def _part(loop: Loop, box: Box, copies: dict[int, np.ndarray]) -> Loop:
    """The part of a loop in a box; what it reduces is copied, for each step of that kind by its number."""
    seen: dict[int, np.ndarray] = {}

    def view(x: object) -> Any:
        if type(x) is not np.ndarray:
            return x
        if id(x) not in seen:
            seen[id(x)] = x[box]
        return seen[id(x)]

    steps: list[Step | ReduceStep] = []
    for number, s in enumerate(loop.steps):
        if isinstance(s, Step):
            inputs, outputs = tuple(map(view, s.inputs)), tuple(map(view, s.outputs))
            steps.append(Step(s.op, inputs, outputs, view(s.where), s.options, s.label))
        elif s.where is None:
            steps.append(Step(COPY, (view(s.source),), (copies[number],), None, {}, s.label))
        else:
            assert s.op.ufunc is not None
            rest = neutral(s.op.ufunc, s.partial.dtype)
            inputs = (view(s.where), view(s.source), rest)
            steps.append(Step(SELECT, inputs, (copies[number],), None, {}, s.label))
    return Loop(tuple(s.stop - s.start for s in box), steps, loop.report, loop.watched)


def _reduce_rows(interpreter: Interpreter, loop: Loop, block: ArgumentBlock, unit: int) -> None:
    tree = block.tree
    assert isinstance(tree, Leading)
    place, begin, end = block.columns(unit)
    result, number = divmod(place, tree.blocks)
    first, last = number * ROWS, min((number + 1) * ROWS, tree.length)
    reductions = {n: s for n, s in enumerate(loop.steps) if isinstance(s, ReduceStep)}
    elements = {n: np.empty((last - first, end - begin), s.partial.dtype) for n, s in reductions.items()}
    (head,) = boxes(loop.shape[: tree.first], result, result + 1)
    row = 0
    for lines in boxes(loop.shape[tree.first : tree.end], first, last):
        rows, column = _size(lines), 0
        for part in boxes(loop.shape[tree.end :], begin, end):
            columns, box = _size(part), (*head, *lines, *part)
            copies = {n: np.empty([s.stop - s.start for s in box], x.dtype) for n, x in elements.items()}
            interpreter.run(_part(loop, box, copies))
            for n, x in elements.items():
                x[row : row + rows, column : column + columns] = copies[n].reshape(rows, columns)
            column += columns
        row += rows
    for (number, step), parts in zip(reductions.items(), block.parts, strict=True):
        assert step.op.ufunc is not None
        with reporting(loop, step):
            rows_of_block = Blocks(Leading(1, last - first, end - begin, 0, 1), step.op.ufunc, step.partial.dtype)
            rows_of_block.feed(elements[number])
            parts.reshape(-1, tree.inner)[place, begin:end] = rows_of_block.result()


def _size(box: Box) -> int:
    return math.prod(s.stop - s.start for s in box)


def _reduce_chunk(interpreter: Interpreter, loop: Loop, block: ArgumentBlock, unit: int) -> None:
    tree = block.tree
    assert isinstance(tree, Trailing)
    begin, end = block.bounds(unit)
    reductions = {n: s for n, s in enumerate(loop.steps) if isinstance(s, ReduceStep)}
    elements = {n: np.empty(end - begin, s.partial.dtype) for n, s in reductions.items()}
    done = 0
    for box in boxes(loop.shape, begin, end):
        shape, size = tuple(s.stop - s.start for s in box), _size(box)
        interpreter.run(_part(loop, box, {n: x[done : done + size].reshape(shape) for n, x in elements.items()}))
        done += size
    length = tree.length if tree.chunks == 1 else end - begin
    place = unit * tree.together if tree.chunks == 1 else unit
    for (number, step), parts in zip(reductions.items(), block.parts, strict=True):
        assert step.op.ufunc is not None
        rows = elements[number].reshape(-1, length)
        with reporting(loop, step):
            parts.reshape(-1)[place : place + len(rows)] = step.op.ufunc.reduce(rows, axis=1, dtype=step.partial.dtype)


def reporting(loop: Loop, step: ReduceStep) -> np.errstate:
    """A context in which NumPy tells the loop's `report` of a reduction's events."""
    kinds: dict[str, Literal["call"]] = dict.fromkeys(loop.watched, "call")
    return np.errstate(all="ignore", call=lambda kind, flag: loop.report(step.label, kind), **kinds)
