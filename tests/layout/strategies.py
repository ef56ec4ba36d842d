"""Random shapes, layouts and views, and the oracle for views: an array whose values are its own word numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from numpy_dist.layout import Copies, Cut, Layout, Mesh, Pinned, ViewMap, decode

Check = Callable[..., None]


def quick_and_long(check: Check, examples: int = 300, many: int = 5_000, **arguments: Any) -> tuple[Check, Check]:
    """Two tests of one property: a reproducible one for every run, and one with far more and ever new examples."""
    ignored = [HealthCheck.too_slow, HealthCheck.data_too_large]
    common: dict[str, Any] = {"deadline": None, "suppress_health_check": ignored}
    quick = settings(max_examples=examples, derandomize=True, **common)(given(**arguments)(check))
    thorough = settings(max_examples=many, derandomize=False, **common)(given(**arguments)(check))
    return quick, pytest.mark.long(thorough)


@st.composite
def shapes(draw: st.DrawFn, max_ndim: int = 4, smallest: int = 0, largest: int = 7) -> tuple[int, ...]:
    ndim = draw(st.integers(0, max_ndim))
    lower = draw(st.sampled_from([1, 1, 1, smallest])) if smallest < 1 else smallest
    return tuple(draw(st.lists(st.integers(lower, largest), min_size=ndim, max_size=ndim)))


@st.composite
def cut_points(draw: st.DrawFn, n: int, extent: int) -> tuple[int, ...]:
    """Irregular points, some shards empty, ascending or descending."""
    inner = draw(st.lists(st.integers(0, n), min_size=extent - 1, max_size=extent - 1))
    points = (0, *sorted(inner), n)
    return points[::-1] if draw(st.booleans()) else points


@st.composite
def layouts(draw: st.DrawFn, shape: tuple[int, ...], max_ranks: int = 64) -> Layout:
    extents: list[int] = []
    for _ in range(draw(st.integers(1, 3))):
        extents.append(draw(st.integers(1, max(1, min(max_ranks // prod(extents), 6 if extents else max_ranks)))))
    free = list(range(len(shape)))
    dims: list[Cut | Copies | Pinned] = []
    for extent in extents:
        kind = draw(st.sampled_from(["cut", "cut", "cut", "copies", "pinned"]))
        if kind == "cut" and free:
            axis = free.pop(draw(st.integers(0, len(free) - 1)))
            dims.append(Cut(axis, draw(cut_points(shape[axis], extent))))
        elif kind == "pinned":
            dims.append(Pinned(draw(st.integers(0, extent - 1))))
        else:
            dims.append(Copies())
    return Layout(shape, Mesh(tuple(extents)), tuple(dims))


# -- views -----------------------------------------------------------------------------------------------------------


WORD = 4  # bytes: float32 counts exactly up to 2**24, and complex64 is two words


def word_array(shape: tuple[int, ...], words: int) -> np.ndarray:
    """A storage of 1 or 2 words for each element; each word holds its own number."""
    numbers = np.arange(prod(shape) * words, dtype=np.float32)
    return numbers.view(np.float32 if words == 1 else np.complex64).reshape(shape)


def words_of(view: np.ndarray) -> np.ndarray:
    """The numbers of the words that each element covers, along a new last axis."""
    parts = [view.real, view.imag] if view.dtype == np.complex64 else [view]
    return np.stack([np.asarray(part) for part in parts], axis=-1).astype(np.int64)


def index_view(draw: st.DrawFn, view: np.ndarray) -> np.ndarray:
    index: list[Any] = []
    for n in view.shape:
        kind = draw(st.sampled_from(["slice", "slice", "slice", "int", "all", "newaxis"]))
        if kind == "newaxis":
            index.append(None)
            kind = "all"
        if kind == "int" and n:
            index.append(draw(st.integers(-n, n - 1)))
        elif kind == "slice":
            ends = st.none() | st.integers(-n - 1, n + 1)
            step = draw(st.none() | st.integers(-3, 3).filter(bool))
            index.append(slice(draw(ends), draw(ends), step))
        else:
            index.append(slice(None))
    # The Ellipsis keeps a fully indexed array an array; elsewhere it replaces a tail of whole axes.
    index.insert(draw(st.integers(0, len(index))), Ellipsis)
    return view[tuple(index)]


def transpose_view(draw: st.DrawFn, view: np.ndarray) -> np.ndarray:
    return view.transpose(draw(st.permutations(range(view.ndim))))


def broadcast_view(draw: st.DrawFn, view: np.ndarray) -> np.ndarray:
    shape = [draw(st.integers(1, 3)) if n == 1 else n for n in view.shape]
    if draw(st.booleans()):
        shape.insert(0, draw(st.integers(1, 3)))
    return np.broadcast_to(view, shape)


def diagonal_view(draw: st.DrawFn, view: np.ndarray) -> np.ndarray:
    if view.ndim < 2:
        return view
    first, second = draw(st.permutations(range(view.ndim)))[:2]
    return view.diagonal(draw(st.integers(-2, 2)), first, second)


def reshape_view(draw: st.DrawFn, view: np.ndarray) -> np.ndarray:
    shape = list(view.shape)
    if shape and draw(st.booleans()):
        axis = draw(st.integers(0, len(shape) - 1))
        divisors = [d for d in range(1, shape[axis] + 1) if shape[axis] % d == 0] or [1]
        divisor = draw(st.sampled_from(divisors))
        shape[axis : axis + 1] = [divisor, shape[axis] // divisor]
    if len(shape) > 1 and draw(st.booleans()):
        axis = draw(st.integers(0, len(shape) - 2))
        shape[axis : axis + 2] = [shape[axis] * shape[axis + 1]]
    try:
        return np.reshape(view, shape, copy=False)
    except ValueError:
        return view


def window_view(draw: st.DrawFn, view: np.ndarray) -> np.ndarray:
    if not view.ndim or not view.size:
        return view
    axis = draw(st.integers(0, view.ndim - 1))
    width = draw(st.integers(1, view.shape[axis]))
    return np.lib.stride_tricks.sliding_window_view(view, width, axis)


def dtype_view(draw: st.DrawFn, view: np.ndarray) -> np.ndarray:
    kind = draw(st.sampled_from(["real", "imag", "float32", "complex64"]))
    if kind in ("real", "imag"):
        return getattr(view, kind) if view.dtype == np.complex64 else view
    try:
        return view.view(kind)
    except ValueError:
        return view


PLAIN = (index_view, transpose_view, broadcast_view)
EVERY = (*PLAIN, index_view, diagonal_view, reshape_view, reshape_view, window_view, dtype_view)


@dataclass(frozen=True)
class ViewCase:
    """A storage of a layout, and a view of it."""

    layout: Layout
    storage: np.ndarray
    view: np.ndarray
    plain: bool

    @property
    def words_per_cell(self) -> int:
        return self.storage.itemsize // WORD

    def decode(self, cut_axes: tuple[int, ...] | None = None) -> ViewMap | None:
        offset = self.view.__array_interface__["data"][0] - self.storage.__array_interface__["data"][0]
        storage, view, axes = self.storage, self.view, self.layout.cut_axes if cut_axes is None else cut_axes
        return decode(storage.shape, storage.itemsize, axes, offset, view.shape, view.strides, view.itemsize)

    def cells(self) -> np.ndarray:
        """Coordinates of the cells that each element touches: view shape + (cells, storage axes)."""
        flat = words_of(self.view) // self.words_per_cell
        if not self.storage.ndim:
            return np.zeros((*flat.shape, 0), np.int64)
        if not flat.size:
            return np.zeros((*flat.shape, self.storage.ndim), np.int64)
        return np.stack(np.unravel_index(flat, self.storage.shape), axis=-1)

    def held(self, box: Any) -> np.ndarray:
        """Which cells of the view's elements lie in a box of the storage (None: in none): view shape + (cells,)."""
        cells = self.cells()
        if box is None:
            return np.zeros(cells.shape[:-1], bool)
        low, high = np.array([a for a, _ in box], np.int64), np.array([b for _, b in box], np.int64)
        return ((low <= cells) & (cells < high)).all(axis=-1)


@st.composite
def view_cases(draw: st.DrawFn, max_ranks: int = 12, plain: bool | None = None) -> ViewCase:
    shape = draw(shapes())
    layout = draw(layouts(shape, max_ranks))
    storage = word_array(shape, draw(st.sampled_from([1, 2])))
    only_plain = draw(st.booleans()) if plain is None else plain
    view = storage
    for _ in range(draw(st.integers(0, 4))):
        step = draw(st.sampled_from(PLAIN if only_plain else EVERY))
        candidate = step(draw, view)
        if candidate.size <= 4000 and candidate.ndim <= 7:
            view = candidate
    return ViewCase(layout, storage, view, only_plain)


def box_mask(shape: tuple[int, ...], box: Any) -> np.ndarray:
    mask = np.zeros(shape, bool)
    if box is not None:
        mask[tuple(slice(a, b) for a, b in box)] = True
    return mask
