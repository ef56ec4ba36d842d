"""Loops that run as one launch: the block that the kernel of `bundle` works with, and what it leaves."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from numpy_dist.backends.axes import in_memory_order, with_long_rows
from numpy_dist.backends.base import Loop
from numpy_dist.backends.compiled.arguments import ALONE, ArgumentBlock, Scalars
from numpy_dist.backends.compiled.repair import repair

if TYPE_CHECKING:
    from numpy_dist.backends.compiled.arguments import Reduced
    from numpy_dist.backends.compiled.threads import ThreadPool
    from numpy_dist.backends.interpreter import Interpreter

    class BundlingBackend(Protocol):
        """What loops that run as one launch ask of a `Compiled`."""

        pool: ThreadPool
        interpreter: Interpreter
        counts: dict[str, int]

    class BundledMember(Protocol):
        """What they ask of each `CompiledRepeat`."""

        address: int
        block: ArgumentBlock

        def result(self, loop: Callable[[], Loop], step: Reduced, parts: np.ndarray) -> np.ndarray:
            """A reduction's partial result."""


class Task(NamedTuple):
    """A range of units of the loop with a number, as large as a thread takes at a time."""

    loop: int
    begin: int
    end: int


def tasks_of(blocks: Sequence[ArgumentBlock]) -> Iterator[Task]:
    """Loops divided into tasks, the largest loops first, so that threads end at about the same time."""
    for number in sorted(range(len(blocks)), key=lambda number: -blocks[number].total):
        block = blocks[number]
        for begin in range(0, block.units, block.grain):
            yield Task(number, begin, min(begin + block.grain, block.units))


class BundledLoops:
    """See `backends.base.Bundled`.

    Parameters
    ----------
    backend : Compiled
    address : int
        Of the kernel of `bundle`.
    members : sequence of Repeated
    """

    def __init__(self, backend: BundlingBackend, address: int, members: Sequence[BundledMember]) -> None:
        self._backend, self._address, self._members = backend, address, members
        blocks = [member.block for member in members]
        self._arguments = np.zeros(sum(len(block.words) for block in blocks), np.int64)
        places: list[int] = []  # of the operands' addresses in these words
        end = 0
        for block in blocks:
            begin, end = end, end + len(block.words)
            places += [begin + place for place in block.move(self._arguments[begin:end])]
        self._places = np.array(places, np.int64)
        self._values = Scalars([place for block in blocks for place in block.values.places])
        self._tasks = list(tasks_of(blocks))
        self._grain = len(self._tasks) if sum(block.total for block in blocks) <= ALONE else 1
        self._stopped = np.zeros(len(self._tasks), np.int64)  # the units at which tasks stopped
        words = [self._stopped.ctypes.data]
        for loop, begin, end in self._tasks:
            words += [members[loop].address, blocks[loop].address, begin, end]
        self._words = np.array(words, np.int64)
        self._block = self._words.ctypes.data
        self._single = [self._gather(number) for number in range(len(blocks[0].reductions))]

    def _gather(self, number: int) -> np.ndarray | None:
        """Where the loops leave their results of a reduction, if these have one element; chunks are elsewhere."""
        blocks = [member.block for member in self._members]
        if any(len(block.parts[number]) != 1 for block in blocks):
            return None
        made = np.empty((len(blocks), 1), blocks[0].parts[number].dtype)
        for row, block in zip(made, blocks, strict=True):
            if block.parts[number].shape[1] == 1:
                block.place(number, row.reshape(1, 1))
        return made

    def fill(self, addresses: np.ndarray, scalars: list[object]) -> bool:
        """As in `backends.base.Bundled`."""
        self._arguments[self._places] = addresses
        try:
            self._values.set(scalars)
        except OverflowError:
            return False
        return True

    def launch(self, loop: Callable[[int], Loop]) -> Sequence[Sequence[np.ndarray] | np.ndarray]:
        """As in `backends.base.Bundled`."""
        backend = self._backend
        backend.counts["numba"] += len(self._members)
        undone = backend.pool.run(self._address, self._block, len(self._tasks), self._grain)
        if undone:
            self._finish(undone, loop)
        return [self._results(number, loop) for number in range(len(self._single))]

    def _results(self, number: int, loop: Callable[[int], Loop]) -> Sequence[np.ndarray] | np.ndarray:
        """The loops' results of a reduction."""
        made = self._single[number]
        results = []
        for row, member in enumerate(self._members):
            block = member.block
            parts = block.parts[number]
            if made is None or parts.shape[1] > 1:
                result = member.result(partial(loop, row), block.reductions[number], parts)
                if made is None:
                    results.append(result)
                else:
                    made[row] = result.reshape(1)
        return results if made is None else made

    def _finish(self, undone: Sequence[tuple[int, int]], loop: Callable[[int], Loop]) -> None:
        """Have the interpreter do what tasks have left undone."""
        made: dict[int, Loop] = {}
        for first, last in undone:
            for number in range(first, last):
                task = self._tasks[number]
                begin = int(self._stopped[number]) if number == first else task.begin
                if task.loop not in made:
                    made[task.loop] = with_long_rows(in_memory_order(loop(task.loop)))
                repair(self._backend.interpreter, made[task.loop], self._members[task.loop].block, begin, task.end)
