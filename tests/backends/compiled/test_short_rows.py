"""Short rows by kernels: bit for bit what NumPy makes of them; what meets an event is left to NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from numpy_dist.backends.compiled import short_rows
from numpy_dist.backends.compiled.backend import Compiled
from numpy_dist.backends.summation import ROWS, Blocks, Leading

KINDS = ("f4", "f8")
OPERATIONS = (np.add, np.subtract, np.multiply, np.true_divide)


def values(kind: str, shape: tuple[int, ...], seed: int = 1) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return (rng.standard_normal(shape) * 10.0 ** rng.integers(-9, 9, shape)).astype(kind)


def tree(rows: np.ndarray) -> np.ndarray:
    """The sums along axis 1, as the interpreter makes them."""
    outer, length, inner = rows.shape
    blocks = Blocks(Leading(outer, length, inner, 1, 2), np.add, rows.dtype)
    blocks.feed(rows)
    return blocks.result()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("length", (31, 32, 64, 65, 300))
def test_sums_have_the_bits_of_the_tree(backend: Compiled, kind: str, length: int) -> None:
    for inner in (*range(2, 17), 32):
        rows = values(kind, (8, length, inner))
        rows[0, :, 0] = -0.0
        rows[1, 5, -1] = -np.nan
        rows[2, 3:5] = np.inf
        made = backend.short_rows.sums(rows, ROWS)
        if inner * rows.itemsize > short_rows.SHORT or length < 32:
            assert made is None
        else:
            assert made is not None and made.tobytes() == tree(rows).tobytes()
            assert np.isnan(made[1, -1])


SHAPES: dict[str, tuple[Any, Any]] = {
    "windows": ((8, 10, 10, 3, 1), (1, 10, 10, 3, 8)),
    "odd rows": ((9, 7, 5, 1), (7, 5, 7)),
    "a column beside": ((300, 13), (300, 1)),
    "before a column": ((300, 1), (300, 11)),
    "one row for all": ((5, 60, 6), (6,)),
    "three": ((500, 3), (1, 3)),
}


@pytest.mark.parametrize("shapes", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("kind", KINDS)
def test_operations_have_numpys_bits(backend: Compiled, kind: str, shapes: tuple[Any, Any]) -> None:
    a, b = (values(kind, shape, seed) for seed, shape in enumerate(shapes))
    for ufunc in OPERATIONS:
        made, theirs = backend.short_rows.computed(ufunc, a, b), ufunc(a, b)
        assert made is not None
        assert made.tobytes() == theirs.tobytes() and made.strides == theirs.strides and made.dtype == theirs.dtype


def test_rows_of_a_larger_array(backend: Compiled) -> None:
    x, w = values("f4", (8, 40, 40, 3)), values("f4", (10, 10, 3, 8))
    for i, j in ((0, 0), (7, 3), (30, 30)):
        a, b = x[:, i : i + 10, j : j + 10, :, None], w[None]
        made = backend.short_rows.computed(np.multiply, a, b)
        assert made is not None and made.tobytes() == (a * b).tobytes()
    a = x[:, :, 5:20]
    made = backend.short_rows.computed(np.add, a, a[::2].repeat(2, 0))
    assert made is None  # rows of 45 elements
    a = x[..., :2]
    made = backend.short_rows.computed(np.add, a, a)
    assert made is not None and made.tobytes() == (a + a).tobytes()


def test_what_numpy_has_in_another_order_is_left_to_it(backend: Compiled) -> None:
    x, w = values("f8", (300, 8)), values("f8", (8, 300))
    for a, b in (
        (w.T, x),
        (x, w.T),
        (x[::-1], x),
        (x[:, ::-1], x[:, :1]),
        (x, x),
        (x, x[:200]),
        (x[:0], x[:0]),
        (x[:100], x[:1]),
        (x, x.astype("f4")),
        (x, np.float64(2) + np.zeros(())),
    ):
        assert backend.short_rows.computed(np.add, a, b) is None
    assert backend.short_rows.computed(np.maximum, x, x[:1]) is None


@pytest.mark.parametrize("kind", KINDS)
def test_events_are_left_to_numpy(backend: Compiled, kind: str) -> None:
    largest = np.finfo(kind).max
    for ufunc, one, other in (
        (np.add, largest, largest),
        (np.subtract, np.inf, np.inf),
        (np.multiply, np.finfo(kind).tiny, 0.1),
        (np.true_divide, 1, 0),
    ):
        a, b = np.ones((300, 8), kind), np.ones((1, 8), kind)
        assert backend.short_rows.computed(ufunc, a, b) is not None
        a[200, 5], b[0, 5] = one, other
        assert backend.short_rows.computed(ufunc, a, b) is None
    rows = np.ones((8, 40, 5), kind)
    rows[7, 38:, 4] = largest
    assert backend.short_rows.sums(rows, ROWS) is None
    rows[7, 38:, 4] = np.inf, -np.inf
    assert backend.short_rows.sums(rows, ROWS) is None


def test_a_kernel_is_asked_for_when_rows_were_many() -> None:
    asked: list[bool] = []
    rows = short_rows.KernelRows(lambda text, worth: asked.append(worth))  # type: ignore[func-returns-value]
    x = np.ones((64, 1024, 2))
    for _ in range(4):
        assert rows.sums(x, ROWS) is None
    assert asked == [False, False, False, True]
    assert rows.computed(np.add, x, x[:, :1]) is None and asked[4:] == [False]
