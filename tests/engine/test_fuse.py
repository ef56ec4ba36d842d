"""Which statements become one loop, on metadata made by hand."""

from __future__ import annotations

import numpy as np
import pytest

from numpy_dist.engine.planning.fuse import MOST_CELLS, MOST_IN_A_LOOP, _apart, disjoint, fuse
from numpy_dist.layout.layout import Cut, Layout
from numpy_dist.layout.mesh import Mesh

from .metadata import N, elementwise, loops, numbered, reduction, ref, rows, storage

BACKWARDS = np.s_[::-1]
ALONE = Layout((8,), Mesh((1,)), (Cut(0, (0, 8)),))


def test_a_result_is_used_in_the_loop_that_makes_it() -> None:
    x, y, z = storage(), storage(), storage()
    assert loops(elementwise(ref(y), ref(x)), elementwise(ref(z), ref(y))) == [[0, 1]]


def test_a_result_that_is_read_at_other_cells_must_be_complete() -> None:
    x, y, z = storage(), storage(), storage()
    assert loops(elementwise(ref(y), ref(x)), elementwise(ref(z), ref(y, BACKWARDS))) == [[0], [1]]


def test_what_was_read_at_other_cells_is_overwritten_in_the_same_loop() -> None:
    x, y, z = storage(), storage(), storage()
    assert loops(elementwise(ref(z), ref(x, BACKWARDS)), elementwise(ref(x), ref(y))) == [[0, 1]]


def test_the_result_of_a_reduction_exists_after_the_loop_only() -> None:
    x, r, y = storage(), storage(), storage()
    assert loops(reduction(ref(r), ref(x), ()), elementwise(ref(y), ref(r))) == [[0], [1]]


@pytest.mark.parametrize("read", [..., BACKWARDS])
def test_a_reduction_does_not_overwrite_what_its_own_loop_reads(read: object) -> None:
    x, r, y = storage(), storage(), storage()
    assert loops(elementwise(ref(y), ref(r, read)), reduction(ref(r), ref(x), ())) == [[0], [1]]


@pytest.mark.parametrize(
    ("written", "read", "together"),
    [
        (np.s_[:4], np.s_[4:], True),
        (np.s_[4:], np.s_[:4], True),
        (np.s_[:4], np.s_[3:7], False),
        (np.s_[::2], np.s_[1::2], True),
        (np.s_[::2], np.s_[:4], False),
    ],
)
def test_cells_that_no_other_statement_has_to_do_with_are_independent(
    written: object, read: object, together: bool
) -> None:
    x, four = storage(ALONE), Layout((4,), Mesh((1,)), (Cut(0, (0, 4)),))
    y, z = storage(four), storage(four)
    program = elementwise(ref(x, written), ref(y)), elementwise(ref(z), ref(x, read))
    assert loops(*program) == ([[0, 1]] if together else [[0], [1]])


@pytest.mark.parametrize(
    ("one", "other", "apart"),
    [
        (range(0, 4), range(4, 8), True),
        (range(0, 5), range(4, 8), False),
        (range(0, 9, 4), range(2, 9, 4), True),
        (range(0, 9, 4), range(1, 9, 6), True),
        (range(0, 9, 4), range(2, 9, 3), False),
        (range(1, 9, 4), range(3, 9, 4), True),
    ],
)
def test_ranges_are_apart_where_neither_their_hulls_nor_their_steps_meet(one: range, other: range, apart: bool) -> None:
    assert _apart(one, other) is _apart(other, one) is apart


def test_views_are_disjoint_that_are_apart_along_one_axis() -> None:
    x = storage(rows(N, 6))
    assert disjoint(ref(x, np.s_[:, :3]), ref(x, np.s_[:, 3:])) and disjoint(ref(x, np.s_[:3]), ref(x, np.s_[3:]))
    assert not disjoint(ref(x, np.s_[:, :4]), ref(x, np.s_[:, 3:]))


def test_views_without_elements_share_no_cell() -> None:
    x = storage()
    assert disjoint(ref(x, np.s_[3:3]), ref(x)) and disjoint(ref(x), ref(x, np.s_[3:3]))


def test_a_loop_has_no_more_statements_than_it_may() -> None:
    x = storage()
    program = [elementwise(ref(storage()), ref(x)) for _ in range(MOST_IN_A_LOOP + 1)]
    assert list(map(len, loops(*program))) == [MOST_IN_A_LOOP, 1]


def test_statements_on_a_part_join_the_loop_of_the_whole() -> None:
    x, y, z = storage(), storage(), storage()
    (found,) = fuse(numbered(elementwise(ref(y), ref(x)), elementwise(ref(y, np.s_[1:-1]), ref(z, np.s_[1:-1]))))
    assert found.space == y.layout and found.origins == [(), (1,)]


def test_statements_on_parts_of_other_arrays_do_not_join() -> None:
    """They would make cells, each of which has a kernel of its own."""
    x, y, z, part = storage(), storage(), storage(), np.s_[1:-1]
    assert loops(elementwise(ref(y), ref(x)), elementwise(ref(z, part), ref(x, part))) == [[0], [1]]


def test_statements_on_two_parts_do_not_join_without_the_whole() -> None:
    x, y, one, two = storage(), storage(), np.s_[1:-1], np.s_[:-4]
    assert loops(elementwise(ref(y, one), ref(x, one)), elementwise(ref(y, two), ref(x, two))) == [[0], [1]]


def test_outputs_that_lie_differently_in_their_arrays_have_no_place_in_the_whole() -> None:
    x, y, z = storage(), storage(), storage()
    both = elementwise(ref(y, np.s_[1:-1]), ref(x, np.s_[1:-1]))
    both.outputs, both.creates = (*both.outputs, ref(z, np.s_[2:])), (False, False)
    assert loops(elementwise(ref(y), ref(x)), elementwise(ref(z), ref(x)), both) == [[0, 1], [2]]


def test_cells_of_another_dtype_are_other_cells() -> None:
    x, y, z = storage(), storage(), storage(dtype="i8")
    part = np.s_[1:-1]
    assert loops(elementwise(ref(y), ref(x)), elementwise(ref(y, part, "i8"), ref(z, part))) == [[0], [1]]


def test_a_loop_is_divided_into_no_more_cells_than_it_may() -> None:
    n = 3 * MOST_CELLS
    x, y = storage(rows(n)), storage(rows(n))
    parts = [np.s_[k : n - k] for k in range(1, MOST_CELLS)]
    program = elementwise(ref(y), ref(x)), *(elementwise(ref(y, part), ref(x, part)) for part in parts)
    assert len(loops(*program)[0]) == 1 + (MOST_CELLS - 1) // 2  # each part makes two cells more


def test_a_part_that_is_alone_in_its_loop_is_the_space() -> None:
    x, y = storage(), storage()
    shifted = elementwise(ref(y, np.s_[1:-1]), ref(y, np.s_[2:]))
    _, alone = fuse(numbered(elementwise(ref(y), ref(x)), shifted))
    assert alone.space == shifted.space != y.layout and alone.origins == [()]


@pytest.mark.parametrize(("part", "origin"), [(np.s_[2:], 2), (np.s_[1:-3], 1)])
def test_parts_that_differ_in_place_or_size_run_in_the_space_of_the_whole(part: object, origin: int) -> None:
    x, y, z = storage(), storage(), storage()
    shifted = elementwise(ref(y, np.s_[1:-1]), ref(y, np.s_[2:]))
    _, found = fuse(numbered(elementwise(ref(y), ref(x)), shifted, elementwise(ref(y, part), ref(z, part))))
    assert found.space == y.layout and found.origins == [(1,), (origin,)]


def test_storages_of_several_loops_are_shared() -> None:
    x, y, z = storage(), storage(), storage()
    found = fuse(numbered(elementwise(ref(y), ref(x)), elementwise(ref(z), ref(y, BACKWARDS))))
    assert [group.shared for group in found] == [{id(y)}, {id(y)}]


# -- results that only a later loop uses ------------------------------------------------------------------------------


def test_what_only_a_later_loop_uses_is_computed_there() -> None:
    x, w, a, r, y = (storage() for _ in range(5))
    last = elementwise(ref(y), ref(r), ref(a))
    assert loops(elementwise(ref(a), ref(x), creates=True), reduction(ref(r), ref(w), ()), last) == [[1], [0, 2]]
    assert loops(elementwise(ref(a), ref(x)), reduction(ref(r), ref(w), ()), last) == [[0, 1], [2]]  # it was there


def test_what_reads_values_that_are_overwritten_before_stays() -> None:
    x, w, a, r, y = (storage() for _ in range(5))
    maker, reduced = elementwise(ref(a), ref(x), creates=True), reduction(ref(r), ref(w), ())
    assert loops(maker, reduced, elementwise(ref(x), ref(x)), elementwise(ref(y), ref(r), ref(a))) == [[0, 1, 2], [3]]


def test_what_several_later_loops_use_is_computed_in_the_first_of_them() -> None:
    x, w, a, r, y, q, z = (storage() for _ in range(7))
    maker, reduced = elementwise(ref(a), ref(x), creates=True), reduction(ref(r), ref(w), ())
    users = elementwise(ref(y), ref(r), ref(a)), reduction(ref(q), ref(y), ()), elementwise(ref(z), ref(q), ref(a))
    assert loops(maker, reduced, *users) == [[1], [0, 2, 3], [4]]


def test_what_reads_other_values_than_those_that_are_overwritten_is_computed_later() -> None:
    four = Layout((4,), Mesh((1,)), (Cut(0, (0, 4)),))
    x, (w, a, r, y) = storage(ALONE), (storage(four) for _ in range(4))
    maker, reduced = elementwise(ref(a), ref(x, np.s_[:4]), creates=True), reduction(ref(r), ref(w), ())
    users = elementwise(ref(x, np.s_[4:]), ref(w)), elementwise(ref(y), ref(r), ref(a))
    assert loops(maker, reduced, *users) == [[1, 2], [0, 3]]


@pytest.mark.parametrize("cells", [..., BACKWARDS])
def test_what_reads_values_that_the_later_loop_overwrites_is_computed_there(cells: object) -> None:
    x, w, a, r, y = (storage() for _ in range(5))
    maker, reduced = elementwise(ref(a), ref(x, cells), creates=True), reduction(ref(r), ref(w), ())
    users = elementwise(ref(y), ref(r), ref(a)), elementwise(ref(x), ref(r))
    assert loops(maker, reduced, *users) == [[1], [0, 2, 3]]


def test_what_reads_values_that_a_later_reduction_overwrites_stays() -> None:
    x, w, a, r, y = (storage() for _ in range(5))
    maker, reduced = elementwise(ref(a), ref(x), creates=True), reduction(ref(r), ref(w), ())
    assert loops(maker, reduced, elementwise(ref(y), ref(r), ref(a)), reduction(ref(x), ref(r), ())) == [[0, 1], [2, 3]]


def test_statements_move_to_a_later_loop_as_long_as_it_has_room() -> None:
    x, w, r = storage(), storage(), storage()
    made = [storage() for _ in range(3)]
    makers = [elementwise(ref(a), ref(x), creates=True) for a in made]
    users = [elementwise(ref(storage()), ref(r), *map(ref, made)) for _ in range(MOST_IN_A_LOOP - 2)]
    found = loops(*makers, reduction(ref(r), ref(w), ()), *users)
    assert found == [[0, 3], [1, 2, *range(4, len(users) + 4)]] and len(found[1]) == MOST_IN_A_LOOP


def test_statements_do_not_move_to_a_loop_over_another_space() -> None:
    x, a, y = storage(), storage(), storage(rows(N - 2))
    assert loops(elementwise(ref(a), ref(x), creates=True), elementwise(ref(y), ref(a, np.s_[1:-1]))) == [[0], [1]]
