"""Decisions of the planner on the metadata of recorded statements: nothing is executed, and no rank is asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import numpy_dist
from numpy_dist import engine
from numpy_dist.comm.simulated import run_simulated
from numpy_dist.engine.planning.donation import donations
from numpy_dist.engine.planning.layout_propagation import MOST_CELLS, _is_near, propagate_layouts
from numpy_dist.engine.planning.local_planner import cell_key
from numpy_dist.engine.planning.states import state_of
from numpy_dist.engine.scheduling.deferred import MOST, deferrable
from numpy_dist.engine.scheduling.schedule import Description
from numpy_dist.ir.statements import Elementwise, Statement
from numpy_dist.layout.layout import BoxList, Copies, Cut, Layout
from numpy_dist.layout.mesh import Mesh
from numpy_dist.settings import config

N = 100


def on_statements(record: Callable[..., Any], check: Callable[[list[Statement], Any], Any], ranks: int = 3) -> Any:
    """What `check` finds of the statements that `record` leaves pending on two matrices; the same on every rank."""

    def on_rank() -> Any:
        with config(MIN_SHARD_BYTES=0, AT_ONCE=0):
            x, y = (numpy_dist.asarray(np.ones((N, N)), split=0) for _ in range(2))
            engine.flush()
            held = record(x, y)
            del x, y
            statements = list(engine.runtime().program._pending)
            made = [s for s in statements if not isinstance(s, Elementwise) or all(s.creates)]
            assert all(out.storage.memory is None for s in made for out in s.outputs)  # nothing was executed
            return check(statements, held)

    first, *others = run_simulated(ranks, on_rank)
    assert all(other == first for other in others)
    return first


# -- settling layouts ------------------------------------------------------------------------------------------------


def _average(x: Any, y: Any) -> Any:
    average = x[:-2] + x[2:]
    y[1:-1] = average / 4
    return average


def _moved(later: Callable[[list[Statement]], Any] = lambda statements: ()) -> Callable[[list[Statement], Any], Any]:
    """Whether results are computed where the last statement writes, before and after their layouts are settled."""

    def check(statements: list[Statement], held: Any) -> Any:
        *makers, writer = statements
        before = [maker.space == writer.space for maker in makers]
        propagate_layouts(statements, later(statements))
        for maker in makers:
            assert maker.outputs[0].storage.layout == maker.space
        return before, [maker.space == writer.space for maker in makers]

    return check


def test_results_are_computed_where_they_are_used() -> None:
    assert on_statements(_average, _moved()) == ([False, False], [True, True])


def test_results_that_later_statements_use_stay() -> None:
    def quotient(statements: list[Statement]) -> set[int]:
        return {id(statements[1].outputs[0].storage)}

    assert on_statements(_average, _moved(quotient)) == ([False, False], [False, False])


def test_results_whose_users_are_elsewhere_stay() -> None:
    def record(x: Any, y: Any) -> Any:
        total = x[:-2] + x[2:]
        y[:-2] = total
        y[2:] = total

    def check(statements: list[Statement], held: Any) -> Any:
        before = statements[0].space
        propagate_layouts(statements, ())
        return statements[0].space == before

    assert on_statements(record, check)


def test_results_whose_users_disagree_stay() -> None:
    def record(x: Any, y: Any) -> Any:
        total = x[1:-1] + 1
        y[:-2] = total
        y[2:] = total

    def check(statements: list[Statement], held: Any) -> Any:
        first, *users = (statement.space for statement in statements)
        propagate_layouts(statements, ())
        return len({first, *users}), statements[0].space == first

    assert on_statements(record, check) == (3, True)


def test_results_that_are_used_by_parts_stay() -> None:
    def record(x: Any, y: Any) -> Any:
        y[2:] = (x[:-2] + 1)[::-1]

    assert on_statements(record, _moved()) == ([False], [False])


def test_results_do_not_move_far() -> None:
    far = MOST_CELLS + 1

    def record(x: Any, y: Any) -> Any:
        total = x[: N - far] + 1
        y[far:] = total

    assert on_statements(record, _moved()) == ([False], [False])


SQUARE, PAIRS = (N, N), Mesh((2, 2))
ROWS, COLUMNS = Cut(0, (0, 50, N)), Cut(1, (0, 50, N))
NEAR = Layout(SQUARE, PAIRS, (ROWS, COLUMNS))


@pytest.mark.parametrize(
    ("other", "near"),
    [
        (NEAR, True),
        (Layout(SQUARE, PAIRS, (Cut(0, (0, 50 + MOST_CELLS, N)), COLUMNS)), True),
        (Layout(SQUARE, PAIRS, (Cut(0, (0, 51 + MOST_CELLS, N)), COLUMNS)), False),
        (Layout(SQUARE, PAIRS, (ROWS, Cut(1, (0, 49 - MOST_CELLS, N)))), False),
        (Layout(SQUARE, PAIRS, (COLUMNS, ROWS)), False),  # other axes at the same points
        (Layout(SQUARE, PAIRS, (Cut(0, (N, 50, 0)), COLUMNS)), False),  # backwards
        (Layout(SQUARE, PAIRS, (ROWS, Copies())), False),
        (Layout(SQUARE, Mesh((2,)), (ROWS,)), False),
        (Layout((N, N + 1), PAIRS, (ROWS, Cut(1, (0, 50, N + 1)))), False),
        (BoxList(SQUARE, (((0, N), (0, N)), None, None, None)), False),
    ],
)
def test_layouts_are_near_that_cut_the_same_axes_at_nearly_the_same_points(other: Any, near: bool) -> None:
    assert _is_near(NEAR, other) is _is_near(other, NEAR) is near


# -- buffer donation -------------------------------------------------------------------------------------------------


def _donors(statements: list[Statement], held: Any, kept: tuple[int, ...] = ()) -> dict[int, int]:
    """For the statements whose results take an operand's memory: its number, in the order of first use."""
    described = Description(statements)
    slots = described.slots
    keys = [{id(ref): cell_key(slots[id(ref.storage)], ref, (0, 0)) for ref in s.refs()} for s in statements]
    results = {slots[id(s.outputs[0].storage)]: number for number, s in enumerate(statements)}
    operands = [slot for slot in slots.values() if slot not in results]
    ending = set(slots.values()) - {operands[number] for number in kept}
    states = {slot: state_of(storage) for slot, storage in enumerate(described.storages)}
    found = donations(statements, keys, slots, ending, results.keys(), engine.runtime().rank, states)
    return {results[slot]: operands.index(donor) for slot, donor in found.items()}


def test_a_result_takes_the_memory_of_an_operand_that_nobody_holds() -> None:
    assert on_statements(lambda x, y: [x - y], _donors) == {0: 0}
    assert on_statements(lambda x, y: [x - y, x], _donors) == {0: 1}
    assert on_statements(lambda x, y: [x - y, x, y], _donors) == {}


def test_operands_that_are_used_after_the_group_are_kept() -> None:
    assert on_statements(lambda x, y: [x - y], lambda *found: _donors(*found, kept=(0,))) == {0: 1}
    assert on_statements(lambda x, y: [x - y], lambda *found: _donors(*found, kept=(0, 1))) == {}


def test_the_last_reader_takes_the_memory() -> None:
    def record(x: Any, y: Any) -> Any:
        first = x + 1
        return [first, x * first, y]

    assert on_statements(record, _donors) == {1: 0}


def test_memory_is_taken_of_operands_of_one_form_only() -> None:
    assert on_statements(lambda x, y: [x > 1], _donors) == {}
    assert on_statements(lambda x, y: [x + x[::-1]], _donors) == {}
    assert on_statements(lambda x, y: [x[1:] + 1], _donors) == {}


# -- what is computed for a reduction only ---------------------------------------------------------------------------


def _deferrable(statements: list[Statement], held: Any) -> list[int]:
    return deferrable(statements)


def test_what_only_a_reduction_needs_is_deferred() -> None:
    def record(x: Any, y: Any) -> Any:
        squares = (x - y) ** 2
        return [squares, np.sum(squares, axis=0)]

    assert on_statements(record, _deferrable) == [0, 1]
    assert on_statements(lambda x, y: [x - y], _deferrable) == []


def test_what_somebody_holds_on_the_way_is_stored() -> None:
    def record(x: Any, y: Any) -> Any:
        difference = x - y
        squares = difference**2
        return [difference, squares, np.sum(squares, axis=0)]

    assert on_statements(record, _deferrable) == [1]


def test_what_cannot_be_computed_again_is_stored() -> None:
    def overwritten(x: Any, y: Any) -> Any:
        squares = (x - y) ** 2
        y += 1
        return [squares, np.sum(squares, axis=0)]

    def long(x: Any, y: Any) -> Any:
        for _ in range(MOST + 1):
            x = x + y
        return [x, np.sum(x, axis=0)]

    assert on_statements(overwritten, _deferrable) == []
    assert on_statements(long, _deferrable) == []
