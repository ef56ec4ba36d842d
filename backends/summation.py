"""The summation tree: how a reduction's elements are put together, the same in every tier, on any number of threads.

Along the innermost axes, the elements of one result are taken in the order of the loop's axes and cut into chunks of
`CHUNK`; NumPy's own reduction folds each chunk (pairwise, for sums), and then the chunks' results. Along other axes
that follow each other, rows are cut into blocks of `ROWS`; the rows of a block are put together one after the other,
and then the blocks' results. The tree depends on the local shape and on the order of the axes only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

CHUNK = 2048
ROWS = 64


class Trailing(NamedTuple):
    """A reduction along the innermost axes.

    Attributes
    ----------
    results : int
        Number of results.
    length : int
        Elements of each; they follow each other.
    """

    results: int
    length: int

    @property
    def chunks(self) -> int:
        """Chunks of each result."""
        return -(-self.length // CHUNK)

    @property
    def together(self) -> int:
        """How many results are worked on at once, as one chunk, because they are short."""
        return max(1, CHUNK // max(1, self.length))

    @property
    def units(self) -> int:
        """Pieces of work: chunks, or groups of short results."""
        return self.results * self.chunks if self.chunks > 1 else -(-self.results // self.together)

    def within_rows(self, inner: int) -> bool:
        """Whether no piece of work crosses the end of a row of `inner` elements."""
        if inner == self.results * self.length:
            return True
        return inner % (self.length if self.chunks > 1 else self.length * self.together) == 0

    def bounds(self, unit: int) -> tuple[int, int]:
        """First element of a piece of work, and the one behind its last, in the order of the axes."""
        if self.chunks > 1:
            result, chunk = divmod(unit, self.chunks)
            begin = result * self.length + chunk * CHUNK
            return begin, min(begin + CHUNK, (result + 1) * self.length)
        step = self.together * self.length
        return unit * step, min(unit * step + step, self.results * self.length)


class Leading(NamedTuple):
    """A reduction along axes that follow each other, with others behind them.

    Attributes
    ----------
    outer, length, inner : int
        Elements along the axes before the reduced ones, along these, and behind them.
    first, end : int
        The number of the first reduced axis, and of the one behind the last.
    """

    outer: int
    length: int
    inner: int
    first: int
    end: int

    @property
    def blocks(self) -> int:
        """Blocks of rows of each result."""
        return -(-self.length // ROWS)


Tree = Trailing | Leading


def tree_of(shape: Sequence[int], axes: Sequence[int]) -> Tree | None:
    """The tree of a reduction of an iteration space along `axes`; None if others lie between them."""
    reduced = [axis for axis, n in enumerate(shape) if n != 1 and axis in axes]
    results = int(np.prod([n for axis, n in enumerate(shape) if axis not in axes], dtype=np.int64))
    length = int(np.prod([shape[axis] for axis in reduced], dtype=np.int64))
    first, end = (reduced[0], reduced[-1] + 1) if reduced else (len(shape), len(shape))
    if any(shape[axis] != 1 and axis not in axes for axis in range(first, end)):
        return None
    inner = int(np.prod(shape[end:], dtype=np.int64))
    return Trailing(results, length) if inner == 1 else Leading(results // inner, length, inner, first, end)


def initial_of(ufunc: np.ufunc, dtype: np.dtype) -> npt.ArrayLike | None:
    """The value with which NumPy begins a reduction; None where it begins with the first element."""
    if ufunc is np.add and dtype.kind in "fc":
        return np.add.reduce(np.array([-0.0])).astype(dtype)  # 0 or -0, depending on NumPy's version
    return None if ufunc.identity is None else np.array(ufunc.identity).astype(dtype)[()]


def neutral(ufunc: np.ufunc, dtype: np.dtype) -> npt.ArrayLike:
    """A value that leaves the other one as it is in a reduction, for elements that a mask leaves out."""
    if ufunc.identity is not None:
        return np.array(ufunc.identity).astype(dtype)[()]
    if ufunc is np.lcm:
        return np.ones((), dtype)[()]
    largest = ufunc in (np.minimum, np.fmin)
    if dtype.kind in "fc":
        return np.array(np.inf if largest else -np.inf, dtype)[()]
    if dtype.kind == "b":
        return np.bool_(largest)
    if dtype.kind in "mM":
        return np.array(np.iinfo(np.int64).max if largest else np.iinfo(np.int64).min + 1, np.int64).view(dtype)[()]
    info = np.iinfo(dtype)
    return np.array(info.max if largest else info.min, dtype)[()]


class Chunks:
    """Reduces the elements of a loop, which come tile by tile in the order of its axes, along a tree.

    Parameters
    ----------
    tree : Trailing
    ufunc : numpy.ufunc
    dtype : dtype
        Of the results.
    """

    def __init__(self, tree: Trailing, ufunc: np.ufunc, dtype: np.dtype) -> None:
        self._tree, self._reduce, self._dtype = tree, ufunc.reduce, dtype
        self._rest = np.empty(0, dtype)
        self._done = 0  # elements
        self._parts: list[np.ndarray] = []

    def feed(self, elements: np.ndarray) -> None:
        """The next elements, in C order."""
        flat = elements.reshape(-1).astype(self._dtype, copy=False)
        if self._rest.size:
            flat = np.concatenate([self._rest, flat])
        tree, size = self._tree, min(self._tree.length, CHUNK)
        while flat.size:
            left = tree.length - self._done % tree.length  # of the present result
            if tree.chunks == 1:
                count, width = flat.size // size, size
            elif left < size:
                count, width = int(flat.size >= left), left
            else:
                count, width = min(flat.size, left) // size, size
            if not count:
                break
            taken = flat[: count * width].reshape(count, width)
            self._parts.append(self._reduce(taken, axis=1, dtype=loop_type(self._dtype)))
            flat = flat[count * width :]
            self._done += count * width
        self._rest = flat.copy()

    def result(self) -> np.ndarray:
        """The results, one-dimensional."""
        parts = np.concatenate(self._parts)
        return fold_chunks(self._reduce, parts.reshape(self._tree.results, self._tree.chunks))


class Blocks:
    """Reduces the elements of a loop, which come tile by tile in the order of its axes, row after row.

    Parameters
    ----------
    tree : Leading
    ufunc : numpy.ufunc
    dtype : dtype
        Of the results.
    """

    def __init__(self, tree: Leading, ufunc: np.ufunc, dtype: np.dtype) -> None:
        self._tree, self._ufunc, self._dtype = tree, ufunc, dtype
        self._parts = np.empty((tree.outer * tree.blocks, tree.inner), dtype)
        self._row = self._column = 0  # where the next element stands

    def feed(self, elements: np.ndarray) -> None:
        """The next elements, in C order."""
        flat = np.ascontiguousarray(elements.reshape(-1).astype(self._dtype, copy=False))
        inner = self._tree.inner
        while flat.size:
            if self._column or flat.size < inner:
                taken = flat[: inner - self._column]
                self._some(taken)
                self._row, self._column = divmod(self._row * inner + self._column + taken.size, inner)
            else:
                rows = self._rows_ahead(flat.size // inner)
                taken = flat[: rows * inner]
                self._whole(taken.reshape(rows, inner))
                self._row += rows
            flat = flat[taken.size :]

    def _rows_ahead(self, most: int) -> int:
        """How many rows can be taken at once: the rest of a block, or some whole ones."""
        of_result = self._row % self._tree.length
        most = min(most, self._tree.length - of_result)
        of_block = of_result % ROWS
        return most // ROWS * ROWS if not of_block and most > ROWS else min(most, ROWS - of_block)

    def _block(self) -> tuple[int, bool]:
        """The block of the next row, and whether it begins with it."""
        result, row = divmod(self._row, self._tree.length)
        return result * self._tree.blocks + row // ROWS, row % ROWS == 0

    def _some(self, elements: np.ndarray) -> None:
        """A part of a row."""
        block, begins = self._block()
        part = self._parts[block, self._column : self._column + elements.size]
        if begins:
            part[...] = self._ufunc.reduce(elements[None], axis=0, dtype=loop_type(self._dtype))
        else:
            self._ufunc(part, elements, out=part)

    def _whole(self, rows: np.ndarray) -> None:
        """Whole rows: a part of one block, or some blocks."""
        block, begins = self._block()
        if begins:
            count = max(1, len(rows) // ROWS)
            blocks = rows.reshape(count, -1, self._tree.inner)
            self._parts[block : block + count] = self._ufunc.reduce(blocks, axis=1, dtype=loop_type(rows.dtype))
            return
        part = self._parts[block]
        for row in rows:
            self._ufunc(part, row, out=part)

    def result(self) -> np.ndarray:
        """The results, one row for each index of the outer axes."""
        tree = self._tree
        one_nan(self._ufunc, self._parts)
        return fold_chunks(self._ufunc.reduce, self._parts.reshape(tree.outer, tree.blocks, tree.inner))


def one_nan(ufunc: np.ufunc, parts: np.ndarray) -> None:
    """Let all NaN be one: which of several NaN remains depends on how the machine code was made."""
    if parts.dtype.kind == "f" and ufunc in (np.add, np.multiply):
        parts[np.isnan(parts)] = np.nan


def fold_chunks(reduce: Callable[..., np.ndarray], parts: np.ndarray) -> np.ndarray:
    """The results of the results of chunks or blocks, which are counted along axis 1."""
    return parts[:, 0] if parts.shape[1] == 1 else reduce(parts, axis=1, dtype=loop_type(parts.dtype))


def loop_type(dtype: np.dtype) -> type[np.generic] | None:
    """What asks a reduction for a loop: a type, without byte order; units of time are the operand's own."""
    return dtype.type if dtype.kind in "biufc" else None
