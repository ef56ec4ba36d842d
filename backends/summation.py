"""The summation tree: how a reduction's elements are put together, the same in every tier, on any number of threads.

The elements of one result are taken in the order of the loop's axes and cut into chunks of `CHUNK`; NumPy's own
reduction folds each chunk (pairwise, for sums), and then the chunks' results. The tree depends on the local shape and
on the order of the axes only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

CHUNK = 2048


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


def trailing(shape: Sequence[int], axes: Sequence[int]) -> Trailing | None:
    """The tree of a reduction of an iteration space along `axes`; None if they are not the innermost ones."""
    reduced = [axis in axes for axis, n in enumerate(shape) if n != 1]
    if reduced != sorted(reduced):
        return None
    results = length = 1
    for axis, n in enumerate(shape):
        if axis in axes:
            length *= n
        else:
            results *= n
    return Trailing(results, length)


def initial_of(ufunc: np.ufunc, dtype: np.dtype) -> Any:
    """The value with which NumPy begins a reduction; None where it begins with the first element."""
    if ufunc is np.add and dtype.kind in "fc":
        return np.add.reduce(np.array([-0.0])).astype(dtype)  # 0 or -0, depending on NumPy's version
    return None if ufunc.identity is None else np.array(ufunc.identity).astype(dtype)[()]


def neutral(ufunc: np.ufunc, dtype: np.dtype) -> Any:
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
            self._parts.append(self._reduce(taken, axis=1, dtype=_loop_type(self._dtype)))
            flat = flat[count * width :]
            self._done += count * width
        self._rest = flat.copy()

    def result(self) -> np.ndarray:
        """The results, one-dimensional."""
        parts = np.concatenate(self._parts)
        return fold_chunks(self._reduce, parts.reshape(self._tree.results, self._tree.chunks))


def fold_chunks(reduce: Any, parts: np.ndarray) -> np.ndarray:
    """The results of the chunks' results, one row for each result."""
    return parts[:, 0] if parts.shape[1] == 1 else reduce(parts, axis=1, dtype=_loop_type(parts.dtype))


def _loop_type(dtype: np.dtype) -> Any:
    """What asks a reduction for a loop: a type, without byte order; units of time are the operand's own."""
    return dtype.type if dtype.kind in "biufc" else None
