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
    "where",
    [2, -1, [1, 3], [3, 1, 1], [], S[1:5:2], S[::-1], S[3:3], S[-2:], MASK, [5], np.array([], int), np.int8(2)],
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
    count = np.size(where) if np.ndim(where) == 0 and isinstance(where, int) else len(np.arange(6)[where])
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


# -- repetitions and padding -----------------------------------------------------------------------------------------


def test_repeating_each_element():
    counts = np.array([2, 0, 1, 3, 0, 1])
    for axis in (0, None):
        repeats = counts if axis == 0 else np.tile(counts, 5)
        check(lambda x, r=repeats, axis=axis: np.repeat(x, r, axis), A, ranks=(1, 4), ways=FEW)
        check(lambda x, r, axis=axis: np.repeat(x, r, axis), A, repeats, ranks=(3,), ways=FEW)
    check(lambda x: np.repeat(x, [1, 2, 0, 1, 1], 1), A, ranks=(3,), ways=FEW)
    check(lambda x, r: np.repeat(x, r, 1), A, np.array([2]), ranks=(3,), ways=FEWER)
    check(lambda x: np.repeat(x, []), V[:0], ranks=(3,), ways=FEWER)
    for wrong in ([1, 2], [1, 2, 3, 4, 5, -1], [1.5] * 6, [[1] * 6]):
        check(lambda x, wrong=wrong: np.repeat(x, wrong, 0), A, ranks=(3,), ways=FEWER)


MODES = ["constant", "edge", "linear_ramp", "maximum", "mean", "median", "minimum", "reflect", "symmetric", "wrap"]


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_padding(mode):
    check(lambda x: np.pad(x, 2, mode), V, ranks=(1, 4), ways=FEW)
    check(lambda x: np.pad(x, ((1, 2), (0, 3)), mode), A, ranks=(3,), ways=FEW)
    check(lambda x: np.pad(x, 1, mode), B, ranks=(3,), ways=FEWER)
    check(lambda x: np.pad(x, ((1, 2), (3, 0)), mode, wrong=1), A, ranks=(3,), ways=FEWER)


def test_padding_with_options():
    check(lambda x: np.pad(x, 3, "linear_ramp", end_values=((1, 2), (3, 4))), A, ranks=(3,), ways=FEW)
    check(lambda x: np.pad(x, 3, "median", stat_length=2), A, ranks=(3,), ways=FEW)
    check(lambda x: np.pad(x, 9, "reflect", reflect_type="odd"), V, ranks=(3,), ways=FEW)
    check(lambda x: np.pad(x, -1), A, ranks=(3,), ways=FEWER)
    check(lambda x: np.pad(x, 1, "other"), A, ranks=(3,), ways=FEWER)

    def ends(vector: np.ndarray, width: tuple[int, int], axis: int, options: dict) -> None:
        vector[: width[0]] = options.get("value", 10) + axis
        vector[vector.shape[0] - width[1] :] = -1

    check(lambda x: np.pad(x, 2, ends, value=3), A, ranks=(3,), ways=FEWER)


# -- by conditions ---------------------------------------------------------------------------------------------------


def assigned(function, x, *args, **options):
    function(x, *args, **options)
    return x


def test_conditions():
    many = rng.random(50)
    check(lambda c, x: np.extract(c, x), np.arange(9) % 2 == 0, A, ranks=(3,), ways=FEW)
    check(lambda c, x: np.extract(c, x), np.ones(40, bool), A, ranks=(3,), ways=FEWER)
    for out in (np.zeros((3, 5)), np.zeros((2, 5)), np.zeros((3, 5), "i4")):
        check(lambda c, x, o: np.compress(c, x, 0, o), np.array([1, 0, 1, 1, 0, 0]), A, out, ranks=(3,), ways=FEWER)
    for values in (many[:3], many, many[:1], many[:0]):
        check(lambda x, m, v: assigned(np.place, x, m, v), A, A > 0, values, ranks=(3,), ways=FEW)
        check(lambda x, m, v: assigned(np.putmask, x, m, v), A, A > 0, values, ranks=(3,), ways=FEW)
        check(lambda x, m, v=values: assigned(np.putmask, x, m, v), A, A > 0, ranks=(3,), ways=FEWER)
    check(lambda x, m: assigned(np.place, x, m, [1]), A, A[1:] > 0, ranks=(3,), ways=FEWER)


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(7, 3), (3, 7), (5, 5), (3, 3, 3)])
def test_diagonals(shape):
    x = np.zeros(shape)
    for wrap in (False, True):
        for value in (4, [1, 2], [1, 2, 3], np.arange(12.0)):
            check(lambda x, v=value, w=wrap: assigned(np.fill_diagonal, x, v, w), x, ranks=(3,), ways=FEW)
    check(lambda x, v: assigned(np.fill_diagonal, x, v), x, np.arange(2.0), ranks=(3,), ways=FEWER)


@pytest.mark.parametrize("reps", [np.True_, (np.array(False), 2), 1.0, (np.float32(1), np.True_), (True, True)])
def test_repetitions_are_multiplied(reps):
    check(np.tile, np.arange(12.0).reshape(3, 4), reps)


@pytest.mark.parametrize("reps", [2.0, (2, None)])
def test_repetitions_of_other_kinds_are_errors(reps):
    check(np.tile, np.arange(12.0).reshape(3, 4), reps)
