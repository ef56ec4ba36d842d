"""The argument block of a kernel: int64 words, of which only addresses and values of scalars change between runs."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from numpy_dist.backends.axes import SHORT
from numpy_dist.backends.base import ReduceStep, arrays_of
from numpy_dist.backends.compiled import inner_loops
from numpy_dist.backends.compiled.casts import SIZE
from numpy_dist.backends.compiled.form import Lowered, first_of
from numpy_dist.backends.compiled.kernel import Kernel
from numpy_dist.backends.compiled.pairwise import start_of_few
from numpy_dist.backends.summation import Leading, Trailing, Tree

if TYPE_CHECKING:
    from numpy_dist.backends.base import Loop

# Bits of NumPy's floating-point events, as kernels report them.
EVENTS = {"divide": 1, "over": 2, "under": 4, "invalid": 8}
ALONE = 65536  # elements of a loop that is not worth waking other threads for
LITTLE = 32768  # elements that are not worth dividing
GRAIN = 32768  # elements that a thread takes at a time
MANY, NARROW = 32, 512  # units of a reduction of rows, and columns of a unit, where there is a choice


class Reduced(NamedTuple):
    """A reduction of a loop: what is needed to put its chunks together."""

    ufunc: np.ufunc
    shape: tuple[int, ...]
    label: int
    watched: frozenset[str]


class ArgumentBlock:
    """The argument block of one loop.

    Parameters
    ----------
    loop : Loop
        With its axes in memory order.
    lowered : Lowered
        The same loop's form and arguments. Its arrays are not kept.
    kernel : Kernel

    Attributes
    ----------
    address, units, grain : int
        What a launch needs.
    fine : int
        The grain for threads that are awake; 0 where it makes no difference.
    operands, scalars
        See `backends.base.Repeat`.
    values : Scalars
        Where the values of these scalars belong.
    reductions : list of Reduced
    across : bool
        See `form.Form`.
    total, nbytes : int
        Elements of the loop, and what it goes through of its operands.
    divided : bool
        Whether `divide` was called.
    starts_with_first : list of bool
        For each reduction (see `form.ReductionForm`).
    parts : list of ndarray
        For each reduction the results of chunks or blocks, which are counted along axis 1.
    """

    def __init__(self, loop: Loop, lowered: Lowered, kernel: Kernel) -> None:
        self.kernel = kernel
        self.divided = False
        self.tree: Tree | None = lowered.tree
        self.words = np.zeros(kernel.length, np.int64)
        self.address: int = self.words.ctypes.data
        self._memory = self.words.data.cast("B")
        self.parts: list[np.ndarray] = []
        steps = [s for s in loop.steps if isinstance(s, ReduceStep)]
        self.reductions = [
            Reduced(fold.ufunc, s.partial.shape, s.label, loop.watched)
            for fold, s in zip(lowered.form.folds, steps, strict=True)
        ]
        self.starts_with_first = [fold.starts_with_first for fold in lowered.form.folds]
        self.inner, self.across = lowered.shape[-1], lowered.form.across
        words = self._extents(lowered) | self._strides(lowered)
        words["mask"] = sum(EVENTS[kind] for kind in loop.watched)
        for number, call in enumerate(kernel.calls):
            words[f"call{number}"], words[f"data{number}"] = _inner_loop(*call)
        for number, fold in enumerate(lowered.form.folds):
            assert self.tree is not None
            words[f"f{number}"], words[f"g{number}"] = _inner_loop(fold.ufunc, (fold.dtype,) * 3)
            self.parts.append(np.empty(_extents(self.tree), fold.dtype))
            words[f"partial{number}"] = self.parts[-1].ctypes.data
            initial = first_of(fold.ufunc, fold.dtype, fold.native)
            if initial is not None:
                self._typed(f"initial{number}", fold.dtype)[0] = initial
            if f"few{number}" in kernel.words:
                self._typed(f"few{number}", fold.dtype)[0] = start_of_few(fold.dtype)
        for name, value in words.items():
            if name in kernel.words:
                self.words[kernel.words[name]] = value
        self._arguments(loop, lowered)

    def _extents(self, lowered: Lowered) -> dict[str, int]:
        shape = lowered.shape
        total = self.total = int(np.prod(shape, dtype=np.int64))
        self.nbytes = total * sum(SIZE[operand.kind] for operand in lowered.form.operands if operand.inner != "0")
        words = {"inner": self.inner} | {f"n{axis}": n for axis, n in enumerate(shape[:-1])}
        tree = self.tree
        if not isinstance(tree, Trailing):
            self.tiles = -(-self.inner // self.kernel.width)
            if tree is not None:
                self.middle = tree.inner // self.inner
                parts = tree.outer * tree.blocks * self.middle
                words |= {"length": tree.length, "blocks": tree.blocks, "middle": self.middle}
                if total > ALONE:  # enough work for all threads, but no rows shorter than caches like
                    self.tiles = max(self.tiles, min(MANY // parts, self.inner // NARROW))
            self.width = -(-self.inner // self.tiles)
            self.tiles = -(-self.inner // self.width)
            self.units = total // self.inner * self.tiles if tree is None else parts * self.tiles
            words |= {"tiles": self.tiles, "width": self.width, "lines": total // self.inner}
        else:
            self.units = tree.units
            words |= {"total": total, "length": tree.length, "chunks": tree.chunks, "together": tree.together}
        self._set_grain()
        return words

    def _set_grain(self) -> None:
        units, total = self.units, self.total
        self.grain = units if total <= ALONE else max(1, GRAIN * units // total)
        self.fine = -(-units // 2) if LITTLE < total <= ALONE else 0
        if self.across and (lines := units // self.tiles) <= SHORT:  # a thread takes what lies together
            self.grain, self.fine = (-(-grain // lines) * lines for grain in (self.grain, self.fine))

    def divide(self, width: int) -> None:
        """Have units of so many elements of a row, for good; not where something is reduced."""
        total = self.total
        self.divided = True
        self.width, self.tiles = width, -(-self.inner // width)
        self.units = total // self.inner * self.tiles
        self._set_grain()
        for name, value in (("tiles", self.tiles), ("width", self.width)):
            self.words[self.kernel.words[name]] = value

    def _strides(self, lowered: Lowered) -> dict[str, int]:
        words: dict[str, int] = {}
        for k, (operand, strides) in enumerate(zip(lowered.form.operands, lowered.strides, strict=True)):
            words |= {f"d{k}_{axis}": stride for axis, stride in enumerate(strides[:-1])}
            if operand.inner == "s":
                words[f"t{k}"] = strides[-1]
        return words

    def _arguments(self, loop: Loop, lowered: Lowered) -> None:
        """Where addresses and scalars belong, and the first ones."""
        places = {id(x): number for number, x in enumerate(arrays_of(loop))}
        based = [k for k, operand in enumerate(lowered.form.operands) if operand.base == k]
        places_of = [self.kernel.words[f"p{k}"] for k in based]
        self._addresses = struct.Struct(f"={len(based)}q")  # their words lie one behind the other
        self._first = 8 * min(places_of, default=0)
        self.operands = [places[id(lowered.arrays[k])] for k in based]
        self.scalars: list[tuple[int, int]] = []
        self._changing: list[tuple[str, np.dtype]] = []
        for number, (value, place) in enumerate(zip(lowered.scalars, lowered.scalar_places, strict=True)):
            self._typed(f"s{number}", value.dtype)[0] = value
            if place is not None:
                self.scalars.append(place)
                self._changing.append((f"s{number}", value.dtype))
        self.values = Scalars([self._typed(*changing) for changing in self._changing])
        for word, k in zip(places_of, based, strict=True):
            self.words[word] = lowered.arrays[k].ctypes.data

    def place(self, number: int, results: np.ndarray) -> None:
        """Have the results of a reduction's chunks elsewhere, for good."""
        self.parts[number] = results
        self.words[self.kernel.words[f"partial{number}"]] = results.ctypes.data

    def _typed(self, name: str, dtype: np.dtype) -> np.ndarray:
        """The two words of a value, as an array of its dtype."""
        place = self.kernel.words[name]
        return self.words[place : place + 2].view(dtype)

    def fill(self, addresses: list[int], scalars: list[object]) -> None:
        """Set the operands' addresses and the scalars' values.

        Raises
        ------
        OverflowError
            For a Python number that the loop's dtype cannot hold.
        """
        self._addresses.pack_into(self._memory, self._first, *addresses)
        self.values.set(scalars)

    def move(self, words: np.ndarray) -> range:
        """Lie in other words from now on; returns which of them are the operands' addresses."""
        words[:] = self.words
        self.words, self.address, self._memory = words, words.ctypes.data, words.data.cast("B")
        self.values = Scalars([self._typed(*changing) for changing in self._changing])
        return range(self._first // 8, self._first // 8 + len(self.operands))

    def bounds(self, unit: int) -> tuple[int, int]:
        """First element of a unit and the one behind its last, counted in the order of the axes; not for rows."""
        if isinstance(self.tree, Trailing):
            return self.tree.bounds(unit)
        if self.across:
            tile, row = divmod(unit, self.units // self.tiles)
        else:
            row, tile = divmod(unit, self.tiles)
        begin = row * self.inner
        return begin + tile * self.width, begin + min(self.inner, (tile + 1) * self.width)

    def columns(self, unit: int) -> tuple[int, int, int]:
        """For rows: the block of a unit, and its columns: the first one, and the one behind the last."""
        across, tile = divmod(unit, self.tiles)
        block, line = divmod(across, self.middle)
        begin = line * self.inner
        return block, begin + tile * self.width, begin + min(self.inner, (tile + 1) * self.width)


class Scalars:
    """Where the values of scalars belong: arrays of one element."""

    def __init__(self, places: Sequence[np.ndarray]) -> None:
        self.places = places
        self._narrow = any(place.dtype.char in "fF" for place in places)  # Python's floats may not fit

    def set(self, values: Sequence[object]) -> None:
        """Set the values.

        Raises
        ------
        OverflowError
            For a Python number that its dtype cannot hold.
        """
        if not self._narrow:
            for place, value in zip(self.places, values, strict=True):
                place[0] = value
            return
        try:
            with np.errstate(all="ignore", over="raise"):
                for place, value in zip(self.places, values, strict=True):
                    place[0] = value
        except FloatingPointError as problem:
            raise OverflowError(str(problem)) from problem


def _extents(tree: Tree) -> tuple[int, ...]:
    """The shape of the results of chunks or blocks."""
    if isinstance(tree, Leading):
        return tree.outer, tree.blocks, tree.inner
    return tree.results, tree.chunks


def _inner_loop(ufunc: np.ufunc, dtypes: tuple[np.dtype, ...]) -> inner_loops.InnerLoop:
    found = inner_loops.find(ufunc, dtypes)
    assert found is not None
    return found
