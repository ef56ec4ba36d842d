"""Elements by positions and coordinates: put, take, choose, indices along an axis, flat positions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.functions.harness import PRESENTATIONS, check

rng = np.random.default_rng(5)
A = rng.standard_normal((6, 8))
V = rng.integers(0, 100, 23)
FEW = tuple(sorted(PRESENTATIONS)[::4])
FEWER = ("default", "descending")


def put(x: Any, *args: Any) -> Any:
    np.put(x, *args)
    return x


@pytest.mark.slow
def test_put():
    check(put, A, np.array([0, 17, -1, 0]), np.array([7.0, 8, 9, 10]))
    check(put, V, [3, 3, 5], [1, 2])
    check(lambda x: put(x, [40, -30, 5], [1, 2, 3], "clip"), V, ranks=(3,), ways=FEW)
    check(lambda x: put(x, [40, -30, 5], [1, 2, 3], "wrap"), A, ranks=(3,), ways=FEW)
    check(lambda x: put(x, [[0, 1], [2, 3]], 2.7), V, ranks=(3,), ways=FEW)
    check(lambda x: put(x, [], 2.7), V, ranks=(3,), ways=FEWER)
    check(lambda x: put(x, [1], []), V, ranks=(3,), ways=FEWER)
    check(put, np.zeros((5, 3), "u1"), np.arange(15), np.array([3, 260]), ranks=(3,), ways=FEW)
    check(lambda x, i, v: x.put(i, v), V, np.array([1, 2, 1]), np.array([1, 2, 3]), ranks=(3,), ways=FEW)


@pytest.mark.parametrize(
    "arguments",
    [([0, 40, 1], [7, 8, 9]), ([0], 1j), ([0], "a"), ([0], 1, "other"), (np.array([1], "u8"), 1), ([-24], [1])],
)
def test_put_errors(arguments):
    check(lambda x: put(x, *arguments), V, ranks=(3,), ways=FEWER)  # what comes before the wrong index is written
    check(lambda x: put(x, *arguments), np.zeros(0), ranks=(3,), ways=FEWER)


def test_take_into_an_output():
    for out in (np.zeros(3), np.zeros(3, "i4"), np.zeros(4), np.zeros((3, 1))):
        check(lambda x, o: np.take(x, [3, 40, 3], out=o), A, out, ranks=(3,), ways=FEW)
    check(lambda x, o: np.take(x, [3, 1, 3], 1, o), A, np.zeros((6, 3)), ranks=(3,), ways=FEW)
    check(lambda x, o: np.take(x, [3, 1, 30], 1, o), A, np.zeros((6, 3)), ranks=(3,), ways=FEWER)
    check(lambda x: np.take(x, [0, 1], mode="other"), A, ranks=(3,), ways=FEWER)
    check(lambda x: np.take(x, np.zeros(0, int), 1), A, ranks=(3,), ways=FEWER)
    check(lambda x: np.take(x, [0]), np.zeros((3, 0)), ranks=(3,), ways=FEWER)


@pytest.mark.slow
def test_along_an_axis():
    order = np.argsort(A, axis=1)
    for axis in (0, 1, -1):
        check(lambda x, i, axis=axis: np.take_along_axis(x, i, axis), A, np.argsort(A, axis))
    check(lambda x, i: np.take_along_axis(x, i, 1), A, order[:, :3], ranks=(3,), ways=FEW)
    check(lambda x, i: np.take_along_axis(x, i, 1), A, order[:1], ranks=(3,), ways=FEW)
    check(lambda x, i: np.take_along_axis(x, i, 0), V, np.array([22, 0, -1]), ranks=(3,), ways=FEW)
    check(lambda x, i: np.take_along_axis(x, i, None), A, np.array([22, 0, -1]), ranks=(3,), ways=FEW)
    check(lambda x, i: np.take_along_axis(x, i, 1), A, order + 1, ranks=(3,), ways=FEWER)
    check(lambda x, i: np.take_along_axis(x, i, 1), A, order[0], ranks=(3,), ways=FEWER)
    check(lambda x, i: np.take_along_axis(x, i, 1), A, order * 1.0, ranks=(3,), ways=FEWER)
    check(lambda x, i: np.put_along_axis(x, i, 7, 1), A, order[:, :3])
    check(lambda x, i, v: np.put_along_axis(x, i, v, 0), A, order[:2] % 6, rng.random((2, 8)), ranks=(3,), ways=FEW)
    whole = ("default", "irregular", "pinned")  # NumPy cannot write through the flat view of others
    for values in (7, [1, 2, 3], [1, 2]):
        check(lambda x, i, v=values: np.put_along_axis(x, i, v, None), V, np.array([3, -1]), ranks=(3,), ways=whole)
    check(lambda x, i: np.put_along_axis(x, i, 7, None), A, np.array([3, 48]), ranks=(3,), ways=FEWER)
    check(lambda x, i: np.put_along_axis(x, i, 7, 1), A, order + 1, ranks=(3,), ways=FEWER)


@pytest.mark.slow
def test_choose():
    index, lines = rng.integers(0, 3, 8), [rng.standard_normal(8) for _ in range(3)]
    check(lambda i, *c: np.choose(i, c), index, *lines)
    check(lambda i, c: np.choose(i, [c, 5, c]), index, A, ranks=(3,), ways=FEW)
    check(lambda i, c: np.choose(i, c), index % 2, A, ranks=(3,), ways=FEW)
    check(lambda i, *c: np.choose(i - 5, c, mode="wrap"), index, *lines, ranks=(3,), ways=FEW)
    check(lambda i, *c: np.choose(i * 5 - 3, c, mode="clip"), index, *lines, ranks=(3,), ways=FEW)
    check(lambda i, *c: np.choose(i + 1, c), index, *lines, ranks=(3,), ways=FEWER)
    check(lambda i, o, *c: np.choose(i, c, o), index, np.zeros(8), *lines, ranks=(3,), ways=FEW)
    check(lambda i, o, *c: np.choose(i, c, o), index, np.zeros(7), *lines, ranks=(3,), ways=FEWER)
    check(lambda i, *c: np.choose(i, c), index * 1.0, *lines, ranks=(3,), ways=FEWER)
    for dtype in (">f4", "O", "T"):
        choices = np.array([3, 1]).astype(dtype)
        check(lambda i, c: np.choose(i % 2, c), index, choices, ranks=(1, 2), ways=("default",), native=False)
    check(lambda i: np.choose(i, [np.int8(3), 300, 2]), index, ranks=(3,), ways=FEWER)
    check(lambda i: np.choose(i, [1, 2]), np.array(1), ranks=(3,), ways=FEWER)
    check(lambda i, *c: i.choose(c), index, *lines, ranks=(3,), ways=FEWER)


def test_coordinates():
    flat = rng.integers(0, 20, (3, 7))
    for order in "CF":
        check(lambda i, order=order: np.unravel_index(i, (4, 5), order), flat, ranks=(1, 4), ways=FEW)
        check(
            lambda i, j, order=order: np.ravel_multi_index((i, j), (4, 5), order=order),
            flat % 4, flat % 5, ranks=(1, 4), ways=FEW,
        )  # fmt: skip
    check(lambda i: np.unravel_index(i, (4, 4)), flat, ranks=(3,), ways=FEWER)
    check(lambda i: np.unravel_index(i * 1.0, (4, 5)), flat, ranks=(3,), ways=FEWER)
    check(lambda i: np.unravel_index(i, 20), flat, ranks=(3,), ways=FEWER)
    check(lambda i: np.unravel_index(i, (4, 5), "K"), flat, ranks=(3,), ways=FEWER)
    check(lambda i: np.ravel_multi_index(i, (4, 5, 6), mode=("wrap", "clip", "raise")), flat % 6, ranks=(3,), ways=FEW)
    for wrong in ((4, 5), (4, 5, 3)):
        check(lambda i, wrong=wrong: np.ravel_multi_index(i, wrong), flat % 6, ranks=(3,), ways=FEWER)
    check(lambda i: np.ravel_multi_index((i, i[0, :2]), (20, 20)), flat, ranks=(3,), ways=FEWER)
    check(lambda i: np.ravel_multi_index((i, i), (20, 20), "other"), flat, ranks=(3,), ways=FEWER)


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(5, 5), (4, 7), (7, 2), (3, 3, 3), (6,)])
def test_triangles_and_diagonals(shape):
    for function in (np.tril_indices_from, np.triu_indices_from):
        for k in (0, 2, -1):
            check(lambda x, f=function, k=k: f(x, k), np.zeros(shape), ranks=(3,), ways=FEW)
    check(np.diag_indices_from, np.zeros(shape), ranks=(3,), ways=FEWER)
