"""The trees of reductions: which one an iteration space has, and that tiles do not matter."""

from __future__ import annotations

import numpy as np
import pytest

from numpy_dist.backends import interpreter
from numpy_dist.backends.base import Loop, ReduceStep
from numpy_dist.backends.interpreter import Interpreter
from numpy_dist.backends.summation import CHUNK, ROWS, Blocks, Leading, Trailing, tree_of
from numpy_dist.ir.ops import op_of

TREES = [
    ((4, 5), (1,), Trailing(4, 5)),
    ((4, 5), (0, 1), Trailing(1, 20)),
    ((4, 1), (0,), Trailing(1, 4)),  # an axis of one element lies where we want it
    ((1, 5), (0,), Trailing(5, 1)),
    ((1, 1), (0,), Trailing(1, 1)),
    ((4, 5), (0,), Leading(1, 4, 5, 0, 1)),
    ((2, 3, 4), (1,), Leading(2, 3, 4, 1, 2)),
    ((2, 3, 4, 5), (1, 2), Leading(2, 12, 5, 1, 3)),
    ((2, 1, 3, 1, 4), (2,), Leading(2, 3, 4, 2, 3)),
    ((2, 1, 3, 1, 4), (1, 2, 3), Leading(2, 3, 4, 2, 3)),
    ((2, 3, 1, 4, 5), (1, 3), Leading(2, 12, 5, 1, 4)),
    ((2, 3, 4), (0, 2), None),
    ((2, 3, 4, 5), (0, 2), None),
]


@pytest.mark.parametrize("shape,axes,tree", TREES, ids=str)
def test_trees(shape: tuple[int, ...], axes: tuple[int, ...], tree: Trailing | Leading | None) -> None:
    assert tree_of(shape, axes) == tree


def test_units_of_innermost_axes() -> None:
    tree = Trailing(3, CHUNK + 1)
    assert (tree.chunks, tree.units) == (2, 6)
    assert [tree.bounds(unit) for unit in range(2)] == [(0, CHUNK), (CHUNK, CHUNK + 1)]
    short = Trailing(1000, 3)
    assert short.together == CHUNK // 3
    bounds = [short.bounds(unit) for unit in range(short.units)]
    assert bounds[0][0] == 0 and bounds[-1][1] == 3000
    assert all(a[1] == b[0] for a, b in zip(bounds, bounds[1:], strict=False))


def _model(ufunc: np.ufunc, x: np.ndarray) -> np.ndarray:
    """Row after row of 64, and then the blocks, by one ufunc call for each row."""

    def fold(rows):
        given = list(rows) if ufunc.identity is None else [np.full_like(rows[0], ufunc.identity), *rows]
        total = given[0].copy()
        for row in given[1:]:
            total = ufunc(total, row)
        return total

    return np.stack([fold([fold(y[k : k + ROWS]) for k in range(0, len(y), ROWS)]) if len(y) > ROWS else fold(y)
                     for y in x])  # fmt: skip


@pytest.mark.parametrize("ufunc", [np.add, np.maximum, np.multiply, np.logaddexp])
@pytest.mark.parametrize("outer,length,inner", [(1, 5, 2), (3, 64, 7), (2, 200, 3), (3, 129, 50), (1, 65, 1000)])
def test_rows_are_added_in_order_whatever_the_tiles(ufunc: np.ufunc, outer: int, length: int, inner: int) -> None:
    rng = np.random.default_rng(4)
    x = rng.standard_normal((outer, length, inner)) * 10.0 ** rng.integers(-9, 9, (outer, length, inner))
    x = x / 1e3 if ufunc is not np.multiply else 1 + x / 1e12
    expected = _model(ufunc, x)
    for pieces in (1, 2, 7, 50):
        cuts = np.sort(rng.integers(0, x.size, pieces - 1))
        blocks = Blocks(Leading(outer, length, inner, 1, 2), ufunc, x.dtype)
        for piece in np.split(x.reshape(-1), cuts):
            blocks.feed(piece)
        assert blocks.result().tobytes() == expected.tobytes()


@pytest.mark.parametrize("tile", [50, 1000, 65536])
@pytest.mark.parametrize("place", ["C", "reversed", "strided", "sums of short"])
def test_tiles_of_the_interpreter(monkeypatch: pytest.MonkeyPatch, tile: int, place: str) -> None:
    monkeypatch.setattr(interpreter, "TILE_ELEMENTS", tile)
    rng = np.random.default_rng(5)
    x = rng.random((2, 300, 80)) * 10.0 ** rng.integers(-9, 9, (2, 300, 80))
    dtype = np.dtype("f4" if place == "sums of short" else "f8")
    x = {"C": x, "reversed": x[:, ::-1, ::-1], "strided": x[:, ::2, ::3]}.get(place, x)
    partial = np.empty((2, 1, x.shape[2]), dtype)
    loop = Loop(x.shape, [ReduceStep(op_of(np.add), x, partial, (1,))], lambda label, kind: None)
    Interpreter().run(loop)
    # A reversed array is walked in the order of its axes.
    assert partial.tobytes() == _model(np.add, x.astype(dtype)).tobytes()


def test_nan_is_one() -> None:
    x = np.zeros((70, 3))
    x[3, 0], x[5, 0], x[66, 0] = -np.nan, np.nan, np.inf
    x[0, 1], x[1, 1] = np.inf, -np.inf
    partial = np.empty((1, 3))
    with np.errstate(all="ignore"):
        Interpreter().run(Loop(x.shape, [ReduceStep(op_of(np.add), x, partial, (0,))], lambda label, kind: None))
    assert np.isnan(partial[0, :2]).all() and not np.signbit(partial[0, :2]).any() and partial[0, 2] == 0
