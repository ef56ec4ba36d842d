"""Elements that are added and removed: insert, delete, append; numbers of repetitions; padding and resizing."""

from __future__ import annotations

import numpy as np
import pytest

from tests.functions.harness import PRESENTATIONS, check

rng = np.random.default_rng(7)
V, A, B = rng.standard_normal(11), rng.standard_normal((6, 5)), rng.integers(0, 9, (3, 4, 2))
FEW = tuple(sorted(PRESENTATIONS)[::4])
FEWER = ("default", "descending")
S = np.s_
MASK = rng.random(6) < 0.5


@pytest.mark.parametrize(
    "where", [2, -1, [1, 3], [3, 1, 1], [], S[1:5:2], S[::-1], S[3:3], S[-2:], MASK, [5], np.array([], int), np.int8(2)],
    ids=str,
)  # fmt: skip
def test_delete(where):
    check(lambda x: np.delete(x, where, 0), A, ranks=(1, 4), ways=FEW)
    if where is not MASK:
        check(lambda x: np.delete(x, where, 1), A[:, [0, 1, 2, 3, 4, 0]], ranks=(3,), ways=FEW)
        check(lambda x: np.delete(x, where), A, ranks=(3,), ways=FEWER)


def test_delete_by_arrays_of_ours():
    check(lambda x, i: np.delete(x, i, 0), A, np.array([0, 4, 4]), ranks=(3,), ways=FEW)
    check(lambda x, i: np.delete(x, i, 0), A, MASK, ranks=(3,), ways=FEW)
    for wrong in (6, -7, [0, 9], [True, False], 1.5, "a", [[0], [9]]):
        check(lambda x, wrong=wrong: np.delete(x, wrong, 0), A, ranks=(3,), ways=FEWER)
    check(lambda x: np.delete(x, 0, 2), A, ranks=(3,), ways=FEWER)


@pytest.mark.parametrize("where", [2, -1, 6, [1, 3], [3, 1, 1], [4], S[1:5:2], [], MASK], ids=str)
def test_insert(where):
    count = len(np.arange(6)[where]) if isinstance(where, slice) else int(np.sum(where)) if where is MASK else np.size(where)
    check(lambda x: np.insert(x, where, 7, 0), A, ranks=(1, 4), ways=FEW)
    check(lambda x, v: np.insert(x, where, v, 0), A, rng.random((count, 5)), ranks=(3,), ways=FEW)
    check(lambda x, v: np.insert(x, where, v), V, rng.random(count), ranks=(3,), ways=FEWER)


def test_insert_otherwise():
    check(lambda x: np.insert(x, 1, [1, 2, 3, 4, 5, 6], 1), A, ranks=(3,), ways=FEW)
    check(lambda x: np.insert(x, [1], [[1], [2], [3], [4], [5], [6]], 1), A, ranks=(3,), ways=FEW)
    check(lambda x, i: np.insert(x, i, 3.5), V, np.array([0, 4, -1]), ranks=(3,), ways=FEW)
    check(lambda x: np.insert(x, 1, 2.7), B, ranks=(3,), ways=FEWER)
    for wrong in (7, [0, 9], [[0]], "a"):
        check(lambda x, wrong=wrong: np.insert(x, wrong, 1, 0), A, ranks=(3,), ways=FEWER)
    check(lambda x: np.insert(x, 1, [1, 2, 3], 0), A, ranks=(3,), ways=FEWER)
    check(lambda x: np.insert(x, [1, 2], [1, 2, 3], 0), V, ranks=(3,), ways=FEWER)
