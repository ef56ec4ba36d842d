"""Products that are added in place: all orders of memory, dtypes, and empty matrices."""

from __future__ import annotations

import numpy as np
import pytest

from numpy_dist.parallel import fortran
from numpy_dist.parallel.gemm import add_product, subtract_product


def in_order(x: np.ndarray, order: str) -> np.ndarray:
    """The same matrix: row by row, column by column, or within a larger one, with or without gaps or backwards."""
    wide = np.zeros((2 * x.shape[0] + 1, 2 * x.shape[1] + 3), x.dtype)
    places = {
        "rows of a wider one": wide[1 : 1 + x.shape[0], 2 : 2 + x.shape[1]],
        "columns of a higher one": wide.T.copy().T[: x.shape[0], : x.shape[1]],
        "every other row": wide[: 2 * x.shape[0] : 2, : x.shape[1]],
        "every other column": wide[: x.shape[0], : 2 * x.shape[1] : 2],
        "backwards": wide[: x.shape[0], : x.shape[1]][::-1],
    }
    made = places.get(order, np.zeros(x.shape, x.dtype, order="F" if order == "F" else "C"))
    made[...] = x
    return made


ORDERS = [
    "C",
    "F",
    "rows of a wider one",
    "columns of a higher one",
    "every other row",
    "every other column",
    "backwards",
]


def small_integers(shape: tuple[int, int], kind: str) -> np.ndarray:
    """So that every sum is exact, in whichever order."""
    generator = np.random.default_rng(shape)
    values = generator.integers(-9, 9, shape)
    return (values + 1j * generator.integers(-9, 9, shape) if kind in "FD" else values).astype(kind)


@pytest.mark.parametrize("kind", "fdFD")
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(
    "shape", [(5, 7, 3), (1, 7, 3), (5, 1, 3), (5, 7, 1), (1, 1, 1), (0, 7, 3), (5, 0, 3), (5, 7, 0)]
)
def test_all_orders(shape: tuple[int, int, int], order: str, kind: str) -> None:
    m, n, k = shape
    left, right, into = (small_integers(each, kind) for each in ((m, k), (k, n), (m, n)))
    product = left @ right
    for which in ORDERS:
        for operands in ((order, which), (which, order)):
            found = in_order(into, order)
            around = found.base
            before = None if around is None else around.sum() - found.sum()
            add_product(found, *(in_order(x, its) for x, its in zip((left, right), operands, strict=True)))
            assert np.array_equal(found, into + product)
            subtract_product(found, *(in_order(x, its) for x, its in zip((left, right), operands, strict=True)))
            assert np.array_equal(found, into)
            assert before is None or around.sum() - found.sum() == before


@pytest.mark.parametrize("kinds", ["ddf", "dqd", "ggg", "ee"])
def test_what_the_blas_has_not(kinds: str) -> None:
    into, left, right = (small_integers((4, 4), kind) for kind in kinds.ljust(3, kinds[-1]))
    found = into.copy()
    add_product(found, left, right)
    assert np.array_equal(found, into + left @ right)


@pytest.mark.parametrize("kind", "fdFD")
def test_rows_are_added_where_they_are(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No product is stored where the BLAS has a routine."""
    called = []
    monkeypatch.setattr(fortran, "call", lambda *arguments: called.append(arguments))
    matrix = np.ones((6, 9), kind)
    add_product(matrix[:2], matrix[2:4, :3], matrix[3:6])
    assert len(called) == 1
    assert np.all(matrix == 1)


def test_without_the_routine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fortran, "has_routine", lambda name: False)
    found = np.ones((2, 2))
    subtract_product(found, np.eye(2), np.eye(2))
    assert found.tolist() == [[0, 1], [1, 0]]
